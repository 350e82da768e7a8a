//! A request judged and sent, or kept until a person has answered.

use std::sync::Arc;

use gate::facts::Facts;
use gate::inspect::{Inspected, Way};
use gate::journal::Status;
use gate::{Admission, Call, ControlKind, Origin, Outcome, Pass, Permit, Reason, Ticket};

use super::client::{Asker, CallStep};
use super::input_required::{Return, take_answer};
use super::order::Turn;
use super::read::{After, Asked, Names, Step};
use super::run::{Run, Stage};
use super::under_way::CallGuard;
use super::unlisted::Listed;
use super::wait::Asking;
use crate::message::frames::{self, Failure, UpstreamFault};
use crate::message::splice::Marks;
use crate::upstream::{Exchange, Frame, Lasting, Page, RESOURCES_MAX, Recalled, Unsent, spared};

/// What became of a request at once.
pub(crate) enum Begun {
    Running(Box<Run>),
    Answered(Vec<u8>),
    /// Answered so, because as many servers run as may: the client may ask again.
    Full(Vec<u8>),
    /// The two sides cannot understand each other.
    EraMismatch,
    /// The headers of a Modern request do not repeat its arguments: why.
    HeaderMismatch(String),
}

/// What is needed to send a call that may be sent.
struct Called {
    marks: Marks,
    deadline_ns: u64,
    names: Names,
    guard: Option<CallGuard>,
    turn: Option<Turn>,
    /// The page of a list that it asks for, where its server need not be asked anew.
    page: Option<Page>,
}

impl Asker {
    /// Judges and sends a request.
    pub async fn begin(
        self: Box<Self>,
        mut frame: Inspected<Vec<u8>>,
        mut asked: Box<Asked>,
        guard: Option<CallGuard>,
    ) -> Begun {
        let mut is_withdrawn = false;
        if let Some(inspection) = self.checks(Way::Request) {
            let checked = self.checked(&inspection, &mut frame, &mut asked, guard.as_ref());
            match Box::pin(checked).await {
                Ok(withdrawn) => is_withdrawn = withdrawn,
                Err(stop) => return stop,
            }
        }
        let mut has_waited = false;
        if asked.is_long && !is_withdrawn {
            has_waited = true;
            let read = Box::pin(self.read_whole(&frame, &mut asked, true));
            let (read, is_taken_back) = self.before_judging(guard.as_ref(), read).await;
            is_withdrawn = is_taken_back || read.is_none();
        }
        let mut listed = match &asked.step {
            _ if is_withdrawn => Listed::Withdrawn,
            Step::Unlisted(..) => {
                let listed = self.listed_first(&frame, &mut asked, guard.as_ref());
                match Box::pin(listed).await {
                    Ok(listed) => listed,
                    Err(stop) => return stop,
                }
            }
            _ if has_waited => Listed::Waited,
            _ => Listed::Known,
        };
        let turn = match self.first_turn(&asked) {
            None => None,
            Some((turn, true)) => Some(turn),
            Some((mut turn, false)) => {
                let waited = self.wait_for_others(&mut turn, &frame, &mut asked, guard.as_ref());
                listed = listed.waited(Box::pin(waited).await);
                Some(turn)
            }
        };
        let (called, step, read) = self.called(*asked, &listed, guard, turn);
        let server = Arc::clone(&self.server);
        let carried = |bytes| server.carried(bytes, read);
        match step {
            Step::Refuse(answer) => Begun::Answered(answer),
            Step::Pass(kind, after, facts, origin) => {
                let about = (kind, &*facts, &*origin);
                let frame = carried(frame.into_message());
                self.pass(about, frame, after, called).await
            }
            Step::Judge(mut facts, origin) | Step::Unlisted(mut facts, origin) => {
                if let Some(found) = self.hide_name(&mut facts) {
                    frame.join(&found);
                }
                let request = frame.map(|bytes| {
                    let mut request = carried(bytes);
                    request.note_judged(&facts);
                    request
                });
                let call = Call {
                    caller: self.caller.clone(),
                    facts,
                    origin,
                    targets: self.server.peer().into(),
                    request,
                };
                self.judge(call, &listed, called).await
            }
            Step::Return(back, facts, origin) => {
                let about = (&*facts, &*origin, &listed);
                Box::pin(self.returned(&back, about, frame.message(), called)).await
            }
        }
    }

    /// What is needed to send a request, apart from what becomes of it and what it says to a built-in server.
    fn called(
        &self,
        asked: Asked,
        listed: &Listed,
        guard: Option<CallGuard>,
        turn: Option<Turn>,
    ) -> (Box<Called>, Step, Option<Box<toolkit::mcp::Message>>) {
        let deadline_ns = match listed {
            Listed::Known => asked.received_ns.saturating_add(asked.names.timeout_ns),
            // The server's time begins now.
            _ => self.deadline_ns(&asked.names),
        };
        let called = Box::new(Called {
            marks: asked.marks,
            deadline_ns,
            names: asked.names,
            guard,
            turn,
            page: asked.page,
        });
        (called, asked.step, asked.read)
    }

