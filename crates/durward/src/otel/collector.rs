//! Requests to the collector, over our own HTTP client.

use net::outbound::http::{
    HeaderMap, HeaderName, HeaderValue, HttpClient, HttpOptions, Lane, Method, Target, header,
};

use super::counts::Sent;
use crate::config::otel::Otel;

/// Longest wait that a collector may ask for, in milliseconds.
const RETRY_AFTER_MS_MAX: u64 = 30_000;

/// One collector.
pub struct Collector {
    traces: HttpClient,
    metrics: HttpClient,
    try_ms_max: u64,
}

/// What is sent.
#[derive(Debug, Clone, Copy)]
pub enum Signal {
    Traces,
    Metrics,
}

/// How one try ended.
pub struct Tried {
    pub sent: Sent,
    /// In words, where it was not taken.
    pub why: String,
    /// What the collector asks to wait, in milliseconds.
    pub retry_after_ms: Option<u64>,
}

impl Collector {
    pub fn new(target: &Target, otel: &Otel) -> Result<Self, String> {
        let mut headers = HeaderMap::new();
        for (name, value) in &otel.headers.value {
            let name = HeaderName::try_from(name.as_str()).map_err(|e| e.to_string())?;
            let mut value = HeaderValue::try_from(value.reveal())
                .map_err(|_| format!("the value of the header {name} cannot be sent"))?;
            value.set_sensitive(true);
            headers.insert(name, value);
        }
        let options = HttpOptions {
            connections_max: 2,
            connect_ms_max: otel.timeout.value.0,
            headers,
            ..HttpOptions::default()
        };
        let client = HttpClient::new(target.clone(), &options).map_err(|e| e.to_string())?;
        let below = |path| client.below(path).ok_or("the path is not a URL path");
        Ok(Self {
            traces: below("/v1/traces")?,
            metrics: below("/v1/metrics")?,
            try_ms_max: otel.timeout.value.0,
        })
    }

    /// Sends a message once.
    pub async fn send(&self, signal: Signal, body: Vec<u8>) -> Tried {
        let client = match signal {
            Signal::Traces => &self.traces,
            Signal::Metrics => &self.metrics,
        };
        let mut outgoing = client.outgoing(Method::POST, Lane::Call, self.try_ms_max);
        let kind = HeaderValue::from_static("application/x-protobuf");
        outgoing.headers.insert(header::CONTENT_TYPE, kind);
        outgoing.body = body.into();
        let tried = |sent, why, retry_after_ms| Tried {
            sent,
            why,
            retry_after_ms,
        };
        match client.send(outgoing).await {
            Ok(reply) => {
                let status = reply.status();
                let sent = match status.as_u16() {
                    200..=299 => Sent::Accepted,
                    // What OTLP/HTTP has as worth another try.
                    429 | 502 | 503 | 504 => Sent::Unavailable,
                    _ => Sent::Refused,
                };
                let after = reply.headers().get(header::RETRY_AFTER);
                let seconds: Option<u64> = after.and_then(|it| it.to_str().ok()?.parse().ok());
                let after = seconds.map(|s| s.saturating_mul(1_000).min(RETRY_AFTER_MS_MAX));
                tried(sent, format!("the collector answered {status}"), after)
            }
            Err(fault) => tried(Sent::Unreachable, fault.to_string(), None),
        }
    }
}
