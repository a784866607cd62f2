//! JSON pointers (RFC 6901) into the arguments of a call.
//!
//! Conditions, grants and bound targets look with it. A pointer that cannot be read never finds anything;
//! whoever checks a policy is told of it first.

use crate::json::{Shape, View};

/// The longest pointer of a rule, in bytes.
const MAX_POINTER: usize = 1024;

/// A pointer, read once: the names and places on the way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Pointer(Vec<String>);

impl Pointer {
    /// Reads `""`, which is all arguments, or `/name/0/…`, in which `~1` stands for `/` and `~0` for `~`.
    pub(crate) fn read(text: &str) -> Option<Pointer> {
        if text.is_empty() {
            return Some(Pointer(Vec::new()));
        }
        if text.len() > MAX_POINTER {
            return None;
        }
        let steps = text.strip_prefix('/')?.split('/').map(unescape);
        steps.collect::<Option<Vec<_>>>().map(Pointer)
    }

    /// What the pointer finds.
    pub(crate) fn find<'a>(&self, root: View<'a>) -> Option<View<'a>> {
        self.0
            .iter()
            .try_fold(root, |value, step| match value.shape() {
                Shape::Object(_) => value.get(step),
                Shape::Array(mut items) => items.nth(place(step)?),
                _ => None,
            })
    }

    /// The argument that it begins with, if it does not mean all of them.
    pub(crate) fn argument(&self) -> Option<&str> {
        self.0.first().map(String::as_str)
    }
}

/// A step as it is meant. Nothing if a `~` stands for nothing.
fn unescape(step: &str) -> Option<String> {
    let mut parts = step.split('~');
    let mut out = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let (meant, rest) = match (part.strip_prefix('0'), part.strip_prefix('1')) {
            (Some(rest), _) => ('~', rest),
            (None, Some(rest)) => ('/', rest),
            (None, None) => return None,
        };
        out.push(meant);
        out.push_str(rest);
    }
    Some(out)
}

/// An item's place in its array: digits without leading zeros.
fn place(step: &str) -> Option<usize> {
    let plain = step == "0" || !step.starts_with('0');
    let digits = step.bytes().all(|byte| byte.is_ascii_digit());
    step.parse().ok().filter(|_| plain && digits)
}
