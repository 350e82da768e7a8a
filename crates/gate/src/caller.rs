//! Identified callers.

use std::sync::Arc;

use crate::revocation::RevocationFlag;

/// Most callers of which an edge or a server remembers something between their requests.
pub const CALLERS_MAX: usize = 1_024;

/// What a caller's name rests on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Proof {
    /// The operating system: the process belongs to this user.
    #[default]
    LocalUser,
    /// An API key of ours.
    ApiKey,
    /// An access token of an issuer that the operator trusts.
    AccessToken,
}

/// Sign-in of a caller at an issuer, as the access token states it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SignIn {
    /// Issuer of the token: the URL that the configuration names.
    pub issuer: Arc<str>,
    /// Scopes that the issuer has granted.
    pub scopes: Arc<[Arc<str>]>,
    /// Id of the session at the issuer (`sid`), if the token names one.
    pub sid: Option<Arc<str>>,
    /// Client that the token was issued to (`client_id`, else `azp`), if the token names one.
    pub client_id: Option<Arc<str>>,
}

/// An identified caller.
#[derive(Debug, Clone, Default)]
pub struct Caller {
    /// The name in rules and in the journal.
    pub subject: Arc<str>,
    /// The groups that the caller belongs to.
    pub groups: Arc<[Arc<str>]>,
    /// What that rests on.
    pub proof: Proof,
    /// The servers that the caller may reach; none: all.
    pub servers: Option<Arc<[Arc<str>]>>,
    /// When that ends, in milliseconds since 1970.
    pub until_ms: Option<i64>,
    /// How long it took to find out for this request, in nanoseconds; 0 where it was known before.
    pub identity_ns: u64,
    /// The id of the account's token that was shown, where the caller has an account and not one of the
    /// operator's keys.
    pub token: Option<Arc<str>>,
    /// The agent that calls on the caller's behalf; `None` if the caller's own client does.
    pub agent: Option<Arc<str>>,
    /// Sign-in at an issuer; `None` for keys, accounts and the local user.
    pub sign_in: Option<Arc<SignIn>>,
    /// Set when the credential is revoked: the gate judges nothing for this caller from then on.
    pub revocation: RevocationFlag,
}

impl Caller {
    /// Whether the caller's key is good for this server.
    #[must_use]
    pub fn may_reach(&self, server: &str) -> bool {
        let servers = self.servers.as_deref();
        servers.is_none_or(|servers| servers.iter().any(|name| **name == *server))
    }

    /// Whether the caller has to leave room for others: where one has a key, others may have one.
    #[must_use]
    pub fn has_to_share(&self) -> bool {
        self.proof != Proof::LocalUser
    }

    /// Returns whether the credential is revoked.
    #[must_use]
    pub fn is_revoked(&self) -> bool {
        self.revocation.is_revoked()
    }

    /// The user whom this process belongs to, or who is as good as that.
    #[must_use]
    pub fn local(user: &str) -> Self {
        Self {
            subject: user.into(),
            ..Self::default()
        }
    }
}
