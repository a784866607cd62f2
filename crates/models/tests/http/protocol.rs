//! One answer as each provider's server would send it: in one piece, and as events.

use serde_json::{Value, json};

/// A provider whose protocol is played.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Protocol {
    OpenAi,
    Anthropic,
    Google,
}

pub(crate) const ALL: [Protocol; 3] = [Protocol::OpenAi, Protocol::Anthropic, Protocol::Google];

/// A part of an answer. Of calls the arguments come in these pieces, where the protocol has pieces.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Part {
    Thought(&'static str),
    Text(&'static str),
    Call(&'static str, &'static str, &'static [&'static str]),
    /// An event that nobody knows.
    News,
    /// A sign of life.
    Ping,
    /// An error in the middle: overloaded, or too many requests.
    Overloaded,
    TooMany,
}

impl Protocol {
    pub(crate) fn provider(self) -> &'static str {
        match self {
            Self::OpenAi => "openai",
            Self::Anthropic => "anthropic",
            Self::Google => "google",
        }
    }

    /// The request line that a call has, and the header with its key.
    pub(crate) fn call(self, streamed: bool) -> (&'static str, &'static str, &'static str) {
        match (self, streamed) {
            (Self::OpenAi, _) => (
                "POST /v1/chat/completions HTTP/1.1",
                "authorization",
                "Bearer sk-canary",
            ),
            (Self::Anthropic, _) => ("POST /v1/messages HTTP/1.1", "x-api-key", "sk-canary"),
            (Self::Google, false) => (
                "POST /v1beta/models/m:generateContent HTTP/1.1",
                "x-goog-api-key",
                "sk-canary",
            ),
            (Self::Google, true) => (
                "POST /v1beta/models/m:streamGenerateContent?alt=sse HTTP/1.1",
                "x-goog-api-key",
                "sk-canary",
            ),
        }
    }

    /// The answer as events. The last that are given here end it; all before them leave it open.
    pub(crate) fn events(self, parts: &[Part]) -> (Vec<String>, Vec<String>) {
        let mut body = self.head();
        let mut count = 0;
        for part in parts {
            body.extend(self.part(*part, &mut count));
        }
        (body, self.tail())
    }

    fn sse(self, data: &Value) -> String {
        match self {
            Self::Anthropic => format!(
                "event: {}\ndata: {data}\n\n",
                data["type"].as_str().unwrap_or("x")
            ),
            _ => format!("data: {data}\n\n"),
        }
    }

    fn head(self) -> Vec<String> {
        match self {
            Self::OpenAi => vec![self.sse(&json!({ "model": "m-1", "choices": [{ "index": 0, "delta": { "role": "assistant", "content": null } }] }))],
            Self::Anthropic => vec![self.sse(&json!({ "type": "message_start", "message": { "model": "m-1", "content": [],
                "usage": { "input_tokens": 6, "cache_read_input_tokens": 4, "output_tokens": 1 } } }))],
            Self::Google => vec![],
        }
    }

    fn tail(self) -> Vec<String> {
        match self {
            Self::OpenAi => vec![
                self.sse(&json!({ "choices": [{ "index": 0, "delta": {}, "finish_reason": "stop" }] })),
                self.sse(&json!({ "choices": [], "usage": { "prompt_tokens": 10, "completion_tokens": 5,
                    "prompt_tokens_details": { "cached_tokens": 4 } } })),
                "data: [DONE]\n\n".to_owned(),
            ],
            Self::Anthropic => vec![
                self.sse(&json!({ "type": "message_delta", "delta": { "stop_reason": "end_turn" }, "usage": { "output_tokens": 5 } })),
                self.sse(&json!({ "type": "message_stop" })),
            ],
            Self::Google => vec![self.sse(&json!({ "candidates": [{ "content": { "parts": [] }, "finishReason": "STOP" }],
                "modelVersion": "m-1", "usageMetadata": { "promptTokenCount": 10, "cachedContentTokenCount": 4,
                    "candidatesTokenCount": 5 } }))],
        }
    }

    fn part(self, part: Part, count: &mut u32) -> Vec<String> {
        let index = *count;
        *count += 1;
        let error = |kind: &str, code: u16, status: &str| match self {
            Self::OpenAi => {
                json!({ "error": { "message": "busy sk-canary", "type": kind, "code": code } })
            }
            Self::Anthropic => {
                json!({ "type": "error", "error": { "type": kind, "message": "busy sk-canary" } })
            }
            Self::Google => {
                json!({ "error": { "code": code, "message": "busy sk-canary", "status": status } })
            }
        };
        match part {
            Part::News if self == Self::Anthropic => vec![self.sse(&json!({ "type": "news" }))],
            Part::News => vec![self.sse(&json!({ "news": 1 }))],
            Part::Ping if self == Self::Anthropic => vec![self.sse(&json!({ "type": "ping" }))],
            Part::Ping => vec![": still here\n\n".to_owned()],
            Part::Overloaded => vec![self.sse(&error("overloaded_error", 503, "UNAVAILABLE"))],
            Part::TooMany => vec![self.sse(&error("rate_limit_error", 429, "RESOURCE_EXHAUSTED"))],
            part => {
                match self {
                    Self::OpenAi => self.openai(part, index),
                    Self::Anthropic => self.anthropic(part, index),
                    Self::Google => vec![self.sse(
                        &json!({ "candidates": [{ "content": { "parts": [google(part)] } }] }),
                    )],
                }
            }
        }
    }

    fn openai(self, part: Part, index: u32) -> Vec<String> {
        let delta =
            |delta: Value| self.sse(&json!({ "choices": [{ "index": 0, "delta": delta }] }));
        match part {
            Part::Thought(text) => vec![delta(json!({ "reasoning_content": text }))],
            Part::Text(text) => vec![delta(json!({ "content": text }))],
            Part::Call(id, name, pieces) => {
                let first = json!({ "index": index, "id": id, "function": { "name": name, "arguments": "" } });
                let more = pieces
                    .iter()
                    .map(|piece| json!({ "index": index, "function": { "arguments": piece } }));
                let all = std::iter::once(first).chain(more);
                all.map(|call| delta(json!({ "tool_calls": [call] })))
                    .collect()
            }
            _ => vec![],
        }
    }

    fn anthropic(self, part: Part, index: u32) -> Vec<String> {
        let (block, deltas) = match part {
            Part::Thought(text) => (
                json!({ "type": "thinking", "thinking": "" }),
                vec![
                    json!({ "type": "thinking_delta", "thinking": text }),
                    json!({ "type": "signature_delta", "signature": "s" }),
                ],
            ),
            Part::Text(text) => (
                json!({ "type": "text", "text": "" }),
                vec![json!({ "type": "text_delta", "text": text })],
            ),
            Part::Call(id, name, pieces) => (
                json!({ "type": "tool_use", "id": id, "name": name, "input": {} }),
                pieces
                    .iter()
                    .map(|piece| json!({ "type": "input_json_delta", "partial_json": piece }))
                    .collect(),
            ),
            _ => return vec![],
        };
        let start =
            json!({ "type": "content_block_start", "index": index, "content_block": block });
        let deltas = deltas
            .into_iter()
            .map(|delta| json!({ "type": "content_block_delta", "index": index, "delta": delta }));
        let stop = json!({ "type": "content_block_stop", "index": index });
        let all = std::iter::once(start).chain(deltas).chain([stop]);
        all.map(|event| self.sse(&event)).collect()
    }

    /// The same answer in one piece.
    pub(crate) fn whole(self, parts: &[Part]) -> String {
        let (mut text, mut thought, mut calls) = (String::new(), String::new(), Vec::new());
        for part in parts {
            match part {
                Part::Text(more) => text.push_str(more),
                Part::Thought(more) => thought.push_str(more),
                Part::Call(id, name, pieces) => calls.push((*id, *name, pieces.concat())),
                _ => {}
            }
        }
        match self {
            Self::OpenAi => {
                let calls: Vec<_> = calls.into_iter().map(|(id, name, arguments)|
                    json!({ "id": id, "type": "function", "function": { "name": name, "arguments": arguments } })).collect();
                json!({ "model": "m-1", "choices": [{ "index": 0, "finish_reason": "stop",
                    "message": { "role": "assistant", "content": text, "reasoning_content": thought, "tool_calls": calls } }],
                    "usage": { "prompt_tokens": 10, "completion_tokens": 5, "prompt_tokens_details": { "cached_tokens": 4 } } })
                .to_string()
            }
            Self::Anthropic => {
                let calls = calls.iter().map(|(id, name, args)|
                    format!(",{{\"type\":\"tool_use\",\"id\":{id:?},\"name\":{name:?},\"input\":{args}}}"));
                let blocks = json!([{ "type": "thinking", "thinking": thought, "signature": "s" }, { "type": "text", "text": text }]).to_string();
                let blocks = blocks.trim_end_matches(']');
                format!(
                    "{{\"type\":\"message\",\"model\":\"m-1\",\"content\":{blocks}{}],\"stop_reason\":\"end_turn\",\
                    \"usage\":{{\"input_tokens\":6,\"cache_read_input_tokens\":4,\"output_tokens\":5}}}}",
                    calls.collect::<String>()
                )
            }
            Self::Google => {
                let calls = calls.iter().map(|(id, name, args)| {
                    format!(
                        ",{{\"functionCall\":{{\"id\":{id:?},\"name\":{name:?},\"args\":{args}}}}}"
                    )
                });
                let parts =
                    json!([{ "text": thought, "thought": true }, { "text": text }]).to_string();
                let parts = parts.trim_end_matches(']');
                format!(
                    "{{\"modelVersion\":\"m-1\",\"candidates\":[{{\"content\":{{\"parts\":{parts}{}]}},\"finishReason\":\"STOP\"}}],\
                    \"usageMetadata\":{{\"promptTokenCount\":10,\"cachedContentTokenCount\":4,\"candidatesTokenCount\":5}}}}",
                    calls.collect::<String>()
                )
            }
        }
    }
}

fn google(part: Part) -> Value {
    match part {
        Part::Thought(text) => json!({ "text": text, "thought": true }),
        Part::Text(text) => json!({ "text": text }),
        Part::Call(id, name, pieces) => {
            let args: Value = serde_json::from_str(&pieces.concat()).unwrap();
            json!({ "functionCall": { "id": id, "name": name, "args": args } })
        }
        _ => Value::Null,
    }
}
