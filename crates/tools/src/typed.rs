//! From a Rust function with typed arguments to a tool of the gateway.
//!
//! Called by the tools of this crate. Their argument types say `deny_unknown_fields`, which closes their schemas:
//! an argument that a model invented must not be dropped in silence.

use paraph_gateway::{DynTool, Json, ToolError};
use schemars::JsonSchema;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::error::Error;

/// A tool that reads, with the gateway's default limits.
pub(crate) fn tool<A, O, F, Fut>(name: &str, about: &str, run: F) -> DynTool
where
    A: DeserializeOwned + JsonSchema,
    O: Serialize,
    F: Fn(A) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<O, Error>> + Send + 'static,
{
    let schema = schemars::schema_for!(A).to_value();
    DynTool::new(name, about, schema, move |args: Json| {
        let started = serde_json::from_str(&args.to_string()).map(&run);
        async move {
            match started {
                Ok(running) => running.await.map_err(Error::for_model),
                Err(error) => Err(ToolError::bad_args(error.to_string())),
            }
        }
    })
}
