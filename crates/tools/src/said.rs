//! Other people's words, made fit for an error: short, on one line, without what could steer a terminal.
//!
//! Called wherever a server's text gets into one of our own.

use serde_json::Value;

/// How many characters of a server's own words an error repeats.
const MAX_CHARS: usize = 300;

/// A text in one short line.
pub(crate) fn short(text: &str) -> String {
    let mut line = String::new();
    let words = text.split(|c: char| c.is_whitespace() || c.is_control());
    for word in words.filter(|word| !word.is_empty()) {
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(word);
        if line.len() > 4 * MAX_CHARS {
            break;
        }
    }
    cut(line, MAX_CHARS)
}

/// At most so many characters of a text, with a sign that there was more.
pub(crate) fn cut(mut text: String, most: usize) -> String {
    if let Some((end, _)) = text.char_indices().nth(most) {
        text.truncate(end);
        text.push('…');
    }
    text
}

/// A text without secrets, as they are and as they look in an address or in JSON.
pub(crate) fn without<'a>(text: &str, secrets: impl IntoIterator<Item = &'a str>) -> String {
    let mut text = text.to_owned();
    // What is shorter would take words apart and is no secret worth the name.
    for secret in secrets.into_iter().filter(|secret| secret.len() >= 4) {
        let in_json = serde_json::Value::from(secret).to_string();
        let encoded: String = reqwest::Url::parse_with_params("x:y", [("", secret)])
            .ok()
            .and_then(|url| Some(url.query()?.trim_start_matches('=').to_owned()))
            .unwrap_or_default();
        for form in [secret, in_json.trim_matches('"'), &encoded] {
            if !form.is_empty() {
                text = text.replace(form, "[secret]");
            }
        }
    }
    text
}

/// What an error's body says: the text that JSON errors keep in one of a few places, or the whole if it is plain
/// text. Nothing of a web page.
pub(crate) fn reason(body: &[u8]) -> String {
    let text = String::from_utf8_lossy(body.get(..16_384).unwrap_or(body));
    let whole = || String::from_utf8_lossy(body);
    match serde_json::from_str::<Value>(&whole()) {
        Ok(value) => in_json(&value).map(short).unwrap_or_default(),
        Err(_) if text.trim_start().starts_with('<') => String::new(),
        Err(_) => short(&text),
    }
}

fn in_json(value: &Value) -> Option<&str> {
    const PLACES: [&str; 9] = [
        "/detail/error",
        "/error/message",
        "/error_description",
        "/message",
        "/reason",
        "/detail",
        "/title",
        "/error",
        "",
    ];
    PLACES
        .into_iter()
        .find_map(|place| value.pointer(place)?.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_become_one_short_line() {
        assert_eq!(
            short(" too\r\nmany\t\u{1b}[31mred  words "),
            "too many [31mred words"
        );
        let long = short(&"ä".repeat(5_000));
        assert_eq!(long, format!("{}…", "ä".repeat(MAX_CHARS)));
    }

    #[test]
    fn the_reason_is_found_where_apis_keep_it() {
        for (body, reason_of_it) in [
            (r#"{"detail":{"error":"plan used up"}}"#, "plan used up"),
            (r#"{"error":{"message":"bad key","code":7}}"#, "bad key"),
            (
                r#"{"error":true,"reason":"no such place"}"#,
                "no such place",
            ),
            (r#"{"detail":"gone"}"#, "gone"),
            (r#""only text""#, "only text"),
            (r#"{"code":7}"#, ""),
            ("upstream\nis down", "upstream is down"),
            ("  <html><body>502</body></html>", ""),
            ("", ""),
        ] {
            assert_eq!(reason(body.as_bytes()), reason_of_it, "{body}");
        }
    }
}
