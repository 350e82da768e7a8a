//! Getting a token: from an endpoint of tokens, from the server of a machine's metadata, or from a file.

use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use http::header::{ACCEPT, CONTENT_TYPE, RETRY_AFTER};
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use net::outbound::http::{HttpClient, HttpOptions, Lane, Method, Outgoing, Target};
use serde::Deserialize;
use tokio::time::Instant;
use zeroize::Zeroizing;

use super::super::api::escape_byte;
use super::credential::{CREDENTIAL_BYTES_MAX, Way};
use super::{FETCH_MS_MAX, Got};
use crate::key::Key;
use crate::provider::{Fault, Remedy, Trouble};
use crate::upstream::{ProviderFault, replies};

/// Longest answer that is read, in bytes.
const ANSWER_BYTES_MAX: usize = 64 * 1024;
/// How long a token from a file is kept before the file is read again, in milliseconds.
const FILE_MS: u64 = 60_000;
/// Longest time that a token is believed to be good, in milliseconds.
const GOOD_MS_MAX: u64 = 12 * 3_600_000;
/// Most characters of an endpoint's own words that are logged.
const SAID_CHARS_MAX: usize = 200;
/// What an account's own signature is given a token for.
const JWT_BEARER: &str = "urn:ietf:params:oauth:grant-type:jwt-bearer";
/// Where the machine's own account has its token.
const METADATA_PATH: &str = "/computeMetadata/v1/instance/service-accounts/default/token";
const FLAVOR: HeaderName = HeaderName::from_static("metadata-flavor");

/// Where tokens come from, ready to be asked.
pub(super) enum Source {
    File(PathBuf),
    Endpoint(Box<HttpClient>, Way),
}

/// What an endpoint answers.
#[derive(Deserialize, Default)]
struct Answer {
    access_token: Option<Zeroizing<String>>,
    expires_in: Option<serde_json::Value>,
    error: Option<serde_json::Value>,
    error_description: Option<serde_json::Value>,
}

impl Source {
    pub fn new(way: Way, insecure: bool) -> Result<Self, ProviderFault> {
        let (url, insecure) = match &way {
            Way::File(path) => return Ok(Self::File(path.clone())),
            Way::ServiceAccount { token_uri, .. } | Way::User { token_uri, .. } => {
                (token_uri.clone(), insecure)
            }
            // It is the machine's own host, and speaks nothing else.
            Way::Metadata(host) => (format!("http://{host}{METADATA_PATH}"), true),
        };
        let target = Target::parse(&url, insecure).map_err(ProviderFault::Tokens)?;
        let options = HttpOptions {
            connections_max: 2,
            ..HttpOptions::default()
        };
        let client = HttpClient::new(target, &options).map_err(ProviderFault::Tls)?;
        Ok(Self::Endpoint(Box::new(client), way))
    }

    /// Gets a token. Whoever asks sees to it that this ends.
    pub async fn fetch(&self, until: Instant) -> Result<Got, Fault> {
        match self {
            Self::File(path) => {
                let path = path.clone();
                let read = tokio::task::spawn_blocking(move || from_file(&path));
                let read = read.await.unwrap_or(None);
                read.ok_or(Fault::of(Trouble::Credentials, Remedy::NextTarget))
            }
            Self::Endpoint(client, way) => ask(client, way, until).await,
        }
    }
}

/// A token from a file; `None` where there is none.
fn from_file(path: &Path) -> Option<Got> {
    let read = || -> std::io::Result<Zeroizing<String>> {
        if !std::fs::metadata(path)?.is_file() {
            return Err(std::io::ErrorKind::InvalidInput.into());
        }
        let mut text = Zeroizing::new(String::new());
        let file = std::fs::File::open(path)?;
        file.take(CREDENTIAL_BYTES_MAX).read_to_string(&mut text)?;
        Ok(text)
    };
    let key = match read() {
        Ok(text) => Key::new(text.trim()),
        Err(error) => {
            let path = path.display();
            tracing::warn!("the file with the access token cannot be read: {path}: {error}");
            return None;
        }
    };
    if key.is_none() {
        tracing::warn!("the file {} has no access token", path.display());
    }
    Some(Got {
        key: key?,
        good_ms: FILE_MS,
    })
}

