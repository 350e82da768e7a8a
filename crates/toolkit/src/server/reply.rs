//! How a call is answered: news on the way, one outcome at the end.

use std::fmt;
use std::sync::Arc;

use gate::paths::PathArgument;
use gate::{InFlight, Refusal};
use serde_json::{Map, Value, json};
use tokio::sync::{mpsc, oneshot};

use super::arguments::Unfit;
use crate::cancel::Cancel;

/// Most news of one call that wait to be taken; what comes on top is left out.
pub const NEWS_MAX: usize = 32;
/// Longest text of one piece of news, in characters.
pub const NEWS_CHARS_MAX: usize = 512;

/// How far a call has come.
#[derive(Debug, Clone, PartialEq)]
pub struct Progress {
    /// How much is done; grows from one to the next.
    pub done: f64,
    /// Of how much, where that is known.
    pub total: Option<f64>,
    /// What is being done.
    pub message: Option<String>,
}

/// What a call turned out to be about, before anything was done there: places, or a further machine with places.
/// Whoever judged the call judges it again with them; the call waits. Dropped, it is a no. Or how it ended at one machine.
#[derive(Debug)]
pub struct Found {
    /// The places.
    pub paths: Vec<PathArgument>,
    /// The further machine that they are at; without one they are where the call was judged to be.
    pub host: Option<Arc<str>>,
    /// How the call ended at that machine, which was judged before.
    pub ended: Option<gate::Outcome>,
    answer: oneshot::Sender<()>,
}

impl Found {
    /// Has the call judged with it, and lets the call go on where the rules let it pass.
    ///
    /// # Errors
    /// The refusal; the call is settled, and its future must not be polled again.
    pub fn judged_by(mut self, flight: &mut InFlight) -> Result<(), Box<Refusal>> {
        match (&self.host, self.ended) {
            (Some(host), Some(outcome)) => flight.ended_at(host, outcome),
            (Some(host), None) => flight.beside(host, std::mem::take(&mut self.paths))?,
            (None, _) => {
                let places = std::mem::take(&mut self.paths);
                flight.narrow(|facts| facts.add_paths(places))?;
            }
        }
        self.may_go_on();
        Ok(())
    }

    fn may_go_on(self) {
        // A call that has ended meanwhile does not go on.
        let _ = self.answer.send(());
    }
}

impl Eq for Found {}

impl PartialEq for Found {
    fn eq(&self, other: &Self) -> bool {
        (&self.host, &self.paths) == (&other.host, &other.paths)
    }
}

/// What a call says while it is under way.
#[derive(Debug)]
pub struct News {
    /// How far it has come.
    pub progress: mpsc::Receiver<Progress>,
    /// What it turned out to be about.
    pub found: mpsc::Receiver<Found>,
}

/// The way back to the caller while a call is under way.
#[derive(Debug)]
pub struct ReplySink {
    news: Option<mpsc::Sender<Progress>>,
    found: mpsc::Sender<Found>,
    cancel: Cancel,
    done: f64,
}

impl ReplySink {
    /// A sink, and where its news come out. Without `wanted`, news go nowhere. `cancel` is set when nobody
    /// waits any more.
    #[must_use]
    pub fn new(wanted: bool, cancel: Cancel) -> (Self, News) {
        let (sender, progress) = mpsc::channel(NEWS_MAX);
        // A call waits for the answer to each, so that there is never a second one.
        let (found_sender, found) = mpsc::channel(1);
        let sink = Self {
            news: wanted.then_some(sender),
            found: found_sender,
            cancel,
            done: f64::NEG_INFINITY,
        };
        (sink, News { progress, found })
    }

    /// Has the call judged again, now that it turned out to be about these places too. To be called before
    /// anything is done there; the answer to the caller is a refusal otherwise.
    ///
    /// # Errors
    /// Where the rules do not let the call pass any more, or nobody is there to judge it.
    pub async fn found(&self, paths: Vec<PathArgument>) -> Result<(), Failure> {
        self.found_at(None, paths).await
    }

    /// The same for a further machine that the call reaches, which is judged on its own.
    ///
    /// # Errors
    /// As [`ReplySink::found`].
    pub async fn found_at(
        &self,
        host: Option<Arc<str>>,
        paths: Vec<PathArgument>,
    ) -> Result<(), Failure> {
        self.told(paths, host, None).await
    }

