//! Reading `ssh_hosts.yaml`.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::Deserialize;

use super::client::Client;
use super::{
    Credential, Host, Hosts, KeyFile, KeySources, Limits, Links, Place, Proof, Sudo, Trust,
};
use crate::command::check_name as check_variable;
use crate::config::{Config, Person};
use toolkit::files::{GuardedFiles, is_ours, unreadable};

/// Most hosts of a file.
pub const HOSTS_MAX: usize = 10_000;
/// Longest file, in bytes.
const FILE_BYTES_MAX: u64 = 16 * 1024 * 1024;
/// Most machines on the way to one.
pub(super) const JUMPS_MAX: usize = 8;
/// How long a certificate for one login is good, in seconds: where nothing is said, and what may be said.
const CERTIFICATE_SECONDS: u64 = 300;
const CERTIFICATE_SECONDS_MAY_BE: std::ops::RangeInclusive<u64> = 10..=86_400;
/// The port of SSH.
const PORT: u16 = 22;

/// Why a file of hosts cannot be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostsFault {
    /// The file, where what is wrong, and what to do.
    pub wrong: String,
}

impl fmt::Display for HostsFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.wrong)
    }
}

impl std::error::Error for HostsFault {}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FileText {
    #[serde(default)]
    known_hosts: OneOrMore,
    #[serde(default)]
    credentials: BTreeMap<String, CredentialText>,
    #[serde(default)]
    hosts: BTreeMap<String, HostText>,
    /// A configuration of OpenSSH's: its hosts are hosts here.
    ssh_config: Option<PathBuf>,
    /// Terminals are recorded here.
    recordings: Option<PathBuf>,
    /// Variables that callers may set for their commands, at every host.
    #[serde(default)]
    env: Vec<String>,
    #[serde(default)]
    local_folders: BTreeMap<String, PathBuf>,
    #[serde(default)]
    limits: Limits,
}

impl HostText {
    /// Returns whether ssh_config says who logs in, and where.
    fn is_of_ssh_config(&self) -> bool {
        self.credential.is_none()
            && self.address.is_none()
            && self.port.is_none()
            && self.jump.is_empty()
    }
}

#[derive(Deserialize, Default)]
#[serde(transparent)]
struct OneOrMore(Vec<PathBuf>);

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct CredentialText {
    user: String,
    key: Option<PathBuf>,
    certificate: Option<PathBuf>,
    /// A key that signs a certificate for each login.
    ca_key: Option<PathBuf>,
    certificate_seconds: Option<u64>,
    passphrase_file: Option<PathBuf>,
    passphrase_env: Option<String>,
    password_file: Option<PathBuf>,
    password_env: Option<String>,
    agent: Option<PathBuf>,
    /// The caller's own password is taken.
    #[serde(default)]
    password_from_caller: bool,
    sudo_password_file: Option<PathBuf>,
    sudo_password_env: Option<String>,
    sudo: Option<SudoText>,
}

#[derive(Deserialize, Clone, Copy)]
#[serde(rename_all = "snake_case")]
enum SudoText {
    Passwordless,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct HostText {
    address: Option<String>,
    port: Option<u16>,
    /// Without one, the configuration of OpenSSH's says what applies.
    credential: Option<String>,
    #[serde(default)]
    jump: Vec<String>,
    #[serde(default)]
    trust: Trust,
    #[serde(default)]
    links: Links,
    /// Beside those of all hosts.
    #[serde(default)]
    env: Vec<String>,
}

impl Hosts {
    /// Reads a file. Relative paths in it are relative to it; `person` is whose `ssh_config` it may name.
    ///
    /// # Errors
    /// [`HostsFault`] with the place in the file.
    pub fn read(path: &Path, person: &Person) -> Result<Self, HostsFault> {
        let fault = |wrong: String| HostsFault {
            wrong: format!("{}: {wrong}", path.display()),
        };
        let told = std::fs::metadata(path).map_err(|error| fault(unreadable(&error)))?;
        is_ours(&told, "could have passwords sent to another machine").map_err(fault)?;
        if told.len() > FILE_BYTES_MAX {
            return Err(fault(format!("is longer than {FILE_BYTES_MAX} bytes")));
        }
        let text = std::fs::read_to_string(path).map_err(|error| fault(unreadable(&error)))?;
        let folder = path.parent().unwrap_or(Path::new("."));
        Self::of_person(&text, folder, person).map_err(|error| fault(error.wrong))
    }

