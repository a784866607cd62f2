//! A stand-in for GitHub: the world of the rehearsal behind a server, with tokens, hourly limits, and faults by
//! configuration.

use super::{Answer, Seen, StandIn};
use serde_json::{Value, json};
use std::sync::{Arc, Mutex, PoisonError};

#[path = "../../src/github/world.rs"]
mod world;

use world::Ask;
pub use world::World;

/// The token of the user `keeper`, who may label, of `deputy`, who may too, and the moment at which things are written.
pub const TOKEN: &str = "ghp_keeper_0123456789";
pub const OTHER_TOKEN: &str = "ghp_deputy_0123456789";
pub const NOW: &str = "2026-12-01T00:00:00Z";

/// What a request is answered instead of what is so.
pub type Fault = Box<dyn Fn(&Seen, usize) -> Option<Answer> + Send + Sync>;

/// What an answer becomes after what it is about was done.
pub type After = Box<dyn Fn(&Seen, Answer) -> Answer + Send + Sync>;

/// A server with a world behind it.
pub struct GitHub {
    server: StandIn,
    world: Arc<Mutex<World>>,
}

impl GitHub {
    /// A server for this world.
    pub fn start(described: Value) -> GitHub {
        GitHub::with(described, Box::new(|_, _| None))
    }

    /// One whose answers this replaces: it is given the request and how many came before it. What a replaced answer
    /// was about is not done.
    pub fn with(described: Value, fault: Fault) -> GitHub {
        GitHub::behind(described, fault, Box::new(|_, answer| answer))
    }

    /// One whose answers are changed after what they are about was done, besides.
    pub fn behind(described: Value, fault: Fault, after: After) -> GitHub {
        let shared = Arc::new(Mutex::new(World::new(described.clone(), "")));
        let (own, count) = (shared.clone(), Mutex::new(0));
        let server = StandIn::start(move |seen| {
            let before = {
                let mut count = count.lock().unwrap_or_else(PoisonError::into_inner);
                *count += 1;
                *count - 1
            };
            if let Some(answer) = fault(seen, before) {
                return answer;
            }
            let mut world = own.lock().unwrap_or_else(PoisonError::into_inner);
            let answer = answer(&mut world, seen);
            drop(world);
            after(
                seen,
                answer.with(
                    "X-RateLimit-Remaining",
                    &5_000_usize.saturating_sub(before).to_string(),
                ),
            )
        });
        *shared.lock().unwrap_or_else(PoisonError::into_inner) =
            World::new(described, &server.url());
        GitHub {
            server,
            world: shared,
        }
    }

    /// The address of the interface.
    pub fn url(&self) -> String {
        self.server.url()
    }

    /// What it was asked so far.
    pub fn seen(&self) -> Vec<Seen> {
        self.server.seen()
    }

    /// What it was asked by this method, as `path` and body.
    pub fn sent(&self, method: &str) -> Vec<(String, Value)> {
        let seen = self.seen().into_iter().filter(|seen| seen.method == method);
        seen.map(|seen| (seen.path().to_owned(), seen.json().unwrap_or_default()))
            .collect()
    }

    /// Looks at the world, or changes it.
    pub fn world<T>(&self, work: impl FnOnce(&mut World) -> T) -> T {
        work(&mut self.world.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// What the world answers to whoever has the token.
fn answer(world: &mut World, seen: &Seen) -> Answer {
    let viewer = match seen.header("authorization") {
        None => None,
        Some(token) if token.strip_prefix("Bearer ") == Some(TOKEN) => Some("keeper"),
        Some(token) if token.strip_prefix("Bearer ") == Some(OTHER_TOKEN) => Some("deputy"),
        Some(_) => return Answer::json(401, &json!({"message": "Bad credentials"})),
    };
    let reply = world.answer(&Ask {
        method: &seen.method,
        target: &seen.target,
        viewer,
        etag: seen.header("if-none-match"),
        body: &seen.body,
        now: NOW,
    });
    let mut answer = match reply.body {
        // What has no body has no type of one.
        Value::Null => Answer {
            headers: Vec::new(),
            ..Answer::new(reply.status, "application/json", "")
        },
        body => Answer::json(reply.status, &body),
    };
    answer.headers.extend(reply.headers);
    answer
}

/// A world with one repository, `acme/lamp`: issue 7 with a linked pull request whose checks failed, issue 8 that says
/// little, a closed one, and the labels `bug` and `needs-triage`.
pub fn lamp() -> Value {
    let sha = "a".repeat(40);
    json!({
        "users": [{"id": 41, "login": "keeper"}, {"id": 42, "login": "deputy"}],
        "moved": {"acme/candle": 1},
        "repositories": [{
            "id": 1, "owner": "acme", "name": "lamp", "permissions": {"triage": true},
            "labels": ["bug", "needs-triage"],
            "files": {".github/CODEOWNERS": "* @acme/light\n"},
            "pulls": [{
                "id": 90, "number": 9, "title": "Brighter", "user": "ida", "state": "open", "sha": sha,
                "updated_at": "2026-11-02T10:00:00Z",
                "checks": [{"name": "test", "conclusion": "failure"}],
                "statuses": [{"context": "lint", "state": "success"}],
            }],
            "issues": [
                {
                    "id": 70, "number": 7, "title": "The lamp flickers", "body": "It flickers.\r\nSince 2.1 — ☀.",
                    "user": "otto", "labels": ["bug"], "updated_at": "2026-11-03T10:00:00Z",
                    "comments": [
                        {"id": 700, "user": "ida", "body": "Which bulb?", "author_association": "MEMBER"},
                        {"id": 701, "user": null, "body": "The old one."},
                    ],
                    "events": [
                        {"event": "cross-referenced", "actor": "ida", "pull": 9},
                        {"event": "labeled", "actor": "ida", "label": "bug"},
                    ],
                },
                {"id": 80, "number": 8, "title": "Dark", "body": "", "user": "otto", "updated_at": "2026-11-04T10:00:00Z"},
                {
                    "id": 50, "number": 5, "title": "It hums", "body": "A hum.", "user": "otto", "state": "closed",
                    "updated_at": "2026-10-01T10:00:00Z", "closed_at": "2026-10-01T10:00:00Z",
                    "comments": [
                        {"id": 500, "user": "otto", "body": "Louder today.", "created_at": "2026-09-30T10:00:00Z"},
                        {
                            "id": 501, "user": "ida", "body": "A loose coil: tighten it.",
                            "author_association": "OWNER", "created_at": "2026-10-01T09:59:00Z",
                        },
                    ],
                    "events": [{"event": "closed", "actor": "ida", "created_at": "2026-10-01T10:00:00Z"}],
                },
            ],
        }],
    })
}
