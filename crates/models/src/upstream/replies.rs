//! What comes back from a provider over HTTP, and what it means.

use std::task::{Context, Poll};

use super::Written;
use super::frames::{self, Framed};
use crate::key::Key;
use crate::provider::{Fault, Remedy, Reply, ReplyBody, Sent, Trouble};
use crate::request::ModelRequest;
use bytes::Bytes;
use gate::Spent;
use http::header::CONTENT_TYPE;
use net::outbound::http::{HttpFault, Reply as HttpReply};
use tokio::time::{Instant, timeout_at};

/// Longest error that is read, in bytes.
const ERROR_BYTES_MAX: usize = 64 * 1024;
/// How long reading it may take, in milliseconds.
pub(super) const ERROR_WAIT_MS_MAX: u64 = 5_000;

struct Body(HttpReply);

impl ReplyBody for Body {
    fn poll_chunk(&mut self, cx: &mut Context<'_>) -> Poll<Result<Option<Bytes>, Trouble>> {
        self.0.poll_chunk(cx).map_err(|fault| Trouble::from(&fault))
    }
}

/// A request that has no reply.
pub(super) fn of_http(fault: &HttpFault) -> Fault {
    let trouble = Trouble::from(fault);
    let remedy = match trouble {
        Trouble::Busy => Remedy::NextTarget,
        _ => Remedy::Again,
    };
    Fault::of(trouble, remedy)
}

/// A reply with a good status: good where it is of the kind that was asked for, which for a stream is `streamed`.
pub(super) fn success(
    spent: Spent<ModelRequest>,
    reply: HttpReply,
    streamed: &str,
    written: Written,
    key: Option<Key>,
) -> Sent {
    let kind = reply.headers().get(CONTENT_TYPE);
    let kind = kind.and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    let is_stream = kind
        .get(..streamed.len())
        .is_some_and(|kind| kind.eq_ignore_ascii_case(streamed));
    if spent.request().streams() != is_stream {
        return Sent::Unserved(spent, Fault::of(Trouble::Malformed, Remedy::NextTarget));
    }
    let headers = reply.headers().clone();
    let body: Box<dyn ReplyBody> = match is_stream && streamed == frames::KIND {
        true => Box::new(Framed::new(reply)),
        false => Box::new(Body(reply)),
    };
    Sent::Reply(Reply {
        spent,
        headers,
        format: written.format,
        left_out: written.left_out,
        key,
        body,
    })
}

/// A reply that is an error.
pub(super) async fn error(mut reply: HttpReply, until: Instant) -> Fault {
    let body = timeout_at(until, reply.bytes(ERROR_BYTES_MAX)).await;
    let body = body.ok().and_then(Result::ok).unwrap_or_default();
    Fault::answered(reply.status(), reply.headers(), body)
}
