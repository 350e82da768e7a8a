//! What is made of the events of a stream: passed on as they are, or said in the caller's dialect.

use dialects::translate::{CallerForm, ProviderForm, SignedThought, Translator};
use dialects::{StreamEvent, StreamWatch, Tokens};
use wire::SseEvent;
use wire::sse::push_named_event;

use super::Terms;
use super::whole::stamp;
use crate::request::ModelRequest;

/// Reads the events of one stream.
#[derive(Debug)]
pub(super) enum Reader {
    /// Both sides speak one dialect.
    Same(StreamWatch),
    Other(Box<Translator>),
}

impl Reader {
    /// For this request, and a provider that answers in this form where it is not the caller's.
    pub fn new(terms: &Terms, request: &ModelRequest, format: Option<ProviderForm>) -> Self {
        match (format, CallerForm::of(request.endpoint())) {
            (Some(from), Some(to)) => {
                let stamp = stamp(terms, request);
                Self::Other(Box::new(Translator::new(from, to, stamp)))
            }
            _ => Self::Same(StreamWatch::new(request.endpoint())),
        }
    }

    /// Looks at an event, and makes ready what is passed on. Usage that stands alone goes to whoever wants it.
    pub fn see(
        &mut self,
        event: &SseEvent<'_>,
        wants_usage: bool,
        ready: &mut Vec<u8>,
    ) -> StreamEvent {
        match self {
            Self::Same(watch) => {
                let said = watch.see(event.data);
                let passes = match said {
                    StreamEvent::Malformed => false,
                    StreamEvent::UsageOnly => wants_usage,
                    StreamEvent::Part | StreamEvent::End | StreamEvent::Failed => true,
                };
                if passes {
                    push_named_event(ready, event.name, event.data);
                }
                said
            }
            Self::Other(translator) => translator.see(event.data, wants_usage, ready),
        }
    }

    /// Whether an error of the provider's goes on in its own words.
    pub fn passes_on(&self) -> bool {
        matches!(self, Self::Same(_))
    }

    /// What the provider said when it gave up, where that was not passed on.
    pub fn failure(&self) -> Option<&str> {
        match self {
            Self::Same(_) => None,
            Self::Other(translator) => translator.failure(),
        }
    }

    /// Takes the thoughts of the reply with their signatures.
    pub fn take_signed(&mut self) -> Vec<SignedThought> {
        match self {
            Self::Same(_) => Vec::new(),
            Self::Other(translator) => translator.take_signed(),
        }
    }

    pub fn has_finished(&self) -> bool {
        match self {
            Self::Same(watch) => watch.has_finished(),
            Self::Other(translator) => translator.has_finished(),
        }
    }

    /// Ends a stream whose provider left the end mark out.
    pub fn end(&mut self, ready: &mut Vec<u8>) {
        match self {
            Self::Same(watch) => ready.extend_from_slice(watch.end_mark()),
            Self::Other(translator) => translator.end(ready),
        }
    }

    pub fn used(&self) -> Tokens {
        match self {
            Self::Same(watch) => watch.used_tokens(),
            Self::Other(translator) => translator.used_tokens(),
        }
    }
}
