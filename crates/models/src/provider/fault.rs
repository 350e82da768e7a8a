//! Why a target did not serve a request, and what helps.

use bytes::Bytes;
use dialects::{Dialect, ErrorReport, is_error};
use gate::ClosedSet;
use http::header::RETRY_AFTER;
use http::{HeaderMap, HeaderName, StatusCode};
use toolkit::breaker::Verdict;

use super::fault_table::FaultClass;
use crate::key::Key;

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
    Revoked,
    /// An agent reached one of its limits.
    AgentLimit,
    /// An agent's model wrote neither calls nor an answer.
    AgentMalformed,
    /// An agent's model repeats a call with the same result.
    AgentNoProgress,
    /// An agent's model cannot be called.
    AgentModel,
}

impl Trouble {
    /// All, in the order of the reference page.
    pub const ALL: [Self; 26] = [
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
        Self::Revoked,
        Self::AgentLimit,
        Self::AgentMalformed,
        Self::AgentNoProgress,
        Self::AgentModel,
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
            Self::Revoked => "key_not_good",
            Self::AgentLimit => "agent_limit",
            Self::AgentMalformed => "agent_malformed",
            Self::AgentNoProgress => "agent_no_progress",
            Self::AgentModel => "agent_model_failed",
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
            Self::NoModel => {
                "the model provider has no model of this name for the account that is configured for it"
            }
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
            Self::Revoked => "the key that the call was made with is no longer valid",
            Self::AgentLimit => "the agent reached one of its limits",
            Self::AgentMalformed => {
                "the agent's model wrote several replies that are neither a valid call nor an answer"
            }
            Self::AgentNoProgress => {
                "the agent's model made the same call with the same result several times"
            }
            Self::AgentModel => "the agent's model cannot be called",
        }
    }

    /// The status under which a caller is told.
    #[must_use]
    pub fn status(self) -> StatusCode {
        match self {
            Self::TooSlow | Self::Stalled | Self::Endless => StatusCode::GATEWAY_TIMEOUT,
            Self::RateLimited | Self::Quota | Self::AgentLimit => StatusCode::TOO_MANY_REQUESTS,
            Self::Busy | Self::Spared => StatusCode::SERVICE_UNAVAILABLE,
            Self::NoModel | Self::NotSpoken => StatusCode::NOT_FOUND,
            Self::Refused | Self::ContextLength | Self::Inexpressible | Self::ClientGone => {
                StatusCode::BAD_REQUEST
            }
            Self::Denied | Self::Withheld => StatusCode::FORBIDDEN,
            Self::Revoked => StatusCode::UNAUTHORIZED,
            Self::Unreachable
            | Self::Cut
            | Self::Malformed
            | Self::TooLong
            | Self::Failed
            | Self::AgentMalformed
            | Self::AgentNoProgress
            | Self::AgentModel
            | Self::Credentials => StatusCode::BAD_GATEWAY,
        }
    }

    /// Returns what it says about the target. One that limits or refuses a key is there: its keys rest, not the target.
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
            | Self::Failed => Verdict::Failure {
                retry_after_ms: None,
            },
            Self::NoModel
            | Self::Refused
            | Self::ContextLength
            | Self::Denied
            | Self::NotSpoken
            | Self::Inexpressible => Verdict::ClientFault,
            Self::RateLimited
            | Self::Quota
            | Self::Credentials
            | Self::Busy
            | Self::Spared
            | Self::Withheld
            | Self::ClientGone
            | Self::Revoked
            | Self::AgentLimit
            | Self::AgentMalformed
            | Self::AgentNoProgress
            | Self::AgentModel => Verdict::Cancelled,
        }
    }

    /// Returns whom it is about where nothing says more.
    fn scope(self) -> FaultScope {
        match self {
            Self::Credentials | Self::RateLimited => FaultScope::Key,
            Self::Quota => FaultScope::Account,
            Self::NoModel => FaultScope::Model,
            _ => match self.verdict() {
                Verdict::Failure { .. } => FaultScope::Server,
                _ => FaultScope::Request,
            },
        }
    }
}

impl ClosedSet for Trouble {
    const EVERY: &'static [Self] = &Self::ALL;

    fn word(self) -> &'static str {
        self.label()
    }
}

