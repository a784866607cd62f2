//! What the code that `#[tool]` makes of a function calls. Nothing else does.

use super::{IntoOutput, ToolError, ToolOutput};

/// The result of a function that may fail.
pub fn fallible<O: IntoOutput, E: Into<ToolError>>(
    result: Result<O, E>,
) -> Result<ToolOutput, ToolError> {
    match result {
        Ok(output) => output.into_output(),
        Err(error) => Err(error.into()),
    }
}

/// Runs a function that may block on a thread of its own. If the call is cut off meanwhile, the function
/// runs on and its result is thrown away.
pub async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    match tokio::task::spawn_blocking(work).await {
        Ok(result) => result,
        // As if it had happened here: it is caught where the tool is run.
        Err(error) => match error.try_into_panic() {
            Ok(panic) => std::panic::resume_unwind(panic),
            Err(cancelled) => std::panic::resume_unwind(Box::new(cancelled.to_string())),
        },
    }
}
