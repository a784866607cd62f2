//! Names to addresses, with the judgement in between: a connection is made to the very addresses that were judged.
//!
//! Given to the HTTP client as its resolver, so that no look-up happens that is not judged, and none happens twice
//! for one connection: a name that answers differently the next time gains nothing by it.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use futures::future::BoxFuture;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};

use super::address::{Reach, reach};
use crate::error::Error;

/// The most addresses of one name that are tried.
const MAX_ADDRESSES: usize = 16;

/// Looks names up. The system's resolver does unless [`OutboundSettings`](crate::OutboundSettings) brings another.
pub trait Lookup: Send + Sync + 'static {
    /// The addresses of a name.
    fn lookup(&self, name: String) -> BoxFuture<'static, io::Result<Vec<IpAddr>>>;
}

/// The system's resolver.
pub(crate) struct SystemLookup;

impl Lookup for SystemLookup {
    fn lookup(&self, name: String) -> BoxFuture<'static, io::Result<Vec<IpAddr>>> {
        Box::pin(async move {
            let found = tokio::net::lookup_host((name.as_str(), 0)).await?;
            Ok(found.map(|address| address.ip()).collect())
        })
    }
}

/// Which addresses may be connected to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Allowed {
    /// Those of the internet: for addresses from a model, and where a redirect leads.
    Public,
    /// Those of one's own networks too: for servers that configuration names.
    Own,
}

/// The resolver of one HTTP client.
#[derive(Clone)]
pub(crate) struct Judging {
    pub(crate) lookup: Arc<dyn Lookup>,
    pub(crate) allowed: Allowed,
    /// Host names of proxies, which are mostly in one's own network.
    pub(crate) proxies: Arc<[String]>,
}

impl Judging {
    /// The addresses of a name, if all of them may be connected to. One that may not spoils the others: no honest
    /// name has both kinds.
    pub(crate) async fn judged(&self, name: &str) -> Result<Vec<IpAddr>, Error> {
        let unresolved = |problem: String| Error::Unresolved {
            host: name.to_owned(),
            problem,
        };
        let found = self.lookup.lookup(name.to_owned()).await;
        let mut found = found.map_err(|error| unresolved(error.to_string()))?;
        if found.is_empty() {
            return Err(unresolved("the name has no address".to_owned()));
        }
        let proxy = self.proxies.iter().any(|proxy| proxy == name);
        for address in &found {
            let why = match reach(*address) {
                _ if proxy => continue,
                Reach::Public => continue,
                Reach::Own(_) if self.allowed == Allowed::Own => continue,
                Reach::Own(why) | Reach::Never(why) => why,
            };
            return Err(Error::Forbidden {
                host: name.to_owned(),
                why,
            });
        }
        found.truncate(MAX_ADDRESSES);
        Ok(found)
    }
}

impl Resolve for Judging {
    fn resolve(&self, name: Name) -> Resolving {
        let judging = self.clone();
        Box::pin(async move {
            let found = judging.judged(name.as_str()).await?;
            let addresses = found.into_iter().map(|ip| SocketAddr::new(ip, 0));
            Ok(Box::new(addresses) as Addrs)
        })
    }
}