    /// Takes a call out of the lot that its client comes back for.
    async fn returned(
        self: Box<Self>,
        back: &Return,
        (facts, origin, listed): (&Facts, &Origin, &Listed),
        frame: &[u8],
        called: Box<Called>,
    ) -> Begun {
        if let Listed::Withdrawn = listed {
            // The call stays in the lot until its time is over: its client has taken back that it came.
            let run = Run::new(self, Stage::Over, called.names, called.guard);
            return Begun::Running(Box::new(run));
        }
        match self.unpark(&back.state, frame) {
            Ok((ticket, marks)) => {
                let called = Box::new(Called { marks, ..*called });
                self.came_back(ticket, back, called).await
            }
            Err(stray) => Begun::Answered(self.strayed(stray, &called.names, facts, origin)),
        }
    }

    /// Sends what is the protocol's own.
    async fn pass(
        self: Box<Self>,
        (kind, facts, origin): (ControlKind, &Facts, &Origin),
        frame: Frame,
        after: After,
        called: Box<Called>,
    ) -> Begun {
        let to = self.server.peer();
        let admitted = self
            .server
            .gate
            .admit_control(kind, facts, origin, &to, frame);
        match admitted {
            Ok(pass) => {
                let sent = match self.recalled(called.page.as_ref()) {
                    // What it may ask for is answered: the pass is not spent.
                    Recalled::Kept(exchange) => Ok(exchange),
                    recalled => {
                        let sent = self.dispatch(pass, &called.marks, called.deadline_ns);
                        sent.await.map(|(mut exchange, ())| {
                            if let Recalled::Ask(asking) = recalled {
                                exchange.keeps(asking);
                            }
                            exchange
                        })
                    }
                };
                let sent = sent.map(|exchange| (exchange, after));
                self.begun(sent, called)
            }
            Err(refusal) => Begun::Answered(self.refused(&called.names, &refusal)),
        }
    }

    /// What is known of a page without asking its server.
    fn recalled(&self, page: Option<&Page>) -> Recalled {
        let link = || self.server.pool.running_in(&self.slot);
        match page.and_then(|page| Some((page, link()?))) {
            Some((page, link)) => link.recall(page),
            None => Recalled::Never,
        }
    }

    async fn judge(
        self: Box<Self>,
        call: Call<Frame>,
        listed: &Listed,
        called: Box<Called>,
    ) -> Begun {
        let admission = self.server.gate.admit(call).await;
        if let Some(instead) = self.not_listed(listed, &admission, &called.names.id) {
            return instead;
        }
        if let Listed::Withdrawn = listed {
            // Nobody waits for it: what may pass is given up, and recorded so.
            drop(admission);
            let run = Run::new(self, Stage::Over, called.names, called.guard);
            return Begun::Running(Box::new(run));
        }
        self.decided(admission, called).await
    }

    /// Goes on with a call that its client was asked about: as its person says, else as whoever else
    /// may answer does.
    async fn came_back(
        self: Box<Self>,
        ticket: Box<Ticket<Frame>>,
        back: &Return,
        mut called: Box<Called>,
    ) -> Begun {
        let gate = &self.server.gate;
        let admission = match take_answer(gate, &self.caller.subject, &ticket, back.answer.as_ref())
        {
            Some(reason) => Admission::Refused(gate.decline(*ticket, reason)),
            None if ticket.is_settled() => {
                let (admission, turn) = self.resumed(ticket).await;
                called.turn = turn;
                admission
            }
            None => return self.wait(ticket, called),
        };
        // The server's time begins now.
        called.deadline_ns = self.deadline_ns(&called.names);
        self.decided(admission, called).await
    }

    /// Sends what may be sent; what waits for a person is kept, or asked about at the client.
    async fn decided(self: Box<Self>, admission: Admission<Frame>, called: Box<Called>) -> Begun {
        match admission {
            Admission::Permit(permit) => {
                self.client.on_step(CallStep::Permitted(permit.op()));
                let permit = match self.shared(permit, &called.names) {
                    Ok(permit) => permit,
                    Err(answer) => return Begun::Answered(answer),
                };
                let sent = self
                    .dispatch(permit, &called.marks, called.deadline_ns)
                    .await;
                let sent = sent.map(|(exchange, flight)| (exchange, After::Call(flight)));
                self.begun(sent, called)
            }
            Admission::Pending(ticket) => {
                match self.park(ticket, &called.marks, &called.names.id) {
                    Ok(answer) => Begun::Answered(answer),
                    Err(ticket) => self.wait(ticket, called),
                }
            }
            Admission::Refused(refusal) => Begun::Answered(self.refused(&called.names, &refusal)),
        }
    }

