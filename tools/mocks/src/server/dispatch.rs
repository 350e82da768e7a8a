//! From a frame to its answer.

use super::era::{self, META_SERVER, MODERN_VERSION, RevisionKind, RevisionSet, RoutingParams};
use super::{MachineAction, ProtocolMachine, RequestFault, ServerSurface};
use crate::count::CallLog;
use crate::json::{self, RpcEnvelope, quote};
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::time::Duration;

/// A [`ServerSurface`] behind the protocol of both eras.
#[derive(Debug, Clone)]
pub(crate) struct ProtocolServer<S> {
    pub(crate) surface: S,
    eras: RevisionSet,
    /// The revision that `initialize` settled on.
    session: Option<&'static str>,
    count: Option<CallLog>,
}

/// The result of one method, before the envelope of its era.
struct MethodResult {
    members: String,
    kind: ResultKind,
    after: Duration,
}

/// Members that the stateless revision adds to a result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ResultKind {
    /// `resultType: complete`.
    Plain,
    /// The same, with the members about caching.
    Cached,
    /// `resultType: input_required`.
    InputRequired,
}

/// One response frame.
struct ResponseFrame {
    id: String,
    frame: Vec<u8>,
    after: Duration,
}

impl MethodResult {
    fn now(members: String) -> Self {
        Self {
            members,
            kind: ResultKind::Plain,
            after: Duration::ZERO,
        }
    }

    fn cached(members: String) -> Self {
        Self {
            members,
            kind: ResultKind::Cached,
            after: Duration::ZERO,
        }
    }
}

impl<S: ServerSurface> ProtocolMachine for ProtocolServer<S> {
    fn handle(&mut self, frame: &[u8], actions: &mut Vec<MachineAction>) {
        let frame = frame.trim_ascii();
        match frame.first() {
            None => {}
            Some(b'[') => self.batch(frame, actions),
            Some(_) => {
                if let Some(answer) = self.answer(frame, actions) {
                    actions.push(answer.action());
                }
            }
        }
    }
}

impl ResponseFrame {
    fn action(self) -> MachineAction {
        match self.after {
            Duration::ZERO => MachineAction::Send(self.frame),
            after => MachineAction::SendLater {
                id: self.id,
                after,
                frame: self.frame,
            },
        }
    }
}

impl<S: ServerSurface> ProtocolServer<S> {
    pub(crate) fn new(surface: S, eras: RevisionSet, count: Option<CallLog>) -> Self {
        Self {
            surface,
            eras,
            session: None,
            count,
        }
    }

    /// Returns whether `initialize` has settled on a revision.
    pub(crate) fn is_initialized(&self) -> bool {
        self.session.is_some()
    }

    /// Returns the era that answers are dressed for when a request could not be read that far.
    fn default_era(&self) -> RevisionKind {
        self.session
            .map_or(RevisionKind::Modern, RevisionKind::Legacy)
    }

    fn batch(&mut self, frame: &[u8], actions: &mut Vec<MachineAction>) {
        let refuse = |text: &str| {
            RequestFault::InvalidRequest(text.into()).frame("null", self.default_era())
        };
        if !era::batches(self.session) {
            return actions.push(MachineAction::Send(refuse(
                "a frame holds one message in this revision",
            )));
        }
        let members: Vec<&RawValue> = match serde_json::from_slice(frame) {
            Ok(members) => members,
            Err(error) => {
                return actions.push(MachineAction::Send(
                    RequestFault::Unreadable(error.to_string()).frame("null", self.default_era()),
                ));
            }
        };
        if members.is_empty() {
            return actions.push(MachineAction::Send(refuse("the batch is empty")));
        }
        let answers: Vec<ResponseFrame> = members
            .iter()
            .filter_map(|member| self.answer(member.get().as_bytes(), actions))
            .collect();
        let Some(after) = answers.iter().map(|answer| answer.after).max() else {
            return;
        };
        let frames: Vec<Cow<'_, str>> = answers
            .iter()
            .map(|answer| String::from_utf8_lossy(&answer.frame))
            .collect();
        let frame = format!("[{}]", frames.join(",")).into_bytes();
        actions.push(
            ResponseFrame {
                id: String::new(),
                frame,
                after,
            }
            .action(),
        );
    }

