//! Judging a call, and waiting for a person where one has to be asked.

use gate::facts::Facts;
use gate::inspect::Inspected;
use gate::{
    Admission, Call, Caller, Gate, Origin, PeerId, Permit, Reason, Refusal, Targets, Transport,
};
use http::header::USER_AGENT;
use http::{HeaderMap, HeaderName};
use net::http::server::single;
use toolkit::Trace;
use toolkit::door::ApprovalWish;

use super::{Terms, describe};
use crate::catalogue::{Leg, Route, Target};
use crate::request::ModelRequest;

/// How much of a caller's header is written down, in bytes.
const HEADER_BYTES_MAX: usize = 128;

/// A call that may be sent, and the targets that it may be sent to, in their order.
#[derive(Debug)]
pub(crate) struct Admitted {
    pub permit: Permit<ModelRequest>,
    pub caller: Caller,
    pub legs: Vec<Leg>,
}

/// Judges a call by the first of its targets that the rules do not refuse; where they refuse all, by the
/// first, and so it is recorded. One that waits for a person ends with its caller's key.
pub(crate) async fn admit(
    terms: &Terms,
    caller: Caller,
    route: &Route,
    request: Inspected<ModelRequest>,
    (origin, approval): (Origin, ApprovalWish),
) -> Result<Admitted, Refusal> {
    let (gate, prices) = (&terms.gate, &terms.prices);
    let turn = route.turn(|target| prices.estimate(request.message(), target));
    let turn = turn.into_iter();
    let turn = turn.filter(|leg| may_ask(&caller, &leg.target)).collect();
    let legs = eligible(gate, turn, |leg| {
        let facts = describe(request.message(), &leg.target, &caller, prices);
        gate.labelled(&caller, facts)
    });
    let Some(first) = legs.first() else {
        return Err(nowhere());
    };
    let facts = describe(request.message(), &first.target, &caller, prices);
    let peers: Vec<PeerId> = legs
        .iter()
        .map(|leg| leg.target.provider().peer().clone())
        .collect();
    let call = Call {
        caller: caller.clone(),
        facts: Box::new(facts.clone()),
        origin: Box::new(origin),
        targets: Targets::any(peers),
        request,
    };
    let mut admission = gate.admit(call).await;
    loop {
        match admission {
            Admission::Permit(permit) => {
                return Ok(Admitted {
                    permit,
                    caller,
                    legs,
                });
            }
            Admission::Refused(refusal) => return Err(refusal),
            Admission::Pending(ticket) if approval == ApprovalWish::Withdraw => {
                return Err(gate.decline(*ticket, Reason::ApprovalWithdrawn));
            }
            Admission::Pending(ticket) => {
                tokio::select! {
                    // Its deadline settles it at the latest.
                    () = ticket.settled() => {}
                    () = caller.revocation.revoked() => {
                        return Err(gate.decline(*ticket, Reason::ApprovalWithdrawn));
                    }
                }
                admission = gate.resume(ticket, facts.clone());
            }
        }
    }
}

/// Whether the caller's key is good for this target. The tokens of accounts are for all models; the servers that they
/// are good for come from the configuration.
pub(crate) fn may_ask(caller: &Caller, target: &Target) -> bool {
    caller.token.is_some() || caller.may_reach(target.provider().peer().name())
}

/// Leaves out the targets that are certainly refused, as a list leaves them out.
fn eligible(gate: &Gate, mut legs: Vec<Leg>, facts: impl Fn(&Leg) -> Facts) -> Vec<Leg> {
    let good: Vec<bool> = legs
        .iter()
        .map(|leg| gate.may_be_listed(&facts(leg)))
        .collect();
    let is_good = |(leg, good): (&Leg, &bool)| *good && !leg.is_overflow;
    if legs.iter().zip(&good).any(is_good) {
        let mut good = good.into_iter();
        legs.retain(|_| good.next() == Some(true));
    }
    legs
}

/// A route has a target, so this is never met.
fn nowhere() -> Refusal {
    Refusal {
        op: None,
        reason: gate::Reason::NoRule,
        decision: gate::effect::Effect::Deny,
        final_rule: String::new(),
        matched_rules: Vec::new(),
        matched_rules_omitted: 0,
        tool_name: None,
        path: None,
        retry_after_ms: None,
        said: None,
    }
}

/// Where a call came from.
pub(crate) fn origin(id: &str, headers: &HeaderMap, received_ns: u64) -> Origin {
    let program = bounded(headers, &USER_AGENT);
    Origin {
        request_id: id.to_owned(),
        run: Trace::of(headers).run,
        client_id: (!program.is_empty()).then(|| program.into()),
        transport: Transport::Http,
        received_ns,
        ..Origin::default()
    }
}

/// A header that is written down, as far as it may be long; empty where it cannot be used.
fn bounded<'h>(headers: &'h HeaderMap, name: &HeaderName) -> &'h str {
    let text = single(headers, name).ok().flatten().unwrap_or_default();
    text.get(..HEADER_BYTES_MAX).unwrap_or(text)
}
