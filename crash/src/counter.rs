//! The outside world: a server on loopback that writes down every effect it is asked for.
//!
//! It lives in the parent, so its ledger survives every kill. A request is one line of JSON, the answer
//! is a line; nothing is counted after the answer was sent. It can hold its answers back, which keeps a
//! child in the middle of an effect for as long as a test needs.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead, BufReader, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use crate::Fault;

/// One effect that was asked for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hit {
    /// Which trial.
    pub trial: String,
    /// What is to be done.
    pub effect: String,
    /// By which a repeated request is recognised; nothing asks to do it again each time.
    pub key: Option<String>,
    /// Which process of the trial asked, from 0.
    pub process: usize,
}

impl Hit {
    fn is_plain(&self, effect: &str) -> bool {
        self.key.is_none() && self.effect == effect
    }
}

#[derive(Default)]
struct World {
    hits: BTreeMap<String, Vec<Hit>>,
    /// Effects that are not answered for now where they come without a key.
    held: BTreeSet<String>,
}

#[derive(Default)]
struct Shared {
    world: Mutex<World>,
    changed: Condvar,
    over: AtomicBool,
}

impl Shared {
    fn world(&self) -> MutexGuard<'_, World> {
        self.world.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The server. It stops listening when it is dropped.
pub struct Counter {
    address: SocketAddr,
    shared: Arc<Shared>,
}

impl Counter {
    /// Listens on a free port of loopback.
    ///
    /// # Errors
    /// When no port can be had.
    pub fn start() -> Result<Counter, Fault> {
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
        Ok(Counter { address, shared })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// All that was asked for in a trial, in order.
    pub fn hits(&self, trial: &str) -> Vec<Hit> {
        self.shared
            .world()
            .hits
            .get(trial)
            .cloned()
            .unwrap_or_default()
    }

    /// Counts requests for this effect without a key, and does not answer them until it is released: so a
    /// child is caught inside the step that saves it.
    pub fn hold(&self, effect: &str) {
        self.shared.world().held.insert(effect.to_owned());
    }

    /// Answers whoever waits for this effect, and from now on everybody.
    pub fn release(&self, effect: &str) {
        self.shared.world().held.remove(effect);
        self.shared.changed.notify_all();
    }

    /// Waits until a process of a trial has asked for an effect without a key; says whether it did in time.
    pub fn wait_for(&self, trial: &str, effect: &str, process: usize, limit: Duration) -> bool {
        let until = Instant::now() + limit;
        let mut world = self.shared.world();
        loop {
            let asked = world.hits.get(trial).is_some_and(|hits| {
                hits.iter()
                    .any(|hit| hit.is_plain(effect) && hit.process == process)
            });
            let left = until.saturating_duration_since(Instant::now());
            if asked || left.is_zero() {
                return asked;
            }
            let waited = self.shared.changed.wait_timeout(world, left);
            world = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

impl Drop for Counter {
    fn drop(&mut self) {
        self.shared.over.store(true, Ordering::SeqCst);
        // Wakes the thread that accepts, so that it sees that it is over.
        let _ = TcpStream::connect(self.address);
    }
}

/// Answers one caller until it goes.
fn serve(caller: &TcpStream, shared: &Shared) {
    let mut answers = caller;
    for line in BufReader::new(caller).lines().map_while(Result::ok) {
        let Ok(hit) = serde_json::from_str::<Hit>(&line) else {
            let _ = answers.write_all(b"not a request\n");
            return;
        };
        let plain = hit.key.is_none().then(|| hit.effect.clone());
        let mut world = shared.world();
        world.hits.entry(hit.trial.clone()).or_default().push(hit);
        shared.changed.notify_all();
        while plain
            .as_ref()
            .is_some_and(|effect| world.held.contains(effect))
        {
            world = shared
                .changed
                .wait(world)
                .unwrap_or_else(PoisonError::into_inner);
        }
        drop(world);
        if answers.write_all(b"ok\n").is_err() {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ask(counter: &Counter, hit: &Hit) -> String {
        let mut stream = TcpStream::connect(counter.address()).unwrap();
        let line = serde_json::to_string(hit).unwrap() + "\n";
        stream.write_all(line.as_bytes()).unwrap();
        let mut answer = String::new();
        BufReader::new(stream).read_line(&mut answer).unwrap();
        answer
    }

    #[test]
    fn every_request_is_in_the_ledger_before_it_is_answered() {
        let counter = Counter::start().unwrap();
        let hit = Hit {
            trial: "t".to_owned(),
            effect: "pay".to_owned(),
            key: None,
            process: 0,
        };
        assert_eq!(ask(&counter, &hit), "ok\n");
        assert_eq!(ask(&counter, &hit), "ok\n");
        assert_eq!(counter.hits("t"), [hit.clone(), hit.clone()]);
        assert_eq!(counter.hits("other"), []);
        assert!(counter.wait_for("t", "pay", 0, Duration::ZERO));
        assert!(!counter.wait_for("t", "pay", 1, Duration::ZERO));
    }

    #[test]
    fn an_effect_that_is_held_is_counted_but_answered_only_when_released() {
        let counter = Counter::start().unwrap();
        counter.hold("slow");
        let hit = Hit {
            trial: "t".to_owned(),
            effect: "slow".to_owned(),
            key: None,
            process: 3,
        };
        thread::scope(|scope| {
            let asked = scope.spawn(|| ask(&counter, &hit));
            assert!(counter.wait_for("t", "slow", 3, Duration::from_secs(20)));
            assert!(!asked.is_finished());
            counter.release("slow");
            assert_eq!(asked.join().unwrap(), "ok\n");
        });
    }
}
