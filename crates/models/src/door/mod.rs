//! Calls of models in process: the path of a client's call over HTTP, without HTTP.

use std::collections::VecDeque;
use std::fmt;
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::Arc;

use bytes::Bytes;
use dialects::Endpoint;
use gate::inspect::Inspected;
use gate::journal::{OpId, Usage};
use gate::{Origin, Transport};
use http::header::CONTENT_TYPE;
use http::{HeaderMap, HeaderValue, StatusCode};
use net::http::server::Parts as _;
use tokio::time::{Instant, timeout_at};
use toolkit::door::{CallContext, CallEnd, CallFault, CallOutcome, DoorFault};

use crate::Face;
use crate::call::{
    CallBounds, CallError, CallSource, Relay, RoutedRequest, Served, Settlement, Trail, Unserved,
};
use crate::provider::Trouble;

/// What a call of a model yields, in order; [`ModelEvent::End`] is the last.
#[derive(Debug)]
pub enum ModelEvent {
    /// One server-sent event of a stream, as a client receives it.
    Event(Bytes),
    /// The whole reply, in the caller's dialect.
    Reply(ModelReply),
    /// What the call has used.
    Usage(Usage),
    /// How it ended.
    End(Box<ModelOutcome>),
}

/// A whole reply.
#[derive(Debug, Clone)]
pub struct ModelReply {
    /// The body.
    pub body: Bytes,
    /// Its kind, if it is not JSON.
    pub content_type: Option<HeaderValue>,
}

/// How a call of a model ended.
#[derive(Debug, Clone)]
pub struct ModelOutcome {
    /// Its operation and end.
    pub call: CallOutcome,
    /// `PROVIDER/MODEL` of the target that answered, or that was tried last; empty if none was.
    pub target: String,
    /// How many targets and keys were tried.
    pub attempts: u32,
    /// Whether the reply is from the cache.
    pub is_cached: bool,
    /// Hints of the request that the target was not told of.
    pub left_out: Vec<String>,
    /// What the call has used, as its record has it.
    pub usage: Usage,
    /// The provider's own error, if it goes on to the caller.
    pub error_reply: Option<(StatusCode, Bytes)>,
}

impl ModelOutcome {
    fn of(call: CallOutcome, trail: Trail) -> Self {
        Self {
            call,
            target: trail.target,
            attempts: trail.attempts,
            is_cached: trail.is_cached,
            left_out: trail.left_out.into_iter().map(Into::into).collect(),
            usage: trail.usage,
            error_reply: None,
        }
    }
}

type Starting = Pin<Box<dyn Future<Output = Result<Served, CallError>> + Send>>;

/// How far a call has got.
enum Progress {
    /// It is judged, and a target begins to answer.
    Starting(Starting),
    /// The reply streams; with the events that are ready.
    Streaming(Box<Relay>, Box<Trail>, VecDeque<Bytes>),
    /// These are its last events.
    Ending(VecDeque<ModelEvent>),
}

/// A call of a model under way. Dropped before its end, it is cancelled and recorded so.
pub struct ModelStream {
    progress: Progress,
    deadline: Option<Instant>,
}

impl ModelStream {
    fn ended(events: impl IntoIterator<Item = ModelEvent>) -> Self {
        Self {
            progress: Progress::Ending(events.into_iter().collect()),
            deadline: None,
        }
    }

    /// Returns the next event; `None` after [`ModelEvent::End`]. Dropping the future loses nothing.
    pub async fn next(&mut self) -> Option<ModelEvent> {
        loop {
            let progress = match &mut self.progress {
                Progress::Starting(starting) => {
                    let served = match self.deadline {
                        Some(end) => timeout_at(end, starting).await.ok(),
                        None => Some(starting.await),
                    };
                    started(served)
                }
                Progress::Streaming(relay, trail, ready) => {
                    if let Some(event) = ready.pop_front() {
                        return Some(ModelEvent::Event(event));
                    }
                    match poll_fn(|cx| relay.poll_part(cx)).await {
                        Some(part) => {
                            ready.extend(split_events(&part));
                            continue;
                        }
                        None => ended_stream(relay.settlement(), std::mem::take(trail)),
                    }
                }
                Progress::Ending(events) => return events.pop_front(),
            };
            self.progress = progress;
        }
    }
}

impl fmt::Debug for ModelStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ModelStream").finish_non_exhaustive()
    }
}

/// Returns what follows the start of a call; `None` means that its time was over before.
fn started(served: Option<Result<Served, CallError>>) -> Progress {
    match served {
        Some(Ok(Served::Stream(relay, trail))) => {
            Progress::Streaming(relay, Box::new(trail), VecDeque::new())
        }
        Some(Ok(Served::Whole(whole, trail))) => {
            let reply = ModelReply {
                content_type: whole.headers.get(CONTENT_TYPE).cloned(),
                body: whole.body,
            };
            let end = CallOutcome {
                op: trail.op,
                end: CallEnd::Done,
            };
            let events = [
                ModelEvent::Reply(reply),
                ModelEvent::Usage(trail.usage),
                ModelEvent::End(Box::new(ModelOutcome::of(end, trail))),
            ];
            Progress::Ending(events.into())
        }
        Some(Err(error)) => Progress::Ending([ModelEvent::End(Box::new(outcome_of(error)))].into()),
        None => {
            let fault = CallFault::of(DoorFault::Deadline);
            let call = CallOutcome {
                op: None,
                end: CallEnd::TimedOut(fault),
            };
            let outcome = ModelOutcome::of(call, Trail::default());
            Progress::Ending([ModelEvent::End(Box::new(outcome))].into())
        }
    }
}

