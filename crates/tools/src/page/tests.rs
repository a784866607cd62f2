//! What `fetch_page` makes of an answer, whatever it is.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use super::*;

fn fetched(content_type: &str, body: impl Into<Vec<u8>>) -> Fetched {
    Fetched {
        status: 200,
        url: "https://example.com/page".to_owned(),
        content_type: content_type.to_owned(),
        retry_after: None,
        body: body.into(),
    }
}

fn page(content_type: &str, body: &[u8]) -> Result<String, String> {
    let page = read(fetched(content_type, body), 0);
    page.map(|page| page.text)
        .map_err(|error| error.to_string())
}

#[test]
fn text_of_any_kind_is_read_and_anything_else_is_said() {
    let data = |kind: &str, bytes: usize| {
        Err(format!(
            "the answer of https://example.com cannot be read: it is {kind} ({bytes} bytes) and no page of text"
        ))
    };
    for (content_type, body, expected) in [
        ("text/html; charset=utf-8", &b"<p>hi</p>"[..], Ok("hi".to_owned())),
        ("application/xhtml+xml", b"<p>hi</p>", Ok("hi".to_owned())),
        ("text/plain", b"<p>hi</p>", Ok("<p>hi</p>".to_owned())),
        ("application/json", b"{\"a\": 1}", Ok("{\"a\": 1}".to_owned())),
        ("application/feed+json", b"{}", Ok("{}".to_owned())),
        ("text/markdown", b"# hi", Ok("# hi".to_owned())),
        ("", b"  <html>hi", Ok("hi".to_owned())),
        ("", b"just words", Ok("just words".to_owned())),
        ("application/octet-stream", b"just words", Ok("just words".to_owned())),
        ("", b"\x89PNG\0\0", data("data", 6)),
        ("application/pdf", b"%PDF-1.7", data("application/pdf", 8)),
        ("image/png", b"\x89PNG", data("image/png", 4)),
        (
            "text/html",
            b"<script>render()</script>",
            Err("the page has no text that can be read; it may be put together by a script in a browser".to_owned()),
        ),
        ("text/plain", b" \n", Err("the answer is empty".to_owned())),
    ] {
        assert_eq!(page(content_type, body), expected, "{content_type} {body:?}");
    }
}

#[test]
fn a_long_page_comes_in_parts_that_join_to_the_whole() {
    let whole: String = (0..30_000)
        .map(|n| char::from(b'a' + (n % 26) as u8))
        .collect();
    let mut joined = String::new();
    let mut start = Some(0);
    let mut parts = 0;
    while let Some(at) = start {
        let page = read(fetched("text/plain", whole.clone()), at).unwrap();
        joined.push_str(&page.text);
        start = page.next;
        parts += 1;
    }
    assert_eq!((joined, parts), (whole, 3));
    let beyond = read(fetched("text/plain", "short"), 5).unwrap_err();
    assert_eq!(
        beyond.to_string(),
        "the page ends before: it has 5 characters"
    );
}
