//! Servers of the configuration, with their pins and the instances that guard them.

use serde::Serialize;

use crate::pins;
use crate::state_paths::StatePaths;
use crate::status;

pub use crate::server_edits::{
    ArchivedServer, ConfigurationFile, RestoredServer, add_server, archive_server, list_archived,
    restore_server,
};

/// A server as the configuration has it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct ConfiguredServer {
    /// Name.
    pub name: String,
    /// `stdio`, `http` or `builtin`.
    pub transport: String,
    /// The command or URL, without secrets.
    pub target: String,
    /// File of its rules, or the name of a shipped policy.
    pub policy: String,
}

/// A server, its pins, and the instances that guard it.
#[derive(Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct ServerEntry {
    /// The server.
    #[serde(flatten)]
    pub server: ConfiguredServer,
    /// Number of tools with a pinned definition.
    pub pinned_tools: usize,
    /// Number of definitions that wait for approval.
    pub waiting_tools: usize,
    /// Why the pins cannot be read; null if they can.
    pub pins_error: Option<String>,
    /// Control sockets of running instances that guard it.
    pub instances: Vec<String>,
}

/// Servers, and what could not be read.
#[derive(Debug)]
pub struct ServerList {
    /// In the order of the configuration.
    pub servers: Vec<ServerEntry>,
    /// Sentences about instances that could not be asked.
    pub warnings: Vec<String>,
}

/// Returns the servers of the configuration with their state.
#[must_use]
pub fn list(configured: Vec<ConfiguredServer>, paths: &StatePaths) -> ServerList {
    let running = status::list_instances(paths, false);
    let servers = configured.into_iter().map(|server| {
        let guards = |names: &str| names.split(',').any(|name| name.trim() == server.name);
        let instances = running.instances.iter().filter(|instance| {
            let names = instance.status.server.as_deref();
            names.is_some_and(|names| {
                let inner = names
                    .strip_prefix("serve (")
                    .and_then(|inner| inner.strip_suffix(')'));
                guards(inner.unwrap_or(names))
            })
        });
        let instances = instances.map(|instance| instance.socket.clone()).collect();
        let book = pins::read_book(&paths.pins(), &server.name);
        let pins_error = book.as_ref().err().map(ToString::to_string);
        let book = book.unwrap_or_default();
        ServerEntry {
            pinned_tools: book.tools.len(),
            waiting_tools: book.waiting().count(),
            pins_error,
            instances,
            server,
        }
    });
    ServerList {
        servers: servers.collect(),
        warnings: running.warnings,
    }
}
