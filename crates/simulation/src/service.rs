//! The server: what it has, and how a call reaches its tool.

use std::cell::RefCell;
use std::sync::{Arc, Mutex, PoisonError};

use gate::facts::{Fact, FactId, Facts, Stated};
use serde_json::Value;
use toolkit::Cancel;
use toolkit::options::Setup;
use toolkit::server::{
    Answer, Args, Content, Failure, Identity, Outcome, ReplySink, SessionRef, ToolCall, ToolDef,
    ToolServer, Unfit,
};

use crate::fault::{Fault, Kind};
use crate::jobs::{Keeper, Pool};
use crate::models::{Folders, Library};
use crate::options::{Configured, configured};
use crate::session::{Sessions, locked};
use crate::tools::{self, Tool, ToolFault};

/// Longest text of a result, in bytes; a longer one is structured content only.
const TEXT_BYTES_MAX: usize = 256 * 1024;

/// The server.
pub struct Simulation {
    tools: Vec<ToolDef>,
    service: Arc<Service>,
}

/// What the tools work with.
pub struct Service {
    /// Where models may lie.
    pub folders: Folders,
    /// Models that were read.
    pub library: Arc<Library>,
    /// What callers have loaded.
    pub sessions: Sessions,
    /// What the options say.
    pub configured: Configured,
    setup: Setup,
    pool: Mutex<Option<Pool>>,
}

/// One call.
pub struct Context<'a> {
    /// The server.
    pub service: &'a Service,
    /// Who calls.
    pub caller: &'a Arc<str>,
    /// Set when nobody waits any more.
    pub cancel: &'a Cancel,
    /// Now, in milliseconds since 1970.
    pub now_ms: i64,
    reply: &'a RefCell<ReplySink>,
}

impl Context<'_> {
    /// Tells the caller how far the call has come.
    pub fn progress(&self, done: f64, total: Option<f64>, message: &str) {
        self.reply.borrow_mut().progress(done, total, Some(message));
    }
}

impl Simulation {
    /// The server. Opens nothing.
    ///
    /// # Errors
    /// [`ToolFault`] where a definition in this crate is wrong, which its tests rule out.
    pub fn new(setup: Setup) -> Result<Self, ToolFault> {
        let configured = configured(&setup.options);
        let service = Service {
            folders: Folders::new(setup.options.paths("models")),
            library: Arc::default(),
            sessions: Sessions::new(configured.simulations_max, configured.idle_ms),
            configured,
            setup,
            pool: Mutex::default(),
        };
        Ok(Self {
            tools: tools::definitions()?,
            service: Arc::new(service),
        })
    }
}

impl Service {
    /// What is kept between calls; opened at the first need.
    ///
    /// # Errors
    /// [`Fault`] where it cannot be opened.
    pub fn keeper(&self) -> Result<Arc<Keeper>, Fault> {
        let mut pool = self.pool.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(pool) = &*pool {
            return Ok(Arc::clone(pool.keeper()));
        }
        let opened = Pool::open(
            &self.setup.state,
            self.configured.settings,
            Arc::clone(&self.library),
            Arc::clone(&self.setup.clock),
            self.setup.random,
        )?;
        let keeper = Arc::clone(opened.keeper());
        *pool = Some(opened);
        Ok(keeper)
    }

    /// Now, in milliseconds since 1970.
    #[must_use]
    pub fn now_ms(&self) -> i64 {
        self.setup.clock.wall_ms()
    }

    /// A name that nobody can guess.
    ///
    /// # Errors
    /// [`Fault`] where the system has no randomness.
    pub fn name(&self, prefix: &str) -> Result<String, Fault> {
        let mut bytes = [0; 16];
        (self.setup.random)(&mut bytes).map_err(|error| {
            Fault::new(
                Kind::InternalError,
                format!("the system has no randomness: {error}"),
            )
        })?;
        Ok(format!("{prefix}-{}", crate::models::hex(&bytes)))
    }

    fn answer(
        &self,
        tool: &Tool,
        members: &serde_json::Map<String, Value>,
        caller: &Arc<str>,
        reply: ReplySink,
    ) -> Result<Answer, Fault> {
        let args = Args::new(members);
        if tool.critical && !args.is_set("confirm") {
            return Err(tool.unconfirmed());
        }
        let now_ms = self.now_ms();
        self.sessions.sweep(now_ms);
        let cancel = reply.cancel().clone();
        let context = Context {
            service: self,
            caller,
            cancel: &cancel,
            now_ms,
            reply: &RefCell::new(reply),
        };
        let value = (tool.run)(&context, args)?;
        Ok(told(value))
    }
}

