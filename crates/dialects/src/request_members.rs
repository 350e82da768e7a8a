//! The members of a request that are known, with the server that reads each. A member that is not here may offer a tool
//! or lengthen a reply, so rules that ask for that count it as unknown, never as absent.

use super::body::Body;
use super::json;
use wire::fold::same;

/// The members of a request to a model that the gate reads or writes: those of one dialect, and those that are read in
/// each, because a gateway behind takes one dialect's for another's.
macro_rules! known {
    ($($own:literal),* $(,)?) => {
        &[
            $($own,)*
            "model",
            "stream",
            "background",
            "deferred",
            "max_tokens",
            "max_completion_tokens",
            "max_output_tokens",
            "max_new_tokens",
            "n_predict",
            "num_predict",
            "best_of",
            "min_tokens",
            "max_gen_len",
            "max_length",
            "max_tokens_to_sample",
            "max_decode_tokens",
            "thinking_budget",
            "additional_tools",
            "n",
            "tools",
            "mcp_servers",
            "web_search_options",
            "search_parameters",
            "plugins",
            "data_sources",
            "enable_search",
            "compound_custom",
            "connectors",
            "vector_store_ids",
        ]
    };
}

/// The members of a request that the gate reads or writes.
pub(super) const MESSAGES: &[&str] = known!["messages", "system"];

/// The members of a request that the gate reads or writes.
pub(super) const CHAT: &[&str] = known!["messages", "stream_options", "functions"];

/// The members of a request that the gate reads or writes.
pub(super) const RESPONSES: &[&str] = known!["input", "prompt"];

/// Members by the server, or the family of servers, that reads them. None offers a tool, and none makes a reply longer,
/// unless it is read for that elsewhere.
#[rustfmt::skip]
const KNOWN: &[(&str, &[&str])] = &[
    ("openai chat completions", &[
        "model", "messages", "audio", "frequency_penalty", "function_call", "functions", "logit_bias", "logprobs",
        "max_completion_tokens", "max_tokens", "metadata", "modalities", "moderation", "n", "parallel_tool_calls", "prediction",
        "presence_penalty", "prompt_cache_key", "prompt_cache_options", "prompt_cache_retention", "reasoning_effort",
        "response_format", "safety_identifier", "seed", "service_tier", "stop", "store", "stream", "stream_options", "temperature",
        "tool_choice", "tools", "top_logprobs", "top_p", "user", "verbosity", "web_search_options",
    ]),
    ("openai responses", &[
        "background", "client_metadata", "context_management", "conversation", "include", "input", "instructions",
        "max_output_tokens", "max_tool_calls", "previous_response_id", "prompt", "reasoning", "text", "truncation",
    ]),
    ("anthropic", &[
        "anthropic_beta", "anthropic_version", "betas", "cache_control", "container", "inference_geo", "mcp_servers",
        "output_config", "output_format", "speed", "stop_sequences", "system", "thinking", "top_k",
    ]),
    ("vllm, sglang", &[
        "add_generation_prompt", "add_special_tokens", "best_of", "cache_salt", "chat_template", "chat_template_kwargs",
        "continue_final_message", "documents", "ebnf", "echo", "guided_choice", "guided_decoding_backend", "guided_grammar",
        "guided_json", "guided_regex", "guided_whitespace_pattern", "include_stop_str_in_output", "json_schema", "length_penalty",
        "min_p", "min_tokens", "mm_processor_kwargs", "no_stop_trim", "priority", "prompt_logprobs", "regex",
        "repetition_penalty", "request_id", "return_token_ids", "return_tokens_as_token_ids", "separate_reasoning",
        "skip_special_tokens", "spaces_between_special_tokens", "stop_regex", "stop_token_ids", "stream_reasoning",
        "structured_outputs", "truncate_prompt_tokens", "use_beam_search", "vllm_xargs",
    ]),
    ("llama.cpp", &[
        "cache_prompt", "dry_allowed_length", "dry_base", "dry_multiplier", "dry_penalty_last_n", "dry_sequence_breakers",
        "dynatemp_exponent", "dynatemp_range", "grammar", "grammar_lazy", "grammar_triggers", "id_slot", "min_keep", "mirostat",
        "mirostat_eta", "mirostat_tau", "n_discard", "n_indent", "n_keep", "n_predict", "n_probs", "parse_tool_calls",
        "post_sampling_probs", "reasoning_format", "repeat_last_n", "repeat_penalty", "return_progress", "return_tokens",
        "samplers", "t_max_predict_ms", "tfs_z", "thinking_forced_open", "timings_per_token", "typical_p", "xtc_probability",
        "xtc_threshold",
    ]),
    ("ollama, lm studio", &["format", "keep_alive", "num_predict", "options", "think", "ttl"]),
    ("openrouter", &["include_reasoning", "plugins", "provider", "session_id", "top_a", "trace", "transforms", "usage"]),
    ("groq", &[
        "citation_options", "compound_custom", "disable_tool_validation", "exclude_domains", "include_domains", "search_settings",
    ]),
    ("mistral", &["prompt_mode", "random_seed", "safe_prompt"]),
    ("xai", &["deferred", "search_parameters"]),
    ("azure", &["data_sources", "user_security_context"]),
    ("cohere", &["connectors", "vector_store_ids"]),
    ("dashscope", &["enable_search", "enable_thinking", "search_options", "thinking_budget", "vl_high_resolution_images"]),
    ("together, fireworks", &[
        "context_length_exceeded_behavior", "ignore_eos", "max_new_tokens", "perf_metrics_in_response", "prompt_truncate_len",
        "raw_output", "reasoning_history", "return_token_ids", "safety_model", "top_n_sigma",
    ]),
    ("litellm", &[
        "allowed_openai_params", "caching", "drop_params", "extra_body", "guardrails", "litellm_session_id", "litellm_trace_id",
        "no-log", "num_retries", "tags", "timeout",
    ]),
    ("gateways", &["additional_tools", "gateway", "orq", "provider_options", "providerOptions", "generation_config", "inference_config",
        "additional_model_request_fields", "router_settings_override"]),
    ("servers of one's own models", &[
        "max_decode_tokens", "max_gen_len", "max_length", "max_tokens_to_sample",
    ]),
];

