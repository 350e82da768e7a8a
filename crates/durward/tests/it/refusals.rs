//! P2: a refused tool call is a result that agents survive, and an error where the configuration says so.

use std::fs;
use std::process::Command;

use mcp::client::Client;
use serde_json::{Value, json};

use crate::support::components;
use crate::support::guarded::{LATEST, Place, binary, end};
use crate::support::refusals::{REFUSED_CODE, refusal_text, told};

const RULES: &str = r#"{"rules":[
    {"id":"no-echo","effect":"deny","conditions":{"tool_name":"echo"}},
    {"id":"rest","effect":"allow","conditions":{"tool_name":"*"}}]}"#;

fn place() -> Place {
    let place = Place::new();
    place.write_policy(RULES);
    place
}

fn asked(client: &mut Client, method: &str, params: Value) -> Value {
    let reply = client.request(method, params).unwrap();
    serde_json::from_str(reply.line()).unwrap()
}

fn echo() -> Value {
    json!({"name": "echo", "arguments": {"text": "x"}})
}

#[test]
fn p02_a_refused_tool_call_is_a_result_that_a_model_can_act_on() {
    let place = place();
    let mut client = place.guard(&["echo"]);
    client.handshake(LATEST).unwrap();
    let refused = asked(&mut client, "tools/call", echo());
    let text = refusal_text(&refused);
    assert!(text.contains("no-echo"), "{text}");
    assert!(text.contains("will be refused again"), "{text}");
    let data = &refused["result"]["structuredContent"];
    assert_eq!(data["reason"], "denied_by_rule");
    assert_eq!(data["final_rule"], "no-echo");
    assert_eq!(data["retryable"], false);
    // Other methods have no result that could say so.
    let read = asked(&mut client, "resources/read", json!({"uri": "file:///x"}));
    assert_eq!(read["error"]["code"], REFUSED_CODE, "{read}");
    assert_eq!(read["error"]["data"]["reason"], "no_rule_allows");
    assert_eq!(end(client).code, Some(0));
    assert!(place.counted().is_empty());
}

#[test]
fn a_limit_says_when_to_try_again() {
    let place = Place::new();
    let flags = ["--limit-requests", "1/m", "--limit-burst", "1"];
    let mut client = place.guard_with(&flags, &["echo"]);
    client.handshake(LATEST).unwrap();
    let refused = (0..3)
        .map(|_| asked(&mut client, "tools/call", echo()))
        .find(|answer| !told(answer).is_null())
        .expect("one of three is refused");
    let wait_ms = told(&refused)["retry_after_ms"].as_u64().unwrap();
    let said = format!("Wait at least {} s", wait_ms.div_ceil(1_000));
    assert!(refusal_text(&refused).contains(&said), "{refused}");
    end(client);
}

#[test]
fn p02_a_refusal_is_an_error_where_flag_or_key_say_so() {
    let refused_with = |mut client: Client| {
        client.handshake(LATEST).unwrap();
        let refused = asked(&mut client, "tools/call", echo());
        assert_eq!(refused["error"]["code"], REFUSED_CODE, "{refused}");
        assert_eq!(refused["error"]["data"]["reason"], "denied_by_rule");
        end(client);
    };
    let by_flag = place();
    refused_with(by_flag.guard_with(&["--refusals", "error"], &["echo"]));
    let by_key = place();
    let text = "refusals: error\nservers: { talk: { builtin: echo } }\n";
    fs::write(by_key.path("durward.yaml"), text).unwrap();
    refused_with(by_key.guard_configured("durward.yaml", &[], "talk"));
}

#[test]
fn a_word_that_is_neither_is_refused_at_the_start() {
    let place = place();
    fs::write(place.path("durward.yaml"), "refusals: eror\n").unwrap();
    let check = place.durward(&["--config", "durward.yaml", "check"]);
    let said = String::from_utf8_lossy(&check.stderr).into_owned();
    assert_eq!(check.status.code(), Some(16), "{said}");
    assert!(said.contains("did you mean \"error\"?"), "{said}");
}

/// The TypeScript SDK holds `structuredContent` against the tool's output schema, also that of an error.
#[test]
fn clients_that_check_output_schemas_take_a_refusal() {
    let (Some(node), Some(packages)) = (components::node(), components::client_packages()) else {
        return;
    };
    for version in ["1", "2"] {
        let place = Place::new();
        place.write_policy(
            r#"{"rules":[{"id":"ask","effect":"hitl","conditions":{"tool_name":"*"},"approvers":["client"]}]}"#,
        );
        let text = "servers: { talk: { builtin: echo } }\n";
        fs::write(place.path("durward.yaml"), text).unwrap();
        let mut words = place.run_args(&[], &[]);
        words.pop();
        let at = words.iter().position(|word| word == "--no-config").unwrap();
        words.splice(at..=at, ["--config".into(), "durward.yaml".into()]);
        let output = Command::new(&node)
            .arg(components::client_driver("refused.mjs"))
            .args([packages.as_os_str(), version.as_ref(), binary().as_ref()])
            .args(&words)
            .arg("talk")
            .env("XDG_RUNTIME_DIR", place.runtime())
            .current_dir(&place.dir)
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{version}: {said}");
        let seen: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(seen["schema"], "object", "{seen}");
        assert_eq!(seen["result"]["isError"], true, "{seen}");
        assert_eq!(told(&seen)["reason"], "approval_unreachable", "{seen}");
    }
}
