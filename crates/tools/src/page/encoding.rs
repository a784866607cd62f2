//! Bytes to text: by byte order mark, by what the server says, by what the page says, by trying.
//!
//! Called for each page. Never fails: what no encoding explains becomes the replacement character.

use encoding_rs::{Encoding, UTF_8, WINDOWS_1252};

/// How far into a page its own word on its encoding is looked for, as browsers do.
const HEAD: usize = 1_024;

/// The text of a body. A byte order mark beats everything, as the standard has it.
pub(super) fn decode(body: &[u8], content_type: &str, html: bool) -> String {
    let by_server = after_charset(content_type.as_bytes()).and_then(Encoding::for_label);
    let by_page = || {
        let head = body.get(..HEAD).unwrap_or(body);
        let label = after_charset(head).filter(|_| html)?;
        // A page that can be read as far as this is not in UTF-16, whatever it says.
        let encoding = Encoding::for_label(label)?;
        Some(if encoding.is_ascii_compatible() {
            encoding
        } else {
            UTF_8
        })
    };
    let by_trying = || match std::str::from_utf8(body) {
        Ok(_) => UTF_8,
        Err(_) => WINDOWS_1252,
    };
    let encoding = by_server.or_else(by_page).unwrap_or_else(by_trying);
    encoding.decode(body).0.into_owned()
}

/// The word after `charset=`, with or without quotes.
fn after_charset(text: &[u8]) -> Option<&[u8]> {
    const WORD: &[u8] = b"charset";
    let at = text
        .windows(WORD.len())
        .position(|window| window.eq_ignore_ascii_case(WORD))?;
    let rest = text.get(at + WORD.len()..)?.trim_ascii_start();
    let value = rest.strip_prefix(b"=")?.trim_ascii_start();
    let value = value
        .strip_prefix(b"\"")
        .or_else(|| value.strip_prefix(b"'"))
        .unwrap_or(value);
    let ends = |byte: &u8| byte.is_ascii_whitespace() || b"\"';/>".contains(byte);
    let end = value.iter().position(ends).unwrap_or(value.len());
    value.get(..end).filter(|word| !word.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_read_in_the_encoding_that_is_said_or_found() {
        for (body, content_type, text) in [
            (&b"caf\xc3\xa9"[..], "text/html", "café"),
            (b"caf\xe9", "text/html", "café"),
            (b"caf\xe9", "text/html; charset=ISO-8859-1", "café"),
            (
                b"\xcf\xf0\xe8\xe2\xe5\xf2",
                "text/html;charset=\"windows-1251\"",
                "Привет",
            ),
            (
                b"\xef\xbb\xbfcaf\xc3\xa9",
                "text/html; charset=latin1",
                "café",
            ),
            (b"\xff\xfec\0a\0f\0\xe9\0", "text/html", "café"),
            (
                b"<meta charset='shift_jis'>\x93\xfa\x96{",
                "text/html",
                "<meta charset='shift_jis'>日本",
            ),
            (
                b"<meta charset=utf-16>caf\xc3\xa9",
                "",
                "<meta charset=utf-16>café",
            ),
            (b"caf\xc3\xa9", "text/html; charset=nonsense", "café"),
            (b"caf\xc3", "text/plain; charset=utf-8", "caf\u{fffd}"),
        ] {
            assert_eq!(
                decode(body, content_type, true),
                text,
                "{content_type} {body:?}"
            );
        }
    }

    #[test]
    fn only_a_page_is_asked_for_its_own_word() {
        assert_eq!(
            decode(b"charset=koi8-r \xe9", "text/plain", false),
            "charset=koi8-r é"
        );
    }
}
