//! One request from its frame to its answer: read, judged, sent, answered, settled.

use std::sync::Arc;

use gate::facts::Facts;
use gate::journal::{ResponseSummary, Status};
use gate::{
    Admission, Call, Caller, ControlKind, InFlight, Origin, Outcome, Pass, PeerId, Reason, Ticket,
};
use wire::jsonrpc::{member, string};
use wire::scan::Scan;
use wire::{Era, Id, Revision};

use super::Face;
use super::asking::Asking;
use super::questions::{Judging, Late, Question};
use super::server::{Reader, Server, Shown};
use super::session::{CallGuard, Session};
use super::splice::{self, Marks};
use super::upstream::{Exchange, Incoming, Slot, Unsent};
use crate::describe::{self, Context};
use crate::frames::{self, Failure, UpstreamFault};
use crate::input_required::{Return, take_answer};
use crate::method::{Class, List};
use crate::reply::{self, Reply};
use crate::request;
use crate::upstream::{Frame, taken};

/// Longest id that is kept in the journal, in characters.
pub(super) const REQUEST_ID_CHARS_MAX: usize = 256;

/// Who asks.
#[derive(Debug, Clone)]
pub(super) struct Asker {
    pub server: Arc<Server>,
    pub caller: Caller,
    pub session_id: Arc<str>,
    pub client_id: Option<Arc<str>>,
    pub era: Era,
    /// Absent where there are no sessions.
    pub session: Option<Arc<Session>>,
    /// Whether the client can show its person a form.
    pub elicits: bool,
    pub slot: Arc<Slot>,
    pub shown: Arc<Shown>,
}

/// What a request asks for, without its frame.
#[derive(Debug)]
pub(super) struct Asked {
    id: String,
    marks: Marks,
    /// How long the server may take, in nanoseconds; as long as it likes where that is all.
    timeout_ns: u64,
    received_ns: u64,
    step: Step,
}

#[derive(Debug)]
enum Step {
    Pass(ControlKind, After, Box<Facts>, Box<Origin>),
    Judge(Box<Facts>, Box<Origin>),
    /// The client comes back with an answer of its person.
    Return(Return, Box<Facts>, Box<Origin>),
    Refuse(Vec<u8>),
}

impl Asked {
    /// The id as the client spelled it.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Takes along the client's headers that repeat arguments.
    pub fn mirror(&mut self, headers: &http::HeaderMap) {
        self.marks.mirror(headers);
    }
}

/// What to do with the answer.
#[derive(Debug)]
pub(super) enum After {
    Plain,
    /// Screen the instructions in it.
    Handshake,
    /// Show what may be shown of it; whether it is a first page.
    List(List, bool),
    Call(InFlight),
}

/// What became of a request at once.
pub(super) enum Begun {
    Running(Box<Run>),
    Answered(Vec<u8>),
    /// The two sides cannot understand each other.
    EraMismatch,
}

/// What a call under way has for its client.
#[derive(Debug)]
pub(super) enum Said {
    /// A message before the answer.
    Emit(Vec<u8>),
    /// The answer, whether it is an error, and its code.
    Done(Vec<u8>, Option<i64>),
    /// There is none: the client has cancelled.
    Gone,
}

