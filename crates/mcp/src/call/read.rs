//! What a request asks for, read from its frame.

use std::borrow::Cow;
use std::sync::Arc;

use gate::facts::{Facts, ResourceType};
use gate::inspect::Inspected;
use gate::{ControlKind, InFlight, Origin, RunId, Transport};
use toolkit::server::SessionRef;
use wire::jsonrpc::{Kind, member, string};
use wire::scan::Scan;
use wire::{Canonical, Id, WireError};

use super::client::Asker;
use super::input_required::Return;
use super::listens;
use super::server::Server;
use crate::describe::{self, Context, InlineBound};
use crate::message::method::{self, Class, List, Treatment};
use crate::message::splice::{Marks, meta};
use crate::message::{frames, request, shapes};
use crate::notes::{Note, Noted};
use crate::upstream::{Lasting, Page, Subscription};
use toolkit::trace::{TRACEPARENT, Trace};

/// The method that calls a tool.
const TOOLS_CALL: &str = "tools/call";

/// A request as its edge has read it.
pub(crate) struct IncomingRequest<'m> {
    pub message: &'m Inspected<Canonical>,
    pub scan: &'m Scan<'m>,
    pub id: Id<'m>,
    pub method: &'m str,
    /// When it was read, on the gate's monotonic clock.
    pub received_ns: u64,
    /// What its headers say about its run.
    pub trace: &'m Trace,
}

/// What a request asks for, without its frame.
#[derive(Debug)]
pub(crate) struct Asked {
    pub(super) marks: Marks,
    pub(super) names: Names,
    pub(super) received_ns: u64,
    pub(super) step: Step,
    /// What had been settled when it was read.
    pub(super) seen: u64,
    /// The page of a list that it asks for, where its server need not be asked anew.
    pub(super) page: Option<Page>,
    /// What it says to a built-in server.
    pub(super) read: Option<Box<toolkit::mcp::Message>>,
    /// It was read for a few steps only, and needs more: its facts are not those of the whole call.
    pub(super) is_long: bool,
}

/// A request's names as its client spelled them.
#[derive(Debug)]
pub(crate) struct Names {
    pub id: String,
    /// Whether it calls a tool.
    pub is_tool_call: bool,
    /// The progress token.
    pub token: Option<String>,
    /// How long the server may take; `u64::MAX`: for as long as the client stays.
    pub timeout_ns: u64,
    /// The notifications about lists that it listens for.
    pub listens: Vec<&'static str>,
    /// What lasts beyond its answer.
    pub lasting: Option<Lasting>,
    /// Why a built-in server could not say what it is about.
    pub unfit: Option<String>,
}

#[derive(Debug)]
pub(super) enum Step {
    Pass(ControlKind, After, Box<Facts>, Box<Origin>),
    Judge(Box<Facts>, Box<Origin>),
    /// A call that could pass, of a tool that its server has not listed.
    Unlisted(Box<Facts>, Box<Origin>),
    /// The client comes back with an answer of its person.
    Return(Return, Box<Facts>, Box<Origin>),
    Refuse(Vec<u8>),
}

impl Step {
    /// What is known of a request that is judged.
    pub(super) fn facts(&self) -> Option<&Facts> {
        match self {
            Self::Judge(facts, _) => Some(facts),
            _ => None,
        }
    }
}

/// What to do with the answer.
#[derive(Debug)]
pub(super) enum After {
    Treat(Treatment),
    /// Show what may be shown of it; whether it is a first page.
    List(List, bool),
    Call(InFlight),
}

impl Asked {
    /// The id as the client spelled it.
    pub fn id(&self) -> &str {
        &self.names.id
    }

    /// The run that it belongs to, and the operation that made it.
    pub(super) fn trace(&self) -> Trace {
        match &self.step {
            Step::Unlisted(_, origin) | Step::Judge(_, origin) => Trace {
                run: origin.run.clone(),
                parent_op: origin.parent_op,
                headers: None,
            },
            _ => Trace::default(),
        }
    }

    /// Bounds the time that its server may take.
    pub fn end_within(&mut self, timeout_ns: u64) {
        self.names.timeout_ns = self.names.timeout_ns.min(timeout_ns);
    }

    /// Takes along the client's headers that repeat arguments.
    pub fn mirror(&mut self, headers: &http::HeaderMap) {
        self.marks.mirror(headers);
    }
}

impl Asker {
    /// Whether no name among a call's arguments can be read as another.
    fn arguments_are_plain(&self, method: &str, canonical: &Canonical) -> Result<(), WireError> {
        if method != TOOLS_CALL {
            return Ok(());
        }
        let tool = canonical.param("name").and_then(string);
        self.server
            .with_names(tool.as_deref(), |names| canonical.arguments_are(names))
    }

