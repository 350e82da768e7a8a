//! Variants of a target: seven servers that differ in one thing each, and a twin of each behind a bad line.

use std::time::Duration;

/// Who is let in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AdmissionRule {
    /// Users with a password or the key.
    PasswordAndKey,
    /// Users with the key.
    KeyOnly,
    /// No user.
    Nobody,
}

/// One server.
#[derive(Debug, Clone, Copy)]
pub struct ServerVariant {
    /// Its name in the file of hosts.
    pub name: &'static str,
    /// Its peculiarity, for people.
    pub about: &'static str,
    /// Its user in the file of hosts.
    pub user: &'static str,
    /// Who is let in.
    pub admits: AdmissionRule,
    /// How long a login takes.
    pub slow: Duration,
    /// How often it drops all connections and listens again.
    pub restarts: Option<Duration>,
    /// Root may log in.
    pub root: bool,
}

/// A line that is worse than the machine's own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LineQuality {
    /// How long a piece is on its way.
    pub delay: Duration,
    /// The delay varies by so much up and down.
    pub jitter: Duration,
    /// In a hundred pieces, how many are sent again; each holds up all that follow.
    pub loss_percent: u8,
}

/// How long a lost piece takes until it is sent again: what TCP waits at first.
pub const SENT_AGAIN: Duration = Duration::from_millis(200);
/// How far a twin's port is from its server's.
pub const TWIN_PORTS: u16 = 100;

const STANDARD: ServerVariant = ServerVariant {
    name: "standard",
    about: "password and key",
    user: "testuser",
    admits: AdmissionRule::PasswordAndKey,
    slow: Duration::ZERO,
    restarts: None,
    root: false,
};

/// All servers, in the order of their ports.
pub const VARIANTS: [ServerVariant; 7] = [
    STANDARD,
    ServerVariant {
        name: "keyonly",
        about: "key only, a password is refused",
        admits: AdmissionRule::KeyOnly,
        ..STANDARD
    },
    ServerVariant {
        name: "prompts",
        about: "shells with odd prompts",
        user: "fancyuser",
        ..STANDARD
    },
    ServerVariant {
        name: "slowauth",
        about: "a login takes 2 s longer",
        user: "slowuser",
        slow: Duration::from_secs(2),
        ..STANDARD
    },
    ServerVariant {
        name: "denyall",
        about: "every login is refused",
        admits: AdmissionRule::Nobody,
        ..STANDARD
    },
    ServerVariant {
        name: "unstable",
        about: "drops all connections every 5 s",
        restarts: Some(Duration::from_secs(5)),
        ..STANDARD
    },
    ServerVariant {
        name: "root",
        about: "root may log in",
        user: "root",
        root: true,
        ..STANDARD
    },
];

const fn line(delay_ms: u64, jitter_ms: u64, loss_percent: u8) -> LineQuality {
    LineQuality {
        delay: Duration::from_millis(delay_ms),
        jitter: Duration::from_millis(jitter_ms),
        loss_percent,
    }
}

/// The lines of the twins, in the same order.
pub const LINES: [LineQuality; 7] = [
    line(100, 10, 0),
    line(50, 5, 5),
    line(200, 20, 10),
    line(500, 50, 0),
    line(1000, 100, 0),
    line(100, 30, 2),
    line(50, 5, 0),
];

/// The password of every user but root.
const PASSWORD: &str = "testpass";
/// Users, with the prompt of their shells.
const USERS: [(&str, &str); 6] = [
    ("testuser", "$ "),
    ("fancyuser", "\u{1b}[1;32mfancy\u{1b}[0m \u{bb} "),
    ("gituser", "~/src (main *) \u{3bb} "),
    ("zshuser", "zsh% "),
    ("dashuser", "> "),
    ("slowuser", "$ "),
];

impl ServerVariant {
    /// Returns the prompt of this user, if there is such a user.
    #[must_use]
    pub fn prompt(&self, user: &str) -> Option<&'static str> {
        if user == "root" {
            return self.root.then_some("# ");
        }
        let found = USERS.iter().find(|(name, _)| *name == user);
        found.map(|(_, prompt)| *prompt)
    }

    /// Returns whether this password lets this user in.
    #[must_use]
    pub fn takes_password(&self, user: &str, password: &str) -> bool {
        let right = if user == "root" { "root" } else { PASSWORD };
        self.admits == AdmissionRule::PasswordAndKey
            && self.prompt(user).is_some()
            && password == right
    }

    /// Returns the password of the user in the file of hosts.
    #[must_use]
    pub fn password(&self) -> &'static str {
        if self.user == "root" {
            "root"
        } else {
            PASSWORD
        }
    }

    /// Returns whether the key lets this user in.
    #[must_use]
    pub fn takes_key(&self, user: &str) -> bool {
        self.admits != AdmissionRule::Nobody && self.prompt(user).is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_is_let_in_where() {
        let by_name = |name: &str| *VARIANTS.iter().find(|v| v.name == name).unwrap();
        for (name, user, password, is) in [
            ("standard", "testuser", "testpass", true),
            ("standard", "testuser", "wrong", false),
            ("standard", "root", "root", false),
            ("standard", "nobody", "testpass", false),
            ("keyonly", "testuser", "testpass", false),
            ("denyall", "testuser", "testpass", false),
            ("root", "root", "root", true),
            ("root", "root", "testpass", false),
        ] {
            assert_eq!(
                by_name(name).takes_password(user, password),
                is,
                "{name} {user}"
            );
        }
        assert!(by_name("keyonly").takes_key("testuser"));
        assert!(
            !by_name("denyall").takes_key("testuser") && !by_name("standard").takes_key("root")
        );
    }
}
