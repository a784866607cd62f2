//! The two HTTP clients behind [`Outbound`](super::Outbound), and the settings they are made from.
//!
//! Called once per guard. Both clients follow no redirect by themselves and use only the proxies they are told.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use reqwest::{Certificate, Client, ClientBuilder, NoProxy, Proxy, Url, redirect};

use super::Doors;
use super::resolve::{Allowed, Judging, Lookup, SystemLookup};
use super::target::{Base, literal};
use crate::error::Error;

/// How long nothing may arrive before an answer is given up.
const IDLE: Duration = Duration::from_secs(15);

/// This machine is reached without a proxy, whatever the settings say.
const ALWAYS_DIRECT: &str = "localhost,127.0.0.0/8,::1";

/// What the guard needs from outside. Plain data: whoever reads flags and environment fills it in.
#[derive(Clone)]
pub struct OutboundSettings {
    /// How long connecting may take.
    pub connect_timeout: Duration,
    /// Proxies; none is found by itself. A proxy looks names up by itself too: the guard judges what it finds for a
    /// name before, and cannot see what the proxy finds.
    pub proxies: Proxies,
    /// Certificate authorities to trust beside the system's, as PEM text.
    pub ca_certificates: Option<String>,
    /// Servers that a model may name although they are not on the internet: of one's own network, or of a test.
    pub allowed: Vec<Base>,
    /// What looks names up, if the system's resolver should not.
    pub lookup: Option<Arc<dyn Lookup>>,
}

impl Default for OutboundSettings {
    /// Ten seconds to connect, no proxies, the system's certificates and resolver, the internet only.
    fn default() -> Self {
        OutboundSettings {
            connect_timeout: Duration::from_secs(10),
            proxies: Proxies::default(),
            ca_certificates: None,
            allowed: Vec::new(),
            lookup: None,
        }
    }
}

impl fmt::Debug for OutboundSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OutboundSettings")
            .field("connect_timeout", &self.connect_timeout)
            .field("proxies", &self.proxies)
            .field("ca_certificates", &self.ca_certificates.is_some())
            .field("allowed", &self.allowed)
            .finish_non_exhaustive()
    }
}

/// Proxies by the scheme of the address they serve. They may contain credentials; `Debug` shows only which are set.
#[derive(Clone, Default)]
pub struct Proxies {
    /// For `http` addresses.
    pub http: Option<String>,
    /// For `https` addresses.
    pub https: Option<String>,
    /// Hosts to reach directly, with commas, as in `NO_PROXY`.
    pub no_proxy: Option<String>,
}

impl fmt::Debug for Proxies {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Proxies")
            .field("http", &self.http.is_some())
            .field("https", &self.https.is_some())
            .field("no_proxy", &self.no_proxy)
            .finish()
    }
}

pub(super) fn doors(settings: &OutboundSettings) -> Result<Doors, Error> {
    let addresses = [&settings.proxies.http, &settings.proxies.https];
    let proxies = addresses.into_iter().flatten().filter_map(|address| {
        let url = Url::parse(address)
            .or_else(|_| Url::parse(&format!("http://{address}")))
            .ok()?;
        url.host_str().map(str::to_owned)
    });
    let judging = Judging {
        lookup: settings.lookup.clone().unwrap_or(Arc::new(SystemLookup)),
        allowed: Allowed::Public,
        proxies: proxies.collect(),
    };
    let configured = Judging {
        allowed: Allowed::Own,
        ..judging.clone()
    };
    Ok(Doors {
        public: client(settings, judging.clone(), Some(IDLE))?,
        configured: client(settings, configured.clone(), Some(IDLE))?,
        streaming: client(settings, configured, None)?,
        before_proxy: (!judging.proxies.is_empty()).then_some(judging),
        allowed: settings.allowed.clone(),
    })
}

fn client(
    settings: &OutboundSettings,
    judging: Judging,
    idle: Option<Duration>,
) -> Result<Client, Error> {
    let mut builder = Client::builder()
        .no_proxy()
        .redirect(redirect::Policy::none())
        .retry(reqwest::retry::never())
        .referer(false)
        .connect_timeout(settings.connect_timeout)
        .dns_resolver(Arc::new(judging))
        .user_agent(concat!("paraph/", env!("CARGO_PKG_VERSION")));
    if let Some(idle) = idle {
        builder = builder.read_timeout(idle);
    }
    let builder = with_proxies(builder, &settings.proxies)?;
    let builder = with_authorities(builder, settings.ca_certificates.as_deref())?;
    builder
        .build()
        .map_err(|error| Error::config("HTTP client", error.to_string()))
}

fn with_proxies(mut builder: ClientBuilder, proxies: &Proxies) -> Result<ClientBuilder, Error> {
    let direct = match proxies.no_proxy.as_deref().map(str::trim) {
        None | Some("") => ALWAYS_DIRECT.to_owned(),
        Some(hosts) => format!("{ALWAYS_DIRECT},{hosts}"),
    };
    let direct = NoProxy::from_string(&direct);
    if let Some(address) = &proxies.http {
        let proxy = proxy("HTTP_PROXY", address, Proxy::http)?;
        builder = builder.proxy(proxy.no_proxy(direct.clone()));
    }
    if let Some(address) = &proxies.https {
        let proxy = proxy("HTTPS_PROXY", address, Proxy::https)?;
        builder = builder.proxy(proxy.no_proxy(direct));
    }
    Ok(builder)
}

/// A proxy over HTTP. An error says nothing of the address, which may contain a password.
fn proxy(
    setting: &str,
    address: &str,
    of: impl Fn(String) -> reqwest::Result<Proxy>,
) -> Result<Proxy, Error> {
    if let Some((scheme, _)) = address.trim().split_once("://")
        && !["http", "https"].contains(&scheme.to_ascii_lowercase().as_str())
    {
        return Err(Error::config(
            setting,
            "only http and https proxies can be used",
        ));
    }
    of(address.to_owned()).map_err(|_| Error::config(setting, "not the address of a proxy"))
}

fn with_authorities(builder: ClientBuilder, pem: Option<&str>) -> Result<ClientBuilder, Error> {
    let Some(pem) = pem else {
        return Ok(builder);
    };
    let certificates = Certificate::from_pem_bundle(pem.as_bytes())
        .map_err(|error| Error::config("CA certificates", error.to_string()))?;
    if certificates.is_empty() {
        return Err(Error::config(
            "CA certificates",
            "there is none in the file",
        ));
    }
    Ok(builder.tls_certs_merge(certificates))
}

impl Judging {
    /// What can be judged of an address that a proxy may look up: what this machine finds for its name. A machine
    /// behind a proxy may find nothing at all; then the proxy's own rules are what there is. The proxy itself is no
    /// server to fetch from.
    pub(super) async fn before_proxy(&self, url: &Url) -> Result<(), Error> {
        let Some(name) = url.host_str() else {
            return Ok(());
        };
        if self.proxies.iter().any(|proxy| proxy == name) {
            return Err(Error::forbidden(url, "the proxy"));
        }
        if literal(url).is_some() {
            return Ok(());
        }
        match self.judged(name).await {
            Err(refused @ Error::Forbidden { .. }) => Err(refused),
            _ => Ok(()),
        }
    }
}
