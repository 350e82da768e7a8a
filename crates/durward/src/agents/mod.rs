//! Agents as models: a provider that runs the loop of crate `agents` over the calls in process.
//!
//! A request for an agent is judged and recorded like one for any model; each call that the run makes is judged and
//! recorded like one of the same caller, with the fact `agent` and the agent's call as `parent_op`. There is no other
//! way from here to a server or a provider.

mod driver;
mod output;
mod tools;

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock, Weak};

use ::agents::chat::AgentRequest;
use ::models::{Address, Fault, Offer, Provider, Remedy, Reply, Sent, Trouble};
use bytes::Bytes;
use dialects::Endpoint;
use dialects::translate::{
    self, CallerForm, ProviderForm, ReasoningField, RequestOptions, UnsupportedMembers,
};
use gate::{PeerId, RunId, Spent};
use http::{HeaderMap, HeaderValue, StatusCode};
use toolkit::Trace;
use toolkit::door::CallContext;
use toolkit::server::BoxFuture;
use toolkit::trace::RUN;

use crate::config::agents::{AgentConfig, AgentPattern, AgentsSection, PROVIDER};
use driver::{RunJob, drive};
use output::RunBody;

/// An agent under one of its names.
#[derive(Debug)]
pub struct NamedAgent {
    /// The agent.
    pub agent: AgentConfig,
    /// The pattern that this name has.
    pub pattern: AgentPattern,
}

/// The faces that runs call through.
struct RunDoors {
    models: Weak<::models::Face>,
    tools: Weak<mcp::http::Face>,
}

/// The agents as a provider of models.
pub struct AgentProvider {
    peer: PeerId,
    offer: Offer,
    named: BTreeMap<String, Arc<NamedAgent>>,
    doors: OnceLock<RunDoors>,
}

impl AgentProvider {
    /// Returns the provider of these agents; `None` if there is none.
    pub fn new(agents: &AgentsSection) -> Option<Arc<Self>> {
        let mut named = BTreeMap::new();
        let mut models = Vec::new();
        for agent in &agents.all {
            for (name, pattern) in agent.models() {
                let pattern = agents.pattern(pattern)?;
                let agent = agent.clone();
                models.push(name.clone());
                named.insert(name, Arc::new(NamedAgent { agent, pattern }));
            }
        }
        (!named.is_empty()).then(|| {
            Arc::new(Self {
                peer: PeerId::server(PROVIDER),
                offer: Offer {
                    models,
                    examples: Vec::new(),
                    endpoints: vec![Endpoint::Chat, Endpoint::Messages, Endpoint::Responses],
                    translated: vec![Endpoint::Messages, Endpoint::Responses],
                },
                named,
                doors: OnceLock::new(),
            })
        })
    }

    /// Connects the agents to the faces that they call through.
    pub fn connect(&self, models: &Arc<::models::Face>, tools: &Arc<mcp::http::Face>) {
        let doors = RunDoors {
            models: Arc::downgrade(models),
            tools: Arc::downgrade(tools),
        };
        if self.doors.set(doors).is_err() {
            tracing::debug!("the agents were connected twice");
        }
    }

    async fn run(&self, spent: Spent<::models::ModelRequest>, to: Address<'_>) -> Sent {
        let refused = |spent, fault| Sent::Unserved(spent, fault);
        let doors = self.doors.get();
        let faces = doors.and_then(|doors| doors.models.upgrade().zip(doors.tools.upgrade()));
        let (Some(named), Some((models, tools))) = (self.named.get(to.model), faces) else {
            return refused(spent, Fault::of(Trouble::NoModel, Remedy::Nothing));
        };
        let request = spent.request();
        let (asked, format, left_out) = match chat_request(request) {
            Ok(read) => read,
            Err(fault) => return refused(spent, fault),
        };
        let origin = to.origin;
        let run = origin.run.clone();
        let op = spent.op();
        let context = CallContext {
            session_id: Arc::clone(&origin.session_id),
            client_id: origin.client_id.clone(),
            trace: Trace {
                run: run.clone(),
                headers: None,
                parent_op: Some(op),
            },
            ..CallContext::of(to.caller.clone())
        };
        let (wants_usage, streams) = (request.wants_usage(), request.streams());
        let job = RunJob {
            named: Arc::clone(named),
            model: to.model.to_owned(),
            asked,
            context: context.with_agent(&named.agent.name),
            op,
            models,
            tools,
            streams,
        };
        tracing::debug!(agent = to.model, wants_usage, "a run begins");
        let mut body = RunBody::new(drive(job));
        match body.begin().await {
            Ok(headers) => Sent::Reply(Reply {
                spent,
                headers: headers_of(run.as_ref(), headers),
                format,
                left_out,
                key: None,
                body: Box::new(body),
            }),
            Err(ended) => refused(spent, ended.to_fault()),
        }
    }
}

type ReadRequest = (
    AgentRequest,
    Option<ProviderForm>,
    Vec<std::borrow::Cow<'static, str>>,
);

/// Reads a request of any dialect as a chat completion.
fn chat_request(request: &::models::ModelRequest) -> Result<ReadRequest, Fault> {
    let told = |message: String| Fault {
        told: Some((StatusCode::BAD_REQUEST, message)),
        ..Fault::of(Trouble::Refused, Remedy::Nothing)
    };
    let endpoint = request.endpoint();
    let text = request.body().as_str();
    let (body, format, left_out) = match CallerForm::of(endpoint) {
        Some(CallerForm::Chat) => (Bytes::copy_from_slice(text.as_bytes()), None, Vec::new()),
        Some(form) => {
            let options = RequestOptions {
                model: request.model(),
                max_tokens: 0,
                names_completion: false,
                thoughts: ReasoningField::ReasoningContent,
                is_strict: false,
                unsupported: UnsupportedMembers::Drop,
                signatures: None,
            };
            let translated = translate::request(form, ProviderForm::Chat, text, &options);
            let translated = translated.map_err(|fault| told(fault.to_string()))?;
            let left_out = translated.left_out;
            (translated.body.into(), Some(ProviderForm::Chat), left_out)
        }
        None => return Err(Fault::of(Trouble::NotSpoken, Remedy::NextTarget)),
    };
    let asked = AgentRequest::read(&body);
    let asked = asked.map_err(|(member, why)| told(format!("{member} {why}")))?;
    Ok((asked, format, left_out))
}

fn headers_of(run: Option<&RunId>, mut headers: HeaderMap) -> HeaderMap {
    let run = run.map(ToString::to_string);
    if let Some(run) = run.and_then(|run| HeaderValue::try_from(run).ok()) {
        headers.insert(RUN, run);
    }
    headers
}

impl Provider for AgentProvider {
    fn peer(&self) -> &PeerId {
        &self.peer
    }

    fn offer(&self) -> &Offer {
        &self.offer
    }

    fn makes_calls(&self) -> bool {
        true
    }

    fn send<'a>(
        &'a self,
        spent: Spent<::models::ModelRequest>,
        to: Address<'a>,
    ) -> BoxFuture<'a, Sent> {
        Box::pin(self.run(spent, to))
    }
}
