//! Responses: one JSON document, a stream of events, or a refusal.

use super::headers::{EVENTS, JSON, SESSION_ID};
use super::session::HttpSession;
use super::stream::{EventStream, NumberedItem, StreamItem};
use crate::json::{self, RpcEnvelope};
use crate::server::{RequestFault, RevisionKind};
use bytes::Bytes;
use http::header::{ALLOW, CACHE_CONTROL, CONTENT_TYPE};
use http::{HeaderName, HeaderValue, StatusCode};
use net::http::server::{Response, ResponseBody, StreamSender, stream};
use serde::Deserialize;
use std::sync::Arc;
use std::time::Duration;
use wire::sse::{push_comment, push_event, push_retry};

/// How many parts of a stream wait for the client at most.
const PARTS_MAX: usize = 16;
/// How long a stream is silent before a comment keeps it open.
const SILENCE_MAX: Duration = Duration::from_secs(15);
/// How long a client is asked to wait before it comes back, in milliseconds.
const RETRY_MS: u64 = 200;
/// The first revision in which a stream begins with an event that has nothing but an id.
const PRIMED_VERSION: &str = "2025-11-25";

const BUFFERING: HeaderName = HeaderName::from_static("x-accel-buffering");

/// How the events of a stream are written.
pub(super) struct EventScript {
    pub(super) session: Arc<HttpSession>,
    pub(super) stream: Arc<EventStream>,
    pub(super) reader: u64,
    /// Whether events have ids, by which a Legacy client comes back.
    pub(super) ids: bool,
    /// Frames to resend.
    pub(super) again: Vec<(u64, Vec<u8>)>,
    /// First item of the stream.
    pub(super) first: Option<NumberedItem>,
}

#[derive(Deserialize)]
struct FaultCode {
    code: i32,
}

/// Returns a refusal in JSON-RPC, to a request that could not be read so far.
pub(super) fn refusal(status: StatusCode, text: &str) -> Response {
    fault(status, "null", &RequestFault::InvalidRequest(text.into()))
}

pub(super) fn fault(status: StatusCode, id: &str, fault: &RequestFault) -> Response {
    document(status, fault.frame(id, RevisionKind::Modern))
}

pub(super) fn method_not_allowed() -> Response {
    let text = "the endpoint takes GET, POST and DELETE; DELETE and GET only in a session";
    let mut response = refusal(StatusCode::METHOD_NOT_ALLOWED, text);
    let allow = HeaderValue::from_static("GET, POST, DELETE");
    response.headers_mut().insert(ALLOW, allow);
    response
}

/// Returns a response without a body.
pub(super) fn empty(status: StatusCode) -> Response {
    let mut response = Response::new(ResponseBody::default());
    *response.status_mut() = status;
    response
}

/// Returns a frame as the whole body.
pub(super) fn document(status: StatusCode, frame: Vec<u8>) -> Response {
    let mut response = Response::new(ResponseBody::from(frame));
    *response.status_mut() = status;
    let kind = HeaderValue::from_static(JSON);
    response.headers_mut().insert(CONTENT_TYPE, kind);
    response
}

/// Adds the id of the session that a response opens.
pub(super) fn in_session(mut response: Response, id: &str) -> Response {
    if let Ok(id) = HeaderValue::from_str(id) {
        response.headers_mut().insert(SESSION_ID, id);
    }
    response
}

/// Returns the status of a frame that answers: errors of the protocol show in it. `sound` is true if a stateless
/// request had its required members in `_meta`.
pub(super) fn status(frame: &[u8], modern: bool, sound: bool) -> StatusCode {
    let code = json::object::<RpcEnvelope<'_>>(frame)
        .ok()
        .and_then(|envelope| envelope.error)
        .and_then(|error| serde_json::from_str::<FaultCode>(error.get()).ok())
        .map(|code| code.code);
    match code {
        Some(-32700 | -32600) => StatusCode::BAD_REQUEST,
        Some(-32601) if modern => StatusCode::NOT_FOUND,
        Some(-32022..=-32020) if modern => StatusCode::BAD_REQUEST,
        Some(-32602) if modern && !sound => StatusCode::BAD_REQUEST,
        Some(_) | None => StatusCode::OK,
    }
}

/// Returns a stream of events.
pub(super) fn events(script: EventScript) -> Response {
    let (sender, body) = stream(PARTS_MAX);
    tokio::spawn(play(script, sender));
    let mut response = Response::new(body);
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(EVENTS));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert(BUFFERING, HeaderValue::from_static("no"));
    response
}

/// Bytes that are no document, sent as if they were one.
pub(super) fn raw(bytes: Vec<u8>) -> Response {
    let (sender, body) = stream(1);
    tokio::spawn(async move {
        // What follows never comes: the body stays open until the client or the process goes.
        if sender.send(Bytes::from(bytes)).await.is_ok() {
            sender.closed().await;
        }
    });
    let mut response = Response::new(body);
    let kind = HeaderValue::from_static(JSON);
    response.headers_mut().insert(CONTENT_TYPE, kind);
    response
}

async fn play(script: EventScript, sender: StreamSender) {
    let stream = Arc::clone(&script.stream);
    let all_sent = send_all(&script, &sender).await;
    let resumable = script.ids && !all_sent;
    if !resumable && stream.number != 0 && !script.ids {
        script.session.forget(&stream);
    }
}

/// Sends until the stream ends (true) or the client goes (false).
async fn send_all(script: &EventScript, sender: &StreamSender) -> bool {
    let EventScript { stream, reader, .. } = script;
    let primed = script.ids && script.session.version == PRIMED_VERSION;
    let mut out = Vec::new();
    if primed && script.again.is_empty() && script.first.as_ref().is_none_or(|i| i.number == 1) {
        push_retry(&mut out, RETRY_MS);
        push_event(&mut out, Some(&format!("{}-0", stream.number)), b"");
    }
    for (number, frame) in &script.again {
        push_event(
            &mut out,
            Some(&format!("{}-{number}", stream.number)),
            frame,
        );
    }
    let mut next = script.first.as_ref().map(|first| NumberedItem {
        number: first.number,
        item: first.item.clone(),
    });
    loop {
        if let Some(NumberedItem { number, item }) = next.take() {
            let id = script.ids.then(|| format!("{}-{number}", stream.number));
            match item {
                StreamItem::Frame { bytes, .. } => push_event(&mut out, id.as_deref(), &bytes),
                StreamItem::Raw(bytes) => out.extend_from_slice(&bytes),
                StreamItem::HangUp => {
                    let _ = sender.send(Bytes::from(out)).await;
                    return false;
                }
            }
        }
        if sender
            .send(Bytes::from(std::mem::take(&mut out)))
            .await
            .is_err()
        {
            return false;
        }
        tokio::select! {
            item = stream.next(*reader) => match item {
                Some(item) => next = Some(item),
                None => return true,
            },
            () = sender.closed() => return false,
            () = tokio::time::sleep(SILENCE_MAX) => push_comment(&mut out),
        }
    }
}
