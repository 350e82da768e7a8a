//! What is wrong with a host beside its lines in the file: keys and secrets that are not there, host keys that nobody knows.

use std::fs::File;

use super::{Host, Hosts, Place, Proof, Trust, read_key_file};
use crate::trust::{FiledNames, KnownHosts};

impl Hosts {
    /// Why logins at this host will fail, as far as that can be told from here; `has` says whether a variable is set.
    #[must_use]
    pub fn faults(&self, host: &Host, has: impl Fn(&str) -> bool) -> Vec<String> {
        let mut faults: Vec<String> = Vec::new();
        for proof in &host.credential.proofs {
            match proof {
                Proof::Keys(sources) => faults.extend(sources.faults()),
                Proof::Issued { authority, .. } => {
                    if let Err(fault) = read_key_file(authority) {
                        let wrong = fault.into_reason();
                        faults.push(format!("ca_key {}: {wrong}", authority.display()));
                    }
                }
                Proof::Password(_) | Proof::Caller => {}
            }
        }
        for place in host.credential.secrets() {
            match place {
                Place::File(path) => {
                    if let Err(error) = File::open(path) {
                        faults.push(format!("secret {}: {error}", path.display()));
                    }
                }
                Place::Variable(name) if !has(name) => {
                    faults.push(format!("the variable {name} is not set"));
                }
                Place::Variable(_) => {}
            }
        }
        faults.extend(self.unknown_key(host));
        faults
    }

    /// Why the host's key will not be accepted.
    fn unknown_key(&self, host: &Host) -> Option<String> {
        let files = host.known_hosts.as_ref().unwrap_or(&self.known_hosts);
        let known = match KnownHosts::read(files) {
            Ok(known) => known,
            Err(wrong) => return Some(wrong),
        };
        let names = FiledNames::new(&host.address, host.port);
        let (kinds, has_authority) = known.host_kinds(&names);
        let name = names.full;
        if !kinds.is_empty() || has_authority {
            return None;
        }
        match (host.trust, files.first()) {
            (Trust::FirstUse, Some(_)) => None,
            (_, None) => Some("no file of known hosts is named: set known_hosts".into()),
            (Trust::Strict, Some(file)) => Some(format!(
                "the key of {name} is not known: `ssh-keyscan -p {} {}` prints it; check it, and add it to {}",
                host.port,
                host.address,
                file.display()
            )),
        }
    }
}