    fn answer(&mut self, frame: &[u8], actions: &mut Vec<MachineAction>) -> Option<ResponseFrame> {
        let unreadable = |text: String, era| ResponseFrame {
            id: "null".into(),
            frame: RequestFault::Unreadable(text).frame("null", era),
            after: Duration::ZERO,
        };
        let envelope: RpcEnvelope<'_> = match json::object(frame) {
            Ok(envelope) => envelope,
            Err(error) => {
                return Some(unreadable(
                    format!("the frame cannot be read: {error}"),
                    self.default_era(),
                ));
            }
        };
        if envelope.method.is_empty() && (envelope.result.is_some() || envelope.error.is_some()) {
            return None; // a response, and this server asks nothing
        }
        let counted = self.note(&envelope);
        let Some(id) = envelope.id else {
            Self::notification(&envelope, actions);
            return None;
        };
        let (outcome, era) = match counted {
            Ok(()) => self.request(&envelope, id.get()),
            Err(fault) => (Err(fault), self.default_era()),
        };
        let id = if json::is_request_id(id.get()) {
            id.get()
        } else {
            "null"
        };
        let after = outcome
            .as_ref()
            .map_or(Duration::ZERO, |outcome| outcome.after);
        let frame = match outcome {
            Ok(outcome) => self.success(id, era, &outcome.members, outcome.kind),
            Err(fault) => fault.frame(id, era),
        };
        Some(ResponseFrame {
            id: id.into(),
            frame,
            after,
        })
    }

    /// Returns the whole response to `id`, which is raw JSON; `members` are those of the result, without braces.
    pub(crate) fn success(
        &self,
        id: &str,
        era: RevisionKind,
        members: &str,
        kind: ResultKind,
    ) -> Vec<u8> {
        let mut frame = String::with_capacity(members.len() + 320);
        frame.push_str(r#"{"jsonrpc":"2.0","id":"#);
        frame.push_str(id);
        frame.push_str(r#","result":{"#);
        frame.push_str(members);
        if era == RevisionKind::Modern {
            if !members.is_empty() {
                frame.push(',');
            }
            frame.push_str(match kind {
                ResultKind::Plain | ResultKind::Cached => r#""resultType":"complete","#,
                ResultKind::InputRequired => r#""resultType":"input_required","#,
            });
            if kind == ResultKind::Cached {
                frame.push_str(&format!(
                    r#""ttlMs":{},"cacheScope":"public","#,
                    self.surface.ttl_ms()
                ));
            }
            frame.push_str(&format!(
                r#""_meta":{{"{META_SERVER}":{}}}"#,
                self.server_info()
            ));
        }
        frame.push_str("}}");
        frame.into_bytes()
    }

    /// Returns the implementation object of this server.
    pub(crate) fn server_info(&self) -> String {
        let identity = self.surface.identity();
        format!(
            r#"{{"name":"{}","title":"{}","version":"{}"}}"#,
            identity.name,
            identity.title,
            env!("CARGO_PKG_VERSION")
        )
    }

    fn notification(envelope: &RpcEnvelope<'_>, actions: &mut Vec<MachineAction>) {
        let Ok(params) = RoutingParams::read(envelope.params) else {
            return;
        };
        if envelope.method == "notifications/cancelled"
            && let Some(id) = params.request_id
        {
            actions.push(MachineAction::Withdraw {
                id: id.get().into(),
            });
        }
    }

    /// Counts every call that arrives, including one without an id, which does nothing.
    pub(crate) fn note(&mut self, envelope: &RpcEnvelope<'_>) -> Result<(), RequestFault> {
        let Some(count) = self
            .count
            .as_mut()
            .filter(|_| envelope.method == "tools/call")
        else {
            return Ok(());
        };
        let params = RoutingParams::read(envelope.params).unwrap_or_default();
        let raw = |value: Option<&RawValue>| {
            value.map_or("null".to_owned(), |value| value.get().to_owned())
        };
        count
            .note(&raw(params.name), &raw(params.arguments))
            .map_err(|error| RequestFault::Internal(format!("cannot count the call: {error}")))
    }

    fn request(
        &mut self,
        envelope: &RpcEnvelope<'_>,
        id: &str,
    ) -> (Result<MethodResult, RequestFault>, RevisionKind) {
        let fallback = self.default_era();
        if !json::is_request_id(id) || envelope.method.is_empty() {
            return (
                Err(RequestFault::InvalidRequest(
                    "a request has a method, and an id that is a string or a number".into(),
                )),
                fallback,
            );
        }
        let (params, era) = match self.era_of(envelope) {
            Ok(settled) => settled,
            Err(fault) => return (Err(fault), fallback),
        };
        if envelope.method == "initialize" && era != RevisionKind::Modern {
            return (self.initialize(&params), era);
        }
        (self.serve(&envelope.method, &params, era), era)
    }

    /// Returns the parameters of a request and the era that it is served in.
    pub(crate) fn era_of<'a>(
        &self,
        envelope: &RpcEnvelope<'a>,
    ) -> Result<(RoutingParams<'a>, RevisionKind), RequestFault> {
        if envelope.jsonrpc != "2.0" {
            return Err(RequestFault::InvalidRequest(
                "jsonrpc is not \"2.0\"".into(),
            ));
        }
        let params = RoutingParams::read(envelope.params)?;
        let modern = self.eras.modern() && params.names_version();
        let era = if envelope.method == "initialize" && !modern {
            RevisionKind::Legacy("2025-11-25")
        } else {
            self.eras.of(&envelope.method, &params, self.session)?
        };
        Ok((params, era))
    }

    fn initialize(&mut self, params: &RoutingParams<'_>) -> Result<MethodResult, RequestFault> {
        let requested = text(params.version, "protocolVersion")?;
        let version = self.eras.negotiate(&requested)?;
        self.session = Some(version);
        let (capabilities, info) = (self.capabilities(), self.server_info());
        let instructions = quote(self.surface.identity().instructions);
        Ok(MethodResult::now(format!(
            r#""protocolVersion":"{version}","capabilities":{capabilities},"serverInfo":{info},"instructions":{instructions}"#
        )))
    }

    fn discover(&mut self) -> MethodResult {
        let capabilities = self.capabilities();
        let instructions = quote(self.surface.identity().instructions);
        MethodResult::cached(format!(
            r#""supportedVersions":["{MODERN_VERSION}"],"capabilities":{capabilities},"instructions":{instructions}"#
        ))
    }

    fn capabilities(&mut self) -> String {
        if let Some(capabilities) = self.surface.capabilities() {
            return capabilities;
        }
        let mut capabilities = format!(
            r#"{{"tools":{{"listChanged":{}}}"#,
            self.surface.tools_change()
        );
        if self.surface.prompts().is_some() {
            capabilities.push_str(r#","prompts":{}"#);
        }
        if self.surface.resources().is_some() {
            capabilities.push_str(r#","resources":{}"#);
        }
        capabilities.push('}');
        capabilities
    }

    fn serve(
        &mut self,
        method: &str,
        params: &RoutingParams<'_>,
        era: RevisionKind,
    ) -> Result<MethodResult, RequestFault> {
        let unknown = || RequestFault::UnknownMethod(method.into());
        let list = |name: &str, items: String| MethodResult::cached(format!(r#""{name}":{items}"#));
        match (method, era) {
            ("tools/call", _) => self.call(params),
            ("tools/list", _) => Ok(list("tools", self.surface.tools())),
            ("prompts/list", _) => self
                .surface
                .prompts()
                .map(|items| list("prompts", items))
                .ok_or_else(unknown),
            ("prompts/get", _) if self.surface.prompts().is_some() => {
                let name = text(params.name, "name")?;
                self.surface
                    .prompt(&name, arguments(params)?)
                    .map(MethodResult::now)
            }
            ("resources/list", _) => self
                .surface
                .resources()
                .map(|items| list("resources", items))
                .ok_or_else(unknown),
            ("resources/templates/list", _) if self.surface.resources().is_some() => {
                Ok(list("resourceTemplates", self.surface.templates()))
            }
            ("resources/read", _) if self.surface.resources().is_some() => {
                let uri = text(params.uri, "uri")?;
                self.surface.read(&uri).map(MethodResult::cached)
            }
            ("server/discover", RevisionKind::Modern) => Ok(self.discover()),
            ("ping", RevisionKind::Legacy(_)) => Ok(MethodResult::now(String::new())),
            _ => Err(unknown()),
        }
    }

    fn call(&mut self, params: &RoutingParams<'_>) -> Result<MethodResult, RequestFault> {
        let name = text(params.name, "name")?;
        let called = self.surface.call(&name, arguments(params)?)?;
        Ok(MethodResult {
            members: called.members,
            kind: ResultKind::Plain,
            after: called.after,
        })
    }
}

/// Returns a member that must be a string, borrowed if it has no escape.
pub(crate) fn text<'a>(
    value: Option<&'a RawValue>,
    member: &str,
) -> Result<Cow<'a, str>, RequestFault> {
    let refused = || RequestFault::InvalidParams(format!("params.{member} is not a string"));
    let raw = value.ok_or_else(refused)?.get();
    match raw
        .strip_prefix('"')
        .and_then(|rest| rest.strip_suffix('"'))
    {
        Some(plain) if !plain.contains('\\') => Ok(Cow::Borrowed(plain)),
        _ => serde_json::from_str(raw)
            .map(Cow::Owned)
            .map_err(|_| refused()),
    }
}

fn arguments<'a>(params: &RoutingParams<'a>) -> Result<&'a str, RequestFault> {
    match params.arguments.map(RawValue::get) {
        None => Ok("{}"),
        Some(raw) if raw.starts_with('{') => Ok(raw),
        Some(_) => Err(RequestFault::InvalidParams(
            "params.arguments is not an object".into(),
        )),
    }
}
