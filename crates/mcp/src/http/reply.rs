//! What a call under way becomes over HTTP: one message, or a stream of events where there is more to
//! say, or where it takes so long that whatever stands between must see a sign of life.

use std::sync::Arc;
use std::time::Duration;

use ::http::StatusCode;
use bytes::Bytes;
use net::http::server::{Response, StreamSender, stream, unless_silent};
use net::timers::kept;
use wire::Revision;

use super::federated::Listening;
use super::refused::Refused;
use super::session::Session;
use super::{Caller, Face, answer, modern};
use crate::call::{Run, Said};

/// Most events of a Modern answer that wait for the client to read them.
const PARTS_MAX: usize = 64;

/// What a Modern request has set going, as its client is told it.
pub(super) enum Going {
    One(Box<Run>),
    /// A subscription at several servers.
    Listening(Box<Listening>),
}

impl From<Box<Run>> for Going {
    fn from(run: Box<Run>) -> Self {
        Self::One(run)
    }
}

impl Going {
    /// What there is for the client next. Cancel-safe.
    async fn next(&mut self) -> Said {
        match self {
            Self::One(run) => match run.next().await {
                Said::Emit(frame) => Said::Emit(run.told(frame)),
                Said::Done(answer, code) => Said::Done(run.told(answer), code),
                Said::Gone => Said::Gone,
            },
            Self::Listening(listening) => listening.next().await,
        }
    }

    fn is_endless(&self) -> bool {
        match self {
            Self::One(run) => run.is_endless(),
            Self::Listening(_) => true,
        }
    }
}

/// Answers a request of a session.
pub(super) async fn legacy_answer(run: Box<Run>, session: Arc<Session>) -> Response {
    let mut kept = Kept(Some(run));
    let first = match &mut kept.0 {
        Some(run) => unless_silent(run.next()).await,
        None => Some(Said::Gone),
    };
    let run = kept.0.take();
    match (first, run) {
        (Some(Said::Done(answer, _)), _) => answer::json(StatusCode::OK, session.told(answer)),
        (Some(Said::Emit(first)), Some(run)) => legacy_stream(run, session, Some(first)),
        (None, Some(run)) => legacy_stream(run, session, None),
        (Some(Said::Gone | Said::Emit(_)) | None, _) => answer::accepted(),
    }
}

/// A client that goes away does not cancel in this era: the call ends as it ends and is settled so.
struct Kept(Option<Box<Run>>);

impl Drop for Kept {
    fn drop(&mut self) {
        if let Some(mut run) = self.0.take() {
            tokio::spawn(async move { while matches!(run.next().await, Said::Emit(_)) {} });
        }
    }
}

fn legacy_stream(mut run: Box<Run>, session: Arc<Session>, first: Option<Vec<u8>>) -> Response {
    // An empty first event would be no message to clients of the older revisions.
    let primed = session
        .revision()
        .is_some_and(|r| r >= Revision::V2025_11_25);
    let Ok((number, body)) = session.streams.open(primed) else {
        return answer::fault(Refused::TooManyStreams);
    };
    tokio::spawn(async move {
        if let Some(first) = first {
            session.streams.emit(number, &session.told(first)).await;
        }
        loop {
            match run.next().await {
                Said::Emit(frame) => session.streams.emit(number, &session.told(frame)).await,
                Said::Done(answer, _) => {
                    let answer = session.told(answer);
                    return session.streams.finish(number, Some(&answer)).await;
                }
                Said::Gone => return session.streams.finish(number, None).await,
            }
        }
    });
    answer::events(body)
}

impl Face {
    /// Answers a Modern request. A client that goes away cancels.
    pub(super) async fn modern_answer(
        self: &Arc<Self>,
        mut run: Going,
        caller: &Caller,
    ) -> Response {
        let first = match unless_silent(run.next()).await {
            Some(Said::Done(answer, code)) => {
                return answer::json(modern::status(code), answer);
            }
            Some(Said::Gone) => return answer::accepted(),
            Some(Said::Emit(first)) => Some(first),
            None => None,
        };
        let (sender, body) = stream(PARTS_MAX);
        let (face, caller) = (Arc::clone(self), caller.clone());
        tokio::spawn(async move { face.modern_stream(run, sender, first, &caller).await });
        answer::events(body)
    }

    async fn modern_stream(
        self: &Arc<Self>,
        mut run: Going,
        sender: StreamSender,
        first: Option<Vec<u8>>,
        caller: &Caller,
    ) {
        let every = Duration::from_millis(self.options.keep_alive_ms);
        let mut alive = kept(|| tokio::time::interval(every));
        if first.is_some() {
            // Its first sign of life is the first event.
            alive.tick().await;
        }
        let mut frame = first;
        let mut quiet = Box::pin(self.quiet_for(&run));
        let mut revoked = caller.revocation.revoked();
        loop {
            if let Some(frame) = frame.take()
                && sender.send(event(&frame)).await.is_err()
            {
                return;
            }
            tokio::select! {
                biased;
                // First: a revoked key gets no error of the process that ends with it.
                () = &mut revoked => return,
                () = sender.closed() => return,
                () = &mut quiet => return,
                said = run.next() => match said {
                    Said::Emit(next) => frame = Some(next),
                    Said::Done(answer, _) => {
                        // Whether the client still reads it is its own affair.
                        let _ = sender.send(event(&answer)).await;
                        return;
                    }
                    Said::Gone => return,
                },
                _ = alive.tick() => {
                    let mut comment = Vec::new();
                    wire::sse::push_comment(&mut comment);
                    // A client that does not read gets no sign of life.
                    let _ = sender.try_send(comment.into());
                }
            }
        }
    }

    /// Ready when streams without an end are to end, where this is one.
    fn quiet_for(&self, run: &Going) -> impl Future<Output = ()> + Send + use<> {
        let endless = run.is_endless();
        let mut quiet = self.quiet.subscribe();
        async move {
            if !endless {
                std::future::pending::<()>().await;
            }
            // The sender lives as long as the face.
            drop(quiet.wait_for(|quiet| *quiet).await);
        }
    }
}

fn event(frame: &[u8]) -> Bytes {
    let mut text = Vec::with_capacity(frame.len() + 16);
    wire::sse::push_event(&mut text, None, frame);
    text.into()
}
