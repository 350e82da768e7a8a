//! Answers: errors in the words of the dialect, replies with the headers that say how they came.

use bytes::Bytes;
use dialects::{Dialect, ErrorText, error_body};
use gate::Refusal;
use gate::identity::IdentityFault;
use http::header::{ALLOW, CACHE_CONTROL, CONTENT_TYPE, RETRY_AFTER, WWW_AUTHENTICATE};
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use net::http::server::{Response, ResponseBody, single};
use toolkit::face::Challenge;
use toolkit::reasons::http_status;

use crate::call::{ESTIMATED, Relay, Trail, Unserved, Whole};

const X_REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");
const REQUEST_ID: HeaderName = HeaderName::from_static("request-id");
const SHOULD_RETRY: HeaderName = HeaderName::from_static("x-should-retry");
const RETRY_AFTER_MS: HeaderName = HeaderName::from_static("retry-after-ms");
const TARGET: HeaderName = HeaderName::from_static("x-durward-target");
const ATTEMPTS: HeaderName = HeaderName::from_static("x-durward-attempts");
const CACHE: HeaderName = HeaderName::from_static("x-durward-cache");
const COST: HeaderName = HeaderName::from_static("x-durward-cost");
const LEFT_OUT: HeaderName = HeaderName::from_static("x-durward-left-out");
const SPARED: HeaderName = HeaderName::from_static("x-durward-spared");

const LIMIT_TOKENS: HeaderName = HeaderName::from_static("x-ratelimit-limit-tokens");
const REMAINING_TOKENS: HeaderName = HeaderName::from_static("x-ratelimit-remaining-tokens");
const RESET_TOKENS: HeaderName = HeaderName::from_static("x-ratelimit-reset-tokens");
const LIMIT_REQUESTS: HeaderName = HeaderName::from_static("x-ratelimit-limit-requests");
const REMAINING_REQUESTS: HeaderName = HeaderName::from_static("x-ratelimit-remaining-requests");
const RESET_REQUESTS: HeaderName = HeaderName::from_static("x-ratelimit-reset-requests");

/// Longest id of a request that is taken over from a caller, in bytes.
const ID_BYTES_MAX: usize = 128;

/// The id that a caller gives its request; `None` where it gives none that can be used.
pub(super) fn request_id(headers: &HeaderMap) -> Option<String> {
    let text = single(headers, &X_REQUEST_ID).ok().flatten()?;
    let fits = |b: u8| b.is_ascii_alphanumeric() || b"._-:".contains(&b);
    let is_id = (1..=ID_BYTES_MAX).contains(&text.len()) && text.bytes().all(fits);
    is_id.then(|| text.to_owned())
}

/// What an error says.
#[derive(Debug, Clone, Copy)]
pub(super) struct Told<'t> {
    code: &'t str,
    message: &'t str,
    param: Option<&'t str>,
    retry_after_ms: Option<u64>,
    /// Whether the caller's own library may try again by itself.
    again: bool,
}

impl<'t> Told<'t> {
    pub fn new(code: &'t str, message: &'t str) -> Self {
        Self {
            code,
            message,
            param: None,
            retry_after_ms: None,
            again: false,
        }
    }

    pub fn about(self, param: Option<&'t str>) -> Self {
        Self { param, ..self }
    }

    /// The same request can pass later.
    pub fn again_after(self, ms: u64) -> Self {
        Self {
            retry_after_ms: Some(ms),
            again: true,
            ..self
        }
    }
}

/// Answers one request.
#[derive(Debug)]
pub(super) struct Answer {
    dialect: Dialect,
    id: String,
}

impl Answer {
    pub fn new(dialect: Dialect, id: String) -> Self {
        Self { dialect, id }
    }

    pub fn id(&self) -> &str {
        &self.id
    }

    pub fn id_value(&self) -> Option<HeaderValue> {
        HeaderValue::try_from(self.id.as_str()).ok()
    }

    /// An answer in JSON.
    pub fn json(&self, status: StatusCode, body: Bytes) -> Response {
        self.with(status, "application/json", ResponseBody::from(body))
    }

