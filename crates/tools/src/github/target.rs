//! [`Target`]: the one issue that a run is about, read from its address and from nothing else.
//!
//! Pure. Whoever starts a run reads the address by it; no text of an issue and no model has a say in what comes out.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::error::Error;
use crate::said;

/// Longest address that is looked at, in bytes.
const MAX_ADDRESS: usize = 500;

/// An issue: where it is, whose it is, and its number.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Target {
    /// The host of its page, such as `github.com`.
    pub host: String,
    /// Who has the repository, as it was written.
    pub owner: String,
    /// The repository, as it was written.
    pub repo: String,
    /// Its number, from 1 on.
    pub number: u64,
}

impl Target {
    /// Reads the address of an issue's page on one of these hosts: `https://HOST/OWNER/REPO/issues/NUMBER`. A slash at
    /// the end, a query and a fragment, which name a place on the page, are left out; anything else is a mistake.
    ///
    /// # Errors
    /// [`Error::NoIssue`], which says what is wrong and what is expected.
    ///
    /// ```
    /// use paraph_tools::Target;
    /// let target = Target::parse("https://github.com/acme/lamp/issues/7#issuecomment-1", &["github.com"])?;
    /// assert_eq!(target.to_string(), "acme/lamp#7");
    /// let error = Target::parse("https://github.com/acme/lamp/pull/7", &["github.com"]).unwrap_err();
    /// assert_eq!(
    ///     error.to_string(),
    ///     "`https://github.com/acme/lamp/pull/7` is not the address of an issue: it is a pull request; \
    ///      write https://github.com/OWNER/REPO/issues/NUMBER"
    /// );
    /// # Ok::<(), paraph_tools::Error>(())
    /// ```
    pub fn parse<H: AsRef<str>>(address: &str, hosts: &[H]) -> Result<Target, Error> {
        read(address.trim(), hosts).map_err(|problem| Error::NoIssue {
            address: said::cut(said::short(address), 120),
            problem,
            expected: format!(
                "https://{}/OWNER/REPO/issues/NUMBER",
                hosts.first().map_or("github.com", AsRef::as_ref)
            ),
        })
    }

    /// The address of its page.
    pub fn url(&self) -> String {
        format!(
            "https://{}/{}/{}/issues/{}",
            self.host, self.owner, self.repo, self.number
        )
    }

    /// `owner/repo`.
    pub fn repository(&self) -> String {
        format!("{}/{}", self.owner, self.repo)
    }
}

/// `owner/repo#number`.
impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}#{}", self.owner, self.repo, self.number)
    }
}

fn read<H: AsRef<str>>(address: &str, hosts: &[H]) -> Result<Target, String> {
    if address.len() > MAX_ADDRESS {
        return Err(format!("it is longer than {MAX_ADDRESS} bytes"));
    }
    if !address.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Err("it has spaces, or characters beyond ASCII".to_owned());
    }
    let rest = match address.split_once("://") {
        Some((scheme, rest)) if scheme.eq_ignore_ascii_case("https") => rest,
        Some((scheme, _)) => return Err(format!("it begins with {scheme} and not with https")),
        None => return Err("it does not begin with https://".to_owned()),
    };
    let (page, _) = rest.split_at(rest.find(['?', '#']).unwrap_or(rest.len()));
    let (host, path) = page.split_once('/').unwrap_or((page, ""));
    let known = hosts
        .iter()
        .map(AsRef::as_ref)
        .find(|known| known.eq_ignore_ascii_case(host));
    let Some(known) = known else {
        return Err(match host.contains('@') {
            true => "it carries a user or a password".to_owned(),
            false => format!("`{host}` is not the host that is configured"),
        });
    };
    let parts: Vec<&str> = path.strip_suffix('/').unwrap_or(path).split('/').collect();
    let [owner, repo, kind, number] = parts[..] else {
        return Err("its path is not that of an issue".to_owned());
    };
    match kind {
        "issues" => {}
        "pull" | "pulls" => return Err("it is a pull request".to_owned()),
        "discussions" => return Err("it is a discussion".to_owned()),
        _ => return Err("its path is not that of an issue".to_owned()),
    }
    if !is_owner(owner) {
        return Err("no owner has such a name".to_owned());
    }
    if !is_repository(repo) {
        return Err("no repository has such a name".to_owned());
    }
    Ok(Target {
        host: known.to_owned(),
        owner: owner.to_owned(),
        repo: repo.to_owned(),
        number: as_number(number).ok_or("its number is not one of an issue")?,
    })
}

