//! `#[derive(State)]`: a state's typed update, its reducers and its JSON form by channel.
//!
//! Used through `paraph-graph`, which re-exports it. Everything with logic lives there
//! (`state/`); this crate emits tables of calls and must not grow rules of its own.

mod field;

use field::{Field, Options};
use proc_macro2::TokenStream;
use quote::{format_ident, quote};
use syn::{Data, DeriveInput, Error, Fields, Ident, spanned::Spanned};

/// Makes a struct with named fields a graph state; each field is a channel.
///
/// On a field: `#[reduce(NAME)]` with `append`, `merge`, `set`, `add`, `max`, `min`, `last` or the
/// path of your own reducer; besides it or alone the flags `ephemeral` (back to its default in each
/// superstep that does not write it), `untracked` (never saved) and `list` (the type implements
/// `List`, so that checkpoints store new items only; `Vec` does by itself).
///
/// On the struct: `#[state(was(old_name = "new_name"))]` reads older checkpoints in which a channel
/// had another name.
#[proc_macro_derive(State, attributes(reduce, state))]
pub fn state(input: proc_macro::TokenStream) -> proc_macro::TokenStream {
    let input = syn::parse_macro_input!(input as DeriveInput);
    expand(&input)
        .unwrap_or_else(Error::into_compile_error)
        .into()
}

fn expand(input: &DeriveInput) -> syn::Result<TokenStream> {
    let fields = fields(input)?;
    let options = Options::parse(&input.attrs, &fields)?;
    let state = &input.ident;
    let update = format_ident!("{}Update", state);
    let definition = update_struct(input, &update, &fields);
    let implementation = state_impl(state, &update, &fields, &options);
    Ok(quote!(#definition #implementation))
}

fn fields(input: &DeriveInput) -> syn::Result<Vec<Field<'_>>> {
    let named = match &input.data {
        Data::Struct(data) => match &data.fields {
            Fields::Named(named) => named,
            _ => {
                return Err(Error::new(
                    input.span(),
                    "a state is a struct with named fields",
                ));
            }
        },
        _ => {
            return Err(Error::new(
                input.span(),
                "a state is a struct with named fields",
            ));
        }
    };
    if !input.generics.params.is_empty() {
        return Err(Error::new(
            input.generics.span(),
            "a state has no type parameters: its checkpoints must have one meaning",
        ));
    }
    named.named.iter().map(Field::parse).collect()
}

/// The update type: one optional write per channel, and its setters.
fn update_struct(input: &DeriveInput, update: &Ident, fields: &[Field<'_>]) -> TokenStream {
    let (state, vis) = (&input.ident, &input.vis);
    let names: Vec<_> = fields.iter().map(|f| f.name).collect();
    let types: Vec<_> = fields.iter().map(|f| f.ty).collect();
    let setters = fields.iter().map(Field::setters);
    let doc = format!("What a node writes to [`{state}`]. Channels left out stay as they are.");
    quote! {
        #[doc = #doc]
        #[derive(Clone, Default)]
        #vis struct #update { #(#names: ::core::option::Option<::paraph_graph::__private::Write<#types>>,)* }
        #[allow(dead_code, reason = "not every channel is written by hand")]
        impl #update { #(#setters)* }
        impl ::core::convert::From<#update> for ::paraph_graph::Command<#state> {
            fn from(update: #update) -> Self { ::paraph_graph::Command::update(update) }
        }
    }
}

fn state_impl(
    state: &Ident,
    update: &Ident,
    fields: &[Field<'_>],
    options: &Options,
) -> TokenStream {
    let p = quote!(::paraph_graph::__private);
    let index: Vec<_> = (0..fields.len()).collect();
    let name: Vec<_> = fields.iter().map(|f| f.name).collect();
    let text: Vec<_> = fields.iter().map(|f| f.channel.as_str()).collect();
    let channel = fields.iter().map(|f| f.declaration(&p, options));
    let reducer: Vec<_> = fields.iter().map(|f| f.reducer(&p)).collect();
    let encode = fields.iter().map(|f| f.call(&p, "encode"));
    let decode = fields.iter().map(|f| f.call(&p, "decode"));
    let length = fields.iter().map(|f| f.call(&p, "length"));
    let since = fields.iter().map(|f| f.call(&p, "since"));
    quote! {
        impl ::paraph_graph::State for #state {
            type Update = #update;
            const CHANNELS: &'static [#p::Channel] = &[#(#channel),*];
            fn apply(&mut self, updates: &mut [#update], changes: &mut [#p::Change]) -> ::core::result::Result<(), #p::Rejected> {
                if updates.len() > 1 { #(#p::check(&Self::CHANNELS[#index], updates.iter().map(|u| u.#name.as_ref()))?;)* }
                #(#p::fold(&Self::CHANNELS[#index], &mut self.#name, #p::writes(updates, |u: &mut #update| &mut u.#name), #reducer, &mut changes[#index])?;)*
                ::core::result::Result::Ok(())
            }
            fn encode(&self, channel: usize, change: &#p::Change) -> ::core::result::Result<#p::Patch, #p::JsonError> {
                match channel { #(#index => #encode(&self.#name, change),)* other => ::core::result::Result::Err(#p::no_channel(other)) }
            }
            fn length(&self, channel: usize) -> usize {
                match channel { #(#index => #length(&self.#name),)* _ => 0 }
            }
            fn decode(&mut self, channel: usize, kind: #p::PatchKind, json: &[u8]) -> ::core::result::Result<(), #p::JsonError> {
                match channel { #(#index => #decode(&mut self.#name, kind, json),)* other => ::core::result::Result::Err(#p::no_channel(other)) }
            }
            fn update_from_json(json: #p::Value) -> ::core::result::Result<#update, ::paraph_graph::Error> {
                let mut update = #update::default();
                for (key, value) in #p::object(json)? {
                    match key.as_str() {
                        #(#text => update.#name = ::core::option::Option::Some(#p::read(#text, value)?),)*
                        _ => return ::core::result::Result::Err(#p::unknown(&key, Self::CHANNELS)),
                    }
                }
                ::core::result::Result::Ok(update)
            }
            fn note(update: &#update) -> ::core::result::Result<::std::string::String, ::paraph_graph::Error> {
                let mut text = ::std::vec::Vec::new();
                #(#p::note(&mut text, &Self::CHANNELS[#index], update.#name.as_ref())?;)*
                #p::told(text)
            }
            fn update_to_text(update: &#update) -> ::core::result::Result<::std::string::String, ::paraph_graph::Error> {
                let mut text = ::std::vec::Vec::new();
                #(#p::tell(&mut text, &Self::CHANNELS[#index], update.#name.as_ref(), #reducer)?;)*
                #p::told(text)
            }
            fn writes(update: &#update) -> ::std::vec::Vec<usize> {
                let mut all = ::std::vec::Vec::new();
                #(if update.#name.is_some() { all.push(#index); })*
                all
            }
            fn gather(all: &mut #update, updates: &[#update]) -> ::core::result::Result<(), #p::Rejected> {
                #(#p::Write::gather(&Self::CHANNELS[#index], &mut all.#name, updates.iter().map(|u| u.#name.as_ref()), #reducer)?;)*
                ::core::result::Result::Ok(())
            }
            fn since(&self, changes: &[#p::Change]) -> #update {
                #update { #(#name: #since(&self.#name, &changes[#index]),)* }
            }
        }
    }
}
