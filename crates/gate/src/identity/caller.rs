//! Who calls, and what was shown for it.

use std::fmt;
use std::sync::Arc;

use super::error::IdentityFault;

/// What a caller's name rests on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Proof {
    /// The operating system: the process belongs to this user.
    #[default]
    LocalUser,
    /// An API key of ours.
    ApiKey,
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
    /// When that ends, in milliseconds since 1970.
    pub until_ms: Option<i64>,
    /// How long it took to find out for this request, in nanoseconds; 0 where it was known before.
    pub identity_ns: u64,
}

impl Caller {
    /// The user whom this process belongs to, or who is as good as that.
    #[must_use]
    pub fn local(user: &str) -> Self {
        Self {
            subject: user.into(),
            ..Self::default()
        }
    }
}

/// What somebody shows to prove who they are. Cannot be printed.
#[derive(Clone, Copy)]
pub struct Credential<'a> {
    shown: Shown<'a>,
    /// The server that is asked for, where it is one.
    server: Option<&'a str>,
}

#[derive(Clone, Copy)]
pub(super) enum Shown<'a> {
    Nothing,
    Bearer(&'a str),
    /// A credential of another kind, which nobody here can judge.
    Other,
    /// Something that cannot be read as a credential.
    Unfit,
}

impl<'a> Credential<'a> {
    /// Nothing is shown.
    #[must_use]
    pub fn none() -> Self {
        Self {
            shown: Shown::Nothing,
            server: None,
        }
    }

    /// A text that opens the door to whoever has it.
    #[must_use]
    pub fn bearer(text: &'a str) -> Self {
        Self {
            shown: Shown::Bearer(text),
            server: None,
        }
    }

    /// A credential of another kind is shown, which nobody here can judge.
    #[must_use]
    pub fn other() -> Self {
        Self {
            shown: Shown::Other,
            server: None,
        }
    }

    /// Something is shown that is no credential, or more than one.
    #[must_use]
    pub fn unfit() -> Self {
        Self {
            shown: Shown::Unfit,
            server: None,
        }
    }

    /// The same, shown to be let through to this server.
    #[must_use]
    pub fn for_server(self, server: Option<&'a str>) -> Self {
        Self { server, ..self }
    }

    pub(super) fn shown(&self) -> Shown<'a> {
        self.shown
    }

    pub(super) fn server(&self) -> Option<&'a str> {
        self.server
    }
}

impl fmt::Debug for Credential<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.shown {
            Shown::Nothing => "Credential(none)",
            Shown::Bearer(_) => "Credential(bearer, hidden)",
            Shown::Other => "Credential(other)",
            Shown::Unfit => "Credential(unfit)",
        })
    }
}

/// Finds out who calls.
pub trait Authenticate: Send + Sync {
    /// Who shows this credential at this time, in milliseconds since 1970.
    ///
    /// # Errors
    /// Why nobody is let in for it.
    fn identify(&self, shown: &Credential<'_>, now_ms: i64) -> Result<Caller, IdentityFault>;
}

/// Everybody who comes this way is the same caller: a process of the local user.
#[derive(Debug, Clone)]
pub struct LocalUser(pub Caller);

impl Authenticate for LocalUser {
    fn identify(&self, shown: &Credential<'_>, _now_ms: i64) -> Result<Caller, IdentityFault> {
        match shown.shown() {
            // A key is not needed here; one that is shown nevertheless opens nothing more.
            Shown::Nothing | Shown::Bearer(_) | Shown::Other => Ok(self.0.clone()),
            Shown::Unfit => Err(IdentityFault::Unknown),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_credential_cannot_be_printed() {
        let shown = format!(
            "{:?}",
            Credential::bearer("dw_secret").for_server(Some("x"))
        );
        assert_eq!(shown, "Credential(bearer, hidden)");
    }

    #[test]
    fn the_local_user_needs_nothing_but_shows_nothing_odd() {
        let local = LocalUser(Caller::local("ada"));
        for shown in [
            Credential::none(),
            Credential::bearer("anything"),
            Credential::other(),
        ] {
            let caller = local.identify(&shown, 0).unwrap();
            assert_eq!((&*caller.subject, caller.proof), ("ada", Proof::LocalUser));
        }
        let odd = local.identify(&Credential::unfit(), 0).map(drop);
        assert_eq!(odd, Err(IdentityFault::Unknown));
    }
}
