//! A server with the tools, prompts and resources that the official conformance suite asks for by name, in both kinds
//! of revision. It has the parts that the suite's scenarios observe; the wording is ours.

mod dialogue;
mod fixtures;
mod legacy;
mod modern;
mod request;
mod shared;
mod subscriptions;
mod work;

use crate::count::CallLog;
use crate::json::{self, RpcEnvelope, quote};
use crate::server::{
    ChangeEvent, MachineAction, ProtocolMachine, ProtocolServer, RequestFault, ResultKind,
    RevisionKind, RevisionSet, RoutingParams,
};
use dialogue::QuestionDialogue;
use fixtures::Fixtures;
use legacy::OpenDialogues;
use request::{LogLevel, ReadRequest, RequestMembers};
use serde_json::value::RawValue;
use serde_json::{Map, Value};
use shared::SharedState;
use std::sync::Arc;
use subscriptions::SubscriptionTable;
use work::WorkTool;

/// The arguments that HTTP requests repeat in headers, of the only tool that has any.
const MIRRORED: &[(&str, &str)] = &[("Region", "region")];
/// What completion knows.
const WORDS: [&str; 4] = ["paris", "park", "party", "test"];

/// One session of the conformance server.
#[derive(Debug)]
pub(crate) struct ConformanceSession {
    server: ProtocolServer<Fixtures>,
    shared: Arc<SharedState>,
    /// What `initialize` declared.
    capabilities: Map<String, Value>,
    /// The least level that a Legacy client wants to hear of.
    level: LogLevel,
    talks: OpenDialogues,
    subscriptions: SubscriptionTable,
}

/// What makes sessions of one conformance server.
#[derive(Debug, Clone)]
pub(crate) struct ConformanceSessions {
    shared: Arc<SharedState>,
    eras: RevisionSet,
    count: Option<CallLog>,
}

/// A request that the plain server cannot serve.
enum RequestPlan {
    Level,
    Complete,
    Subscribe,
    Unsubscribe,
    Listen,
    Work(WorkTool),
    Talk(Result<QuestionDialogue, RequestFault>),
}

/// How such a request goes on.
enum RequestOutcome {
    /// A result with these members.
    Result(String),
    /// A result with these members that asks for input.
    InputRequired(String),
    /// The reply is appended already, or follows later.
    Done,
}

impl ConformanceSessions {
    pub(crate) fn new(eras: RevisionSet, count: Option<CallLog>) -> Self {
        Self {
            shared: Arc::default(),
            eras,
            count,
        }
    }

    pub(crate) fn open(&self) -> ConformanceSession {
        let fixtures = Fixtures {
            shared: Arc::clone(&self.shared),
        };
        ConformanceSession {
            server: ProtocolServer::new(fixtures, self.eras, self.count.clone()),
            shared: Arc::clone(&self.shared),
            capabilities: Map::new(),
            level: LogLevel::Debug,
            talks: OpenDialogues::default(),
            subscriptions: SubscriptionTable::default(),
        }
    }
}

impl ProtocolMachine for ConformanceSession {
    fn handle(&mut self, frame: &[u8], actions: &mut Vec<MachineAction>) {
        let Ok(envelope) = json::object::<RpcEnvelope<'_>>(frame.trim_ascii()) else {
            return self.server.handle(frame, actions);
        };
        if envelope.method.is_empty() {
            return self.take_answer(&envelope, actions);
        }
        self.take_note(&envelope);
        let Some(request) = self.read(&envelope) else {
            return self.server.handle(frame, actions);
        };
        let Some(plan) = self.plan(&request) else {
            return self.server.handle(frame, actions);
        };
        let outcome = self
            .server
            .note(&envelope)
            .and_then(|()| self.carry_out(plan, &request, actions));
        let (id, era) = (request.id, request.era);
        let frame = match outcome {
            Ok(RequestOutcome::Done) => return,
            Ok(RequestOutcome::Result(members)) => {
                self.server.success(id, era, &members, ResultKind::Plain)
            }
            Ok(RequestOutcome::InputRequired(members)) => {
                self.server
                    .success(id, era, &members, ResultKind::InputRequired)
            }
            Err(fault) => fault.frame(id, era),
        };
        actions.push(MachineAction::Send(frame));
    }

    fn event(&mut self, event: &ChangeEvent, actions: &mut Vec<MachineAction>) {
        let legacy = self.server.is_initialized();
        self.subscriptions.owed(event, legacy, actions);
    }

    fn mirrored_parameters(&self, tool: &str) -> &[(&'static str, &'static str)] {
        match tool {
            "test_header_parameter" => MIRRORED,
            _ => &[],
        }
    }
}

impl ConformanceSession {
    /// Keeps what later requests depend on.
    fn take_note(&mut self, envelope: &RpcEnvelope<'_>) {
        match &*envelope.method {
            "initialize" => {
                let own = RequestMembers::read(envelope.params).unwrap_or_default();
                self.capabilities = own.into_capabilities();
            }
            "notifications/cancelled" => {
                let params = RoutingParams::read(envelope.params).unwrap_or_default();
                if let Some(id) = params.request_id {
                    self.subscriptions.end(id.get());
                    self.talks.end(id.get());
                }
            }
            _ => {}
        }
    }