fn ended_stream(settlement: Option<Settlement>, trail: Box<Trail>) -> Progress {
    let (end, usage) = match settlement {
        Some(Settlement { end, usage }) => (end, usage),
        None => (Err(Trouble::Cut), Usage::default()),
    };
    let end = match end {
        Ok(()) => CallEnd::Done,
        Err(trouble) => end_of(trouble, CallFault::new(trouble, trouble.sentence())),
    };
    let call = CallOutcome { op: trail.op, end };
    let mut outcome = ModelOutcome::of(call, *trail);
    outcome.usage = usage;
    let events = [ModelEvent::Usage(usage), ModelEvent::End(Box::new(outcome))];
    Progress::Ending(events.into())
}

fn end_of(trouble: Trouble, fault: CallFault) -> CallEnd {
    match trouble {
        Trouble::ClientGone | Trouble::Revoked => CallEnd::Cancelled,
        Trouble::TooSlow | Trouble::Stalled | Trouble::Endless => CallEnd::TimedOut(fault),
        Trouble::Denied | Trouble::Withheld => CallEnd::Denied(fault),
        _ => CallEnd::UpstreamFailed(fault),
    }
}

fn outcome_of(error: CallError) -> ModelOutcome {
    let early = |op: Option<OpId>, end| ModelOutcome::of(CallOutcome { op, end }, Trail::default());
    match error {
        CallError::Unreadable(fault) => {
            let fault = CallFault::new(DoorFault::Unreadable, fault.to_string());
            early(None, CallEnd::Malformed(fault))
        }
        CallError::NoModel(_) => early(
            None,
            CallEnd::NotFound(CallFault::of(DoorFault::ModelUnknown)),
        ),
        CallError::Refused(refusal, sentence) => {
            let mut outcome = CallOutcome::from(&*refusal);
            if let (Some(sentence), CallEnd::Denied(fault) | CallEnd::Limited(fault)) =
                (sentence, &mut outcome.end)
            {
                fault.message = sentence;
            }
            ModelOutcome::of(outcome, Trail::default())
        }
        CallError::Unserved(unserved) => {
            let Unserved { fault, trail } = *unserved;
            let message = fault.told.as_ref().map_or_else(
                || fault.trouble.sentence().to_owned(),
                |(_, message)| message.to_string(),
            );
            let told = CallFault {
                retry_after_ms: fault.retry_after_ms,
                ..CallFault::new(fault.trouble, message)
            };
            let call = CallOutcome {
                op: trail.op,
                end: end_of(fault.trouble, told),
            };
            ModelOutcome {
                error_reply: fault.answer,
                ..ModelOutcome::of(call, trail)
            }
        }
    }
}

/// Returns the events of a part of a stream, which ends with the end of an event.
fn split_events(part: &Bytes) -> Vec<Bytes> {
    let mut events = Vec::new();
    let mut rest = part.clone();
    while let Some(at) = rest.windows(2).position(|two| two == b"\n\n") {
        events.push(rest.split_to(at + 2));
    }
    if !rest.is_empty() {
        events.push(rest);
    }
    events
}

impl Face {
    /// Reads and inspects a request in process: `body` in the dialect of `endpoint`, with the headers that a client would
    /// send, such as `anthropic-version`.
    ///
    /// # Errors
    /// The end of a request that cannot be read, or names no model that is served to the caller.
    pub async fn prepare(
        &self,
        context: &CallContext,
        endpoint: Endpoint,
        body: &[u8],
        headers: &HeaderMap,
    ) -> Result<Inspected<RoutedRequest>, Box<ModelOutcome>> {
        let source = CallSource {
            endpoint,
            body,
            headers,
            origin: Origin {
                request_id: self.next_id(),
                session_id: Arc::clone(&context.session_id),
                client_id: context.client_id.clone(),
                transport: Transport::Http,
                run: context.trace.run.clone(),
                parent_op: context.trace.parent_op,
                received_ns: self.gate().mono_ns(),
                ..Origin::default()
            },
        };
        let routed = self.prepare_call(&context.caller, source).await;
        routed.map_err(|error| Box::new(outcome_of(error)))
    }

    /// Calls a model. Dropping the stream cancels the call.
    ///
    /// An uninspected request does not compile:
    ///
    /// ```compile_fail,E0308
    /// # fn forget(face: std::sync::Arc<models::Face>, context: &toolkit::door::CallContext, request: models::RoutedRequest) {
    /// let _ = face.complete(context, request);
    /// # }
    /// ```
    #[must_use]
    pub fn complete(
        self: &Arc<Self>,
        context: &CallContext,
        request: Inspected<RoutedRequest>,
    ) -> ModelStream {
        let deadline = context.deadline.map(Instant::from_std);
        let bounds = CallBounds {
            deadline,
            budget: context.budget.clone(),
            approval: context.approval,
        };
        let (face, caller) = (Arc::clone(self), context.caller.clone());
        let starting = async move { face.serve(caller, request, bounds).await };
        ModelStream {
            progress: Progress::Starting(Box::pin(starting)),
            deadline,
        }
    }

    /// Prepares and calls in one: a request that cannot be read or routed is a stream of its end alone.
    pub async fn complete_body(
        self: &Arc<Self>,
        context: &CallContext,
        endpoint: Endpoint,
        body: &[u8],
        headers: &HeaderMap,
    ) -> ModelStream {
        match self.prepare(context, endpoint, body, headers).await {
            Ok(request) => self.complete(context, request),
            Err(outcome) => ModelStream::ended([ModelEvent::End(outcome)]),
        }
    }
}
