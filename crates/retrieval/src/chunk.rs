//! A document's text in chunks: the pieces that are embedded, shown and cited.
//!
//! Called when a document comes into the corpus, and again whenever its chunks are read: the same text always gives the
//! same chunks, so that only their vectors need to be kept. A chunk is a range of the text, so that a citation is a
//! part of the issue word for word. Nothing here embeds or ranks.

use std::ops::Range;

use serde::{Deserialize, Serialize};

use crate::document::{Document, Fence, IssueState};

/// The form of the texts that are embedded. Whatever changes them, here or in [`Document::tidied`], raises it: vectors
/// and floors of another form are refused.
pub const TEXT_FORM: u32 = 1;

/// The most characters of a chunk.
pub const CHUNK_CHARS: usize = 800;

/// How much of the end of a chunk the next one repeats, in characters.
const OVERLAP: usize = 40;

/// The most chunks of a document. What comes later is kept with it and can be found by its words only.
pub(crate) const MAX_CHUNKS: usize = 128;

/// A part of an issue, as it is shown and cited.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Chunk {
    /// `owner-name-issue-7#0`: the issue, and the chunk's place in it from 0.
    pub id: String,
    /// `owner/name`, as the tracker writes it.
    pub repo: String,
    /// The issue's number.
    pub number: u64,
    /// The issue's title.
    pub title: String,
    /// Where people read the issue.
    pub url: String,
    /// The text, word for word, of at most [`CHUNK_CHARS`] characters and the overlap.
    pub text: String,
    /// Whether the issue is closed.
    pub closed: bool,
}

impl Chunk {
    /// The chunk at a place of a document, whose text this is a part of.
    pub(crate) fn of(document: &Document, place: usize, text: &str) -> Chunk {
        Chunk {
            id: chunk_id(document, place),
            repo: document.repo.clone(),
            number: document.number,
            title: document.title.clone(),
            url: document.url.clone(),
            text: text.to_owned(),
            closed: document.state == IssueState::Closed,
        }
    }
}

fn chunk_id(document: &Document, place: usize) -> String {
    let repo = document.repo.replace('/', "-");
    format!("{repo}-issue-{}#{place}", document.number)
}

/// A document in chunks, in the order of its text.
///
/// ```
/// use paraph_retrieval::{Document, chunks};
/// let document = Document {
///     repo: "acme/boats".into(),
///     number: 7,
///     title: "It sinks".into(),
///     body: "At once, with `Error: hull is missing`.".into(),
///     url: "https://example.org/acme/boats/issues/7".into(),
///     updated_at: "2026-01-31T12:00:00Z".into(),
///     ..Document::default()
/// };
/// let chunks = chunks(&document);
/// assert_eq!(chunks[0].id, "acme-boats-issue-7#0");
/// assert_eq!(chunks[0].text, document.body);
/// ```
pub fn chunks(document: &Document) -> Vec<Chunk> {
    let text = document.text();
    ranges(&text)
        .into_iter()
        .enumerate()
        .map(|(place, range)| Chunk::of(document, place, text.get(range).unwrap_or_default()))
        .collect()
}

/// What is embedded of a chunk: the issue's title, and the text below it.
pub(crate) fn embedded(title: &str, text: &str) -> String {
    match title == text {
        true => title.to_owned(),
        false => format!("{title}\n\n{text}"),
    }
}

/// Where the chunks of a text are. Never none, if the text is not blank.
pub(crate) fn ranges(text: &str) -> Vec<Range<usize>> {
    let mut packing = Packing {
        text,
        done: Vec::new(),
        open: None,
    };
    for block in blocks(text) {
        packing.add(block);
    }
    packing.end()
}

/// What stands together in Markdown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Heading,
    /// A whole fence, or a piece of one that is too long.
    Code,
    Prose,
}

#[derive(Clone, Debug)]
struct Block {
    range: Range<usize>,
    kind: Kind,
    /// Whether it goes on with what the block before it began.
    inside: bool,
}

/// Blocks that become chunks.
struct Packing<'t> {
    text: &'t str,
    done: Vec<Range<usize>>,
    /// The blocks of the chunk that may still grow.
    open: Option<(usize, Vec<Block>)>,
}

