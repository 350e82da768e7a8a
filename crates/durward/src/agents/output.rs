//! The body of an agent's reply. The run is driven while its body is read, and is dropped with it.

use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::task::{Context, Poll};

use ::agents::run::RunFault;
use ::models::{Fault, Remedy, ReplyBody, Trouble};
use bytes::Bytes;
use http::{HeaderMap, StatusCode};
use tokio::sync::mpsc::{self, Receiver, Sender};

/// Most parts that wait for the caller.
const PARTS_MAX: usize = 32;

/// Why a run has no answer, as the face of models takes it.
#[derive(Debug, Clone)]
pub struct FailedRun {
    trouble: Trouble,
    status: u16,
    message: String,
}

impl From<&RunFault> for FailedRun {
    fn from(fault: &RunFault) -> Self {
        let trouble = match fault {
            RunFault::Limit(_) => Trouble::AgentLimit,
            RunFault::Malformed => Trouble::AgentMalformed,
            RunFault::NoProgress => Trouble::AgentNoProgress,
            RunFault::Model(_) => Trouble::AgentModel,
        };
        Self {
            trouble,
            status: fault.status(),
            message: fault.to_string(),
        }
    }
}

impl FailedRun {
    /// Returns the end of a run that its caller withdrew.
    pub fn cancelled() -> Self {
        Self {
            trouble: Trouble::ClientGone,
            status: 499,
            message: Trouble::ClientGone.sentence().to_owned(),
        }
    }

    /// Returns the fault for a caller that has received nothing yet.
    pub fn to_fault(&self) -> Fault {
        let status = StatusCode::from_u16(self.status).unwrap_or(StatusCode::BAD_GATEWAY);
        Fault {
            told: Some((status, self.message.clone())),
            ..Fault::of(self.trouble, Remedy::Nothing)
        }
    }
}

/// Part of a reply.
pub enum ReplyPart {
    /// Headers, which come with the first part.
    Headers(HeaderMap),
    /// Whole events, or the whole body.
    Bytes(Bytes),
}

/// Sends parts of a reply to its body.
#[derive(Debug, Clone)]
pub struct PartSender(Sender<ReplyPart>);

impl PartSender {
    /// Sends a part when there is room for it. A body that is gone drops it: the run is dropped with the body.
    pub async fn send(&self, part: ReplyPart) {
        let _ = self.0.send(part).await;
    }
}

type RunFuture = Pin<Box<dyn Future<Output = Result<(), FailedRun>> + Send>>;

/// The body of a run.
pub struct RunBody {
    run: Option<RunFuture>,
    parts: Receiver<ReplyPart>,
    first: Option<Bytes>,
    failed: Option<FailedRun>,
}

impl RunBody {
    /// Returns the body of the run that this makes.
    pub fn new<F>(drive: impl FnOnce(PartSender) -> F) -> Self
    where
        F: Future<Output = Result<(), FailedRun>> + Send + 'static,
    {
        let (sender, parts) = mpsc::channel(PARTS_MAX);
        Self {
            run: Some(Box::pin(drive(PartSender(sender)))),
            parts,
            first: None,
            failed: None,
        }
    }

    /// Waits for the first part, and returns its headers.
    ///
    /// # Errors
    /// The end of a run that fails before.
    pub async fn begin(&mut self) -> Result<HeaderMap, FailedRun> {
        let mut headers = HeaderMap::new();
        loop {
            match poll_fn(|cx| self.poll_part(cx)).await {
                Some(ReplyPart::Headers(own)) => headers = own,
                Some(ReplyPart::Bytes(bytes)) => {
                    self.first = Some(bytes);
                    return Ok(headers);
                }
                None => return self.failed.take().map_or(Ok(headers), Err),
            }
        }
    }

    fn poll_part(&mut self, cx: &mut Context<'_>) -> Poll<Option<ReplyPart>> {
        if let Some(run) = &mut self.run
            && let Poll::Ready(ended) = run.as_mut().poll(cx)
        {
            self.run = None;
            self.failed = ended.err();
        }
        match self.parts.poll_recv(cx) {
            Poll::Pending if self.run.is_none() => Poll::Ready(None),
            polled => polled,
        }
    }
}

impl ReplyBody for RunBody {
    fn poll_chunk(&mut self, cx: &mut Context<'_>) -> Poll<Result<Option<Bytes>, Trouble>> {
        if let Some(first) = self.first.take() {
            return Poll::Ready(Ok(Some(first)));
        }
        loop {
            return match std::task::ready!(self.poll_part(cx)) {
                Some(ReplyPart::Headers(_)) => continue,
                Some(ReplyPart::Bytes(bytes)) => Poll::Ready(Ok(Some(bytes))),
                None => Poll::Ready(
                    self.failed
                        .take()
                        .map_or(Ok(None), |ended| Err(ended.trouble)),
                ),
            };
        }
    }
}
