//! `calls_N`: N calls of a model, one after the other. `tokens_N`: one answer of N streamed pieces. Both against a
//! server of OpenAI's protocol in this process, so what is measured is the client.
//!
//! The floor is the HTTP client below ours, used by hand: it sends the same request and reads each piece as JSON.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;

use futures::StreamExt;
use futures::future::BoxFuture;
use paraph_models::{
    ChatModel, ChatRequest, Chunk, Message, ProviderSettings, Settings, init_chat_model,
};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};

use crate::{Fault, Run, Setting, Shape};

/// About as long as a short answer is.
const ANSWER: &str = "It is 21 degrees in Lisbon, so the hotel by the river is the cooler one.";

/// What is asked for.
#[derive(Clone, Copy)]
pub(super) enum Talk {
    Calls(usize),
    Tokens(usize),
}

pub(super) fn shape(talk: Talk) -> Box<dyn Shape> {
    Box::new(talk)
}

impl Talk {
    fn count(self) -> usize {
        match self {
            Talk::Calls(count) | Talk::Tokens(count) => count,
        }
    }

    async fn run_engine(self) -> Result<Run, Fault> {
        let server = Server::start(self.count()).await?;
        let settings = Settings {
            providers: BTreeMap::from([(
                "openai".to_owned(),
                ProviderSettings {
                    base_url: Some(server.url.clone()),
                    ..ProviderSettings::default()
                },
            )]),
            ..Settings::default()
        };
        let model = init_chat_model(&"openai:stand-in".parse()?, &settings)?;
        let request = ChatRequest::new([Message::human("How warm is it?")]);
        // The connection is there before the clock runs, on both sides.
        model.complete(&request).await?;
        let start = Instant::now();
        match self {
            Talk::Calls(count) => {
                for _ in 0..count {
                    let reply = model.complete(&request).await?;
                    expect(reply.message.text().len(), ANSWER.len())?;
                }
            }
            Talk::Tokens(count) => expect(streamed(&model, &request).await?, count)?,
        }
        Ok(Run::of(start.elapsed()))
    }

    async fn run_floor(self) -> Result<Run, Fault> {
        let server = Server::start(self.count()).await?;
        let client = reqwest::Client::builder().no_proxy().build()?;
        let url = format!("{}/chat/completions", server.url);
        let body = |stream: bool| {
            json!({
                "model": "stand-in", "temperature": 0, "stream": stream,
                "messages": [{"role": "user", "content": "How warm is it?"}],
            })
        };
        let post = |stream| client.post(&url).body(body(stream).to_string()).send();
        post(false).await?.bytes().await?;
        let start = Instant::now();
        match self {
            Talk::Calls(count) => {
                for _ in 0..count {
                    let reply: Value = serde_json::from_slice(&post(false).await?.bytes().await?)?;
                    let text = reply.pointer("/choices/0/message/content");
                    let text = text.and_then(Value::as_str).unwrap_or_default();
                    expect(text.len(), ANSWER.len())?;
                }
            }
            Talk::Tokens(count) => expect(pieces_by_hand(post(true).await?).await?, count)?,
        }
        Ok(Run::of(start.elapsed()))
    }
}

fn expect(found: usize, expected: usize) -> Result<(), Fault> {
    if found == expected {
        return Ok(());
    }
    Err(format!("{found} came where {expected} were expected").into())
}

/// How many pieces of text the model's answer has.
async fn streamed(model: &Arc<dyn ChatModel>, request: &ChatRequest) -> Result<usize, Fault> {
    let mut stream = model.stream(request);
    let mut pieces = 0;
    while let Some(chunk) = stream.next().await {
        let chunk: Chunk = chunk?;
        pieces += usize::from(!chunk.text.is_empty());
    }
    Ok(pieces)
}

