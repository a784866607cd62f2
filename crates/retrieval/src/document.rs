//! Issues as a corpus keeps them: [`Document`], and the text of one that is searched and cited.
//!
//! Whoever reads a tracker makes them, `ingest` brings them into the corpus. Nothing here cuts, embeds or ranks.

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::error::Error;

/// The longest name of a repository, in bytes: GitHub's own limits, 39 for an owner and 100 for a name.
const MAX_REPO: usize = 140;

/// The longest title that is kept, in characters.
const MAX_TITLE: usize = 512;

/// The longest body or resolution that is kept, in characters. A comment on GitHub has at most 65,536.
const MAX_TEXT: usize = 131_072;

/// The most labels that are kept.
const MAX_LABELS: usize = 100;

/// Whether an issue is still open.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum IssueState {
    /// It is.
    #[default]
    Open,
    /// It is not, for whatever reason.
    Closed,
}

/// Which issue: a repository and a number. Names are compared in lower case, as GitHub does.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct IssueRef {
    /// `owner/name`, in lower case.
    pub repo: String,
    /// From 1.
    pub number: u64,
}

impl IssueRef {
    /// An issue of a repository, however its name is written.
    pub fn new(repo: &str, number: u64) -> Self {
        IssueRef {
            repo: repo.to_lowercase(),
            number,
        }
    }
}

impl std::fmt::Display for IssueRef {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}#{}", self.repo, self.number)
    }
}

/// An issue, with what of its discussion says how it ended.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Document {
    /// `owner/name`, as the tracker writes it.
    pub repo: String,
    /// The issue's number, from 1.
    pub number: u64,
    /// Its title.
    pub title: String,
    /// What its author wrote, in Markdown.
    #[serde(default)]
    pub body: String,
    /// What maintainers wrote when it was closed, if anything.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resolution: Option<String>,
    /// Where people read it.
    pub url: String,
    /// Open or closed.
    #[serde(default)]
    pub state: IssueState,
    /// When it last changed: RFC 3339 in UTC, ending in `Z`, so that texts compare like times.
    pub updated_at: String,
    /// Its labels.
    #[serde(default)]
    pub labels: Vec<String>,
}

impl Document {
    /// Which issue it is.
    pub fn id(&self) -> IssueRef {
        IssueRef::new(&self.repo, self.number)
    }

    /// The same without what nobody sees: HTML comments (outside of code), characters without width, runs of blank
    /// lines; and within the limits of a corpus.
    ///
    /// # Errors
    /// [`Error::Document`] if its repository, number, title, address or time cannot be used.
    pub fn tidied(mut self) -> Result<Self, Error> {
        self.check()?;
        self.title = tidy_line(&self.title);
        self.body = cut(tidy(&self.body), MAX_TEXT);
        self.resolution = self
            .resolution
            .map(|text| cut(tidy(&text), MAX_TEXT))
            .filter(|text| !text.is_empty());
        self.labels.truncate(MAX_LABELS);
        Ok(self)
    }

    fn check(&self) -> Result<(), Error> {
        let refuse = |problem: &str| {
            Err(Error::Document {
                document: format!("{}#{}", cut(self.repo.clone(), MAX_REPO), self.number),
                problem: problem.to_owned(),
            })
        };
        check_repo(&self.repo)?;
        if self.number == 0 || i64::try_from(self.number).is_err() {
            return refuse("its number is not one of an issue");
        }
        if tidy_line(&self.title).is_empty() {
            return refuse("it has no title");
        }
        if !(self.url.starts_with("https://") || self.url.starts_with("http://")) {
            return refuse("its address is no web address");
        }
        if !is_utc(&self.updated_at) {
            return refuse("`updated_at` is no time like 2026-01-31T12:00:00Z");
        }
        Ok(())
    }

    /// The text that is cut into chunks and cited, word for word: the body, and below it how it ended. The title where
    /// there is neither.
    pub fn text(&self) -> String {
        let parts = [self.body.as_str(), self.resolution.as_deref().unwrap_or("")];
        let parts: Vec<&str> = parts.into_iter().filter(|part| !part.is_empty()).collect();
        match parts.is_empty() {
            true => self.title.clone(),
            false => parts.join("\n\n"),
        }
    }

    /// What tells this version of the issue from another: SHA-256, over all that a search can see.
    pub fn content_hash(&self) -> [u8; 32] {
        let mut hash = Sha256::new();
        let state = match self.state {
            IssueState::Open => "open",
            IssueState::Closed => "closed",
        };
        let own = self.resolution.as_deref().unwrap_or("");
        for part in [&self.title, &self.body, own, &self.url, state] {
            // With its length first, so that no two lists of parts run into the same bytes.
            hash.update((part.len() as u64).to_le_bytes());
            hash.update(part.as_bytes());
        }
        hash.finalize().into()
    }
}