    /// Reads a text as the file in this folder.
    ///
    /// # Errors
    /// [`HostsFault`].
    pub fn of(text: &str, folder: &Path) -> Result<Self, HostsFault> {
        Self::of_person(text, folder, &Person::default())
    }

    /// The same on behalf of this person.
    ///
    /// # Errors
    /// [`HostsFault`].
    pub fn of_person(text: &str, folder: &Path, person: &Person) -> Result<Self, HostsFault> {
        let read: FileText = serde_saphyr::from_str(text)
            // The error's own text would quote the line, and with it what may stand there.
            .map_err(|error| HostsFault {
                wrong: error.without_snippet().to_string(),
            })?;
        let client = match &read.ssh_config {
            Some(path) => {
                let path = person.path(path).unwrap_or_else(|| folder.join(path));
                let config = Config::read(&path, person);
                let config = config.map_err(|fault| HostsFault { wrong: fault.wrong })?;
                Some(Client { config, person })
            }
            None => None,
        };
        let reading = Reading {
            read,
            folder,
            client,
        };
        reading.hosts()
    }
}

struct Reading<'f> {
    read: FileText,
    folder: &'f Path,
    client: Option<Client<'f>>,
}

fn fault<T>(wrong: impl Into<String>) -> Result<T, HostsFault> {
    Err(HostsFault {
        wrong: wrong.into(),
    })
}

fn check_name(name: &str) -> Result<(), HostsFault> {
    let fits = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
    if name.is_empty() || !name.chars().all(fits) {
        return fault(format!(
            "hosts.{name}: a name has letters, digits and . _ - only"
        ));
    }
    Ok(())
}