impl Packing<'_> {
    fn add(&mut self, block: Block) {
        for piece in pieces(self.text, block) {
            match &mut self.open {
                Some((start, blocks)) if fits(self.text, *start, blocks, &piece) => {
                    blocks.push(piece);
                }
                _ => self.begin(piece),
            }
        }
    }

    /// Closes the open chunk and begins another. A heading goes with what follows it, where there is room.
    fn begin(&mut self, piece: Block) {
        let mut next = Vec::new();
        if let Some((start, mut blocks)) = self.open.take() {
            let follows = |last: &Block| {
                let both = self.text.get(last.range.start..piece.range.end);
                last.kind == Kind::Heading
                    && both.is_some_and(|both| both.chars().count() <= CHUNK_CHARS)
            };
            while blocks.len() > 1 && blocks.last().is_some_and(follows) {
                next.extend(blocks.pop());
            }
            next.reverse();
            self.done
                .extend(blocks.last().map(|last| start..last.range.end));
        }
        next.push(piece);
        let first = next.first();
        let start = first.map_or(0, |first| self.start(first));
        self.open = Some((start, next));
    }

    /// Where a chunk begins: a little before its first block, so that what was cut apart can still be read, but for
    /// headings and whole fences.
    fn start(&self, first: &Block) -> usize {
        let before = self.text.get(..first.range.start).unwrap_or_default();
        let lone = self.done.is_empty() || (first.kind != Kind::Prose && !first.inside);
        if lone {
            return first.range.start;
        }
        let least = self.done.last().map_or(0, |last| last.start);
        let (from, _) = before
            .char_indices()
            .rev()
            .nth(OVERLAP - 1)
            .unwrap_or((0, ' '));
        let overlap = before.get(from.max(least)..).unwrap_or_default();
        // Code begins with a line, prose with a word.
        let cut = match first.kind {
            Kind::Code => overlap.find('\n'),
            _ => overlap.find(char::is_whitespace),
        };
        let Some(cut) = cut else {
            return first.range.start;
        };
        let rest = overlap.get(cut..).unwrap_or_default();
        let skipped = rest.len() - rest.trim_start().len();
        before.len() - rest.len() + skipped
    }

    fn end(mut self) -> Vec<Range<usize>> {
        if let Some((start, blocks)) = self.open.take() {
            self.done
                .extend(blocks.last().map(|last| start..last.range.end));
        }
        self.done.truncate(MAX_CHUNKS);
        self.done
    }
}

/// Whether a chunk can take one more block. A section begins a chunk of its own if the one before it is not small.
fn fits(text: &str, start: usize, blocks: &[Block], next: &Block) -> bool {
    let chars = |end: usize| text.get(start..end).unwrap_or_default().chars().count();
    if chars(next.range.end) > CHUNK_CHARS {
        return false;
    }
    let only_headings = blocks.iter().all(|block| block.kind == Kind::Heading);
    let so_far = blocks.last().map_or(0, |last| chars(last.range.end));
    next.kind != Kind::Heading || only_headings || so_far < CHUNK_CHARS / 2
}

/// Headings, whole fences, and what stands between blank lines.
fn blocks(text: &str) -> Vec<Block> {
    let mut all: Vec<Block> = Vec::new();
    let mut open: Option<Range<usize>> = None;
    let mut fence: Option<(Fence, usize)> = None;
    let mut at = 0;
    let block = |range, kind| Block {
        range,
        kind,
        inside: false,
    };
    for line in text.split_inclusive('\n') {
        let start = at;
        at += line.len();
        let end = start + line.trim_end().len();
        if let Some((mark, from)) = fence {
            if mark.is_closed_by(line) {
                all.push(block(from..end, Kind::Code));
                fence = None;
            }
            continue;
        }
        let heading = is_heading(line);
        let opened = Fence::opened_by(line);
        if heading || opened.is_some() || line.trim().is_empty() {
            all.extend(open.take().map(|range| block(range, Kind::Prose)));
        }
        match (opened, heading) {
            (Some(mark), _) => fence = Some((mark, start)),
            (None, true) => all.push(block(start..end, Kind::Heading)),
            (None, false) if line.trim().is_empty() => {}
            (None, false) => match &mut open {
                Some(open) => open.end = end,
                None => open = Some(start..end),
            },
        }
    }
    // A fence that nobody closes goes to the end, as Markdown has it.
    all.extend(fence.map(|(_, from)| block(from..text.trim_end().len(), Kind::Code)));
    all.extend(open.map(|range| block(range, Kind::Prose)));
    all
}

fn is_heading(line: &str) -> bool {
    let rest = line.trim_start_matches('#');
    let depth = line.len() - rest.len();
    (1..=6).contains(&depth) && rest.starts_with([' ', '\t'])
}

/// A block that is too long, cut behind lines, else behind sentences, else between words, else anywhere. A stack frame
/// is a line, so it stays whole.
fn pieces(text: &str, block: Block) -> Vec<Block> {
    let mut all = Vec::new();
    let Range { mut start, end } = block.range;
    while let Some(rest) = text.get(start..end).filter(|rest| !rest.is_empty()) {
        let limit = rest.char_indices().nth(CHUNK_CHARS).map(|(limit, _)| limit);
        let cut = limit
            .and_then(|limit| rest.get(..limit))
            .map_or(rest.len(), cut_of);
        let piece = rest.get(..cut).unwrap_or(rest);
        all.push(Block {
            range: start..start + piece.trim_end().len(),
            kind: block.kind,
            inside: start > block.range.start,
        });
        let tail = rest.get(cut..).unwrap_or_default();
        let blank = tail.len() - tail.trim_start_matches('\n').len();
        start = end - tail.len() + blank;
    }
    all
}

/// Where the longest piece that may be is cut.
fn cut_of(head: &str) -> usize {
    let far_enough = |cut: &usize| *cut > head.len() / 2;
    let line = head.rfind('\n').map(|at| at + 1);
    let sentence = [". ", "! ", "? ", "。"]
        .iter()
        .filter_map(|mark| Some(head.rfind(mark)? + mark.len()))
        .max();
    let word = head.rfind(char::is_whitespace).map(|at| at + 1);
    line.filter(far_enough)
        .or(sentence.filter(far_enough))
        .or(word.filter(far_enough))
        .unwrap_or(head.len())
}

#[cfg(test)]
mod tests;
