//! Requests signed as AWS wants them: Signature Version 4.
//!
//! What is signed: the method, the path and the query, the host, the kind and the digest of the body, the time, and the session
//! token where there is one.

use std::fmt::Write as _;

use http::header::AUTHORIZATION;
use http::{HeaderMap, HeaderName, HeaderValue};
use ring::{digest, hmac};

use super::api::escape_byte;
use crate::key::{AwsKey, hidden};

const DATE: HeaderName = HeaderName::from_static("x-amz-date");
const TOKEN: HeaderName = HeaderName::from_static("x-amz-security-token");
const ALGORITHM: &str = "AWS4-HMAC-SHA256";

/// What a signature is good for.
#[derive(Debug, Clone, Copy)]
pub(super) struct Scope<'a> {
    pub region: &'a str,
    pub service: &'a str,
}

/// A request as it is sent, beside its headers.
#[derive(Debug, Clone, Copy)]
pub(super) struct Asked<'a> {
    pub method: &'a str,
    /// As in the header `Host`.
    pub host: &'a str,
    /// As it stands in the first line: escaped once.
    pub path: &'a str,
    /// Behind the question mark: escaped, and its members in order.
    pub query: &'a str,
    pub body: &'a [u8],
}

/// Puts the time, the session token and the signature into the headers; `None` where they cannot stand there.
pub(super) fn sign(
    key: &AwsKey,
    scope: Scope<'_>,
    asked: Asked<'_>,
    now_ms: i64,
    headers: &mut HeaderMap,
) -> Option<()> {
    let time = compact(now_ms);
    let day = time.get(..8)?;
    headers.insert(DATE, HeaderValue::try_from(&time).ok()?);
    if let Some(token) = key.token() {
        headers.insert(TOKEN, hidden(token)?);
    }
    let mut signed = vec![("host", asked.host.trim())];
    for name in ["content-type", "x-amz-date", "x-amz-security-token"] {
        if let Some(value) = headers.get(name) {
            signed.push((name, value.to_str().ok()?.trim()));
        }
    }
    signed.sort_unstable();
    let names = signed.iter().map(|(name, _)| *name);
    let names = names.collect::<Vec<_>>().join(";");
    let mut canonical = format!("{}\n", asked.method);
    for byte in asked.path.bytes() {
        match byte {
            b'/' => canonical.push('/'),
            // The path's own escapes are escaped once more.
            other => escape_byte(other, &mut canonical),
        }
    }
    canonical.push('\n');
    canonical.push_str(asked.query);
    canonical.push('\n');
    for (name, value) in &signed {
        // Of spaces within a value one is left.
        let words: Vec<&str> = value.split_ascii_whitespace().collect();
        writeln!(canonical, "{name}:{}", words.join(" ")).ok()?;
    }
    write!(canonical, "\n{names}\n{}", sha256(asked.body)).ok()?;
    let within = format!("{day}/{}/{}/aws4_request", scope.region, scope.service);
    let text = format!(
        "{ALGORITHM}\n{time}\n{within}\n{}",
        sha256(canonical.as_bytes())
    );
    let mut secret = hmac::Key::new(hmac::HMAC_SHA256, key.seed().as_bytes());
    for part in [day, scope.region, scope.service, "aws4_request"] {
        let derived = hmac::sign(&secret, part.as_bytes());
        secret = hmac::Key::new(hmac::HMAC_SHA256, derived.as_ref());
    }
    let signature = hex(hmac::sign(&secret, text.as_bytes()).as_ref());
    let access = key.access();
    let shown = format!(
        "{ALGORITHM} Credential={access}/{within}, SignedHeaders={names}, Signature={signature}"
    );
    headers.insert(AUTHORIZATION, hidden(&shown)?);
    Some(())
}

/// `20261121T033809Z`
fn compact(ms: i64) -> String {
    let text = gate::journal::format_utc(ms);
    let seconds = text.split('.').next().unwrap_or_default();
    let mut out = seconds.replace(['-', ':'], "");
    out.push('Z');
    out
}

fn sha256(bytes: &[u8]) -> String {
    hex(digest::digest(&digest::SHA256, bytes).as_ref())
}

fn hex(bytes: &[u8]) -> String {
    let mut out = String::with_capacity(bytes.len() * 2);
    for byte in bytes {
        // Writing to a string cannot fail.
        let _ = write!(out, "{byte:02x}");
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The key, the time and the scope of AWS's published test suite.
    const SECRET: &str = "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY";
    const NOW_MS: i64 = 1_440_938_160_000;
    const SCOPE: Scope<'_> = Scope {
        region: "us-east-1",
        service: "service",
    };

    fn signature(method: &str, path: &str, query: &str, token: Option<&str>) -> (String, String) {
        let key = AwsKey::new("AKIDEXAMPLE", SECRET, token).unwrap();
        let asked = Asked {
            method,
            host: "example.amazonaws.com",
            path,
            query,
            body: b"",
        };
        let mut headers = HeaderMap::new();
        sign(&key, SCOPE, asked, NOW_MS, &mut headers).unwrap();
        let shown = headers.get(AUTHORIZATION).unwrap();
        assert!(shown.is_sensitive());
        let shown = shown.to_str().unwrap();
        let (head, signature) = shown.rsplit_once("Signature=").unwrap();
        (head.to_owned(), signature.to_owned())
    }

    #[test]
    fn signatures_are_those_of_the_published_suite() {
        let head = "AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20150830/us-east-1/service/aws4_request, SignedHeaders=host;x-amz-date, ";
        let suite = [
            (
                // get-vanilla
                ("GET", "/", ""),
                "5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31",
            ),
            (
                // post-vanilla
                ("POST", "/", ""),
                "5da7c1a2acd57cee7505fc6676e4e544621c30862966e37dddb68e92efbe5d6b",
            ),
            (
                // get-vanilla-query-order-key-case
                ("GET", "/", "Param1=value1&Param2=value2"),
                "b97d918cfa904a5beff61c982a1b6f458b799221646efd99d3219ec94cdf2500",
            ),
        ];
        for ((method, path, query), expect) in suite {
            let (shown, found) = signature(method, path, query, None);
            assert_eq!(
                (shown.as_str(), found.as_str()),
                (head, expect),
                "{method} {query}"
            );
        }
    }

    #[test]
    fn a_session_token_is_signed_and_every_part_counts() {
        let (head, plain) = signature("POST", "/model/a%3A0/invoke", "", Some("tok"));
        assert!(
            head.contains("host;x-amz-date;x-amz-security-token"),
            "{head}"
        );
        // As botocore computes it.
        assert_eq!(
            plain,
            "4b2c62129667618f678a958f2818cf93e22c2457a6b084a7eecd79d73b56eb88"
        );
        for (method, path, token) in [
            ("GET", "/model/a%3A0/invoke", "tok"),
            ("POST", "/model/a:0/invoke", "tok"),
            ("POST", "/model/a%3A0/invoke", "toc"),
        ] {
            assert_ne!(signature(method, path, "", Some(token)).1, plain, "{path}");
        }
    }
}