    /// Notes how the call ended at a machine that it was judged for: the journal has that, whatever becomes of the rest.
    pub async fn ended_at(&self, host: Arc<str>, outcome: gate::Outcome) {
        // Where nobody listens any more, the call as a whole was settled.
        let _ = self.told(Vec::new(), Some(host), Some(outcome)).await;
    }

    async fn told(
        &self,
        paths: Vec<PathArgument>,
        host: Option<Arc<str>>,
        ended: Option<gate::Outcome>,
    ) -> Result<(), Failure> {
        let refused = || {
            let wrong = "the rules refuse a place or a machine that the call is about";
            Failure::new("refused", wrong)
        };
        let (answer, answered) = oneshot::channel();
        let found = Found {
            paths,
            host,
            ended,
            answer,
        };
        let sent = self.found.send(found).await;
        sent.map_err(|_| refused())?;
        answered.await.map_err(|_| refused())
    }

    /// Whether the caller wants to hear of progress.
    #[must_use]
    pub fn wants_progress(&self) -> bool {
        self.news.is_some()
    }

    /// Tells how far the call has come. What does not grow, is no number, or finds the queue full is left
    /// out: a caller that reads slowly never holds up the work.
    pub fn progress(&mut self, done: f64, total: Option<f64>, message: Option<&str>) {
        let Some(news) = &self.news else { return };
        if !done.is_finite() || done <= self.done {
            return;
        }
        let sent = news.try_send(Progress {
            done,
            total: total.filter(|total| total.is_finite()),
            message: message.map(|text| text.chars().take(NEWS_CHARS_MAX).collect()),
        });
        if sent.is_ok() {
            self.done = done;
        }
    }

    /// Set when nobody waits for the outcome any more: the caller cancelled, went away, or ran out of time.
    #[must_use]
    pub fn cancel(&self) -> &Cancel {
        &self.cancel
    }
}

/// A piece of a result.
#[derive(Debug, Clone, PartialEq)]
pub enum Content {
    /// Text.
    Text(String),
    /// An image.
    Image {
        /// Its bytes in base64.
        base64: String,
        /// Its media type.
        media_type: &'static str,
    },
    /// A resource that can be read on its own.
    Link {
        /// Where.
        uri: String,
        /// Its name.
        name: String,
    },
}

impl Content {
    /// As MCP has it.
    #[must_use]
    pub fn json(&self) -> Value {
        match self {
            Self::Text(text) => json!({"type": "text", "text": text}),
            Self::Image { base64, media_type } => {
                json!({"type": "image", "data": base64, "mimeType": media_type})
            }
            Self::Link { uri, name } => json!({"type": "resource_link", "uri": uri, "name": name}),
        }
    }
}

/// The result of a call that did what it was asked for.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Answer {
    /// What the model reads.
    pub content: Vec<Content>,
    /// The result as data, of the tool's output schema.
    pub structured: Option<Map<String, Value>>,
}

impl Answer {
    /// A text.
    #[must_use]
    pub fn text(text: impl Into<String>) -> Self {
        Self {
            content: vec![Content::Text(text.into())],
            structured: None,
        }
    }

    /// Data, which the model reads as JSON. Anything but an object is put under `value`.
    #[must_use]
    pub fn data(data: Value) -> Self {
        let text = data.to_string();
        let structured = match data {
            Value::Object(members) => members,
            other => Map::from_iter([("value".to_owned(), other)]),
        };
        Self {
            content: vec![Content::Text(text)],
            structured: Some(structured),
        }
    }
}

/// Why a tool did not do what it was asked for. The model reads it.
#[derive(Debug, Clone, PartialEq)]
pub struct Failure {
    /// A closed label of the server's, in `snake_case`.
    pub code: &'static str,
    /// What was wrong and what to do, lowercase, without anything secret.
    pub message: String,
    /// Whether the same call may succeed later without anybody changing anything.
    pub retryable: bool,
    /// More about it.
    pub details: Map<String, Value>,
}

impl Failure {
    /// A failure that stays until something is changed.
    #[must_use]
    pub fn new(code: &'static str, message: impl Into<String>) -> Self {
        Self {
            code,
            message: message.into(),
            retryable: false,
            details: Map::new(),
        }
    }

    /// The same, as one that may go away.
    #[must_use]
    pub fn retryable(self) -> Self {
        Self {
            retryable: true,
            ..self
        }
    }

