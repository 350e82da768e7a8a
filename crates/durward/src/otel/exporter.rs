//! The thread that sends.

use std::sync::Arc;
use std::time::Duration;

use net::timers::kept;
use otlp::{ProcessResource, Span, metrics_request, trace_request};
use tokio::time::{Instant, sleep_until, timeout};

use super::collector::{Collector, Signal};
use super::counts::{Counts, Sent};
use super::queue::Queue;
use super::{FLUSH_MS_MAX, Metrics, now_ns, openmetrics};

/// How long spans are gathered before they are sent, in milliseconds.
const GATHER_MS: u64 = 1_000;
/// Most spans in one request.
const BATCH_MAX: usize = 512;
/// Waits before the second try of a request and the following ones, in milliseconds.
const PAUSES_MS: [u64; 3] = [500, 1_000, 2_000];

/// What sends.
pub struct Exporter {
    pub queue: Arc<Queue>,
    pub counts: Arc<Counts>,
    pub collector: Collector,
    pub resource: ProcessResource,
    /// How often metrics are sent; `None`: never.
    pub interval: Option<Duration>,
    /// When counting began.
    pub begun_ns: u64,
}

impl Exporter {
    /// Sends until the queue is closed and empty: whether there was time for the last. Blocks the thread.
    pub fn run(self, metrics: &Metrics) -> bool {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build();
        match runtime {
            Ok(runtime) => runtime.block_on(self.send(metrics)),
            Err(error) => {
                tracing::warn!("otel: cannot start the export: {error}");
                true
            }
        }
    }

    async fn send(self, metrics: &Metrics) -> bool {
        let mut told = Told::default();
        let mut due = self.interval.map(|interval| Instant::now() + interval);
        while !self.queue.is_closed() {
            let is_due = self.wait(due).await;
            if is_due {
                due = self.interval.map(|interval| Instant::now() + interval);
            }
            if is_due && !self.queue.is_closed() {
                self.metrics(metrics, &mut told).await;
            }
            if !self.queue.is_closed() {
                self.spans(&mut told).await;
            }
        }
        let last = async {
            self.spans(&mut told).await;
            if self.interval.is_some() {
                self.metrics(metrics, &mut told).await;
            }
        };
        // Whoever waits for the end gives up then.
        let time = Duration::from_millis(FLUSH_MS_MAX);
        timeout(time, last).await.is_ok()
    }

    /// Returns when there are spans that were gathered for a while, or metrics are due: whether they are.
    async fn wait(&self, due: Option<Instant>) -> bool {
        let metrics = async {
            match due {
                Some(due) => kept(|| sleep_until(due)).await,
                None => std::future::pending().await,
            }
        };
        let spans = async {
            while self.queue.is_empty() && !self.queue.is_closed() {
                self.queue.woken().await;
            }
            self.pause(Duration::from_millis(GATHER_MS)).await;
        };
        tokio::select! {
            () = spans => false,
            () = metrics => true,
        }
    }

    /// Waits, but not while the queue is half full or closed.
    async fn pause(&self, time: Duration) {
        let until = Instant::now() + time;
        while !self.queue.is_closed() && !self.queue.is_half_full() && Instant::now() < until {
            tokio::select! {
                () = kept(|| sleep_until(until)) => {}
                () = self.queue.woken() => {}
            }
        }
    }

    async fn spans(&self, told: &mut Told) {
        let spans = self.queue.take();
        for batch in spans.chunks(BATCH_MAX) {
            let number = batch.len();
            if self.deliver(batch, told).await {
                self.counts.exported(number);
            } else {
                self.counts.failed(number);
            }
        }
    }

    /// Sends spans, a bounded number of times; whether they were taken.
    async fn deliver(&self, spans: &[Span], told: &mut Told) -> bool {
        let mut pauses = PAUSES_MS.into_iter();
        loop {
            let body = trace_request(&self.resource, spans);
            let tried = self.collector.send(Signal::Traces, body).await;
            self.counts.sent(tried.sent);
            told.tell(tried.sent, &tried.why);
            match tried.sent {
                Sent::Accepted => return true,
                Sent::Refused => return false,
                Sent::Unavailable | Sent::Unreachable => {}
            }
            let Some(pause) = pauses.next().filter(|_| !self.queue.is_closed()) else {
                return false;
            };
            let time = tried.retry_after_ms.map_or(pause, |asked| asked.max(pause));
            self.pause_between(Duration::from_millis(time)).await;
        }
    }

    /// Waits between two tries; the end of the process ends it.
    async fn pause_between(&self, time: Duration) {
        let until = Instant::now() + time;
        while !self.queue.is_closed() && Instant::now() < until {
            tokio::select! {
                () = kept(|| sleep_until(until)) => {}
                () = self.queue.woken() => {}
            }
        }
    }

    /// Sends metrics once: the next ones hold all that these did.
    async fn metrics(&self, metrics: &Metrics, told: &mut Told) {
        let Some(text) = metrics() else {
            return;
        };
        let metrics = openmetrics::read(&text);
        let body = metrics_request(&self.resource, &metrics, (self.begun_ns, now_ns()));
        let tried = self.collector.send(Signal::Metrics, body).await;
        self.counts.sent(tried.sent);
        told.tell(tried.sent, &tried.why);
    }
}

/// Whether it was said that the collector does not take what is sent.
#[derive(Default)]
struct Told(bool);

impl Told {
    fn tell(&mut self, sent: Sent, why: &str) {
        let is_well = sent == Sent::Accepted;
        if is_well != self.0 {
            return;
        }
        self.0 = !is_well;
        if is_well {
            tracing::info!("otel: the collector accepts spans and metrics again");
        } else {
            tracing::warn!(
                "otel: {why}; calls go on; what the collector does not accept is dropped"
            );
        }
    }
}
