//! The outside world of effects: a payment service with keys, and a forum without, on loopback.
//!
//! Both live in the parent, so that what they count survives every kill. A request is one line of JSON, the answer is
//! one line. The payment service does a key once, whoever comes and how often. The forum takes every comment that
//! comes in time, and lists all there are. Both are slow now and then, so that a child dies before it has its answer, and
//! a comment is written after its author died.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};

use crate::Fault;

/// How long the forum takes before it writes a comment, in turn.
const BEFORE_MS: [u64; 4] = [0, 20, 0, 60];

/// How long either takes to answer after it has done something, in turn.
const AFTER_MS: [u64; 4] = [0, 10, 30, 0];

/// What the world is asked for. Everything belongs to a trial.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Request {
    /// Pays, once for each key.
    Pay {
        trial: String,
        key: String,
        cents: u32,
    },
    /// Asks what was paid under a key.
    Payment { trial: String, key: String },
    /// Writes a comment, unless it is later than this by now.
    Post {
        trial: String,
        author: String,
        body: String,
        by_ms: u64,
    },
    /// Asks for all comments.
    Comments { trial: String },
    /// Writes down that something was begun or refused.
    Note { trial: String, what: String },
}

/// What the world answers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Answer {
    /// It is paid, under this number.
    Paid(u64),
    /// Nothing was paid under this key.
    Unpaid,
    /// Something else was paid under this key.
    OtherAmount,
    /// The comment is there, under this number.
    Posted(u64),
    /// It came too late, and was not written.
    TooLate,
    /// All comments.
    Comments(Vec<Comment>),
    /// It is written down.
    Noted,
}

/// A comment as the forum shows it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Comment {
    pub(crate) id: u64,
    pub(crate) author: String,
    pub(crate) body: String,
}

/// A payment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Payment {
    pub(crate) id: u64,
    pub(crate) cents: u32,
    /// When its first request came.
    pub(crate) at: Instant,
}

#[derive(Default)]
struct Shared {
    payments: Mutex<BTreeMap<String, BTreeMap<String, Payment>>>,
    comments: Mutex<BTreeMap<String, Vec<Comment>>>,
    /// When each thing was noted last.
    notes: Mutex<BTreeMap<String, BTreeMap<String, Instant>>>,
    next: AtomicU64,
    over: AtomicBool,
}

/// The world. It stops listening when it is dropped.
pub(crate) struct World {
    address: SocketAddr,
    shared: Arc<Shared>,
}

impl World {
    /// Listens on a free port of loopback.
    pub(crate) fn start() -> Result<World, Fault> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        let address = listener.local_addr()?;
        let shared = Arc::new(Shared::default());
        let served = shared.clone();
        thread::spawn(move || {
            for caller in listener.incoming() {
                if served.over.load(Ordering::SeqCst) {
                    return;
                }
                let shared = served.clone();
                if let Ok(caller) = caller {
                    // A caller that was killed ends its connection, and with it the thread.
                    thread::spawn(move || serve(&caller, &shared));
                }
            }
        });
        Ok(World { address, shared })
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// What was paid in a trial, by keys.
    pub(crate) fn payments(&self, trial: &str) -> BTreeMap<String, Payment> {
        let all = locked(&self.shared.payments);
        all.get(trial).cloned().unwrap_or_default()
    }

    /// The comments of a trial, the oldest first.
    pub(crate) fn comments(&self, trial: &str) -> Vec<Comment> {
        let all = locked(&self.shared.comments);
        all.get(trial).cloned().unwrap_or_default()
    }

    /// What was noted in a trial, and when last.
    pub(crate) fn notes(&self, trial: &str) -> BTreeMap<String, Instant> {
        let all = locked(&self.shared.notes);
        all.get(trial).cloned().unwrap_or_default()
    }

    /// Writes a comment that none of our processes wrote.
    pub(crate) fn plant(&self, trial: &str, author: &str, body: &str) {
        self.shared.post(trial, (author, body), u64::MAX);
    }

    /// Forgets a trial.
    pub(crate) fn forget(&self, trial: &str) {
        locked(&self.shared.payments).remove(trial);
        locked(&self.shared.comments).remove(trial);
        locked(&self.shared.notes).remove(trial);
    }
}

impl Drop for World {
    fn drop(&mut self) {
        self.shared.over.store(true, Ordering::SeqCst);
        // Wakes the thread that accepts, so that it sees that it is over.
        let _ = TcpStream::connect(self.address);
    }
}

fn locked<T>(shared: &Mutex<T>) -> MutexGuard<'_, T> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Now, in milliseconds since the Unix epoch.
pub(crate) fn now_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| {
        u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
    })
}

