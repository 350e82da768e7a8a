//! Why a target did not serve a request, and what helps.

use bytes::Bytes;
use gate::ClosedSet;
use http::header::RETRY_AFTER;
use http::{HeaderMap, HeaderName, StatusCode};
use toolkit::breaker::Verdict;
use wire::model::message_of;

/// What went wrong at a target. The labels stand in records, headers and errors.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Trouble {
    /// Nobody answers there, or there is no secure connection.
    Unreachable,
    /// All connections to it are in use.
    Busy,
    /// The reply did not begin in time.
    TooSlow,
    /// The reply stopped for too long.
    Stalled,
    /// The reply ended before its end.
    Cut,
    /// The reply is none of its dialect.
    Malformed,
    /// The reply, or one event of it, is longer than it may be.
    TooLong,
    /// The stream lasted longer than it may.
    Endless,
    /// An error of the provider's own: 5xx, or one in the middle of a stream.
    Failed,
    /// Too many requests: 429.
    RateLimited,
    /// Nothing is left to spend there: 402, or 429 that says so.
    Quota,
    /// The provider does not take our key: 401 or 403.
    Credentials,
    /// The provider has no such model: 404.
    NoModel,
    /// The provider says that the request is wrong.
    Refused,
    /// The request is longer than the model can read.
    ContextLength,
    /// The target is spared because it failed too often.
    Spared,
    /// The rules do not let the call go to this target.
    Denied,
    /// A rule of `inspect:` does not let the reply pass, or what it holds back of a stream is too long.
    Withheld,
    /// The target does not speak this endpoint.
    NotSpoken,
    /// The target speaks another dialect, in which the request cannot be said.
    Inexpressible,
    /// The caller has gone.
    ClientGone,
    /// The key that the call was made with is good no longer.
    Expelled,
}

impl Trouble {
    /// All, in the order of the reference page.
    pub const ALL: [Self; 22] = [
        Self::Unreachable,
        Self::Busy,
        Self::TooSlow,
        Self::Stalled,
        Self::Cut,
        Self::Malformed,
        Self::TooLong,
        Self::Endless,
        Self::Failed,
        Self::RateLimited,
        Self::Quota,
        Self::Credentials,
        Self::NoModel,
        Self::Refused,
        Self::ContextLength,
        Self::Spared,
        Self::Denied,
        Self::Withheld,
        Self::NotSpoken,
        Self::Inexpressible,
        Self::ClientGone,
        Self::Expelled,
    ];

