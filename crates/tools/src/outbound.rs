//! [`Outbound`]: the only way from here to another machine.
//!
//! Every tool of this crate sends through it, and it knows none of them. It has two doors: what a model wrote or a
//! server redirects to leads to the public internet only, over `https`, and carries nothing of ours; what
//! configuration names ([`Base`]) may be anywhere and may be sent secrets. Cookies, password files and the
//! environment's proxies do not exist here. The parts: `target` (how an address must look), `address` (where one
//! leads), `resolve` (the look-up in between), `unpack` (bodies up to a limit).

mod address;
mod client;
mod resolve;
mod target;
mod unpack;

use std::sync::Arc;
use std::time::Duration;

use reqwest::header::{
    ACCEPT_ENCODING, CONTENT_ENCODING, CONTENT_TYPE, HeaderMap, LOCATION, RETRY_AFTER,
};
use reqwest::{Client, Method, Response, StatusCode, Url};

use crate::error::Error;
pub use client::{OutboundSettings, Proxies};
use resolve::Judging;
pub use resolve::Lookup;
pub use target::Base;
use target::{check_public, parse};
pub(crate) use target::{is_own_machine, shown};
use unpack::{ACCEPTED, Unpacking, Unreadable};

/// How long a whole exchange may take unless something else is said: shorter than a tool may run, so that the model
/// reads what was slow.
pub(crate) const DEFAULT_TOTAL: Duration = Duration::from_secs(20);

/// How many bytes of an answer are read, unpacked, unless something else is said.
pub(crate) const DEFAULT_BYTES: usize = 4 << 20;

/// How many redirects are followed.
const MAX_REDIRECTS: usize = 5;

/// The guard of everything that leaves. Cloning it is cheap; the clones share their connections.
///
/// ```no_run
/// # async fn fetch() -> Result<(), paraph_tools::Error> {
/// use paraph_tools::{Outbound, OutboundSettings};
/// let outbound = Outbound::new(&OutboundSettings::default())?;
/// let page = outbound.fetch("https://www.rust-lang.org/").await?;
/// println!("{} bytes from {}", page.body.len(), page.url);
/// let error = outbound.fetch("https://169.254.169.254/latest/meta-data/").await.unwrap_err();
/// assert!(error.to_string().contains("may not be reached"));
/// # Ok(()) }
/// ```
#[derive(Clone)]
pub struct Outbound {
    doors: Arc<Doors>,
}

struct Doors {
    public: Client,
    configured: Client,
    streaming: Client,
    /// What judges names before a proxy is asked for them; nothing where there is no proxy.
    before_proxy: Option<Judging>,
    /// What others may name although it is not public.
    allowed: Vec<Base>,
}

impl Doors {
    /// Where an address that others named may be sent through, if through any.
    fn judge(&self, url: &mut Url) -> Result<Door, Error> {
        if self.allowed.iter().any(|base| base.covers(url)) {
            return Ok(Door::Configured);
        }
        check_public(url)?;
        Ok(Door::Public)
    }
}

/// What came back, whatever its status.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fetched {
    /// The status.
    pub status: u16,
    /// Where it came from in the end, after redirects.
    pub url: String,
    /// What the server says it is, such as `text/html; charset=utf-8`; empty if it says nothing.
    pub content_type: String,
    /// When to try again, as the server said it: seconds or a date.
    pub retry_after: Option<String>,
    /// The body, unpacked.
    pub body: Vec<u8>,
}

/// An answer with its headers, whatever its status.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: HeaderMap,
    /// The body, unpacked.
    pub(crate) body: Vec<u8>,
}

/// A request to a server that configuration names.
#[derive(Debug)]
pub(crate) struct Request {
    pub(crate) method: Method,
    pub(crate) url: Url,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Option<Vec<u8>>,
    /// How long the whole exchange may take.
    pub(crate) total: Duration,
    /// How many bytes of the answer are read, unpacked.
    pub(crate) bytes: usize,
}

impl Request {
    /// With the default limits, no header and no body.
    pub(crate) fn new(method: Method, url: Url) -> Request {
        Request {
            method,
            url,
            headers: HeaderMap::new(),
            body: None,
            total: DEFAULT_TOTAL,
            bytes: DEFAULT_BYTES,
        }
    }
}

/// Who named the address of the next request.
#[derive(Clone, Copy, PartialEq)]
enum Named {
    /// A model, or a server by a redirect: to the public internet, or to what is allowed expressly.
    ByOthers,
    /// Configuration.
    ByUs,
}

/// Through which door a request goes.
#[derive(Clone, Copy, PartialEq)]
enum Door {
    Public,
    Configured,
}

