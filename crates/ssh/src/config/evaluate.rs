//! What applies to one host: the first value of every option, in the blocks that are for it.

use super::tokens::{Tokens, expanded};
use super::{Config, Criterion, Entry, Kind, Person, Wanted};
use crate::trust::matches;

/// The port of SSH.
const PORT: u16 = 22;

/// What applies to one host, texts as they stand in the file unless said otherwise.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Effective {
    /// Where to connect to, tokens replaced.
    pub host: String,
    /// The user there.
    pub user: String,
    /// The port there.
    pub port: u16,
    /// Files with keys.
    pub identity_files: Vec<String>,
    /// Files with certificates.
    pub certificate_files: Vec<String>,
    /// The agent's socket.
    pub identity_agent: Option<String>,
    /// Whether the agent's keys are offered only if a file names them.
    pub identities_only: bool,
    /// Machines on the way; `none` is none.
    pub proxy_jump: Option<String>,
    /// Whether a program would make the connection.
    pub has_proxy_command: bool,
    /// Files of known hosts.
    pub user_known_hosts: Option<Vec<String>>,
    /// Files of known hosts of the whole machine.
    pub global_known_hosts: Option<Vec<String>>,
    /// What becomes of a key that is not known.
    pub strict: Option<String>,
    /// The name under which its keys are filed.
    pub key_alias: Option<String>,
    /// A file of revoked keys of hosts; `none` is none.
    pub revoked_keys: Option<String>,
}

#[derive(Default, Clone, PartialEq)]
struct Found {
    host: Option<String>,
    user: Option<String>,
    port: Option<u16>,
    proxy_command: Option<String>,
    identities_only: Option<bool>,
    rest: Effective,
}

impl Config {
    /// What applies to a host of this name.
    ///
    /// # Errors
    /// The first line that is not supported and may apply to this host, or a token of `HostName` that is not known here.
    pub fn effective(&self, name: &str, person: &Person) -> Result<Effective, String> {
        let mut evaluating = Evaluating {
            name,
            person,
            found: Found::default(),
            unsupported: None,
        };
        evaluating.all(&self.entries, &Applies::Yes);
        if let Some(wrong) = evaluating.unsupported {
            return Err(wrong);
        }
        let host = evaluating.host()?;
        let Found {
            user,
            port,
            proxy_command,
            identities_only,
            rest,
            ..
        } = evaluating.found;
        Ok(Effective {
            host,
            user: user.unwrap_or_else(|| person.user.clone()),
            port: port.unwrap_or(PORT),
            identities_only: identities_only.unwrap_or_default(),
            has_proxy_command: proxy_command.is_some_and(|command| command != "none"),
            ..rest
        })
    }
}

struct Evaluating<'e> {
    name: &'e str,
    person: &'e Person,
    found: Found,
    /// The first line that is not supported and may change something.
    unsupported: Option<String>,
}

/// Whether a block is for the host.
#[derive(Clone, PartialEq)]
enum Applies {
    Yes,
    No,
    /// It depends on a line that is not supported.
    Unknown(String),
}

