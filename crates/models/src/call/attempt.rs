//! Trying one target after the other, under one deadline, until one begins to answer.

use std::time::Duration;

use bytes::Bytes;
use dialects::Tokens;
use gate::journal::{Micros, Status};
use gate::{Attempt, Caller, InFlight, Origin, Outcome, Pass as _, Permit, Spent};
use http::header::CONTENT_TYPE;
use state::Reservation;
use tokio::time::{Instant, sleep};
use toolkit::breaker::{BreakerPass, Verdict};

use super::cached::may_go_to;
use super::note::Follow;
use super::relay::GONE;
use super::whole::{BadReply, ReplyContext, Whole, read};
use super::{Relay, Terms, Trail, Unserved, usage};
use crate::budget::{settle, spent};
use crate::catalogue::{Answering, Leg, Route};
use crate::inspect;
use crate::provider::{Address, Fault, Remedy, Reply, Sent, Trouble};
use crate::request::ModelRequest;

/// Most attempts of one call, over all its targets and keys.
const ATTEMPTS_MAX: u32 = 32;
/// How long is waited before the same target is tried again, in milliseconds.
const AGAIN_MS: u64 = 250;

/// A call that a target serves.
pub(crate) enum Served {
    /// Its whole reply.
    Whole(Whole, Trail),
    /// Its stream, from the first event on.
    Stream(Box<Relay>, Trail),
}

/// What goes from attempt to attempt.
struct Tries<'t> {
    terms: &'t Terms,
    caller: &'t Caller,
    origin: &'t Origin,
    flight: InFlight,
    trail: Trail,
    /// Given back where no target serves the call.
    reservation: Option<Reservation>,
    until: Instant,
    /// By which the next start settles the call, where this process is killed.
    note: Option<Follow>,
    /// What replies have used that went to nobody.
    wasted: Wasted,
}

/// What replies have used that went to nobody, and what that cost.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Wasted {
    pub tokens: Tokens,
    pub cost: Option<u64>,
}

impl Wasted {
    /// Returns the use of a call: its reply's, and what was wasted before.
    pub fn with(self, tokens: Tokens, cost: Option<u64>) -> (Tokens, Option<u64>) {
        let sum = match (self.cost, cost) {
            (None, None) => None,
            (one, two) => Some(one.unwrap_or(0).saturating_add(two.unwrap_or(0))),
        };
        (self.tokens.plus(tokens), sum)
    }
}

/// An attempt that came to nothing, with what the next one needs.
type Failed<'t> = Box<(Tries<'t>, Spent<ModelRequest>, Fault)>;

/// Sends a call to its targets in their order.
///
/// # Errors
/// The last fault, where no target served it; the call is settled then.
pub(crate) async fn serve(
    terms: &Terms,
    route: &Route,
    legs: &[Leg],
    (caller, origin): (&Caller, &Origin),
    permit: Permit<ModelRequest>,
    reservation: Option<Reservation>,
) -> Result<Served, Unserved> {
    let until = Instant::now() + Duration::from_millis(route.deadline_ms());
    let until = terms.deadline.map_or(until, |end| end.min(until));
    let nowhere = || Unserved {
        fault: Fault::of(Trouble::Denied, Remedy::Nothing),
        trail: Trail::default(),
    };
    let first = legs.first().ok_or_else(nowhere)?;
    let spent = permit.spend(first.target.provider().peer());
    let (spent, mut flight) = spent.map_err(|_| nowhere())?;
    flight.if_dropped(Some(GONE), Trouble::ClientGone.into());
    let op = Some(flight.op());
    let revoked = caller.revocation.revoked();
    let tries = Tries {
        terms,
        caller,
        origin,
        flight,
        trail: Trail {
            op,
            remaining: reservation
                .as_ref()
                .map(Reservation::remaining)
                .unwrap_or_default(),
            ..Trail::default()
        },
        reservation,
        until,
        note: None,
        wasted: Wasted::default(),
    };
    tokio::select! {
        biased;
        // The call is recorded as one that its client has left.
        () = revoked => Err(Unserved {
            fault: Fault::of(Trouble::Revoked, Remedy::Nothing),
            trail: Trail {
                op,
                ..Trail::default()
            },
        }),
        served = tries.all(legs, spent) => served,
    }
}