impl Reading<'_> {
    fn hosts(&self) -> Result<Hosts, HostsFault> {
        if self.read.hosts.len() > HOSTS_MAX {
            return fault(format!("there are more than {HOSTS_MAX} hosts"));
        }
        let mut credentials = BTreeMap::new();
        for (id, text) in &self.read.credentials {
            credentials.insert(id.as_str(), Arc::new(self.credential(id, text)?));
        }
        let (mut hosts, mut unusable) = (BTreeMap::new(), BTreeMap::new());
        for name in self.client.iter().flat_map(|client| client.config.names()) {
            match self.client_host(name) {
                _ if self.read.hosts.contains_key(name) => {}
                Ok(host) => drop(hosts.insert(name.to_owned(), Arc::new(host))),
                Err(fault) => drop(unusable.insert(name.to_owned(), fault.wrong)),
            }
        }
        for (name, text) in &self.read.hosts {
            if text.is_of_ssh_config()
                && let Some(client) = &self.client
                && let Err(wrong) = client.host(name)
            {
                check_name(name)?;
                unusable.insert(name.clone(), format!("hosts.{name}: {wrong}"));
                continue;
            }
            let mut host = self.host(name, text, &credentials)?;
            self.jumps(name, text, &credentials, &mut host)?;
            hosts.insert(name.clone(), Arc::new(host));
        }
        if hosts.len() > HOSTS_MAX {
            return fault(format!("there are more than {HOSTS_MAX} hosts"));
        }
        if hosts.is_empty() && unusable.is_empty() {
            return fault(
                "there is no host; write one under hosts, or name an ssh_config that has some",
            );
        }
        let mut local_folders = BTreeMap::new();
        for (name, folder) in &self.read.local_folders {
            let folder = self.at(folder);
            if name.is_empty() || name.contains('/') || !folder.is_dir() {
                return fault(format!(
                    "local_folders.{name}: {} is not a directory, or the name has a /",
                    folder.display()
                ));
            }
            local_folders.insert(name.clone(), folder);
        }
        let recordings = self.recordings()?;
        let known_hosts = self.read.known_hosts.0.iter();
        let mut read = Hosts {
            hosts,
            recordings,
            local_folders,
            unusable,
            known_hosts: known_hosts.map(|path| self.at(path)).collect(),
            limits: self.read.limits,
            guarded: GuardedFiles::default(),
        };
        let config = self.client.iter().flat_map(|client| client.config.files());
        read.guard(credentials.values().map(Arc::as_ref), config);
        Ok(read)
    }

    /// The folder of recordings.
    fn recordings(&self) -> Result<Option<PathBuf>, HostsFault> {
        let recordings = self.read.recordings.as_deref().map(|path| self.at(path));
        if let Some(folder) = recordings.as_ref().filter(|folder| !folder.is_dir()) {
            let folder = folder.display();
            return fault(format!(
                "recordings: {folder} is not a directory; make it first"
            ));
        }
        Ok(recordings)
    }

    /// The machines on the way to a host of the file.
    fn jumps(
        &self,
        name: &str,
        text: &HostText,
        credentials: &BTreeMap<&str, Arc<Credential>>,
        host: &mut Host,
    ) -> Result<(), HostsFault> {
        for (at, jump) in text.jump.iter().enumerate() {
            if at >= JUMPS_MAX {
                return fault(format!(
                    "hosts.{name}.jump has more than {JUMPS_MAX} members"
                ));
            }
            let Some(over) = self.read.hosts.get(jump) else {
                return fault(format!("hosts.{name}.jump: there is no host \"{jump}\""));
            };
            if jump == name || !over.jump.is_empty() {
                return fault(format!(
                    "hosts.{name}.jump: \"{jump}\" has a way of its own; list every machine on the way here instead"
                ));
            }
            host.jump
                .push(Arc::new(self.host(jump, over, credentials)?));
        }
        Ok(())
    }

    fn at(&self, path: &Path) -> PathBuf {
        self.folder.join(path)
    }

    fn host(
        &self,
        name: &str,
        text: &HostText,
        credentials: &BTreeMap<&str, Arc<Credential>>,
    ) -> Result<Host, HostsFault> {
        check_name(name)?;
        let Some(id) = &text.credential else {
            if !text.is_of_ssh_config() {
                return fault(format!(
                    "hosts.{name}: there is no credential; without one, ssh_config says address, port and jump too"
                ));
            }
            let host = self.client_host(name)?;
            return Ok(Host {
                links: text.links,
                env: self.env(name, &text.env)?,
                ..host
            });
        };
        let Some(credential) = credentials.get(id.as_str()) else {
            return fault(format!(
                "hosts.{name}.credential: there is no credential \"{id}\""
            ));
        };
        Ok(Host {
            name: name.to_owned(),
            address: text.address.clone().unwrap_or_else(|| name.to_owned()),
            port: text.port.unwrap_or(PORT),
            credential: Arc::clone(credential),
            jump: Vec::new(),
            trust: text.trust,
            links: text.links,
            env: self.env(name, &text.env)?,
            known_hosts: None,
        })
    }

    /// Variables of all hosts, and this one's.
    fn env(&self, name: &str, own: &[String]) -> Result<Vec<String>, HostsFault> {
        let all = [
            ("env".to_owned(), self.read.env.as_slice()),
            (format!("hosts.{name}.env"), own),
        ];
        let mut names = Vec::new();
        for (place, patterns) in all {
            for pattern in patterns {
                let begin = pattern.strip_suffix('*').unwrap_or(pattern);
                check_variable(begin).map_err(|fault| HostsFault {
                    wrong: format!("{place}: {pattern}: {fault}"),
                })?;
                names.push(pattern.clone());
            }
        }
        Ok(names)
    }

    fn client_host(&self, name: &str) -> Result<Host, HostsFault> {
        check_name(name)?;
        let env = self.env(name, &[])?;
        let with = |host: Host| Host { env, ..host };
        match &self.client {
            Some(client) => client.host(name).map(with).map_err(|wrong| HostsFault {
                wrong: format!("hosts.{name}: {wrong}"),
            }),
            None => fault(format!(
                "hosts.{name}: there is no credential, and no ssh_config that could say one"
            )),
        }
    }

    /// The proof by a key: by one that is there, or by one for each login.
    fn keys(
        &self,
        id: &str,
        text: &CredentialText,
        passphrase: Option<Place>,
    ) -> Result<Vec<Proof>, HostsFault> {
        let wrong = |what: &str| fault(format!("credentials.{id}: {what}"));
        match (&text.key, &text.ca_key) {
            (Some(_), Some(_)) => wrong(
                "key and ca_key are both given; keep one, and give the other a name of its own",
            ),
            (Some(_), None) if text.certificate_seconds.is_some() => {
                wrong("certificate_seconds is for ca_key; a certificate in a file has its own time")
            }
            (Some(key), None) => Ok(vec![Proof::Keys(KeySources {
                files: vec![KeyFile {
                    path: self.at(key),
                    passphrase,
                }],
                certificates: text.certificate.iter().map(|path| self.at(path)).collect(),
                agent: text.agent.as_deref().map(|socket| self.at(socket)),
                identities_only: true,
                skips_unreadable: false,
            })]),
            (None, Some(_)) if text.certificate.is_some() => {
                wrong("ca_key makes a certificate for each login; take certificate away")
            }
            (None, Some(authority)) => {
                let seconds = text.certificate_seconds.unwrap_or(CERTIFICATE_SECONDS);
                let (least, most) = CERTIFICATE_SECONDS_MAY_BE.into_inner();
                if !(least..=most).contains(&seconds) {
                    return wrong(&format!(
                        "certificate_seconds is {seconds}; it may be {least} to {most}"
                    ));
                }
                Ok(vec![Proof::Issued {
                    authority: self.at(authority),
                    passphrase,
                    seconds,
                }])
            }
            (None, None)
                if text.certificate.is_some()
                    || passphrase.is_some()
                    || text.certificate_seconds.is_some() =>
            {
                wrong("there is no key that it belongs to")
            }
            (None, None) => Ok(Vec::new()),
        }
    }

    fn credential(&self, id: &str, text: &CredentialText) -> Result<Credential, HostsFault> {
        let place = |file: &Option<PathBuf>, variable: &Option<String>, what: &str| {
            Ok(match (file, variable) {
                (Some(file), None) => Some(Place::File(self.at(file))),
                (None, Some(variable)) => Some(Place::Variable(variable.clone())),
                (None, None) => None,
                (Some(_), Some(_)) => {
                    return fault(format!(
                        "credentials.{id}: {what}_file and {what}_env are both given; keep one"
                    ));
                }
            })
        };
        let passphrase = place(&text.passphrase_file, &text.passphrase_env, "passphrase")?;
        let password = place(&text.password_file, &text.password_env, "password")?;
        let by_sudo = place(
            &text.sudo_password_file,
            &text.sudo_password_env,
            "sudo_password",
        )?;
        let sudo = match (by_sudo, text.sudo) {
            (Some(_), Some(SudoText::Passwordless)) => {
                return fault(format!(
                    "credentials.{id}: sudo is passwordless, and has a password; keep one"
                ));
            }
            (Some(place), None) => Some(Sudo::Password(place)),
            (None, Some(SudoText::Passwordless)) => Some(Sudo::Passwordless),
            (None, None) => None,
        };
        let mut proofs = self.keys(id, text, passphrase)?;
        if let (None, Some(socket)) = (&text.key, &text.agent) {
            proofs.push(Proof::Keys(KeySources {
                agent: Some(self.at(socket)),
                ..KeySources::default()
            }));
        }
        if password.is_some() && text.password_from_caller {
            return fault(format!(
                "credentials.{id}: it has a password, and takes the caller's; keep one"
            ));
        }
        proofs.extend(password.map(Proof::Password));
        if text.password_from_caller {
            proofs.push(Proof::Caller);
        }
        if proofs.is_empty() {
            return fault(format!(
                "credentials.{id}: write one or more of key, ca_key, password_file, password_env, agent and password_from_caller"
            ));
        }
        Ok(Credential {
            id: id.to_owned(),
            user: text.user.clone(),
            proofs,
            sudo,
        })
    }
}