impl Asker {
    /// Reads a request and decides what it asks for, without sending anything.
    pub fn read(
        &self,
        face: &Face,
        frame: &[u8],
        scan: &Scan<'_>,
        id: Id<'_>,
        method: &str,
        received_ns: u64,
    ) -> Asked {
        let pass = |kind, after| {
            let facts = self.with_context(|context| describe::control_request(method, context));
            let origin = self.origin(id.raw(), scan, received_ns);
            Step::Pass(kind, after, Box::new(facts), Box::new(origin))
        };
        let back = match self.era {
            Era::Modern => Return::of(scan),
            Era::Legacy => None,
        };
        let step = match (request::classify(method, scan), back) {
            (Class::Judged(_), Some(back)) => {
                self.returned(back, method, self.origin(id.raw(), scan, received_ns))
            }
            (Class::Control(kind), _) if matches!(method, "initialize" | "server/discover") => {
                pass(kind, After::Handshake)
            }
            (Class::Control(kind), _) => pass(kind, After::Plain),
            (Class::List(list), _) => {
                let first = member(&scan.params, "cursor").is_none_or(|raw| raw == "null");
                pass(ControlKind::List, After::List(list, first))
            }
            (Class::Judged(reaches_for), None) => {
                let described = self.with_context(|context| {
                    describe::client_request(method, reaches_for, scan, context)
                });
                match described {
                    Ok(mut facts) => {
                        Server::refresh_quarantine(&mut facts, &self.shown);
                        Step::Judge(
                            Box::new(facts),
                            Box::new(self.origin(id.raw(), scan, received_ns)),
                        )
                    }
                    Err(message) => {
                        face.note("client_params_unusable", message);
                        Step::Refuse(frames::error(id.raw(), -32602, message, None))
                    }
                }
            }
        };
        // A subscription lasts as long as its client stays.
        let timeout_ns = match &step {
            _ if method == "subscriptions/listen" => u64::MAX,
            Step::Judge(facts, _) => self
                .server
                .timeout_ns(facts.tool_name.known().map(|t| &**t)),
            // It is the request that was asked about, once more.
            Step::Return(..) => {
                let tool = member(&scan.params, "name").and_then(string);
                self.server.timeout_ns(tool.as_deref())
            }
            Step::Pass(..) | Step::Refuse(_) => self.server.timeout_ns(None),
        };
        Asked {
            id: id.raw().to_owned(),
            marks: Marks::of(frame, scan).unwrap_or_default(),
            timeout_ns,
            received_ns,
            step,
        }
    }

    fn returned(&self, back: Return, method: &str, origin: Origin) -> Step {
        let facts = self.with_context(|context| describe::control_request(method, context));
        Step::Return(back, Box::new(facts), Box::new(origin))
    }

    /// The client's name as a destination.
    pub(super) fn peer(&self) -> PeerId {
        PeerId::client(Arc::clone(&self.session_id))
    }

