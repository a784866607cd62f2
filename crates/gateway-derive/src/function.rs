//! The function under `#[tool]`: its arguments, what is injected into it, and what it cannot be.

use crate::options::{Options, tool_name};
use proc_macro2::Span;
use syn::ext::IdentExt as _;
use syn::spanned::Spanned as _;
use syn::{
    Attribute, Error, Expr, ExprLit, FnArg, Ident, ItemFn, Lit, LitStr, Meta, Pat, PatType,
    PathArguments, ReturnType, Type,
};

/// A function that can be a tool.
pub(crate) struct Function {
    /// Without the attributes of its parameters.
    pub(crate) item: ItemFn,
    pub(crate) name: LitStr,
    pub(crate) about: LitStr,
    pub(crate) parameters: Vec<Parameter>,
    /// Whether it returns a `Result`.
    pub(crate) fallible: bool,
}

/// One parameter, in the place in which the function takes it.
pub(crate) enum Parameter {
    /// The model gives it.
    Argument(Box<Argument>),
    /// The program gives it.
    Injected {
        /// Whether it is the call's context itself.
        is_context: bool,
        ty: Box<Type>,
    },
}

/// What the model gives.
pub(crate) struct Argument {
    pub(crate) name: Ident,
    pub(crate) ty: Box<Type>,
    /// Doc comments, and what is meant for the schema.
    pub(crate) attributes: Vec<Attribute>,
    pub(crate) default: Option<Expr>,
}

impl Function {
    pub(crate) fn read(mut item: ItemFn, options: &Options) -> syn::Result<Function> {
        refuse(&item, options)?;
        let name = match &options.name {
            Some(name) => name.clone(),
            None => {
                let ident = &item.sig.ident;
                tool_name(LitStr::new(&ident.unraw().to_string(), ident.span()))?
            }
        };
        let about = match &options.about {
            Some(about) => about.clone(),
            None => LitStr::new(&docs(&item.attrs), item.sig.ident.span()),
        };
        if about.value().trim().is_empty() {
            return Err(Error::new(
                item.sig.ident.span(),
                "a tool needs a doc comment: it is what the model reads of it",
            ));
        }
        let mut parameters = Vec::new();
        for input in &mut item.sig.inputs {
            parameters.push(parameter(input, options)?);
        }
        Ok(Function {
            fallible: is_result(&item.sig.output),
            item,
            name,
            about,
            parameters,
        })
    }
}

fn refuse(item: &ItemFn, options: &Options) -> syn::Result<()> {
    let signature = &item.sig;
    let wrong = |span: Span, why: &str| Err(Error::new(span, why));
    if !signature.generics.params.is_empty() {
        let why =
            "a tool has no parameters of types or lifetimes: its schema must have one meaning";
        return wrong(signature.generics.span(), why);
    }
    if let Some(word) = &signature.unsafety {
        return wrong(word.span, "a tool is not unsafe to call");
    }
    if let Some(abi) = &signature.abi {
        return wrong(abi.span(), "a tool is a plain function");
    }
    match (&options.blocking, &signature.asyncness) {
        (Some(word), Some(_)) => wrong(
            word.span(),
            "an async function must not block: `blocking` is for one that is not async",
        ),
        _ => Ok(()),
    }
}

fn parameter(input: &mut FnArg, options: &Options) -> syn::Result<Parameter> {
    let typed = match input {
        FnArg::Typed(typed) => typed,
        FnArg::Receiver(receiver) => {
            return Err(Error::new(
                receiver.span(),
                "a tool has no `self`: inject what it needs (`#[inject] client: &Client`), or implement `Tool`",
            ));
        }
    };
    let attributes = std::mem::take(&mut typed.attrs);
    let (inject, rest): (Vec<_>, Vec<_>) = attributes
        .into_iter()
        .partition(|attribute| attribute.path().is_ident("inject"));
    match inject.first() {
        None => Ok(Parameter::Argument(Box::new(argument(typed, rest)?))),
        Some(inject) => {
            inject.meta.require_path_only()?;
            injected(typed, &rest, options)
        }
    }
}