impl Outbound {
    /// A guard with these settings.
    ///
    /// # Errors
    /// [`Error::Config`] if a proxy or a certificate cannot be used.
    pub fn new(settings: &OutboundSettings) -> Result<Outbound, Error> {
        client::doors(settings).map(|doors| Outbound {
            doors: Arc::new(doors),
        })
    }

    /// Fetches an address that a model wrote: `GET`, from the public internet only, redirects followed and judged
    /// one by one, up to 4 MiB in 20 seconds.
    ///
    /// # Errors
    /// What kept it from being fetched; a status that is no success is no error here.
    pub async fn fetch(&self, address: &str) -> Result<Fetched, Error> {
        let request = Request::new(Method::GET, parse(address)?);
        self.exchange(request, Named::ByOthers).await
    }

    /// Sends a request to a server that configuration names. Its redirects are followed within the same origin,
    /// and to others as [`Outbound::fetch`] would go there, without any header of the request.
    pub(crate) async fn send(&self, request: Request) -> Result<Fetched, Error> {
        self.exchange(request, Named::ByUs).await
    }

    /// Sends a request to a server that configuration names, once, and gives the answer with its headers. A redirect
    /// is an answer like any other: whoever asks decides about it.
    pub(crate) async fn answer(&self, request: Request) -> Result<Answer, Error> {
        let host = shown(&request.url);
        let (after, bytes) = (request.total, request.bytes);
        let whole = async {
            let response = self.once(&request, Door::Configured).await?;
            let headers = response.headers().clone();
            let Fetched { status, body, .. } = read(response, request.url, bytes).await?;
            Ok(Answer {
                status,
                headers,
                body,
            })
        };
        let ended = tokio::time::timeout(after, whole).await;
        ended.unwrap_or(Err(Error::Timeout { host, after }))
    }

    /// A client for servers that configuration names and that answer in streams: the guard's look-ups and no
    /// redirects, but no limit on how long nothing comes. Whoever uses it has limits of their own.
    pub(crate) fn streaming(&self) -> Client {
        self.doors.streaming.clone()
    }

    async fn exchange(&self, request: Request, named: Named) -> Result<Fetched, Error> {
        let host = shown(&request.url);
        let (after, bytes) = (request.total, request.bytes);
        let whole = async {
            let (response, url) = self.follow(request, named).await?;
            read(response, url, bytes).await
        };
        let ended = tokio::time::timeout(after, whole).await;
        ended.unwrap_or(Err(Error::Timeout { host, after }))
    }

    /// Sends the request, and again wherever the answer redirects to: each address is judged as the first one was.
    async fn follow(&self, mut request: Request, named: Named) -> Result<(Response, Url), Error> {
        let mut named = named;
        let mut from = None;
        for _ in 0..=MAX_REDIRECTS {
            let door = match named {
                Named::ByUs => Door::Configured,
                Named::ByOthers => {
                    let judged = self.doors.judge(&mut request.url);
                    // Where a server leads is no fault of whoever named the server.
                    judged.map_err(|error| match from.take() {
                        None => error,
                        Some(host) => Error::Redirect {
                            host,
                            problem: format!("to where it is not followed: {error}"),
                        },
                    })?
                }
            };
            let response = self.once(&request, door).await?;
            let Some(location) = redirect(&response) else {
                return Ok((response, request.url));
            };
            let refuse = |problem: &str| Error::Redirect {
                host: shown(&request.url),
                problem: problem.to_owned(),
            };
            if ![Method::GET, Method::HEAD].contains(&request.method) {
                return Err(refuse(
                    "a request that is sent once only; configure the address it redirects to",
                ));
            }
            let next = location
                .and_then(|location| request.url.join(&location).ok())
                .ok_or_else(|| refuse("to what is no address"))?;
            if named == Named::ByUs && next.origin() != request.url.origin() {
                named = Named::ByOthers;
                request.headers.clear();
            }
            from = Some(shown(&request.url));
            request.url = next;
        }
        Err(Error::Redirect {
            host: shown(&request.url),
            problem: format!("more than {MAX_REDIRECTS} times"),
        })
    }

    /// Sends one request and gives its answer, whose body is still on its way. Follows no redirect.
    async fn once(&self, request: &Request, door: Door) -> Result<Response, Error> {
        if let (Door::Public, Some(judging)) = (door, &self.doors.before_proxy) {
            judging.before_proxy(&request.url).await?;
        }
        let client = match door {
            Door::Public => &self.doors.public,
            Door::Configured => &self.doors.configured,
        };
        let mut call = client
            .request(request.method.clone(), request.url.clone())
            .headers(request.headers.clone())
            .header(ACCEPT_ENCODING, ACCEPTED);
        if let Some(body) = &request.body {
            call = call.body(body.clone());
        }
        let sent = call.send().await;
        sent.map_err(|error| not_reached(&error, &request.url))
    }
}

