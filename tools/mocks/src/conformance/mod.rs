//! A server with the tools, prompts and resources that the official conformance suite asks for by name,
//! in both eras. What the suite's scenarios observe is what is here; the wording is ours.

mod dialogue;
mod fixtures;
mod legacy;
mod modern;
mod request;
mod shared;
mod subscriptions;
mod work;

use crate::count::Count;
use crate::json::{self, Envelope, quote};
use crate::server::{Action, Era, Eras, Event, Fault, Kind, Machine, Params, Server};
use dialogue::Dialogue;
use fixtures::Fixtures;
use legacy::Talks;
use request::{Level, Own, Request};
use serde_json::value::RawValue;
use serde_json::{Map, Value};
use shared::Shared;
use std::sync::Arc;
use subscriptions::Subscriptions;
use work::Work;

/// The arguments that HTTP requests repeat in headers, of the only tool that has any.
const MIRRORED: &[(&str, &str)] = &[("Region", "region")];
/// What completion knows.
const WORDS: [&str; 4] = ["paris", "park", "party", "test"];

/// One session of the conformance server.
#[derive(Debug)]
pub(crate) struct Conformance {
    server: Server<Fixtures>,
    shared: Arc<Shared>,
    /// What `initialize` declared.
    capabilities: Map<String, Value>,
    /// The least level that a Legacy client wants to hear of.
    level: Level,
    talks: Talks,
    subscriptions: Subscriptions,
}

/// What makes sessions of one conformance server.
#[derive(Debug, Clone)]
pub(crate) struct Sessions {
    shared: Arc<Shared>,
    eras: Eras,
    count: Option<Count>,
}

/// A request that the plain server cannot serve.
enum Plan {
    Level,
    Complete,
    Subscribe,
    Unsubscribe,
    Listen,
    Work(Work),
    Talk(Result<Dialogue, Fault>),
}

/// How such a request goes on.
enum Outcome {
    /// A result with these members.
    Result(String),
    /// A result with these members that asks for input.
    InputRequired(String),
    /// What is to be sent was appended, or is to come.
    Done,
}

impl Sessions {
    pub(crate) fn new(eras: Eras, count: Option<Count>) -> Self {
        Self {
            shared: Arc::default(),
            eras,
            count,
        }
    }

    pub(crate) fn open(&self) -> Conformance {
        let fixtures = Fixtures {
            shared: Arc::clone(&self.shared),
        };
        Conformance {
            server: Server::new(fixtures, self.eras, self.count.clone()),
            shared: Arc::clone(&self.shared),
            capabilities: Map::new(),
            level: Level::Debug,
            talks: Talks::default(),
            subscriptions: Subscriptions::default(),
        }
    }
}

impl Machine for Conformance {
    fn handle(&mut self, frame: &[u8], actions: &mut Vec<Action>) {
        let Ok(envelope) = json::object::<Envelope<'_>>(frame.trim_ascii()) else {
            return self.server.handle(frame, actions);
        };
        if envelope.method.is_empty() {
            return self.answered(&envelope, actions);
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
            Ok(Outcome::Done) => return,
            Ok(Outcome::Result(members)) => self.server.success(id, era, &members, Kind::Plain),
            Ok(Outcome::InputRequired(members)) => {
                self.server.success(id, era, &members, Kind::InputRequired)
            }
            Err(fault) => fault.frame(id, era),
        };
        actions.push(Action::Send(frame));
    }

    fn event(&mut self, event: &Event, actions: &mut Vec<Action>) {
        let legacy = self.server.is_initialized();
        self.subscriptions.owed(event, legacy, actions);
    }

    fn mirrored(&self, tool: &str) -> &[(&'static str, &'static str)] {
        match tool {
            "test_header_parameter" => MIRRORED,
            _ => &[],
        }
    }
}

impl Conformance {
    /// Keeps what later requests depend on.
    fn take_note(&mut self, envelope: &Envelope<'_>) {
        match &*envelope.method {
            "initialize" => {
                let own = Own::read(envelope.params).unwrap_or_default();
                self.capabilities = own.into_capabilities();
            }
            "notifications/cancelled" => {
                let params = Params::read(envelope.params).unwrap_or_default();
                if let Some(id) = params.request_id {
                    self.subscriptions.end(id.get());
                    self.talks.end(id.get());
                }
            }
            _ => {}
        }
    }

