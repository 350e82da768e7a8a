//! The server's metrics before, during and after a run.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use serde::Serialize;

use crate::driver::HttpConnection;
use crate::error::LabError;
use crate::url::HttpUrl;

/// How long the server has for its metrics.
const TIMEOUT_MS: u64 = 10_000;
/// Most samples of one run.
const SAMPLES_MAX: usize = 100_000;
/// How often the sampler looks whether it is to end.
const GLANCE: Duration = Duration::from_millis(50);

/// The metrics at one moment.
#[derive(Debug, Clone, Default)]
pub(super) struct MetricsScrape {
    /// By name, all label sets together.
    sums: BTreeMap<String, f64>,
    /// By name and labels, as the server writes them.
    each: BTreeMap<String, f64>,
    pub at_s: f64,
}

/// The limits that the server reports as in force; others are absent.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub(super) struct ServerLimits {
    pub connections_to_a_host: Option<f64>,
    pub sessions: Option<f64>,
    pub queue: Option<f64>,
    pub calls_per_minute: Option<f64>,
    pub calls_of_a_tool_per_minute: Option<f64>,
}

/// Returns the text that the server gives.
pub(super) fn text(server: &HttpUrl) -> Result<String, LabError> {
    let failed = |what: String| LabError::Broken {
        arm: "server".into(),
        what,
    };
    let url = server.at("/metrics");
    let opened = HttpConnection::open(&url, TIMEOUT_MS);
    let mut connection = opened.map_err(|error| failed(error.to_string()))?;
    read(&mut connection, &url).map_err(failed)
}

fn read(connection: &mut HttpConnection, url: &HttpUrl) -> Result<String, String> {
    let mut request = url.head("GET", &[]);
    request.extend_from_slice(b"\r\n");
    let reply = connection.exchange(&request);
    let reply = reply.map_err(|(_, error)| error.to_string())?;
    if reply.status != 200 {
        return Err(format!(
            "/metrics was answered with status {}",
            reply.status
        ));
    }
    Ok(String::from_utf8_lossy(connection.body()).into_owned())
}

impl MetricsScrape {
    /// Reads the metrics now.
    pub fn take(server: &HttpUrl) -> Result<Self, String> {
        text(server)
            .map(|text| Self::of(&text, 0.0))
            .map_err(|error| error.to_string())
    }

    /// Reads the text format; a line that is none is passed over.
    fn of(text: &str, at_s: f64) -> Self {
        let mut scrape = Self {
            at_s,
            ..Self::default()
        };
        for line in text.lines().filter(|line| !line.starts_with('#')) {
            let Some((named, value)) = line.rsplit_once(' ') else {
                continue;
            };
            let Ok(value) = value.parse::<f64>() else {
                continue;
            };
            let name = named.split('{').next().unwrap_or(named);
            *scrape.sums.entry(name.to_owned()).or_default() += value;
            scrape.each.insert(named.to_owned(), value);
        }
        scrape
    }

    /// Returns a metric, over all its labels.
    pub fn sum(&self, name: &str) -> Option<f64> {
        self.sums.get(name).copied()
    }

    pub fn in_force(&self) -> ServerLimits {
        // Of several servers the least counts.
        let limit = |name: &str| {
            let label = format!("limit=\"{name}\"");
            let of_name =
                |named: &&String| named.starts_with("mcp_ssh_limit{") && named.contains(&label);
            let found = self.each.iter().filter(|(named, _)| of_name(named));
            found.map(|(_, most)| *most).reduce(f64::min)
        };
        ServerLimits {
            connections_to_a_host: limit("connections"),
            sessions: limit("sessions"),
            queue: limit("queue"),
            calls_per_minute: self.sum("durward_limit_requests_per_minute"),
            calls_of_a_tool_per_minute: self.sum("durward_limit_tool_calls"),
        }
    }
}

/// Reads the metrics again and again on a thread of its own.
pub(super) struct ScrapeSampler {
    stop: Arc<AtomicBool>,
    thread: JoinHandle<Vec<MetricsScrape>>,
}

impl ScrapeSampler {
    pub fn start(server: HttpUrl, every: Duration) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let told = Arc::clone(&stop);
        let thread = std::thread::spawn(move || sampled(&server, every, &told));
        Self { stop, thread }
    }

    /// Stops, and returns the scrapes.
    pub fn finish(self) -> Vec<MetricsScrape> {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.join().unwrap_or_default()
    }
}

fn sampled(server: &HttpUrl, every: Duration, stop: &AtomicBool) -> Vec<MetricsScrape> {
    let (began, url) = (Instant::now(), server.at("/metrics"));
    let (mut samples, mut connection) = (Vec::new(), None);
    while !stop.load(Ordering::Relaxed) && samples.len() < SAMPLES_MAX {
        if connection.is_none() {
            connection = HttpConnection::open(&url, TIMEOUT_MS).ok();
        }
        let read = connection.as_mut().map(|connection| read(connection, &url));
        match read {
            Some(Ok(text)) => samples.push(MetricsScrape::of(&text, began.elapsed().as_secs_f64())),
            _ => connection = None,
        }
        let next = Instant::now() + every;
        while Instant::now() < next && !stop.load(Ordering::Relaxed) {
            std::thread::park_timeout(GLANCE.min(every));
        }
    }
    samples
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metrics_are_read_by_name_and_by_label() {
        let text = "# HELP x y\nmcp_ssh_limit{limit=\"connections\",server=\"ssh\"} 10\nmcp_pool_hits_total 3\n\
mcp_ssh_commands_total{host=\"a b\",status=\"success\"} 4\nmcp_ssh_commands_total{host=\"c\"} 2\nno line\nx nan?\n";
        let scrape = MetricsScrape::of(text, 0.0);
        assert_eq!(scrape.sum("mcp_ssh_commands_total"), Some(6.0));
        assert_eq!(scrape.sum("nothing"), None);
        let told = ServerLimits {
            connections_to_a_host: Some(10.0),
            ..ServerLimits::default()
        };
        assert_eq!(scrape.in_force(), told);
    }
}
