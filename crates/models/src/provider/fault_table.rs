//! Table of the errors that model servers document: what each says, and whom it is about.
//!
//! The first row that matches decides; a row matches by status, code and phrase. Errors that no row knows are read by their
//! status alone ([`FaultClass::of_status`]). Phrases are compared in lower case with the provider's own sentence.

use dialects::ErrorReport;
use http::StatusCode;

use super::fault::{FaultScope, Remedy, Trouble};
use FaultClass as C;

/// Kind of error: whom it is about, and what helps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FaultClass {
    /// The key is unknown, expired or locked.
    BadKey,
    /// The account has nothing left to spend, or is closed.
    NoFunds,
    /// The account has too little left for this request.
    Unaffordable,
    /// Too many requests for now.
    Throttled,
    /// The key may not use this model.
    NoAccess,
    /// There is no such model.
    NoModel,
    /// The request is longer than the model can read, or than its limit of tokens.
    TooLong,
    /// The request is wrong, or its content is.
    Refused,
    /// Something in front of the provider does not let the request pass.
    Blocked,
    /// The provider has an error of its own.
    Failed,
    /// The reply is not the provider's.
    Malformed,
}

impl FaultClass {
    /// Returns what the class means for the call.
    pub fn meaning(self) -> (FaultScope, Trouble, Remedy) {
        use FaultScope as S;
        match self {
            C::BadKey => (S::Key, Trouble::Credentials, Remedy::NextTarget),
            C::NoFunds => (S::Account, Trouble::Quota, Remedy::NextTarget),
            C::Unaffordable => (S::Request, Trouble::Quota, Remedy::NextTarget),
            C::Throttled => (S::Key, Trouble::RateLimited, Remedy::NextTarget),
            C::NoAccess => (S::Model, Trouble::NoModel, Remedy::OtherKey),
            C::NoModel => (S::Model, Trouble::NoModel, Remedy::NextTarget),
            C::TooLong => (S::Request, Trouble::ContextLength, Remedy::NextTarget),
            C::Refused => (S::Request, Trouble::Refused, Remedy::Nothing),
            C::Blocked => (S::Request, Trouble::Refused, Remedy::NextTarget),
            C::Failed => (S::Server, Trouble::Failed, Remedy::Again),
            C::Malformed => (S::Server, Trouble::Malformed, Remedy::NextTarget),
        }
    }

    /// Returns the class of an error that no row of the table knows.
    fn of_status(status: StatusCode, report: &ErrorReport) -> Self {
        match status.as_u16() {
            401 => C::BadKey,
            400 | 403 | 406 | 451 if report.is_page => C::Blocked,
            // Which of many reasons it is, nobody knows: another key may do, and this one may do for another request.
            403 => C::NoAccess,
            402 => C::NoFunds,
            429 => C::Throttled,
            404 | 410 => C::NoModel,
            413 => C::TooLong,
            501 => C::Blocked,
            408 | 500..=599 => C::Failed,
            300..=399 => C::Malformed,
            _ => C::Refused,
        }
    }

    /// Returns the class of an error with this status and report.
    pub fn of(status: StatusCode, report: &ErrorReport) -> Self {
        let message = report.message.as_deref().unwrap_or_default();
        let message = message.to_ascii_lowercase();
        let found = TABLE
            .iter()
            .find(|row| row.matches(status, report, &message));
        let Some(row) = found else {
            return Self::of_status(status, report);
        };
        tracing::debug!(server = row.server, class = ?row.class, "the error is a documented one");
        row.class
    }
}

/// One documented error.
#[derive(Debug)]
struct FaultRow {
    /// The server, or family of servers, that documents it.
    server: &'static str,
    /// The statuses under which it comes; any where the list is empty.
    status: &'static [u16],
    /// A code, type, state or reason that it has, in lower case; any where it is empty.
    code: &'static str,
    /// What its sentence says, in lower case; anything where it is empty.
    phrase: &'static str,
    class: FaultClass,
}

impl FaultRow {
    fn matches(&self, status: StatusCode, report: &ErrorReport, message: &str) -> bool {
        let is_status = self.status.is_empty() || self.status.contains(&status.as_u16());
        is_status
            && !report.is_page
            && (self.code.is_empty() || report.has_code(self.code))
            && (self.phrase.is_empty() || message.contains(self.phrase))
    }
}

const fn row(
    server: &'static str,
    status: &'static [u16],
    code: &'static str,
    phrase: &'static str,
    class: FaultClass,
) -> FaultRow {
    FaultRow {
        server,
        status,
        code,
        phrase,
        class,
    }
}