impl std::fmt::Debug for Outbound {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Outbound").finish_non_exhaustive()
    }
}

impl Fetched {
    /// The answer if its status is a success; else an error with what the server said of it, as far as that is
    /// short and no markup. `hide` takes secrets out of the server's words.
    pub(crate) fn success(self, hide: impl Fn(&str) -> String) -> Result<Fetched, Error> {
        if (200..300).contains(&self.status) {
            return Ok(self);
        }
        Err(Error::Status {
            host: self.host(),
            status: self.status,
            said: hide(&crate::said::reason(&self.body)),
            retry_after: self.retry_after,
        })
    }

    /// The body as JSON.
    pub(crate) fn json(&self) -> Result<serde_json::Value, Error> {
        let problem = match serde_json::from_slice(&self.body) {
            Ok(value) => return Ok(value),
            Err(_) if self.body.trim_ascii().is_empty() => "it is empty".to_owned(),
            Err(error) => match self.content_type.split(';').next() {
                Some(kind) if !kind.is_empty() && !kind.contains("json") => {
                    format!("it is {} and no JSON", crate::said::short(kind))
                }
                _ => format!("it is no JSON: {error}"),
            },
        };
        Err(Error::Broken {
            host: self.host(),
            problem,
        })
    }

    pub(crate) fn host(&self) -> String {
        Url::parse(&self.url).map_or_else(|_| self.url.clone(), |url| shown(&url))
    }
}

/// Where an answer redirects to, if it does; `Some(None)` if it does not say where.
fn redirect(response: &Response) -> Option<Option<String>> {
    let redirects = [
        StatusCode::MOVED_PERMANENTLY,
        StatusCode::FOUND,
        StatusCode::SEE_OTHER,
        StatusCode::TEMPORARY_REDIRECT,
        StatusCode::PERMANENT_REDIRECT,
    ];
    redirects
        .contains(&response.status())
        .then(|| text(response.headers(), LOCATION.as_str()))
}

async fn read(mut response: Response, url: Url, limit: usize) -> Result<Fetched, Error> {
    let host = shown(&url);
    let broken = |problem: String| Error::Broken {
        host: host.clone(),
        problem,
    };
    let unreadable = |why| match why {
        Unreadable::TooLarge => Error::TooLarge {
            host: host.clone(),
            limit,
        },
        Unreadable::Damaged(problem) => broken(problem),
    };
    let encoding = text(response.headers(), CONTENT_ENCODING.as_str()).unwrap_or_default();
    let mut body = Unpacking::new(&encoding, limit).map_err(unreadable)?;
    while let Some(piece) = response
        .chunk()
        .await
        .map_err(|error| broken(root_cause(&error)))?
    {
        body.push(&piece).map_err(unreadable)?;
    }
    let headers = response.headers();
    let retry_after = text(headers, RETRY_AFTER.as_str());
    Ok(Fetched {
        status: response.status().as_u16(),
        url: url.to_string(),
        content_type: text(headers, CONTENT_TYPE.as_str()).unwrap_or_default(),
        retry_after: retry_after.map(|when| crate::said::short(&when)),
        body: body.finish().map_err(unreadable)?,
    })
}

fn text(headers: &HeaderMap, name: &str) -> Option<String> {
    let value = headers.get(name)?;
    Some(String::from_utf8_lossy(value.as_bytes()).into_owned())
}

/// No answer began. If that was the guard's own judgement of a name, it is somewhere below the client's errors.
fn not_reached(error: &reqwest::Error, url: &Url) -> Error {
    let mut cause: Option<&(dyn std::error::Error + 'static)> = Some(error);
    while let Some(inner) = cause {
        if let Some(own) = inner.downcast_ref::<Error>() {
            return own.clone();
        }
        cause = inner.source();
    }
    Error::Connect {
        host: shown(url),
        problem: match error.is_timeout() {
            true => "it took too long".to_owned(),
            false => root_cause(error),
        },
        // What failed while the connection was made had nothing to send the request through.
        sent: !error.is_connect(),
    }
}

/// The innermost error: the outer ones repeat the address, which may contain a secret.
fn root_cause(error: &reqwest::Error) -> String {
    let mut cause: &dyn std::error::Error = error;
    while let Some(inner) = cause.source() {
        cause = inner;
    }
    crate::said::short(&cause.to_string())
}

#[cfg(test)]
mod tests;
