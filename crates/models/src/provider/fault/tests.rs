//! Errors as servers word them, and what each means.

use super::*;
use FaultScope as S;
use Trouble as T;
use http::HeaderValue;

fn answered(status: u16, body: &str) -> Fault {
    let status = StatusCode::from_u16(status).unwrap();
    let body = Bytes::copy_from_slice(body.as_bytes());
    Fault::answered(status, &HeaderMap::new(), body)
}

/// Error of a server: status, body, and what it means.
type Documented = (&'static str, u16, &'static str, FaultScope, Trouble);

#[rustfmt::skip]
const DOCUMENTED: &[Documented] = &[
    // Keys.
    ("openai", 401, r#"{"error":{"message":"Incorrect API key provided: sk-ab*****yz. You can find your API key at https://platform.openai.com/account/api-keys.","type":"invalid_request_error","param":null,"code":"invalid_api_key"}}"#, S::Key, T::Credentials),
    ("azure", 401, r#"{"error":{"code":"401","message":"Access denied due to invalid subscription key or wrong API endpoint."}}"#, S::Key, T::Credentials),
    ("anthropic", 401, r#"{"type":"error","error":{"type":"authentication_error","message":"invalid x-api-key"}}"#, S::Key, T::Credentials),
    ("gemini", 400, r#"{"error":{"code":400,"message":"API key not valid. Please pass a valid API key.","status":"INVALID_ARGUMENT","details":[{"@type":"type.googleapis.com/google.rpc.ErrorInfo","reason":"API_KEY_INVALID","domain":"googleapis.com"}]}}"#, S::Key, T::Credentials),
    ("gemini", 403, r#"{"error":{"code":403,"message":"Your API key was reported as leaked. Please use another API key.","status":"PERMISSION_DENIED"}}"#, S::Key, T::Credentials),
    ("vertex", 401, r#"{"error":{"code":401,"message":"Request had invalid authentication credentials.","status":"UNAUTHENTICATED","details":[{"reason":"ACCESS_TOKEN_EXPIRED"}]}}"#, S::Key, T::Credentials),
    ("mistral", 401, r#"{"detail":"Unauthorized"}"#, S::Key, T::Credentials),
    ("deepseek", 401, r#"{"error":{"message":"Authentication Fails, Your api key: ****0000 is invalid","type":"authentication_error","param":null,"code":"invalid_request_error"}}"#, S::Key, T::Credentials),
    ("cerebras", 401, r#"{"message":"Wrong API Key","type":"invalid_request_error","param":"api_key","code":"wrong_api_key"}"#, S::Key, T::Credentials),
    ("cohere", 401, r#"{"message":"invalid api token"}"#, S::Key, T::Credentials),
    ("xai", 400, r#"{"code":"Client specified an invalid argument","error":"Incorrect API key provided: xa***ab. You can obtain an API key from https://console.x.ai."}"#, S::Key, T::Credentials),
    ("openrouter", 401, r#"{"error":{"message":"No auth credentials found","code":401}}"#, S::Key, T::Credentials),
    ("vllm", 401, r#"{"error":"Unauthorized"}"#, S::Key, T::Credentials),
    ("litellm", 401, r#"{"error":{"message":"Authentication Error, Invalid proxy server token passed.","type":"token_not_found_in_db","param":"key","code":"401"}}"#, S::Key, T::Credentials),
    ("nginx", 401, "<html><head><title>401 Authorization Required</title></head><body><hr><center>nginx</center></body></html>", S::Key, T::Credentials),
    ("openai", 429, r#"{"error":{"message":"Rate limit reached for gpt-5 on tokens per min (TPM): Limit 30000, Used 29000, Requested 2000. Please try again in 2s.","type":"tokens","param":null,"code":"rate_limit_exceeded"}}"#, S::Key, T::RateLimited),
    ("gemini", 429, r#"{"error":{"code":429,"message":"You exceeded your current quota, please check your plan and billing details.","status":"RESOURCE_EXHAUSTED","details":[{"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"34s"}]}}"#, S::Key, T::RateLimited),
    ("groq", 498, r#"{"error":{"message":"Flex tier capacity exceeded","type":"capacity_exceeded","code":"capacity_exceeded"}}"#, S::Key, T::RateLimited),
    // Accounts.
    ("openai", 429, r#"{"error":{"message":"You exceeded your current quota, please check your plan and billing details.","type":"insufficient_quota","param":null,"code":"insufficient_quota"}}"#, S::Account, T::Quota),
    ("openai", 400, r#"{"error":{"message":"Billing hard limit has been reached","type":"invalid_request_error","param":null,"code":"billing_hard_limit_reached"}}"#, S::Account, T::Quota),
    ("openai", 403, r#"{"error":{"code":"unsupported_country_region_territory","message":"Country, region, or territory not supported","param":null,"type":"request_forbidden"}}"#, S::Account, T::Quota),
    ("anthropic", 400, r#"{"type":"error","error":{"type":"invalid_request_error","message":"Your credit balance is too low to access the Anthropic API. Please go to Plans & Billing to upgrade or purchase credits."}}"#, S::Account, T::Quota),
    ("anthropic", 402, r#"{"type":"error","error":{"type":"billing_error","message":"x"}}"#, S::Account, T::Quota),
    ("gemini", 403, r#"{"error":{"code":403,"message":"Generative Language API has not been used in project 123 before or it is disabled.","status":"PERMISSION_DENIED","details":[{"reason":"SERVICE_DISABLED"}]}}"#, S::Account, T::Quota),
    ("gemini", 400, r#"{"error":{"code":400,"message":"User location is not supported for the API use.","status":"FAILED_PRECONDITION"}}"#, S::Account, T::Quota),
    ("deepseek", 402, r#"{"error":{"message":"Insufficient Balance","type":"unknown_error","param":null,"code":"invalid_request_error"}}"#, S::Account, T::Quota),
    ("groq", 400, r#"{"error":{"message":"Organization has been restricted. Please reach out to support if you believe this was in error.","type":"invalid_request_error","code":"organization_restricted"}}"#, S::Account, T::Quota),
    ("xai", 403, r#"{"code":"The caller does not have permission to execute the specified operation","error":"Your newly created team doesn't have any credits yet."}"#, S::Account, T::Quota),
    ("openrouter", 402, r#"{"error":{"message":"Insufficient credits. Add more using https://openrouter.ai/settings/credits","code":402}}"#, S::Account, T::Quota),
    ("together", 402, r#"{"error":{"message":"Credit limit exceeded","type":"credit_limit","param":null,"code":null}}"#, S::Account, T::Quota),
    ("fireworks", 412, r#"{"error":{"message":"Account x is suspended, possibly due to reaching the monthly spending limit or failure to pay past invoices.","code":"PRECONDITION_FAILED"}}"#, S::Account, T::Quota),
    ("litellm", 400, r#"{"error":{"message":"Budget has been exceeded! Current cost: 11.0, Max budget: 10.0","type":"budget_exceeded","param":null,"code":"400"}}"#, S::Account, T::Quota),
    ("cohere", 429, r#"{"message":"You are using a Trial key, which is limited to 1000 API calls / month."}"#, S::Account, T::Quota),
    // Models.
    ("openai", 403, r#"{"error":{"message":"Your organization must be verified to use the model `gpt-image-1`.","type":"invalid_request_error"}}"#, S::Model, T::NoModel),
    ("openai", 403, r#"{"error":{"message":"Project `proj_x` does not have access to model `gpt-5`","type":"invalid_request_error","param":null,"code":"model_not_found"}}"#, S::Model, T::NoModel),
    ("openai", 401, r#"{"error":{"message":"You have insufficient permissions for this operation. Missing scopes: model.request.","type":"invalid_request_error","param":null,"code":null}}"#, S::Model, T::NoModel),
    ("azure", 404, r#"{"error":{"code":"DeploymentNotFound","message":"The API deployment for this resource does not exist."}}"#, S::Model, T::NoModel),
    ("anthropic", 403, r#"{"type":"error","error":{"type":"permission_error","message":"Your API key does not have permission to use the specified resource."}}"#, S::Model, T::NoModel),
    ("anthropic", 404, r#"{"type":"error","error":{"type":"not_found_error","message":"model: claude-x"}}"#, S::Model, T::NoModel),
    ("gemini", 403, r#"{"error":{"code":403,"message":"The caller does not have permission","status":"PERMISSION_DENIED"}}"#, S::Model, T::NoModel),
    ("vertex", 403, r#"{"error":{"code":403,"message":"Permission 'aiplatform.endpoints.predict' denied on resource","status":"PERMISSION_DENIED","details":[{"reason":"IAM_PERMISSION_DENIED"}]}}"#, S::Model, T::NoModel),
    ("vertex", 400, r#"{"error":{"code":400,"message":"Project `1` is not allowed to use Publisher Model `x`","status":"FAILED_PRECONDITION"}}"#, S::Model, T::NoModel),
    ("mistral", 400, r#"{"object":"error","message":"Invalid model: x","type":"invalid_model","param":null,"code":"1500"}"#, S::Model, T::NoModel),
    ("deepseek", 400, r#"{"error":{"message":"Model Not Exist","type":"invalid_request_error","param":null,"code":"invalid_request_error"}}"#, S::Model, T::NoModel),
    ("groq", 403, r#"{"error":{"message":"The model `x` is blocked at the project level.","type":"permissions_error","code":"model_permission_blocked_project"}}"#, S::Model, T::NoModel),
    ("groq", 400, r#"{"error":{"message":"The model `x` has been decommissioned and is no longer supported.","type":"invalid_request_error","code":"model_decommissioned"}}"#, S::Model, T::NoModel),
    ("openrouter", 400, r#"{"error":{"message":"x is not a valid model ID","code":400}}"#, S::Model, T::NoModel),
    ("openrouter", 404, r#"{"error":{"message":"No endpoints found that support tool use.","code":404}}"#, S::Model, T::NoModel),
    ("together", 400, r#"{"error":{"message":"Unable to access non-serverless model x.","type":"invalid_request_error","param":null,"code":"model_not_available"}}"#, S::Model, T::NoModel),
    ("fireworks", 404, r#"{"error":{"object":"error","type":"invalid_request_error","code":"NOT_FOUND","message":"Model not found, inaccessible, and/or not deployed"}}"#, S::Model, T::NoModel),
    ("ollama", 404, r#"{"error":{"message":"model \"x\" not found, try pulling it first","type":"api_error","param":null,"code":null}}"#, S::Model, T::NoModel),
    ("ollama", 400, r#"{"error":"registry.ollama.ai/library/x does not support tools"}"#, S::Model, T::NoModel),
    ("lm studio", 404, r#"{"error":{"message":"No models loaded. Please load a model in the developer page","type":"invalid_request_error","param":"model","code":"model_not_found"}}"#, S::Model, T::NoModel),
    ("litellm", 401, r#"{"error":{"message":"key not allowed to access model. This key can only access models=['a']","type":"key_model_access_denied","param":"model","code":"401"}}"#, S::Model, T::NoModel),
    ("any", 403, "{}", S::Model, T::NoModel),
    // Requests.
    ("openai", 400, r#"{"error":{"message":"Your request was rejected as a result of our safety system.","type":"image_generation_user_error","code":"moderation_blocked"}}"#, S::Request, T::Refused),
    ("azure", 400, r#"{"error":{"message":"The response was filtered due to the prompt triggering the content management policy.","code":"content_filter","innererror":{"code":"ResponsibleAIPolicyViolation"}}}"#, S::Request, T::Refused),
    ("openrouter", 403, r#"{"error":{"code":403,"message":"Input was flagged by moderation","metadata":{"reasons":["violence"]}}}"#, S::Request, T::Refused),
    ("openrouter", 402, r#"{"error":{"message":"This request requires more credits, or fewer max_tokens. You requested up to 32000 tokens, but can only afford 1234.","code":402}}"#, S::Request, T::Quota),
    ("xai", 403, r#"{"code":"The caller does not have permission to execute the specified operation","error":"Content violates usage guidelines. Failed check: SAFETY_CHECK_TYPE_BIO"}"#, S::Request, T::Refused),
    ("deepseek", 400, r#"{"error":{"message":"Content Exists Risk","type":"invalid_request_error","param":null,"code":"invalid_request_error"}}"#, S::Request, T::Refused),
    ("cloudflare", 403, "<!DOCTYPE html><html><head><title>Attention Required! | Cloudflare</title></head></html>", S::Request, T::Refused),
    ("akamai", 403, "<HTML><HEAD>\n<TITLE>Access Denied</TITLE>\n</HEAD></HTML>", S::Request, T::Refused),
    ("modsecurity", 406, "<html><head><title>Not Acceptable!</title></head></html>", S::Request, T::Refused),
    ("openai", 422, r#"{"error":{"code":"insufficient_quota","message":"x"}}"#, S::Request, T::Refused),
    ("pydantic", 422, r#"{"detail":[{"type":"missing","loc":["body"],"msg":"Field required","input":"insufficient_quota"}]}"#, S::Request, T::Refused),
    // Servers.
    ("nginx", 502, "<html><head><title>502 Bad Gateway</title></head><body><hr><center>nginx</center></body></html>", S::Server, T::Failed),
    ("nginx", 504, "<html><head><title>504 Gateway Time-out</title></head></html>", S::Server, T::Failed),
    ("envoy", 503, "no healthy upstream", S::Server, T::Failed),
    ("anthropic", 529, r#"{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}"#, S::Server, T::Failed),
    ("llama.cpp", 503, r#"{"error":{"code":503,"message":"Loading model","type":"unavailable_error"}}"#, S::Server, T::Failed),
    ("sglang", 503, r#"{"error":{"message":"The request queue is full.","code":503}}"#, S::Server, T::Failed),
    ("any", 500, "", S::Server, T::Failed),
    ("any", 302, "", S::Server, T::Malformed),
];

/// Sentences about a request that is too long, with their status and their server.
#[rustfmt::skip]
const TOO_LONG: &[(&str, u16, &str)] = &[
    ("openai", 400, "This model's maximum context length is 8192 tokens. However, your messages resulted in 9000 tokens."),
    ("openai", 429, "Request too large for gpt-4o in organization org-x on tokens per min (TPM): Limit 30000, Requested 41000."),
    ("openai", 400, "Input tokens exceed the configured limit of 272000 tokens. Your messages resulted in 300000 tokens."),
    ("anthropic", 400, "prompt is too long: 208310 tokens > 200000 maximum"),
    ("anthropic", 400, "input length and `max_tokens` exceed context limit: 188240 + 21333 > 200000, decrease input length or `max_tokens` and try again"),
    ("gemini", 400, "The input token count (1200000) exceeds the maximum number of tokens allowed (1048576)."),
    ("vertex", 400, "Unable to submit request because the input token count is 1050000 but model only supports up to 1048576."),
    ("bedrock", 400, "Input is too long for requested model."),
    ("mistral", 400, "Prompt contains 65673 tokens and 0 draft tokens, too large for model with 32768 maximum context length"),
    ("groq", 400, "Please reduce the length of the messages or completion."),
    ("cerebras", 400, "Please reduce the length of the messages or completion. Current length is 9000 while limit is 8192"),
    ("sambanova", 400, "Requested generation length 1 is not possible! The provided prompt is 4117 tokens long, but the maximum supported sequence length is just 4096!"),
    ("cohere", 400, "too many tokens: total number of tokens in the prompt exceeds the limit of 4081"),
    ("xai", 400, "This model's maximum prompt length is 131072 but the request contains 150000 tokens."),
    ("openrouter", 400, "This endpoint's maximum context length is 131072 tokens. However, you requested about 150000 tokens"),
    ("together", 422, "Input validation error: `inputs` tokens + `max_new_tokens` must be <= 4097. Given: 4076 `inputs` tokens and 100 `max_new_tokens`"),
    ("together", 403, "Input token count + max_tokens parameter must be less than the context length of the model being queried."),
    ("fireworks", 400, "The prompt is too long: 150000, model maximum context length: 131072"),
    ("vllm", 400, "The decoder prompt (length 5000) is longer than the maximum model length of 4096."),
    ("sglang", 400, "The input (5000 tokens) is longer than the model's context length (4096 tokens)."),
    ("sglang", 400, "Input length (5000 tokens) exceeds the maximum allowed length (4090 tokens). Use a shorter input or enable --allow-auto-truncate."),
    ("llama.cpp", 400, "request (5000 tokens) exceeds the available context size (4096 tokens), try increasing it"),
    ("llama.cpp", 500, "input is too large to process. increase the physical batch size (current batch size: 512)"),
    ("ollama", 400, "prompt too long; exceeded max context length by 123 tokens"),
    ("lm studio", 400, "The number of tokens to keep from the initial prompt is greater than the context length."),
    ("litellm", 400, "litellm.ContextWindowExceededError: litellm.BadRequestError: x"),
    ("moonshot", 400, "Invalid request: Your request exceeded model token limit: 8192"),
];

#[test]
fn documented_errors_are_about_whom_their_servers_mean() {
    for (server, status, body, scope, trouble) in DOCUMENTED {
        let fault = answered(*status, body);
        assert_eq!(
            (fault.scope, fault.trouble),
            (*scope, *trouble),
            "{server} {status} {body}"
        );
        let counts = matches!(fault.trouble.verdict(), Verdict::Failure { .. });
        assert_eq!(
            counts,
            *scope == S::Server,
            "{server} {status}: breakers count servers alone"
        );
    }
}

#[test]
fn a_request_that_is_too_long_is_known_by_what_any_server_says() {
    for (server, status, sentence) in TOO_LONG {
        let body = format!("{{\"error\":{{\"message\":{sentence:?}}}}}");
        let fault = answered(*status, &body);
        assert_eq!(fault.trouble, T::ContextLength, "{server} {sentence}");
        assert_eq!(
            (fault.scope, fault.remedy),
            (S::Request, Remedy::NextTarget),
            "{server}"
        );
    }
}

#[test]
fn callers_read_what_is_said_of_their_request_and_not_of_the_key() {
    for (server, status, body, scope, _) in DOCUMENTED {
        let fault = answered(*status, body);
        let reads = fault.answer.is_some() || fault.told.is_some();
        let is_theirs = matches!(scope, S::Request | S::Model | S::Account) && *body != "{}";
        assert_eq!(reads, is_theirs, "{server} {status} {body}");
    }
    let page = answered(403, "<html><title>Attention Required!</title></html>");
    let (status, told) = page.told.unwrap();
    assert_eq!(status, StatusCode::FORBIDDEN);
    assert!(told.ends_with("with a page: Attention Required!"), "{told}");
    // A 401 would say that the caller's key is wrong.
    let denied = r#"{"error":{"message":"key not allowed to access model","type":"key_model_access_denied"}}"#;
    assert_eq!(
        answered(401, denied).answer.unwrap().0,
        StatusCode::FORBIDDEN
    );
}

#[test]
fn each_scope_has_its_remedy() {
    let remedy = |status, body| answered(status, body).remedy;
    assert_eq!(remedy(400, "{}"), Remedy::Nothing);
    assert_eq!(
        remedy(
            403,
            r#"{"error":{"message":"Input was flagged by moderation"}}"#
        ),
        Remedy::Nothing
    );
    assert_eq!(remedy(403, "<html>"), Remedy::NextTarget);
    assert_eq!(
        remedy(
            403,
            r#"{"error":{"type":"permission_error","message":"x"}}"#
        ),
        Remedy::OtherKey
    );
    assert_eq!(remedy(404, "{}"), Remedy::NextTarget);
    assert_eq!(remedy(402, "{}"), Remedy::NextTarget);
    assert_eq!(remedy(503, ""), Remedy::Again);
}

#[test]
fn an_error_under_a_good_status_is_read_by_what_it_says() {
    let read = |body: &str| {
        let fault = Fault::in_reply(&HeaderMap::new(), Bytes::copy_from_slice(body.as_bytes()));
        (fault.scope, fault.trouble)
    };
    let cases = [
        (
            r#"{"error":{"message":"boom","code":500}}"#,
            (S::Server, T::Failed),
        ),
        (r#"{"error":{"message":"boom"}}"#, (S::Server, T::Failed)),
        (
            r#"{"error":{"message":"m","code":"insufficient_quota"}}"#,
            (S::Account, T::Quota),
        ),
        (
            r#"{"error":{"message":"m","code":429}}"#,
            (S::Key, T::RateLimited),
        ),
        (
            r#"{"type":"error","error":{"type":"overloaded_error","message":"m"}}"#,
            (S::Server, T::Failed),
        ),
        (
            r#"{"error":{"message":"m","type":"invalid_request_error"}}"#,
            (S::Request, T::Refused),
        ),
    ];
    for (body, expect) in cases {
        assert_eq!(read(body), expect, "{body}");
    }
}

#[test]
fn errors_of_aws_are_read_by_their_kind() {
    let cases = [
        (429, "ThrottlingException", "slow", T::RateLimited),
        (400, "ServiceQuotaExceededException", "q", T::RateLimited),
        (429, "ModelNotReadyException", "wait", T::Failed),
        (424, "ModelErrorException", "x", T::Failed),
        (408, "ModelTimeoutException", "x", T::Failed),
        (
            403,
            "AccessDeniedException",
            "You don't have access to the model",
            T::NoModel,
        ),
        (
            403,
            "AccessDeniedException",
            "Model access is denied due to INVALID_PAYMENT_INSTRUMENT",
            T::Quota,
        ),
        (403, "AccessDeniedException", "no such key", T::Credentials),
        (403, "ExpiredTokenException", "x", T::Credentials),
        (403, "InvalidSignatureException", "x", T::Credentials),
        (
            400,
            "ValidationException",
            "The provided model identifier is invalid.",
            T::NoModel,
        ),
        (
            400,
            "ValidationException",
            "Input is too long for requested model.",
            T::ContextLength,
        ),
        (
            400,
            "ValidationException",
            "max_tokens: required",
            T::Refused,
        ),
        (404, "ResourceNotFoundException", "x", T::NoModel),
        (503, "ServiceUnavailableException", "x", T::Failed),
    ];
    for (status, kind, said, trouble) in cases {
        let mut headers = HeaderMap::new();
        let shown = format!("{kind}:http://internal.amazon.com/coral/");
        headers.insert(ERROR_TYPE, HeaderValue::try_from(shown).unwrap());
        let body = format!("{{\"message\":\"{said}\"}}");
        let code = StatusCode::from_u16(status).unwrap();
        let fault = Fault::answered(code, &headers, body.into());
        assert_eq!(fault.trouble, trouble, "{kind} {said}");
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