async fn pieces_by_hand(reply: reqwest::Response) -> Result<usize, Fault> {
    let mut bytes = reply.bytes_stream();
    let (mut pending, mut pieces) = (Vec::new(), 0);
    while let Some(some) = bytes.next().await {
        pending.extend_from_slice(&some?);
        while let Some(end) = pending.windows(2).position(|two| two == b"\n\n") {
            let frame: Vec<u8> = pending.drain(..end + 2).collect();
            let Some(json) = frame.strip_prefix(b"data: ") else {
                continue;
            };
            if json.starts_with(b"[DONE]") {
                continue;
            }
            let piece: Value = serde_json::from_slice(json)?;
            let text = piece.pointer("/choices/0/delta/content");
            pieces += usize::from(text.and_then(Value::as_str).is_some_and(|t| !t.is_empty()));
        }
    }
    Ok(pieces)
}

/// A server that always says the same; it ends with this value.
struct Server {
    url: String,
    task: tokio::task::JoinHandle<()>,
}

impl Drop for Server {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Server {
    async fn start(tokens: usize) -> Result<Server, Fault> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let url = format!("http://{}/v1", listener.local_addr()?);
        let task = tokio::spawn(async move {
            while let Ok((socket, _)) = listener.accept().await {
                tokio::spawn(async move {
                    // A client that goes away ends its connection.
                    let _ = serve(socket, tokens).await;
                });
            }
        });
        Ok(Server { url, task })
    }
}

async fn serve(socket: TcpStream, tokens: usize) -> Result<(), Fault> {
    socket.set_nodelay(true)?;
    let mut socket = BufReader::new(socket);
    loop {
        let mut length = 0;
        loop {
            let mut line = String::new();
            if socket.read_line(&mut line).await? == 0 {
                return Ok(());
            }
            let line = line.trim_end().to_ascii_lowercase();
            if let Some(given) = line.strip_prefix("content-length:") {
                length = given.trim().parse()?;
            }
            if line.is_empty() {
                break;
            }
        }
        let mut body = vec![0; length];
        socket.read_exact(&mut body).await?;
        let asked: Value = serde_json::from_slice(&body)?;
        let answer = match asked["stream"] == json!(true) {
            true => stream_of(tokens),
            false => whole(),
        };
        socket.get_mut().write_all(&answer).await?;
    }
}

fn whole() -> Vec<u8> {
    let body = json!({
        "id": "a", "object": "chat.completion", "model": "stand-in",
        "choices": [{"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": ANSWER}}],
        "usage": {"prompt_tokens": 9, "completion_tokens": 18, "total_tokens": 27},
    })
    .to_string();
    let head = "HTTP/1.1 200 OK\r\ncontent-type: application/json";
    format!("{head}\r\ncontent-length: {}\r\n\r\n{body}", body.len()).into_bytes()
}

/// One SSE frame per piece, in one write: the client is the one to be waited for.
fn stream_of(tokens: usize) -> Vec<u8> {
    let frame = |delta: Value, finish: Option<&str>| {
        let choice = json!({"index": 0, "delta": delta, "finish_reason": finish});
        let body = json!({
            "id": "a", "object": "chat.completion.chunk", "model": "stand-in", "choices": [choice],
        });
        format!("data: {body}\n\n")
    };
    let mut body = frame(json!({"role": "assistant", "content": ""}), None);
    for at in 0..tokens {
        body += &frame(json!({"content": format!(" word{at}")}), None);
    }
    body += &frame(json!({}), Some("stop"));
    body += "data: [DONE]\n\n";
    let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream";
    format!("{head}\r\ncontent-length: {}\r\n\r\n{body}", body.len()).into_bytes()
}

impl Shape for Talk {
    fn name(&self) -> String {
        match self {
            Talk::Calls(count) => format!("calls_{count}"),
            Talk::Tokens(count) => format!("tokens_{count}"),
        }
    }

    fn node_runs(&self) -> usize {
        self.count()
    }

    fn settings(&self) -> Vec<Setting> {
        let [none, ..] = Setting::QUICK;
        vec![none]
    }

    fn engine(&self, _: Setting) -> BoxFuture<'_, Result<Run, Fault>> {
        Box::pin(self.run_engine())
    }

    fn floor(&self, _: Setting) -> BoxFuture<'_, Result<Run, Fault>> {
        Box::pin(self.run_floor())
    }
}