async fn ask(client: &HttpClient, way: &Way, until: Instant) -> Result<Got, Fault> {
    let outgoing = outgoing(client, way, until)
        .ok_or_else(|| Fault::of(Trouble::Credentials, Remedy::NextTarget))?;
    let mut reply = client.send(outgoing).await.map_err(|fault| {
        tracing::warn!("no access token from {}: {fault}", client.target());
        replies::of_http(&fault)
    })?;
    let (status, headers) = (reply.status(), reply.headers().clone());
    let body = reply.bytes(ANSWER_BYTES_MAX).await.map_err(|fault| {
        tracing::warn!("no access token from {}: {fault}", client.target());
        Fault::of(Trouble::from(&fault), Remedy::Again)
    })?;
    let answer: Option<Answer> = serde_json::from_slice(&body).ok();
    let is_read = answer.is_some();
    let answer = answer.unwrap_or_default();
    if status == StatusCode::OK
        && let Some(key) = answer
            .access_token
            .as_deref()
            .and_then(|text| Key::new(text))
    {
        return Ok(Got {
            key,
            good_ms: good_ms(answer.expires_in.as_ref()),
        });
    }
    tracing::warn!(
        "no access token from {}: {status} {}",
        client.target(),
        said(&answer, way)
    );
    Err(refusal(status, &headers, &answer, is_read))
}

/// How long a token is good; some endpoints say so as a text.
fn good_ms(said: Option<&serde_json::Value>) -> u64 {
    let seconds = said.and_then(|own| match own {
        serde_json::Value::String(text) => text.parse().ok(),
        number => number.as_u64(),
    });
    // Google's are good for an hour.
    seconds
        .unwrap_or(3_600)
        .saturating_mul(1_000)
        .min(GOOD_MS_MAX)
}

fn refusal(status: StatusCode, headers: &HeaderMap, answer: &Answer, is_read: bool) -> Fault {
    let code = answer.error.as_ref().and_then(serde_json::Value::as_str);
    let passes = [
        "internal_failure",
        "server_error",
        "temporarily_unavailable",
    ];
    let (trouble, remedy) = match status.as_u16() {
        200..=399 => (Trouble::Malformed, Remedy::NextTarget),
        429 => (Trouble::RateLimited, Remedy::NextTarget),
        408 | 500..=599 => (Trouble::Failed, Remedy::Again),
        _ if code.is_some_and(|code| passes.contains(&code)) => (Trouble::Failed, Remedy::Again),
        // A page of something in between, and no word of the endpoint's own.
        400 | 404 if !is_read => (Trouble::Malformed, Remedy::NextTarget),
        _ => (Trouble::Credentials, Remedy::NextTarget),
    };
    let mut fault = Fault::of(trouble, remedy);
    let seconds = headers.get(RETRY_AFTER).and_then(|own| own.to_str().ok());
    let seconds = seconds.and_then(|text| text.trim().parse::<u64>().ok());
    fault.retry_after_ms = seconds.map(|s| s.saturating_mul(1_000));
    fault
}

/// An endpoint's own words, for the operator; nothing where they repeat a secret.
fn said(answer: &Answer, way: &Way) -> String {
    let word = |own: &Option<serde_json::Value>| {
        let text = own.as_ref().and_then(serde_json::Value::as_str);
        text.unwrap_or_default().to_owned()
    };
    let text = format!(
        "{} {}",
        word(&answer.error),
        word(&answer.error_description)
    );
    let secrets: [&str; 2] = match way {
        Way::User {
            client_secret,
            refresh_token,
            ..
        } => [client_secret.reveal(), refresh_token.reveal()],
        _ => ["", ""],
    };
    if secrets
        .iter()
        .any(|own| !own.is_empty() && text.contains(own))
    {
        return String::new();
    }
    let shown: String = text.chars().take(SAID_CHARS_MAX).collect();
    shown.escape_debug().to_string()
}