impl<'t> Tries<'t> {
    async fn all(
        mut self,
        legs: &[Leg],
        mut spent: Spent<ModelRequest>,
    ) -> Result<Served, Unserved> {
        let mut last = Fault::of(Trouble::Spared, Remedy::NextTarget);
        let has_overflow = legs.iter().any(|leg| leg.is_overflow);
        'legs: for (at, leg) in legs.iter().enumerate() {
            // Those that read more are for what the others find too long, and then the others are not.
            let is_too_long = last.trouble == Trouble::ContextLength;
            if leg.is_overflow != (is_too_long && has_overflow) {
                continue 'legs;
            }
            self.trail.target = leg.target.name();
            let mut again = true;
            loop {
                if Instant::now() >= self.until {
                    last = Fault::of(Trouble::TooSlow, Remedy::Nothing);
                    break 'legs;
                }
                if self.trail.attempts >= ATTEMPTS_MAX {
                    break 'legs;
                }
                // The first target was judged when the call was admitted.
                if at > 0 && !may_go_to(self.terms, leg, self.caller, spent.request()) {
                    self.note(leg, Trouble::Denied, Instant::now());
                    continue 'legs;
                }
                let Ok(moved) = self.flight.redirect(spent, leg.target.provider().peer()) else {
                    return Err(self.give_up(Fault::of(Trouble::Denied, Remedy::Nothing)));
                };
                let now_ns = self.terms.gate.mono_ns();
                let pass = match leg.breaker.admit(now_ns) {
                    Ok(pass) => pass,
                    Err(rejected) => {
                        self.trail.spared += 1;
                        self.note(leg, Trouble::Spared, Instant::now());
                        if last.trouble == Trouble::Spared {
                            last.retry_after_ms = Some(rejected.retry_after_ms);
                        }
                        spent = moved;
                        continue 'legs;
                    }
                };
                let (tries, back, fault) = match self.one(leg, moved, pass).await {
                    Ok(served) => return Ok(served),
                    Err(failed) => *failed,
                };
                (self, spent) = (tries, back);
                let remedy = fault.remedy;
                last = fault;
                match remedy {
                    Remedy::OtherKey => {}
                    Remedy::Again if again => {
                        again = false;
                        let wait = Instant::now() + Duration::from_millis(AGAIN_MS);
                        if legs.len() == 1 || wait < self.until {
                            sleep(Duration::from_millis(AGAIN_MS)).await;
                        }
                    }
                    Remedy::Again | Remedy::NextTarget => continue 'legs,
                    Remedy::Nothing => break 'legs,
                }
            }
        }
        Err(self.give_up(last))
    }

    /// Remembers a reply, where replies are.
    fn remember(&self, request: &ModelRequest, leg: &Leg, body: &Bytes) {
        let Some((cache, key)) = self.terms.cache.as_ref().zip(request.cache_key()) else {
            return;
        };
        let now_ms = self.terms.gate.wall_ms();
        cache.put(*key, request.endpoint(), body, leg.target.name(), now_ms);
    }

    fn note(&mut self, leg: &Leg, trouble: Trouble, since: Instant) {
        let status = Status::Failure;
        self.noted(leg, status, Some(trouble), since);
    }

    fn noted(&mut self, leg: &Leg, status: Status, trouble: Option<Trouble>, since: Instant) {
        let nanos = since.elapsed().as_nanos();
        let peer = leg.target.provider().peer();
        self.terms.tally.attempt(peer.name(), trouble);
        self.flight.attempt(Attempt {
            peer: peer.clone(),
            model: Some(leg.target.shared_model()),
            status,
            reason: trouble.map(Into::into),
            duration: Micros::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX)),
        });
    }

    /// One attempt at one target.
    async fn one(
        mut self,
        leg: &Leg,
        spent: Spent<ModelRequest>,
        pass: BreakerPass,
    ) -> Result<Served, Failed<'t>> {
        let began = Instant::now();
        let answering = leg.load.begin();
        self.trail.attempts += 1;
        let provider = leg.target.provider().peer().name();
        let held = self.reservation.as_ref();
        // The note of an earlier attempt goes once there is that of this one.
        self.note = Follow::begin(self.terms, &self.flight, provider, held);
        let to = Address {
            model: leg.target.model(),
            until: self.until,
            caller: self.caller,
            origin: self.origin,
        };
        let (spent, fault) = match leg.target.provider().send(spent, to).await {
            Sent::Unserved(spent, fault) => {
                let provider = leg.target.provider().peer().name();
                let gate = &self.terms.gate;
                (
                    spent,
                    inspect::fault(gate, provider, fault, &mut self.flight).await,
                )
            }
            Sent::Reply(mut reply) if reply.spent.request().streams() => {
                self.trail.left_out = std::mem::take(&mut reply.left_out);
                match Relay::begin(self.terms, reply, (provider, &self.flight), self.until).await {
                    Ok(relay) => {
                        return Ok(self.streamed(leg, relay, (pass, began, answering)));
                    }
                    Err((spent, bad)) => (spent, self.bad(leg, bad).await),
                }
            }
            Sent::Reply(Reply {
                spent,
                headers,
                format,
                left_out,
                key,
                mut body,
            }) => {
                self.trail.left_out = left_out;
                let request = spent.request();
                let context = ReplyContext {
                    headers: &headers,
                    format,
                    key: key.as_ref(),
                };
                match read(self.terms, request, context, body.as_mut(), self.until).await {
                    Ok(mut told) => {
                        if leg.target.provider().makes_calls() {
                            told.tokens = Tokens::default();
                        }
                        self.trail.left_out.extend(told.left_out);
                        leg.load.took(began.elapsed());
                        self.remember(request, leg, &told.body);
                        match self.inspected(leg, told.body, told.tokens).await {
                            Ok(body) => {
                                self.noted(leg, Status::Success, None, began);
                                pass.settle(Verdict::Success, self.terms.gate.mono_ns());
                                let mut headers = headers;
                                if !spent.request().endpoint().is_passed_through() {
                                    headers.remove(CONTENT_TYPE);
                                }
                                return Ok(self.whole(Whole { body, headers }, told.tokens));
                            }
                            Err(fault) => (spent, fault),
                        }
                    }
                    Err(bad) => (spent, self.bad(leg, bad).await),
                }
            }
        };
        self.note(leg, fault.trouble, began);
        pass.settle(fault.trouble.verdict(), self.terms.gate.mono_ns());
        Err(Box::new((self, spent, fault)))
    }

    /// Counts what a reply has used that goes to nobody, and returns its fault.
    async fn bad(&mut self, leg: &Leg, bad: BadReply) -> Fault {
        let terms = self.terms;
        let provider = leg.target.provider().peer().name();
        terms.tally.used(provider, bad.tokens);
        let cost = terms.prices.cost(&leg.target, bad.tokens);
        (self.wasted.tokens, self.wasted.cost) = self.wasted.with(bad.tokens, cost);
        inspect::fault(&terms.gate, provider, bad.fault, &mut self.flight).await
    }

    /// The whole reply settles the call.
    fn whole(mut self, whole: Whole, tokens: Tokens) -> Served {
        let used = self.wasted.with(tokens, self.trail.cost);
        self.trail.usage = usage(used.0, used.1);
        if let Some(reservation) = &self.reservation {
            self.trail.remaining = reservation.remaining_after(spent(used.0, used.1));
        }
        let whole = whole.of(self.terms, self.flight, self.reservation, used);
        drop(self.note);
        Served::Whole(whole, self.trail)
    }

    /// From here on the stream settles the call.
    fn streamed(
        self,
        leg: &Leg,
        mut relay: Box<Relay>,
        (pass, began, answering): (BreakerPass, Instant, Answering),
    ) -> Served {
        leg.load.took(began.elapsed());
        if leg.target.provider().makes_calls() {
            relay.count_elsewhere();
        }
        let price = self.terms.prices.find(&leg.target).copied();
        relay.take_over(
            self.flight,
            (pass, self.caller.revocation.revoked()),
            (self.reservation, price),
            (leg.target.clone(), began),
            (answering, self.note, self.wasted),
        );
        Served::Stream(relay, self.trail)
    }

    /// A whole reply as the rules of `inspect:` leave it. What it has used is used, also where it may not pass.
    async fn inspected(&mut self, leg: &Leg, body: Bytes, tokens: Tokens) -> Result<Bytes, Fault> {
        let terms = self.terms;
        let provider = leg.target.provider().peer().name();
        terms.tally.used(provider, tokens);
        self.trail.cost = terms.prices.cost(&leg.target, tokens);
        let body = inspect::reply(&terms.gate, provider, body, &mut self.flight).await;
        if body.is_err() {
            let (tokens, cost) = self.wasted.with(tokens, self.trail.cost);
            settle(self.reservation.take(), tokens, cost);
            self.flight.used(usage(tokens, cost));
        }
        body
    }

    fn give_up(mut self, fault: Fault) -> Unserved {
        let (tokens, cost) = self.wasted.with(Tokens::default(), None);
        self.trail.usage = usage(tokens, cost);
        if tokens != Tokens::default() && self.reservation.is_some() {
            settle(self.reservation.take(), tokens, cost);
        }
        if tokens != Tokens::default() {
            self.flight.used(usage(tokens, cost));
        }
        self.flight.finish(Outcome {
            status: Status::Failure,
            error_code: Some(i64::from(fault.trouble.status().as_u16())),
            reason: Some(fault.trouble.into()),
            response: None,
        });
        Unserved {
            fault,
            trail: self.trail,
        }
    }
}
