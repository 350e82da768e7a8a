//! A server as the face knows it.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use gate::Gate;
use gate::facts::Facts;
use gate::paths::PathView;
use gate::pins::PinOptions;

use super::upstream::{Means, Pool, Share};
use crate::definitions::Definitions;
use crate::describe::{Context, PathSchemas};
use crate::descriptions;
use crate::finding::{Finding, Told};
use crate::listing;
use crate::method::List;
use crate::reply;

/// What to serve under a name.
#[derive(Clone)]
pub struct ServerOptions {
    /// The name in addresses, rules and the journal.
    pub name: String,
    /// The gate with the rules for it.
    pub gate: Arc<Gate>,
    /// How it is started or reached.
    pub means: Means,
    /// Who shares its process or session.
    pub share: Share,
    /// How long it may take to answer, in milliseconds.
    pub call_timeout_ms: u64,
    /// The file system that it sees, where it is ours.
    pub view: Option<Arc<dyn PathView>>,
    /// What is done about its descriptions.
    pub descriptions: descriptions::Options,
    /// How its tools' definitions are pinned.
    pub pins: PinOptions,
}

/// A server and its processes or sessions.
pub(super) struct Server {
    pub name: Arc<str>,
    pub gate: Arc<Gate>,
    pub pool: Pool,
    pub call_timeout_ms: u64,
    view: Option<Arc<dyn PathView>>,
    known: RwLock<Known>,
    told: Mutex<Told>,
}

/// What was learned from the server's lists, by whichever session.
struct Known {
    schemas: PathSchemas,
    definitions: Definitions,
}

impl Server {
    pub fn new(options: ServerOptions) -> Self {
        let name: Arc<str> = options.name.into();
        let definitions = Definitions::new(options.descriptions, &options.pins, &name);
        let fault = definitions.fault();
        let pool = Pool::new(
            Arc::clone(&name),
            options.means,
            options.share,
            Arc::clone(&options.gate),
        );
        let server = Self {
            name,
            gate: options.gate,
            pool,
            call_timeout_ms: options.call_timeout_ms,
            view: options.view,
            known: RwLock::new(Known {
                schemas: PathSchemas::default(),
                definitions,
            }),
            told: Mutex::default(),
        };
        server.tell(fault.into_iter().collect(), &server.gate, "");
        server
    }

    /// Lends what describing a request needs to know.
    pub fn with_context<T>(&self, caller: &str, describe: impl FnOnce(&Context<'_>) -> T) -> T {
        let known = self.known.read().unwrap_or_else(PoisonError::into_inner);
        describe(&Context {
            backend_id: &self.name,
            subject_id: caller,
            view: self.view.as_deref(),
            schemas: &known.schemas,
            definitions: Some(&known.definitions),
        })
    }

    /// Looks again whether a tool that waits for approval has it by now.
    pub fn refresh_quarantine(&self, facts: &mut Facts) {
        if let (Some(_), Some(tool)) = (facts.quarantine, facts.tool_name.known()) {
            let mut known = self.known.write().unwrap_or_else(PoisonError::into_inner);
            facts.quarantine = known.definitions.quarantine_now(tool);
        }
    }

    /// A page of a list as its caller may see it; `None` where that is all of it. `first` where it
    /// was asked for without a cursor.
    ///
    /// # Errors
    /// A sentence, where the reply is not a list of this kind.
    pub fn listed(
        &self,
        (list, first): (List, bool),
        (frame, payload): (&[u8], &str),
        gate: &Gate,
        caller: &str,
        session_id: &str,
    ) -> Result<Option<String>, &'static str> {
        let Some(listed) = reply::list(list, frame, payload)? else {
            return Ok(None);
        };
        let (shown, findings) = {
            let mut known = self.known.write().unwrap_or_else(PoisonError::into_inner);
            if list == List::Tools {
                for row in &listed.entries {
                    known.schemas.learn(&row.label, &row.input_schema);
                }
            }
            known.definitions.take(list, &listed, first, gate.wall_ms())
        };
        self.tell(findings, gate, session_id);
        Ok(self.with_context(caller, |context| {
            listing::filter(list, &listed, &shown, gate, context)
        }))
    }

    /// A handshake's result with its instructions screened; `None` where nothing had to be changed.
    pub fn screened(&self, payload: &str, gate: &Gate, session_id: &str) -> Option<String> {
        let screened = {
            let known = self.known.read().unwrap_or_else(PoisonError::into_inner);
            descriptions::instructions(payload, known.definitions.options())
        };
        self.tell(screened.findings, gate, session_id);
        screened.text
    }

    fn tell(&self, findings: Vec<Finding>, gate: &Gate, session_id: &str) {
        if !findings.is_empty() {
            let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
            told.tell(findings, gate, session_id, &self.name);
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
