//! Hosts as a configuration of OpenSSH's client has them.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::file::JUMPS_MAX;
use super::{Credential, Host, KeyFile, KeySources, Links, Proof, Trust};
use crate::config::{Config, Effective, OF_FILES, OF_JUMPS, Person, Tokens, expanded};

/// Files with keys that are tried if none is named, in the order of OpenSSH's client.
const USUAL_KEYS: [&str; 3] = ["id_rsa", "id_ecdsa", "id_ed25519"];
/// Files of known hosts where none is named.
const USUAL_KNOWN: [&str; 2] = ["~/.ssh/known_hosts", "~/.ssh/known_hosts2"];
const USUAL_GLOBAL: [&str; 2] = ["/etc/ssh/ssh_known_hosts", "/etc/ssh/ssh_known_hosts2"];

/// A configuration, and whose it is.
#[derive(Debug)]
pub(super) struct Client<'p> {
    pub config: Config,
    pub person: &'p Person,
}

impl Person {
    /// A path below `~`, where it is one.
    pub(super) fn path(&self, path: &Path) -> Option<PathBuf> {
        path.strip_prefix("~").ok().map(|rest| self.home.join(rest))
    }
}

/// A machine on the way, as `ProxyJump` names it.
struct Jump<'t> {
    user: Option<&'t str>,
    host: &'t str,
    port: Option<u16>,
}

impl Client<'_> {
    /// The host of this name.
    pub fn host(&self, name: &str) -> Result<Host, String> {
        self.at(name, None, JUMPS_MAX)
    }

    fn at(&self, name: &str, jump: Option<&Jump<'_>>, left: usize) -> Result<Host, String> {
        let mut applies = self.config.effective(name, self.person)?;
        if let Some(jump) = jump {
            applies.user = jump.user.map_or(applies.user, str::to_owned);
            applies.port = jump.port.unwrap_or(applies.port);
        }
        if applies.has_proxy_command {
            return Err(
                "ProxyCommand runs a program on this machine, which is not done here; use ProxyJump"
                    .into(),
            );
        }
        if applies.key_alias.is_some() {
            return Err(
                "HostKeyAlias is not known here; file the key under the host's own name".into(),
            );
        }
        if applies
            .revoked_keys
            .as_deref()
            .is_some_and(|of| of != "none")
        {
            return Err(
                "RevokedHostKeys is not read here; write @revoked lines into known_hosts instead"
                    .into(),
            );
        }
        let home = self.person.home.to_string_lossy();
        let tokens = Tokens {
            host: &applies.host,
            name,
            port: applies.port,
            user: &applies.user,
            local_user: &self.person.user,
            home: &home,
        };
        if applies.user.is_empty() {
            return Err("there is no User".into());
        }
        let way = match applies.proxy_jump.as_deref() {
            None | Some("none") => Vec::new(),
            Some(text) => self.way(&expanded(text, OF_JUMPS, &tokens)?, left)?,
        };
        Ok(Host {
            name: name.to_owned(),
            address: applies.host.clone(),
            port: applies.port,
            credential: Arc::new(Credential {
                sudo: None,
                id: format!("ssh_config of {name}"),
                user: applies.user.clone(),
                proofs: vec![self.keys(&applies, &tokens)?],
            }),
            jump: way,
            trust: trust(applies.strict.as_deref())?,
            links: Links::default(),
            env: Vec::new(),
            known_hosts: Some(self.known(&applies, &tokens)?),
        })
    }

    /// The machines on the way. The first one may have a way of its own; who reaches the others is said here.
    fn way(&self, text: &str, left: usize) -> Result<Vec<Arc<Host>>, String> {
        let mut way = Vec::new();
        for (at, word) in text.split(',').enumerate() {
            if left == 0 || at >= JUMPS_MAX {
                return Err(format!(
                    "ProxyJump: more than {JUMPS_MAX} machines are on the way"
                ));
            }
            let jump = Jump::read(word)?;
            let mut host = self.at(jump.host, Some(&jump), left - 1)?;
            let before = std::mem::take(&mut host.jump);
            if at == 0 {
                way.extend(before);
            }
            way.push(Arc::new(host));
        }
        if way.len() > JUMPS_MAX {
            return Err(format!(
                "ProxyJump: more than {JUMPS_MAX} machines are on the way"
            ));
        }
        Ok(way)
    }

    fn file(&self, text: &str, tokens: &Tokens<'_>) -> Result<PathBuf, String> {
        let path = PathBuf::from(expanded(text, OF_FILES, tokens)?);
        if let Some(path) = self.person.path(&path) {
            return Ok(path);
        }
        if text.starts_with('~') {
            return Err(format!("{text}: other users' homes are not known"));
        }
        if path.is_relative() {
            return Err(format!("{text}: write the whole path"));
        }
        Ok(path)
    }

    /// Returns the keys of the host's lines, or the usual ones if no line names any.
    fn keys(&self, applies: &Effective, tokens: &Tokens<'_>) -> Result<Proof, String> {
        let all = |files: &[String]| -> Result<Vec<PathBuf>, String> {
            let files = files.iter().filter(|file| *file != "none");
            files.map(|file| self.file(file, tokens)).collect()
        };
        let mut files = all(&applies.identity_files)?;
        if applies.identity_files.is_empty() {
            let folder = self.person.home.join(".ssh");
            let usual = USUAL_KEYS.iter().map(|name| folder.join(name));
            files.extend(usual.filter(|key| key.exists()));
        }
        let agent = match applies.identity_agent.as_deref() {
            Some("none") => None,
            None | Some("SSH_AUTH_SOCK") => self.person.agent.clone(),
            Some(text) => Some(self.file(text, tokens)?),
        };
        if files.is_empty() && agent.is_none() {
            return Err("there is no IdentityFile, no agent, and no usual key".into());
        }
        let of_file = |path| KeyFile {
            path,
            passphrase: None,
        };
        Ok(Proof::Keys(KeySources {
            files: files.into_iter().map(of_file).collect(),
            certificates: all(&applies.certificate_files)?,
            agent,
            identities_only: applies.identities_only,
            skips_unreadable: true,
        }))
    }

    /// The user's files come first: a first key is written to the first one.
    fn known(&self, applies: &Effective, tokens: &Tokens<'_>) -> Result<Vec<PathBuf>, String> {
        let usual = |files: &[&str]| files.iter().map(|file| (*file).to_owned()).collect();
        let of_user = applies.user_known_hosts.clone();
        let of_all = applies.global_known_hosts.clone();
        let files: Vec<String> = of_user.unwrap_or_else(|| usual(&USUAL_KNOWN));
        let all: Vec<String> = of_all.unwrap_or_else(|| usual(&USUAL_GLOBAL));
        let files = files.iter().chain(&all).filter(|file| *file != "none");
        files.map(|file| self.file(file, tokens)).collect()
    }
}

