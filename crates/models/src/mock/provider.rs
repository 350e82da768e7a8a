//! The model that answers by a script, as a provider.

use std::future::Future as _;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use dialects::Endpoint;
use gate::{PeerId, Spent};
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use tokio::time::{Instant, Sleep, sleep_until};
use toolkit::server::BoxFuture;

use super::{Api, Manner, Options, Step, answer};
use crate::provider::{Address, Fault, Offer, Provider, Remedy, Reply, ReplyBody, Sent, Trouble};
use crate::request::ModelRequest;

/// A provider without a network.
pub struct MockProvider {
    peer: PeerId,
    offer: Offer,
    options: Options,
    requests: AtomicU64,
}

impl MockProvider {
    /// Returns a provider of this name that offers these models and pauses so long before each token.
    #[must_use]
    pub fn new(name: &str, models: Vec<String>, options: Options) -> Self {
        Self {
            peer: PeerId::server(name),
            offer: Offer {
                models,
                examples: Manner::names().map(str::to_owned).collect(),
                endpoints: Endpoint::ALL.to_vec(),
                translated: Vec::new(),
            },
            options,
            requests: AtomicU64::new(0),
        }
    }

    async fn play(&self, spent: Spent<ModelRequest>, to: Address<'_>) -> Sent {
        let request = spent.request();
        let api = match request.endpoint() {
            Endpoint::Chat => Api::Chat,
            Endpoint::Responses => Api::Responses,
            Endpoint::Embeddings => Api::Embeddings,
            Endpoint::Messages => Api::Messages,
            Endpoint::CountTokens => Api::CountTokens,
            Endpoint::Rerank => Api::Rerank,
            Endpoint::Images | Endpoint::ImageEdits | Endpoint::ImageVariations => Api::Images,
            Endpoint::Speech => Api::Speech,
            Endpoint::Transcriptions | Endpoint::AudioTranslations => Api::Transcription,
        };
        let number = self.requests.fetch_add(1, Ordering::Relaxed);
        let reply = answer(api, &request.fields_for(to.model), self.options, number);
        let head = Instant::now().checked_add(Duration::from_millis(reply.head_ms));
        match head.filter(|head| *head < to.until) {
            Some(_) if reply.head_ms == 0 => {}
            Some(head) => sleep_until(head).await,
            None => {
                sleep_until(to.until).await;
                return Sent::Unserved(spent, Fault::of(Trouble::TooSlow, Remedy::Again));
            }
        }
        let headers = headers(&reply.headers);
        let status = StatusCode::from_u16(reply.status).unwrap_or_default();
        if status.is_success() {
            return Sent::Reply(Reply {
                spent,
                headers,
                format: None,
                left_out: Vec::new(),
                key: None,
                body: Box::new(Play {
                    steps: reply.steps,
                    wait: None,
                }),
            });
        }
        let body: Vec<u8> = reply
            .steps
            .filter_map(|step| match step {
                Step::Bytes(bytes) => Some(bytes),
                Step::Wait(_) | Step::Stall | Step::Cut => None,
            })
            .flatten()
            .collect();
        Sent::Unserved(spent, Fault::answered(status, &headers, body.into()))
    }
}

impl Provider for MockProvider {
    fn peer(&self) -> &PeerId {
        &self.peer
    }

    fn offer(&self) -> &Offer {
        &self.offer
    }

    fn send<'a>(&'a self, spent: Spent<ModelRequest>, to: Address<'a>) -> BoxFuture<'a, Sent> {
        Box::pin(self.play(spent, to))
    }
}

fn headers(scripted: &[(&'static str, String)]) -> HeaderMap {
    let pair = |(name, value): &(&'static str, String)| {
        let value = HeaderValue::try_from(value.as_str()).ok()?;
        Some((HeaderName::from_static(name), value))
    };
    scripted.iter().filter_map(pair).collect()
}

/// A scripted body, played step by step.
struct Play {
    steps: Box<dyn Iterator<Item = Step> + Send>,
    wait: Option<Pin<Box<Sleep>>>,
}

impl ReplyBody for Play {
    fn poll_chunk(&mut self, cx: &mut Context<'_>) -> Poll<Result<Option<Bytes>, Trouble>> {
        loop {
            if let Some(wait) = &mut self.wait {
                ready!(wait.as_mut().poll(cx));
                self.wait = None;
            }
            match self.steps.next() {
                None => return Poll::Ready(Ok(None)),
                Some(Step::Bytes(bytes)) => return Poll::Ready(Ok(Some(bytes.into()))),
                Some(Step::Cut) => return Poll::Ready(Err(Trouble::Cut)),
                Some(Step::Wait(0)) => {}
                Some(Step::Wait(ms)) => {
                    let until = Instant::now() + Duration::from_millis(ms);
                    self.wait = Some(Box::pin(sleep_until(until)));
                }
                Some(Step::Stall) => {
                    // A day is longer than any stream may last.
                    let until = Instant::now() + Duration::from_secs(86_400);
                    self.wait = Some(Box::pin(sleep_until(until)));
                }
            }
        }
    }
}
