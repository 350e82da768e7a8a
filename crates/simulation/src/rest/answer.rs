//! Answers and errors in the bridge's shapes.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use gate::identity::IdentityFault;
use http::header::{ALLOW, CONTENT_TYPE, RETRY_AFTER, WWW_AUTHENTICATE};
use http::request::Parts;
use http::{HeaderName, HeaderValue, StatusCode};
use net::http::server::{Response, ResponseBody};
use serde_json::{Value, json};
use toolkit::face::Challenge;

use crate::fault::{Fault, Kind, envelope};
use crate::models::uuid;

static CORRELATION: HeaderName = HeaderName::from_static("x-correlation-id");
/// Longest correlation id that is sent back, in bytes.
const CORRELATION_BYTES_MAX: usize = 128;
/// When a client that was refused for too many calls may try again, in seconds.
const RETRY_AFTER_S: HeaderValue = HeaderValue::from_static("1");

/// One answer under way: it carries the request's correlation id.
pub(super) struct PendingAnswer {
    correlation: HeaderValue,
}

impl PendingAnswer {
    pub(super) fn of(head: &Parts) -> Self {
        let sent = head.headers.get(&CORRELATION).cloned();
        let fit = |value: &HeaderValue| {
            !value.is_empty() && value.len() <= CORRELATION_BYTES_MAX && value.to_str().is_ok()
        };
        let made = || HeaderValue::from_str(&fresh()).unwrap_or(HeaderValue::from_static("none"));
        Self {
            correlation: sent.filter(fit).unwrap_or_else(made),
        }
    }

    /// Returns a response with the correlation id.
    pub(super) fn with(&self, mut response: Response) -> Response {
        let headers = response.headers_mut();
        headers.insert(&CORRELATION, self.correlation.clone());
        response
    }

    pub(super) fn json(&self, status: u16, body: &Value) -> Response {
        let mut response = http::Response::new(ResponseBody::from(body.to_string().into_bytes()));
        *response.status_mut() = StatusCode::from_u16(status).unwrap_or_default();
        let kind = HeaderValue::from_static("application/json");
        response.headers_mut().insert(CONTENT_TYPE, kind);
        self.with(response)
    }

    pub(super) fn fault(&self, fault: &Fault) -> Response {
        let correlation = self.correlation.to_str().unwrap_or_default();
        let details = (!fault.details.is_empty()).then(|| json!(fault.details));
        let retryable = fault.kind.is_retryable();
        let label = fault.kind.label();
        let body = envelope(
            label,
            &fault.message,
            correlation,
            retryable,
            details.as_ref(),
        );
        let mut response = self.json(fault.kind.status(), &body);
        if fault.kind.status() == 429 {
            response.headers_mut().insert(RETRY_AFTER, RETRY_AFTER_S);
        }
        response
    }

    /// Returns the answer to another method than these; where GET is known, HEAD is too.
    pub(super) fn not_allowed(&self, allowed: &str) -> Response {
        let allowed = &allowed.replace("GET", "GET, HEAD");
        let wrong = format!("only {allowed} is known here");
        let mut response = self.fault(&Fault::new(Kind::InvalidInput, wrong));
        *response.status_mut() = StatusCode::METHOD_NOT_ALLOWED;
        if let Ok(allowed) = HeaderValue::from_str(allowed) {
            response.headers_mut().insert(ALLOW, allowed);
        }
        response
    }

    /// Returns the answer to a caller without a valid credential.
    pub(super) fn unknown(&self, fault: IdentityFault) -> Response {
        let challenge = Challenge::of(fault);
        let kind = match challenge.status {
            403 => Kind::Forbidden,
            _ => Kind::Unauthorized,
        };
        let mut response = self.fault(&Fault::new(kind, fault.sentence()));
        if let Ok(status) = StatusCode::from_u16(challenge.status) {
            *response.status_mut() = status;
        }
        let challenge = HeaderValue::from_static(challenge.header());
        response.headers_mut().insert(WWW_AUTHENTICATE, challenge);
        response
    }
}

/// Returns an id in the form of a UUID: unique in this process, and no secret.
fn fresh() -> String {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let now = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    let mut hasher = blake3::Hasher::new();
    hasher.update(&now.as_nanos().to_le_bytes());
    hasher.update(&std::process::id().to_le_bytes());
    hasher.update(&COUNT.fetch_add(1, Ordering::Relaxed).to_le_bytes());
    // Version 4, as readers of UUIDs expect it.
    uuid(hasher.finalize().as_bytes(), "4")
}

#[cfg(test)]
mod tests {
    #[test]
    fn fresh_ids_look_like_uuids_and_differ() {
        let (one, other) = (super::fresh(), super::fresh());
        assert_ne!(one, other);
        let lengths: Vec<usize> = one.split('-').map(str::len).collect();
        assert_eq!(lengths, [8, 4, 4, 4, 12]);
        assert_eq!(&one[14..15], "4");
    }
}
