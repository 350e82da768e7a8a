//! Credentials and sessions.

use serde::Serialize;

use super::{OpId, none};

/// The claims of a token that are not secret. Class: plain. The token itself is class never.
#[derive(Debug, Clone, Copy, Default, Serialize)]
pub struct Oidc<'a> {
    /// Who issued it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub issuer: Option<&'a str>,
    /// The client it was issued to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub client_id: Option<&'a str>,
    /// Whom it is meant for.
    #[serde(skip_serializing_if = "none")]
    pub audience: &'a [&'a str],
    /// What it allows.
    #[serde(skip_serializing_if = "none")]
    pub scopes: &'a [&'a str],
    /// Expiry, in seconds since 1970.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub token_exp: Option<i64>,
    /// Issue, in seconds since 1970.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub token_iat: Option<i64>,
}

/// A record about credentials or a session: `token_invalid`, `token_refreshed`, `session_started`, `session_ended`…
#[derive(Debug, Clone, Copy, Default, Serialize)]
pub struct Auth<'a> {
    /// What happened.
    pub event: &'a str,
    /// `Success` or `Failure`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<&'a str>,
    /// The call during which it happened, where there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub op: Option<OpId>,
    /// Whose credentials.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub subject_id: Option<&'a str>,
    /// The session bound to a person.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bound_session_id: Option<&'a str>,
    /// The protocol's session.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mcp_session_id: Option<&'a str>,
    /// The client's own id of the request, as text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub request_id: Option<&'a str>,
    /// The method that was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub method: Option<&'a str>,
    /// The token's claims.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub oidc: Option<Oidc<'a>>,
    /// The closed label of the reason.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<&'a str>,
    /// A sentence for people; never a credential.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<&'a str>,
    /// How a session ended: `normal`, `timeout`, `error`, `auth_expired`, `session_binding_violation`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub end_reason: Option<&'a str>,
    /// How many alike this record stands for, when refusals are coalesced.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub coalesced: Option<u64>,
}