    /// The request in an envelope; none where the plain server has to answer, if only with an error.
    fn read<'a>(&self, envelope: &'a Envelope<'a>) -> Option<Request<'a>> {
        let id = envelope.id.map(RawValue::get)?;
        let (params, era) = self.server.era_of(envelope).ok()?;
        json::is_request_id(id).then(|| Request {
            id,
            era,
            method: &envelope.method,
            params,
            own: Own::read(envelope.params),
        })
    }

    fn plan(&self, request: &Request<'_>) -> Option<Plan> {
        match (request.method, request.era) {
            ("logging/setLevel", Era::Legacy(_)) => Some(Plan::Level),
            ("completion/complete", _) => Some(Plan::Complete),
            ("resources/subscribe", Era::Legacy(_)) => Some(Plan::Subscribe),
            ("resources/unsubscribe", Era::Legacy(_)) => Some(Plan::Unsubscribe),
            ("subscriptions/listen", Era::Modern) => Some(Plan::Listen),
            ("tools/call", _) => {
                let tool = request.name().ok()?;
                let talk = || {
                    let declared = |capability: &str| self.declares(request, capability);
                    dialogue::of_tool(&tool, request.arguments(), declared).map(Plan::Talk)
                };
                Work::of(&tool).map(Plan::Work).or_else(talk)
            }
            ("prompts/get", _) => {
                dialogue::of_prompt(&request.name().ok()?).map(|talk| Plan::Talk(Ok(talk)))
            }
            _ => None,
        }
    }

    /// Whether the client can do something: said by each Modern request, by `initialize` before.
    fn declares(&self, request: &Request<'_>, capability: &str) -> bool {
        match request.era {
            Era::Legacy(_) => self.capabilities.contains_key(capability),
            Era::Modern => request.declares(capability),
        }
    }

    fn carry_out(
        &mut self,
        plan: Plan,
        request: &Request<'_>,
        actions: &mut Vec<Action>,
    ) -> Result<Outcome, Fault> {
        match plan {
            Plan::Level => self.level = request.level()?,
            Plan::Complete => return complete(request).map(Outcome::Result),
            Plan::Subscribe => self.subscriptions.subscribe(&request.uri()?)?,
            Plan::Unsubscribe => self.subscriptions.unsubscribe(&request.uri()?),
            Plan::Listen => {
                self.subscriptions.listen(request, actions)?;
                return Ok(Outcome::Done);
            }
            Plan::Work(work) => return self.work(work, request, actions),
            Plan::Talk(dialogue) => {
                let dialogue = dialogue?;
                for ask in dialogue.rounds.iter().flatten() {
                    if !self.declares(request, ask.capability()) {
                        return Err(Fault::MissingCapability(ask.capability()));
                    }
                }
                return match request.era {
                    Era::Modern => modern::advance(&self.shared, &dialogue, request),
                    Era::Legacy(_) => {
                        self.talks.begin(request.id, dialogue, actions)?;
                        Ok(Outcome::Done)
                    }
                };
            }
        }
        Ok(Outcome::Result(String::new()))
    }

    /// An answer of a Legacy client to one of our questions.
    fn answered(&mut self, envelope: &Envelope<'_>, actions: &mut Vec<Action>) {
        let Some(ask) = envelope.id.map(RawValue::get) else {
            return;
        };
        let answer = match (envelope.result, envelope.error) {
            (Some(result), None) => Ok(result.get()),
            (_, error) => Err(error.map_or("null", RawValue::get)),
        };
        if let Some((id, members)) = self.talks.answered(ask, answer, actions) {
            let era = Era::Legacy("2025-11-25");
            let frame = self.server.success(&id, era, &members, Kind::Plain);
            actions.push(Action::Send(frame));
        }
    }
}

fn complete(request: &Request<'_>) -> Result<String, Fault> {
    let typed = request.own()?.argument.as_ref();
    let typed = typed.ok_or_else(|| Fault::InvalidParams("params.argument is missing".into()))?;
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
