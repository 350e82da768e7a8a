//! Data flow from one call to the next: what the results that a caller has received say of the calls that
//! follow. A session here is all that one caller does through one instance, whichever servers it speaks to:
//! what one of them has said can be sent to any other.

mod sessions;

use std::collections::HashMap;
use std::sync::Arc;

pub use sessions::{Cause, HOLD_MS, Held, SESSIONS_MAX, Sessions};

use crate::labels::Labels;

/// The labels that the results of a server get.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct OfServer {
    /// Whatever it says.
    pub all: Labels,
    /// Results of single tools, in place of those of all.
    pub tools: HashMap<String, Labels>,
}

/// Which results are labelled how, and what has been labelled.
#[derive(Debug, Clone, Default)]
pub struct Flow {
    servers: HashMap<String, OfServer>,
    sessions: Arc<Sessions>,
}

impl Flow {
    /// Labels by server. `sessions` outlives this: a reload brings other rules and forgets nothing.
    #[must_use]
    pub fn new(servers: HashMap<String, OfServer>, sessions: Arc<Sessions>) -> Self {
        Self { servers, sessions }
    }

    /// What has been labelled.
    #[must_use]
    pub fn sessions(&self) -> &Arc<Sessions> {
        &self.sessions
    }

    /// The labels that a result of a server gets; `tool` is the tool that was called.
    #[must_use]
    pub fn of(&self, server: &str, tool: Option<&str>) -> Labels {
        if self.servers.is_empty() {
            return Labels::default();
        }
        let Some(own) = self.servers.get(server) else {
            return Labels::default();
        };
        let of_tool = tool.and_then(|tool| own.tools.get(tool));
        of_tool.copied().unwrap_or(own.all)
    }
}