    /// Reads a request and decides what it asks for, without sending anything.
    pub fn read(&self, asked: &IncomingRequest<'_>) -> Asked {
        let IncomingRequest {
            message,
            scan,
            id,
            method,
            received_ns,
            trace,
        } = *asked;
        let canonical = message.message();
        let frame = canonical.text().as_bytes();
        let seen = self.settled();
        let message = self.message(scan);
        let inline = self.client.reading_pool().map(|_| InlineBound::default());
        let step = self.step(asked, message.as_deref(), (true, inline.as_ref()));
        let page = match method::of(method).class {
            Class::List(list) if self.recalls => Page::of(list, scan),
            _ => None,
        };
        let is_tool_call = method == TOOLS_CALL;
        let tool = is_tool_call.then(|| member(&scan.params, "name"));
        let tool = tool.flatten().and_then(string);
        let timeout_ns = if method::of(method).is_endless {
            // A subscription lasts as long as its client stays.
            u64::MAX
        } else {
            self.server.timeout_ns(tool.as_deref())
        };
        let mut marks = Marks::of(frame, scan).unwrap_or_default();
        marks.trace.clone_from(&trace.headers);
        // A revision, which decides on headers, would be in there.
        let is_plain = member(&scan.params, "_meta").is_none() && !self.is_modern();
        if is_plain && self.server.pool.means().transport() == Transport::Http {
            marks.tool = tool.as_deref().map(Into::into);
        }
        let token = marks.token.as_ref().and_then(|at| {
            let raw = frame.get(at.clone())?;
            Some(String::from_utf8_lossy(raw).into_owned())
        });
        Asked {
            marks,
            names: Names {
                id: id.raw().to_owned(),
                is_tool_call,
                token,
                timeout_ns,
                listens: match method::of(method).is_endless {
                    true => listens::wanted(scan),
                    false => Vec::new(),
                },
                lasting: self.lasting(asked),
                unfit: message
                    .as_ref()
                    .and_then(|message| message.unfit())
                    .map(ToString::to_string),
            },
            received_ns,
            step,
            seen,
            page,
            read: message,
            is_long: inline.is_some_and(|inline| inline.is_exceeded()),
        }
    }

    /// What a request says to a built-in server.
    fn message(&self, scan: &Scan<'_>) -> Option<Box<toolkit::mcp::Message>> {
        let builtin = self.server.builtin()?;
        let by = SessionRef {
            id: Arc::clone(&self.session_id),
            caller: Arc::clone(&self.caller.subject),
            groups: Arc::clone(&self.caller.groups),
            shares: self.caller.has_to_share(),
        };
        Some(Box::new(builtin.read(scan, by)))
    }

    /// Has a built-in server state what a call is about.
    pub(super) fn stated(&self, message: Option<&toolkit::mcp::Message>, facts: &mut Facts) {
        if let (Some(builtin), Some(message)) = (self.server.builtin(), message) {
            // One that cannot be described is answered with a failure, and judged by what is known.
            let _ = builtin.describe(message, facts);
        }
    }

    /// What a server that is started again has to be asked again.
    fn lasting(&self, asked: &IncomingRequest<'_>) -> Option<Lasting> {
        if self.is_modern() {
            return None;
        }
        let frame = || asked.message.message().text().as_bytes().to_vec();
        let uri = || {
            let raw = member(&asked.scan.params, "uri")?;
            string(raw).map(Cow::into_owned)
        };
        match asked.method {
            "logging/setLevel" => Some(Lasting::Level(frame())),
            "resources/subscribe" => {
                let subscription = Subscription {
                    frame: frame(),
                    policy_version: self.server.gate.world().version.clone(),
                };
                Some(Lasting::Subscribed(uri()?, subscription))
            }
            "resources/unsubscribe" => Some(Lasting::Unsubscribed(uri()?)),
            _ => None,
        }
    }

