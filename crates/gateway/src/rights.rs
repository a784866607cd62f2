//! Whether those who signed an action may still sign it, asked when it is started and once more before it is handed over.
//!
//! A program that knows its people implements [`Rights`] and gives it to
//! [`Builder::rights`](crate::Builder::rights). Without one, people keep the right that they had; a standing grant counts
//! for as long as the policy has it.

use crate::action::{Action, Signer};
use crate::tool::ToolError;
use futures::future::BoxFuture;

/// Whether signatures still count.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Entitled {
    /// All of them do.
    Yes,
    /// One does not; why, in words for whoever decides anew. The action is held.
    No(String),
}

/// Knows who may sign what: a directory of people, or the system that the effect goes to.
///
/// ```
/// use futures::future::BoxFuture;
/// use paraph_gateway::{Action, Entitled, Rights, Signer, ToolError};
///
/// /// Those who are on duty.
/// struct Duty(Vec<String>);
///
/// impl Rights for Duty {
///     fn still_entitled<'a>(
///         &'a self,
///         signers: &'a [Signer],
///         action: &'a Action,
///     ) -> BoxFuture<'a, Result<Entitled, ToolError>> {
///         let off_duty = signers.iter().find_map(|signer| match signer {
///             Signer::Person(person) if !self.0.contains(&person.id) => Some(&person.id),
///             _ => None,
///         });
///         let answer = match off_duty {
///             Some(who) => Entitled::No(format!("{who} may not sign `{}` any more", action.said.tool)),
///             None => Entitled::Yes,
///         };
///         Box::pin(async { Ok(answer) })
///     }
/// }
/// ```
pub trait Rights: Send + Sync + 'static {
    /// Whether all who signed this action may still sign it. An error means that nobody can tell: then nothing is done,
    /// and it is asked again later.
    fn still_entitled<'a>(
        &'a self,
        signers: &'a [Signer],
        action: &'a Action,
    ) -> BoxFuture<'a, Result<Entitled, ToolError>>;
}