/// The request for a token; `None` where it cannot be signed.
fn outgoing(client: &HttpClient, way: &Way, until: Instant) -> Option<Outgoing> {
    let left = until.saturating_duration_since(Instant::now()).as_millis();
    let head_ms_max = u64::try_from(left).unwrap_or(FETCH_MS_MAX);
    let mut outgoing = client.outgoing(Method::POST, Lane::Call, head_ms_max);
    let json = HeaderValue::from_static("application/json");
    outgoing.headers.insert(ACCEPT, json);
    let mut form = Form::default();
    match way {
        Way::ServiceAccount {
            signer,
            email,
            key_id,
            token_uri,
        } => {
            let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
            let now_s = i64::try_from(since.ok()?.as_secs()).ok()?;
            let assertion = signer.assertion(email, key_id.as_deref(), token_uri, now_s)?;
            form.push("assertion", &assertion);
            form.push("grant_type", JWT_BEARER);
        }
        Way::User {
            client_id,
            client_secret,
            refresh_token,
            ..
        } => {
            form.push("grant_type", "refresh_token");
            form.push("client_id", client_id);
            form.push("client_secret", client_secret.reveal());
            form.push("refresh_token", refresh_token.reveal());
        }
        Way::Metadata(_) => {
            outgoing.method = Method::GET;
            let google = HeaderValue::from_static("Google");
            outgoing.headers.insert(FLAVOR, google);
            return Some(outgoing);
        }
        Way::File(_) => return None,
    }
    let kind = HeaderValue::from_static("application/x-www-form-urlencoded");
    outgoing.headers.insert(CONTENT_TYPE, kind);
    outgoing.body = form.0.into_bytes().into();
    Some(outgoing)
}

/// A form's fields, as the web writes them.
#[derive(Default)]
struct Form(String);

impl Form {
    fn push(&mut self, name: &str, value: &str) {
        if !self.0.is_empty() {
            self.0.push('&');
        }
        self.0.push_str(name);
        self.0.push('=');
        for byte in value.bytes() {
            escape_byte(byte, &mut self.0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::GoogleCredential;
    use super::*;

    fn answer(text: &str) -> Answer {
        serde_json::from_str(text).unwrap()
    }

    #[test]
    fn each_answer_without_a_token_has_its_meaning() {
        let cases = [
            (
                400,
                r#"{"error":"invalid_grant"}"#,
                true,
                Trouble::Credentials,
                Remedy::NextTarget,
            ),
            (
                401,
                r#"{"error":"invalid_client"}"#,
                true,
                Trouble::Credentials,
                Remedy::NextTarget,
            ),
            (403, "{}", true, Trouble::Credentials, Remedy::NextTarget),
            (
                400,
                r#"{"error":"temporarily_unavailable"}"#,
                true,
                Trouble::Failed,
                Remedy::Again,
            ),
            (400, "{}", false, Trouble::Malformed, Remedy::NextTarget),
            (429, "{}", true, Trouble::RateLimited, Remedy::NextTarget),
            (500, "{}", false, Trouble::Failed, Remedy::Again),
            (302, "{}", false, Trouble::Malformed, Remedy::NextTarget),
            (
                200,
                r#"{"id_token":"x"}"#,
                true,
                Trouble::Malformed,
                Remedy::NextTarget,
            ),
        ];
        let mut headers = HeaderMap::new();
        headers.insert(RETRY_AFTER, HeaderValue::from_static("7"));
        for (status, text, is_read, trouble, remedy) in cases {
            let status = StatusCode::from_u16(status).unwrap();
            let fault = refusal(status, &headers, &answer(text), is_read);
            assert_eq!(
                (fault.trouble, fault.remedy),
                (trouble, remedy),
                "{status} {text}"
            );
            assert_eq!(fault.retry_after_ms, Some(7_000));
        }
    }

    #[test]
    fn a_tokens_time_is_read_however_it_is_written_and_bounded() {
        for (text, ms) in [
            (r#"{"expires_in":60}"#, 60_000),
            (r#"{"expires_in":"60"}"#, 60_000),
            (r#"{"expires_in":-1}"#, 3_600_000),
            ("{}", 3_600_000),
            (r#"{"expires_in":18446744073709551615}"#, GOOD_MS_MAX),
        ] {
            assert_eq!(good_ms(answer(text).expires_in.as_ref()), ms, "{text}");
        }
    }

    #[test]
    fn what_an_endpoint_says_is_logged_without_a_secret() {
        let user = r#"{"type":"authorized_user","client_id":"i","client_secret":"c4nary-s","refresh_token":"1//r"}"#;
        let way = GoogleCredential::read(user.as_bytes()).unwrap().way;
        let told = |description: &str| {
            let text =
                serde_json::json!({ "error": "invalid_grant", "error_description": description });
            said(&answer(&text.to_string()), &way)
        };
        assert_eq!(told("no\nmore"), "invalid_grant no\\nmore");
        assert_eq!(told("the secret c4nary-s is old"), "");
        assert_eq!(told("1//r is revoked"), "");
        assert!(told(&"x".repeat(9_999)).len() <= SAID_CHARS_MAX);
    }
}