    fn reader(&self) -> Reader<'_> {
        Reader {
            caller: &self.caller.subject,
            session_id: &self.session_id,
            era: self.era,
            shown: &self.shown,
        }
    }

    pub(super) fn with_context<T>(&self, describe: impl FnOnce(&Context<'_>) -> T) -> T {
        self.server
            .with_context(&self.caller.subject, &self.shown, describe)
    }

    fn origin(&self, id: &str, scan: &Scan<'_>, received_ns: u64) -> Origin {
        Origin {
            request_id: id.chars().take(REQUEST_ID_CHARS_MAX).collect(),
            session_id: Arc::clone(&self.session_id),
            era: Some(self.era.label()),
            client_id: self.client_id.clone(),
            transport: self.server.pool.means().transport(),
            arguments_digest: member(&scan.params, "arguments")
                .map(|raw| self.server.gate.digest(raw.as_bytes())),
            received_ns,
        }
    }

    /// Judges and sends a request.
    pub async fn begin(
        self,
        face: &Arc<Face>,
        frame: Vec<u8>,
        asked: Asked,
        guard: Option<CallGuard>,
    ) -> Begun {
        let Asked {
            id,
            marks,
            timeout_ns,
            received_ns,
            step,
        } = asked;
        let deadline_ns = received_ns.saturating_add(timeout_ns);
        let token = marks.token.as_ref().and_then(|at| {
            let raw = frame.get(at.clone())?;
            Some(String::from_utf8_lossy(raw).into_owned())
        });
        let names = Names {
            id,
            token,
            timeout_ns,
        };
        let sent = match step {
            Step::Refuse(answer) => return Begun::Answered(answer),
            Step::Pass(kind, after, facts, origin) => {
                let gate = &self.server.gate;
                let to = self.server.peer();
                let asked = gate.admit_control(kind, &facts, &origin, &to, Frame(frame));
                match asked {
                    Ok(pass) => {
                        let sent = self.dispatch(pass, &marks, deadline_ns).await;
                        sent.map(|(exchange, ())| (exchange, after))
                    }
                    Err(refusal) => {
                        return Begun::Answered(frames::refused(&names.id, &refusal));
                    }
                }
            }
            Step::Judge(facts, origin) => {
                let call = Call {
                    caller: self.caller.clone(),
                    facts: *facts,
                    origin: *origin,
                    targets: self.server.peer().into(),
                    request: Frame(frame),
                };
                let admission = self.server.gate.admit(call).await;
                let called = Called {
                    marks,
                    deadline_ns,
                    names,
                };
                return self.decided(face, admission, called, guard).await;
            }
            Step::Return(back, facts, origin) => {
                return match face.unpark(&self, &back.state, &frame) {
                    Ok(found) => self.came_back(face, found, &back, names).await,
                    Err(stray) => {
                        let counted = self.server.gate.admit_stray(&facts, &origin);
                        face.note("request_state_unusable", stray.sentence());
                        Begun::Answered(frames::stray(&names.id, stray, counted))
                    }
                };
            }
        };
        self.begun(face, sent, names, guard)
    }

    /// Goes on with a call that its client was asked about.
    async fn came_back(
        self,
        face: &Arc<Face>,
        (ticket, marks): (Box<Ticket<Frame>>, Marks),
        back: &Return,
        names: Names,
    ) -> Begun {
        let answer = back.answer.as_ref();
        let ended = take_answer(&self.server.gate, &self.caller.subject, &ticket, answer);
        let admission = match ended {
            Some(reason) => Admission::Refused(self.server.gate.decline(*ticket, reason)),
            None => self.approved(face, ticket, None).await,
        };
        let called = Called {
            marks,
            deadline_ns: self.deadline_ns(&names),
            names,
        };
        self.decided(face, admission, called, None).await
    }

    /// Sends what may be sent; what waits for a person waits here, or is asked about at the client.
    async fn decided(
        self,
        face: &Arc<Face>,
        mut admission: Admission<Frame>,
        called: Called,
        guard: Option<CallGuard>,
    ) -> Begun {
        let Called {
            mut marks,
            mut deadline_ns,
            names,
        } = called;
        while let Admission::Pending(ticket) = admission {
            let ticket = match self.asking(ticket, marks, guard.as_ref()) {
                Ok(asking) => {
                    let stage = Stage::Asking(asking);
                    return Begun::Running(Box::new(self.run(face, stage, names, guard)));
                }
                Err((ticket, unused)) => {
                    marks = unused;
                    ticket
                }
            };
            let ticket = match face.park(&self, ticket, &marks, &names.id) {
                Ok(answer) => return Begun::Answered(answer),
                Err(ticket) => ticket,
            };
            admission = self.approved(face, ticket, guard.as_ref()).await;
            // The server's time begins now.
            deadline_ns = self.deadline_ns(&names);
        }
        let refusal = match admission {
            Admission::Permit(permit) => {
                let sent = self.dispatch(permit, &marks, deadline_ns).await;
                let sent = sent.map(|(e, flight)| (e, After::Call(flight)));
                return self.begun(face, sent, names, guard);
            }
            Admission::Pending(ticket) => self.server.gate.decline(*ticket, Reason::Undecidable),
            Admission::Refused(refusal) => refusal,
        };
        Begun::Answered(frames::refused(&names.id, &refusal))
    }

    fn run(self, face: &Arc<Face>, stage: Stage, names: Names, guard: Option<CallGuard>) -> Run {
        Run {
            face: Arc::clone(face),
            asker: self,
            stage,
            after: None,
            names,
            guard,
            late: None,
        }
    }

    fn begun(
        self,
        face: &Arc<Face>,
        sent: Result<(Exchange, After), Failure>,
        names: Names,
        guard: Option<CallGuard>,
    ) -> Begun {
        match sent {
            Ok((exchange, after)) => {
                let mut run = self.run(face, Stage::Over, names, guard);
                run.sent(exchange, after);
                Begun::Running(Box::new(run))
            }
            Err(failure) if failure.fault == UpstreamFault::EraMismatch => Begun::EraMismatch,
            Err(failure) => {
                face.note(failure.fault.label(), failure.fault.sentence());
                Begun::Answered(frames::upstream_failure(&names.id, &failure))
            }
        }
    }

    /// Sends to the running process, or to a new one where that has ended before anything left.
    pub(super) async fn dispatch<P: Pass<Request = Frame>>(
        &self,
        pass: P,
        marks: &Marks,
        deadline_ns: u64,
    ) -> Result<(Exchange, P::Open), Failure> {
        const TRIES_MAX: usize = 3;
        let mut pass = pass;
        for _ in 0..TRIES_MAX {
            let link = self.server.pool.link(&self.slot).await?;
            link.has_room().await?;
            match link.request(pass, marks, deadline_ns) {
                Ok(sent) => return Ok(sent),
                Err(Unsent::Elsewhere(_)) => return Err(UpstreamFault::Unreachable.into()),
                Err(Unsent::Busy) => return Err(UpstreamFault::Busy.into()),
                Err(Unsent::Ended(unspent)) => pass = unspent,
            }
        }
        Err(UpstreamFault::Died.into())
    }
}

