//! Messages, and the chat models that answer them.
//!
//! This crate knows no graph, no gateway and no tool: it carries conversations to a model and brings the
//! answer back. It reads no environment either; whoever composes a program hands it [`Settings`].
//!
//! # Layout
//! - `raw`: JSON that keeps the exact text it was given ([`RawJson`], [`Arguments`]).
//! - `message`: [`Message`] in LangChain's JSON shape, with ids fixed when a message comes into being.
//! - `history`: [`Messages`] (a list that grows by [`Messages::add`]), and what makes a list fit to send:
//!   [`repair`] and [`trim`].
//! - `tokens`: estimates of what a request costs before it is sent.
//! - `chat`: the [`ChatModel`] trait, its request, reply and stream, and the [`Assembler`] between them.
//! - `retry`: the one layer that waits and tries again ([`Retrying`]); `limits`: how much of a provider is used at once
//!   and per minute ([`Limiter`]); `fallback`: several models of which one answers ([`Fallback`]).
//! - `scripted`: a model that reads its attempts from a file ([`ScriptedModel`]).
//! - `cassette`: what a model said, written down ([`Recorder`]) and played again ([`Replay`]).
//! - `embed`: texts as vectors ([`Embedder`]).
//! - `structured`: answers as values of a type, from any model ([`StructuredOutput`]).
//! - `schema_mode`: tool calls for models that have none of their own ([`SchemaMode`]).
//! - `http`: models behind servers; `openai`, `anthropic` and `google` are the protocols they speak, `parts` what those
//!   share.
//! - `spec`, `providers`, `init`: from a [`ModelSpec`] and [`Settings`] to a model ([`init_chat_model`]).

mod error;
mod raw;

mod message;

mod history;
mod tokens;

mod chat;
mod fallback;
mod limits;
mod retry;

mod cassette;
mod scripted;

mod embed;
mod schema_mode;
mod structured;

mod anthropic;
mod google;
mod http;
mod openai;
mod parts;

mod init;
mod providers;
mod spec;
mod suggest;

pub use cassette::{Recorder, Replay};
pub use chat::{
    Assembler, ChatModel, ChatReply, ChatRequest, Chunk, ChunkStream, FinishReason, MAX_CALLS,
    MAX_REPLY_BYTES, ReasoningDelta, ResponseFormat, ToolCallDelta, ToolChoice, ToolSpec, collect,
};
#[cfg(feature = "local-embeddings")]
pub use embed::LocalEmbedder;
pub use embed::{Embedder, EmbedderSpec, Embeddings, MAX_TEXTS, cosine, init_embedder};
pub use error::{Error, ModelError, TimeLimit};
pub use fallback::Fallback;
pub use history::{
    Edit, MISSING_RESULT, Messages, Repair, Repaired, Trimmed, Window, repair, trim,
};
pub use init::{ProviderSettings, Proxies, Settings, init_chat_model, init_with_fallbacks};
pub use limits::{LimitWait, Limiter, Permit, RateLimits, WaitListener};
pub use message::{
    AiBody, Body, Content, InvalidToolCall, Message, REMOVE_ALL, ToolBody, ToolCall, ToolStatus,
    Usage,
};
pub use providers::{Provider, Speaks, providers};
pub use raw::{Arguments, Fields, MAX_ARGUMENT_BYTES, MAX_DEPTH, RawJson};
pub use retry::{RetryPolicy, Retrying};
pub use schema_mode::{SchemaMode, ToolMode};
pub use scripted::ScriptedModel;
pub use secrecy::SecretString;
pub use spec::ModelSpec;
pub use structured::{Answered, Structured, StructuredOutput, json_in};
pub use tokens::{Estimate, estimate_message, estimate_text};

/// The README's examples, compiled.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