    /// The same with one more member.
    #[must_use]
    pub fn with(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.details.insert(name.to_owned(), value.into());
        self
    }

    /// As data: `code`, `message`, `retryable` and the details.
    #[must_use]
    pub fn json(&self) -> Value {
        let mut members = self.details.clone();
        members.insert("code".into(), self.code.into());
        members.insert("message".into(), self.message.as_str().into());
        members.insert("retryable".into(), self.retryable.into());
        Value::Object(members)
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Failure {}

/// How a call ended.
#[derive(Debug, Clone, PartialEq)]
pub enum Outcome {
    /// It did what it was asked for.
    Done(Answer),
    /// It did not.
    Failed(Failure),
    /// It stopped because it was cancelled; nobody reads an answer.
    Cancelled,
}

impl From<Unfit> for Failure {
    fn from(unfit: Unfit) -> Self {
        let faults: Vec<Value> = unfit
            .faults
            .iter()
            .map(|fault| json!({"member": fault.member, "wrong": fault.wrong}))
            .collect();
        Self::new("unfit_arguments", unfit.to_string()).with("faults", faults)
    }
}

impl From<Result<Answer, Failure>> for Outcome {
    fn from(result: Result<Answer, Failure>) -> Self {
        match result {
            Ok(answer) => Self::Done(answer),
            Err(failure) => Self::Failed(failure),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn progress_grows_is_bounded_and_never_waits() {
        let (
            mut sink,
            News {
                progress: mut news, ..
            },
        ) = ReplySink::new(true, Cancel::default());
        for done in [1.0, 1.0, f64::NAN, 0.5, 2.0, f64::INFINITY] {
            sink.progress(
                done,
                Some(f64::INFINITY),
                Some(&"m".repeat(2 * NEWS_CHARS_MAX)),
            );
        }
        let first = news.try_recv().unwrap();
        assert_eq!((first.done, first.total), (1.0, None));
        assert_eq!(first.message.unwrap().len(), NEWS_CHARS_MAX);
        assert_eq!(news.try_recv().unwrap().done, 2.0);
        assert!(news.try_recv().is_err());
        for done in 10..1000 {
            sink.progress(f64::from(done), None, None);
        }
        let taken: Vec<f64> = std::iter::from_fn(|| news.try_recv().ok().map(|p| p.done)).collect();
        assert_eq!(taken.len(), NEWS_MAX);
        assert!(taken.is_sorted());
        // What was left out does not stop what comes after it.
        sink.progress(2000.0, None, None);
        assert_eq!(news.try_recv().unwrap().done, 2000.0);
    }

    #[tokio::test]
    async fn what_a_call_found_goes_on_by_a_yes_alone() {
        let (sink, mut news) = ReplySink::new(false, Cancel::default());
        let judge = async {
            news.found.recv().await.unwrap().may_go_on();
            drop(news.found.recv().await.unwrap());
            drop(news);
        };
        let call = async {
            assert_eq!(sink.found(Vec::new()).await, Ok(()));
            assert_eq!(sink.found(Vec::new()).await.unwrap_err().code, "refused");
            assert_eq!(sink.found(Vec::new()).await.unwrap_err().code, "refused");
        };
        tokio::join!(judge, call);
    }

    #[test]
    fn without_a_listener_progress_goes_nowhere() {
        let (
            mut sink,
            News {
                progress: mut news, ..
            },
        ) = ReplySink::new(false, Cancel::default());
        sink.progress(1.0, None, None);
        assert!(!sink.wants_progress());
        assert!(news.try_recv().is_err());
    }

    #[test]
    fn data_is_an_object_and_a_text() {
        let answer = Answer::data(json!([1, 2]));
        assert_eq!(answer.content, [Content::Text("[1,2]".into())]);
        assert_eq!(
            Value::Object(answer.structured.unwrap()),
            json!({"value": [1, 2]})
        );
    }

    #[test]
    fn arguments_that_do_not_fit_are_a_failure_that_names_them() {
        let failure = Failure::from(Unfit::member("ms", "is required"));
        assert_eq!(
            failure.json(),
            json!({
                "code": "unfit_arguments",
                "message": "arguments do not fit: \"ms\" is required",
                "retryable": false,
                "faults": [{"member": "ms", "wrong": "is required"}],
            })
        );
    }
}
