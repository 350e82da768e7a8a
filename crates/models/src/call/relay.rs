//! A stream on its way from a provider to a caller.
//!
//! Each event is looked at and passed on as it is. What was used is told by the provider, or counted by what
//! went by. The call is settled once: at the end, or where the caller has gone and this is dropped.

use std::borrow::Cow;
use std::fmt;
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use bytes::Bytes;
use dialects::{Endpoint, ErrorText, StreamEvent, Tokens, error_event, read_of};
use gate::journal::{Micros, ResponseSummary, Status, Usage};
use gate::revocation::Revoked;
use gate::{Attempt, Gate, InFlight, Outcome, Spent};
use http::HeaderMap;
use net::http::server::Parts;
use state::Reservation;
use tokio::time::{Instant, Sleep, sleep_until, timeout_at};
use toolkit::breaker::{BreakerPass, Verdict};
use wire::SseParser;

use super::attempt::Wasted;
use super::note::Follow;
use super::reader::Reader;
use super::whole::BadReply;
use super::{Terms, earlier, usage};
use crate::budget::settle;
use crate::catalogue::{Answering, Target};
use crate::inspect::{self, Answers, Held, Whose};
use crate::prices::Price;
use crate::provider::{Fault, Remedy, Reply, ReplyBody, Trouble};
use crate::request::ModelRequest;
use crate::signatures::CallerSignatures;
use crate::tally::Tally;

/// The status under which a call is recorded whose caller has gone.
pub(super) const GONE: i64 = 499;

/// How many events that come at once are looked at before the first of them go out: where a provider begins and gives up in one
/// breath, another target can still be tried.
const FIRST_EVENTS: usize = 8;

/// Most bytes that are read behind the end of a stream.
const DRAIN_BYTES_MAX: usize = 64 * 1024;
/// How long they are waited for, in milliseconds.
const DRAIN_MS_MAX: u64 = 1_000;

/// Comment in place of a provider's own.
const COMMENT: &[u8] = b": waiting\n\n";

/// A stream under way.
pub(crate) struct Relay {
    gate: Arc<Gate>,
    tally: Arc<Tally>,
    endpoint: Endpoint,
    wants_usage: bool,
    /// What the model reads, where the provider does not tell it, in tokens.
    read: u64,
    /// Whether its tokens count: those of a provider that makes calls of its own are counted there.
    is_counted: bool,
    request_id: String,
    /// Where the signatures of its thoughts are kept.
    signatures: Option<CallerSignatures>,
    /// The provider's headers.
    pub headers: HeaderMap,
    /// Absent once the stream has ended.
    body: Option<Box<dyn ReplyBody>>,
    parser: SseParser,
    watch: Reader,
    /// How far the first events have got: they go out before what came with them is looked at.
    first: First,
    /// What is looked for in it, and held back for that.
    held: Option<Held>,
    /// What the provider said when it gave up before anything was passed on.
    failure: Option<Bytes>,
    /// The checkers are asked about it.
    asking: Option<Pin<Box<dyn Future<Output = Answers> + Send>>>,
    /// What is ready to be passed on.
    ready: Vec<u8>,
    /// How the stream has ended: well, or with some trouble.
    end: Option<Result<(), Trouble>>,
    /// The provider has said itself that it ends badly.
    has_said: bool,
    sent_bytes: u64,
    stall_ms_max: u64,
    timer: Pin<Box<Sleep>>,
    /// What it means that the timer has fired.
    late: Trouble,
    over_at: Instant,
    /// Until the call is settled.
    open: Option<Open>,
    settlement: Option<Settlement>,
}

/// How the call of a stream was settled.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Settlement {
    pub end: Result<(), Trouble>,
    pub usage: Usage,
}

/// How far the first events of a stream have got.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum First {
    /// None was ready yet.
    Awaited,
    /// They are ready, and more may have come with them.
    Ready,
    /// They were handed to the connection, which holds them until there is nothing more at once.
    Handed,
    /// The connection has written them.
    Written,
}

/// What is settled at the end.
struct Open {
    flight: InFlight,
    pass: BreakerPass,
    revoked: Revoked,
    reservation: Option<Reservation>,
    price: Option<Price>,
    note: Option<Follow>,
    /// What earlier replies to the call have used.
    wasted: Wasted,
    target: Target,
    began: Instant,
    /// The target counts as busy until then.
    _answering: Answering,
}

