//! One request under way, from being sent or asked about to its answer.

use std::ops::Range;
use std::pin::Pin;
use std::sync::Arc;

use gate::inspect::Way;
use gate::journal::{ResponseSummary, Status};
use gate::labels::Labels;
use gate::{Ended, Outcome};

use toolkit::server::Found;

use super::basis::Basis;
use super::client::{Asker, CallStep};
use super::listens::Listens;
use super::order::Turn;
use super::questions::{Judging, Late, Question};
use super::read::{After, Names};
use super::under_way::CallGuard;
use super::wait::{Asking, WentOn};
use crate::message::bridged;
use crate::message::era;
use crate::message::frames::{self, Failure, UpstreamFault};
use crate::message::method::Treatment;
use crate::message::reply::{self, Reply};
use crate::message::{request, splice};
use crate::notes::{Note, Noted};
use crate::upstream::{Exchange, Incoming, KeptAs, Means};

/// What a call under way has for its client.
#[derive(Debug)]
pub(crate) enum Said {
    /// A message before the answer.
    Emit(Vec<u8>),
    /// The answer, and its code where it is an error.
    Done(Vec<u8>, Option<i64>),
    /// There is none: the client has cancelled.
    Gone,
}

/// A request under way. Dropped before its end, it is cancelled at the server and settled as such.
pub(crate) struct Run {
    pub(super) asker: Box<Asker>,
    /// Dropped before the stage: once a call has left its place at the server, it is settled.
    pub(super) after: Option<After>,
    pub(super) stage: Stage,
    pub(super) names: Names,
    pub(super) guard: Option<CallGuard>,
    /// What a person let pass while the call went on; made with the server's first question.
    late: Option<Late>,
    /// Its place among the calls that are not settled.
    turn: Option<Turn>,
    /// What its server has answered is still to be recorded.
    over: Option<Ended>,
    /// What it is to hear of besides what its server says.
    listens: Option<Listens>,
    /// What its list rests on, where that can be compared later.
    basis: Option<Basis>,
}

/// What there is next where there is something to wait for; else never ready.
async fn next_of<'s, S, F: Future<Output = Vec<u8>>>(
    source: &'s mut Option<S>,
    next: impl FnOnce(&'s mut S) -> F,
) -> Vec<u8> {
    match source {
        Some(source) => next(source).await,
        None => std::future::pending().await,
    }
}

/// How far it has come.
pub(super) enum Stage {
    /// A person is asked.
    Asking(Box<Asking>),
    /// The person has answered, and it goes on.
    GoingOn(Pin<Box<dyn Future<Output = WentOn> + Send>>),
    Sent(Exchange),
    /// Its answer asks the client for something, which is judged.
    Judging(Box<Judging>),
    /// There is nothing more.
    Over,
}

impl Run {
    pub(super) fn new(
        asker: Box<Asker>,
        stage: Stage,
        names: Names,
        guard: Option<CallGuard>,
    ) -> Self {
        Self {
            asker,
            stage,
            after: None,
            names,
            guard,
            late: None,
            turn: None,
            over: None,
            listens: None,
            basis: None,
        }
    }

    /// What is still to be recorded once the answer has left.
    pub fn take_over(&mut self) -> Option<Ended> {
        self.over.take()
    }

    /// What the list rests on that was its answer, where that can be compared later.
    pub fn take_basis(&mut self) -> Option<Basis> {
        self.basis.take()
    }

