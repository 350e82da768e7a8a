//! Messages over HTTP that are signed, so that whoever receives them knows that they are Durward's.
//!
//! `Durward-Timestamp` is the time in seconds since 1970; `Durward-Signature` is `sha256=` and the HMAC-SHA-256, in
//! hexadecimal, of the timestamp, a dot and the body. Whoever receives it verifies both before it believes either.

use std::fmt::Write as _;

use net::outbound::http::{HeaderName, HeaderValue, HttpClient, Lane, Method, Outgoing};
use ring::hmac;

use crate::config::Secret;
use crate::local;

/// The key of signatures.
pub struct Key(hmac::Key);

impl Key {
    pub fn new(secret: &Secret) -> Self {
        let bytes = secret.reveal().as_bytes();
        Self(hmac::Key::new(hmac::HMAC_SHA256, bytes))
    }

    /// A signed JSON message, sent by POST. `head_ms_max` is how long the reply may take to begin.
    pub fn message(&self, client: &HttpClient, body: String, head_ms_max: u64) -> Outgoing {
        let seconds = local::now_ms().div_euclid(1_000).to_string();
        let signature = self.signature(&seconds, &body);
        let mut outgoing = client.outgoing(Method::POST, Lane::Call, head_ms_max);
        for (name, value) in [
            ("content-type", "application/json"),
            ("durward-timestamp", seconds.as_str()),
            ("durward-signature", signature.as_str()),
        ] {
            if let Ok(value) = HeaderValue::from_str(value) {
                outgoing
                    .headers
                    .insert(HeaderName::from_static(name), value);
            }
        }
        outgoing.body = body.into();
        outgoing
    }

    fn signature(&self, seconds: &str, body: &str) -> String {
        let mut context = hmac::Context::with_key(&self.0);
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
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The expected value is of another implementation (`openssl dgst -sha256 -hmac`).
    #[test]
    fn signatures_are_hmac_sha_256() {
        let key = Key(hmac::Key::new(hmac::HMAC_SHA256, b"0123456789abcdef"));
        let expect = "sha256=9eb18f493f8ec135d9eb2dad817c369bb4e9cbfa818657897a7437c1cd8c3a23";
        assert_eq!(key.signature("1700000000", "{\"a\":1}"), expect);
    }
}
