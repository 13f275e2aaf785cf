//! TLS to the store: reads certificates, and explains failed handshakes.
use crate::failure::Failure;
use crate::secret::warn_if_shared;
use chrono::{DateTime, Utc};
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use tokio_rustls::rustls::client::ResolvesClientCert;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer, UnixTime};
use tokio_rustls::rustls::sign::CertifiedKey;
use tokio_rustls::rustls::{CertificateError, ClientConfig, Error, RootCertStore, SignatureScheme};

/// The client side of TLS.
pub(super) struct Tls {
    pub(super) config: Arc<ClientConfig>,
    asked: Option<Arc<Asked>>,
}

/// A client without a certificate. Notes whether the store asked for one.
#[derive(Debug, Default)]
struct Asked(AtomicBool);

impl ResolvesClientCert for Asked {
    fn resolve(&self, _issuers: &[&[u8]], _schemes: &[SignatureScheme]) -> Option<Arc<CertifiedKey>> {
        self.0.store(true, Relaxed);
        None
    }

    fn has_certs(&self) -> bool {
        // With false, rustls would not call us.
        true
    }
}

impl Tls {
    /// Trusts the certificates in `cacert`, and presents `identity` (certificate and key) if given.
    pub(super) fn new(cacert: &Path, identity: Option<(&Path, &Path)>) -> Result<Tls, Failure> {
        let mut roots = RootCertStore::empty();
        for certificate in certificates(cacert)? {
            roots.add(certificate).map_err(|error| unusable(cacert, &error))?;
        }
        let config = ClientConfig::builder().with_root_certificates(roots);
        let Some((cert, key)) = identity else {
            let asked = Arc::new(Asked::default());
            let config = config.with_client_cert_resolver(asked.clone());
            return Ok(Tls { config: Arc::new(config), asked: Some(asked) });
        };
        warn_if_shared(key, "the private key");
        let secret = PrivateKeyDer::from_pem_file(key).map_err(|error| unusable(key, &error))?;
        let config = config
            .with_client_auth_cert(certificates(cert)?, secret)
            .map_err(|error| unusable(cert, &error))?;
        Ok(Tls { config: Arc::new(config), asked: None })
    }

    /// Explains a failed call. The text is stable while the reason is the same.
    pub(super) fn why(&self, error: &io::Error) -> String {
        if let Some(Error::InvalidCertificate(why)) = cause(error) {
            return match why {
                CertificateError::NotValidYetContext { not_before, .. } => format!(
                    "its certificate is not valid before {}; check the clock of this host",
                    date(*not_before)
                ),
                CertificateError::ExpiredContext { not_after, .. } => {
                    format!("its certificate expired on {}; renew it", date(*not_after))
                }
                _ => error.to_string(),
            };
        }
        // The rejection comes after the handshake, in a later call (RFC 8446 section 4.4.2.4).
        match self.asked.as_ref().is_some_and(|asked| asked.0.load(Relaxed)) {
            true => format!(
                "the store asks for a client certificate; give --cert FILE and --cert-key FILE \
                ({error})"
            ),
            false => error.to_string(),
        }
    }
}

/// Returns the rustls error inside an I/O error.
fn cause(error: &io::Error) -> Option<&Error> {
    error.get_ref()?.downcast_ref()
}

fn date(time: UnixTime) -> String {
    let seconds = i64::try_from(time.as_secs()).unwrap_or(i64::MAX);
    DateTime::<Utc>::from_timestamp(seconds, 0)
        .map_or_else(|| format!("second {seconds} since 1970"), |date| date.format("%F %T UTC").to_string())
}

fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, Failure> {
    let all: Result<Vec<_>, _> = CertificateDer::pem_file_iter(path).and_then(Iterator::collect);
    match all {
        Ok(all) if !all.is_empty() => Ok(all),
        Ok(_) => Err(Failure::failed(format!("{} contains no certificate (PEM)", path.display()))),
        Err(error) => Err(unusable(path, &error)),
    }
}

fn unusable(path: &Path, error: &dyn std::fmt::Display) -> Failure {
    Failure::failed(format!("cannot use {}: {error}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn a_certificate_of_another_time_is_told_in_words_that_stay() {
        let tls = Tls {
            config: Arc::new(
                ClientConfig::builder().with_root_certificates(RootCertStore::empty()).with_no_client_auth(),
            ),
            asked: None,
        };
        let at = |seconds| UnixTime::since_unix_epoch(Duration::from_secs(seconds));
        let early = |time| {
            let why = CertificateError::NotValidYetContext { time: at(time), not_before: at(2_000_000_000) };
            tls.why(&io::Error::new(io::ErrorKind::InvalidData, Error::InvalidCertificate(why)))
        };
        assert_eq!(
            early(1_900_000_000),
            "its certificate is not valid before 2033-05-18 03:33:20 UTC; check the clock of this host"
        );
        assert_eq!(early(1_900_000_000), early(1_900_000_005));
        let late = CertificateError::ExpiredContext { time: at(5), not_after: at(0) };
        let late = tls.why(&io::Error::new(io::ErrorKind::InvalidData, Error::InvalidCertificate(late)));
        assert_eq!(late, "its certificate expired on 1970-01-01 00:00:00 UTC; renew it");
    }
}
