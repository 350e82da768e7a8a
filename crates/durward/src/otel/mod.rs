//! Export of spans and metrics to an OpenTelemetry collector.
//!
//! It stands beside the calls. A call that is over leaves a span in a bounded queue and goes on; a thread of its own
//! with a runtime of its own sends them. Where the collector is slow or gone the queue fills, and further spans are
//! dropped and counted. No span has an argument, a result, a session's name or a key in it.

mod collector;
mod counts;
mod exporter;
mod openmetrics;
mod queue;
mod span;

use std::sync::Arc;
use std::sync::mpsc::{Receiver, sync_channel};
use std::time::Duration;

use gate::{Gate, Observed, Observer};
use otlp::{Attribute, ProcessResource};
use toolkit::measure::Measure;

use crate::config::otel::Otel;
use crate::failure::Failure;
use crate::local;
use collector::Collector;
use counts::Counts;
use exporter::Exporter;
use queue::Queue;

/// How long the end waits for what is still to be sent, in milliseconds.
const FLUSH_MS_MAX: u64 = 2_000;

/// Metrics at this moment, in the OpenMetrics text format; `None` where they cannot be written.
pub type Metrics = Box<dyn Fn() -> Option<String> + Send>;

/// The export of one process.
pub struct Telemetry {
    queue: Arc<Queue>,
    counts: Arc<Counts>,
    sampling: f64,
    traces: bool,
    /// What begins the thread; taken by [`Telemetry::begin`].
    exporter: std::sync::Mutex<Option<Exporter>>,
    ended: std::sync::Mutex<Option<Receiver<bool>>>,
}

impl Telemetry {
    /// As configured; `None` where nothing is exported.
    ///
    /// # Errors
    /// Where certificates of the system cannot be used, or there is no randomness.
    pub fn of(otel: &Otel) -> Result<Option<Arc<Self>>, Failure> {
        let Some(endpoint) = &otel.endpoint else {
            return Ok(None);
        };
        let collector = Collector::new(&endpoint.value, otel)
            .map_err(|why| Failure::configuration(format!("otel.endpoint: {why}")))?;
        let places = usize::try_from(otel.queue.value).unwrap_or(usize::MAX);
        let (queue, counts) = (Arc::new(Queue::new(places)), Arc::new(Counts::default()));
        let exporter = Exporter {
            queue: Arc::clone(&queue),
            counts: Arc::clone(&counts),
            collector,
            resource: resource(&otel.service.value)?,
            interval: otel
                .metrics
                .value
                .then(|| Duration::from_millis(otel.interval.value.0)),
            begun_ns: now_ns(),
        };
        Ok(Some(Arc::new(Self {
            queue,
            counts,
            sampling: otel.sampling.value,
            traces: otel.traces.value,
            exporter: std::sync::Mutex::new(Some(exporter)),
            ended: std::sync::Mutex::default(),
        })))
    }

    /// Begins to send: the calls of these gates, and what `metrics` says.
    ///
    /// # Errors
    /// Where no thread can be started.
    pub fn begin(self: &Arc<Self>, gates: &[Arc<Gate>], metrics: Metrics) -> Result<(), Failure> {
        let Some(exporter) = taken(&self.exporter) else {
            return Ok(());
        };
        for gate in gates.iter().filter(|_| self.traces) {
            // Nobody else observes a gate.
            let _ = gate.set_observer(Arc::clone(self) as Arc<dyn Observer>);
        }
        let (tell, ended) = sync_channel(1);
        std::thread::Builder::new()
            .name("otel".to_owned())
            .spawn(move || {
                let had_time = exporter.run(&metrics);
                // Nobody may be waiting.
                let _ = tell.try_send(had_time);
            })
            .map_err(|error| Failure::other(format!("cannot start the export: {error}")))?;
        if let Ok(mut place) = self.ended.lock() {
            *place = Some(ended);
        }
        Ok(())
    }

    /// What was exported and what was not, for `/metrics`.
    pub fn measures(&self) -> Vec<Measure> {
        self.counts.measures()
    }

    /// Sends what is left, for at most two seconds.
    pub fn close(&self) {
        self.queue.close();
        let Some(ended) = taken(&self.ended) else {
            return;
        };
        let time = Duration::from_millis(FLUSH_MS_MAX);
        if ended.recv_timeout(time) != Ok(true) {
            tracing::warn!(
                "otel: the collector did not accept the last spans within {FLUSH_MS_MAX} ms"
            );
        }
    }
}

impl Observer for Telemetry {
    fn observe(&self, call: &Observed<'_>) {
        let ids = span::Ids::of(call);
        if !ids.is_sampled(self.sampling) {
            return;
        }
        if !self.queue.has_room() || !self.queue.push(span::of(call, ids, now_ns())) {
            self.counts.dropped();
        }
    }
}

fn taken<T>(place: &std::sync::Mutex<Option<T>>) -> Option<T> {
    place.lock().ok()?.take()
}

/// What every span and metric comes from.
fn resource(service: &str) -> Result<ProcessResource, Failure> {
    let mut random = [0_u8; 16];
    local::random(&mut random).map_err(|e| Failure::other(format!("no randomness: {e}")))?;
    let instance: String = random.iter().map(|byte| format!("{byte:02x}")).collect();
    let version = env!("CARGO_PKG_VERSION");
    Ok(ProcessResource {
        attributes: vec![
            Attribute::text("service.name", service.to_owned()),
            Attribute::text("service.version", version),
            Attribute::text("service.instance.id", instance),
        ],
        scope: ("durward", version),
    })
}

/// Nanoseconds since 1970.
fn now_ns() -> u64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    since.map_or(0, |since| {
        u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
    })
}
