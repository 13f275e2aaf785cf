//! The TLS side of requests: trust, application protocols, early data.
use super::request::Early;
use crate::failure::Failure;
use crate::input;
use firstbyte::tls::rustls::client::danger::{
    HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier,
};
use firstbyte::tls::rustls::crypto::{self, CryptoProvider};
use firstbyte::tls::rustls::pki_types::pem::PemObject;
use firstbyte::tls::rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use firstbyte::tls::rustls::{self, DigitallySignedStruct, RootCertStore, SignatureScheme};
use firstbyte::tls::{FirstRequest, TlsConnector};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The servers that are trusted.
pub(crate) enum Trust<'a> {
    /// Those with a certificate of an authority of the system.
    System,
    /// Those with a certificate of an authority in this file.
    File(&'a Path),
    /// All.
    Everybody,
}

impl<'a> Trust<'a> {
    pub(crate) fn of(cacert: Option<&'a PathBuf>, insecure: bool) -> Trust<'a> {
        match (insecure, cacert) {
            (true, _) => Trust::Everybody,
            (false, Some(file)) => Trust::File(file),
            (false, None) => Trust::System,
        }
    }
}

/// Builds the connector of a run, which remembers tickets from visit to visit.
pub(crate) fn connector(trust: &Trust, early: Early, http2: bool) -> Result<TlsConnector, Failure> {
    let first_request = match early {
        Early::Never => FirstRequest::Never,
        Early::Repeatable => FirstRequest::Repeatable,
        Early::Always => FirstRequest::Always,
    };
    let protocols: &[&str] = if http2 { &["h2", "http/1.1"] } else { &["http/1.1"] };
    let builder = TlsConnector::builder().alpn(protocols).first_request(first_request);
    let builder = match trust {
        Trust::System => builder.roots(system_roots()?),
        Trust::File(file) => builder.roots(roots_of(file)?),
        Trust::Everybody => {
            builder.verifier(Arc::new(Unverified(Arc::new(crypto::ring::default_provider()))))
        }
    };
    builder.build().map_err(|error| Failure::failed(format!("cannot use TLS: {error}")))
}

fn system_roots() -> Result<RootCertStore, Failure> {
    let found = rustls_native_certs::load_native_certs();
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(found.certs);
    if roots.is_empty() {
        let why = found.errors.first().map(|error| format!(": {error}")).unwrap_or_default();
        return Err(Failure::failed(format!(
            "cannot find the certificates that this system trusts{why}; install ca-certificates, or \
             give authorities with --cacert FILE"
        )));
    }
    Ok(roots)
}

fn roots_of(path: &Path) -> Result<RootCertStore, Failure> {
    let pem = input::bytes(path, input::WRITTEN_MAX)?;
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(&pem) {
        let added = certificate.map_err(|error| error.to_string());
        let added = added.and_then(|added| roots.add(added).map_err(|error| error.to_string()));
        added.map_err(|error| Failure::failed(format!("cannot use --cacert {}: {error}", path.display())))?;
    }
    if roots.is_empty() {
        let path = path.display();
        return Err(Failure::failed(format!("cannot use --cacert {path}: it has no certificate in PEM")));
    }
    Ok(roots)
}

/// Accepts every certificate. Signatures are still checked.
#[derive(Debug)]
struct Unverified(Arc<CryptoProvider>);

impl ServerCertVerifier for Unverified {
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
        crypto::verify_tls12_signature(message, cert, dss, &self.0.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        crypto::verify_tls13_signature(message, cert, dss, &self.0.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}
