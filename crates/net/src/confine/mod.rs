//! What a child is kept from by the kernel, whatever it is asked to do.
//!
//! Reading a call cannot tell what a program does with it: a link may be made and followed in one call,
//! a base directory is known to the server alone. So the protected places are not there for a child: it
//! runs in a mount namespace of its own in which an empty directory or file covers each of them. A second
//! user namespace below the first locks those mounts: whatever the child may do in its own namespace, it
//! cannot remove a cover. The directories and links on the way to a protected place cannot be renamed or replaced there
//! either: another directory of the same name would not be covered.
//!
//! A sandbox goes further: only listed directories are there, and can be read, written and executed from; signals and
//! abstract sockets end at its edge, and there is no network where that is asked for.

mod arguments;
#[cfg(target_os = "linux")]
mod descriptors;
#[cfg(target_os = "linux")]
mod landlock;
#[cfg(target_os = "linux")]
mod namespaces;
#[cfg(target_os = "linux")]
mod view;
#[cfg(target_os = "linux")]
mod way;

use std::path::PathBuf;

#[cfg(target_os = "linux")]
pub(crate) use descriptors::close_inherited;
#[cfg(target_os = "linux")]
pub(crate) use namespaces::{MAP_COMMAND, map};

/// Where the names of hosts are looked up, which a sandbox with a network can read.
#[cfg(target_os = "linux")]
const RESOLVERS: [&str; 5] = [
    "/etc/resolv.conf",
    "/run/systemd/resolve",
    "/run/NetworkManager",
    "/run/resolvconf",
    "/run/nscd",
];

/// Whether a child is confined.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Confine {
    /// Where the kernel allows it; else a warning is logged and the child starts all the same.
    #[default]
    Auto,
    /// A child that cannot be confined is not started.
    Require,
    /// Not at all.
    Off,
}

impl Confine {
    /// All, in the order of the reference page.
    pub const ALL: [Self; 3] = [Self::Auto, Self::Require, Self::Off];

    /// The word used in configuration.
    #[must_use]
    pub fn label(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::Require => "require",
            Self::Off => "off",
        }
    }
}

/// What a child may reach, where that is listed. Directories of the system (`/usr`, `/lib`, `/etc`, …) can
/// always be read and executed from.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Sandbox {
    /// May be read.
    pub read: Vec<PathBuf>,
    /// May be read and written.
    pub write: Vec<PathBuf>,
    /// Programs below may be executed, and read.
    pub exec: Vec<PathBuf>,
    /// No network, not even this machine's own loopback.
    pub no_network: bool,
}

/// How a child is confined.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Confinement {
    /// Whether it is, and what follows where it cannot be.
    pub confine: Confine,
    /// Places that are empty for the child. A place that does not exist when the child starts is left out.
    pub covered: Vec<PathBuf>,
    /// Places that the child can read and execute, not change.
    pub read_only: Vec<PathBuf>,
    /// The rest of the file system, where that is limited.
    pub sandbox: Option<Sandbox>,
}

/// Why a child is not confined as wanted: one sentence with what to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unconfined(pub String);

impl std::fmt::Display for Unconfined {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl Confinement {
    /// Whether nothing is to be done.
    #[must_use]
    pub fn is_off(&self) -> bool {
        self.confine == Confine::Off
    }

    /// Confines this process and all that it starts from now on. To be called while the process has one
    /// thread, right before it becomes the child's program. Our own binary knows the hidden command that
    /// maps users, which a process of root needs.
    ///
    /// # Errors
    /// Where something that was wanted is not in force. With [`Confine::Require`] the child must not start.
    #[cfg(target_os = "linux")]
    pub fn enter(&self) -> Result<(), Unconfined> {
        if self.is_off() {
            return Ok(());
        }
        let no_network = self.sandbox.as_ref().is_some_and(|s| s.no_network);
        let covered = namespaces::enter(self, no_network).map_err(|failure| {
            Unconfined(format!(
                "the server's view of Durward's own files cannot be covered: {failure}; allow user namespaces (sysctl user.max_user_namespaces, kernel.apparmor_restrict_unprivileged_userns), or list what the server may reach with sandbox:"
            ))
        });
        // The listed places stand on their own where namespaces are forbidden.
        let listed = self
            .sandbox
            .as_ref()
            .map(|sandbox| landlock::enter(sandbox, &self.covered, covered.is_err()))
            .transpose()
            .map_err(Unconfined)?;
        match (covered, listed) {
            (Ok(()), _) => Ok(()),
            (Err(_), Some(())) if !no_network => Ok(()),
            (Err(why), _) => Err(why),
        }
    }

    /// Durward confines children on Linux only.
    ///
    /// # Errors
    /// Always, unless it is off.
    #[cfg(not(target_os = "linux"))]
    pub fn enter(&self) -> Result<(), Unconfined> {
        if self.is_off() {
            return Ok(());
        }
        Err(Unconfined(
            "servers are confined on Linux only; set confine: off to start it all the same".into(),
        ))
    }
}