    /// A subscription at a server that several clients share, as one of this client's; the answer where the server has nothing to
    /// do with it.
    fn shared(&self, permit: Permit<Frame>, names: &Names) -> Result<Permit<Frame>, Vec<u8>> {
        let subscribers = &self.slot.subscribers;
        let (session, id) = (&self.session_id, &names.id);
        match &names.lasting {
            Some(Lasting::Subscribed(uri, _)) if self.slot.is_shared() => {
                if subscribers.add(session, uri) {
                    return Ok(permit);
                }
                // Dropped, it is recorded as aborted.
                drop(permit);
                let message = format!(
                    "a client subscribes to at most {RESOURCES_MAX} resources of a server that it shares; unsubscribe from others"
                );
                Err(frames::error(id, -32603, &message, None))
            }
            Some(Lasting::Unsubscribed(uri)) if self.slot.is_shared() => {
                if !subscribers.remove(session, uri) {
                    return Ok(permit);
                }
                // Others want to hear of it still.
                permit.answer_locally().finish(Outcome {
                    status: Status::Success,
                    ..Outcome::default()
                });
                Err(format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":{{}}}}").into_bytes())
            }
            _ => Ok(permit),
        }
    }

    /// Keeps a call until its question has ended.
    fn wait(self: Box<Self>, ticket: Box<Ticket<Frame>>, called: Box<Called>) -> Begun {
        let Called {
            marks,
            names,
            guard,
            ..
        } = *called;
        match Asking::of(&self, ticket, marks, names.token.as_deref()) {
            Ok(asking) => {
                if let Some(guard) = &guard {
                    guard.waits(asking.stop());
                }
                let stage = Stage::Asking(Box::new(asking));
                Begun::Running(Box::new(Run::new(self, stage, names, guard)))
            }
            Err(refusal) => Begun::Answered(self.refused(&names, &refusal)),
        }
    }

    fn begun(
        self: Box<Self>,
        sent: Result<(Exchange, After), Failure>,
        called: Box<Called>,
    ) -> Begun {
        let Called {
            names, guard, turn, ..
        } = *called;
        match sent {
            Ok((exchange, after)) => {
                let mut run = Box::new(Run::new(self, Stage::Over, names, guard));
                run.sent(exchange, after, turn);
                Begun::Running(run)
            }
            Err(failure) => self.unsent(&names.id, &failure),
        }
    }

    /// The answer to a request that found no way to its server.
    pub(super) fn unsent(&self, id: &str, failure: &Failure) -> Begun {
        if failure.fault == UpstreamFault::EraMismatch {
            return Begun::EraMismatch;
        }
        self.client.note(failure.fault.into());
        self.client.on_step(CallStep::Failed(failure));
        let answer = frames::upstream_failure(id, failure);
        match failure.fault {
            UpstreamFault::NoPlace => Begun::Full(answer),
            _ => Begun::Answered(answer),
        }
    }

    /// Sends to the running server, or to a new one where that has ended before anything left.
    pub(super) async fn dispatch<P: Pass<Request = Frame>>(
        &self,
        pass: P,
        marks: &Marks,
        deadline_ns: u64,
    ) -> Result<(Exchange, P::Open), Failure> {
        const TRIES_MAX: usize = 3;
        let mut pass = pass;
        for _ in 0..TRIES_MAX {
            let link = match self.server.pool.running_in(&self.slot) {
                Some(link) => link,
                None => Box::pin(self.server.pool.link(&self.slot)).await?,
            };
            link.has_room().await?;
            if self.caller.is_revoked() {
                // Its key has gone while a server was waited for.
                return Err(UpstreamFault::Unreachable.into());
            }
            match link.request(pass, marks, deadline_ns) {
                Ok(sent) => return Ok(sent),
                Err(Unsent::Elsewhere(_)) => return Err(UpstreamFault::Unreachable.into()),
                Err(Unsent::Busy) => return Err(UpstreamFault::Busy.into()),
                Err(Unsent::Spared(rejected)) => return Err(spared(rejected)),
                Err(Unsent::Ended(unspent)) => pass = unspent,
            }
        }
        Err(UpstreamFault::Died.into())
    }

    /// When the server's time is over, if it begins now.
    pub(super) fn deadline_ns(&self, names: &Names) -> u64 {
        let now_ns = self.server.gate.about_ns();
        now_ns.saturating_add(names.timeout_ns)
    }

    /// Ends what waits although nobody may be asked about it.
    pub(super) fn undecidable(&self, ticket: Ticket<Frame>) -> gate::Refusal {
        self.server.gate.decline(ticket, Reason::Undecidable)
    }
}
