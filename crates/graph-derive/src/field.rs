//! One field of a state: its attributes, its setters and the calls made for it.

use proc_macro2::{Span, TokenStream};
use quote::{format_ident, quote, quote_spanned};
use syn::{
    Attribute, Error, GenericArgument, Ident, LitStr, Path, PathArguments, Token, Type,
    ext::IdentExt, parse::ParseStream, punctuated::Punctuated, spanned::Spanned,
};

const BUILT_IN: [&str; 7] = ["append", "merge", "set", "add", "max", "min", "last"];

pub(crate) struct Field<'a> {
    pub(crate) name: &'a Ident,
    pub(crate) ty: &'a Type,
    /// The channel's name: the field's without `r#`.
    pub(crate) channel: String,
    docs: Vec<&'a Attribute>,
    reduce: Option<Path>,
    ephemeral: bool,
    untracked: bool,
    list: bool,
}

impl<'a> Field<'a> {
    pub(crate) fn parse(field: &'a syn::Field) -> syn::Result<Self> {
        let name = field
            .ident
            .as_ref()
            .ok_or_else(|| Error::new(field.span(), "channels need names"))?;
        let mut this = Field {
            name,
            ty: &field.ty,
            channel: name.unraw().to_string(),
            docs: Vec::new(),
            reduce: None,
            ephemeral: false,
            untracked: false,
            list: item(&field.ty).is_some(),
        };
        for attr in &field.attrs {
            if attr.path().is_ident("doc") {
                this.docs.push(attr);
            } else if attr.path().is_ident("reduce") {
                this.reduce_attribute(attr)?;
            } else if attr.path().is_ident("serde") {
                refuse_rename(attr)?;
            }
        }
        Ok(this)
    }

    fn reduce_attribute(&mut self, attr: &Attribute) -> syn::Result<()> {
        let words = attr
            .parse_args_with(Punctuated::<Path, Token![,]>::parse_terminated)
            .map_err(|e| {
                Error::new(
                    e.span(),
                    "write #[reduce(append)], #[reduce(path::to::a_function)], or flags: ephemeral, untracked, list",
                )
            })?;
        for word in words {
            if word.is_ident("ephemeral") {
                self.ephemeral = true;
            } else if word.is_ident("untracked") {
                self.untracked = true;
            } else if word.is_ident("list") {
                self.list = true;
            } else if self.reduce.is_some() {
                return Err(Error::new(word.span(), "a channel has one reducer"));
            } else {
                self.reduce = Some(word);
            }
        }
        Ok(())
    }

