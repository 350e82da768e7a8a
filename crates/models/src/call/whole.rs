//! Reading a reply that is not streamed.

use std::borrow::Cow;
use std::future::poll_fn;

use bytes::{Bytes, BytesMut};
use dialects::translate::{self, CallerForm, ProviderForm, ReplyStamp, embeddings};
use dialects::{
    Endpoint, Tokens, is_error_reply, is_reply, members, of_reply, read_of, written_of,
};
use gate::journal::{ResponseSummary, Status};
use gate::{InFlight, Outcome};
use http::HeaderMap;
use state::Reservation;
use tokio::time::{Instant, timeout_at};

use super::{Terms, usage};
use crate::budget::settle;
use crate::key::Key;
use crate::provider::{Fault, Remedy, ReplyBody, Trouble};
use crate::request::ModelRequest;

/// A reply that is not streamed.
#[derive(Debug)]
pub(crate) struct Whole {
    pub body: Bytes,
    pub headers: HeaderMap,
}

/// What a reply says.
pub(super) struct Told {
    pub body: Bytes,
    pub tokens: Tokens,
    /// What of it the caller's dialect has no word for.
    pub left_out: Vec<Cow<'static, str>>,
}

impl Told {
    fn plain(body: Bytes, tokens: Tokens) -> Self {
        Self {
            body,
            tokens,
            left_out: Vec::new(),
        }
    }
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

/// Why a reply is none, and what it has used all the same.
pub(crate) struct BadReply {
    pub fault: Fault,
    pub tokens: Tokens,
}

impl From<Trouble> for BadReply {
    fn from(trouble: Trouble) -> Self {
        Self {
            fault: Fault::of(trouble, Remedy::Again),
            tokens: Tokens::default(),
        }
    }
}

impl BadReply {
    /// A reply that cannot be read. One that was paid for is not asked for again at the same target.
    fn malformed(tokens: Tokens) -> Self {
        let is_paid = tokens.input.max(tokens.output) > Some(0);
        let remedy = if is_paid {
            Remedy::NextTarget
        } else {
            Remedy::Again
        };
        Self {
            fault: Fault::of(Trouble::Malformed, remedy),
            tokens,
        }
    }
}

/// Parts of a reply that are read beside its body.
pub(super) struct ReplyContext<'r> {
    pub headers: &'r HeaderMap,
    /// The form of the reply, where that is not the caller's.
    pub format: Option<ProviderForm>,
    /// The key that the provider was shown.
    pub key: Option<&'r Key>,
}

/// Reads a reply to its end: what it says, and what was used.
pub(super) async fn read(
    terms: &Terms,
    request: &ModelRequest,
    context: ReplyContext<'_>,
    body: &mut dyn ReplyBody,
    until: Instant,
) -> Result<Told, BadReply> {
    let format = context.format;
    let all = timeout_at(until, collect(body, terms.reply_bytes_max));
    let all = all.await.unwrap_or(Err(Trouble::TooSlow))?;
    let endpoint = request.endpoint();
    if endpoint.replies_in_any_kind() && !all.is_empty() {
        let text = std::str::from_utf8(&all).unwrap_or_default();
        return Ok(Told::plain(all.clone(), of_reply(endpoint, text)));
    }
    let text = std::str::from_utf8(&all).map_err(|_| Trouble::Malformed)?;
    if members(text).is_empty() {
        return Err(Trouble::Malformed.into());
    }
    let told = format.map_or_else(
        || of_reply(endpoint, text),
        |from| translate::usage_of(from, text),
    );
    if is_error_reply(text) {
        let words = format.is_none().then(|| endpoint.dialect());
        let fault = Fault::in_reply(context.headers, all.clone());
        return Err(BadReply {
            fault: fault.for_caller(context.key, words),
            tokens: told,
        });
    }
    let counted = |tokens: Tokens, reply: &str| {
        let read = read_of(endpoint, request.body());
        tokens.or_counted(read, || written_of(endpoint, reply))
    };
    let said = match (format, CallerForm::of(endpoint)) {
        (Some(from), Some(to)) => translate::reply(from, to, text, stamp(terms, request)),
        (Some(_), None) if endpoint == Endpoint::Embeddings => {
            embeddings::reply(text, request.body())
        }
        _ if !is_reply(endpoint, text) => return Err(BadReply::malformed(told)),
        _ => {
            let tokens = counted(told, text);
            return Ok(Told::plain(all, tokens));
        }
    };
    let said = said.ok_or_else(|| BadReply::malformed(told))?;
    request.keep_signatures(said.signed);
    let text = std::str::from_utf8(&said.body).unwrap_or_default();
    Ok(Told {
        tokens: counted(said.tokens, text),
        body: said.body.into(),
        left_out: said.left_out,
    })
}

/// What a translated reply is given that its provider may not have given it.
pub(super) fn stamp<'r>(terms: &Terms, request: &'r ModelRequest) -> ReplyStamp<'r> {
    ReplyStamp {
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