impl Evaluating<'_> {
    /// Evaluates the entries of one file, which applies as the block that includes it.
    fn all(&mut self, entries: &[Entry], file: &Applies) {
        let mut applies = file.clone();
        for entry in entries {
            match entry {
                Entry::Host(patterns) => {
                    applies = match fits(patterns, self.name, false) {
                        true => file.clone(),
                        false => Applies::No,
                    };
                }
                Entry::Match(criteria) => {
                    applies = match self.meets_all(criteria) {
                        Applies::Yes => file.clone(),
                        other => other,
                    };
                }
                Entry::Set(wanted, values) => self.set_if(&applies, *wanted, values),
                Entry::Include(_) if applies == Applies::No => {}
                // What a file makes of it holds in that file alone.
                Entry::Include(entries) => self.all(entries, &applies),
                Entry::Unsupported(_) if applies == Applies::No => {}
                Entry::Unsupported(wrong) => {
                    self.unsupported.get_or_insert_with(|| wrong.clone());
                }
            }
        }
    }

    fn set_if(&mut self, applies: &Applies, wanted: Wanted, values: &[String]) {
        match applies {
            Applies::No => {}
            Applies::Yes => self.set(wanted, values),
            Applies::Unknown(wrong) => {
                let before = self.found.clone();
                self.set(wanted, values);
                if self.found != before {
                    self.found = before;
                    self.unsupported.get_or_insert_with(|| {
                        format!("{wrong}; below it is {wanted:?}, which may be for this host")
                    });
                }
            }
        }
    }

    /// Evaluates criteria in order; the first that is not met decides.
    fn meets_all(&self, criteria: &[Criterion]) -> Applies {
        let mut applies = Applies::Yes;
        for criterion in criteria {
            match &criterion.kind {
                Kind::Unsupported(wrong) => applies = Applies::Unknown(wrong.clone()),
                _ if self.meets(criterion) => {}
                _ => return Applies::No,
            }
        }
        applies
    }

    /// As it stands now: what comes later cannot change it.
    fn host(&self) -> Result<String, String> {
        let Some(host) = &self.found.host else {
            return Ok(self.name.to_owned());
        };
        let tokens = Tokens {
            host: self.name,
            name: self.name,
            port: 0,
            user: "",
            local_user: "",
            home: "",
        };
        expanded(host, "h", &tokens)
    }

    fn meets(&self, criterion: &Criterion) -> bool {
        let person = self.person.user.as_str();
        let patterns = &criterion.patterns;
        let meets = match &criterion.kind {
            Kind::All => true,
            // One that is not supported is handled before.
            Kind::Canonical | Kind::Unsupported(_) => false,
            Kind::Host => fits(patterns, &self.host().unwrap_or_default(), true),
            Kind::OriginalHost => fits(patterns, self.name, true),
            Kind::User => fits(
                patterns,
                self.found.user.as_deref().unwrap_or(person),
                false,
            ),
            Kind::LocalUser => fits(patterns, person, false),
        };
        meets != criterion.negated
    }

    fn set(&mut self, wanted: Wanted, values: &[String]) {
        let first = values.first().cloned();
        let Found {
            host,
            user,
            port,
            proxy_command,
            identities_only,
            rest,
        } = &mut self.found;
        match wanted {
            Wanted::HostName => keep(host, first),
            Wanted::User => keep(user, first),
            Wanted::Port => keep(port, first.and_then(|port| port.parse().ok())),
            Wanted::IdentityFile => {
                let further = first.filter(|file| !rest.identity_files.contains(file));
                rest.identity_files.extend(further);
            }
            Wanted::CertificateFile => {
                let further = first.filter(|file| !rest.certificate_files.contains(file));
                rest.certificate_files.extend(further);
            }
            Wanted::IdentityAgent => keep(&mut rest.identity_agent, first),
            Wanted::IdentitiesOnly => keep(identities_only, first.as_deref().map(is_yes)),
            // Of these two the first one counts.
            Wanted::ProxyJump if proxy_command.is_none() => keep(&mut rest.proxy_jump, first),
            Wanted::ProxyCommand if rest.proxy_jump.is_none() => keep(proxy_command, first),
            Wanted::ProxyJump | Wanted::ProxyCommand => {}
            Wanted::UserKnownHostsFile => keep(&mut rest.user_known_hosts, Some(values.to_vec())),
            Wanted::GlobalKnownHostsFile => {
                keep(&mut rest.global_known_hosts, Some(values.to_vec()));
            }
            Wanted::StrictHostKeyChecking => keep(&mut rest.strict, first),
            Wanted::HostKeyAlias => keep(&mut rest.key_alias, first),
            Wanted::RevokedHostKeys => keep(&mut rest.revoked_keys, first),
        }
    }
}

/// `values` rejects what is neither yes nor no.
fn is_yes(text: &str) -> bool {
    matches!(text.to_ascii_lowercase().as_str(), "yes" | "true")
}

fn keep<T>(kept: &mut Option<T>, value: Option<T>) {
    if kept.is_none() {
        *kept = value;
    }
}

/// Whether a text fits one of these patterns and none behind a `!`.
fn fits(patterns: &[String], text: &str, lowered: bool) -> bool {
    let mut is_named = false;
    for pattern in patterns {
        let pattern = if lowered {
            pattern.to_ascii_lowercase()
        } else {
            pattern.clone()
        };
        match pattern.strip_prefix('!') {
            Some(not) if matches(not.as_bytes(), text.as_bytes()) => return false,
            Some(_) => {}
            None => is_named |= matches(pattern.as_bytes(), text.as_bytes()),
        }
    }
    is_named
}
