//! Something that waits for a person: the client's own is asked where a rule says so, and a client
//! that wants to know hears that it still waits.

use std::sync::Arc;
use std::time::Duration;

use gate::approval::{Channel, Question};
use gate::facts::{Facts, Touched};
use gate::{Admission, InFlight, Reason, Refusal, Ticket};
use net::timers::kept;
use wire::id::IdKey;
use wire::jsonrpc::{member, string};
use wire::{Bounds, scan_request};

use super::client::{Asker, CallStep, Client, Work};
use super::form;
use super::input_required::only_client;
use super::order::Turn;
use super::read::After;
use super::run::{Run, Said, Stage};
use super::server::Server;
use super::under_way::{Stop, UnderWay, Why, withdrawn};
use crate::describe::{Context, InlineBound};
use crate::message::frames::Failure;
use crate::message::splice::Marks;
use crate::message::{frames, request};
use crate::upstream::{Exchange, Frame};

/// How often a client that asked for progress hears that its call still waits, in milliseconds.
const PROGRESS_MS: u64 = 5_000;

/// Something that waits for a person.
pub(super) struct Asking {
    ticket: Box<Ticket<Frame>>,
    marks: Marks,
    stop: Arc<Stop>,
    gone: Work,
    form: Option<Form>,
    news: Option<Waiting>,
    over: Option<End>,
}

/// How the wait for a person ended.
#[derive(Debug, Clone, Copy)]
pub(super) enum End {
    Settled,
    Over(Why),
}

/// Our question to the client. Dropped, it is not waited for any more.
struct Form {
    under_way: Arc<UnderWay>,
    id: IdKey,
    question: Option<Vec<u8>>,
    /// Told when the client has answered without an answer.
    unanswered: Arc<Stop>,
}

impl Drop for Form {
    fn drop(&mut self) {
        self.under_way.close_form(&self.id);
    }
}

/// What a client is told meanwhile.
struct Waiting {
    client: Arc<dyn Client>,
    /// Its token, as spelled.
    token: String,
    told: u32,
    mono_ns: Box<dyn Fn() -> u64 + Send>,
    tick: tokio::time::Interval,
}

impl Waiting {
    fn of(asker: &Asker, token: &str) -> Self {
        let gate = Arc::clone(&asker.server.gate);
        let every = Duration::from_millis(PROGRESS_MS);
        Self {
            client: Arc::clone(&asker.client),
            token: token.to_owned(),
            told: 0,
            mono_ns: Box::new(move || gate.mono_ns()),
            tick: kept(|| tokio::time::interval_at(tokio::time::Instant::now() + every, every)),
        }
    }

    /// The next thing to tell.
    async fn next(&mut self, deadline_ns: u64) -> Vec<u8> {
        loop {
            self.tick.tick().await;
            if !self.client.is_slow() {
                self.told += 1;
                let left_ns = deadline_ns.saturating_sub((self.mono_ns)());
                return frames::waiting(&self.token, self.told, left_ns / 1_000_000_000);
            }
        }
    }
}

/// Tells whoever reads standard error that a call waits, and how to answer.
fn tell(question: &Question) {
    tracing::info!(
        target: "approval",
        "{:?} on {} waits for approval for {} s; answer with: durward approvals allow {id} (or deny {id}, or watch)",
        question.tool_name.as_deref().unwrap_or(&question.mcp_method),
        question.backend_id,
        question.timeout_seconds,
        id = question.id,
    );
}

/// What there is for the client of something that waits.
pub(super) enum Next {
    Show(Vec<u8>),
    Over(End),
}