/// Returns whether a request has a member that is not known: a provider may read in it what no rule has read.
pub(super) fn has_unknown(body: &Body) -> bool {
    body.members().any(|(name, raw)| {
        let is_known = || {
            let mut all = KNOWN.iter().flat_map(|(_, names)| names.iter());
            all.any(|known| *known == name)
        };
        raw != "null" && !is_known()
    })
}

/// Returns the raw values of what lies within a member under this name, as a lenient reader compares names.
pub(super) fn within<'b>(body: &'b Body, member: &str, name: &str) -> Vec<&'b str> {
    let inner = json::members(body.get(member).unwrap_or_default());
    let found = inner.into_iter().filter(|(own, _)| same(own, name));
    found.map(|(_, raw)| raw).collect()
}

#[cfg(test)]
mod tests {
    use super::super::endpoint::Endpoint;
    use super::*;

    #[test]
    fn what_the_gate_reads_is_known_and_what_nobody_reads_is_not() {
        for endpoint in [Endpoint::Chat, Endpoint::Responses, Endpoint::Messages] {
            for name in endpoint.known_members() {
                let text = format!("{{\"{name}\":1}}");
                let body = Body::read(text.as_bytes(), &[]).unwrap();
                assert!(!has_unknown(&body), "{name}");
            }
        }
        for (text, unknown) in [
            (r#"{"temperature":1,"min_p":0.1}"#, false),
            (r#"{"invented_tomorrow":null}"#, false),
            (r#"{"invented_tomorrow":1}"#, true),
        ] {
            assert_eq!(
                has_unknown(&Body::read(text.as_bytes(), &[]).unwrap()),
                unknown,
                "{text}"
            );
        }
    }
}
