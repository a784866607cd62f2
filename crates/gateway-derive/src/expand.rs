//! The tool that is made of a function: a type with the function's name, and `Tool` for it.

use crate::function::{Argument, Function, Parameter};
use crate::options::Options;
use proc_macro2::TokenStream;
use quote::{format_ident, quote, quote_spanned};
use syn::spanned::Spanned as _;
use syn::{Expr, ExprLit, Ident, Lit, LitStr};

/// The function, the type of its name, and the implementation.
///
/// Functions and types have names of their own kinds, so both can be called alike. The type has braces:
/// a unit struct would be a value too, and every local variable of its name a pattern of it.
pub(crate) fn tool(function: &Function, options: &Options) -> TokenStream {
    let item = &function.item;
    let (tool, vis) = (&item.sig.ident, &item.vis);
    // Where the code does not exist, its tool must not either.
    let attributes = |name: &'static str| {
        let all = item.attrs.iter();
        all.filter(move |attribute| attribute.path().is_ident(name))
    };
    let conditions: Vec<_> = attributes("cfg").collect();
    let docs = attributes("doc");
    let arguments = arguments(function);
    let implementation = implementation(function, options);
    quote! {
        #item

        #(#conditions)*
        #(#docs)*
        #[derive(Clone, Copy, Debug)]
        #[allow(non_camel_case_types, reason = "a tool is called as its function is")]
        #vis struct #tool {}

        #(#conditions)*
        const _: () = {
            #arguments
            #implementation
        };
    }
}

/// The struct of the arguments: what the schema is made of, and what a call's text is read into.
fn arguments(function: &Function) -> TokenStream {
    let fields = given(function).map(|(index, argument)| {
        let Argument {
            name,
            ty,
            attributes,
            default,
        } = argument;
        let default = default.as_ref().map(|_| {
            let path = LitStr::new(&default_name(index).to_string(), name.span());
            quote!(#[serde(default = #path)])
        });
        quote! { #(#attributes)* #default #name: #ty, }
    });
    let defaults = given(function).filter_map(|(index, argument)| {
        let (function, ty) = (default_name(index), &argument.ty);
        let default = argument.default.as_ref()?;
        // A text's literal stands for whatever holds texts.
        let value = match default {
            Expr::Lit(ExprLit {
                lit: Lit::Str(_), ..
            }) => quote!(::core::convert::From::from(#default)),
            other => quote!(#other),
        };
        Some(quote_spanned! {default.span()=>
            fn #function() -> #ty { #value }
        })
    });
    let name = &function.name;
    quote! {
        #[derive(::paraph_gateway::__private::serde::Deserialize, ::paraph_gateway::__private::schemars::JsonSchema)]
        #[serde(crate = "::paraph_gateway::__private::serde", deny_unknown_fields, rename = #name)]
        #[schemars(crate = "::paraph_gateway::__private::schemars")]
        #[doc(hidden)]
        #[allow(unreachable_pub, reason = "it is the type of a public trait's item")]
        pub struct Arguments { #(#fields)* }
        #(#defaults)*
    }
}

fn implementation(function: &Function, options: &Options) -> TokenStream {
    let p = quote!(::paraph_gateway);
    let tool = &function.item.sig.ident;
    let (name, about) = (&function.name, &function.about);
    let names = given(function).map(|(_, argument)| &argument.name);
    let places = given(function).map(|(index, _)| place(index));
    let injections = function
        .parameters
        .iter()
        .enumerate()
        .filter_map(|(index, parameter)| injection(index, parameter));
    let all = (0..function.parameters.len()).map(place);
    let call = quote!(#tool(#(#all),*));
    let call = match (&options.blocking, &function.item.sig.asyncness) {
        (Some(_), _) => quote!(#p::__private::blocking(move || #call).await),
        (None, Some(_)) => quote!(#call.await),
        (None, None) => call,
    };
    let output = match function.fallible {
        true => quote!(#p::__private::fallible(#call)),
        false => quote!(#p::IntoOutput::into_output(#call)),
    };
    let timeout = options.timeout.map(|timeout| {
        let (seconds, nanos) = (timeout.as_secs(), timeout.subsec_nanos());
        quote! {
            fn timeout(&self) -> ::core::time::Duration { ::core::time::Duration::new(#seconds, #nanos) }
        }
    });
    let output_cap = options.output_cap.as_ref().map(|cap| {
        quote! { fn output_cap(&self) -> usize { #cap } }
    });
    quote! {
        impl #p::Tool for #tool {
            type Args = Arguments;
            type Output = #p::ToolOutput;
            const NAME: &'static str = #name;
            const ABOUT: &'static str = #about;
            #timeout
            #output_cap

            async fn run(&self, args: Arguments) -> ::core::result::Result<#p::ToolOutput, #p::ToolError> {
                #p::Tool::run_in(self, args, &#p::ToolContext::nowhere()).await
            }

            async fn run_in(
                &self,
                args: Arguments,
                __context: &#p::ToolContext<'_>,
            ) -> ::core::result::Result<#p::ToolOutput, #p::ToolError> {
                let Arguments { #(#names: #places,)* } = args;
                #(#injections)*
                #output
            }
        }
    }
}

/// Takes an injected parameter out of the context.
fn injection(index: usize, parameter: &Parameter) -> Option<TokenStream> {
    let Parameter::Injected { is_context, ty } = parameter else {
        return None;
    };
    let place = place(index);
    Some(match is_context {
        true => quote! { let #place = __context; },
        false => quote_spanned! {ty.span()=>
            let #place = ::paraph_gateway::FromContext::from_context(__context)?;
        },
    })
}

/// The arguments that the model gives, with their places.
fn given(function: &Function) -> impl Iterator<Item = (usize, &Argument)> {
    let parameters = function.parameters.iter().enumerate();
    parameters.filter_map(|(index, parameter)| match parameter {
        Parameter::Argument(argument) => Some((index, &**argument)),
        Parameter::Injected { .. } => None,
    })
}

fn place(index: usize) -> Ident {
    format_ident!("__parameter_{index}")
}

fn default_name(index: usize) -> Ident {
    format_ident!("__default_{index}")
}
