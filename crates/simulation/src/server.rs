//! The server as the protocol sees it: its tools, the facts of a call for the gate, and the dispatch of calls.

use std::sync::Arc;

use gate::facts::{Fact, FactId, Facts, Stated};
use gate::journal::OpId;
use serde_json::{Map, Value};
use toolkit::measure::Measure;
use toolkit::options::Setup;
use toolkit::server::{
    Answer, Args, Content, Failure, Identity, JobRecorder, Outcome, ReplySink, ResourceAnswer,
    ResourceCall, ResourceFault, SessionRef, Template, ToolCall, ToolDef, ToolServer, Unfit,
};

use crate::fault::{Fault, Kind};
use crate::resources;
use crate::service::{CallContext, SimulationService};
use crate::session::locked;
use crate::tools::{self, Tool, ToolFault};

/// Longest text of a result, in bytes; a longer one is structured content only.
const TEXT_BYTES_MAX: usize = 256 * 1024;

/// The server.
pub struct SimulationServer {
    tools: Arc<[ToolDef]>,
    service: Arc<SimulationService>,
}

impl SimulationServer {
    /// Returns the server. Opens nothing.
    ///
    /// # Errors
    /// [`ToolFault`] if the adapter cannot be used, or a definition in this crate is wrong, which its tests rule out.
    pub fn new(setup: Setup) -> Result<Self, ToolFault> {
        crate::options::adapter(&setup.options).map_err(ToolFault::new)?;
        Ok(Self {
            tools: tools::definitions()?.into(),
            service: SimulationService::new(setup),
        })
    }
}

/// Has a tool do what a call asks for.
fn answer(
    service: &SimulationService,
    tool: &Tool,
    members: &Map<String, Value>,
    (op, session, judged): (OpId, &SessionRef, Option<&str>),
    reply: ReplySink,
) -> Result<Answer, Fault> {
    let args = Args::new(members);
    if tool.critical && !args.is_set("confirm") {
        return Err(tool.unconfirmed());
    }
    tool.check_names(members)?;
    service.sessions.sweep(service.now_ms());
    let context = CallContext::new(service, &session.caller, reply)
        .of_groups(&session.groups)
        .with_name(op)
        .judged_for(judged);
    let mut answer = to_answer((tool.run)(&context, args)?);
    if let Some(shown) = tool.shown {
        let result = Value::Object(answer.structured.take().unwrap_or_default());
        answer.content = shown(&result)?;
        answer.structured = match result {
            Value::Object(members) => Some(members),
            _ => None,
        };
    }
    Ok(answer)
}

/// Returns a result as clients get it: as data, and as text for those that read only text.
fn to_answer(value: Value) -> Answer {
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
            other => Some(Map::from_iter([("value".to_owned(), other)])),
        },
    }
}

impl ToolServer for SimulationServer {
    fn identity(&self) -> Identity {
        Identity {
            name: "simulation",
            title: "Simulations",
            version: env!("CARGO_PKG_VERSION"),
            instructions: "Runs pharmacokinetic models (.pkml, SimModel .xml). discover_models lists the files, load_simulation \
                loads one, list_parameters, get_parameter_value and set_parameter_value read and change it, run_simulation and \
                run_population_simulation start a job, get_job_status tells when it has ended, get_results and \
                calculate_pk_parameters read what came out; results are also resources under sim://results/. Tools that change something want confirm: true.",
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
        // A blank path leads nowhere: the tool refuses it.
        if let Fact::Known(paths) = &mut facts.paths {
            paths.retain(|path| !path.text.trim().is_empty());
        }
        let Some(known) = tools::tool(tool.name) else {
            return Ok(());
        };
        // A call with other arguments is refused.
        let members = known.accepted_arguments(args.members());
        let args = Args::new(&members);
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
            state(FactId::CohortSize, Fact::Known(size.into()))?;
        }
        let loaded = named.and_then(|named| self.service.sessions.peek(&session.caller, named));
        let (path, cost) = loaded.map_or((None, None), |loaded| {
            let loaded = locked(&loaded);
            let cost = size.map(|size| tools::cost(&loaded, size));
            (Some(loaded.model.path.clone()), cost)
        });
        if size.is_some() {
            // It may be loaded by the time that the call is made.
            let cost = cost.map_or(Fact::Unknown, |cost| Fact::Known(cost.into()));
            state(FactId::EstimatedCost, cost)?;
        }
        let opened = tools::opened(&self.service, tool.name, args, &session.caller);
        // A call that opens no file concerns the loaded simulation.
        if let Some(model) = opened.as_ref().or(path.as_ref()) {
            let model = model.to_string_lossy();
            state(FactId::SimulationModel, Fact::Known((&*model).into()))?;
        }
        if let Some(opened) = opened {
            tools::state_opened(&opened, args, facts);
        }
        Ok(())
    }

    async fn call(&self, call: ToolCall, reply: ReplySink) -> Outcome {
        let Some(tool) = tools::tool(call.tool()) else {
            let wrong = format!("there is no tool {}", call.tool());
            return Outcome::Failed(Fault::missing("tool", wrong).into());
        };
        let counting = self.service.metrics.tool(tool.name);
        let service = Arc::clone(&self.service);
        let session = call.session().clone();
        let members = call.args().members().clone();
        let judged = call.bound().map(str::to_owned);
        let op = call.op();
        let waits = reply.cancel().clone();
        // Reading a model computes, and the database blocks.
        let work = tokio::task::spawn_blocking(move || {
            answer(
                &service,
                tool,
                &members,
                (op, &session, judged.as_deref()),
                reply,
            )
        });
        let outcome = tokio::select! {
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
        };
        counting.end(matches!(outcome, Outcome::Done(_)));
        outcome
    }

    fn record_jobs(&self, recorder: JobRecorder) {
        self.service.ended.record_with(recorder);
    }

    fn measures(&self) -> Vec<Measure> {
        let mut measures = self.service.ended.measures();
        measures.extend(self.service.metrics.measures());
        measures
    }

    fn templates(&self) -> &[Template] {
        resources::TEMPLATES
    }

    async fn resources(&self, call: ResourceCall) -> Result<ResourceAnswer, ResourceFault> {
        let (service, tools) = (Arc::clone(&self.service), Arc::clone(&self.tools));
        // The database blocks, and a picture is computed.
        let work = tokio::task::spawn_blocking(move || resources::answer(&service, &tools, &call));
        work.await.unwrap_or_else(|_| {
            Err(ResourceFault::Failed(Failure::new(
                Kind::InternalError.label(),
                "the result could not be read because of an error of this program",
            )))
        })
    }
}
