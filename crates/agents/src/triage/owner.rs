//! Who owns a path, by a CODEOWNERS file: the last rule that fits counts. Pure.
//!
//! What comes out is a name for people to read, without the sign that would call its bearer.

/// The longest file that is read, in lines.
const LONGEST: usize = 3_000;

/// The owners of the first of these paths that has any, else those of the rule for everything. Names stand without `@`;
/// addresses of mail are left out.
pub(super) fn owners(text: &str, paths: &[String]) -> Vec<String> {
    let rules: Vec<Rule<'_>> = text.lines().take(LONGEST).filter_map(Rule::of).collect();
    let of_path = |path: &String| {
        let last = rules.iter().rev().find(|rule| rule.fits(path))?;
        Some(last.owners.clone()).filter(|owners| !owners.is_empty())
    };
    let catch_all = || {
        let last = rules.iter().rev().find(|rule| rule.is_for_everything())?;
        Some(last.owners.clone())
    };
    let found = paths.iter().find_map(of_path).or_else(catch_all);
    found.unwrap_or_default()
}

struct Rule<'t> {
    pattern: &'t str,
    owners: Vec<String>,
}

impl<'t> Rule<'t> {
    fn of(line: &'t str) -> Option<Rule<'t>> {
        // A number sign begins a comment where a blank stands before it.
        let line = match line.find(" #").or_else(|| line.find("\t#")) {
            Some(at) => line.get(..at).unwrap_or_default(),
            None => line,
        };
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') || line.starts_with('[') {
            return None;
        }
        let mut words = line.split_whitespace();
        let pattern = words.next()?;
        let owner = |word: &str| {
            let name = word.strip_prefix('@')?;
            let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '/' | '.');
            (!name.is_empty() && name.chars().all(plain)).then(|| name.to_owned())
        };
        Some(Rule {
            pattern,
            owners: words.filter_map(owner).collect(),
        })
    }

    fn is_for_everything(&self) -> bool {
        matches!(self.pattern, "*" | "/*" | "**" | "/**" | "/")
    }

    /// Whether a path is one of the rule's: by the rules of ignore files, without negation and character classes.
    fn fits(&self, path: &str) -> bool {
        let path = path.trim_start_matches('/');
        if self.is_for_everything() {
            // `/*` is for the files of the first folder alone.
            return self.pattern != "/*" || !path.contains('/');
        }
        let anchored = self.pattern.trim_end_matches('/').contains('/');
        let folder = self.pattern.ends_with('/');
        let pattern = self.pattern.trim_start_matches('/').trim_end_matches('/');
        let wanted: Vec<&str> = pattern.split('/').collect();
        let have: Vec<&str> = path.split('/').collect();
        let starts = match anchored {
            true => 0..1,
            false => 0..have.len(),
        };
        starts.into_iter().any(|start| {
            let rest = have.get(start..).unwrap_or_default();
            fits_from(&wanted, rest, folder)
        })
    }
}

/// Whether a pattern fits a path from here on. What fits a folder fits all that is in it, but a star at the end.
fn fits_from(wanted: &[&str], have: &[&str], folder: bool) -> bool {
    match (wanted.split_first(), have.split_first()) {
        (None, None) => !folder,
        (None, Some(_)) => true,
        (Some((&"**", rest)), _) => {
            rest.is_empty()
                || (0..=have.len())
                    .any(|skip| fits_from(rest, have.get(skip..).unwrap_or_default(), folder))
        }
        (Some(_), None) => false,
        (Some((&"*", [])), Some((_, rest))) => rest.is_empty() && !folder,
        (Some((part, more)), Some((name, rest))) => {
            part_fits(part.as_bytes(), name.as_bytes()) && fits_from(more, rest, folder)
        }
    }
}

/// Whether a part of a pattern, with stars for any text and `?` for any byte, fits a name. Linear in both lengths.
fn part_fits(pattern: &[u8], name: &[u8]) -> bool {
    let (mut p, mut n, mut star) = (0, 0, None);
    while n < name.len() {
        match pattern.get(p) {
            Some(b'*') => {
                star = Some((p, n));
                p += 1;
            }
            Some(byte) if *byte == b'?' || name.get(n) == Some(byte) => {
                p += 1;
                n += 1;
            }
            _ => match star {
                Some((at, tried)) => {
                    star = Some((at, tried + 1));
                    p = at + 1;
                    n = tried + 1;
                }
                None => return false,
            },
        }
    }
    pattern
        .get(p..)
        .unwrap_or_default()
        .iter()
        .all(|byte| *byte == b'*')
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = "# who looks at what\n\
        *            @harbor/crew\n\
        /docs/       @writer  docs@example.org\n\
        *.lock       @robot # machines only\n\
        src/engine/  @anna @bert\n\
        src/engine/*.md @writer\n\
        /build       @smith\n\
        **/legacy    @archive\n\
        /free\n";

    #[test]
    fn the_last_rule_that_fits_counts() {
        let table: &[(&[&str], &[&str])] = &[
            (&["README"], &["harbor/crew"]),
            (&["docs/a/b.txt"], &["writer"]),
            (&["sub/docs/a.txt"], &["harbor/crew"]),
            (&["deep/down/Cargo.lock"], &["robot"]),
            (&["src/engine/run.rs"], &["anna", "bert"]),
            (&["src/engine/notes.md"], &["writer"]),
            (&["src/engine/deep/notes.md"], &["anna", "bert"]),
            (&["build/x"], &["smith"]),
            (&["a/build/x"], &["harbor/crew"]),
            (&["a/legacy/x"], &["archive"]),
            // A rule without owners means that nobody owns it; then the next path is asked for.
            (&["free/x", "docs/a"], &["writer"]),
            (&[], &["harbor/crew"]),
        ];
        for (paths, expected) in table {
            let paths: Vec<_> = paths.iter().map(|path| (*path).to_owned()).collect();
            assert_eq!(owners(FILE, &paths), *expected, "{paths:?}");
        }
    }

    #[test]
    fn nobody_is_called_and_odd_names_are_left_out() {
        let text = "* @ok @bad<name @@x someone@example.org @\n";
        assert_eq!(owners(text, &[]), ["ok"]);
        assert!(owners("/src @a", &[]).is_empty());
        assert!(owners("", &["x".to_owned()]).is_empty());
    }
}