impl<'t> Jump<'t> {
    fn read(text: &'t str) -> Result<Self, String> {
        let wrong = || format!("ProxyJump: \"{text}\" is not [USER@]HOST[:PORT]");
        let rest = text.strip_prefix("ssh://").unwrap_or(text);
        let (user, rest) = match rest.rsplit_once('@') {
            Some((user, rest)) => (Some(user), rest),
            None => (None, rest),
        };
        let (host, port) = match rest.strip_prefix('[').map(|rest| rest.split_once(']')) {
            Some(Some((host, ""))) => (host, None),
            Some(Some((host, port))) => (host, Some(port.strip_prefix(':').ok_or_else(wrong)?)),
            Some(None) => return Err(wrong()),
            None => match rest.split_once(':') {
                Some((host, port)) => (host, Some(port)),
                None => (rest, None),
            },
        };
        let port = match port {
            Some(port) => Some(port.parse().ok().filter(|p| *p > 0).ok_or_else(wrong)?),
            None => None,
        };
        let is_odd =
            |c: char| c.is_whitespace() || c.is_control() || "'`\"$\\;&<>|(){}".contains(c);
        if host.is_empty() || host.starts_with('-') || host.contains(is_odd) || user == Some("") {
            return Err(wrong());
        }
        Ok(Self { user, host, port })
    }
}

fn trust(strict: Option<&str>) -> Result<Trust, String> {
    match strict.map(str::to_ascii_lowercase).as_deref() {
        // Nobody is there to be asked.
        None | Some("yes" | "ask" | "true") => Ok(Trust::Strict),
        Some("accept-new") => Ok(Trust::FirstUse),
        Some("no" | "off" | "false") => Err(
            "StrictHostKeyChecking no would let anybody be this host; write accept-new or yes"
                .into(),
        ),
        Some(other) => Err(format!("StrictHostKeyChecking {other} is not known")),
    }
}
