//! Calls that are answered from the cache.

use bytes::Bytes;
use gate::effect::Effect;
use gate::journal::{ResponseSummary, Status};
use gate::{Caller, Outcome, Permit};
use http::HeaderMap;
use state::Reservation;
use state::cache::CacheEntry;

use super::{Served, Terms, Trail, Unserved, Whole, describe};
use crate::budget::settle;
use crate::cache::{NOTHING, Source};
use crate::catalogue::Leg;
use crate::inspect;
use crate::request::ModelRequest;

/// Whether the rules let a call go to a further target without asking anybody.
pub(super) fn may_go_to(terms: &Terms, leg: &Leg, caller: &Caller, request: &ModelRequest) -> bool {
    let facts = describe(request, &leg.target, caller, &terms.prices);
    let facts = terms.gate.labelled(caller, facts);
    let world = terms.gate.world();
    facts.quarantine.is_none() && world.policy.judge(&facts).verdict().effect == Effect::Allow
}

/// Returns the cached reply to a request, if the rules let this caller ask the target that it came from.
pub(crate) async fn find_cached<'l>(
    terms: &Terms,
    legs: &'l [Leg],
    caller: &Caller,
    request: &ModelRequest,
) -> Option<(CacheEntry, &'l Leg)> {
    let (cache, key) = terms.cache.as_ref().zip(request.cache_key())?;
    let found = cache.find(key, terms.gate.wall_ms()).await?;
    let at = legs
        .iter()
        .position(|leg| leg.target.name() == found.source)?;
    let leg = legs.get(at)?;
    // The first one was judged when the call was admitted.
    (at == 0 || may_go_to(terms, leg, caller, request)).then_some((found, leg))
}

/// Answers a call with a cached reply, and settles it.
///
/// # Errors
/// Where a rule of `inspect:` does not let the reply pass.
pub(crate) async fn answer(
    terms: &Terms,
    (found, leg): (CacheEntry, &Leg),
    permit: Permit<ModelRequest>,
    reservation: Option<Reservation>,
) -> Result<Served, Box<Unserved>> {
    let mut flight = permit.answer_locally();
    let trail = Trail {
        op: Some(flight.op()),
        target: found.source,
        is_cached: true,
        remaining: reservation
            .as_ref()
            .map(Reservation::remaining)
            .unwrap_or_default(),
        cost: terms.prices.find(&leg.target).map(|_| 0),
        ..Trail::default()
    };
    settle(reservation, NOTHING, Some(0));
    let provider = leg.target.provider().peer().name();
    let body: Bytes = match inspect::reply(&terms.gate, provider, found.value, &mut flight).await {
        Ok(body) => body,
        Err(fault) => {
            flight.finish(Outcome {
                status: Status::Failure,
                error_code: Some(i64::from(fault.trouble.status().as_u16())),
                reason: Some(fault.trouble.into()),
                response: None,
            });
            return Err(Box::new(Unserved { fault, trail }));
        }
    };
    flight.finish(Outcome {
        status: Status::Success,
        error_code: None,
        reason: Some(Source::Cache.into()),
        response: Some(ResponseSummary {
            size_bytes: u64::try_from(body.len()).unwrap_or(u64::MAX),
            body_hash: Some(terms.gate.digest(&body)),
        }),
    });
    let headers = HeaderMap::new();
    Ok(Served::Whole(Whole { body, headers }, trail))
}
