//! The HTTP client of all providers: it follows no redirect (the key would go along), uses only the proxies it is
//! told of, and trusts one more file of certificates if told so. Called by [`init_chat_model`](crate::init_chat_model).

use reqwest::{Certificate, Client, NoProxy, Proxy, redirect};

use crate::error::Error;
use crate::init::Settings;

/// Makes the client.
pub(crate) fn http_client(settings: &Settings) -> Result<Client, Error> {
    let refuse = |what: &str, error: &reqwest::Error| Error::Http {
        what: what.to_owned(),
        problem: error.to_string(),
    };
    let mut builder = Client::builder()
        .no_proxy()
        .redirect(redirect::Policy::none())
        .connect_timeout(settings.connect_timeout)
        .user_agent(concat!("paraph/", env!("CARGO_PKG_VERSION")));
    let direct = settings.proxies.no_proxy.as_deref();
    let direct = direct.and_then(NoProxy::from_string);
    if let Some(address) = &settings.proxies.http {
        let proxy = proxy("HTTP_PROXY", address, Proxy::http)?;
        builder = builder.proxy(proxy.no_proxy(direct.clone()));
    }
    if let Some(address) = &settings.proxies.https {
        let proxy = proxy("HTTPS_PROXY", address, Proxy::https)?;
        builder = builder.proxy(proxy.no_proxy(direct));
    }
    if let Some(pem) = &settings.ca_certificates {
        let certificates = Certificate::from_pem_bundle(pem.as_bytes())
            .map_err(|error| refuse("CA certificates", &error))?;
        if certificates.is_empty() {
            return Err(Error::Http {
                what: "CA certificates".to_owned(),
                problem: "there is none in the file".to_owned(),
            });
        }
        builder = builder.tls_certs_merge(certificates);
    }
    builder
        .build()
        .map_err(|error| refuse("HTTP client", &error))
}

/// A proxy over HTTP. An error says nothing of the address, which may contain a password.
fn proxy(
    variable: &str,
    address: &str,
    of: impl Fn(String) -> reqwest::Result<Proxy>,
) -> Result<Proxy, Error> {
    let refuse = |problem: &str| Error::Http {
        what: variable.to_owned(),
        problem: problem.to_owned(),
    };
    if let Some((scheme, _)) = address.trim().split_once("://")
        && !["http", "https"].contains(&scheme.to_ascii_lowercase().as_str())
    {
        return Err(refuse("only http and https proxies can be used"));
    }
    of(address.to_owned()).map_err(|_| refuse("not the address of a proxy"))
}