impl Asking {
    /// Begins to wait; a client's person is asked where they may answer and can be shown a form.
    /// `token` is the name under which the client wants to hear of progress.
    ///
    /// # Errors
    /// The refusal where nobody can answer.
    #[expect(
        clippy::result_large_err,
        reason = "a refusal ends its call, and there is one for each"
    )]
    pub fn of(
        asker: &Asker,
        ticket: Box<Ticket<Frame>>,
        marks: Marks,
        token: Option<&str>,
    ) -> Result<Self, Refusal> {
        let gate = &asker.server.gate;
        let asked = ticket.approvers().contains(&Channel::Client);
        let under_way = asker.under_way.as_ref();
        let under_way = under_way.filter(|_| asked && asker.elicits && !asker.is_modern());
        if under_way.is_none() && only_client(&ticket) && !ticket.is_settled() {
            return Err(gate.decline(*ticket, Reason::ApprovalUnreachable));
        }
        if asker.client.withdraws_questions() && !ticket.is_settled() {
            return Err(gate.decline(*ticket, Reason::ApprovalWithdrawn));
        }
        let question = gate.approvals().question(ticket.id());
        if let Some(question) = &question {
            tell(question);
            asker.client.on_step(CallStep::Asks(question));
        }
        let form = under_way.zip(question).map(|(under_way, question)| {
            let (id, frame) = form::question(&question);
            Form {
                unanswered: under_way.open_form(&id, &ticket),
                under_way: Arc::clone(under_way),
                id,
                question: Some(frame),
            }
        });
        Ok(Self {
            ticket,
            marks,
            stop: Arc::default(),
            gone: asker.client.gone(),
            form,
            news: token.map(|token| Waiting::of(asker, token)),
            over: None,
        })
    }

    /// As [`Asking::of`], ended by what is told already.
    pub fn stopped_by(mut self, stop: &Arc<Stop>) -> Self {
        self.stop = Arc::clone(stop);
        self
    }

    /// Told when it is no longer to wait.
    pub fn stop(&self) -> &Arc<Stop> {
        &self.stop
    }

    /// Gives back what waits.
    pub fn into_ticket(self) -> Box<Ticket<Frame>> {
        self.ticket
    }

    /// What there is for the client next. Nothing is lost where this is dropped on the way.
    pub async fn next(&mut self) -> Next {
        if let Some(question) = self.form.as_mut().and_then(|form| form.question.take()) {
            return Next::Show(question);
        }
        if let Some(over) = self.over {
            return Next::Over(over);
        }
        let Self {
            ticket,
            form,
            news,
            stop,
            gone,
            ..
        } = self;
        let deadline_ns = ticket.deadline_ns();
        let unanswered = async {
            match form {
                Some(form) => form.unanswered.heard().await,
                None => std::future::pending().await,
            }
        };
        let progress = async {
            match news {
                Some(news) => news.next(deadline_ns).await,
                None => std::future::pending().await,
            }
        };
        let over = tokio::select! {
            biased;
            why = stop.heard() => End::Over(why),
            () = ticket.settled() => End::Settled,
            why = unanswered => End::Over(why),
            () = gone => End::Over(Why::Refused(Reason::ApprovalWithdrawn)),
            frame = progress => return Next::Show(frame),
        };
        self.over = Some(over);
        match self.form.take() {
            Some(form) if form.under_way.close_form(&form.id) => {
                Next::Show(form::cancelled(&form.id))
            }
            Some(_) | None => Next::Over(over),
        }
    }
}

/// No thread is free to read a long call again.
struct NoThread;

/// What became of a call whose question has ended.
pub(super) enum WentOn {
    Sent(Exchange, InFlight, Option<Turn>),
    Unsent(Failure),
    /// The rules have changed, and they ask as well.
    Asks(Box<Ticket<Frame>>, Marks),
    Refused(Refusal),
    /// Its client has taken it back.
    Withdrawn,
}

impl Asker {
    /// Describes a request again; `inline` bounds the reading.
    fn describe_again(&self, frame: &[u8], inline: Option<&InlineBound>) -> Option<Facts> {
        let scan = scan_request(frame, &Bounds::default()).ok()?;
        let method = string(member(&scan.members, "method")?)?;
        self.with_context(|context| {
            let context = Context { inline, ..*context };
            request::described(&method, &scan, &context)
        })
    }

    /// Returns what is known now of a call that waited for a person, and whether that takes long to read: then a thread of
    /// the pool reads it.
    ///
    /// # Errors
    /// If there is no such thread for it.
    async fn known_now(&self, ticket: &Ticket<Frame>) -> Result<(Option<Facts>, bool), NoThread> {
        let Some(frame) = ticket.request() else {
            return Ok((None, false));
        };
        let inline = self.client.reading_pool().map(|_| InlineBound::default());
        let mut now = self.describe_again(&frame.bytes, inline.as_ref());
        let is_long = inline.is_some_and(|inline| inline.is_exceeded());
        if is_long {
            let prepare = || {
                let (asker, frame) = (self.clone(), frame.bytes.clone());
                move || asker.describe_again(&frame, None)
            };
            now = self.read_elsewhere(prepare).await.ok_or(NoThread)?;
        }
        if let Some(facts) = &mut now {
            self.complete(frame, facts);
        }
        Ok((now, is_long))
    }

    /// Adds to facts of a request what its server and its session know.
    fn complete(&self, frame: &Frame, facts: &mut Facts) {
        self.stated(frame.read.as_deref(), facts);
        Server::refresh_quarantine(facts, &self.shown);
    }

    /// Goes on with a call whose question has ended, once no other call can change where it leads.
    pub(super) async fn resumed(
        &self,
        ticket: Box<Ticket<Frame>>,
    ) -> (Admission<Frame>, Option<Turn>) {
        match self.known_in_turn(&ticket).await {
            Ok((Some(now), turn)) => (self.server.gate.resume(ticket, now), turn),
            // It was described before, so it can be again.
            Ok((None, turn)) => (Admission::Refused(self.undecidable(*ticket)), turn),
            Err(NoThread) => {
                let refusal = self.server.gate.decline(*ticket, Reason::ReadingQueueFull);
                (Admission::Refused(refusal), None)
            }
        }
    }

