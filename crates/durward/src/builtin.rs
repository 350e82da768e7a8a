//! The built-in tool servers: one line each in [`ALL`].

use std::fmt;
use std::sync::Arc;

use gate::PeerId;
use toolkit::mcp::Builtin;
use toolkit::server::{DynToolServer, ToolServer};

use crate::failure::Failure;

/// A built-in server, by the name that `builtin:` takes.
#[derive(Clone, Copy)]
pub struct Wired {
    /// The name in `durward.yaml`.
    pub name: &'static str,
    /// What it is for.
    pub about: &'static str,
    make: fn() -> Result<Arc<dyn DynToolServer>, String>,
}

/// Every built-in server.
pub const ALL: &[Wired] = &[Wired {
    name: "echo",
    about: "says back what it is told, adds, and waits; to try out a client, a policy or an approval",
    make: || made(echo::Echo::new()),
}];

fn made<S: ToolServer + 'static>(
    server: Result<S, impl fmt::Display>,
) -> Result<Arc<dyn DynToolServer>, String> {
    match server {
        Ok(server) => Ok(Arc::new(server)),
        Err(fault) => Err(fault.to_string()),
    }
}

/// The built-in server of this name.
pub fn named(name: &str) -> Option<Wired> {
    ALL.iter().find(|wired| wired.name == name).copied()
}

impl Wired {
    /// The server, as `peer` in rules and records.
    ///
    /// # Errors
    /// Where its definitions are wrong, which its tests rule out.
    pub fn start(self, peer: &str) -> Result<Arc<Builtin>, Failure> {
        let failed = |why: String| {
            Failure::other(format!(
                "the built-in server {} cannot be used: {why}",
                self.name
            ))
        };
        let server = (self.make)().map_err(failed)?;
        Builtin::new(PeerId::server(peer), server).map_err(|fault| failed(fault.to_string()))
    }
}

impl PartialEq for Wired {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl Eq for Wired {}

impl fmt::Debug for Wired {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_built_in_server_can_be_used_and_has_a_name_of_its_own() {
        for wired in ALL {
            let builtin = wired.start("peer").map_err(|f| f.message).unwrap();
            assert!(!builtin.tools().is_empty(), "{}", wired.name);
            assert_eq!(named(wired.name), Some(*wired));
            assert_eq!(ALL.iter().filter(|other| *other == wired).count(), 1);
            assert!(crate::names::server_name(wired.name).is_ok());
        }
    }
}
