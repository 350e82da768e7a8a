//! A server as the face knows it.

use std::fmt;
use std::sync::{Arc, PoisonError, RwLock};

use gate::Gate;
use gate::paths::PathView;

use super::upstream::{Pool, Share};
use crate::describe::{Context, PathSchemas};
use crate::upstream::ServerCommand;

/// What to serve under a name.
#[derive(Clone)]
pub struct ServerOptions {
    /// The name in addresses, rules and the journal.
    pub name: String,
    /// What to start.
    pub command: ServerCommand,
    /// Who shares its process.
    pub share: Share,
    /// How long it may take to answer, in milliseconds.
    pub call_timeout_ms: u64,
    /// The file system that it sees, where it is ours.
    pub view: Option<Arc<dyn PathView>>,
}

/// A server and its processes.
pub(super) struct Server {
    pub name: Arc<str>,
    pub pool: Pool,
    pub call_timeout_ms: u64,
    view: Option<Arc<dyn PathView>>,
    /// What the tools' schemas say, learned from lists.
    schemas: RwLock<PathSchemas>,
}

impl Server {
    pub fn new(options: ServerOptions, gate: &Arc<Gate>) -> Self {
        let name: Arc<str> = options.name.into();
        let pool = Pool::new(
            Arc::clone(&name),
            options.command,
            options.share,
            Arc::clone(gate),
        );
        Self {
            name,
            pool,
            call_timeout_ms: options.call_timeout_ms,
            view: options.view,
            schemas: RwLock::default(),
        }
    }

    /// Lends what describing a request needs to know.
    pub fn with_context<T>(&self, caller: &str, describe: impl FnOnce(&Context<'_>) -> T) -> T {
        let schemas = self.schemas.read().unwrap_or_else(PoisonError::into_inner);
        describe(&Context {
            backend_id: &self.name,
            subject_id: caller,
            view: self.view.as_deref(),
            schemas: &schemas,
        })
    }

    /// Learns from the tools' definitions.
    pub fn learn(&self, schemas: &[(String, serde_json::Value)]) {
        if schemas.is_empty() {
            return;
        }
        let mut known = self.schemas.write().unwrap_or_else(PoisonError::into_inner);
        for (name, schema) in schemas {
            known.learn(name, schema);
        }
    }
}

impl fmt::Debug for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Server")
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}
