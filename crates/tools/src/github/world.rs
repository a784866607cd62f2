//! A small GitHub of our own: repositories, issues, comments, labels, pull requests and checks in memory, which answer
//! the requests of the REST interface that the client makes.
//!
//! The rehearsal runs on it (`local`), and so does the server of the tests, which takes this file by its path: so it
//! needs the standard library and `serde_json` only, and knows nothing of the client. It is honest where it counts: it
//! keeps what it is sent, byte for byte, sends the same twice if asked twice, and makes a label that it does not have,
//! as GitHub does. The parts: `render` (GitHub's objects), `routes` (which request is which).

#[path = "world/render.rs"]
mod render;
#[path = "world/routes.rs"]
mod routes;

use serde_json::{Value, json};

/// A request.
#[derive(Clone, Debug, Default)]
pub struct Ask<'a> {
    /// The method.
    pub method: &'a str,
    /// Path and query, without the host, with a slash at the beginning.
    pub target: &'a str,
    /// The login of whoever asks, if they have signed in.
    pub viewer: Option<&'a str>,
    /// The tag that whoever asks has seen.
    pub etag: Option<&'a str>,
    /// The body.
    pub body: &'a [u8],
    /// The moment, as RFC 3339.
    pub now: &'a str,
}

/// An answer.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Reply {
    /// The status.
    pub status: u16,
    /// Headers beside the content type.
    pub headers: Vec<(String, String)>,
    /// The body, as JSON; null for none.
    pub body: Value,
}

/// Everything there is.
///
/// It is made from a description: `users` with `id` and `login`; `repositories` with `id`, `owner`, `name`,
/// `permissions`, `labels`, `files`, `pulls` and `issues`, which have `comments` and `events`; `moved` repositories.
#[derive(Clone, Debug)]
pub struct World {
    all: Value,
    /// The address of the interface, as its objects name it.
    base: String,
    /// What was written since it was made, in the order in which it was.
    posts: Vec<Value>,
}

impl World {
    /// From a description, at this address.
    pub fn new(described: Value, base: &str) -> World {
        World {
            all: described,
            base: base.trim_end_matches('/').to_owned(),
            posts: Vec::new(),
        }
    }

    /// What was written since it was made.
    pub fn posts(&self) -> &[Value] {
        &self.posts
    }

    /// Something of it, to be changed by a test: a pointer as in [`Value::pointer_mut`].
    pub fn at(&mut self, pointer: &str) -> Option<&mut Value> {
        self.all.pointer_mut(pointer)
    }

    /// Does again what was written before, as [`World::posts`] gives it. Says no to what it cannot read.
    pub fn again(&mut self, post: &Value) -> bool {
        let done = self.apply(post).is_some();
        if done {
            self.posts.push(post.clone());
        }
        done
    }

    /// The users, by login.
    fn user(&self, login: &str) -> Value {
        let users = self.all["users"].as_array().into_iter().flatten();
        let mut named = users.filter(|user| user["login"] == *login);
        named.next().cloned().unwrap_or(Value::Null)
    }

    fn repositories(&self) -> impl Iterator<Item = &Value> {
        self.all["repositories"].as_array().into_iter().flatten()
    }

    /// The place of a repository, by its name.
    fn place(&self, owner: &str, name: &str) -> Option<usize> {
        self.repositories().position(|repository| {
            let same = |key: &str, wanted: &str| {
                repository[key]
                    .as_str()
                    .is_some_and(|own| own.eq_ignore_ascii_case(wanted))
            };
            same("owner", owner) && same("name", name)
        })
    }

    /// Writes one thing down. What is written is kept in words of our own: `kind`, `repository` (its id), `number`
    /// or `id`, `user`, and what was sent.
    fn apply(&mut self, post: &Value) -> Option<()> {
        let id = post["repository"].as_u64()?;
        let repositories = self.all["repositories"].as_array_mut()?;
        let mut repositories = repositories.iter_mut();
        let repository = repositories.find(|repository| repository["id"] == id)?;
        match post["kind"].as_str()? {
            "comment" => {
                let issue = find_mut(repository, "issues", "number", &post["number"])?;
                issue["updated_at"] = post["created_at"].clone();
                let comment = json!({
                    "id": post["id"], "user": post["user"], "body": post["body"],
                    "created_at": post["created_at"], "updated_at": post["created_at"],
                    "author_association": "MEMBER",
                });
                pushed(issue, "comments", comment);
            }
            "edit" => {
                let issues = repository["issues"].as_array_mut()?;
                let comment = issues
                    .iter_mut()
                    .find_map(|issue| find_mut(issue, "comments", "id", &post["id"]))?;
                comment["body"] = post["body"].clone();
                comment["updated_at"] = post["created_at"].clone();
            }
            "labels" => {
                for label in post["labels"].as_array()? {
                    if !repository["labels"].as_array()?.contains(label) {
                        pushed(repository, "labels", label.clone());
                    }
                    let issue = find_mut(repository, "issues", "number", &post["number"])?;
                    let has = issue["labels"]
                        .as_array()
                        .is_some_and(|has| has.contains(label));
                    if !has {
                        pushed(issue, "labels", label.clone());
                        let event = json!({
                            "event": "labeled", "actor": post["user"], "label": label,
                            "created_at": post["created_at"],
                        });
                        pushed(issue, "events", event);
                        issue["updated_at"] = post["created_at"].clone();
                    }
                }
            }
            _ => return None,
        }
        Some(())
    }

    /// Writes something that was sent, and remembers it.
    fn write(&mut self, post: Value) -> bool {
        self.again(&post)
    }

    /// A number that no comment has.
    fn fresh(&self) -> u64 {
        let issues = self
            .repositories()
            .filter_map(|repository| repository["issues"].as_array());
        let comments = issues
            .flatten()
            .filter_map(|issue| issue["comments"].as_array());
        let ids = comments
            .flatten()
            .filter_map(|comment| comment["id"].as_u64());
        ids.max().unwrap_or(1_000) + 1
    }
}

/// The entry of a list whose `key` is this.
fn find<'v>(of: &'v Value, list: &str, key: &str, wanted: &Value) -> Option<&'v Value> {
    let mut entries = of[list].as_array()?.iter();
    entries.find(|entry| entry[key] == *wanted)
}

fn find_mut<'v>(of: &'v mut Value, list: &str, key: &str, wanted: &Value) -> Option<&'v mut Value> {
    let mut entries = of[list].as_array_mut()?.iter_mut();
    entries.find(|entry| entry[key] == *wanted)
}

/// Adds an entry to a list, which is made if there is none.
fn pushed(of: &mut Value, list: &str, entry: Value) {
    match of[list].as_array_mut() {
        Some(entries) => entries.push(entry),
        None => of[list] = json!([entry]),
    }
}