/// Answers one caller until it goes.
fn serve(caller: &TcpStream, shared: &Shared) {
    let mut answers = caller;
    for line in BufReader::new(caller).lines().map_while(Result::ok) {
        let Ok(request) = serde_json::from_str::<Request>(&line) else {
            return;
        };
        let answer = shared.answer(&request);
        if matches!(answer, Answer::Paid(_) | Answer::Posted(_)) {
            shared.wait(&AFTER_MS);
        }
        let Ok(mut line) = serde_json::to_string(&answer) else {
            return;
        };
        line.push('\n');
        if answers.write_all(line.as_bytes()).is_err() {
            return;
        }
    }
}

impl Shared {
    fn answer(&self, request: &Request) -> Answer {
        match request {
            Request::Pay { trial, key, cents } => self.pay(trial, key, *cents),
            Request::Payment { trial, key } => {
                let all = locked(&self.payments);
                let known = all.get(trial).and_then(|of_trial| of_trial.get(key));
                known.map_or(Answer::Unpaid, |known| Answer::Paid(known.id))
            }
            Request::Post {
                trial,
                author,
                body,
                by_ms,
            } => {
                self.wait(&BEFORE_MS);
                self.post(trial, (author, body), *by_ms)
            }
            Request::Comments { trial } => {
                let all = locked(&self.comments);
                Answer::Comments(all.get(trial).cloned().unwrap_or_default())
            }
            Request::Note { trial, what } => {
                let mut all = locked(&self.notes);
                let of_trial = all.entry(trial.clone()).or_default();
                of_trial.insert(what.clone(), Instant::now());
                Answer::Noted
            }
        }
    }

    /// Takes as long as it is the turn of.
    fn wait(&self, turns: &[u64; 4]) {
        let turn = self.next.load(Ordering::SeqCst) as usize % turns.len();
        let ms = turns.get(turn).copied().unwrap_or(0);
        thread::sleep(Duration::from_millis(ms));
    }

    fn pay(&self, trial: &str, key: &str, cents: u32) -> Answer {
        let at = Instant::now();
        let id = self.next.fetch_add(1, Ordering::SeqCst);
        let mut all = locked(&self.payments);
        let of_trial = all.entry(trial.to_owned()).or_default();
        let known = of_trial
            .entry(key.to_owned())
            .or_insert(Payment { id, cents, at });
        match known.cents == cents {
            true => Answer::Paid(known.id),
            false => Answer::OtherAmount,
        }
    }

    fn post(&self, trial: &str, (author, body): (&str, &str), by_ms: u64) -> Answer {
        let id = self.next.fetch_add(1, Ordering::SeqCst);
        let mut all = locked(&self.comments);
        // Whoever lists the comments later than this has seen all that were written.
        if now_ms() > by_ms {
            return Answer::TooLate;
        }
        all.entry(trial.to_owned()).or_default().push(Comment {
            id,
            author: author.to_owned(),
            body: body.to_owned(),
        });
        Answer::Posted(id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ask(world: &World, request: &Request) -> Answer {
        let mut stream = TcpStream::connect(world.address()).unwrap();
        let line = serde_json::to_string(request).unwrap() + "\n";
        stream.write_all(line.as_bytes()).unwrap();
        let mut answer = String::new();
        BufReader::new(stream).read_line(&mut answer).unwrap();
        serde_json::from_str(&answer).unwrap()
    }

    #[test]
    fn a_key_is_paid_once_and_every_comment_is_written() {
        let world = World::start().unwrap();
        let pay = |key: &str, cents| {
            let (trial, key) = ("t".to_owned(), key.to_owned());
            ask(&world, &Request::Pay { trial, key, cents })
        };
        let Answer::Paid(first) = pay("k", 5) else {
            panic!("it is not paid")
        };
        assert_eq!(pay("k", 5), Answer::Paid(first));
        assert_eq!(pay("k", 6), Answer::OtherAmount);
        assert_ne!(pay("l", 5), Answer::Paid(first));
        assert_eq!(world.payments("t").len(), 2);
        assert!(world.payments("u").is_empty());

        let post = |by_ms| {
            ask(
                &world,
                &Request::Post {
                    trial: "t".to_owned(),
                    author: "ann".to_owned(),
                    body: "hi".to_owned(),
                    by_ms,
                },
            )
        };
        for _ in 0..2 {
            assert!(matches!(post(u64::MAX), Answer::Posted(_)));
        }
        assert_eq!(post(0), Answer::TooLate);
        assert_eq!(world.comments("t").len(), 2);
        world.forget("t");
        assert!(world.comments("t").is_empty() && world.payments("t").is_empty());
    }
}
