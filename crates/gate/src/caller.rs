//! Who calls. A leaf: it imports nothing of ours.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

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

/// Whether somebody who was identified is still welcome. All that was identified as one caller shares it.
#[derive(Debug, Clone, Default)]
pub struct Welcome(Arc<AtomicBool>);

impl Welcome {
    /// From now on its caller is welcome no longer.
    pub fn end(&self) {
        self.0.store(true, Ordering::Release);
    }

    fn has_ended(&self) -> bool {
        self.0.load(Ordering::Acquire)
    }

    /// Whether nobody else has it.
    pub(crate) fn is_forgotten(&self) -> bool {
        Arc::strong_count(&self.0) == 1
    }
}

/// Somebody who was identified.
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
    /// Ended where the credential is good no longer: nothing that comes to the gate after that is judged for this caller.
    pub welcome: Welcome,
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

    /// Whether the credential that was shown is good no longer.
    #[must_use]
    pub fn is_expelled(&self) -> bool {
        self.welcome.has_ended()
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
