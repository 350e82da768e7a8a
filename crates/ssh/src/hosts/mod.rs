//! The machines that can be reached, and as whom: `ssh_hosts.yaml`.
//!
//! A host has a name, and calls use that name alone: address, user, credential and trust are the
//! operator's to set. Secrets are named by where they are, and read when a login needs them.

mod client;
mod file;
mod guarded;
mod key_sources;
mod look;
mod secret;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use toolkit::files::GuardedFiles;
use toolkit::measure::{Measure, Measured};

pub use file::{HOSTS_MAX, HostsFault};
pub(crate) use key_sources::read_key_file;
pub use key_sources::{KeyFile, KeySources};
pub use secret::Secret;

/// All hosts of one file.
#[derive(Debug, Default)]
pub struct Hosts {
    pub(crate) hosts: BTreeMap<String, Arc<Host>>,
    /// Files of known host keys, in the format of OpenSSH.
    pub(crate) known_hosts: Vec<PathBuf>,
    pub(crate) limits: Limits,
    /// Folders of this machine that transfers may use, by name.
    pub(crate) local_folders: crate::files::Folders,
    /// The folder with recordings of terminals; without one, none are made.
    pub(crate) recordings: Option<PathBuf>,
    /// Hosts of a configuration of OpenSSH's that cannot be used, and why.
    pub(crate) unusable: BTreeMap<String, String>,
    /// Files that the hosts file names, and those that these name.
    pub(crate) guarded: GuardedFiles,
}

/// A machine.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Host {
    /// The name in calls, rules and records.
    pub name: String,
    /// A DNS name or an address.
    pub address: String,
    /// Its port.
    pub port: u16,
    /// As whom.
    pub credential: Arc<Credential>,
    /// The machines on the way, the first one first.
    pub jump: Vec<Arc<Self>>,
    /// Which host keys are trusted.
    pub trust: Trust,
    /// What becomes of a path that leads elsewhere.
    pub links: Links,
    /// Variables that a call may set for its commands: names, or their beginnings and `*`.
    pub env: Vec<String>,
    /// Its own files of known hosts; without any, those of all hosts.
    pub known_hosts: Option<Vec<PathBuf>>,
}

/// What becomes of a path that leads elsewhere at the host, as through a link.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Links {
    /// The host is asked before the command runs. Where a path leads elsewhere, the call is judged again with
    /// that place, and the command gets the place instead of the path.
    #[default]
    Checked,
    /// Nobody is asked: who may make links there may have other files read than the rules say.
    Trusted,
}

/// Which keys of a host are trusted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Trust {
    /// Those in the files of known hosts.
    #[default]
    Strict,
    /// Those, and the first one of a host that has none there: it is written down.
    FirstUse,
}

/// A name and how it is proved.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Credential {
    /// The name in the file.
    pub id: String,
    /// The user on the machine.
    pub user: String,
    /// How it is proved, in the order in which a server is offered it. A server may want several.
    pub proofs: Vec<Proof>,
    /// How this user runs commands as root; `None` where it does not.
    pub sudo: Option<Sudo>,
}

/// How a user is let in by sudo.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Sudo {
    /// By this password.
    Password(Place),
    /// Without one, as `NOPASSWD` in `sudoers` has it.
    Passwordless,
}

/// How a user is proved.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Proof {
    /// Private keys of files and of an agent.
    Keys(KeySources),
    /// A new key for each login, with a certificate that a key of the operator's authority signs.
    Issued {
        /// The file with the authority's private key.
        authority: PathBuf,
        /// That key's passphrase.
        passphrase: Option<Place>,
        /// How long a certificate is good.
        seconds: u64,
    },
    /// A password; servers that ask question by question get it there.
    Password(Place),
    /// A password that the caller gives.
    Caller,
}

impl Credential {
    /// Returns the kinds of its proofs, in a few words.
    #[must_use]
    pub fn kind(&self) -> String {
        let kinds: Vec<&str> = self.proofs.iter().map(Proof::kind).collect();
        kinds.join(", ")
    }