/// A request under way. Dropped before its end, it is cancelled at the server and settled as such.
pub(super) struct Run {
    pub face: Arc<Face>,
    pub asker: Asker,
    pub stage: Stage,
    after: Option<After>,
    pub(super) names: Names,
    pub guard: Option<CallGuard>,
    /// What a person let pass while the call went on; made with the server's first question.
    late: Option<Late>,
}

/// How far it has come.
pub(super) enum Stage {
    /// The client's person is asked.
    Asking(Box<Asking>),
    Sent(Exchange),
    /// Its answer asks the client for something, which is judged.
    Judging(Box<Judging>),
    /// There is nothing more.
    Over,
}

/// What is needed to send a call that may be sent.
struct Called {
    marks: Marks,
    deadline_ns: u64,
    names: Names,
}

/// A request's names as its client spelled them.
pub(super) struct Names {
    id: String,
    /// The progress token.
    token: Option<String>,
    /// How long the server may take; `u64::MAX`: for as long as the client stays.
    pub(super) timeout_ns: u64,
}

impl Run {
    /// What there is for the client next. Nothing after [`Said::Done`] or [`Said::Gone`].
    pub async fn next(&mut self) -> Said {
        loop {
            let exchange = match &mut self.stage {
                Stage::Sent(exchange) => exchange,
                Stage::Judging(judging) => {
                    judging.settled().await;
                    match self.judged_again() {
                        Ok(reply) => return self.done(&reply),
                        Err(Some(said)) => return said,
                        Err(None) => continue,
                    }
                }
                Stage::Asking(_) => {
                    if let Some(said) = self.next_asked().await {
                        return said;
                    }
                    continue;
                }
                Stage::Over => return Said::Gone,
            };
            let incoming = match &mut self.late {
                None => exchange.next().await,
                Some(late) => tokio::select! {
                    biased;
                    frame = late.next() => return Said::Emit(frame),
                    incoming = exchange.next() => incoming,
                },
            };
            match incoming {
                Incoming::Response(reply) => match self.judged(reply).await {
                    Ok(reply) => return self.done(&reply),
                    Err(Some(said)) => return said,
                    Err(None) => {}
                },
                Incoming::Fault(failure) => return self.failed(&failure),
                Incoming::Cancelled => {
                    self.after = None;
                    return Said::Gone;
                }
                Incoming::Notification { frame, tie } => {
                    let client = self.asker.peer();
                    let gate = &self.asker.server.gate;
                    let pass = gate.control(ControlKind::News, &client, frame);
                    if let Some((frame, ())) = taken(pass, &client) {
                        return Said::Emit(self.respelled(frame, tie));
                    }
                }
                Incoming::Request { id, method, frame } => {
                    let link = Arc::clone(exchange.link());
                    let question = Question { id, method, frame };
                    let late = self.asker.session.as_ref();
                    let late = late.map(|s| self.late.get_or_insert_with(|| Late::new(s)).sender());
                    if let Some(frame) = self.asker.pass_on(&link, question, late).await {
                        return Said::Emit(frame);
                    }
                }
            }
        }
    }

    /// What was to be done with the answer.
    pub(super) fn take_after(&mut self) -> Option<After> {
        self.after.take()
    }

