//! The first bytes for a server that speaks TLS: a ClientHello.
//!
//! Its answer is the server's first flight. The handshake ends there: a server logs a connection
//! that was closed early.
use crate::failure::Failure;
use firstbyte::tls::rustls::crypto::ring::default_provider;
use firstbyte::tls::rustls::pki_types::ServerName;
use firstbyte::tls::rustls::{ClientConfig, ClientConnection, RootCertStore};
use std::net::Ipv4Addr;
use std::sync::Arc;

/// Returns a ClientHello for a host, which is some 250 bytes long.
pub(crate) fn client_hello(host: &str) -> Result<Vec<u8>, Failure> {
    let failed = |error: String| Failure::failed(format!("cannot make a ClientHello for {host}: {error}"));
    let config = ClientConfig::builder_with_provider(Arc::new(default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(|error| failed(error.to_string()))?;
    // Nothing is verified: the handshake does not get that far.
    let mut config = config.with_root_certificates(RootCertStore::empty()).with_no_client_auth();
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    // An address is not sent as a name (RFC 6066 §3). One with a zone is no name either.
    let name = ServerName::try_from(host.to_owned())
        .unwrap_or_else(|_| ServerName::IpAddress(Ipv4Addr::UNSPECIFIED.into()));
    let mut connection =
        ClientConnection::new(Arc::new(config), name).map_err(|error| failed(error.to_string()))?;
    let mut hello = Vec::new();
    connection.write_tls(&mut hello).map_err(|error| failed(error.to_string()))?;
    Ok(hello)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hello_fits_on_a_syn_and_names_the_host() {
        let hello = client_hello("www.example").unwrap();
        assert!(hello.starts_with(&[0x16, 3, 1]) && hello.len() < 1000, "{hello:?}");
        assert!(hello.windows(11).any(|part| part == b"www.example"));
        for address in ["192.0.2.1", "2001:db8::1", "fe80::1%eth0"] {
            let hello = client_hello(address).unwrap();
            assert!(hello.starts_with(&[0x16, 3, 1]), "{address}");
        }
    }
}