impl Relay {
    /// Waits for the first event of a reply, until when another target could still be tried.
    pub async fn begin(
        terms: &Terms,
        reply: Reply,
        (provider, flight): (&str, &InFlight),
        until: Instant,
    ) -> Result<Box<Self>, (Spent<ModelRequest>, BadReply)> {
        let Reply {
            spent,
            headers,
            format,
            left_out: _,
            key,
            body,
        } = reply;
        let request = spent.request();
        let over_at = Instant::now() + Duration::from_millis(terms.stream_ms_max);
        let over_at = terms.deadline.map_or(over_at, |end| end.min(over_at));
        let (gate, bytes_max) = (&terms.gate, terms.reply_bytes_max);
        let whose = Whose::of(flight);
        let held = Held::of(gate, provider, (request.endpoint(), bytes_max), whose);
        let mut relay = Box::new(Self {
            gate: Arc::clone(&terms.gate),
            tally: Arc::clone(&terms.tally),
            endpoint: request.endpoint(),
            wants_usage: request.wants_usage(),
            read: read_of(request.endpoint(), request.body()),
            is_counted: true,
            request_id: String::new(),
            signatures: request.caller_signatures().cloned(),
            headers,
            body: Some(body),
            parser: SseParser::new(terms.reply_bytes_max),
            watch: Reader::new(terms, request, format),
            first: First::Awaited,
            held,
            failure: None,
            asking: None,
            ready: Vec::new(),
            end: None,
            has_said: false,
            sent_bytes: 0,
            stall_ms_max: terms.stall_ms_max,
            timer: Box::pin(sleep_until(over_at)),
            late: Trouble::Endless,
            over_at,
            open: None,
            settlement: None,
        });
        relay.wind();
        let first = timeout_at(until, poll_fn(|cx| relay.poll_begun(cx)));
        let trouble = match first.await {
            Err(_) => Trouble::TooSlow,
            Ok(()) => match relay.end {
                Some(Err(trouble)) => trouble,
                Some(Ok(())) | None => return Ok(relay),
            },
        };
        let words = format.is_none().then(|| relay.endpoint.dialect());
        let said = relay.failure.take().filter(|_| trouble == Trouble::Failed);
        let fault = match said {
            Some(said) => Fault::in_reply(&relay.headers, said).for_caller(key.as_ref(), words),
            None => Fault::of(trouble, Remedy::Again),
        };
        let tokens = relay.watch.used();
        Err((spent, BadReply { fault, tokens }))
    }

    /// From here on the stream settles its call.
    pub fn take_over(
        &mut self,
        flight: InFlight,
        (pass, revoked): (BreakerPass, Revoked),
        (reservation, price): (Option<Reservation>, Option<Price>),
        (target, began): (Target, Instant),
        (answering, note, wasted): (Answering, Option<Follow>, Wasted),
    ) {
        self.open = Some(Open {
            note,
            wasted,
            flight,
            pass,
            revoked,
            reservation,
            price,
            target,
            began,
            _answering: answering,
        });
    }

    /// The id by which the stream's own errors name the request.
    pub fn set_id(&mut self, id: &str) {
        id.clone_into(&mut self.request_id);
    }

    /// Counts no tokens: the provider's own calls are counted.
    pub fn count_elsewhere(&mut self) {
        self.is_counted = false;
    }

    /// Returns how the call was settled; `None` while the stream goes on.
    pub fn settlement(&self) -> Option<Settlement> {
        self.settlement
    }

    /// Sets the timer for the next byte.
    fn wind(&mut self) {
        let stalled = Instant::now() + Duration::from_millis(self.stall_ms_max);
        let (at, late) = earlier(
            (stalled, Trouble::Stalled),
            (self.over_at, Trouble::Endless),
        );
        self.timer.as_mut().reset(at);
        self.late = late;
    }

    /// Ready when the provider has said something, or the stream has ended.
    fn poll_begun(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        self.poll_until(cx, |relay| {
            let is_waiting = relay.held.as_ref().is_some_and(Held::is_waiting);
            is_waiting || !relay.ready.is_empty()
        })
    }