    /// The closed label.
    #[must_use]
    pub fn label(self) -> &'static str {
        match self {
            Self::Unreachable => "provider_unreachable",
            Self::Busy => "provider_busy",
            Self::TooSlow => "provider_timeout",
            Self::Stalled => "provider_stalled",
            Self::Cut => "provider_cut",
            Self::Malformed => "provider_malformed",
            Self::TooLong => "provider_too_long",
            Self::Endless => "provider_endless",
            Self::Failed => "provider_error",
            Self::RateLimited => "provider_rate_limited",
            Self::Quota => "provider_quota",
            Self::Credentials => "provider_credentials",
            Self::NoModel => "provider_no_model",
            Self::Refused => "provider_refused",
            Self::ContextLength => "context_too_long",
            Self::Spared => "circuit_open",
            Self::Denied => "target_denied",
            Self::Withheld => "reply_withheld",
            Self::NotSpoken => "endpoint_not_spoken",
            Self::Inexpressible => "not_expressible",
            Self::ClientGone => "client_gone",
            Self::Expelled => "key_not_good",
        }
    }

    /// One sentence for the caller.
    #[must_use]
    pub fn sentence(self) -> &'static str {
        match self {
            Self::Unreachable => "the model provider cannot be reached",
            Self::Busy => "all connections to the model provider are in use",
            Self::TooSlow => "the model provider did not begin to answer in time",
            Self::Stalled => "the model provider stopped in the middle of its answer",
            Self::Cut => "the model provider's answer ended before its end",
            Self::Malformed => "the model provider's answer cannot be read",
            Self::TooLong => "the model provider's answer is longer than it may be",
            Self::Endless => "the model provider's answer lasted longer than it may",
            Self::Failed => "the model provider reported an error of its own",
            Self::RateLimited => "the model provider takes no more requests for now",
            Self::Quota => "the account at the model provider has nothing left to spend",
            Self::Credentials => {
                "the model provider does not take the key that is configured for it"
            }
            Self::NoModel => "the model provider has no model of this name",
            Self::Refused => "the model provider says that the request is wrong",
            Self::ContextLength => "the request is longer than the model can read",
            Self::Spared => "the model provider failed too often and is spared for a while",
            Self::Denied => "the policy lets this call go to no further target",
            Self::Withheld => "a rule of inspect: does not let the model provider's answer pass",
            Self::NotSpoken => "the model provider does not serve this endpoint",
            Self::Inexpressible => {
                "the request cannot be expressed in the dialect of this model's provider"
            }
            Self::ClientGone => "the caller has gone",
            Self::Expelled => "the key that the call was made with is no longer valid",
        }
    }

    /// The status under which a caller is told.
    #[must_use]
    pub fn status(self) -> StatusCode {
        match self {
            Self::TooSlow | Self::Stalled | Self::Endless => StatusCode::GATEWAY_TIMEOUT,
            Self::RateLimited | Self::Quota => StatusCode::TOO_MANY_REQUESTS,
            Self::Busy | Self::Spared => StatusCode::SERVICE_UNAVAILABLE,
            Self::NoModel | Self::NotSpoken => StatusCode::NOT_FOUND,
            Self::Refused | Self::ContextLength | Self::Inexpressible | Self::ClientGone => {
                StatusCode::BAD_REQUEST
            }
            Self::Denied | Self::Withheld => StatusCode::FORBIDDEN,
            Self::Expelled => StatusCode::UNAUTHORIZED,
            Self::Unreachable
            | Self::Cut
            | Self::Malformed
            | Self::TooLong
            | Self::Failed
            | Self::Credentials => StatusCode::BAD_GATEWAY,
        }
    }

    /// What it says about the target. One that is used too often is there; its keys rest, not the target.
    #[must_use]
    pub fn verdict(self) -> Verdict {
        match self {
            Self::Unreachable
            | Self::TooSlow
            | Self::Stalled
            | Self::Cut
            | Self::Malformed
            | Self::TooLong
            | Self::Endless
            | Self::Failed
            | Self::Quota
            | Self::Credentials => Verdict::Failure {
                retry_after_ms: None,
            },
            Self::NoModel
            | Self::Refused
            | Self::ContextLength
            | Self::Denied
            | Self::NotSpoken
            | Self::Inexpressible => Verdict::ClientFault,
            Self::RateLimited
            | Self::Busy
            | Self::Spared
            | Self::Withheld
            | Self::ClientGone
            | Self::Expelled => Verdict::Cancelled,
        }
    }
}

impl ClosedSet for Trouble {
    const EVERY: &'static [Self] = &Self::ALL;

    fn word(self) -> &'static str {
        self.label()
    }
}

/// What may help after a fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Remedy {
    /// Another key of the same provider, at once.
    OtherKey,
    /// The same again after a short wait, once; then the next target.
    Again,
    /// The next target.
    NextTarget,
    /// Nothing: the request itself is wrong.
    Nothing,
}

/// A request that was not served.
#[derive(Debug, Clone)]
pub struct Fault {
    /// What went wrong.
    pub trouble: Trouble,
    /// What may help.
    pub remedy: Remedy,
    /// When trying again can help, as the provider says, in milliseconds.
    pub retry_after_ms: Option<u64>,
    /// The provider's own answer, where the caller is to read it: status and body.
    pub answer: Option<(StatusCode, Bytes)>,
    /// What the caller is told in its own dialect instead of the trouble's sentence: status and sentence.
    pub told: Option<(StatusCode, String)>,
}

impl Fault {
    /// Whether another key may do where this one did not.
    pub(crate) fn is_about_key(&self) -> bool {
        matches!(
            self.trouble,
            Trouble::Credentials | Trouble::Quota | Trouble::RateLimited
        )
    }

    /// One that has no answer with it.
    #[must_use]
    pub fn of(trouble: Trouble, remedy: Remedy) -> Self {
        Self {
            trouble,
            remedy,
            retry_after_ms: None,
            answer: None,
            told: None,
        }
    }

    /// What an answer means whose status is no success.
    #[must_use]
    pub fn answered(status: StatusCode, headers: &HeaderMap, body: Bytes) -> Self {
        let kind = headers.get(ERROR_TYPE).and_then(|kind| kind.to_str().ok());
        // Behind a colon stands where the kind is described.
        let kind = kind.and_then(|kind| kind.split(':').next());
        let text = std::str::from_utf8(&body).unwrap_or_default();
        let known = kind.and_then(|kind| of_aws(kind.trim(), text));
        classify(status, retry_after(headers), body, known)
    }
}

