//! A stand-in for a model's server: plays one written answer per connection, byte for byte, and keeps the requests.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use paraph_models::{
    ChatModel, ModelSpec, ProviderSettings, Proxies, RetryPolicy, Settings, init_chat_model,
};
use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

/// What the server does with one connection after it has read the request.
pub(crate) enum Play {
    /// Sends the pieces, one write each, and closes.
    Send(Vec<Vec<u8>>),
    /// Sends the pieces and then nothing more, until the client goes.
    Hang(Vec<Vec<u8>>),
    /// Repeats a piece until the client goes.
    Flood(Vec<u8>, Vec<u8>),
}

impl Play {
    /// A whole answer.
    pub(crate) fn json(body: &str) -> Self {
        Self::status(200, "", body)
    }

    /// An answer with a status and more header lines, each closed by CRLF.
    pub(crate) fn status(status: u16, headers: &str, body: &str) -> Self {
        let head = format!(
            "HTTP/1.1 {status} X\r\ncontent-type: application/json\r\ncontent-length: {}\r\nconnection: close\r\n{headers}\r\n",
            body.len()
        );
        Self::Send(vec![head.into_bytes(), body.as_bytes().to_vec()])
    }

    /// An event stream, one byte a write.
    pub(crate) fn events(events: &str) -> Self {
        Self::Send(drip(events))
    }
}

/// The head of an event stream and its bytes, one by one.
pub(crate) fn drip(events: &str) -> Vec<Vec<u8>> {
    let head = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n";
    let mut pieces = vec![head.to_vec()];
    pieces.extend(events.bytes().map(|byte| vec![byte]));
    pieces
}

/// One request as it came.
#[derive(Clone, Debug)]
pub(crate) struct Request {
    /// Request line and headers, lines ended by CRLF.
    pub(crate) head: String,
    /// The body as JSON; null if there was none.
    pub(crate) body: Value,
}

impl Request {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let mut lines = self
            .head
            .lines()
            .skip(1)
            .filter_map(|line| line.split_once(": "));
        lines
            .find(|(key, _)| key.eq_ignore_ascii_case(name))
            .map(|(_, value)| value)
    }
}

/// The running server.
pub(crate) struct StandIn {
    pub(crate) address: String,
    requests: Arc<Mutex<Vec<Request>>>,
    gone: UnboundedReceiver<()>,
}

impl StandIn {
    /// Serves the plays, one connection after another; later connections are refused by silence.
    pub(crate) async fn start(plays: Vec<Play>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let requests = Arc::new(Mutex::new(Vec::new()));
        let (tell, gone) = unbounded_channel();
        tokio::spawn(serve(listener, plays, Arc::clone(&requests), tell));
        Self {
            address,
            requests,
            gone,
        }
    }

    pub(crate) fn requests(&self) -> Vec<Request> {
        self.requests.lock().unwrap().clone()
    }

    /// Waits until a client has gone away from a play that never ends.
    pub(crate) async fn client_gone(&mut self) {
        self.gone.recv().await.unwrap();
    }
}

async fn serve(
    listener: TcpListener,
    plays: Vec<Play>,
    requests: Arc<Mutex<Vec<Request>>>,
    gone: UnboundedSender<()>,
) {
    for play in plays {
        let Ok((mut stream, _)) = listener.accept().await else {
            return;
        };
        stream.set_nodelay(true).unwrap();
        let Some(request) = read_request(&mut stream).await else {
            gone.send(()).ok();
            continue;
        };
        requests.lock().unwrap().push(request);
        let gone = gone.clone();
        match play {
            Play::Send(pieces) => drop(send(&mut stream, &pieces).await),
            Play::Hang(pieces) => {
                send(&mut stream, &pieces).await.ok();
                tokio::spawn(async move {
                    let mut rest = Vec::new();
                    stream.read_to_end(&mut rest).await.ok();
                    gone.send(()).ok();
                });
            }
            Play::Flood(head, piece) => {
                stream.write_all(&head).await.unwrap();
                while stream.write_all(&piece).await.is_ok() {}
            }
        }
    }
}

async fn send(stream: &mut TcpStream, pieces: &[Vec<u8>]) -> std::io::Result<()> {
    for piece in pieces {
        stream.write_all(piece).await?;
        stream.flush().await?;
    }
    Ok(())
}

async fn read_request(stream: &mut TcpStream) -> Option<Request> {
    let mut bytes = Vec::new();
    let mut buffer = [0; 4096];
    let end = loop {
        if let Some(at) = bytes.windows(4).position(|w| w == b"\r\n\r\n") {
            break at + 4;
        }
        let n = stream.read(&mut buffer).await.ok().filter(|n| *n > 0)?;
        bytes.extend_from_slice(&buffer[..n]);
    };
    let head = String::from_utf8(bytes[..end].to_vec()).unwrap();
    let mut request = Request {
        head,
        body: Value::Null,
    };
    let length: usize = request
        .header("content-length")
        .map_or(0, |n| n.parse().unwrap());
    while bytes.len() < end + length {
        let n = stream.read(&mut buffer).await.ok().filter(|n| *n > 0)?;
        bytes.extend_from_slice(&buffer[..n]);
    }
    if length > 0 {
        request.body = serde_json::from_slice(&bytes[end..end + length]).unwrap();
    }
    Some(request)
}

/// The model `openai:m` at an address.
pub(crate) fn model(address: &str, policy: RetryPolicy) -> Arc<dyn ChatModel> {
    init(address, policy, Proxies::default())
}

/// The model `openai:m` at an address, through proxies.
pub(crate) fn init(address: &str, retry: RetryPolicy, proxies: Proxies) -> Arc<dyn ChatModel> {
    made("openai", address, retry, proxies)
}

/// The model `PROVIDER:m` at an address.
pub(crate) fn model_of(provider: &str, address: &str, policy: RetryPolicy) -> Arc<dyn ChatModel> {
    made(provider, address, policy, Proxies::default())
}

fn made(provider: &str, address: &str, retry: RetryPolicy, proxies: Proxies) -> Arc<dyn ChatModel> {
    let own = ProviderSettings {
        api_key: Some("sk-canary".into()),
        base_url: Some(address.to_owned()),
        limiter: None,
    };
    let settings = Settings {
        providers: [(provider.to_owned(), own)].into(),
        retry,
        proxies,
        ..Settings::default()
    };
    let spec: ModelSpec = format!("{provider}:m").parse().unwrap();
    init_chat_model(&spec, &settings).unwrap()
}

/// One attempt of at most so long.
pub(crate) fn once(timeout: Duration) -> RetryPolicy {
    RetryPolicy {
        timeout,
        attempts: 1,
        ..RetryPolicy::default()
    }
}
