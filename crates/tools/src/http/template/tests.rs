//! Arguments in addresses: where they may stand, and that they stay there.
#![allow(clippy::unwrap_used, reason = "a test may panic")]
use super::*;
use paraph_gateway::Bounds;

fn args(text: &str) -> Json {
    Json::read(text, Bounds::default()).unwrap()
}

fn filled(template: &str, text: &str) -> Result<String, String> {
    let address = Address::read(template, false)?;
    let url = address
        .fill(&args(text))
        .map_err(|error| error.to_string())?;
    Ok(url.to_string())
}

#[test]
fn braces_hold_arguments_and_are_written_twice_to_be_braces() {
    let parts = Template::read("a {b}{c-1} {{d}}").unwrap();
    let argument = |name: &str| Part::Argument(name.to_owned());
    let text = |text: &str| Part::Text(text.to_owned());
    assert_eq!(
        parts.0,
        [text("a "), argument("b"), argument("c-1"), text(" {d}")]
    );
    for (wrong, problem) in [
        (
            "{a",
            "a brace in \"{a\" has no partner; a brace itself is written twice",
        ),
        (
            "a}",
            "a brace in \"a}\" has no partner; a brace itself is written twice",
        ),
        (
            "{}",
            "{} in \"{}\" names no argument; a brace itself is written twice",
        ),
        (
            "{a b}",
            "{a b} in \"{a b}\" names no argument; a brace itself is written twice",
        ),
    ] {
        assert_eq!(Template::read(wrong).unwrap_err(), problem);
    }
}

#[test]
fn arguments_fill_their_place_and_nothing_else() {
    const TEMPLATE: &str = "https://api.example.com/v1/{a}/x-{b}?q={a}&fixed=1%2F2&c={c}";
    for (a, expected) in [
        ("\"7\"", "v1/7/x-b?q=7&fixed=1%2F2"),
        (
            "2512292042121000001",
            "v1/2512292042121000001/x-b?q=2512292042121000001&fixed=1%2F2",
        ),
        ("1e2", "v1/1e2/x-b?q=1e2&fixed=1%2F2"),
        ("true", "v1/true/x-b?q=true&fixed=1%2F2"),
        (
            "\"../../admin\"",
            "v1/..%2F..%2Fadmin/x-b?q=..%2F..%2Fadmin&fixed=1%2F2",
        ),
        (
            "\"a?b=c#d&e\"",
            "v1/a%3Fb%3Dc%23d%26e/x-b?q=a%3Fb%3Dc%23d%26e&fixed=1%2F2",
        ),
        (
            "\"@evil.example\"",
            "v1/%40evil.example/x-b?q=%40evil.example&fixed=1%2F2",
        ),
        (
            "\"\\\\\\\\evil\"",
            "v1/%5C%5Cevil/x-b?q=%5C%5Cevil&fixed=1%2F2",
        ),
        ("\"%2e%2e\"", "v1/%252e%252e/x-b?q=%252e%252e&fixed=1%2F2"),
        (
            "\"ä b\\r\\nX: y\"",
            "v1/%C3%A4%20b%0D%0AX%3A%20y/x-b?q=%C3%A4+b%0D%0AX%3A+y&fixed=1%2F2",
        ),
    ] {
        let given = format!("{{\"a\": {a}, \"b\": \"b\"}}");
        let expected = format!("https://api.example.com/{expected}");
        assert_eq!(filled(TEMPLATE, &given), Ok(expected), "{a}");
    }
    for (a, problem) in [
        (
            "\"..\"",
            "this address cannot be fetched: `a` is \"..\", which is no part of a path",
        ),
        (
            "\".\"",
            "this address cannot be fetched: `a` is \".\", which is no part of a path",
        ),
        (
            "\"\"",
            "this address cannot be fetched: `a` is \"\", which is no part of a path",
        ),
        (
            "null",
            "this address cannot be fetched: `a` is \"\", which is no part of a path",
        ),
        (
            "[1]",
            "this address cannot be fetched: `a` is no single value",
        ),
    ] {
        let given = format!("{{\"a\": {a}, \"b\": \"b\", \"c\": null}}");
        assert_eq!(filled(TEMPLATE, &given), Err(problem.to_owned()), "{a}");
    }
    assert_eq!(
        filled("https://a.example.com/%2e{a}", "{\"a\": \".\"}"),
        Err(
            "this address cannot be fetched: `a` is \"%2e.\", which is no part of a path"
                .to_owned()
        )
    );
}

#[test]
fn an_address_that_leaves_the_server_open_or_is_no_address_is_refused() {
    for (template, problem) in [
        ("https://{host}/x", "an argument cannot choose the server"),
        (
            "{scheme}://example.com/",
            "an argument cannot choose the server",
        ),
        (
            "https://example.com:{port}/",
            "an argument cannot choose the server",
        ),
        (
            "https://{user}@example.com/",
            "an argument cannot choose the server",
        ),
        (
            "https://example.com/x#{a}",
            "a fragment (`#…`) is never sent",
        ),
        (
            "https://example.com/?{a}=b",
            "an argument cannot name a parameter",
        ),
        (
            "https://example.com/a b",
            "write its path as it is sent: /a%20b",
        ),
        (
            "https://example.com/a/../b",
            "write its path as it is sent: /b",
        ),
        (
            "http://example.com/",
            "http://example.com: plain http is for this machine only, unless it is allowed for this address",
        ),
        (
            "example.com/x",
            "base URL: not an address: relative URL without a base",
        ),
    ] {
        assert_eq!(
            Address::read(template, false).unwrap_err(),
            problem,
            "{template}"
        );
    }
    assert!(Address::read("http://intranet.example/{a}", true).is_ok());
}

proptest::proptest! {
    #[test]
    fn whatever_an_argument_is_the_server_and_the_shape_of_the_path_stay(text in "\\PC{0,40}|[./%?#@:\\\\a-z0-9\r\n]{0,12}") {
        let given = Json::read(&serde_json::json!({"a": text}).to_string(), Bounds::default()).unwrap();
        let address = Address::read("https://api.example.com/v1/{a}/end?q={a}", false).unwrap();
        if let Ok(url) = address.fill(&given) {
            proptest::prop_assert_eq!(url.host_str(), Some("api.example.com"));
            proptest::prop_assert_eq!(url.port(), None);
            let segments: Vec<&str> = url.path_segments().unwrap().collect();
            proptest::prop_assert_eq!((segments.len(), segments[0], segments[2]), (3, "v1", "end"));
            let pairs: Vec<_> = url.query_pairs().collect();
            proptest::prop_assert_eq!(pairs, vec![("q".into(), text.as_str().into())]);
            proptest::prop_assert_eq!(url.fragment(), None);
        }
    }
}
