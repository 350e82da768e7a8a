//! What is shown to prove who calls, and who finds out.

use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;

use super::error::IdentityFault;
use crate::caller::Caller;

/// What somebody shows to prove who they are. Cannot be printed.
#[derive(Clone, Copy)]
pub struct Credential<'a> {
    shown: Shown<'a>,
    /// The server that is asked for, where it is one.
    server: Option<&'a str>,
    /// The user of this machine whose process shows it, where that is known.
    user: Option<u32>,
    /// Where it came from, where that is known.
    from: Option<IpAddr>,
    /// Path of the request, by which an access token's audience is checked.
    path: Option<&'a str>,
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
            user: None,
            from: None,
            path: None,
        }
    }

    /// A text that opens the door to whoever has it.
    #[must_use]
    pub fn bearer(text: &'a str) -> Self {
        Self {
            shown: Shown::Bearer(text),
            server: None,
            user: None,
            from: None,
            path: None,
        }
    }

    /// A credential of another kind is shown, which nobody here can judge.
    #[must_use]
    pub fn other() -> Self {
        Self {
            shown: Shown::Other,
            server: None,
            user: None,
            from: None,
            path: None,
        }
    }

    /// Something is shown that is no credential, or more than one.
    #[must_use]
    pub fn unfit() -> Self {
        Self {
            shown: Shown::Unfit,
            server: None,
            user: None,
            from: None,
            path: None,
        }
    }

    /// The same, shown to be let through to this server.
    #[must_use]
    pub fn for_server(self, server: Option<&'a str>) -> Self {
        Self { server, ..self }
    }

    /// The same, shown by a process of this user (uid) of the machine.
    #[must_use]
    pub fn from_user(self, user: Option<u32>) -> Self {
        Self { user, ..self }
    }

    /// The same, sent from this address.
    #[must_use]
    pub fn sent_from(self, from: Option<IpAddr>) -> Self {
        Self { from, ..self }
    }

    /// The same, sent to this path.
    #[must_use]
    pub fn at_path(self, path: Option<&'a str>) -> Self {
        Self { path, ..self }
    }

    /// Returns the path that the request was sent to, if it is known.
    #[must_use]
    pub fn path(&self) -> Option<&'a str> {
        self.path
    }

    pub(super) fn from(&self) -> Option<IpAddr> {
        self.from
    }

    pub(super) fn user(&self) -> Option<u32> {
        self.user
    }

    pub(super) fn shown(&self) -> Shown<'a> {
        self.shown
    }

    /// The server that it is shown to be let through to, where it is one.
    #[must_use]
    pub fn server(&self) -> Option<&'a str> {
        self.server
    }

    /// The text that is shown, for whoever has to compare it.
    #[must_use]
    pub fn text(&self) -> Option<&'a str> {
        match self.shown {
            Shown::Bearer(text) => Some(text),
            Shown::Nothing | Shown::Other | Shown::Unfit => None,
        }
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

    /// The callers (by subject) that have lost a credential since this was last asked, or that have shown one whose time is over
    /// by now, in milliseconds since 1970.
    fn take_revoked(&self, _now_ms: i64) -> Vec<Arc<str>> {
        Vec::new()
    }
}

/// Whoever comes this way is the same caller, if it is a process of this user.
#[derive(Debug, Clone)]
pub struct LocalUser {
    /// The caller.
    pub caller: Caller,
    /// The user (uid).
    pub user: u32,
}

impl Authenticate for LocalUser {
    fn identify(&self, shown: &Credential<'_>, _now_ms: i64) -> Result<Caller, IdentityFault> {
        match shown.user() {
            Some(user) if user == self.user => {}
            Some(_) => return Err(IdentityFault::OtherUser),
            None => return Err(IdentityFault::UserUnknown),
        }
        match shown.shown() {
            // A key is not needed here; one that is shown nevertheless opens nothing more.
            Shown::Nothing | Shown::Bearer(_) | Shown::Other => Ok(self.caller.clone()),
            Shown::Unfit => Err(IdentityFault::Ambiguous),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::caller::Proof;

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
        let local = LocalUser {
            caller: Caller::local("ada"),
            user: 1_000,
        };
        for shown in [
            Credential::none(),
            Credential::bearer("anything"),
            Credential::other(),
        ] {
            let caller = local.identify(&shown.from_user(Some(1_000)), 0).unwrap();
            assert_eq!((&*caller.subject, caller.proof), ("ada", Proof::LocalUser));
        }
        let odd = Credential::unfit().from_user(Some(1_000));
        let odd = local.identify(&odd, 0).map(drop);
        assert_eq!(odd, Err(IdentityFault::Ambiguous));
        for (user, fault) in [
            (Some(0), IdentityFault::OtherUser),
            (Some(1_001), IdentityFault::OtherUser),
            (None, IdentityFault::UserUnknown),
        ] {
            let shown = Credential::none().from_user(user);
            assert_eq!(local.identify(&shown, 0).map(drop), Err(fault));
        }
    }
}
