//! A server's certificate and key out of PEM text.

use std::fmt;
use std::sync::Arc;

use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};

/// Why TLS cannot be spoken.
#[derive(Debug)]
#[non_exhaustive]
pub enum TlsFault {
    /// The certificate's text holds no certificate.
    NoCertificate,
    /// The key's text holds no private key.
    NoKey,
    /// They do not belong together, or are of a kind that is not supported.
    Unusable(rustls::Error),
}

impl fmt::Display for TlsFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoCertificate => f.write_str("there is no PEM certificate in it"),
            Self::NoKey => f.write_str("there is no PEM private key in it"),
            Self::Unusable(error) => write!(f, "certificate and key cannot be used: {error}"),
        }
    }
}

impl std::error::Error for TlsFault {}

/// TLS 1.2 and 1.3 with this certificate chain and key, HTTP/1.1 only.
///
/// # Errors
/// A [`TlsFault`].
pub fn server_config(certificates: &[u8], key: &[u8]) -> Result<Arc<ServerConfig>, TlsFault> {
    let chain: Vec<CertificateDer<'static>> = CertificateDer::pem_slice_iter(certificates)
        .collect::<Result<_, _>>()
        .map_err(|_| TlsFault::NoCertificate)?;
    if chain.is_empty() {
        return Err(TlsFault::NoCertificate);
    }
    let key = PrivateKeyDer::from_pem_slice(key).map_err(|_| TlsFault::NoKey)?;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(TlsFault::Unusable)?
        .with_no_client_auth()
        .with_single_cert(chain, key)
        .map_err(TlsFault::Unusable)?;
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(Arc::new(config))
}