/// A result as clients get it: as data, and as text for those that read only text.
fn told(value: Value) -> Answer {
    let text = value.to_string();
    let text = match text.len() {
        0..=TEXT_BYTES_MAX => serde_json::to_string_pretty(&value).unwrap_or(text),
        bytes => format!(
            "the result has {bytes} bytes and is in structuredContent; ask for a part of it to read it as text"
        ),
    };
    Answer {
        content: vec![Content::Text(text)],
        structured: match value {
            Value::Object(members) => Some(members),
            other => Some(serde_json::Map::from_iter([("value".to_owned(), other)])),
        },
    }
}

impl ToolServer for Simulation {
    fn identity(&self) -> Identity {
        Identity {
            name: "simulation",
            title: "Simulations",
            version: env!("CARGO_PKG_VERSION"),
            instructions: "Runs pharmacokinetic models (.pkml, SimModel .xml). discover_models lists the files, load_simulation \
                loads one, list_parameters, get_parameter_value and set_parameter_value read and change it, run_simulation and \
                run_population_simulation start a job, get_job_status tells when it has ended, get_results and \
                calculate_pk_parameters read what came out. Tools that change something want confirm: true.",
        }
    }

    fn tools(&self) -> &[ToolDef] {
        &self.tools
    }

    fn describe(
        &self,
        tool: &ToolDef,
        args: Args<'_>,
        session: &SessionRef,
        facts: &mut Facts,
    ) -> Result<(), Unfit> {
        let mut state = |id: FactId, value: Fact<Stated>| {
            facts
                .set(id, value)
                .map_err(|fault| Unfit::member("", fault.to_string()))
        };
        let named = args.text("simulationId").ok();
        let parameters = tools::parameters(args);
        if !parameters.is_empty() {
            state(FactId::Parameters, Fact::Known(Stated::Texts(parameters)))?;
        }
        if let Some(named) = named {
            state(FactId::Simulation, Fact::Known(named.into()))?;
        }
        let size = tools::cohort_size(tool.name, args);
        if let Some(size) = size {
            state(
                FactId::CohortSize,
                Fact::Known(Stated::Text(size.to_string())),
            )?;
        }
        let file = args
            .text("filePath")
            .or_else(|_| args.text("modelPath"))
            .ok();
        let loaded = named.and_then(|named| self.service.sessions.peek(&session.caller, named));
        let Some(loaded) = loaded else {
            if let Some(file) = file {
                state(FactId::SimulationModel, Fact::Known(file.into()))?;
            }
            if size.is_some() {
                // It may be loaded by the time that the call is made.
                state(FactId::EstimatedCost, Fact::Unknown)?;
            }
            return Ok(());
        };
        let loaded = locked(&loaded);
        let path = loaded.model.path.to_string_lossy();
        state(
            FactId::SimulationModel,
            Fact::Known(file.unwrap_or(&path).into()),
        )?;
        if let Some(size) = size {
            let cost = tools::cost(&loaded, size).to_string();
            state(FactId::EstimatedCost, Fact::Known(Stated::Text(cost)))?;
        }
        Ok(())
    }

    async fn call(&self, call: ToolCall, reply: ReplySink) -> Outcome {
        let Some(tool) = tools::tool(call.tool()) else {
            let wrong = format!("there is no tool {}", call.tool());
            return Outcome::Failed(Fault::missing("tool", wrong).into());
        };
        let service = Arc::clone(&self.service);
        let caller = Arc::clone(&call.session().caller);
        let members = call.args().members().clone();
        let waits = reply.cancel().clone();
        // Reading a model computes, and the database blocks.
        let work =
            tokio::task::spawn_blocking(move || service.answer(tool, &members, &caller, reply));
        tokio::select! {
            done = work => match done {
                Ok(Ok(answer)) => Outcome::Done(answer),
                Ok(Err(fault)) if fault.kind == Kind::Cancelled && waits.is_cancelled() => Outcome::Cancelled,
                Ok(Err(fault)) => Outcome::Failed(fault.into()),
                Err(_) => Outcome::Failed(Failure::new(
                    Kind::InternalError.label(),
                    "the tool ended in an error of this program",
                )),
            },
            () = waits.cancelled() => Outcome::Cancelled,
        }
    }
}