    /// Ready when something can be passed on, or the stream has ended.
    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        self.poll_until(cx, |relay| !relay.ready.is_empty())
    }

    fn poll_until(&mut self, cx: &mut Context<'_>, is_done: impl Fn(&Self) -> bool) -> Poll<()> {
        while !is_done(self) && self.end.is_none() {
            if self.first != First::Awaited && self.look() {
                continue;
            }
            let Some(body) = &mut self.body else {
                self.end = Some(Err(Trouble::Cut));
                break;
            };
            match body.poll_chunk(cx) {
                // A provider that never pauses never lets the timer be looked at.
                Poll::Ready(Ok(Some(_))) if Instant::now() >= self.over_at => {
                    self.end = Some(Err(Trouble::Endless));
                }
                // A comment of an agent keeps the caller's connection open too; its parts are whole events.
                Poll::Ready(Ok(Some(bytes))) if !self.is_counted && bytes.starts_with(b":") => {
                    self.ready.extend_from_slice(COMMENT);
                    self.wind();
                }
                Poll::Ready(Ok(Some(bytes))) => {
                    self.parser.push(&bytes);
                    self.look();
                    self.wind();
                }
                Poll::Ready(Ok(None)) => self.ended_early(),
                Poll::Ready(Err(trouble)) => self.end = Some(Err(trouble)),
                Poll::Pending => {
                    std::task::ready!(self.timer.as_mut().poll(cx));
                    self.end = Some(Err(self.late));
                }
            }
        }
        Poll::Ready(())
    }

    /// The body has ended without its mark. Where the model has said why it stopped, only that is missing.
    fn ended_early(&mut self) {
        self.end = Some(if self.watch.has_finished() {
            let mut mark = Vec::new();
            self.watch.end(&mut mark);
            self.pass(&mark)
        } else {
            Err(Trouble::Cut)
        });
    }

    /// Makes ready what goes to the caller of these events.
    fn pass(&mut self, events: &[u8]) -> Result<(), Trouble> {
        match &mut self.held {
            Some(held) => held.pass(events, &mut self.ready),
            None => {
                self.ready.extend_from_slice(events);
                Ok(())
            }
        }
    }

    /// Ready when the checkers have said what they have to say about a stream that has ended.
    fn poll_checked(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let Some(held) = &mut self.held else {
            return Poll::Ready(());
        };
        if self.asking.is_none() {
            let Some(check) = held.check() else {
                return Poll::Ready(());
            };
            self.asking = Some(Box::pin(check));
        }
        if let Some(asking) = &mut self.asking {
            let answers = std::task::ready!(asking.as_mut().poll(cx));
            self.asking = None;
            if let Err(trouble) = held.checked(answers) {
                self.end = Some(Err(trouble));
            }
        }
        Poll::Ready(())
    }

    /// The stream ends: what is held back goes before its end, whichever that is.
    fn let_go(&mut self) {
        if let Some(held) = &mut self.held
            && self.end != Some(Err(Trouble::Withheld))
            && let Err(trouble) = held.end(&mut self.ready)
        {
            self.end = Some(Err(trouble));
            self.has_said = false;
        }
    }

    /// Looks at the events that have come whole, and makes ready what is passed on. Whether there was any.
    fn look(&mut self) -> bool {
        let mut seen = 0;
        while self.end.is_none() {
            if self.first == First::Awaited && seen >= FIRST_EVENTS && !self.ready.is_empty() {
                break;
            }
            let event = match self.parser.next() {
                Ok(Some(event)) => event,
                Ok(None) => break,
                Err(_) => {
                    self.end = Some(Err(Trouble::TooLong));
                    break;
                }
            };
            seen += 1;
            let wants_usage = self.wants_usage;
            let (said, passed) = match &mut self.held {
                None => (self.watch.see(&event, wants_usage, &mut self.ready), Ok(())),
                Some(held) => {
                    let mut events = Vec::new();
                    let said = self.watch.see(&event, wants_usage, &mut events);
                    (said, held.pass(&events, &mut self.ready))
                }
            };
            if let Err(trouble) = passed {
                self.end = Some(Err(trouble));
                break;
            }
            match said {
                StreamEvent::Malformed => self.end = Some(Err(Trouble::Malformed)),
                StreamEvent::Failed => {
                    if self.open.is_none() {
                        self.failure = Some(Bytes::copy_from_slice(event.data));
                    }
                    self.end = Some(Err(Trouble::Failed));
                }
                StreamEvent::End => self.end = Some(Ok(())),
                StreamEvent::UsageOnly | StreamEvent::Part => {}
            }
            self.has_said |= said == StreamEvent::Failed && self.watch.passes_on();
        }
        if self.first == First::Awaited && !self.ready.is_empty() {
            self.first = First::Ready;
        }
        seen > 0
    }

    /// Says in the dialect's own words that the stream ends here, where it does not end well.
    fn say_trouble(&mut self, trouble: Trouble) {
        let failure = match (self.watch.failure(), &mut self.held) {
            (Some(said), Some(held)) => held.sentence(said).map(Cow::Owned),
            (said, _) => said.map(Cow::Borrowed),
        };
        let error = ErrorText {
            message: failure.as_deref().unwrap_or(trouble.sentence()),
            kind: "api_error",
            code: trouble.label(),
            param: None,
            request_id: &self.request_id,
        };
        self.ready
            .extend_from_slice(&error_event(self.endpoint, &error));
    }

    fn settle(&mut self, end: Result<(), Trouble>) {
        if let Some(body) = self.body.take().filter(|_| end.is_ok()) {
            drain(body);
        }
        let Some(Open {
            mut flight,
            note,
            wasted,
            pass,
            revoked: _,
            reservation,
            price,
            target,
            began,
            _answering,
        }) = self.open.take()
        else {
            return;
        };
        let peer = target.provider().peer();
        if let Some(own) = &self.signatures {
            own.store.keep(&own.caller, self.watch.take_signed());
        }
        flight.reply_arrived();
        if let Some(finding) = self.held.as_ref().and_then(Held::finding) {
            inspect::note(&mut flight, finding);
        }
        let tokens = self.used();
        let cost = price.map(|price| price.of(tokens));
        self.tally.used(peer.name(), tokens);
        self.tally.attempt(peer.name(), end.err());
        let (tokens, cost) = wasted.with(tokens, cost);
        settle(reservation, tokens, cost);
        let usage = usage(tokens, cost);
        self.settlement = Some(Settlement { end, usage });
        flight.used(usage);
        let (status, verdict) = match end {
            Ok(()) => (Status::Success, Verdict::Success),
            Err(trouble @ (Trouble::ClientGone | Trouble::Revoked)) => {
                (Status::Cancelled, trouble.verdict())
            }
            Err(trouble) => (Status::Failure, trouble.verdict()),
        };
        pass.settle(verdict, self.gate.mono_ns());
        let reason = end.err().map(Into::into);
        let nanos = u64::try_from(began.elapsed().as_nanos()).unwrap_or(u64::MAX);
        flight.attempt(Attempt {
            peer: peer.clone(),
            model: Some(target.shared_model()),
            status,
            reason,
            duration: Micros::from_nanos(nanos),
        });
        flight.finish(Outcome {
            status,
            error_code: (status == Status::Cancelled).then_some(GONE),
            reason,
            response: Some(ResponseSummary {
                size_bytes: self.sent_bytes,
                body_hash: None,
            }),
        });
        drop(note);
    }

    /// What was used until now.
    fn used(&self) -> Tokens {
        if !self.is_counted {
            return Tokens::default();
        }
        self.watch.used().or_counted(self.read, || 0)
    }

    /// Notes what was used before it is passed on, for whoever has it has used it.
    fn take_note(&mut self) {
        let tokens = self.used();
        if let Some(open) = &mut self.open
            && let Some(note) = &mut open.note
        {
            let cost = open.price.map(|price| price.of(tokens));
            let (tokens, cost) = open.wasted.with(tokens, cost);
            note.used(tokens, cost);
        }
    }
}