    /// Ready when streams without an end are to end, where this is one.
    pub fn quiet(&self) -> impl Future<Output = ()> + Send + use<> {
        let endless = self.names.timeout_ns == u64::MAX;
        let mut quiet = self.face.quiet.subscribe();
        async move {
            if !endless {
                std::future::pending::<()>().await;
            }
            // The sender lives as long as the face.
            drop(quiet.wait_for(|quiet| *quiet).await);
        }
    }

    /// Whether the client may come back for the answer.
    pub fn session(&self) -> Option<&Arc<Session>> {
        self.asker.session.as_ref()
    }

    fn respelled(&self, frame: Vec<u8>, tie: Option<(std::ops::Range<usize>, bool)>) -> Vec<u8> {
        let Some((at, is_token)) = tie else {
            return frame;
        };
        let name = if is_token {
            self.names.token.as_deref().unwrap_or(&self.names.id)
        } else {
            &self.names.id
        };
        splice::edited(&frame, &mut [(at, name.as_bytes())])
    }

    /// The call's id as its client spelled it.
    pub fn id(&self) -> &str {
        &self.names.id
    }

    /// It has been sent.
    pub fn sent(&mut self, exchange: Exchange, after: After) {
        if let Some(guard) = &self.guard {
            guard.sent(exchange.link(), exchange.number());
        }
        self.stage = Stage::Sent(exchange);
        self.after = Some(after);
    }

    pub(super) fn failed(&mut self, failure: &Failure) -> Said {
        self.ended(failure, None)
    }

    fn ended(&mut self, failure: &Failure, response: Option<ResponseSummary>) -> Said {
        let after = self.after.take();
        if failure.fault == UpstreamFault::Stopping {
            // A flight that is dropped is settled as cancelled.
            drop(after);
        } else if let Some(After::Call(flight)) = after {
            flight.finish(Outcome {
                status: Status::Failure,
                error_code: Some(i64::from(frames::UPSTREAM_CODE)),
                reason: Some(failure.fault.label()),
                response,
            });
        }
        Said::Done(
            frames::upstream_failure(&self.names.id, failure),
            Some(i64::from(frames::UPSTREAM_CODE)),
        )
    }

    fn done(&mut self, reply: &Reply) -> Said {
        if let Err((failure, summary)) = reply::within_bound(&self.asker.server.gate, &reply.frame)
        {
            self.face
                .note(failure.fault.label(), failure.fault.sentence());
            return self.ended(&failure, Some(summary));
        }
        let payload = reply.payload();
        let code = reply
            .is_error
            .then(|| frames::error_code(payload).unwrap_or_default());
        let private = self.asker.era == Era::Modern && !reply.is_error;
        let changed = match self.after.take() {
            Some(After::Handshake) if !reply.is_error => {
                let asker = &self.asker;
                asker.server.screened(payload, &asker.session_id)
            }
            Some(After::List(list, first)) if !reply.is_error => match self.asker.server.listed(
                (list, first),
                (&reply.frame, payload),
                &self.asker.reader(),
            ) {
                Ok(changed) => changed,
                Err(message) => {
                    self.face.note("server_list_unreadable", message);
                    return self.failed(&UpstreamFault::Garbage.into());
                }
            },
            Some(After::Call(mut flight)) => {
                flight.reply_arrived();
                let outcome = reply::outcome(
                    &self.asker.server.gate,
                    &reply.frame,
                    reply.is_error,
                    payload,
                );
                flight.finish(outcome);
                None
            }
            Some(After::List(..) | After::Handshake | After::Plain) | None => None,
        };
        let changed = if private {
            splice::made_private(changed.as_deref().unwrap_or(payload)).or(changed)
        } else {
            changed
        };
        let mut edits = vec![(reply.id.clone(), self.names.id.as_bytes())];
        if let Some(changed) = &changed {
            edits.push((reply.payload.clone(), changed.as_bytes()));
        }
        Said::Done(splice::edited(&reply.frame, &mut edits), code)
    }
}

/// The revision in a request's header, where it is a published one of the Legacy era.
pub(super) fn legacy_revision(header: &str) -> Option<Revision> {
    Revision::parse(header).filter(|revision| revision.era() == Era::Legacy)
}