    /// Returns whether callers may give a password for it.
    #[must_use]
    pub fn takes_password(&self) -> bool {
        self.proofs.contains(&Proof::Caller)
    }

    /// Returns where its secrets are.
    pub(crate) fn secrets(&self) -> Vec<&Place> {
        let mut places = Vec::new();
        for proof in &self.proofs {
            match proof {
                Proof::Keys(sources) => {
                    places.extend(
                        sources
                            .files
                            .iter()
                            .filter_map(|file| file.passphrase.as_ref()),
                    );
                }
                Proof::Issued { passphrase, .. } => places.extend(passphrase),
                Proof::Password(place) => places.push(place),
                Proof::Caller => {}
            }
        }
        if let Some(Sudo::Password(place)) = &self.sudo {
            places.push(place);
        }
        places
    }
}

impl Proof {
    /// Returns its kind in a word or two.
    fn kind(&self) -> &'static str {
        match self {
            Self::Keys(sources) => sources.kind(),
            Self::Issued { .. } => "a certificate for each login",
            Self::Password(_) => "password",
            Self::Caller => "the caller's password",
        }
    }
}

/// Where a secret is.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Place {
    /// In a file; one line end at its end is not part of it.
    File(PathBuf),
    /// In a variable of the environment.
    Variable(String),
}

impl Place {
    /// The secret that is there.
    ///
    /// # Errors
    /// Why it cannot be read, in words.
    pub(crate) fn read(&self, environment: &crate::Environment) -> Result<Secret, String> {
        match self {
            Self::File(path) => {
                let mut text = std::fs::read_to_string(path)
                    .map_err(|error| format!("{}: {error}", path.display()))?;
                if text.ends_with('\n') {
                    text.pop();
                }
                Ok(Secret::new(text))
            }
            Self::Variable(name) => match environment.variable(name) {
                Some(text) => Ok(Secret::new(text)),
                None => Err(format!("the variable {name} is not set")),
            },
        }
    }
}

/// Bounds on connections and commands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Limits {
    /// Most connections to one host as one user.
    pub connections_max: usize,
    /// Channels of one connection until the server says that it takes fewer.
    pub channels_max: usize,
    /// Most calls that wait for a channel to one host.
    pub queue_max: usize,
    /// Longest such wait.
    pub queue_wait_ms_max: u64,
    /// Longest time to connect and log in.
    pub connect_ms_max: u64,
    /// A connection without a command for so long is closed.
    pub idle_ms_max: u64,
    /// A silent connection is asked so often whether it is there.
    pub keepalive_ms: u64,
    /// A command's time where its call gives none.
    pub command_ms_default: u64,
    /// Longest time of a command.
    pub command_ms_max: u64,
    /// A job's time where its call gives none.
    pub job_ms_default: u64,
    /// Longest time of a job.
    pub job_ms_max: u64,
    /// Most bytes of each stream of a job that are kept, at the host and here.
    pub job_stream_bytes_max: u64,
    /// Jobs of one caller that run at a time; more wait.
    pub jobs_running_max: usize,
    /// Most bytes of each stream in an answer.
    pub answer_bytes_max: usize,
    /// Most bytes of a file that is moved.
    pub transfer_bytes_max: u64,
    /// Most port forwards of a session.
    pub forwards_max: usize,
    /// Most connections of a forward at a time.
    pub forward_connections_max: usize,
    /// A forward without a connection for so long ends.
    pub forward_idle_ms_max: u64,
    /// Most terminals of a session.
    pub terminals_max: usize,
    /// A terminal's time where its call gives none.
    pub terminal_ms_default: u64,
    /// Longest time of a terminal.
    pub terminal_ms_max: u64,
    /// Most bytes of a terminal's output that can still be read; older ones go first.
    pub terminal_bytes_max: usize,
    /// Most bytes of the recording of a terminal; then the terminal ends.
    pub recording_bytes_max: u64,
    /// Most sessions.
    pub sessions_max: usize,
    /// A session without a call for so long ends.
    pub session_idle_ms_max: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connections_max: 10,
            channels_max: 10,
            queue_max: 256,
            queue_wait_ms_max: 10_000,
            connect_ms_max: 20_000,
            idle_ms_max: 30 * 60_000,
            keepalive_ms: 30_000,
            command_ms_default: 30_000,
            command_ms_max: 60 * 60_000,
            job_ms_default: 24 * 60 * 60_000,
            job_ms_max: 7 * 24 * 60 * 60_000,
            job_stream_bytes_max: 64 * 1024 * 1024,
            jobs_running_max: 8,
            answer_bytes_max: 256 * 1024,
            transfer_bytes_max: 1024 * 1024 * 1024,
            forwards_max: 8,
            forward_connections_max: 32,
            forward_idle_ms_max: 10 * 60_000,
            terminals_max: 4,
            terminal_ms_default: 10 * 60_000,
            terminal_ms_max: 60 * 60_000,
            terminal_bytes_max: 1024 * 1024,
            recording_bytes_max: 64 * 1024 * 1024,
            sessions_max: 50,
            session_idle_ms_max: 30 * 60_000,
        }
    }
}