    /// Returns what is known of a call that waited for a person once no other call can change where it leads, and its turn.
    async fn known_in_turn(
        &self,
        ticket: &Ticket<Frame>,
    ) -> Result<(Option<Facts>, Option<Turn>), NoThread> {
        let seen = self.settled();
        let (mut now, is_long) = self.known_now(ticket).await?;
        let taken = now.as_ref().and_then(|now| self.take_turn(now, seen));
        let mut turn = None;
        if let Some((mut taken, is_free)) = taken {
            if !is_free {
                let before = now.as_ref().and_then(Touched::of);
                let read = || {
                    if let (false, Some(frame)) = (is_long, ticket.request()) {
                        now = self.describe_again(&frame.bytes, None);
                        now.iter_mut().for_each(|facts| self.complete(frame, facts));
                    }
                    now.as_ref().and_then(Touched::of)
                };
                let mut holds = taken.wait(read).await;
                if is_long {
                    // Read again without a serving thread; if it leads elsewhere by now, it is unsettled.
                    (now, _) = self.known_now(ticket).await?;
                    holds &= now.as_ref().and_then(Touched::of) == before;
                }
                if let Some(now) = &mut now {
                    now.unsettled = !holds;
                }
            }
            turn = Some(taken);
        }
        Ok((now, turn))
    }

    /// Sends a call whose question has ended, where it may be sent.
    async fn go_on(
        self,
        ticket: Box<Ticket<Frame>>,
        marks: Marks,
        timeout_ns: u64,
        stop: Arc<Stop>,
    ) -> WentOn {
        let (admission, turn) = tokio::select! {
            biased;
            resumed = self.resumed(ticket) => resumed,
            // Dropped, the ticket records that the call was withdrawn.
            () = withdrawn(&stop) => return WentOn::Withdrawn,
        };
        match admission {
            Admission::Permit(permit) => {
                self.client.on_step(CallStep::Permitted(permit.op()));
                // The server's time begins now.
                let deadline_ns = self.server.gate.mono_ns().saturating_add(timeout_ns);
                match self.dispatch(permit, &marks, deadline_ns).await {
                    Ok((exchange, flight)) => WentOn::Sent(exchange, flight, turn),
                    Err(failure) => WentOn::Unsent(failure),
                }
            }
            Admission::Pending(ticket) => WentOn::Asks(ticket, marks),
            Admission::Refused(refusal) => WentOn::Refused(refusal),
        }
    }
}

impl Run {
    /// What there is for the client of a call that waits; none where it has been sent.
    pub(super) async fn next_asked(&mut self) -> Option<Said> {
        let Stage::Asking(asking) = &mut self.stage else {
            return None;
        };
        let over = match asking.next().await {
            Next::Show(frame) => return Some(Said::Emit(frame)),
            Next::Over(over) => over,
        };
        let Stage::Asking(asking) = std::mem::replace(&mut self.stage, Stage::Over) else {
            return None;
        };
        let Asking {
            ticket,
            marks,
            stop,
            ..
        } = *asking;
        match over {
            End::Settled => {
                let asker = self.asker.clone();
                let going_on = asker.go_on(ticket, marks, self.names.timeout_ns, stop);
                // Kept, so that nothing is lost where whoever waits for this looks elsewhere meanwhile.
                self.stage = Stage::GoingOn(Box::pin(going_on));
                None
            }
            // Dropped, the ticket records that the call was withdrawn.
            End::Over(Why::Withdrawn) => Some(Said::Gone),
            End::Over(Why::Refused(reason)) => {
                let refusal = self.asker.server.gate.decline(*ticket, reason);
                let answer = self.asker.refused(&self.names, &refusal);
                Some(Said::Done(answer, None))
            }
        }
    }

    /// What there is for the client of a call whose question has ended; none where it has been sent.
    pub(super) fn went_on(&mut self, went_on: WentOn) -> Option<Said> {
        self.stage = Stage::Over;
        let refusal = match went_on {
            WentOn::Sent(exchange, flight, turn) => {
                self.sent(exchange, After::Call(flight), turn);
                return None;
            }
            WentOn::Unsent(failure) => return Some(self.failed(&failure)),
            WentOn::Withdrawn => return Some(Said::Gone),
            WentOn::Asks(ticket, marks) => {
                let token = self.names.token.as_deref();
                match Asking::of(&self.asker, ticket, marks, token) {
                    Ok(asking) => {
                        if let Some(guard) = &self.guard {
                            guard.waits(asking.stop());
                        }
                        self.stage = Stage::Asking(Box::new(asking));
                        return None;
                    }
                    Err(refusal) => refusal,
                }
            }
            WentOn::Refused(refusal) => refusal,
        };
        let answer = self.asker.refused(&self.names, &refusal);
        Some(Said::Done(answer, None))
    }
}