/// Whom a fault is about. It decides who rests, what a breaker counts and where the call goes next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FaultScope {
    /// This request alone: no key rests and no breaker counts it.
    Request,
    /// The model, for the account that was used.
    Model,
    /// The account behind the key: the key rests for all models.
    Account,
    /// The key: it rests, for the model where it was used too often.
    Key,
    /// The server: breakers count it.
    Server,
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
    /// Whom it is about.
    pub scope: FaultScope,
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
        matches!(self.scope, FaultScope::Key | FaultScope::Account)
            || self.remedy == Remedy::OtherKey
    }

    /// One that has no answer with it.
    #[must_use]
    pub fn of(trouble: Trouble, remedy: Remedy) -> Self {
        Self {
            trouble,
            scope: trouble.scope(),
            remedy,
            retry_after_ms: None,
            answer: None,
            told: None,
        }
    }

    /// Reads an answer that is an error: by its status, and by what it says in the words of any server that is known.
    #[must_use]
    pub fn answered(status: StatusCode, headers: &HeaderMap, body: Bytes) -> Self {
        let mut report = ErrorReport::read(std::str::from_utf8(&body).unwrap_or_default());
        let kind = headers.get(ERROR_TYPE).and_then(|kind| kind.to_str().ok());
        // The URL of a description follows the colon.
        let kind = kind.and_then(|kind| kind.split(':').next());
        report
            .codes
            .extend(kind.map(|kind| kind.trim().to_ascii_lowercase()));
        let (scope, trouble, remedy) = FaultClass::of(status, &report).meaning();
        let retry_after_ms = retry_after(headers).or(report.retry_after_ms);
        let is_callers = match scope {
            // AWS names the identity behind the key, which is the owner's to know.
            _ if kind.is_some() && status == StatusCode::FORBIDDEN => false,
            FaultScope::Request | FaultScope::Model | FaultScope::Account => true,
            FaultScope::Key | FaultScope::Server => false,
        };
        // To the caller, 401 would say that its own key is wrong.
        let status = match status {
            StatusCode::UNAUTHORIZED => StatusCode::FORBIDDEN,
            other => other,
        };
        let (mut answer, mut told) = (None, None);
        match report.message {
            Some(title) if is_callers && report.is_page => {
                told = Some((status, format!("{PAGE}: {title}")));
            }
            None if is_callers && report.is_page => told = Some((status, PAGE.to_owned())),
            Some(_) if is_callers => answer = Some((status, body)),
            _ => {}
        }
        Self {
            trouble,
            scope,
            remedy,
            retry_after_ms,
            answer,
            told,
        }
    }

    /// Returns the fault with what the caller may read of it: its own answer where that has the `words` of the caller's dialect,
    /// else its sentence. Nothing of it where it repeats the key that the provider was shown.
    #[must_use]
    pub(crate) fn for_caller(mut self, key: Option<&Key>, words: Option<Dialect>) -> Self {
        let shows_key = |body: &[u8]| key.is_some_and(|key| key.is_in(body));
        if self
            .told
            .as_ref()
            .is_some_and(|(_, said)| shows_key(said.as_bytes()))
        {
            self.told = None;
        }
        let Some((status, body)) = self.answer.take() else {
            return self;
        };
        if shows_key(&body) {
            return self;
        }
        let text = std::str::from_utf8(&body).unwrap_or_default();
        if words.is_some_and(|words| is_error(words, text)) {
            self.answer = Some((status, body));
            return self;
        }
        let said = ErrorReport::read(text).message;
        let said = said.unwrap_or_else(|| self.trouble.sentence().to_owned());
        self.told = Some((status, said));
        self
    }

    /// Reads a reply that is an error under a status of success; its status is the one that the body names.
    #[must_use]
    pub fn in_reply(headers: &HeaderMap, body: Bytes) -> Self {
        let report = ErrorReport::read(std::str::from_utf8(&body).unwrap_or_default());
        let named = report.status.or_else(|| status_of(&report));
        let status = named.and_then(|status| StatusCode::from_u16(status).ok());
        let status = status.unwrap_or(StatusCode::BAD_GATEWAY);
        let mut fault = Self::answered(status, headers, body);
        if fault.remedy == Remedy::OtherKey {
            // The key is not known any more, so none would rest.
            fault.remedy = Remedy::NextTarget;
        }
        fault
    }
}

/// Sentence about a page that answers in the provider's place.
const PAGE: &str = "something in front of the model provider refused the request with a page";

/// Returns the status that an error usually has, by its type.
fn status_of(report: &ErrorReport) -> Option<u16> {
    const STATUS: [(&str, u16); 12] = [
        ("authentication_error", 401),
        ("invalid_api_key", 401),
        ("permission_error", 403),
        ("not_found_error", 404),
        ("model_not_found", 404),
        ("rate_limit_error", 429),
        ("rate_limit_exceeded", 429),
        ("insufficient_quota", 429),
        ("overloaded_error", 529),
        ("context_length_exceeded", 400),
        ("invalid_prompt", 400),
        ("invalid_request_error", 400),
    ];
    let known = STATUS.iter().find(|(code, _)| report.has_code(code));
    known.map(|(_, status)| *status)
}

/// The kind of an error, as AWS names it.
const ERROR_TYPE: HeaderName = HeaderName::from_static("x-amzn-errortype");
const RETRY_AFTER_MS: HeaderName = HeaderName::from_static("retry-after-ms");

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
mod tests;
