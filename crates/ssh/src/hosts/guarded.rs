//! The files behind a hosts file: keys, secrets, known hosts, recordings.

use std::path::PathBuf;

use toolkit::files::GuardedFiles;

use super::{Credential, Hosts, Place, Proof};

impl Hosts {
    /// Returns the files that the hosts file names, and those that these name. An agent's socket is not among them: other
    /// programs of the user need it.
    #[must_use]
    pub fn guarded(&self) -> &GuardedFiles {
        &self.guarded
    }

    /// Collects the files of all hosts, of these credentials (also those that no host uses) and of `config`.
    pub(super) fn guard<'a>(
        &mut self,
        credentials: impl Iterator<Item = &'a Credential>,
        config: impl Iterator<Item = &'a PathBuf>,
    ) {
        let mut files = GuardedFiles {
            closed: self.recordings.iter().cloned().collect(),
            read_only: self
                .known_hosts
                .iter()
                .cloned()
                .chain(config.cloned())
                .collect(),
        };
        credentials.for_each(|credential| files.merge(credential.files()));
        for host in self.all() {
            for machine in std::iter::once(host).chain(&host.jump) {
                files.merge(machine.credential.files());
                files.merge(GuardedFiles {
                    closed: Vec::new(),
                    read_only: machine.known_hosts.clone().unwrap_or_default(),
                });
            }
        }
        self.guarded = files;
    }
}

impl Credential {
    fn files(&self) -> GuardedFiles {
        let mut files = GuardedFiles::default();
        for proof in &self.proofs {
            match proof {
                Proof::Keys(sources) => {
                    let keys = sources.files.iter().map(|file| file.path.clone());
                    files.closed.extend(keys);
                    files.read_only.extend(sources.certificates.iter().cloned());
                }
                Proof::Issued { authority, .. } => files.closed.push(authority.clone()),
                Proof::Password(_) | Proof::Caller => {}
            }
        }
        for place in self.secrets() {
            if let Place::File(path) = place {
                files.closed.push(path.clone());
            }
        }
        files
    }
}

#[cfg(test)]
mod tests {
    use std::path::{Path, PathBuf};

    use super::*;
    use crate::config::Person;

    #[test]
    fn every_file_behind_a_hosts_file_is_guarded() {
        let folder = std::env::temp_dir().join(format!("ssh-guarded-{}", std::process::id()));
        let ssh = folder.join(".ssh");
        std::fs::create_dir_all(ssh.join("more")).unwrap();
        std::fs::create_dir_all(folder.join("rec")).unwrap();
        for (name, text) in [
            ("config", "Include more/one\n"),
            (
                "more/one",
                "Host web\n  User ada\n  IdentityFile ~/.ssh/id_web\n  UserKnownHostsFile ~/.ssh/known_web\n  GlobalKnownHostsFile none\n",
            ),
            ("id_web", "x"),
        ] {
            std::fs::write(ssh.join(name), text).unwrap();
        }
        let person = Person {
            home: folder.clone(),
            user: "ada".into(),
            agent: None,
        };
        let text = "known_hosts: [known]\nrecordings: rec\nssh_config: ~/.ssh/config\n\
            credentials:\n  a: { user: ada, key: id_a, certificate: id_a-cert.pub, passphrase_file: phrase, sudo_password_file: sudo }\n  \
            unused: { user: ada, ca_key: authority }\n  b: { user: ada, password_file: password }\n\
            hosts:\n  one: { credential: a }\n  two: { credential: b }\n";
        let hosts = Hosts::of_person(text, &folder, &person).unwrap();
        let sorted = |files: &[PathBuf]| {
            let names = files.iter().map(|file| {
                let below = file.strip_prefix(&folder).unwrap_or(Path::new("?"));
                below.display().to_string()
            });
            let mut names: Vec<String> = names.collect();
            names.sort();
            names
        };
        assert_eq!(
            sorted(&hosts.guarded().closed),
            [
                ".ssh/id_web",
                "authority",
                "id_a",
                "password",
                "phrase",
                "rec",
                "sudo"
            ]
        );
        assert_eq!(
            sorted(&hosts.guarded().read_only),
            [
                ".ssh/config",
                ".ssh/known_web",
                ".ssh/more/one",
                "id_a-cert.pub",
                "known"
            ]
        );
        std::fs::remove_dir_all(folder).unwrap();
    }
}
