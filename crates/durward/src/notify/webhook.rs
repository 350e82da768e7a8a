//! The call as a signed message over HTTP.
//!
//! `Durward-Timestamp` is the time in seconds since 1970; `Durward-Signature` is `sha256=` and the HMAC-SHA-256, in
//! hexadecimal, of the timestamp, a dot and the body. Whoever receives it verifies both before it believes either.

use std::fmt::Write as _;
use std::time::Duration;

use net::outbound::http::{
    HeaderMap, HeaderName, HeaderValue, HttpClient, HttpOptions, Lane, Method, Outgoing,
};
use ring::hmac;
use tokio::time::Instant;

use crate::config::notify::Webhook;
use crate::local;

/// How long one try may take, in milliseconds.
const TRY_MS_MAX: u64 = 5_000;
/// Waits before the second try and the following ones, in milliseconds.
const PAUSES_MS: [u64; 4] = [500, 1_000, 2_000, 4_000];

/// Posts to one address.
pub(super) struct Sender {
    client: HttpClient,
    key: hmac::Key,
}

/// How a try ended.
enum Tried {
    Done,
    /// Another try may help.
    Again(String),
    /// No other try will.
    Refused(String),
}

impl Sender {
    pub fn new(webhook: &Webhook) -> Result<Self, String> {
        let options = HttpOptions {
            connections_max: super::UNDER_WAY_MAX,
            ..HttpOptions::default()
        };
        let client = HttpClient::new(webhook.target.clone(), &options);
        Ok(Self {
            client: client.map_err(|error| error.to_string())?,
            key: hmac::Key::new(hmac::HMAC_SHA256, webhook.secret.reveal().as_bytes()),
        })
    }

    /// Posts a message; tries again while the call waits, for at most `time`.
    pub async fn post(&self, body: &str, time: Duration, waits: &(dyn Fn() -> bool + Sync)) {
        let end = Instant::now() + time;
        let mut pauses = PAUSES_MS.into_iter();
        loop {
            let why = match self.try_once(body).await {
                Tried::Done => return,
                Tried::Refused(why) => {
                    tracing::warn!("approval.notify.webhook: {why}; not sent again");
                    return;
                }
                Tried::Again(why) => why,
            };
            let next = pauses.next().map(Duration::from_millis);
            let Some(pause) = next.filter(|pause| Instant::now() + *pause < end && waits()) else {
                tracing::warn!("approval.notify.webhook: {why}; given up");
                return;
            };
            tokio::time::sleep(pause).await;
        }
    }

    async fn try_once(&self, body: &str) -> Tried {
        let seconds = local::now_ms().div_euclid(1_000).to_string();
        let signature = signature(&self.key, &seconds, body);
        let mut headers = HeaderMap::new();
        for (name, value) in [
            ("content-type", "application/json"),
            ("durward-timestamp", seconds.as_str()),
            ("durward-signature", signature.as_str()),
        ] {
            if let Ok(value) = HeaderValue::from_str(value) {
                headers.insert(HeaderName::from_static(name), value);
            }
        }
        let outgoing = Outgoing {
            method: Method::POST,
            headers,
            body: body.to_owned().into(),
            lane: Lane::Call,
            head_ms_max: TRY_MS_MAX,
        };
        match self.client.send(&outgoing).await {
            Ok(reply) => match reply.status() {
                status if status.is_success() => Tried::Done,
                status if status.is_server_error() || status.as_u16() == 429 => {
                    Tried::Again(format!("answered {status}"))
                }
                status => Tried::Refused(format!("answered {status}")),
            },
            Err(fault) => Tried::Again(fault.to_string()),
        }
    }
}

fn signature(key: &hmac::Key, seconds: &str, body: &str) -> String {
    let mut context = hmac::Context::with_key(key);
    for part in [seconds, ".", body] {
        context.update(part.as_bytes());
    }
    let mut out = "sha256=".to_owned();
    for byte in context.sign().as_ref() {
        // Writing to a string does not fail.
        let _ = write!(out, "{byte:02x}");
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The expected value is of another implementation (`openssl dgst -sha256 -hmac`).
    #[test]
    fn signatures_are_hmac_sha_256() {
        let key = hmac::Key::new(hmac::HMAC_SHA256, b"0123456789abcdef");
        let expect = "sha256=9eb18f493f8ec135d9eb2dad817c369bb4e9cbfa818657897a7437c1cd8c3a23";
        assert_eq!(signature(&key, "1700000000", "{\"a\":1}"), expect);
    }
}
