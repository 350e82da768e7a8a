//! Reading a reply that is not streamed.

use std::future::poll_fn;

use bytes::{Bytes, BytesMut};
use gate::journal::{ResponseSummary, Status};
use gate::{InFlight, Outcome};
use http::HeaderMap;
use state::Reservation;
use tokio::time::{Instant, timeout_at};
use wire::model::translate::{self, Format, Front, Stamp};
use wire::model::{Tokens, members, of_reply, read_of, written_of};

use super::{Terms, usage};
use crate::budget::settle;
use crate::provider::{ReplyBody, Trouble};
use crate::request::ModelRequest;

/// A reply that is not streamed.
#[derive(Debug)]
pub(crate) struct Whole {
    pub body: Bytes,
    pub headers: HeaderMap,
}

impl Whole {
    /// The reply, its call settled.
    pub(super) fn of(
        self,
        terms: &Terms,
        mut flight: InFlight,
        reservation: Option<Reservation>,
        (tokens, cost): (Tokens, Option<u64>),
    ) -> Self {
        settle(reservation, tokens, cost);
        flight.reply_arrived();
        flight.used(usage(tokens, cost));
        flight.finish(Outcome {
            status: Status::Success,
            response: Some(ResponseSummary {
                size_bytes: u64::try_from(self.body.len()).unwrap_or(u64::MAX),
                body_hash: Some(terms.gate.digest(&self.body)),
            }),
            ..Outcome::default()
        });
        self
    }
}

/// Reads a reply to its end: what it says, and what was used.
pub(super) async fn read(
    terms: &Terms,
    request: &ModelRequest,
    format: Option<Format>,
    body: &mut dyn ReplyBody,
    until: Instant,
) -> Result<(Bytes, Tokens), Trouble> {
    let all = timeout_at(until, collect(body, terms.reply_bytes_max));
    let all = all.await.unwrap_or(Err(Trouble::TooSlow))?;
    let endpoint = request.endpoint();
    if endpoint.replies_in_any_kind() && !all.is_empty() {
        let text = std::str::from_utf8(&all).unwrap_or_default();
        return Ok((all.clone(), of_reply(endpoint, text)));
    }
    let text = std::str::from_utf8(&all).map_err(|_| Trouble::Malformed)?;
    if members(text).is_empty() {
        return Err(Trouble::Malformed);
    }
    let counted = |tokens: Tokens, reply: &str| {
        let read = read_of(endpoint, request.body());
        tokens.or_counted(read, || written_of(endpoint, reply))
    };
    let (Some(from), Some(to)) = (format, Front::of(endpoint)) else {
        let tokens = counted(of_reply(endpoint, text), text);
        return Ok((all, tokens));
    };
    let said = translate::reply(from, to, text, stamp(terms, request));
    let (body, tokens) = said.ok_or(Trouble::Malformed)?;
    let tokens = counted(tokens, std::str::from_utf8(&body).unwrap_or_default());
    Ok((body.into(), tokens))
}

/// What a translated reply is given that its provider may not have given it.
pub(super) fn stamp<'r>(terms: &Terms, request: &'r ModelRequest) -> Stamp<'r> {
    Stamp {
        created: u64::try_from(terms.gate.wall_ms() / 1_000).unwrap_or(0),
        id: request.id(),
        asked: request.body().as_str(),
    }
}

async fn collect(body: &mut dyn ReplyBody, bytes_max: usize) -> Result<Bytes, Trouble> {
    let mut all = BytesMut::new();
    while let Some(part) = poll_fn(|cx| body.poll_chunk(cx)).await? {
        if all.len() + part.len() > bytes_max {
            return Err(Trouble::TooLong);
        }
        all.extend_from_slice(&part);
    }
    Ok(all.freeze())
}
