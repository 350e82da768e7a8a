//! How a client is told that its call was refused.
//!
//! A refused `tools/call` is a result with `isError`: agents go on after a failed tool, and many end or try
//! again after a JSON-RPC error. Every other method has no such result and is answered with an error.

use gate::{Reason, Refusal};
use serde_json::{Value, json};
use toolkit::mcp::META_REFUSAL;
use toolkit::reasons::mcp_error;

use super::frames;

/// What a refused `tools/call` is answered with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Refusals {
    /// A result with `isError`.
    #[default]
    Result,
    /// A JSON-RPC error.
    Error,
}

/// What the client of a refused tool call understands.
#[derive(Debug, Clone, Copy)]
pub struct Dialect {
    /// Whether it speaks 2026-07-28, whose results name their type.
    pub is_modern: bool,
    /// Whether the tool may declare an output schema. Clients hold `structuredContent` against it, also that of
    /// an error, so what is said of the refusal is in `_meta` then.
    pub has_output_schema: bool,
}

/// A refused request, as a JSON-RPC error; `id` as the client spelled it.
#[must_use]
pub fn as_error(id: &str, refusal: &Refusal) -> Vec<u8> {
    let code = mcp_error(refusal.reason);
    frames::error(id, code, &refusal.to_string(), Some(&data(refusal)))
}

/// A refused tool call, as a result that a model can act on; `id` as the client spelled it, and why its arguments
/// cannot be read, where they cannot.
#[must_use]
pub fn as_result(
    id: &str,
    refusal: &Refusal,
    (dialect, unfit): (Dialect, Option<&str>),
) -> Vec<u8> {
    let mut result = json!({
        "content": [{ "type": "text", "text": text(refusal, unfit) }],
        "isError": true,
    });
    if let Some(members) = result.as_object_mut() {
        let data = data(refusal);
        if dialect.has_output_schema {
            members.insert("_meta".into(), json!({ META_REFUSAL: data }));
        } else {
            members.insert("structuredContent".into(), data);
        }
        if dialect.is_modern {
            members.insert("resultType".into(), "complete".into());
        }
    }
    format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":{result}}}").into_bytes()
}

/// Why, and what to do next.
fn text(refusal: &Refusal, unfit: Option<&str>) -> String {
    // Of arguments that cannot be read nothing is known, and that is why no rule lets them pass.
    let is_unknown = matches!(refusal.reason, Reason::Undecidable | Reason::NoRule);
    if let Some(unfit) = unfit.filter(|_| is_unknown) {
        return format!("refused: the {unfit}. Correct that, and make the call again.");
    }
    let mut text = format!("{refusal}. {}", refusal.reason.advice());
    if let Some(ms) = refusal.retry_after_ms {
        let seconds = ms.div_ceil(1_000);
        text.push_str(&format!(" Wait at least {seconds} s before that."));
    }
    text
}

fn data(refusal: &Refusal) -> Value {
    let mut data = json!({
        "tool_name": refusal.tool_name,
        "path": refusal.path,
        "matched_rules": refusal.matched_rules,
        "final_rule": refusal.final_rule,
        "decision": refusal.decision.label(),
        "reason": refusal.reason.label(),
        "retryable": refusal.reason.is_retryable(),
    });
    if let Some(members) = data.as_object_mut() {
        if refusal.matched_rules_omitted > 0 {
            let omitted = refusal.matched_rules_omitted;
            members.insert("matched_rules_omitted".into(), omitted.into());
        }
        members.extend(
            refusal
                .retry_after_ms
                .map(|ms| ("retry_after_ms".into(), ms.into())),
        );
    }
    data
}

#[cfg(test)]
mod tests {
    use gate::effect::Effect;

    use super::*;

    fn refusal(reason: Reason, retry_after_ms: Option<u64>) -> Refusal {
        Refusal {
            op: None,
            reason,
            decision: Effect::Deny,
            final_rule: "no-writes".into(),
            matched_rules: vec!["no-writes".into()],
            matched_rules_omitted: 0,
            tool_name: Some("write_file".into()),
            path: None,
            retry_after_ms,
            said: None,
        }
    }

    fn result(reason: Reason, retry_after_ms: Option<u64>, dialect: Dialect) -> Value {
        let frame = as_result("\"a\"", &refusal(reason, retry_after_ms), (dialect, None));
        let read: Value = serde_json::from_slice(&frame).unwrap();
        assert_eq!(read["id"], "a");
        assert_eq!(read["result"]["isError"], true);
        read["result"].clone()
    }

    #[test]
    fn a_refused_tool_call_says_why_and_what_to_do_next() {
        let plain = Dialect {
            is_modern: false,
            has_output_schema: false,
        };
        let denied = result(Reason::DenyRule, None, plain);
        let text = denied["content"][0]["text"].as_str().unwrap();
        assert!(text.contains("no-writes") && text.contains("refused again"));
        assert_eq!(denied["structuredContent"]["final_rule"], "no-writes");
        assert!(denied.get("resultType").is_none());
        let limited = result(Reason::RateLimit, Some(1_200), plain);
        let text = limited["content"][0]["text"].as_str().unwrap();
        assert!(text.ends_with("Wait at least 2 s before that."), "{text}");
        assert_eq!(limited["structuredContent"]["retry_after_ms"], 1_200);
    }

    #[test]
    fn arguments_that_cannot_be_read_are_told_where_nothing_else_refuses() {
        let dialect = Dialect {
            is_modern: false,
            has_output_schema: false,
        };
        let told = |reason| {
            let unfit = Some("arguments do not fit: command: x");
            let frame = as_result("1", &refusal(reason, None), (dialect, unfit));
            let read: Value = serde_json::from_slice(&frame).unwrap();
            read["result"]["content"][0]["text"]
                .as_str()
                .unwrap()
                .to_owned()
        };
        for reason in [Reason::Undecidable, Reason::NoRule] {
            assert!(told(reason).starts_with("refused: the arguments do not fit: command: x. "));
        }
        for reason in [Reason::DenyRule, Reason::RateLimit, Reason::Inspected] {
            assert!(!told(reason).contains("do not fit"), "{reason:?}");
        }
    }

    #[test]
    fn an_output_schema_is_never_contradicted() {
        let declared = Dialect {
            is_modern: true,
            has_output_schema: true,
        };
        let denied = result(Reason::DenyRule, None, declared);
        assert!(denied.get("structuredContent").is_none());
        assert_eq!(denied["_meta"][META_REFUSAL]["reason"], "denied_by_rule");
        assert_eq!(denied["resultType"], "complete");
    }

    #[test]
    fn no_code_of_a_refusal_is_reserved_by_json_rpc() {
        for reason in Reason::ALL {
            let frame = as_error("1", &refusal(reason, None));
            let read: Value = serde_json::from_slice(&frame).unwrap();
            let code = read["error"]["code"].as_i64().unwrap();
            assert!(!(-32_768..=-32_000).contains(&code), "{reason:?}: {code}");
        }
    }
}