/// Statuses under which servers refuse a request that is too long.
const LONG: &[u16] = &[400, 403, 413, 422, 429, 500];
/// Statuses under which servers refuse a caller.
const AUTH: &[u16] = &[400, 401, 403];
const MONEY: &[u16] = &[400, 401, 402, 403, 412, 429];
const BAD: &[u16] = &[400, 403, 404, 422];

/// What a server may say, the most particular first. Rows about keys and accounts match by status too, so that a sentence which
/// quotes a prompt takes no key away.
#[rustfmt::skip]
static TABLE: &[FaultRow] = &[
    // Longer than the model reads.
    row("openai", LONG, "context_length_exceeded", "", C::TooLong),
    row("openai", &[429], "", "request too large for", C::TooLong),
    row("openai", LONG, "", "maximum context length", C::TooLong),
    row("openai", LONG, "", "input tokens exceed the configured limit", C::TooLong),
    row("anthropic", LONG, "", "prompt is too long", C::TooLong),
    row("anthropic", LONG, "", "exceed context limit", C::TooLong),
    row("anthropic", &[413], "request_too_large", "", C::TooLong),
    row("anthropic", &[429], "", "required for long context requests", C::TooLong),
    row("gemini", LONG, "", "exceeds the maximum number of tokens", C::TooLong),
    row("vertex", LONG, "", "but model only supports up to", C::TooLong),
    row("bedrock", LONG, "", "input is too long", C::TooLong),
    row("bedrock", LONG, "", "too many total text bytes", C::TooLong),
    row("bedrock", LONG, "", "exceeds the maximum allowed input length", C::TooLong),
    row("mistral", LONG, "3051", "", C::TooLong),
    row("mistral", LONG, "", "too large for model with", C::TooLong),
    row("groq", LONG, "", "reduce the length of the messages", C::TooLong),
    row("groq", &[413], "rate_limit_exceeded", "", C::TooLong),
    row("sambanova", LONG, "", "maximum supported sequence length", C::TooLong),
    row("cohere", LONG, "", "too many tokens: ", C::TooLong),
    row("cohere", LONG, "", "total number of tokens in the prompt", C::TooLong),
    row("xai", LONG, "", "maximum prompt length", C::TooLong),
    row("openrouter", LONG, "", "maximum context length", C::TooLong),
    row("together", LONG, "", "`inputs` tokens + `max_new_tokens`", C::TooLong),
    row("together", LONG, "", "context length of the model", C::TooLong),
    row("tgi", LONG, "", "`inputs` must have less than", C::TooLong),
    row("fireworks", LONG, "", "model maximum context length", C::TooLong),
    row("vllm", LONG, "", "longer than the maximum model length", C::TooLong),
    row("vllm", LONG, "", "exceeds model's maximum context length", C::TooLong),
    row("sglang", LONG, "", "longer than the model's context length", C::TooLong),
    row("sglang", LONG, "", "exceeds the maximum allowed length", C::TooLong),
    row("sglang", LONG, "", "exceeds the model's maximum context", C::TooLong),
    row("llama.cpp", LONG, "exceed_context_size_error", "", C::TooLong),
    row("llama.cpp", LONG, "", "exceeds the available context size", C::TooLong),
    row("llama.cpp", LONG, "", "input is too large to process", C::TooLong),
    row("ollama", LONG, "", "exceeded max context length", C::TooLong),
    row("ollama", LONG, "", "input length exceeds", C::TooLong),
    row("lm studio", LONG, "", "greater than the context length", C::TooLong),
    row("lm studio", LONG, "", "reached context length of", C::TooLong),
    row("lm studio", LONG, "", "loaded with context length of only", C::TooLong),
    row("litellm", LONG, "", "contextwindowexceedederror", C::TooLong),
    row("github models", &[413], "tokens_limit_reached", "", C::TooLong),
    row("moonshot", LONG, "", "exceeded model token limit", C::TooLong),
    row("dashscope", LONG, "", "range of input length should be", C::TooLong),
    row("any", LONG, "", "context window", C::TooLong),
    row("any", LONG, "", "exceeds the context length", C::TooLong),
    row("any", LONG, "", "exceeds context length", C::TooLong),

    // A content that the provider does not serve.
    row("openai", BAD, "content_policy_violation", "", C::Refused),
    row("openai", BAD, "moderation_blocked", "", C::Refused),
    row("openai", BAD, "invalid_prompt", "", C::Refused),
    row("azure", BAD, "content_filter", "", C::Refused),
    row("azure", BAD, "responsibleaipolicyviolation", "", C::Refused),
    row("anthropic", BAD, "", "blocked by content filtering", C::Refused),
    row("deepseek", BAD, "", "content exists risk", C::Refused),
    row("xai", BAD, "", "content violates usage guidelines", C::Refused),
    row("openrouter", BAD, "", "flagged by moderation", C::Refused),
    row("openrouter", BAD, "", "your input was flagged", C::Refused),
    row("openrouter", &[403], "", "moderation", C::Refused),
    row("litellm", BAD, "", "contentpolicyviolationerror", C::Refused),
    row("litellm", BAD, "", "violated guardrail", C::Refused),
    row("moonshot", BAD, "", "considered high risk", C::Refused),
    row("dashscope", BAD, "data_inspection_failed", "", C::Refused),
    row("dashscope", BAD, "datainspectionfailed", "", C::Refused),

    // Too little left for this request, where a smaller one may do.
    row("openrouter", &[402, 403, 429], "", "fewer max_tokens", C::Unaffordable),
    row("openrouter", &[402, 403, 429], "", "can only afford", C::Unaffordable),
    row("openrouter", &[402, 403, 429], "", "prompt tokens limit exceeded", C::Unaffordable),

    // Nothing left to spend, or an account that is closed.
    row("openai", MONEY, "insufficient_quota", "", C::NoFunds),
    row("openai", MONEY, "billing_hard_limit_reached", "", C::NoFunds),
    row("openai", MONEY, "billing_not_active", "", C::NoFunds),
    row("openai", MONEY, "account_deactivated", "", C::NoFunds),
    row("openai", &[403], "unsupported_country_region_territory", "", C::NoFunds),
    row("anthropic", MONEY, "billing_error", "", C::NoFunds),
    row("anthropic", &[400, 402, 403], "invalid_request_error", "credit balance is too low", C::NoFunds),
    row("anthropic", &[400, 403], "", "this organization has been disabled", C::NoFunds),
    row("anthropic", &[400], "invalid_request_error", "reached your specified api usage limits", C::NoFunds),
    row("azure", &[403], "", "out of call volume quota", C::NoFunds),
    row("azure", &[403], "", "virtual network/firewall rules", C::NoFunds),
    row("azure", &[403], "", "public access is disabled", C::NoFunds),
    row("gemini", MONEY, "service_disabled", "", C::NoFunds),
    row("gemini", MONEY, "billing_disabled", "", C::NoFunds),
    row("gemini", MONEY, "consumer_suspended", "", C::NoFunds),
    row("gemini", &[400], "failed_precondition", "user location is not supported", C::NoFunds),
    row("gemini", &[400], "failed_precondition", "free tier is not available", C::NoFunds),
    row("bedrock", MONEY, "", "invalid_payment_instrument", C::NoFunds),
    row("groq", MONEY, "organization_restricted", "", C::NoFunds),
    row("groq", MONEY, "blocked_api_access", "", C::NoFunds),
    row("cerebras", &[402], "payment_required", "", C::NoFunds),
    row("cohere", &[429], "", "calls / month", C::NoFunds),
    row("xai", &[403], "", "doesn't have any credits", C::NoFunds),
    row("xai", &[403, 429], "", "used all available credits", C::NoFunds),
    row("openrouter", &[403], "", "key limit exceeded", C::NoFunds),
    row("together", MONEY, "credit_limit", "", C::NoFunds),
    row("fireworks", &[412], "", "is suspended", C::NoFunds),
    row("litellm", &[400, 403, 429], "budget_exceeded", "", C::NoFunds),
    row("moonshot", MONEY, "exceeded_current_quota_error", "", C::NoFunds),
    row("dashscope", MONEY, "arrearage", "", C::NoFunds),
    row("zhipu", &[429], "1113", "", C::NoFunds),

    // A model that the account or the key may not use.
    row("openai", &[403], "", "organization must be verified", C::NoAccess),
    row("openai", &[401, 403], "", "does not have access to model", C::NoAccess),
    row("openai", &[401, 403], "", "insufficient permissions for this operation", C::NoAccess),
    row("anthropic", &[403], "permission_error", "", C::NoAccess),
    row("gemini", &[429], "resource_exhausted", "limit: 0, model", C::NoAccess),
    row("vertex", &[403], "iam_permission_denied", "", C::NoAccess),
    row("vertex", &[400], "failed_precondition", "not allowed to use publisher model", C::NoAccess),
    row("bedrock", &[403], "accessdeniedexception", "access to the model", C::NoAccess),
    row("bedrock", &[403], "accessdeniedexception", "not authorized to perform", C::NoAccess),
    row("bedrock", &[403], "accessdeniedexception", "model access is denied", C::NoAccess),
    row("bedrock", &[400], "validationexception", "operation not allowed", C::NoAccess),
    row("groq", &[403], "model_permission_blocked_org", "", C::NoAccess),
    row("groq", &[403], "model_permission_blocked_project", "", C::NoAccess),
    row("litellm", AUTH, "key_model_access_denied", "", C::NoAccess),
    row("litellm", AUTH, "team_model_access_denied", "", C::NoAccess),
    row("litellm", AUTH, "user_model_access_denied", "", C::NoAccess),
    row("litellm", AUTH, "org_model_access_denied", "", C::NoAccess),
    row("github models", &[403], "no_access", "", C::NoAccess),
    row("hugging face", &[403], "", "sufficient permissions to call inference", C::NoAccess),
    row("dashscope", &[403], "model.accessdenied", "", C::NoAccess),
    row("dashscope", &[403], "allocationquota.freetieronly", "", C::NoAccess),

    // A model that is not there, or cannot do this.
    row("openai", BAD, "model_not_found", "", C::NoModel),
    row("azure", BAD, "deploymentnotfound", "", C::NoModel),
    row("azure", BAD, "operationnotsupported", "", C::NoModel),
    row("bedrock", BAD, "validationexception", "model identifier is invalid", C::NoModel),
    row("bedrock", BAD, "validationexception", "on-demand throughput", C::NoModel),
    row("mistral", BAD, "invalid_model", "", C::NoModel),
    row("deepseek", BAD, "", "model not exist", C::NoModel),
    row("groq", BAD, "model_decommissioned", "", C::NoModel),
    row("openrouter", BAD, "", "is not a valid model id", C::NoModel),
    row("openrouter", BAD, "", "no endpoints found", C::NoModel),
    row("together", BAD, "model_not_available", "", C::NoModel),
    row("fireworks", BAD, "", "model not found, inaccessible", C::NoModel),
    row("ollama", BAD, "", "does not support tools", C::NoModel),
    row("ollama", BAD, "", "does not support thinking", C::NoModel),
    row("ollama", &[500], "", "requires more system memory", C::NoModel),
    row("lm studio", BAD, "", "no models loaded", C::NoModel),
    row("lm studio", BAD, "", "failed to load model", C::NoModel),
    row("litellm", BAD, "", "invalid model name passed in", C::NoModel),
    row("github models", BAD, "unknown_model", "", C::NoModel),
    row("github models", BAD, "unavailable_model", "", C::NoModel),

    // A key that is unknown, expired or locked.
    row("openai", AUTH, "invalid_api_key", "", C::BadKey),
    row("azure", &[401], "", "invalid subscription key", C::BadKey),
    row("anthropic", &[401, 403], "authentication_error", "", C::BadKey),
    row("gemini", AUTH, "api_key_invalid", "", C::BadKey),
    row("gemini", AUTH, "api_key_service_blocked", "", C::BadKey),
    row("gemini", AUTH, "api_key_ip_address_blocked", "", C::BadKey),
    row("gemini", AUTH, "api_key_http_referrer_blocked", "", C::BadKey),
    row("gemini", &[403], "permission_denied", "reported as leaked", C::BadKey),
    row("gemini", &[403], "permission_denied", "unregistered callers", C::BadKey),
    row("vertex", &[401, 403], "access_token_expired", "", C::BadKey),
    row("bedrock", AUTH, "unrecognizedclientexception", "", C::BadKey),
    row("bedrock", AUTH, "expiredtokenexception", "", C::BadKey),
    row("bedrock", AUTH, "invalidsignatureexception", "", C::BadKey),
    row("bedrock", AUTH, "incompletesignatureexception", "", C::BadKey),
    row("bedrock", AUTH, "missingauthenticationtokenexception", "", C::BadKey),
    row("bedrock", &[403], "accessdeniedexception", "", C::BadKey),
    row("cerebras", &[401, 403], "wrong_api_key", "", C::BadKey),
    row("cohere", AUTH, "", "invalid api token", C::BadKey),
    row("xai", &[400, 403], "", "incorrect api key provided", C::BadKey),
    row("litellm", AUTH, "token_not_found_in_db", "", C::BadKey),
    row("litellm", AUTH, "expired_key", "", C::BadKey),
    row("llama.cpp", &[401, 403], "authentication_error", "", C::BadKey),

    // For now.
    row("bedrock", &[], "throttlingexception", "", C::Throttled),
    row("bedrock", &[], "toomanyrequestsexception", "", C::Throttled),
    row("bedrock", &[], "servicequotaexceededexception", "", C::Throttled),
    row("groq", &[498], "", "", C::Throttled),

    // The provider's own.
    row("bedrock", &[], "modelnotreadyexception", "", C::Failed),
    row("bedrock", &[], "modelerrorexception", "", C::Failed),
    row("bedrock", &[], "modelstreamerrorexception", "", C::Failed),
    row("bedrock", &[], "modeltimeoutexception", "", C::Failed),
    row("anthropic", &[429], "overloaded_error", "", C::Failed),
    row("moonshot", &[429], "engine_overloaded_error", "", C::Failed),
    row("llama.cpp", &[400], "unavailable_error", "", C::Failed),
];