    fn with(&self, status: StatusCode, kind: &'static str, body: ResponseBody) -> Response {
        let mut response = http::Response::new(body);
        *response.status_mut() = status;
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(kind));
        if let Some(id) = self.id_value() {
            headers.insert(X_REQUEST_ID, id.clone());
            headers.insert(REQUEST_ID, id);
        }
        response
    }

    /// An error.
    pub fn error(&self, status: StatusCode, told: Told<'_>) -> Response {
        let error = ErrorText {
            message: told.message,
            kind: kind(self.dialect, status),
            code: told.code,
            param: told.param,
            request_id: &self.id,
        };
        let mut response = self.json(status, error_body(self.dialect, &error).into());
        let headers = response.headers_mut();
        if !told.again {
            headers.insert(SHOULD_RETRY, HeaderValue::from_static("false"));
        }
        if let Some(ms) = told.retry_after_ms {
            headers.insert(RETRY_AFTER, HeaderValue::from(ms.div_ceil(1_000)));
            headers.insert(RETRY_AFTER_MS, HeaderValue::from(ms));
        }
        response
    }

    /// Another method is known here.
    pub fn method(&self, known: &'static str) -> Response {
        let told = Told::new("method_not_allowed", "this method is not known here");
        let mut response = self.error(StatusCode::METHOD_NOT_ALLOWED, told);
        let allowed = HeaderValue::from_static(known);
        response.headers_mut().insert(ALLOW, allowed);
        response
    }

    /// Nobody knows who asks.
    pub fn unknown_caller(&self, fault: IdentityFault) -> Response {
        let challenge = Challenge::of(fault);
        let status = StatusCode::from_u16(challenge.status).unwrap_or(StatusCode::UNAUTHORIZED);
        let mut response = self.error(
            status,
            Told::new(fault.label(), fault.sentence().trim_end()),
        );
        let challenge = HeaderValue::from_static(challenge.header());
        response.headers_mut().insert(WWW_AUTHENTICATE, challenge);
        response
    }

    /// No model has this name, or none that the caller may know of.
    pub fn no_model(&self, name: &str) -> Response {
        let name: String = name.chars().take(128).collect();
        let message = format!(
            "there is no model \"{}\" here; /v1/models lists them",
            name.escape_debug()
        );
        let told = Told::new("model_not_found", &message).about(Some("model"));
        self.error(StatusCode::NOT_FOUND, told)
    }

    /// The gate refuses the call.
    pub fn refused(&self, refusal: &Refusal) -> Response {
        self.refused_as(refusal, None)
    }

    /// The same, with a sentence that says more than the reason does.
    pub fn refused_as(&self, refusal: &Refusal, sentence: Option<String>) -> Response {
        let message = sentence.unwrap_or_else(|| refusal.to_string());
        let told = Told {
            retry_after_ms: refusal.retry_after_ms,
            // Whoever waits longer than a minute is not helped by a library that tries again.
            again: refusal.retry_after_ms.is_some_and(|ms| ms <= 60_000),
            ..Told::new(refusal.reason.label(), &message)
        };
        self.error(http_status(refusal.reason), told)
    }

    /// No target serves the call.
    pub fn unserved(&self, unserved: Unserved) -> Response {
        let Unserved { fault, trail } = unserved;
        let told = Told {
            retry_after_ms: fault.retry_after_ms,
            ..Told::new(fault.trouble.label(), fault.trouble.sentence())
        };
        let mut response = match fault.answer {
            // The provider speaks the caller's own words about the caller's own mistake.
            Some((status, body)) => {
                let mut response = self.json(status, body);
                let never = HeaderValue::from_static("false");
                response.headers_mut().insert(SHOULD_RETRY, never);
                response
            }
            None => match &fault.told {
                Some((status, message)) => self.error(*status, Told { message, ..told }),
                None => self.error(fault.trouble.status(), told),
            },
        };
        trace(response.headers_mut(), &trail);
        response
    }

    /// A whole reply.
    pub fn whole(&self, whole: Whole, trail: &Trail) -> Response {
        let mut response = self.json(StatusCode::OK, whole.body);
        if let Some(kind) = whole.headers.get(CONTENT_TYPE) {
            let kind = passed_kind(kind);
            response.headers_mut().insert(CONTENT_TYPE, kind);
        }
        forward(&whole.headers, response.headers_mut());
        trace(response.headers_mut(), trail);
        response
    }

    /// A stream.
    pub fn stream(&self, mut relay: Box<Relay>, trail: &Trail) -> Response {
        relay.set_id(&self.id);
        let headers = std::mem::take(&mut relay.headers);
        let mut response = self.with(
            StatusCode::OK,
            "text/event-stream; charset=utf-8",
            ResponseBody::parts(relay),
        );
        let own = response.headers_mut();
        own.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
        forward(&headers, own);
        trace(own, trail);
        response
    }
}

