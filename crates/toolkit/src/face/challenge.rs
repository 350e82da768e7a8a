//! How an HTTP answer states that a credential is not accepted.

use gate::identity::{IdentityFault, TokenFault};

/// Status and `WWW-Authenticate` of the answer to a caller who was not identified.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Challenge {
    /// HTTP status.
    pub status: u16,
    /// `error` of RFC 6750, if the request had a credential.
    pub error: Option<&'static str>,
}

impl Challenge {
    /// Returns the challenge of a fault.
    #[must_use]
    pub fn of(fault: IdentityFault) -> Self {
        let (status, error) = match fault {
            IdentityFault::Missing
            | IdentityFault::UserUnknown
            | IdentityFault::Token(TokenFault::Missing) => (401, None),
            IdentityFault::Unknown | IdentityFault::Expired | IdentityFault::Revoked => {
                (401, Some("invalid_token"))
            }
            IdentityFault::Ambiguous => (400, Some("invalid_request")),
            IdentityFault::OutOfScope => (403, Some("insufficient_scope")),
            IdentityFault::OtherUser => (403, None),
            // A client that signs in again does not help the issuer.
            IdentityFault::Token(fault) if fault.is_passing() => (503, None),
            IdentityFault::Token(_) => (401, Some("invalid_token")),
        };
        Self { status, error }
    }

    /// Returns the value of `WWW-Authenticate`.
    #[must_use]
    pub fn header(self) -> &'static str {
        match self.error {
            None => "Bearer realm=\"durward\"",
            Some("invalid_token") => "Bearer realm=\"durward\", error=\"invalid_token\"",
            Some("invalid_request") => "Bearer realm=\"durward\", error=\"invalid_request\"",
            Some(_) => "Bearer realm=\"durward\", error=\"insufficient_scope\"",
        }
    }
}