    pub(crate) fn declaration(&self, p: &TokenStream, options: &Options) -> TokenStream {
        let (name, reduced) = (&self.channel, self.reduce.is_some());
        let (ephemeral, untracked) = (self.ephemeral, self.untracked);
        let was = options
            .was
            .iter()
            .filter(|(_, new)| *new == *name)
            .map(|(old, _)| old);
        quote!(#p::Channel { name: #name, reduced: #reduced, ephemeral: #ephemeral, untracked: #untracked, was: &[#(#was),*] })
    }

    pub(crate) fn reducer(&self, p: &TokenStream) -> TokenStream {
        let ty = self.ty;
        match &self.reduce {
            None => quote!(#p::reduce::last::<#ty>),
            Some(path) if BUILT_IN.iter().any(|b| path.is_ident(b)) => {
                quote_spanned!(self.ty.span()=> #p::reduce::#path)
            }
            Some(path) => quote!(#path),
        }
    }

    /// The function that reads or writes this kind of channel.
    pub(crate) fn call(&self, p: &TokenStream, verb: &str) -> TokenStream {
        let function = if self.list {
            format_ident!("{verb}_list")
        } else {
            format_ident!("{verb}")
        };
        quote_spanned!(self.ty.span()=> #p::#function)
    }

    pub(crate) fn setters(&self) -> TokenStream {
        let p = quote!(::paraph_graph::__private);
        let (name, ty, docs) = (self.name, self.ty, &self.docs);
        let (argument, value) = if self.list {
            let items = quote!(<#ty as #p::List>);
            (
                quote!(impl ::core::iter::IntoIterator<Item = #items::Item>),
                quote!(#items::from_items(value.into_iter().collect())),
            )
        } else if matches!(ty, Type::Path(path) if path.path.is_ident("String")) {
            (
                quote!(impl ::core::convert::Into<#ty>),
                quote!(value.into()),
            )
        } else {
            (quote!(#ty), quote!(value))
        };
        let write = if self.reduce.is_some() {
            quote!(write)
        } else {
            quote!(write_last)
        };
        let replace = self.reduce.is_some().then(|| {
            let replace = format_ident!("replace_{}", self.name.unraw());
            let doc = format!("Sets `{}` as it is, past its reducer.", self.channel);
            quote! {
                #[doc = #doc]
                #[must_use]
                pub fn #replace(mut self, value: #ty) -> Self {
                    self.#name = ::core::option::Option::Some(#p::Write::Replace(value));
                    self
                }
            }
        });
        let note = format!("Writes to the channel `{}`.", self.channel);
        let docs = if docs.is_empty() {
            quote!(#[doc = #note])
        } else {
            quote!(#(#docs)*)
        };
        quote! {
            #docs
            #[must_use]
            pub fn #name(mut self, value: #argument) -> Self {
                #p::#write(&mut self.#name, #value);
                self
            }
            #replace
        }
    }
}

/// The item type of a `Vec`, by its name.
fn item(ty: &Type) -> Option<&Type> {
    let Type::Path(path) = ty else { return None };
    let last = path.path.segments.last().filter(|s| s.ident == "Vec")?;
    let PathArguments::AngleBracketed(arguments) = &last.arguments else {
        return None;
    };
    arguments.args.iter().find_map(|a| match a {
        GenericArgument::Type(t) => Some(t),
        _ => None,
    })
}

/// A channel's name is its field's name, in Rust and in JSON: a rename would give it two.
fn refuse_rename(attr: &Attribute) -> syn::Result<()> {
    let mut renamed = None;
    // Other serde arguments have forms we need not understand; parsing stops at the first.
    let _ = attr.parse_nested_meta(|meta| {
        if meta.path.is_ident("rename")
            || meta.path.is_ident("alias")
            || meta.path.is_ident("flatten")
        {
            renamed = Some(meta.path.span());
        }
        Ok(())
    });
    match renamed {
        None => Ok(()),
        Some(span) => Err(Error::new(
            span,
            "a channel has the name of its field; for older checkpoints use #[state(was(old = \"new\"))]",
        )),
    }
}

/// What `#[state(…)]` on the struct says.
#[derive(Default)]
pub(crate) struct Options {
    /// Old channel name, new channel name.
    was: Vec<(String, String)>,
}

impl Options {
    pub(crate) fn parse(attrs: &[Attribute], fields: &[Field<'_>]) -> syn::Result<Self> {
        let mut options = Options::default();
        for attr in attrs.iter().filter(|a| a.path().is_ident("state")) {
            attr.parse_nested_meta(|meta| {
                if !meta.path.is_ident("was") {
                    return Err(meta.error("write #[state(was(old_name = \"new_name\"))]"));
                }
                let content;
                syn::parenthesized!(content in meta.input);
                options.renames(&content, fields)
            })?;
        }
        Ok(options)
    }

    fn renames(&mut self, content: ParseStream<'_>, fields: &[Field<'_>]) -> syn::Result<()> {
        while !content.is_empty() {
            let old = Ident::parse_any(content)?;
            content.parse::<Token![=]>()?;
            let new: LitStr = content.parse()?;
            self.rename(old.span(), old.unraw().to_string(), new, fields)?;
            if !content.is_empty() {
                content.parse::<Token![,]>()?;
            }
        }
        Ok(())
    }

    fn rename(
        &mut self,
        span: Span,
        old: String,
        new: LitStr,
        fields: &[Field<'_>],
    ) -> syn::Result<()> {
        let is_channel = |name: &str| fields.iter().any(|f| f.channel == name);
        if !is_channel(&new.value()) {
            return Err(Error::new(
                new.span(),
                format!("`{}` is no channel of this state", new.value()),
            ));
        }
        if is_channel(&old) {
            return Err(Error::new(
                span,
                format!("`{old}` is still a channel of this state"),
            ));
        }
        self.was.push((old, new.value()));
        Ok(())
    }
}