    /// What there is for the client next. Nothing after [`Said::Done`] or [`Said::Gone`].
    pub async fn next(&mut self) -> Said {
        loop {
            let exchange = match &mut self.stage {
                Stage::Sent(exchange) => exchange,
                Stage::Judging(judging) => {
                    if let Err(why) = judging.settled().await {
                        return self.no_longer_judged(why);
                    }
                    match self.judged_again() {
                        Ok(reply) => return self.done(reply),
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
                Stage::GoingOn(going_on) => {
                    let went_on = going_on.await;
                    if let Some(said) = self.went_on(went_on) {
                        return said;
                    }
                    continue;
                }
                Stage::Over => return Said::Gone,
            };
            let incoming = tokio::select! {
                biased;
                frame = next_of(&mut self.late, Late::next) => return Said::Emit(frame),
                frame = next_of(&mut self.listens, |l| l.next(&self.names.id)) => return Said::Emit(frame),
                incoming = exchange.next() => incoming,
            };
            if let Some(said) = self.came(incoming).await {
                return said;
            }
        }
    }

    /// Takes what has come from the server.
    async fn came(&mut self, incoming: Incoming) -> Option<Said> {
        match incoming {
            Incoming::Response(reply) => {
                self.is_settled();
                let mut reply = match self.inspected(reply) {
                    Ok(reply) => reply,
                    Err(said) => return Some(said),
                };
                if let Some(inspection) = self.asker.checks(Way::Result) {
                    reply = match Box::pin(self.checked(&inspection, reply)).await {
                        Ok(reply) => reply,
                        Err(said) => return Some(said),
                    };
                }
                match self.judged(reply).await {
                    Ok(reply) => Some(self.done(reply)),
                    Err(said) => said,
                }
            }
            Incoming::Fault(failure) => {
                // What has ended changes nothing any more.
                let means = self.asker.server.pool.means();
                if failure.fault == UpstreamFault::Died && matches!(means, Means::Command(_)) {
                    self.is_settled();
                }
                Some(self.failed(&failure))
            }
            Incoming::Cancelled => {
                self.after = None;
                Some(Said::Gone)
            }
            Incoming::Found(found) => self.found(found),
            Incoming::Notification(mut news) => {
                if let Some(After::Call(flight)) = &self.after {
                    flight.came_back(Labels::default());
                }
                let frame = self.asker.news(&mut news)?;
                Some(Said::Emit(self.respelled(frame, news.tie)))
            }
            Incoming::Request { id, method, frame } => {
                let Stage::Sent(exchange) = &self.stage else {
                    return None;
                };
                let link = Arc::clone(exchange.link());
                let question = Question { id, method, frame };
                let client = &self.asker.client;
                let late = self.late.get_or_insert_with(|| Late::new(client)).sender();
                let passed = Box::pin(self.asker.pass_on(&link, question, Some(late))).await;
                passed.map(Said::Emit)
            }
        }
    }

    /// Judges a call again, now that its server has found out what it is about.
    fn found(&mut self, found: Found) -> Option<Said> {
        let Some(After::Call(flight)) = &mut self.after else {
            return None;
        };
        match found.judged_by(flight) {
            Ok(()) => None,
            Err(refusal) => {
                self.after = None;
                let refused = self.asker.refused(&self.names, &refusal);
                Some(Said::Done(refused, None))
            }
        }
    }

    /// What was to be done with the answer.
    pub(super) fn take_after(&mut self) -> Option<After> {
        self.after.take()
    }

    /// A message of its server as its client is told it.
    pub fn told(&self, frame: Vec<u8>) -> Vec<u8> {
        self.asker.client.told(frame)
    }

    /// Whether it lasts for as long as its client stays.
    pub fn is_endless(&self) -> bool {
        self.names.timeout_ns == u64::MAX
    }

    fn respelled(&self, frame: Vec<u8>, tie: Option<(Range<usize>, bool)>) -> Vec<u8> {
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

    /// Its server has nothing more to do with it.
    fn is_settled(&mut self) {
        if let Some(turn) = self.turn.take() {
            turn.settled();
        }
    }

    /// It has been sent.
    pub(super) fn sent(&mut self, exchange: Exchange, after: After, turn: Option<Turn>) {
        self.turn = turn;
        if let Some(turn) = &mut self.turn {
            turn.sent();
        }
        if let Some(guard) = &self.guard {
            guard.sent(exchange.link(), exchange.number(), self.is_endless());
        }
        self.stage = Stage::Sent(exchange);
        self.after = Some(after);
        let methods = std::mem::take(&mut self.names.listens);
        if !methods.is_empty() {
            self.listens = Some(Listens::new(&self.asker.server.gate, methods));
        }
    }

    pub(super) fn failed(&mut self, failure: &Failure) -> Said {
        self.ended(failure, None)
    }

    fn ended(&mut self, failure: &Failure, response: Option<ResponseSummary>) -> Said {
        let after = self.after.take();
        self.asker.client.on_step(CallStep::Failed(failure));
        if failure.fault == UpstreamFault::Stopping {
            // A flight that is dropped is settled as cancelled.
            drop(after);
        } else if let Some(After::Call(flight)) = after {
            flight.finish(Outcome {
                status: Status::Failure,
                error_code: Some(i64::from(frames::UPSTREAM_CODE)),
                reason: Some(failure.fault.into()),
                response,
            });
        }
        Said::Done(
            frames::upstream_failure(&self.names.id, failure),
            Some(i64::from(frames::UPSTREAM_CODE)),
        )
    }

    fn done(&mut self, reply: Reply) -> Said {
        let within = reply::within_bound(&self.asker.server.gate, &reply.frame);
        if let Err((failure, summary)) = within {
            let fault = failure.fault;
            self.asker.client.note(fault.into());
            return self.ended(&failure, Some(summary));
        }
        let payload = reply.payload();
        let after = self.after.take();
        if reply.is_error {
            return self.refused_by_server(reply, after);
        }
        if let Some(lasting) = self.names.lasting.take() {
            self.asker.slot.lasts(lasting);
        }
        let changed = match after {
            Some(After::Treat(treatment)) => self.treated(treatment, payload),
            Some(After::List(list, first)) => {
                let page = (list, first);
                match self.asker.listed(page, &reply.frame, payload) {
                    Ok((changed, outcome)) => {
                        self.basis = outcome.and_then(|outcome| outcome.of(self.kept_as()));
                        changed
                    }
                    Err(message) => {
                        self.asker
                            .client
                            .note(Note::ServerListUnreadable.with(message));
                        return self.failed(&UpstreamFault::Garbage.into());
                    }
                }
            }
            Some(After::Call(mut flight)) => {
                flight.reply_arrived();
                let gate = &self.asker.server.gate;
                let outcome = reply::outcome(gate, &reply);
                self.over = Some(flight.ended(outcome));
                None
            }
            None => None,
        };
        let changed = self.dressed(payload, changed);
        Said::Done(reply.respelled(&self.names.id, changed.as_deref()), None)
    }

    /// A result as its client's revision has it; `None` where nothing of it was or has to be changed.
    fn dressed(&self, payload: &str, mut changed: Option<String>) -> Option<String> {
        if self.asker.is_bridged() {
            changed = bridged::completed(changed.as_deref().unwrap_or(payload)).or(changed);
        }
        if self.asker.is_modern() && self.asker.client.is_over_http() {
            changed = splice::made_private(changed.as_deref().unwrap_or(payload)).or(changed);
        }
        changed
    }

    fn kept_as(&mut self) -> Option<KeptAs> {
        match &mut self.stage {
            Stage::Sent(exchange) => exchange.take_kept_as(),
            _ => None,
        }
    }

    /// The server has answered with an error.
    fn refused_by_server(&mut self, reply: Reply, after: Option<After>) -> Said {
        let payload = reply.payload();
        let code = frames::error_code(payload).unwrap_or_default();
        let asked = match &after {
            Some(After::Treat(Treatment::Initialize)) => era::Asked::Initialize,
            Some(After::Treat(Treatment::Discover)) => era::Asked::Discover,
            _ => era::Asked::Other,
        };
        if let Some(After::Call(mut flight)) = after {
            flight.reply_arrived();
            let gate = &self.asker.server.gate;
            let outcome = reply::outcome(gate, &reply);
            self.over = Some(flight.ended(outcome));
        } else {
            // Its message is text of the server, as a list is.
            self.asker.label_list();
        }
        if let Some(era) = self.asker.era
            && era::is_mismatch(era, asked, payload)
        {
            let fault = UpstreamFault::EraMismatch;
            self.asker.client.note(Noted::of(fault, era::sentence(era)));
            return Said::Done(era::refusal(&self.names.id, era, payload), Some(code));
        }
        let changed = match self.asker.is_bridged() {
            true => bridged::error(payload),
            false => None,
        };
        let code = match &changed {
            Some(changed) => frames::error_code(changed).unwrap_or(code),
            None => code,
        };
        Said::Done(
            reply.respelled(&self.names.id, changed.as_deref()),
            Some(code),
        )
    }

    /// What a handshake's result becomes; `None` where nothing has to be changed.
    fn treated(&self, treatment: Treatment, payload: &str) -> Option<String> {
        let asker = &self.asker;
        match treatment {
            Treatment::Plain => None,
            Treatment::Initialize | Treatment::Discover => {
                if let Some(under_way) = &asker.under_way
                    && treatment == Treatment::Initialize
                {
                    let revision = request::version_of(payload);
                    under_way.agreed_on(revision);
                    if let Stage::Sent(exchange) = &self.stage {
                        exchange.link().agreed_on(revision);
                    }
                    under_way.lists().learn_capabilities(payload);
                }
                let caller = &asker.caller.subject;
                asker
                    .server
                    .screen_handshake(payload, caller, &asker.session_id)
            }
        }
    }
}