fn injected(typed: &PatType, rest: &[Attribute], options: &Options) -> syn::Result<Parameter> {
    // A doc comment is for whoever reads the code; anything else would say something of a schema.
    if let Some(other) = rest.iter().find(|rest| !rest.path().is_ident("doc")) {
        return Err(Error::new(
            other.span(),
            "what is injected has no part in the schema",
        ));
    }
    let is_reference = matches!(&*typed.ty, Type::Reference(_));
    if let (Some(_), true) = (&options.blocking, is_reference) {
        return Err(Error::new(
            typed.ty.span(),
            "a blocking tool works on another thread and cannot borrow: inject an `Arc`, or a `Progress`",
        ));
    }
    Ok(Parameter::Injected {
        is_context: is_context(&typed.ty),
        ty: typed.ty.clone(),
    })
}

fn argument(typed: &PatType, attributes: Vec<Attribute>) -> syn::Result<Argument> {
    let name = match &*typed.pat {
        Pat::Ident(pattern) if pattern.by_ref.is_none() && pattern.subpat.is_none() => {
            pattern.ident.clone()
        }
        other => {
            let why = "an argument needs a name: it is how the model says which one it means";
            return Err(Error::new(other.span(), why));
        }
    };
    if let Type::Reference(_) | Type::ImplTrait(_) = &*typed.ty {
        return Err(Error::new(
            typed.ty.span(),
            format!(
                "`{name}` comes from the model and is owned (`String`, not `&str`); \
                 if the program gives it, write `#[inject]` before it"
            ),
        ));
    }
    let mut argument = Argument {
        name,
        ty: typed.ty.clone(),
        attributes: Vec::new(),
        default: None,
    };
    for attribute in attributes {
        if attribute.path().is_ident("default") {
            argument.default = Some(attribute.parse_args()?);
        } else if attribute.path().is_ident("schemars") {
            refuse_second_name(&attribute)?;
            argument.attributes.push(attribute);
        } else if attribute.path().is_ident("doc") {
            argument.attributes.push(attribute);
        } else {
            return Err(Error::new(
                attribute.span(),
                "an argument may have doc comments, #[inject], #[default(…)] and #[schemars(…)]",
            ));
        }
    }
    Ok(argument)
}

/// An argument has the name of its parameter, in the schema and in the call.
fn refuse_second_name(attribute: &Attribute) -> syn::Result<()> {
    let mut second = None;
    // Other words have forms that need not be understood here; parsing stops at the first.
    let _ = attribute.parse_nested_meta(|meta| {
        if ["rename", "alias", "flatten", "skip", "default"]
            .iter()
            .any(|word| meta.path.is_ident(word))
        {
            second = Some(meta.path.span());
        }
        Ok(())
    });
    match second {
        None => Ok(()),
        Some(span) => Err(Error::new(
            span,
            "an argument has the name and the default of its parameter; #[schemars(…)] is for bounds",
        )),
    }
}

/// The text of doc comments, without the space after the slashes.
fn docs(attributes: &[Attribute]) -> String {
    let lines: Vec<String> = attributes.iter().filter_map(doc).collect();
    lines.join("\n").trim().to_owned()
}

fn doc(attribute: &Attribute) -> Option<String> {
    let Meta::NameValue(meta) = &attribute.meta else {
        return None;
    };
    match &meta.value {
        Expr::Lit(ExprLit {
            lit: Lit::Str(text),
            ..
        }) if meta.path.is_ident("doc") => {
            let text = text.value();
            Some(text.strip_prefix(' ').unwrap_or(&text).to_owned())
        }
        _ => None,
    }
}

fn is_context(ty: &Type) -> bool {
    let Type::Reference(reference) = ty else {
        return false;
    };
    let Type::Path(path) = &*reference.elem else {
        return false;
    };
    path.path
        .segments
        .last()
        .is_some_and(|last| last.ident == "ToolContext")
}

fn is_result(output: &ReturnType) -> bool {
    let ReturnType::Type(_, ty) = output else {
        return false;
    };
    let Type::Path(path) = &**ty else {
        return false;
    };
    path.path.segments.last().is_some_and(|last| {
        last.ident == "Result" && !matches!(last.arguments, PathArguments::Parenthesized(_))
    })
}