/// Reads what is left of a stream that has said all, so that its connection serves the next request. What does not end soon is
/// closed.
fn drain(mut body: Box<dyn ReplyBody>) {
    let mut left = DRAIN_BYTES_MAX;
    let mut poll_end = move |cx: &mut Context<'_>| {
        loop {
            match std::task::ready!(body.poll_chunk(cx)) {
                Ok(Some(more)) if more.len() <= left => left -= more.len(),
                _ => return Poll::Ready(()),
            }
        }
    };
    // The end has mostly come with the last event.
    if poll_end(&mut Context::from_waker(Waker::noop())).is_ready() {
        return;
    }
    let until = Instant::now() + Duration::from_millis(DRAIN_MS_MAX);
    drop(tokio::spawn(async move {
        let _ = timeout_at(until, poll_fn(poll_end)).await;
    }));
}

impl Parts for Relay {
    fn poll_part(&mut self, cx: &mut Context<'_>) -> Poll<Option<Bytes>> {
        let Some(open) = &mut self.open else {
            return Poll::Ready(None);
        };
        let is_going_on = self.end.is_none() || self.asking.is_some();
        if Pin::new(&mut open.revoked).poll(cx).is_ready() && is_going_on {
            self.end = Some(Err(Trouble::Revoked));
        }
        if self.first == First::Handed {
            // A connection writes when nothing more is ready.
            self.first = First::Written;
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        std::task::ready!(self.poll_ready(cx));
        if self.end.is_some() {
            // For a caller whose key is gone nothing is checked, and nothing that was not checked goes on.
            if self.end != Some(Err(Trouble::Revoked)) {
                std::task::ready!(self.poll_checked(cx));
            }
            self.let_go();
        }
        if let (Some(Err(trouble)), false) = (self.end, self.has_said) {
            self.say_trouble(trouble);
        }
        let part = Bytes::from(std::mem::take(&mut self.ready));
        self.sent_bytes = self
            .sent_bytes
            .saturating_add(u64::try_from(part.len()).unwrap_or(u64::MAX));
        match self.end {
            Some(end) => self.settle(end),
            None => self.take_note(),
        }
        if self.first == First::Ready {
            self.first = First::Handed;
        }
        Poll::Ready(Some(part))
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        self.settle(Err(Trouble::ClientGone));
    }
}

impl fmt::Debug for Relay {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Relay")
            .field("endpoint", &self.endpoint)
            .finish_non_exhaustive()
    }
}
