//! TLS to the server, by rustls.
//!
//! Called when a store is opened. `sslmode` means what it means elsewhere: `require` hides what is said,
//! only `verify-full` knows whom it is said to.

use super::address::Trust;
use rustls::{
    ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme,
    client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier},
    crypto::{CryptoProvider, aws_lc_rs, verify_tls12_signature, verify_tls13_signature},
    pki_types::{CertificateDer, ServerName, UnixTime, pem::PemObject},
};
use std::{path::Path, sync::Arc};
use tokio_postgres_rustls::MakeRustlsConnect;

/// What makes TLS of a connection.
pub(super) fn connector(trust: &Trust) -> Result<MakeRustlsConnect, String> {
    let provider = Arc::new(aws_lc_rs::default_provider());
    let builder = ClientConfig::builder_with_provider(provider.clone())
        .with_safe_default_protocol_versions()
        .map_err(|e| e.to_string())?;
    let config = match trust {
        Trust::File(path) => builder.with_root_certificates(authorities(path)?),
        Trust::Platform => {
            let platform = rustls_platform_verifier::Verifier::new(provider)
                .map_err(|e| format!("the platform's certificate authorities: {e}"))?;
            builder
                .dangerous()
                .with_custom_certificate_verifier(Arc::new(platform))
        }
        Trust::Any => builder
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(Anybody(provider))),
    };
    Ok(MakeRustlsConnect::new(config.with_no_client_auth()))
}

fn authorities(path: &Path) -> Result<RootCertStore, String> {
    let wrong = |why: String| format!("sslrootcert {}: {why}", path.display());
    let certificates = CertificateDer::pem_file_iter(path).map_err(|e| wrong(e.to_string()))?;
    let mut roots = RootCertStore::empty();
    for certificate in certificates {
        let certificate = certificate.map_err(|e| wrong(e.to_string()))?;
        roots.add(certificate).map_err(|e| wrong(e.to_string()))?;
    }
    match roots.is_empty() {
        true => Err(wrong("it has no certificate".to_owned())),
        false => Ok(roots),
    }
}

/// Takes any certificate, whose key the server must have all the same.
#[derive(Debug)]
struct Anybody(Arc<CryptoProvider>);

impl ServerCertVerifier for Anybody {
    fn verify_server_cert(
        &self,
        _end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls12_signature(
            message,
            cert,
            dss,
            &self.0.signature_verification_algorithms,
        )
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls13_signature(
            message,
            cert,
            dss,
            &self.0.signature_verification_algorithms,
        )
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}
