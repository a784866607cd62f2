//! The requests behind [`GitHub`]: one place for limits, retries, redirects, pages and what is kept of answers.
//!
//! Called by everything in `github` that reads or writes. Reads are tried again, follow redirects within the interface,
//! and are answered from memory where GitHub says that nothing has changed. Writes are sent once; only what GitHub
//! refused because of a limit is sent again, since nothing was done then.

use std::sync::Arc;
use std::time::Duration;

use reqwest::{Method, Url};
use serde_json::Value;
use tokio::sync::Semaphore;

use super::backend::{Answered, Asked, Backend};
use super::cache::Cache;
use super::fault::GitHubFault;
use super::pause::Pause;
use crate::error::Error;
use crate::outbound::Base;
use crate::said;

/// How many reads are under way at once, and how many writes.
const READS: usize = 4;
const WRITES: usize = 1;

/// How often a read is tried that GitHub could not answer.
const ATTEMPTS: u32 = 3;

/// How often a request is sent that a limit keeps from being done.
const LIMITED: u32 = 4;

/// How many redirects of a read are followed.
const REDIRECTS: usize = 3;

/// How many entries a page of a listing is asked for.
pub(super) const PER_PAGE: usize = 100;

/// What all clones of a client share.
pub(super) struct Client {
    pub(super) backend: Backend,
    pub(super) base: Base,
    pub(super) pause: Pause,
    cache: Cache,
    reads: Semaphore,
    writes: Semaphore,
}

/// A read that was answered.
#[derive(Clone, Debug)]
pub(super) struct Got {
    pub(super) value: Value,
    pub(super) next: Option<String>,
    /// How many bytes it was.
    bytes: usize,
}

/// How much of a listing is read.
#[derive(Clone, Copy, Debug)]
pub(super) struct Caps {
    pub(super) pages: usize,
    pub(super) bytes: usize,
}

/// A listing, as far as it was read.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Listing {
    pub(super) items: Vec<Value>,
    /// Why there may be more, if there may.
    pub(super) cut: Option<String>,
}

impl Client {
    pub(super) fn new(backend: Backend, base: Base, pause: Pause) -> Arc<Client> {
        Arc::new(Client {
            backend,
            base,
            pause,
            cache: Cache::default(),
            reads: Semaphore::new(READS),
            writes: Semaphore::new(WRITES),
        })
    }

    /// The address of something, with its query.
    pub(super) fn address(&self, path: &str) -> Url {
        let (path, query) = path.split_once('?').unwrap_or((path, ""));
        let mut url = self.base.join(path);
        url.set_query((!query.is_empty()).then_some(query));
        url
    }

    /// Reads one thing. `what` is what it is called in errors.
    pub(super) async fn get(&self, path: &str, what: &str) -> Result<Got, Error> {
        self.get_at(self.address(path), what).await
    }