impl Limits {
    /// Those that calls meet first, for a scrape.
    pub(crate) fn measures(&self) -> impl Iterator<Item = Measure> {
        let all = [
            ("connections", self.connections_max),
            ("channels", self.channels_max),
            ("queue", self.queue_max),
            ("sessions", self.sessions_max),
        ];
        all.into_iter().map(|(limit, most)| {
            let most = Measured::Level(u64::try_from(most).unwrap_or(u64::MAX));
            let about = "Limits in force: connections to one host as one user, channels of one, calls that wait, sessions";
            Measure::new("mcp_ssh_limit", about, &[("limit", limit)], most)
        })
    }

    pub(crate) fn queue_wait(&self) -> Duration {
        Duration::from_millis(self.queue_wait_ms_max)
    }

    pub(crate) fn connect_wait(&self) -> Duration {
        Duration::from_millis(self.connect_ms_max)
    }
}

impl Hosts {
    /// The host of this name.
    #[must_use]
    pub fn named(&self, name: &str) -> Option<&Arc<Host>> {
        self.hosts.get(name)
    }

    /// Returns the host that a caller names by name, port and user: the one of this name, or, for another port, the only
    /// one with the same address and user at that port. The host of this name if there is no such one or several.
    #[must_use]
    pub fn resolve(&self, name: &str, port: Option<u64>, user: Option<&str>) -> Option<&Arc<Host>> {
        let named = self.hosts.get(name)?;
        let Some(port) = port.filter(|port| *port != u64::from(named.port)) else {
            return Some(named);
        };
        let user = user.unwrap_or(&named.credential.user);
        let mut others = self.hosts.values().filter(|host| {
            host.address == named.address
                && u64::from(host.port) == port
                && host.credential.user == user
        });
        let other = others.next().filter(|_| others.next().is_none());
        Some(other.unwrap_or(named))
    }

    /// The variables that the file names.
    #[must_use]
    pub fn variables(&self) -> Vec<String> {
        let mut names = Vec::new();
        for host in self.all() {
            for place in host.credential.secrets() {
                if let Place::Variable(name) = place
                    && !names.contains(name)
                {
                    names.push(name.clone());
                }
            }
        }
        names
    }

    /// Hosts that were left out, and why.
    pub fn unusable(&self) -> impl Iterator<Item = (&str, &str)> {
        let all = self.unusable.iter();
        all.map(|(name, why)| (name.as_str(), why.as_str()))
    }

    /// All of them, by name.
    pub fn all(&self) -> impl Iterator<Item = &Arc<Host>> {
        self.hosts.values()
    }
}

#[cfg(test)]
mod tests;