/// The dialect's class of an error.
fn kind(dialect: Dialect, status: StatusCode) -> &'static str {
    match (dialect, status.as_u16()) {
        (Dialect::OpenAi, 401) => "authentication_error",
        (Dialect::OpenAi, 403) => "permission_error",
        (Dialect::OpenAi, 429) => "rate_limit_error",
        (Dialect::OpenAi, 400..=499) => "invalid_request_error",
        (Dialect::OpenAi, _) => "server_error",
        (Dialect::Anthropic, 401) => "authentication_error",
        (Dialect::Anthropic, 403) => "permission_error",
        (Dialect::Anthropic, 404) => "not_found_error",
        (Dialect::Anthropic, 413) => "request_too_large",
        (Dialect::Anthropic, 429) => "rate_limit_error",
        (Dialect::Anthropic, 503 | 529) => "overloaded_error",
        (Dialect::Anthropic, 504) => "timeout_error",
        (Dialect::Anthropic, 400..=499) => "invalid_request_error",
        (Dialect::Anthropic, _) => "api_error",
    }
}

/// The kinds of replies that are passed on as such; whatever else a provider says is bytes to a browser.
const KINDS: [&str; 6] = [
    "application/json",
    "application/x-subrip",
    "audio/",
    "image/",
    "text/plain",
    "text/vtt",
];

fn passed_kind(kind: &HeaderValue) -> HeaderValue {
    let text = kind.to_str().unwrap_or_default().to_ascii_lowercase();
    // An image that is a document can hold a script.
    let is_passed = KINDS.iter().any(|known| text.starts_with(known)) && !text.contains("svg");
    if is_passed {
        kind.clone()
    } else {
        HeaderValue::from_static("application/octet-stream")
    }
}

/// Headers of a run that an agent made.
const OF_RUNS: [&str; 3] = ["x-durward-run", "x-durward-steps", "x-durward-cost"];

/// What a provider says of its limits and its own work goes on to the caller.
fn forward(from: &HeaderMap, to: &mut HeaderMap) {
    for (name, value) in from {
        let text = name.as_str();
        let is_told = text.starts_with("x-ratelimit-")
            || text.starts_with("anthropic-ratelimit-")
            || text == "openai-processing-ms"
            || OF_RUNS.contains(&text)
            || *name == ESTIMATED;
        if is_told {
            to.append(name.clone(), value.clone());
        }
    }
}

/// How the call was served, and what is left of the caller's budget.
fn trace(headers: &mut HeaderMap, trail: &Trail) {
    let tokens = (LIMIT_TOKENS, REMAINING_TOKENS, RESET_TOKENS);
    let requests = (LIMIT_REQUESTS, REMAINING_REQUESTS, RESET_REQUESTS);
    let budgets = [
        (trail.remaining.tokens, tokens),
        (trail.remaining.requests, requests),
    ];
    for (budget, (limit, remaining, reset)) in budgets {
        let Some(budget) = budget else { continue };
        headers.insert(limit, HeaderValue::from(budget.limit));
        headers.insert(remaining, HeaderValue::from(budget.remaining));
        if let Some(ms) = budget.ends_in_ms
            && let Ok(text) = HeaderValue::try_from(format!("{}s", ms.div_ceil(1_000)))
        {
            headers.insert(reset, text);
        }
    }
    if !trail.target.is_empty()
        && let Ok(target) = HeaderValue::try_from(trail.target.as_str())
    {
        headers.insert(TARGET, target);
    }
    headers.insert(ATTEMPTS, HeaderValue::from(trail.attempts));
    if trail.is_cached {
        headers.insert(CACHE, HeaderValue::from_static("hit"));
    }
    if let Some(cost) = trail.cost
        && let Ok(dollars) =
            HeaderValue::try_from(format!("{}.{:06}", cost / 1_000_000, cost % 1_000_000))
    {
        headers.insert(COST, dollars);
    }
    if !trail.left_out.is_empty()
        && let Ok(names) = HeaderValue::try_from(trail.left_out.join(", "))
    {
        headers.insert(LEFT_OUT, names);
    }
    if trail.spared > 0 {
        headers.insert(SPARED, HeaderValue::from(trail.spared));
    }
}