/// A number as GitHub writes it: no sign, no leading zero.
fn as_number(text: &str) -> Option<u64> {
    let plain = !text.starts_with('0') && text.bytes().all(|byte| byte.is_ascii_digit());
    match plain && text.len() <= 10 {
        true => text.parse().ok(),
        false => None,
    }
}

/// Whether a user or an organisation can have this name.
pub(super) fn is_owner(name: &str) -> bool {
    let fine = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
    (1..=39).contains(&name.len()) && !name.starts_with('-') && name.bytes().all(fine)
}

/// Whether a repository can have this name.
pub(super) fn is_repository(name: &str) -> bool {
    let fine = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    (1..=100).contains(&name.len()) && ![".", ".."].contains(&name) && name.bytes().all(fine)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]

    use super::*;
    use proptest::prelude::*;

    #[test]
    fn addresses_of_issues_are_read_as_they_are_copied() {
        for address in [
            "https://github.com/acme/lamp/issues/7",
            " https://github.com/acme/lamp/issues/7/\n",
            "HTTPS://GitHub.com/acme/lamp/issues/7",
            "https://github.com/acme/lamp/issues/7#issuecomment-99",
            "https://github.com/acme/lamp/issues/7?tab=1#x",
        ] {
            let target = Target::parse(address, &["github.com"]).unwrap();
            assert_eq!(target.url(), "https://github.com/acme/lamp/issues/7");
        }
    }

    #[test]
    fn anything_else_is_refused_with_what_is_wrong() {
        for (address, problem) in [
            ("http://github.com/a/b/issues/1", "begins with http and not"),
            ("github.com/a/b/issues/1", "does not begin with https://"),
            (
                "https://github.com.evil.example/a/b/issues/1",
                "not the host",
            ),
            (
                "https://evil.example/https://github.com/a/b/issues/1",
                "not the host",
            ),
            (
                "https://github.com@evil.example/a/b/issues/1",
                "a user or a password",
            ),
            (
                "https://u:p@github.com/a/b/issues/1",
                "a user or a password",
            ),
            ("https://github.com:443/a/b/issues/1", "not the host"),
            ("https://github.com./a/b/issues/1", "not the host"),
            ("https://gıthub.com/a/b/issues/1", "beyond ASCII"),
            ("https://github.com/a/b/issues/1 x", "spaces"),
            ("https://github.com/a/b/pull/1", "pull request"),
            ("https://github.com/a/b/discussions/1", "discussion"),
            ("https://github.com/a/b/issues/1/events", "path is not"),
            ("https://github.com/a/b/issues/", "path is not"),
            ("https://github.com//b/issues/1", "no owner"),
            ("https://github.com/-a/b/issues/1", "no owner"),
            ("https://github.com/a/../issues/1", "no repository"),
            ("https://github.com/a/%2e%2e/issues/1", "no repository"),
            ("https://github.com/a/b/issues/0", "its number"),
            ("https://github.com/a/b/issues/01", "its number"),
            ("https://github.com/a/b/issues/+1", "its number"),
            ("https://github.com/a/b/issues/99999999999", "its number"),
            ("https://github.com/a/b/issues/1;2", "its number"),
            ("", "does not begin with https://"),
        ] {
            let error = Target::parse(address, &["github.com"])
                .unwrap_err()
                .to_string();
            assert!(error.contains(problem), "{address}: {error}");
            assert!(error.ends_with("write https://github.com/OWNER/REPO/issues/NUMBER"));
        }
    }

    proptest! {
        #[test]
        fn what_is_read_is_what_was_written(
            owner in "[A-Za-z0-9][A-Za-z0-9-]{0,38}",
            repo in "[A-Za-z0-9_-][A-Za-z0-9._-]{0,60}",
            number in 1_u64..10_000_000_000,
        ) {
            let address = format!("https://github.com/{owner}/{repo}/issues/{number}");
            let target = Target::parse(&address, &["github.com"]).unwrap();
            prop_assert_eq!(target.url(), address);
        }

        #[test]
        fn no_text_makes_it_panic_or_leave_the_host(text in "\\PC{0,80}") {
            for text in [text.clone(), format!("https://github.com/{text}"), format!("https://{text}/a/b/issues/1")] {
                if let Ok(target) = Target::parse(&text, &["github.com"]) {
                    prop_assert_eq!(&target.host, "github.com");
                    prop_assert!(is_owner(&target.owner) && is_repository(&target.repo));
                }
            }
        }
    }
}