/// The kind of an error, as AWS names it.
const ERROR_TYPE: HeaderName = HeaderName::from_static("x-amzn-errortype");
const RETRY_AFTER_MS: HeaderName = HeaderName::from_static("retry-after-ms");

/// What providers say of a request that is longer than the model can read.
const TOO_LONG: [&str; 6] = [
    "context_length_exceeded",
    "prompt is too long",
    "maximum context length",
    "context window",
    "Input is too long",
    "exceeds the maximum number of tokens",
];

/// What a kind of AWS's errors means, where its status does not say it.
fn of_aws(kind: &str, text: &str) -> Option<(Trouble, Remedy)> {
    let mentions = |words: &[&str]| words.iter().any(|word| text.contains(word));
    match kind {
        "ThrottlingException" | "TooManyRequestsException" | "ServiceQuotaExceededException" => {
            Some((Trouble::RateLimited, Remedy::NextTarget))
        }
        "ModelNotReadyException"
        | "ModelErrorException"
        | "ModelStreamErrorException"
        | "ModelTimeoutException" => Some((Trouble::Failed, Remedy::Again)),
        // The key is good, and this model is not among what it may use.
        "AccessDeniedException"
            if mentions(&["access to the model", "not authorized to perform"]) =>
        {
            Some((Trouble::NoModel, Remedy::NextTarget))
        }
        "ValidationException"
            if mentions(&["model identifier is invalid", "on-demand throughput"]) =>
        {
            Some((Trouble::NoModel, Remedy::NextTarget))
        }
        _ => None,
    }
}

fn classify(
    status: StatusCode,
    retry_after_ms: Option<u64>,
    body: Bytes,
    known: Option<(Trouble, Remedy)>,
) -> Fault {
    let text = std::str::from_utf8(&body).unwrap_or_default();
    let mentions = |words: &[&str]| words.iter().any(|word| text.contains(word));
    let (trouble, remedy) = match status.as_u16() {
        _ if let Some(known) = known => known,
        401 | 403 => (Trouble::Credentials, Remedy::NextTarget),
        // Gemini says so.
        400 if mentions(&["API_KEY_INVALID"]) => (Trouble::Credentials, Remedy::NextTarget),
        402 => (Trouble::Quota, Remedy::NextTarget),
        429 if mentions(&["insufficient_quota", "billing_hard_limit"]) => {
            (Trouble::Quota, Remedy::NextTarget)
        }
        429 => (Trouble::RateLimited, Remedy::NextTarget),
        404 => (Trouble::NoModel, Remedy::NextTarget),
        400 | 413 | 422 if mentions(&TOO_LONG) => (Trouble::ContextLength, Remedy::NextTarget),
        408 | 500..=599 => (Trouble::Failed, Remedy::Again),
        300..=399 => (Trouble::Malformed, Remedy::NextTarget),
        _ => (Trouble::Refused, Remedy::Nothing),
    };
    let is_callers = matches!(
        trouble,
        Trouble::Refused | Trouble::NoModel | Trouble::ContextLength
    );
    // Who may not do what is told to the key's owner alone.
    let told = is_callers && status != StatusCode::FORBIDDEN && message_of(text).is_some();
    Fault {
        trouble,
        remedy,
        retry_after_ms,
        answer: told.then_some((status, body)),
        told: None,
    }
}