    /// Reads one thing that need not be there.
    pub(super) async fn find(&self, path: &str, what: &str) -> Result<Option<Got>, Error> {
        match self.get(path, what).await {
            Ok(got) => Ok(Some(got)),
            Err(Error::GitHub {
                fault: GitHubFault::NotFound,
                ..
            }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    async fn get_at(&self, url: Url, what: &str) -> Result<Got, Error> {
        let mut url = url;
        for _ in 0..=REDIRECTS {
            let answered = self.read(&url, what).await?;
            let location = match answered.status {
                200..=299 => return self.got(answered, what),
                301 | 302 | 307 | 308 => answered.heads.location.clone(),
                _ => return Err(self.fault(what, &answered)),
            };
            let next = location.and_then(|to| url.join(&to).ok());
            url = match next {
                Some(next) if self.base.covers(&next) => next,
                _ => return Err(self.fault(what, &answered)),
            };
        }
        Err(unreadable(
            what,
            format!("it redirects more than {REDIRECTS} times"),
        ))
    }

    fn got(&self, answered: Answered, what: &str) -> Result<Got, Error> {
        let value = serde_json::from_slice(&answered.body)
            .map_err(|error| unreadable(what, format!("it is no JSON: {error}")))?;
        Ok(Got {
            value,
            next: answered.heads.next,
            bytes: answered.body.len(),
        })
    }

    /// Reads all pages of a listing. Where it is an object, `key` is the list in it. What fails on the first page is
    /// an error; what fails later cuts the listing off, and that is told with what there is.
    pub(super) async fn pages(
        &self,
        path: &str,
        key: Option<&str>,
        caps: Caps,
        what: &str,
    ) -> Result<Listing, Error> {
        let mut listing = Listing::default();
        let mut bytes = 0;
        let mut next = Some(self.address(path));
        let mut page = 0;
        while let Some(url) = next {
            if page == caps.pages || bytes > caps.bytes {
                let read = listing.items.len();
                listing.cut = Some(format!("there are more than the {read} that are read"));
                break;
            }
            page += 1;
            let read = self.get_at(url, what).await;
            let read = read.and_then(|got| entries(got, key, what));
            let (items, address) = match read {
                Ok((items, size, address)) => {
                    bytes += size;
                    (items, address)
                }
                Err(error) if page == 1 => return Err(error),
                Err(error) => {
                    listing.cut = Some(format!("page {page} is missing: {error}"));
                    break;
                }
            };
            listing.items.extend(items);
            next = match address.map(|address| self.page(&address)) {
                None => None,
                Some(Some(url)) => Some(url),
                Some(None) => {
                    listing.cut =
                        Some(format!("page {} is said to be on another server", page + 1));
                    None
                }
            };
        }
        Ok(listing)
    }

    /// The address of a further page, if it is one of this interface.
    pub(super) fn page(&self, address: &str) -> Option<Url> {
        let url = Url::parse(address).ok()?;
        self.base.covers(&url).then_some(url)
    }

    /// Reads one page of a listing.
    pub(super) async fn one_page(
        &self,
        url: Url,
        what: &str,
    ) -> Result<(Vec<Value>, Option<String>), Error> {
        let got = self.get_at(url, what).await?;
        entries(got, None, what).map(|(items, _, next)| (items, next))
    }

    /// Sends something, once. Gives what was answered, whatever its status.
    pub(super) async fn send(
        &self,
        method: Method,
        path: &str,
        body: &Value,
    ) -> Result<Answered, Error> {
        let asked = Asked {
            method,
            url: self.address(path),
            body: Some(body.to_string().into_bytes()),
            etag: None,
        };
        self.within_limits(&asked, path).await
    }

    /// One read, tried again where GitHub could not answer.
    async fn read(&self, url: &Url, what: &str) -> Result<Answered, Error> {
        let mut asked = Asked {
            method: Method::GET,
            url: url.clone(),
            body: None,
            etag: self.cache.etag(url),
        };
        let mut attempt = 1;
        loop {
            let answered = self.within_limits(&asked, what).await;
            let again = match &answered {
                Ok(answered) if answered.status == 304 => match self.cache.get(url) {
                    Some(kept) => return Ok(kept),
                    // It was dropped meanwhile, or never there: asked for as if nothing were known.
                    None => {
                        asked.etag = None;
                        true
                    }
                },
                Ok(answered) => matches!(answered.status, 500 | 502 | 503 | 504),
                Err(error) => matches!(
                    error,
                    Error::Timeout { .. } | Error::Connect { .. } | Error::Broken { .. }
                ),
            };
            if !again || attempt == ATTEMPTS {
                if let Ok(answered) = &answered {
                    self.cache.keep(url, answered);
                }
                return answered;
            }
            self.pause
                .tell(&format!("{what}: GitHub did not answer, trying again"));
            tokio::time::sleep(Duration::from_secs(1 << attempt)).await;
            attempt += 1;
        }
    }

    /// Sends a request when the pause lets it, and again after a limit.
    async fn within_limits(&self, asked: &Asked, what: &str) -> Result<Answered, Error> {
        let limited = |fault| Error::GitHub {
            what: what.to_owned(),
            fault,
        };
        let lane = match asked.method == Method::GET {
            true => &self.reads,
            false => &self.writes,
        };
        let mut tries = 0;
        loop {
            self.pause.pass().await.map_err(limited)?;
            let leave = lane.acquire().await;
            if self.pause.left().is_some() {
                continue;
            }
            let answered = self.backend.answer(asked).await?;
            drop(leave);
            let strikes = self.pause.strikes();
            let limit = answered
                .heads
                .limit(answered.status, &answered.body, strikes);
            let refused = matches!(answered.status, 403 | 429);
            if let Some(limit) = limit {
                self.pause.begin(limit, refused);
            } else {
                self.pause.calm();
            }
            if limit.is_none() || !refused {
                return Ok(answered);
            }
            tries += 1;
            if tries == LIMITED {
                let until = super::moment::now() + limit.map_or(0, |limit| limit.seconds);
                let secondary = limit.is_some_and(|limit| limit.secondary);
                return Err(limited(GitHubFault::Limited { until, secondary }));
            }
        }
    }

    /// What an answer means that is no success.
    pub(super) fn fault(&self, what: &str, answered: &Answered) -> Error {
        let body = String::from_utf8_lossy(&answered.body);
        let body = self.backend.hide(&body);
        Error::GitHub {
            what: what.to_owned(),
            fault: GitHubFault::of(answered.status, &answered.heads, body.as_bytes()),
        }
    }
}

/// The entries of a page, its size in bytes, and the address of the next.
type Page = (Vec<Value>, usize, Option<String>);

fn entries(got: Got, key: Option<&str>, what: &str) -> Result<Page, Error> {
    let list = match (key, got.value) {
        (None, list) => list,
        (Some(key), mut object) => object.get_mut(key).map(Value::take).unwrap_or_default(),
    };
    match list {
        Value::Array(items) => Ok((items, got.bytes, got.next)),
        _ => Err(unreadable(what, "it is no list".to_owned())),
    }
}

/// An answer that is not what the interface describes.
pub(super) fn unreadable(what: &str, problem: String) -> Error {
    Error::GitHub {
        what: what.to_owned(),
        fault: GitHubFault::Unreadable {
            problem: said::short(&problem),
        },
    }
}
