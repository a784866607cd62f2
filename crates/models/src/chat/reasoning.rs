//! What a model thought, beside what it said: how it is kept in a message, and read from one again.
//!
//! The text goes where LangChain's clients look for it (`additional_kwargs.reasoning_content`) and never into the
//! content. Where a provider signed it, `additional_kwargs.reasoning_blocks` keeps what that provider wants back:
//! lengths and places instead of the text once more. Called by the [`Assembler`](super::Assembler) and by encoders.

use serde::{Deserialize, Serialize};

use crate::chat::ReasoningDelta;
use crate::message::Message;
use crate::raw::RawJson;

/// The field for the text.
const TEXT: &str = "reasoning_content";

/// The field for what a provider wants back.
const BLOCKS: &str = "reasoning_blocks";

/// What stands between two blocks in the text.
const BETWEEN: &str = "\n\n";

/// Most blocks of reasoning in one answer.
const MAX_BLOCKS: usize = 1024;

/// One block of reasoning in the making.
#[derive(Debug, Default)]
struct Pending {
    index: Option<u32>,
    text: String,
    signature: String,
    redacted: Option<String>,
    at: Place,
}

/// Where in an answer something stands: so many bytes of its text and so many of its calls come before it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Place {
    pub(crate) text: usize,
    pub(crate) calls: usize,
}

/// The reasoning of an answer in the making.
#[derive(Debug, Default)]
pub(super) struct Thoughts(Vec<Pending>);

/// A block as the message keeps it. Its text is the next `bytes` of the whole text.
#[derive(Serialize, Deserialize)]
struct Kept {
    provider: String,
    #[serde(default, skip_serializing_if = "is_zero")]
    bytes: usize,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    signature: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    redacted: Option<String>,
    #[serde(default, skip_serializing_if = "is_zero")]
    text: usize,
    #[serde(default, skip_serializing_if = "is_zero")]
    calls: usize,
}

/// A block that a provider wants back.
#[derive(Debug, PartialEq)]
pub(crate) struct SignedBlock {
    /// What was thought; may be empty.
    pub(crate) text: String,
    /// The provider's signature of it.
    pub(crate) signature: Option<String>,
    /// The encrypted block, if that is what it is.
    pub(crate) redacted: Option<String>,
    /// Where in the answer it stood.
    pub(crate) at: Place,
}

fn is_zero(n: &usize) -> bool {
    *n == 0
}

impl Thoughts {
    /// Adds a piece that came at this place of the answer; false if there are too many blocks.
    pub(super) fn push(&mut self, delta: ReasoningDelta, at: Place) -> bool {
        let known = match delta.index {
            Some(_) => self.0.iter().rposition(|block| block.index == delta.index),
            None => self.0.len().checked_sub(1),
        };
        let known = match known {
            Some(known) => known,
            None if self.0.len() >= MAX_BLOCKS => return false,
            None => {
                self.0.push(Pending {
                    index: delta.index,
                    at,
                    ..Pending::default()
                });
                self.0.len() - 1
            }
        };
        if let Some(block) = self.0.get_mut(known) {
            block.text.push_str(&delta.text);
            block.signature.push_str(&delta.signature);
            block.redacted = delta.redacted.or(block.redacted.take());
        }
        true
    }

    /// Writes what there is into the message.
    pub(super) fn keep(self, provider: Option<&str>, message: &mut Message) {
        let said = self.0.iter().map(|block| block.text.as_str());
        let said: Vec<&str> = said.filter(|text| !text.is_empty()).collect();
        let mut fields = Vec::new();
        if !said.is_empty() {
            fields.push((TEXT, RawJson::of(&said.join(BETWEEN))));
        }
        let wanted = |block: &Pending| !block.signature.is_empty() || block.redacted.is_some();
        if let Some(provider) = provider
            && self.0.iter().any(wanted)
        {
            let kept = self.0.into_iter().map(|block| Kept {
                provider: provider.to_owned(),
                bytes: block.text.len(),
                signature: Some(block.signature).filter(|signature| !signature.is_empty()),
                redacted: block.redacted,
                text: block.at.text,
                calls: block.at.calls,
            });
            fields.push((BLOCKS, RawJson::of(&kept.collect::<Vec<_>>())));
        }
        for (key, value) in fields {
            if let Ok(value) = value {
                message.additional_kwargs.insert(key.to_owned(), value);
            }
        }
    }
}

impl Message {
    /// What the model thought before it answered, where the provider showed it. No part of the answer.
    pub fn reasoning(&self) -> Option<String> {
        self.additional_kwargs.get(TEXT)?.decode().ok()
    }

    /// The blocks that this provider signed and wants back, in their order; none if the message is another
    /// provider's, or if the text was changed since.
    pub(crate) fn signed_reasoning(&self, provider: &str) -> Vec<SignedBlock> {
        let kept = self.additional_kwargs.get(BLOCKS);
        let kept: Vec<Kept> = kept.and_then(|kept| kept.decode().ok()).unwrap_or_default();
        let text = self.reasoning().unwrap_or_default();
        let mut from = 0_usize;
        let mut blocks = Vec::new();
        for block in kept {
            if block.provider != provider {
                return Vec::new();
            }
            let to = from.saturating_add(block.bytes);
            let own = match block.bytes {
                0 => "",
                _ => match text.get(from..to) {
                    Some(own) => own,
                    None => return Vec::new(),
                },
            };
            if block.bytes > 0 {
                from = to.saturating_add(BETWEEN.len());
            }
            if block.signature.is_some() || block.redacted.is_some() {
                blocks.push(SignedBlock {
                    text: own.to_owned(),
                    signature: block.signature,
                    redacted: block.redacted,
                    at: Place {
                        text: block.text,
                        calls: block.calls,
                    },
                });
            }
        }
        blocks
    }
}
