//! The one name of each tool: `server__tool`.
//!
//! Policies and budgets go by names, so there must be one only: names that become the same, or that differ in their
//! case alone, are an error and not a guess. Pure.

/// Longest name that every model provider takes.
const MAX_NAME: usize = 64;

/// The names by which agents know a server's tools, in the same order; the error says what cannot be named.
pub(super) fn canonical(server: &str, tools: &[&str]) -> Result<Vec<String>, String> {
    let mut names: Vec<String> = Vec::new();
    for tool in tools {
        let fine = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
        let plain: String = tool
            .chars()
            .map(|c| if fine(c) { c } else { '_' })
            .collect();
        let name = format!("{server}__{plain}");
        if plain.is_empty() || name.len() > MAX_NAME {
            return Err(format!(
                "its tool {:?} cannot be named `{}`: a name has up to {MAX_NAME} characters; leave it out by `only`",
                crate::said::short(tool),
                crate::said::short(&name)
            ));
        }
        let twin = names
            .iter()
            .position(|other| other.eq_ignore_ascii_case(&name));
        if let Some(twin) = twin.and_then(|at| tools.get(at)) {
            return Err(format!(
                "its tools {:?} and {:?} would both be `{name}`; leave one out by `only`",
                crate::said::short(twin),
                crate::said::short(tool)
            ));
        }
        names.push(name);
    }
    Ok(names)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tools_are_named_after_their_server_and_never_share_a_name() {
        assert_eq!(
            canonical("files", &["read_file", "list.dir", "a-b", "naïve"]),
            Ok([
                "files__read_file",
                "files__list_dir",
                "files__a-b",
                "files__na_ve"
            ]
            .map(str::to_owned)
            .to_vec())
        );
        for (tools, problem) in [
            (
                &["read", "read"][..],
                "its tools \"read\" and \"read\" would both be `s__read`; leave one out by `only`",
            ),
            (
                &["read", "Read"],
                "its tools \"read\" and \"Read\" would both be `s__Read`; leave one out by `only`",
            ),
            (
                &["a.b", "a_b"],
                "its tools \"a.b\" and \"a_b\" would both be `s__a_b`; leave one out by `only`",
            ),
            (
                &["reаd", "re\u{200b}d"],
                "its tools \"reаd\" and \"re\\u{200b}d\" would both be `s__re_d`; leave one out by `only`",
            ),
            (
                &[""],
                "its tool \"\" cannot be named `s__`: a name has up to 64 characters; leave it out by `only`",
            ),
        ] {
            assert_eq!(canonical("s", tools), Err(problem.to_owned()));
        }
        assert!(canonical("s", &[&"x".repeat(62)]).is_err());
        assert!(canonical("s", &[&"x".repeat(61)]).is_ok());
    }
}