    /// What becomes of a request by its method and what it carries; whether its server may be asked for its
    /// tools before, and what bounds its reading here.
    fn step(
        &self,
        asked: &IncomingRequest<'_>,
        message: Option<&toolkit::mcp::Message>,
        (may_list, inline): (bool, Option<&InlineBound>),
    ) -> Step {
        let IncomingRequest {
            scan,
            id,
            method,
            received_ns,
            trace,
            ..
        } = *asked;
        let origin = || {
            let digest = member(&scan.params, "arguments")
                .map(|raw| self.server.gate.digest(raw.as_bytes()));
            let run = trace.run.clone().or_else(|| run_in_meta(scan));
            Box::new(self.origin(id.raw(), digest, received_ns, (run, trace.parent_op)))
        };
        let control = || {
            let facts = self.with_context(|context| describe::control_request(method, context));
            Box::new(facts)
        };
        let is_open = || {
            self.under_way
                .as_ref()
                .is_some_and(|of| of.revision().is_some())
        };
        if method == "initialize" && !self.is_modern() && is_open() {
            return Step::Refuse(frames::error(id.raw(), -32600, request::OPEN_ALREADY, None));
        }
        let back = self.is_modern().then(|| Return::of(scan)).flatten();
        match (request::classify(method, scan), back) {
            (Class::Judged(_), Some(back)) => Step::Return(back, control(), origin()),
            (Class::Control(kind), _) => {
                let after = After::Treat(method::of(method).treatment);
                Step::Pass(kind, after, control(), origin())
            }
            (Class::List(list), _) => {
                let first = member(&scan.params, "cursor").is_none_or(|raw| raw == "null");
                let after = After::List(list, first);
                Step::Pass(ControlKind::List, after, control(), origin())
            }
            (Class::Judged(reaches_for), None) => {
                match self.judged(asked, reaches_for, message, inline) {
                    Ok((facts, _)) if inline.is_some_and(InlineBound::is_exceeded) => {
                        Step::Judge(facts, origin())
                    }
                    Ok((facts, _)) if may_list && self.has_to_list_first(&facts) => {
                        Step::Unlisted(facts, origin())
                    }
                    Ok((facts, Ok(()))) => Step::Judge(facts, origin()),
                    Ok((_, Err(fault))) => {
                        self.client.note(Noted::frame(&fault));
                        Step::Refuse(frames::bad_frame(id.raw(), &fault))
                    }
                    Err(refusal) => Step::Refuse(refusal),
                }
            }
        }
    }

    /// Reads a request again, of whose tool more may be known by now; then it is judged by what is.
    pub(super) fn read_again(
        &self,
        frame: &Inspected<Vec<u8>>,
        asked: &mut Asked,
    ) -> Result<(), WireError> {
        let seen = self.settled();
        let when = (asked.received_ns, asked.trace());
        if let Some(step) = self.step_again(frame, when, asked.read.as_deref(), false)? {
            (asked.seen, asked.step) = (seen, step);
        }
        Ok(())
    }

    /// Returns what becomes of a request that is read again, whole; `None` if it is none. What it says to a built-in
    /// server is read as well, unless it is given.
    pub(super) fn step_again(
        &self,
        frame: &Inspected<Vec<u8>>,
        (received_ns, trace): (u64, Trace),
        read: Option<&toolkit::mcp::Message>,
        may_list: bool,
    ) -> Result<Option<Step>, WireError> {
        let message = frame.try_map_ref(|frame| shapes::of_client(frame))?;
        let scan = message.message().scan();
        let Kind::Request { id, method } = message.message().envelope()?.kind else {
            return Ok(None);
        };
        let again = IncomingRequest {
            message: &message,
            scan: &scan,
            id,
            method: &method,
            received_ns,
            trace: &trace,
        };
        let own = match read {
            Some(_) => None,
            None => self.message(&scan),
        };
        let read = read.or(own.as_deref());
        Ok(Some(self.step(&again, read, (may_list, None))))
    }

    /// The facts of a call that is judged and whether its arguments can be read in one way only, or the
    /// answer to one that cannot be judged.
    #[expect(clippy::type_complexity, reason = "read at once by its one caller")]
    fn judged(
        &self,
        asked: &IncomingRequest<'_>,
        reaches_for: Option<ResourceType>,
        message: Option<&toolkit::mcp::Message>,
        inline: Option<&InlineBound>,
    ) -> Result<(Box<Facts>, Result<(), WireError>), Vec<u8>> {
        let (id, method) = (asked.id.raw(), asked.method);
        let described = self.with_context(|context| {
            let context = Context { inline, ..*context };
            describe::client_request(method, reaches_for, asked.scan, &context)
        });
        let mut facts = described.map_err(|message| {
            self.client.note(Note::ClientParamsUnusable.with(message));
            frames::error(id, -32602, message, None)
        })?;
        if inline.is_some_and(InlineBound::is_exceeded) {
            return Ok((facts, Ok(())));
        }
        let plain = self.arguments_are_plain(method, asked.message.message());
        self.stated(message, &mut facts);
        Server::refresh_quarantine(&mut facts, &self.shown);
        if let Some(finding) = asked.message.finding() {
            facts.state_finding(finding);
        }
        Ok((facts, plain))
    }
}

/// The run that a request names in `_meta` (SEP-414).
fn run_in_meta(scan: &Scan<'_>) -> Option<RunId> {
    RunId::of_trace(&string(meta(&scan.params, TRACEPARENT)?)?)
}
