//! Requests to issuers. No redirect is followed, and every answer and wait is bounded.

use std::fmt;
use std::time::Duration;

use net::outbound::http::{
    HeaderValue, HttpClient, HttpFault, HttpOptions, Lane, Method, StatusCode, Target, TargetFault,
    TlsFault, TlsOptions, header,
};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::{Map, Value};

use crate::jwks::{self, JwksFault, VerifyingKey};
use crate::metadata::{IssuerMetadata, MetadataFault};

/// Longest document of an issuer, in bytes.
const DOCUMENT_BYTES_MAX: usize = 256 * 1024;
/// Longest wait for one document, in milliseconds.
const FETCH_MS_MAX: u64 = 5_000;

/// Why an issuer's metadata or keys were not fetched.
#[derive(Debug)]
pub enum FetchFault {
    /// The URL.
    Target(TargetFault),
    /// Certificates.
    Tls(TlsFault),
    /// The connection, or the answer's form.
    Http(HttpFault),
    /// Another status than 200.
    Status(u16),
    /// It took too long.
    Timeout,
    /// The metadata.
    Metadata(MetadataFault),
    /// The keys.
    Keys(JwksFault),
}

impl FetchFault {
    /// Returns whether the issuer contradicts the configuration, which time does not repair.
    #[must_use]
    pub fn is_lasting(&self) -> bool {
        matches!(
            self,
            Self::Metadata(MetadataFault::OtherIssuer(_) | MetadataFault::Address(_))
        )
    }
}

impl fmt::Display for FetchFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Target(fault) => fault.fmt(f),
            Self::Tls(fault) => fault.fmt(f),
            Self::Http(fault) => fault.fmt(f),
            Self::Status(status) => write!(f, "it answers with status {status}"),
            Self::Timeout => f.write_str("it does not answer within 5 s"),
            Self::Metadata(fault) => fault.fmt(f),
            Self::Keys(fault) => f.write_str(fault.sentence()),
        }
    }
}

fn client(url: &str, authorities: Option<&Vec<u8>>) -> Result<HttpClient, FetchFault> {
    let target = Target::parse(url, false).map_err(FetchFault::Target)?;
    let options = HttpOptions {
        connections_max: 2,
        waiting_max: 16,
        connect_ms_max: FETCH_MS_MAX,
        tls: TlsOptions {
            authorities: authorities.cloned(),
            identity: None,
        },
        ..HttpOptions::default()
    };
    HttpClient::new(target, &options).map_err(FetchFault::Tls)
}

async fn get(url: &str, authorities: Option<&Vec<u8>>) -> Result<Vec<u8>, FetchFault> {
    let client = client(url, authorities)?;
    let outgoing = client.outgoing(Method::GET, Lane::Call, FETCH_MS_MAX);
    let fetched = tokio::time::timeout(Duration::from_millis(FETCH_MS_MAX), async {
        let mut reply = client.send(outgoing).await.map_err(FetchFault::Http)?;
        if reply.status() != StatusCode::OK {
            return Err(FetchFault::Status(reply.status().as_u16()));
        }
        let body = reply.bytes(DOCUMENT_BYTES_MAX).await;
        body.map(|body| body.to_vec()).map_err(FetchFault::Http)
    });
    fetched.await.unwrap_or(Err(FetchFault::Timeout))
}

/// Returns the fields of a form as the web writes them.
pub fn encode_form(fields: &[(&str, &str)]) -> String {
    const KEPT: AsciiSet = NON_ALPHANUMERIC
        .remove(b'-')
        .remove(b'.')
        .remove(b'_')
        .remove(b'~');
    let pairs = fields.iter().map(|(name, value)| {
        format!(
            "{}={}",
            utf8_percent_encode(name, &KEPT),
            utf8_percent_encode(value, &KEPT)
        )
    });
    pairs.collect::<Vec<_>>().join("&")
}

/// Sends a form; returns the status and the members of the JSON answer, which is empty if there is none.
pub async fn post(
    url: &str,
    authorities: Option<&Vec<u8>>,
    fields: &[(&str, &str)],
) -> Result<(u16, Map<String, Value>), FetchFault> {
    let client = client(url, authorities)?;
    let mut outgoing = client.outgoing(Method::POST, Lane::Call, FETCH_MS_MAX);
    for (name, value) in [
        (header::CONTENT_TYPE, "application/x-www-form-urlencoded"),
        (header::ACCEPT, "application/json"),
    ] {
        outgoing
            .headers
            .insert(name, HeaderValue::from_static(value));
    }
    outgoing.body = encode_form(fields).into_bytes().into();
    let sent = tokio::time::timeout(Duration::from_millis(FETCH_MS_MAX), async {
        let mut reply = client.send(outgoing).await.map_err(FetchFault::Http)?;
        let status = reply.status().as_u16();
        let body = reply.bytes(DOCUMENT_BYTES_MAX).await;
        let body = body.map_err(FetchFault::Http)?;
        Ok((status, toolkit::face::object(&body).unwrap_or_default()))
    });
    sent.await.unwrap_or(Err(FetchFault::Timeout))
}

/// Fetches the metadata of an issuer from its two well-known places.
pub async fn metadata(
    issuer: &str,
    authorities: Option<&Vec<u8>>,
) -> Result<IssuerMetadata, FetchFault> {
    let own = issuer.trim_end_matches('/');
    let openid = format!("{own}/.well-known/openid-configuration");
    let document = match get(&openid, authorities).await {
        Err(FetchFault::Status(404)) => get(&oauth_url(own), authorities).await?,
        other => other?,
    };
    IssuerMetadata::read(&document, issuer).map_err(FetchFault::Metadata)
}

/// Returns where RFC 8414 has the metadata: between host and path.
fn oauth_url(issuer: &str) -> String {
    let after_scheme = issuer.find("://").map_or(0, |at| at + 3);
    let path = issuer.get(after_scheme..).and_then(|rest| rest.find('/'));
    let (origin, path) = issuer.split_at(path.map_or(issuer.len(), |at| after_scheme + at));
    format!("{origin}/.well-known/oauth-authorization-server{path}")
}

/// Fetches the keys of an issuer.
pub async fn keys(
    metadata: &IssuerMetadata,
    authorities: Option<&Vec<u8>>,
) -> Result<Vec<VerifyingKey>, FetchFault> {
    let document = get(&metadata.jwks_uri, authorities).await?;
    jwks::read(&document).map_err(FetchFault::Keys)
}
