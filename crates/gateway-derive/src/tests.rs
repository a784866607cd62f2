//! What a user can get wrong, and what the compiler then says. What works is tested in the gateway.

use super::*;
use quote::quote;

fn mistake(attribute: TokenStream, item: TokenStream) -> String {
    match expand(attribute, item) {
        Ok(made) => format!("no mistake: {made}"),
        Err(error) => error.to_string(),
    }
}

#[test]
fn mistakes_on_the_function_are_named() {
    let table = [
        (
            quote!(),
            quote!(
                async fn find(city: String) -> String {
                    city
                }
            ),
            "a tool needs a doc comment: it is what the model reads of it",
        ),
        (
            quote!(),
            quote! { #[doc = " Finds"] fn find<T>(city: T) -> T { city } },
            "a tool has no parameters of types or lifetimes: its schema must have one meaning",
        ),
        (
            quote!(),
            quote! { #[doc = " Finds"] unsafe fn find() {} },
            "a tool is not unsafe to call",
        ),
        (
            quote!(),
            quote! { #[doc = " Finds"] extern "C" fn find() {} },
            "a tool is a plain function",
        ),
        (
            quote!(blocking),
            quote! { #[doc = " Finds"] async fn find() {} },
            "an async function must not block: `blocking` is for one that is not async",
        ),
        (
            quote!(level = "write"),
            quote! { #[doc = " Pays"] fn pay() {} },
            "a function with #[tool] reads and changes nothing: what changes something is an effect, which a \
             person has to approve. Implement `Tool` with its `LEVEL` for it",
        ),
        (
            quote!(level = "some"),
            quote! { #[doc = " Pays"] fn pay() {} },
            "the levels are read, write, execute and delete; #[tool] makes tools that read",
        ),
        (
            quote!(name = "no spaces"),
            quote! { #[doc = " Finds"] fn find() {} },
            "a tool's name has 1 to 128 letters, digits, `_`, `-` or `.`",
        ),
        (
            quote!(),
            quote! { #[doc = " Finds"] fn größe() {} },
            "a tool's name has 1 to 128 letters, digits, `_`, `-` or `.`",
        ),
        (
            quote!(title = "x"),
            quote! { #[doc = " Finds"] fn find() {} },
            "write name = \"…\", about = \"…\", timeout = \"5s\", output_cap = 4000, level = \"read\" or blocking",
        ),
        (
            quote!(timeout = "1s", timeout = "2s"),
            quote! { #[doc = " Finds"] fn find() {} },
            "`timeout` is said twice",
        ),
    ];
    for (attribute, item, expected) in table {
        assert_eq!(mistake(attribute, item), expected);
    }
}

#[test]
fn timeouts_have_a_unit_and_an_end() {
    for wrong in [
        "",
        "5",
        "5h",
        "1.5s",
        "0s",
        "s",
        "2000000m",
        "-1s",
        "99999999999999999999s",
    ] {
        let said = mistake(
            quote!(timeout = #wrong),
            quote! { #[doc = " Finds"] fn find() {} },
        );
        assert_eq!(
            said, "a timeout is a whole number of ms, s or m, up to a day: \"500ms\", \"5s\"",
            "{wrong}"
        );
    }
    for fine in ["500ms", "5s", "2 m", "1440m"] {
        let item = quote! { #[doc = " Finds"] fn find() {} };
        assert!(expand(quote!(timeout = #fine), item).is_ok(), "{fine}");
    }
}

#[test]
fn mistakes_on_a_parameter_are_named() {
    let table = [
        (
            quote!(),
            quote!(&self),
            "a tool has no `self`: inject what it needs (`#[inject] client: &Client`), or implement `Tool`",
        ),
        (
            quote!(),
            quote!(city: &str),
            "`city` comes from the model and is owned (`String`, not `&str`); if the program gives it, write \
             `#[inject]` before it",
        ),
        (
            quote!(),
            quote!((a, b): (u8, u8)),
            "an argument needs a name: it is how the model says which one it means",
        ),
        (
            quote!(),
            quote!(#[serde(default)] city: String),
            "an argument may have doc comments, #[inject], #[default(…)] and #[schemars(…)]",
        ),
        (
            quote!(),
            quote!(#[schemars(rename = "town")] city: String),
            "an argument has the name and the default of its parameter; #[schemars(…)] is for bounds",
        ),
        (
            quote!(),
            quote!(#[inject] #[default(1)] client: &Client),
            "what is injected has no part in the schema",
        ),
        (
            quote!(blocking),
            quote!(#[inject] client: &Client),
            "a blocking tool works on another thread and cannot borrow: inject an `Arc`, or a `Progress`",
        ),
    ];
    for (attribute, parameter, expected) in table {
        let item = quote! { #[doc = " Finds"] fn find(#parameter) {} };
        assert_eq!(mistake(attribute, item), expected);
    }
}

#[test]
fn what_is_injected_is_no_field_of_the_arguments() {
    let item = quote! {
        #[doc = " Finds"]
        fn find(city: String, #[inject] secret_client: &Client, #[inject] call: &ToolContext<'_>) {}
    };
    let made = expand(quote!(), item).unwrap().to_string();
    let fields = made.split("pub struct Arguments").nth(1).unwrap();
    let fields = fields.split('}').next().unwrap();
    assert_eq!(fields.trim(), "{ city : String ,");
}
