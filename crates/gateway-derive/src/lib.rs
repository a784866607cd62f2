//! `#[tool]`: a Rust function as a tool of the gateway.
//!
//! Used through `paraph-gateway`, which re-exports it. What a tool is, how it is checked and how it runs
//! lives there; this crate reads a function (`function.rs`, `options.rs`) and writes an implementation of
//! the trait `Tool` for it (`expand.rs`). It must not grow rules of its own about what may run.

mod expand;
mod function;
mod options;
#[cfg(test)]
mod tests;

use function::Function;
use options::Options;
use proc_macro2::TokenStream;
use syn::Error;

/// Makes a tool of a function.
///
/// The function stays as it is; beside it there is a type of the same name, which is the tool: register it
/// with `.tool(name {})`. The doc comment is what the model reads of it, the doc comments of the arguments
/// describe these in the JSON Schema, which `schemars` makes of their types: they implement
/// `serde::Deserialize` and `schemars::JsonSchema`.
///
/// The function may be `async` or not. It returns anything that can be written as JSON, a `ToolOutput`
/// (an artifact or a command beside the text), or a `Result` of one of these.
///
/// On the function, all optional:
/// - `name = "…"`: the tool's name, if it is to be another than the function's;
/// - `about = "…"`: what the model reads, in place of the doc comment;
/// - `timeout = "…"`: how long it may take, such as `"500ms"`, `"5s"` or `"2m"`;
/// - `output_cap = …`: how many bytes of its output the model reads;
/// - `level = "read"`: what it does to the world. Anything else is refused, see below;
/// - `blocking`: runs a function that is not `async` on a thread where it may block.
///
/// On a parameter:
/// - `#[inject]`: the program gives it, not the model: `#[inject] client: &Client`. It is no part of the
///   schema, and a call in which the model supplies an argument of that name is refused;
/// - `#[default(…)]`: what it is if the model leaves it out. (An `Option` is then `None` by itself.)
/// - `#[schemars(…)]`: bounds for the schema, such as `#[schemars(range(min = 1, max = 7))]`.
///
/// A tool of this kind reads. What changes something implements `Tool` itself, with its `LEVEL`: it may
/// run only when a person has approved it, and then needs to say more than a function can.
#[proc_macro_attribute]
pub fn tool(
    attribute: proc_macro::TokenStream,
    item: proc_macro::TokenStream,
) -> proc_macro::TokenStream {
    expand(attribute.into(), item.into())
        .unwrap_or_else(Error::into_compile_error)
        .into()
}

fn expand(attribute: TokenStream, item: TokenStream) -> syn::Result<TokenStream> {
    let options: Options = syn::parse2(attribute)?;
    let function = Function::read(syn::parse2(item)?, &options)?;
    Ok(expand::tool(&function, &options))
}