    /// Returns the request in an envelope; none if the plain server has to answer, if only with an error.
    fn read<'a>(&self, envelope: &'a RpcEnvelope<'a>) -> Option<ReadRequest<'a>> {
        let id = envelope.id.map(RawValue::get)?;
        let (params, era) = self.server.era_of(envelope).ok()?;
        json::is_request_id(id).then(|| ReadRequest {
            id,
            era,
            method: &envelope.method,
            params,
            own: RequestMembers::read(envelope.params),
        })
    }

    fn plan(&self, request: &ReadRequest<'_>) -> Option<RequestPlan> {
        match (request.method, request.era) {
            ("logging/setLevel", RevisionKind::Legacy(_)) => Some(RequestPlan::Level),
            ("completion/complete", _) => Some(RequestPlan::Complete),
            ("resources/subscribe", RevisionKind::Legacy(_)) => Some(RequestPlan::Subscribe),
            ("resources/unsubscribe", RevisionKind::Legacy(_)) => Some(RequestPlan::Unsubscribe),
            ("subscriptions/listen", RevisionKind::Modern) => Some(RequestPlan::Listen),
            ("tools/call", _) => {
                let tool = request.name().ok()?;
                let talk = || {
                    let declared = |capability: &str| self.declares(request, capability);
                    dialogue::of_tool(&tool, request.arguments(), declared).map(RequestPlan::Talk)
                };
                WorkTool::of(&tool).map(RequestPlan::Work).or_else(talk)
            }
            ("prompts/get", _) => {
                dialogue::of_prompt(&request.name().ok()?).map(|talk| RequestPlan::Talk(Ok(talk)))
            }
            _ => None,
        }
    }

    /// Returns whether the client can do something: said by each Modern request, by `initialize` before.
    fn declares(&self, request: &ReadRequest<'_>, capability: &str) -> bool {
        match request.era {
            RevisionKind::Legacy(_) => self.capabilities.contains_key(capability),
            RevisionKind::Modern => request.declares(capability),
        }
    }

    fn carry_out(
        &mut self,
        plan: RequestPlan,
        request: &ReadRequest<'_>,
        actions: &mut Vec<MachineAction>,
    ) -> Result<RequestOutcome, RequestFault> {
        match plan {
            RequestPlan::Level => self.level = request.level()?,
            RequestPlan::Complete => return complete(request).map(RequestOutcome::Result),
            RequestPlan::Subscribe => self.subscriptions.subscribe(&request.uri()?)?,
            RequestPlan::Unsubscribe => self.subscriptions.unsubscribe(&request.uri()?),
            RequestPlan::Listen => {
                self.subscriptions.listen(request, actions)?;
                return Ok(RequestOutcome::Done);
            }
            RequestPlan::Work(work) => return self.work(work, request, actions),
            RequestPlan::Talk(dialogue) => {
                let dialogue = dialogue?;
                for ask in dialogue.rounds.iter().flatten() {
                    if !self.declares(request, ask.capability()) {
                        return Err(RequestFault::MissingCapability(ask.capability()));
                    }
                }
                return match request.era {
                    RevisionKind::Modern => modern::advance(&self.shared, &dialogue, request),
                    RevisionKind::Legacy(_) => {
                        self.talks.begin(request.id, dialogue, actions)?;
                        Ok(RequestOutcome::Done)
                    }
                };
            }
        }
        Ok(RequestOutcome::Result(String::new()))
    }

    /// An answer of a Legacy client to one of our questions.
    fn take_answer(&mut self, envelope: &RpcEnvelope<'_>, actions: &mut Vec<MachineAction>) {
        let Some(ask) = envelope.id.map(RawValue::get) else {
            return;
        };
        let answer = match (envelope.result, envelope.error) {
            (Some(result), None) => Ok(result.get()),
            (_, error) => Err(error.map_or("null", RawValue::get)),
        };
        if let Some((id, members)) = self.talks.take_answer(ask, answer, actions) {
            let era = RevisionKind::Legacy("2025-11-25");
            let frame = self.server.success(&id, era, &members, ResultKind::Plain);
            actions.push(MachineAction::Send(frame));
        }
    }
}

fn complete(request: &ReadRequest<'_>) -> Result<String, RequestFault> {
    let typed = request.own()?.argument.as_ref();
    let typed =
        typed.ok_or_else(|| RequestFault::InvalidParams("params.argument is missing".into()))?;
    let values: Vec<String> = WORDS
        .iter()
        .filter(|word| word.starts_with(typed.value.as_str()))
        .map(|word| quote(word))
        .collect();
    Ok(format!(
        r#""completion":{{"values":[{}],"total":{},"hasMore":false}}"#,
        values.join(","),
        values.len()
    ))
}
