//! A small HTTP server for tests, and on it stand-ins for Tavily, Open-Meteo and GitHub with the fields they document.
//!
//! Used by the tests of this crate, in other crates by `#[path]`; it needs the standard library and `serde_json`, and
//! knows nothing of Paraph. Each server listens on a free port of this machine, remembers what it was asked, and ends
//! with its value.
#![allow(
    dead_code,
    unreachable_pub,
    clippy::unwrap_used,
    reason = "each test uses a part of it, be it from a test crate or from inside one"
)]

pub mod github;
pub mod open_meteo;
pub mod tavily;

use std::{
    io::{self, BufRead, BufReader, Read, Write},
    net::{SocketAddr, TcpListener, TcpStream},
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    thread::{self, JoinHandle},
    time::Duration,
};

/// A running server. Dropped, it is gone.
pub struct StandIn {
    address: SocketAddr,
    seen: Arc<Mutex<Vec<Seen>>>,
    ending: Arc<AtomicBool>,
    accepting: Option<JoinHandle<()>>,
}

/// A request as it came.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Seen {
    pub method: String,
    /// Path and query, as they came.
    pub target: String,
    /// Names in lower case.
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

/// What is answered.
#[derive(Clone, Debug)]
pub struct Answer {
    pub status: u16,
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
    pub manner: Manner,
}

/// How an answer is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Manner {
    /// As it should be.
    Whole,
    /// Not at all: the connection stays open until the client gives up.
    Silent,
    /// The headers, the body, and then its last byte again and again until the client gives up.
    Endless,
    /// Half of the body, then the connection is closed.
    CutOff,
}

impl StandIn {
    /// A server that answers by this function.
    pub fn start(answer: impl Fn(&Seen) -> Answer + Send + Sync + 'static) -> StandIn {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let seen: Arc<Mutex<Vec<Seen>>> = Arc::default();
        let ending = Arc::new(AtomicBool::new(false));
        let (answer, noting, ended) = (Arc::new(answer), Arc::clone(&seen), Arc::clone(&ending));
        let accepting = thread::spawn(move || {
            for stream in listener.incoming() {
                if ended.load(Ordering::SeqCst) {
                    break;
                }
                let (answer, noting, ended) =
                    (Arc::clone(&answer), Arc::clone(&noting), Arc::clone(&ended));
                // A client that goes away in the middle is no fault of the server.
                thread::spawn(move || stream.and_then(|s| serve(s, &*answer, &noting, &ended)));
            }
        });
        StandIn {
            address,
            seen,
            ending,
            accepting: Some(accepting),
        }
    }

    /// Its base URL, without a closing slash.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    pub fn port(&self) -> u16 {
        self.address.port()
    }

    /// What it was asked so far.
    pub fn seen(&self) -> Vec<Seen> {
        let seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        seen.clone()
    }
}

impl Drop for StandIn {
    fn drop(&mut self) {
        self.ending.store(true, Ordering::SeqCst);
        // Wakes the thread that waits for a connection.
        drop(TcpStream::connect(self.address));
        if let Some(accepting) = self.accepting.take() {
            drop(accepting.join());
        }
    }
}

fn serve(
    stream: TcpStream,
    answer: &dyn Fn(&Seen) -> Answer,
    noting: &Mutex<Vec<Seen>>,
    ended: &AtomicBool,
) -> io::Result<()> {
    stream.set_read_timeout(Some(Duration::from_secs(30)))?;
    let mut reader = BufReader::new(stream.try_clone()?);
    let mut stream = stream;
    let request = read(&mut reader)?;
    let answer = answer(&request);
    noting
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .push(request);
    if answer.manner == Manner::Silent {
        // Ends when the client closes the connection.
        let _ = reader.read(&mut [0]);
        return Ok(());
    }
    write!(
        stream,
        "HTTP/1.1 {} Stand-in\r\nConnection: close\r\n",
        answer.status
    )?;
    for (name, value) in &answer.headers {
        write!(stream, "{name}: {value}\r\n")?;
    }
    if answer.manner != Manner::Endless {
        write!(stream, "Content-Length: {}\r\n", answer.body.len())?;
    }
    stream.write_all(b"\r\n")?;
    match answer.manner {
        Manner::CutOff => stream.write_all(&answer.body[..answer.body.len() / 2])?,
        _ => stream.write_all(&answer.body)?,
    }
    let last = answer.body.last().copied().unwrap_or(b' ');
    while answer.manner == Manner::Endless && !ended.load(Ordering::SeqCst) {
        stream.write_all(&[last; 64])?;
        stream.flush()?;
        thread::yield_now();
    }
    Ok(())
}

fn read(reader: &mut BufReader<TcpStream>) -> io::Result<Seen> {
    let mut line = String::new();
    reader.read_line(&mut line)?;
    let mut words = line.split_whitespace().map(str::to_owned);
    let mut seen = Seen {
        method: words.next().unwrap_or_default(),
        target: words.next().unwrap_or_default(),
        ..Seen::default()
    };
    loop {
        let mut line = String::new();
        reader.read_line(&mut line)?;
        let Some((name, value)) = line.trim_end().split_once(':') else {
            break;
        };
        seen.headers
            .push((name.to_ascii_lowercase(), value.trim().to_owned()));
    }
    let length = seen.header("content-length").and_then(|n| n.parse().ok());
    seen.body = vec![0; length.unwrap_or(0)];
    reader.read_exact(&mut seen.body)?;
    Ok(seen)
}

impl Seen {
    pub fn header(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|(own, _)| own == name)?;
        Some(&found.1)
    }

    pub fn path(&self) -> &str {
        self.target.split('?').next().unwrap_or_default()
    }

    /// A parameter of the query, decoded.
    pub fn parameter(&self, name: &str) -> Option<String> {
        let (_, query) = self.target.split_once('?')?;
        let pairs = query.split('&').filter_map(|pair| pair.split_once('='));
        let mut named = pairs.filter(|(own, _)| *own == name);
        named.next().map(|(_, value)| decoded(value))
    }

    pub fn json(&self) -> Option<serde_json::Value> {
        serde_json::from_slice(&self.body).ok()
    }
}

/// A value of a query without percent signs.
fn decoded(value: &str) -> String {
    let bytes = value.as_bytes();
    let mut decoded = Vec::new();
    let mut at = 0;
    while at < bytes.len() {
        let hex = value
            .get(at + 1..at + 3)
            .and_then(|hex| u8::from_str_radix(hex, 16).ok());
        match (bytes[at], hex) {
            (b'%', Some(byte)) => {
                decoded.push(byte);
                at += 2;
            }
            (b'+', _) => decoded.push(b' '),
            (byte, _) => decoded.push(byte),
        }
        at += 1;
    }
    String::from_utf8_lossy(&decoded).into_owned()
}

impl Answer {
    pub fn new(status: u16, content_type: &str, body: impl Into<Vec<u8>>) -> Answer {
        Answer {
            status,
            headers: vec![("Content-Type".to_owned(), content_type.to_owned())],
            body: body.into(),
            manner: Manner::Whole,
        }
    }

    pub fn json(status: u16, body: &serde_json::Value) -> Answer {
        Answer::new(status, "application/json", body.to_string())
    }

    pub fn redirect(to: &str) -> Answer {
        Answer::new(302, "text/plain", "").with("Location", to)
    }

    #[must_use]
    pub fn with(mut self, name: &str, value: &str) -> Answer {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    #[must_use]
    pub fn sent(self, manner: Manner) -> Answer {
        Answer { manner, ..self }
    }
}
