//! Whom we trust and who we are, on secure connections.

use std::fmt;
use std::sync::Arc;

use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ClientConfig, RootCertStore};
use tokio_rustls::TlsConnector;

/// Certificates, all as PEM text. The key is never shown.
#[derive(Clone, Default)]
pub struct TlsOptions {
    /// Authorities to trust instead of the system's.
    pub authorities: Option<Vec<u8>>,
    /// Our certificate with its chain, and its private key.
    pub identity: Option<(Vec<u8>, Vec<u8>)>,
}

impl fmt::Debug for TlsOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TlsOptions")
            .field("authorities", &self.authorities.is_some())
            .field("identity", &self.identity.is_some())
            .finish()
    }
}

/// Why certificates or a key cannot be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TlsFault {
    /// The bundle of authorities holds no certificate that can be read.
    Authorities(String),
    /// The client certificate cannot be read.
    Certificate(String),
    /// The client key cannot be read, or does not belong to the certificate.
    Key(String),
    /// The system's authorities cannot be found.
    System(String),
}

impl fmt::Display for TlsFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Authorities(why) => write!(f, "the CA bundle cannot be used: {why}"),
            Self::Certificate(why) => write!(f, "the client certificate cannot be used: {why}"),
            Self::Key(why) => write!(f, "the client key cannot be used: {why}"),
            Self::System(why) => write!(
                f,
                "the system's certificate authorities cannot be used: {why}; give a bundle with --ca"
            ),
        }
    }
}

impl std::error::Error for TlsFault {}

pub(super) fn connector(options: &TlsOptions) -> Result<TlsConnector, TlsFault> {
    let provider = Arc::new(ring::default_provider());
    let builder = ClientConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()
        .map_err(|error| TlsFault::System(error.to_string()))?;
    let builder = match &options.authorities {
        Some(pem) => {
            let mut roots = RootCertStore::empty();
            for certificate in certificates(pem).map_err(TlsFault::Authorities)? {
                roots
                    .add(certificate)
                    .map_err(|error| TlsFault::Authorities(error.to_string()))?;
            }
            builder.with_root_certificates(roots)
        }
        None => {
            let verifier = rustls_platform_verifier::Verifier::new(provider)
                .map_err(|error| TlsFault::System(error.to_string()))?;
            builder
                .dangerous()
                .with_custom_certificate_verifier(Arc::new(verifier))
        }
    };
    let mut config = match &options.identity {
        None => builder.with_no_client_auth(),
        Some((chain, key)) => {
            let chain = certificates(chain).map_err(TlsFault::Certificate)?;
            let key = PrivateKeyDer::from_pem_slice(key)
                .map_err(|error| TlsFault::Key(error.to_string()))?;
            builder
                .with_client_auth_cert(chain, key)
                .map_err(|error| TlsFault::Key(error.to_string()))?
        }
    };
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(TlsConnector::from(Arc::new(config)))
}

fn certificates(pem: &[u8]) -> Result<Vec<CertificateDer<'static>>, String> {
    let read: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem).collect();
    let read = read.map_err(|error| error.to_string())?;
    if read.is_empty() {
        return Err("there is no certificate in it".into());
    }
    Ok(read)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unusable_certificates_and_keys_are_named() {
        let own = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
        let other = rcgen::KeyPair::generate().unwrap().serialize_pem();
        let (certificate, key) = (own.cert.pem(), own.signing_key.serialize_pem());
        let with = |authorities: &str, identity: Option<(&str, &str)>| {
            let options = TlsOptions {
                authorities: Some(authorities.as_bytes().to_vec()),
                identity: identity.map(|(c, k)| (c.as_bytes().to_vec(), k.as_bytes().to_vec())),
            };
            assert!(!format!("{options:?}").contains("PRIVATE"));
            connector(&options).map(|_| ())
        };
        assert_eq!(with(&certificate, Some((&certificate, &key))), Ok(()));
        assert!(matches!(with("", None), Err(TlsFault::Authorities(_))));
        assert!(matches!(
            with(&certificate, Some(("garbage", &key))),
            Err(TlsFault::Certificate(_))
        ));
        for bad in ["", "garbage", other.as_str()] {
            assert!(matches!(
                with(&certificate, Some((&certificate, bad))),
                Err(TlsFault::Key(_))
            ));
        }
    }
}
