//! Counts the tokens of a request where no target can count them: an estimate, which is marked as one.

use dialects::{Endpoint, read_of};
use gate::Outcome;
use gate::Permit;
use gate::journal::{ResponseSummary, Status};
use http::{HeaderMap, HeaderName, HeaderValue};
use state::Reservation;

use super::{Terms, Trail, Whole};
use crate::budget::settle;
use crate::cache::NOTHING;
use crate::catalogue::Leg;
use crate::request::ModelRequest;

/// The header that names what of a reply is an estimate.
pub(crate) const ESTIMATED: HeaderName = HeaderName::from_static("x-durward-estimated");

/// Whether a request asks for a count that none of its targets makes.
pub(crate) fn is_estimated(legs: &[Leg], request: &ModelRequest) -> bool {
    let counts = |leg: &Leg| {
        let offer = leg.target.provider().offer_of(leg.target.model());
        offer.endpoints.contains(&Endpoint::CountTokens)
    };
    request.endpoint() == Endpoint::CountTokens && !legs.iter().any(counts)
}

/// Answers with an estimate of a quarter of a token for each byte, and settles the call. No provider is asked.
pub(crate) fn estimate(
    terms: &Terms,
    legs: &[Leg],
    permit: Permit<ModelRequest>,
    reservation: Option<Reservation>,
) -> (Whole, Trail) {
    let tokens = read_of(Endpoint::Messages, permit.request().body());
    let flight = permit.answer_locally();
    let trail = Trail {
        op: Some(flight.op()),
        target: legs
            .first()
            .map(|leg| leg.target.name())
            .unwrap_or_default(),
        ..Trail::default()
    };
    settle(reservation, NOTHING, None);
    let body = format!("{{\"input_tokens\":{tokens}}}");
    flight.finish(Outcome {
        status: Status::Success,
        response: Some(ResponseSummary {
            size_bytes: u64::try_from(body.len()).unwrap_or(u64::MAX),
            body_hash: Some(terms.gate.digest(body.as_bytes())),
        }),
        ..Outcome::default()
    });
    let mut headers = HeaderMap::new();
    headers.insert(ESTIMATED, HeaderValue::from_static("input_tokens"));
    let body = body.into();
    (Whole { body, headers }, trail)
}
