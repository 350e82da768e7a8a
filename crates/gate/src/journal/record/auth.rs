//! Credentials and sessions.

use super::OpId;
use super::event::EndReason;
use super::members::{Members, key};
use super::operation::Status;
use crate::label::Label;

/// The claims of a token that are not secret. Class: plain. The token itself is class never.
#[derive(Debug, Clone, Copy, Default)]
pub struct Oidc<'a> {
    /// Who issued it.
    pub issuer: Option<&'a str>,
    /// The client it was issued to.
    pub client_id: Option<&'a str>,
    /// Whom it is meant for.
    pub audience: &'a [&'a str],
    /// What it allows.
    pub scopes: &'a [&'a str],
    /// Expiry, in seconds since 1970.
    pub token_exp: Option<i64>,
    /// Issue, in seconds since 1970.
    pub token_iat: Option<i64>,
}

/// A record about credentials or a session.
#[derive(Debug, Clone, Copy)]
pub struct Auth<'a> {
    /// What happened.
    pub event: Label,
    /// `Success` or `Failure`.
    pub status: Option<Status>,
    /// The call during which it happened, where there is one.
    pub op: Option<OpId>,
    /// Whose credentials.
    pub subject_id: Option<&'a str>,
    /// The session bound to a person.
    pub bound_session_id: Option<&'a str>,
    /// The protocol's session.
    pub mcp_session_id: Option<&'a str>,
    /// The client's own id of the request, as text.
    pub request_id: Option<&'a str>,
    /// The method that was asked for.
    pub method: Option<&'a str>,
    /// The token's claims.
    pub oidc: Option<Oidc<'a>>,
    /// The closed label of the reason.
    pub reason: Option<Label>,
    /// A sentence for people; never a credential.
    pub message: Option<&'a str>,
    /// How a session ended.
    pub end_reason: Option<EndReason>,
    /// How many alike this record stands for, when refusals are coalesced.
    pub coalesced: Option<u64>,
}

impl Auth<'_> {
    /// A record that says no more than what happened.
    #[must_use]
    pub fn of(event: impl Into<Label>) -> Self {
        Self {
            event: event.into(),
            status: None,
            op: None,
            subject_id: None,
            bound_session_id: None,
            mcp_session_id: None,
            request_id: None,
            method: None,
            oidc: None,
            reason: None,
            message: None,
            end_reason: None,
            coalesced: None,
        }
    }

    pub(super) fn write(&self, members: &mut Members<'_>) {
        members.label(key!("event"), self.event.as_str());
        members.maybe_label(key!("status"), self.status.map(Status::name));
        if let Some(op) = self.op {
            members.op(key!("op"), op);
        }
        members.maybe_fact(key!("subject_id"), self.subject_id);
        members.maybe_fact(key!("bound_session_id"), self.bound_session_id);
        members.maybe_fact(key!("mcp_session_id"), self.mcp_session_id);
        members.maybe_fact(key!("request_id"), self.request_id);
        members.maybe_fact(key!("method"), self.method);
        if let Some(oidc) = self.oidc {
            members.object(key!("oidc"), |inner| oidc.write(inner));
        }
        members.maybe_label(key!("reason"), self.reason.map(Label::as_str));
        members.maybe(key!("message"), self.message);
        members.maybe_label(key!("end_reason"), self.end_reason.map(EndReason::label));
        members.number(
            key!("coalesced"),
            self.coalesced.map(|n| i64::try_from(n).unwrap_or(i64::MAX)),
        );
    }
}

impl Oidc<'_> {
    pub(super) fn write(&self, members: &mut Members<'_>) {
        members.maybe(key!("issuer"), self.issuer);
        members.maybe(key!("client_id"), self.client_id);
        members.list(key!("audience"), self.audience);
        members.list(key!("scopes"), self.scopes);
        members.number(key!("token_exp"), self.token_exp);
        members.number(key!("token_iat"), self.token_iat);
    }
}
