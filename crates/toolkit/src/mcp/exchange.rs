//! What comes back on one request.

use std::collections::VecDeque;
use std::ops::Range;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use share::SharePermit;
use tokio::time::Sleep;
use wire::id::IdKey;

use super::Open;
use super::results;
use crate::cancel::Cancel;
use crate::server::{BoxFuture, Found, News, Progress};

/// How long a cancelled call may take to end by itself before its future is dropped, in milliseconds.
pub const CANCEL_WAIT_MS_MAX: u64 = 2_000;

/// Something for the client, or for whoever judged its call.
#[derive(Debug, PartialEq)]
pub enum Arrival {
    /// A notification; more is to come.
    News(Vec<u8>),
    /// The call turned out to be about more, and waits to be judged again.
    Found(Found),
    /// The answer; nothing comes after it.
    Reply(Reply),
}

/// An answer, and where its parts are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reply {
    /// The whole frame.
    pub bytes: Vec<u8>,
    /// Where its id stands.
    pub id: Range<usize>,
    /// Where the result or the error stands.
    pub payload: Range<usize>,
    /// Whether it is an error of the protocol.
    pub is_error: bool,
    /// Whether it is a tool's result that says of itself that it is an error.
    pub is_tool_error: bool,
}

impl Reply {
    /// Writes it; `id` is raw JSON, `kind` is `result` or `error`.
    pub(super) fn new(id: &str, kind: &str, payload: &Value) -> Self {
        let is_tool_error = kind == "result" && payload.get("isError") == Some(&Value::Bool(true));
        let mut text = String::from(r#"{"jsonrpc":"2.0","id":"#);
        let id_from = text.len();
        text.push_str(id);
        let id = id_from..text.len();
        text.push_str(&format!(r#","{kind}":"#));
        let from = text.len();
        text.push_str(&payload.to_string());
        let payload = from..text.len();
        text.push('}');
        Self {
            bytes: text.into_bytes(),
            id,
            payload,
            is_error: kind == "error",
            is_tool_error,
        }
    }
}

impl Arrival {
    /// The frame; empty where there is none.
    #[must_use]
    pub fn frame(&self) -> &[u8] {
        match self {
            Self::News(frame) => frame,
            Self::Found(_) => &[],
            Self::Reply(reply) => &reply.bytes,
        }
    }
}

/// A request under way. It goes on only while somebody waits for [`Exchange::next`]; dropped, it is cancelled.
#[must_use = "an exchange that is dropped is cancelled"]
pub struct Exchange {
    work: Work,
    ready: VecDeque<Arrival>,
    /// Its place among the open requests of its session.
    place: Option<Place>,
}

enum Work {
    Calling(Box<Calling>),
    /// Nothing ever comes until the session ends; then this reply.
    Listening(Cancel, Option<Reply>),
    Over,
}

/// A server at work.
pub(super) struct Calling {
    pub(super) progress_token: Option<String>,
    pub(super) reply: BoxFuture<'static, Reply>,
    pub(super) news: News,
    pub(super) cancel: Cancel,
    pub(super) giving_up: Option<Pin<Box<Sleep>>>,
}

/// Frees the request's place when the exchange goes.
pub(super) struct Place {
    pub(super) open: Arc<Open>,
    pub(super) key: IdKey,
    pub(super) cancel: Cancel,
    pub(super) _permit: SharePermit,
}

impl Drop for Place {
    fn drop(&mut self) {
        self.cancel.cancel();
        self.open.forget(&self.key, &self.cancel);
    }
}

impl Exchange {
    pub(super) fn silent() -> Self {
        Self {
            work: Work::Over,
            ready: VecDeque::new(),
            place: None,
        }
    }

    pub(super) fn answered(reply: Reply) -> Self {
        Self {
            work: Work::Over,
            ready: VecDeque::from([Arrival::Reply(reply)]),
            place: None,
        }
    }

    pub(super) fn calling(calling: Calling, place: Place) -> Self {
        Self {
            work: Work::Calling(Box::new(calling)),
            ready: VecDeque::new(),
            place: Some(place),
        }
    }

    pub(super) fn listening(first: Vec<u8>, last: Reply, place: Place) -> Self {
        Self {
            work: Work::Listening(place.cancel.clone(), Some(last)),
            ready: VecDeque::from([Arrival::News(first)]),
            place: Some(place),
        }
    }

    /// The next thing for the client; `None` when there is no more, which without a reply means that the
    /// request was cancelled. May be dropped and called again at any time.
    pub async fn next(&mut self) -> Option<Arrival> {
        loop {
            if let Some(arrival) = self.ready.pop_front() {
                return Some(arrival);
            }
            match &mut self.work {
                Work::Over => {
                    self.place = None;
                    return None;
                }
                Work::Listening(cancel, last) => {
                    cancel.cancelled().await;
                    self.ready.extend(last.take().map(Arrival::Reply));
                    self.work = Work::Over;
                }
                Work::Calling(calling) => {
                    if calling.step(&mut self.ready).await {
                        self.work = Work::Over;
                    }
                }
            }
        }
    }
}

impl Calling {
    /// Waits for whatever comes next and makes it ready; `true` where nothing more will come.
    async fn step(&mut self, ready: &mut VecDeque<Arrival>) -> bool {
        if self.cancel.is_cancelled() && self.giving_up.is_none() {
            let wait = Duration::from_millis(CANCEL_WAIT_MS_MAX);
            self.giving_up = Some(Box::pin(tokio::time::sleep(wait)));
        }
        tokio::select! {
            biased;
            Some(progress) = self.news.progress.recv() => {
                self.tell(&progress, ready);
                false
            }
            Some(found) = self.news.found.recv() => {
                ready.push_back(Arrival::Found(found));
                false
            }
            reply = &mut self.reply => {
                while let Ok(progress) = self.news.progress.try_recv() {
                    self.tell(&progress, ready);
                }
                if !self.cancel.is_cancelled() {
                    ready.push_back(Arrival::Reply(reply));
                }
                true
            }
            () = self.cancel.cancelled(), if self.giving_up.is_none() => false,
            () = async { if let Some(end) = &mut self.giving_up { end.await } }, if self.giving_up.is_some() => true,
        }
    }

    fn tell(&self, progress: &Progress, ready: &mut VecDeque<Arrival>) {
        if let (Some(token), false) = (&self.progress_token, self.cancel.is_cancelled()) {
            ready.push_back(Arrival::News(results::progress(token, progress)));
        }
    }
}