/// That a text is `owner/name`.
///
/// # Errors
/// [`Error::Repo`] with what to write.
pub fn check_repo(repo: &str) -> Result<(), Error> {
    let fits = |part: &str| {
        let known = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
        !part.is_empty() && part != "." && part != ".." && part.chars().all(known)
    };
    match repo.split_once('/') {
        Some((owner, name)) if fits(owner) && fits(name) && repo.len() <= MAX_REPO => Ok(()),
        _ => Err(Error::Repo {
            repo: cut(repo.to_owned(), MAX_REPO),
        }),
    }
}

/// `2026-01-31T12:00:00Z`, with or without parts of a second.
fn is_utc(time: &str) -> bool {
    let bytes = time.as_bytes();
    let form = b"dddd-dd-ddTdd:dd:dd";
    let fits = |(byte, form): (&u8, &u8)| match form {
        b'd' => byte.is_ascii_digit(),
        other => byte == other,
    };
    let rest = time.get(form.len()..).unwrap_or_default();
    let rest = rest
        .strip_suffix('Z')
        .map(|rest| rest.strip_prefix('.').unwrap_or(rest));
    bytes.iter().zip(form).all(fits)
        && bytes.len() > form.len()
        && rest
            .is_some_and(|rest| rest.len() <= 9 && rest.bytes().all(|byte| byte.is_ascii_digit()))
}

fn tidy_line(text: &str) -> String {
    let line: Vec<&str> = text.split_whitespace().collect();
    cut(visible(&line.join(" ")), MAX_TITLE)
}

fn cut(mut text: String, most: usize) -> String {
    if let Some((at, _)) = text.char_indices().nth(most) {
        text.truncate(at);
    }
    text
}

/// A text without what its reader on the tracker does not see.
fn tidy(text: &str) -> String {
    let text = visible(&text.replace("\r\n", "\n").replace('\r', "\n"));
    let text = without_comments(&text);
    let mut tidied = String::with_capacity(text.len());
    let mut blank = 0;
    for line in text.lines() {
        let line = line.trim_end();
        blank = if line.is_empty() { blank + 1 } else { 0 };
        if blank < 2 {
            tidied.push_str(line);
            tidied.push('\n');
        }
    }
    tidied.trim_matches('\n').trim_end().to_owned()
}

/// Without control characters, and without characters that have no width or turn the direction of what follows.
fn visible(text: &str) -> String {
    let hidden = |c: char| {
        let format = matches!(c,
            '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200f}'
            | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}'
            | '\u{e0000}'..='\u{e0fff}');
        format || (c.is_control() && !matches!(c, '\n' | '\t'))
    };
    text.chars().filter(|c| !hidden(*c)).collect()
}

/// Markdown without its HTML comments. What stands in a fence is code and stays.
fn without_comments(text: &str) -> String {
    let mut kept = String::with_capacity(text.len());
    let mut fence: Option<Fence> = None;
    let mut inside = false;
    for line in text.split_inclusive('\n') {
        if !inside {
            match fence {
                Some(open) => {
                    kept.push_str(line);
                    if open.is_closed_by(line) {
                        fence = None;
                    }
                    continue;
                }
                None => fence = Fence::opened_by(line),
            }
            if fence.is_some() {
                kept.push_str(line);
                continue;
            }
        }
        let mut rest = line;
        loop {
            let mark = if inside { "-->" } else { "<!--" };
            let Some((before, after)) = rest.split_once(mark) else {
                break;
            };
            if !inside {
                kept.push_str(before);
            }
            inside = !inside;
            rest = after;
        }
        if !inside {
            kept.push_str(rest);
        }
    }
    kept
}

/// The mark that opens a fence of code: three or more of one character.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Fence {
    mark: char,
    length: usize,
}

impl Fence {
    pub(crate) fn opened_by(line: &str) -> Option<Fence> {
        let line = line.trim_start();
        let mark = line
            .chars()
            .next()
            .filter(|mark| matches!(mark, '`' | '~'))?;
        let length = line.chars().take_while(|c| *c == mark).count();
        // In a line of text, code may stand between marks too.
        let inline = mark == '`' && line.trim_start_matches('`').contains('`');
        (length >= 3 && !inline).then_some(Fence { mark, length })
    }

    pub(crate) fn is_closed_by(self, line: &str) -> bool {
        let line = line.trim();
        line.chars().all(|c| c == self.mark) && line.chars().count() >= self.length
    }
}

#[cfg(test)]
mod tests;
