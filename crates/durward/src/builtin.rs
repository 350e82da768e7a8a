//! The built-in tool servers: one line each in [`ALL`].

use std::ffi::OsString;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use gate::PeerId;
use toolkit::files::GuardedFiles;
use toolkit::mcp::Builtin;
use toolkit::options::{OptionDef, OptionKind, Options, Setup};
use toolkit::server::{DynToolServer, ToolServer};

use crate::failure::Failure;
use crate::local::{self, SystemClock};
use crate::places::{self, Places};
use crate::policy_source::ShippedPolicy;

/// Reads options from variables of the environment.
type FromEnvironment = fn(&dyn Fn(&str) -> Option<OsString>) -> Result<Options, String>;

/// A built-in server, by the name that `builtin:` takes.
#[derive(Clone, Copy)]
pub struct Wired {
    /// The name in `durward.yaml`.
    pub name: &'static str,
    /// What it is for.
    pub about: &'static str,
    /// Whether the paths in its calls are this machine's.
    pub is_local: bool,
    /// The rules that apply to it if none are configured.
    pub policy: ShippedPolicy,
    /// The keys that it takes beside `builtin`.
    pub options: &'static [OptionDef],
    /// The key and the word of it with which its options are also taken from the environment, and how they are read.
    pub environment: Option<(&'static str, &'static str, FromEnvironment)>,
    /// The files behind those that its options name.
    named: fn(&Options) -> GuardedFiles,
    make: fn(Setup) -> Result<Arc<dyn DynToolServer>, String>,
}

/// A built-in server with what its configuration says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Configured {
    /// Which server.
    pub wired: Wired,
    /// Its options.
    pub options: Options,
    /// The directory of the configuration.
    pub base: PathBuf,
}

/// Every built-in server.
pub const ALL: &[Wired] = &[
    Wired {
        name: "echo",
        about: "says back what it is told, adds, and waits; to try out a client, a policy or an approval",
        is_local: true,
        policy: ShippedPolicy::Starter,
        options: &[],
        environment: None,
        named: |_| GuardedFiles::default(),
        make: |_| made(echo::EchoServer::new()),
    },
    Wired {
        name: "ssh",
        about: "runs commands on SSH hosts, each judged by its program, options and operands",
        is_local: false,
        policy: ShippedPolicy::Ssh,
        options: ::ssh::OPTIONS,
        environment: None,
        named: |options| ::ssh::Ssh::guarded(options, places::text_of),
        make: ssh,
    },
    Wired {
        name: "simulation",
        about: "loads pharmacokinetic models of the OSP suite, changes their parameters, and runs them as jobs",
        is_local: true,
        policy: ShippedPolicy::Starter,
        options: simulation::OPTIONS,
        environment: Some((
            "environment",
            simulation::BRIDGE,
            simulation::from_environment,
        )),
        named: |_| GuardedFiles::default(),
        make: |setup| made(simulation::SimulationServer::new(setup)),
    },
];

fn ssh(setup: Setup) -> Result<Arc<dyn DynToolServer>, String> {
    made(::ssh::Ssh::configured(&setup, places::text_of))
}

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

/// The built-in servers that take an option of this name.
pub fn takers(option: &str) -> impl Iterator<Item = &'static str> {
    let takes = move |wired: &&Wired| wired.options.iter().any(|known| known.name == option);
    ALL.iter().filter(takes).map(|wired| wired.name)
}

impl Configured {
    /// The server, as `peer` in rules and records. Nothing is opened or written before its first call.
    ///
    /// # Errors
    /// Where its options name something that cannot be used.
    pub fn start(&self, peer: &str, places: &Places) -> Result<Arc<Builtin>, Failure> {
        let failed = |why: String| {
            Failure::configuration(format!(
                "the built-in server {} cannot be used: {why}",
                self.wired.name
            ))
        };
        let setup = Setup {
            peer: peer.into(),
            options: self.options.clone(),
            base: self.base.clone(),
            state: places.built_in(peer),
            journal: places.journal(),
            program: places.own_binary.clone(),
            clock: Arc::new(SystemClock::new()),
            random: local::random,
        };
        let server = (self.wired.make)(setup).map_err(failed)?;
        Builtin::new(PeerId::server(peer), server).map_err(|fault| failed(fault.to_string()))
    }

    /// Returns the files of the configuration that its options name, and those that these name.
    pub fn guarded(&self) -> GuardedFiles {
        let is_file = |known: &&OptionDef| matches!(known.kind, OptionKind::File);
        let files = self.wired.options.iter().filter(is_file);
        let files = files.filter_map(|known| self.options.path(known.name));
        let mut guarded = (self.wired.named)(&self.options);
        guarded.merge(GuardedFiles {
            closed: files.map(PathBuf::from).collect(),
            read_only: Vec::new(),
        });
        guarded
    }

    /// Options that name a path where nothing is, with the path.
    pub fn missing(&self) -> Vec<(&'static str, PathBuf)> {
        let mut out = Vec::new();
        for known in self.wired.options {
            let one = self.options.path(known.name).map(PathBuf::from);
            let named = one.into_iter();
            let named = named.chain(self.options.paths(known.name).iter().cloned());
            let missing = named.filter(|path| !path.exists());
            out.extend(missing.map(|path| (known.name, path)));
        }
        out
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
    use crate::config::keys;

    #[test]
    fn every_built_in_server_can_be_used_and_has_a_name_of_its_own() {
        let places = Places::find(Some("/nowhere/state".into()), "durward".into());
        for wired in ALL {
            let configured = Configured {
                wired: *wired,
                options: Options::default(),
                base: PathBuf::new(),
            };
            if !wired.options.iter().any(|known| known.required) {
                let builtin = configured.start("peer", &places);
                let builtin = builtin.map_err(|failure| failure.message).unwrap();
                assert!(!builtin.tools().is_empty(), "{}", wired.name);
            }
            assert_eq!(named(wired.name), Some(*wired));
            assert_eq!(ALL.iter().filter(|other| *other == wired).count(), 1);
            assert!(crate::names::server_name(wired.name).is_ok());
        }
    }

    #[test]
    fn no_option_is_called_like_a_key_of_every_server() {
        let taken = keys::names("servers.*");
        for wired in ALL {
            for (at, known) in wired.options.iter().enumerate() {
                assert!(!taken.contains(&known.name), "{}", known.name);
                let earlier = wired.options.iter().take(at);
                assert!(earlier.into_iter().all(|other| other.name != known.name));
            }
        }
    }
}
