//! The servers of `durward serve` that one set of rules is for.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::config::{Origin, Settings};
use crate::policy::source::PolicySource;

/// Their names. Clones are the same group.
#[derive(Debug, Clone)]
pub struct Group {
    names: Arc<Mutex<Vec<String>>>,
    /// Those of the command line, which no file takes away.
    further: Arc<[String]>,
}

impl Group {
    /// A group of these; `further` are all servers of the command line.
    pub fn new(names: Vec<String>, further: &[String]) -> Self {
        let further = further.iter().filter(|name| names.contains(name));
        Self {
            further: further.cloned().collect(),
            names: Arc::new(Mutex::new(names)),
        }
    }

    fn names(&self) -> MutexGuard<'_, Vec<String>> {
        self.names.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes a server in.
    pub fn add(&self, name: &str) {
        self.names().push(name.to_owned());
    }

    /// Leaves a server out; `false` where it is none of these.
    pub fn remove(&self, name: &str) -> bool {
        let mut names = self.names();
        let before = names.len();
        names.retain(|own| own != name);
        names.len() < before
    }

    /// The rules that these settings give them.
    ///
    /// # Errors
    /// A sentence, where they would no longer have the same.
    pub fn policy(&self, settings: &Settings) -> Result<(PolicySource, Origin), String> {
        let names = self.names();
        let mut found: Option<(PolicySource, Origin)> = None;
        for name in names.iter() {
            let server = settings.server(name);
            if server.is_none() && !self.further.contains(name) {
                continue;
            }
            let policy = settings.policy_of(server);
            if found.as_ref().is_some_and(|found| found.0 != policy.0) {
                return Err(format!(
                    "the servers {} had one policy and would now have several\n  hint: restart durward serve to give them rules of their own",
                    names.join(", ")
                ));
            }
            found = Some(policy);
        }
        Ok(found.unwrap_or_else(|| settings.policy_of(None)))
    }
}