/// How long the provider asks to wait, in milliseconds. A date is not read: nobody knows its clock.
fn retry_after(headers: &HeaderMap) -> Option<u64> {
    let number = |name: &HeaderName| {
        let text = headers.get(name)?.to_str().ok()?;
        let number: f64 = text.trim().parse().ok()?;
        (0.0..1.0e12).contains(&number).then_some(number)
    };
    let ms = number(&RETRY_AFTER_MS).or_else(|| number(&RETRY_AFTER).map(|s| s * 1_000.0))?;
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "it is within 0 and 10^15"
    )]
    Some(ms.ceil() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::HeaderValue;

    #[test]
    fn each_status_has_its_remedy() {
        let quota = r#"{"error":{"code":"insufficient_quota","message":"x"}}"#;
        let long = r#"{"error":{"code":"context_length_exceeded","message":"too long"}}"#;
        let gemini = r#"{"error":{"code":400,"message":"API key not valid","details":[{"reason":"API_KEY_INVALID"}]}}"#;
        let cases = [
            (401, "", Trouble::Credentials, Remedy::NextTarget, false),
            (403, quota, Trouble::Credentials, Remedy::NextTarget, false),
            (400, gemini, Trouble::Credentials, Remedy::NextTarget, false),
            (402, "", Trouble::Quota, Remedy::NextTarget, false),
            (429, "", Trouble::RateLimited, Remedy::NextTarget, false),
            (429, quota, Trouble::Quota, Remedy::NextTarget, false),
            (400, long, Trouble::ContextLength, Remedy::NextTarget, true),
            (400, "<html>", Trouble::Refused, Remedy::Nothing, false),
            (422, quota, Trouble::Refused, Remedy::Nothing, true),
            (404, long, Trouble::NoModel, Remedy::NextTarget, true),
            (500, quota, Trouble::Failed, Remedy::Again, false),
            (529, "", Trouble::Failed, Remedy::Again, false),
            (408, "", Trouble::Failed, Remedy::Again, false),
            (302, "", Trouble::Malformed, Remedy::NextTarget, false),
        ];
        for (status, body, trouble, remedy, told) in cases {
            let code = StatusCode::from_u16(status).unwrap_or_default();
            let fault = classify(code, None, Bytes::from_static(body.as_bytes()), None);
            assert_eq!((fault.trouble, fault.remedy), (trouble, remedy), "{status}");
            assert_eq!(fault.answer.is_some(), told, "{status}");
        }
    }

    #[test]
    fn errors_of_aws_are_read_by_their_kind() {
        let cases = [
            (
                429,
                "ThrottlingException",
                "slow",
                Trouble::RateLimited,
                false,
            ),
            (
                400,
                "ServiceQuotaExceededException",
                "q",
                Trouble::RateLimited,
                false,
            ),
            (
                429,
                "ModelNotReadyException",
                "wait",
                Trouble::Failed,
                false,
            ),
            (424, "ModelErrorException", "x", Trouble::Failed, false),
            (408, "ModelTimeoutException", "x", Trouble::Failed, false),
            (
                403,
                "AccessDeniedException",
                "You don't have access to the model",
                Trouble::NoModel,
                false,
            ),
            (
                403,
                "AccessDeniedException",
                "no such key",
                Trouble::Credentials,
                false,
            ),
            (
                403,
                "ExpiredTokenException",
                "x",
                Trouble::Credentials,
                false,
            ),
            (
                403,
                "InvalidSignatureException",
                "x",
                Trouble::Credentials,
                false,
            ),
            (
                400,
                "ValidationException",
                "The provided model identifier is invalid.",
                Trouble::NoModel,
                true,
            ),
            (
                400,
                "ValidationException",
                "Input is too long for requested model.",
                Trouble::ContextLength,
                true,
            ),
            (
                400,
                "ValidationException",
                "max_tokens: required",
                Trouble::Refused,
                true,
            ),
            (
                404,
                "ResourceNotFoundException",
                "x",
                Trouble::NoModel,
                true,
            ),
            (
                503,
                "ServiceUnavailableException",
                "x",
                Trouble::Failed,
                false,
            ),
        ];
        for (status, kind, said, trouble, told) in cases {
            let mut headers = HeaderMap::new();
            let shown = format!("{kind}:http://internal.amazon.com/coral/");
            headers.insert(ERROR_TYPE, HeaderValue::try_from(shown).unwrap());
            let body = format!("{{\"message\":\"{said}\"}}");
            let code = StatusCode::from_u16(status).unwrap();
            let fault = Fault::answered(code, &headers, body.into());
            assert_eq!(fault.trouble, trouble, "{kind} {said}");
            assert_eq!(fault.answer.is_some(), told, "{kind} {said}");
        }
    }

    #[test]
    fn a_wait_is_read_in_either_unit() {
        let read = |name: HeaderName, value: &'static str| {
            let mut headers = HeaderMap::new();
            headers.insert(name, HeaderValue::from_static(value));
            retry_after(&headers)
        };
        assert_eq!(read(RETRY_AFTER, "2"), Some(2_000));
        assert_eq!(read(RETRY_AFTER, "0.5"), Some(500));
        assert_eq!(read(RETRY_AFTER_MS, "20"), Some(20));
        for odd in ["-1", "soon", "Wed, 21 Oct 2026 07:28:00 GMT", "NaN", "1e30"] {
            assert_eq!(read(RETRY_AFTER, odd), None, "{odd}");
        }
    }
}
