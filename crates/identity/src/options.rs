//! Options of verification, as the operator configures them.

use std::fmt;

use net::outbound::http::Target;

use crate::algorithm::Algorithm;

/// Longest URL of an issuer, in bytes: it is a part of each subject.
const ISSUER_BYTES_MAX: usize = 256;
/// Audience that Keycloak puts into the tokens of all clients.
const AUDIENCE_OF_ALL: &str = "account";

/// An issuer that is trusted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IssuerOptions {
    /// URL, byte for byte as tokens and the metadata document have it.
    pub issuer: String,
    /// Audiences of tokens that are for this server, whatever path they are sent to.
    pub audiences: Vec<String>,
    /// Algorithms that count.
    pub algorithms: Vec<Algorithm>,
    /// Claim that names the caller.
    pub subject_claim: String,
    /// Claim that lists the groups; dots lead into objects.
    pub groups_claim: String,
    /// Client of this program at the issuer: people sign in with it, and logout tokens are for it.
    pub client_id: Option<String>,
    /// Certificate authorities (PEM) instead of the system's.
    pub authorities: Option<Vec<u8>>,
}

/// All of `identity:` that tokens are verified by.
#[derive(Debug, Clone)]
pub struct IdentityOptions {
    /// Issuers.
    pub issuers: Vec<IssuerOptions>,
    /// URL at which clients reach this server, without a slash at its end.
    pub public_url: Option<String>,
    /// Scopes that clients are asked to request.
    pub scopes: Vec<String>,
    /// Tolerated difference of clocks, in milliseconds.
    pub skew_ms: i64,
    /// Longest lifetime of a token, in milliseconds.
    pub lifetime_ms_max: i64,
    /// How long fetched keys count while the issuer is unreachable, in milliseconds.
    pub keys_ms_max: i64,
}

impl Default for IdentityOptions {
    fn default() -> Self {
        Self {
            issuers: Vec::new(),
            public_url: None,
            scopes: Vec::new(),
            skew_ms: 60_000,
            lifetime_ms_max: 24 * 3_600_000,
            keys_ms_max: 24 * 3_600_000,
        }
    }
}

/// Fault of an issuer's options or of the public URL.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IssuerFault {
    /// Not a URL, or without TLS to another machine.
    Url,
    /// With a query, a fragment or control characters, or too long.
    UrlUnfit,
    /// Keycloak's audience of all clients.
    AudienceOfAll,
    /// Neither an audience nor a public URL: every token would be refused.
    NoAudience,
}

impl fmt::Display for IssuerFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Url => "must be an https:// URL (http:// only on this machine)",
            Self::UrlUnfit => {
                "must be a URL of at most 256 bytes without user name, query and fragment"
            }
            Self::AudienceOfAll => {
                "holds \"account\", which Keycloak puts into the tokens of all its clients; add an audience mapper and name its audience"
            }
            Self::NoAudience => {
                "needs audiences, or identity.public_url: without both every token is refused"
            }
        })
    }
}

/// Checks the URL of an issuer, or a public one.
///
/// # Errors
/// [`IssuerFault::Url`], [`IssuerFault::UrlUnfit`].
pub(crate) fn check_url(url: &str) -> Result<(), IssuerFault> {
    let unfit = |c: char| c.is_control() || c.is_whitespace() || "?#@\\\"<>".contains(c);
    if url.len() > ISSUER_BYTES_MAX || url.contains(unfit) {
        return Err(IssuerFault::UrlUnfit);
    }
    let target = Target::parse(url, false);
    target.map(drop).map_err(|_| IssuerFault::Url)
}

impl IdentityOptions {
    /// Checks the public URL.
    ///
    /// # Errors
    /// [`IssuerFault`].
    pub fn check_public_url(url: &str) -> Result<(), IssuerFault> {
        check_url(url)
    }
}

impl IssuerOptions {
    /// Checks one issuer; `has_public_url` says whether paths have audiences of their own.
    ///
    /// # Errors
    /// [`IssuerFault`].
    pub fn check(&self, has_public_url: bool) -> Result<(), IssuerFault> {
        check_url(&self.issuer)?;
        if self.audiences.iter().any(|own| own == AUDIENCE_OF_ALL) {
            return Err(IssuerFault::AudienceOfAll);
        }
        if self.audiences.is_empty() && !has_public_url {
            return Err(IssuerFault::NoAudience);
        }
        Ok(())
    }
}
