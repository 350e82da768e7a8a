//! The official libraries, unchanged: before scripted providers, and before another gateway over HTTP.

use std::process::Command;

use serde_json::{Value, json};

use super::foreign_litellm::{KEY, Proxy, configured};
use super::support::place;
use crate::support::components;
use crate::support::serving::Served;

/// Most times that LiteLLM is started again after a crash.
const CRASHES_MAX: usize = 3;

const MOCKS: &str = r#"
models:
  providers:
    local: { kind: mock, latency: 1ms, models: [plain, parallel-tools, fault-429, fault-500, fault-401, fault-cut] }
    slow: { kind: mock, latency: 60s, models: [echo-nothing] }
  aliases:
    smart: { tiers: [local/plain] }
"#;

/// Serves this configuration to whoever has the key, which comes with it.
fn keyed(yaml: &str) -> (Served, String) {
    let place = place(yaml, &[]);
    let args = [
        "keys",
        "create",
        "sdk",
        "--state-dir",
        "state",
        "--no-config",
    ];
    let made = place.durward(&args);
    assert!(made.status.success(), "{made:?}");
    let key = String::from_utf8(made.stdout).unwrap();
    (Served::start_ruled(place), key.trim().to_owned())
}

/// A gateway whose providers are behind another one.
fn behind(kind: &str) -> (Served, Served, String) {
    let (behind, own) = keyed(MOCKS);
    let base = format!("http://{}/v1", behind.address);
    let provider = format!("kind: {kind}, base_url: \"{base}\", api_key: \"{own}\"");
    let yaml = format!(
        "models:\n  providers:\n    local: {{ {provider} }}\n    slow: {{ {provider} }}\n  aliases:\n    smart: {{ tiers: [local/plain] }}\n"
    );
    let listed = yaml.replacen(
        " }\n    slow",
        ", models: [plain, parallel-tools, fault-429, fault-500, fault-401, fault-cut] }\n    slow",
        1,
    );
    let (front, key) = keyed(&listed);
    (behind, front, key)
}

/// A gateway whose first provider speaks another dialect than the caller; what that one has no endpoint for is
/// answered by a second one.
fn across(kind: &str, second: &str) -> (Served, Served, String) {
    let (behind, own) = keyed(MOCKS);
    let base = format!("http://{}/v1", behind.address);
    let provider = |kind: &str| format!("kind: {kind}, base_url: \"{base}\", api_key: \"{own}\"");
    let (first, second) = (provider(kind), provider(second));
    let models = "plain, parallel-tools, fault-429, fault-500, fault-401, fault-cut";
    let yaml = format!(
        "models:\n  providers:\n    local: {{ {first}, models: [{models}] }}\n    slow: {{ {first} }}\n    second: {{ {second} }}\n  aliases:\n    smart: {{ tiers: [local/plain, second/plain] }}\n"
    );
    let (front, key) = keyed(&yaml);
    (behind, front, key)
}

/// A gateway whose provider is LiteLLM's proxy, which asks another one of ours in its own translation. `None` where
/// LiteLLM is not installed.
fn behind_litellm(kind: &str) -> Option<(Served, Proxy, Served, String)> {
    let (behind, own) = keyed(MOCKS);
    let local = [
        "plain",
        "parallel-tools",
        "fault-429",
        "fault-500",
        "fault-401",
        "fault-cut",
    ];
    let named = |provider: &str, name: &str| {
        let base = format!("http://{}/v1", behind.address);
        let params =
            json!({"model": format!("openai/{provider}/{name}"), "api_base": base, "api_key": own});
        json!({"model_name": name, "litellm_params": params})
    };
    let mut models: Vec<Value> = local.iter().map(|name| named("local", name)).collect();
    models.push(named("slow", "echo-nothing"));
    let proxy = Proxy::start(&configured(&models))?;
    let provider = format!(
        "kind: {kind}, base_url: \"http://127.0.0.1:{}/v1\", api_key: {KEY}",
        proxy.port
    );
    let yaml = format!(
        "models:\n  providers:\n    local: {{ {provider}, models: [{}] }}\n    slow: {{ {provider} }}\n  aliases:\n    smart: {{ tiers: [local/plain] }}\n",
        local.join(", ")
    );
    let (front, key) = keyed(&yaml);
    Some((behind, proxy, front, key))
}

/// Runs a Python driver before LiteLLM; all has to hold but what LiteLLM itself does not do.
#[track_caller]
fn drive_before_litellm(kind: &str, script: &str, path: &str, lacks: &[&str]) {
    let Some(python) = components::models_python() else {
        return;
    };
    let script = components::models_driver(script);
    let mut crashes = 0;
    let text = loop {
        let Some((_behind, mut proxy, front, key)) = behind_litellm(kind) else {
            return;
        };
        let base = format!("http://{}{path}", front.address);
        let mut command = Command::new(&python);
        let output = command.arg(&script).args([&base, &key]).output().unwrap();
        let Some(signal) = proxy.crashed() else {
            break String::from_utf8(output.stdout).unwrap();
        };
        // Its interpreter dies now and then, in the middle of whatever it is asked.
        eprintln!("LiteLLM was ended by signal {signal}; once more with a new one");
        crashes += 1;
        assert!(
            crashes < CRASHES_MAX,
            "LiteLLM is ended by signal {signal} each time"
        );
    };
    let failed: Vec<&str> = text
        .lines()
        .filter_map(|line| line.strip_prefix("failed ")?.split(':').next())
        .collect();
    assert_eq!(failed, lacks, "{text}");
    let held = text.lines().filter(|line| line.starts_with("ok ")).count();
    assert!(held >= 15, "{text}");
}

/// Runs a Python driver; everything in it has to hold.
#[track_caller]
fn drive(script: &str, base: &str, key: &str, least: usize) {
    let Some(python) = components::models_python() else {
        return;
    };
    let script = components::models_driver(script);
    let mut command = Command::new(python);
    all_hold(command.arg(script).args([base, key]), least);
}

/// Runs the TypeScript driver for one library; everything in it has to hold.
#[track_caller]
fn drive_typescript(library: &str, base: &str, key: &str, least: usize) {
    let (Some(node), Some(packages)) = (components::node(), components::models_packages()) else {
        return;
    };
    let mut command = Command::new(node);
    command.arg(components::models_driver("node_sdk.mjs"));
    command.arg(packages).args([library, base, key]);
    all_hold(&mut command, least);
}

#[track_caller]
fn all_hold(command: &mut Command, least: usize) {
    let output = command.output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    let failed = text.lines().any(|line| !line.starts_with("ok "));
    assert!(output.status.success() && !failed, "{text}{said}");
    assert!(text.lines().count() >= least, "{text}{said}");
}

#[test]
fn openai_python() {
    let (served, key) = keyed(MOCKS);
    drive(
        "openai_sdk.py",
        &format!("http://{}/v1", served.address),
        &key,
        23,
    );
}

#[test]
fn openai_python_before_an_openai_provider() {
    let (_behind, served, key) = behind("openai");
    drive(
        "openai_sdk.py",
        &format!("http://{}/v1", served.address),
        &key,
        23,
    );
}

#[test]
fn anthropic_python() {
    let (served, key) = keyed(MOCKS);
    drive(
        "anthropic_sdk.py",
        &format!("http://{}", served.address),
        &key,
        16,
    );
}

#[test]
fn anthropic_python_before_an_anthropic_provider() {
    let (_behind, served, key) = behind("anthropic");
    drive(
        "anthropic_sdk.py",
        &format!("http://{}", served.address),
        &key,
        16,
    );
}

#[test]
fn openai_python_before_an_anthropic_provider() {
    let (_behind, served, key) = across("anthropic", "openai");
    let base = format!("http://{}/v1", served.address);
    drive("openai_sdk.py", &base, &key, 23);
}

#[test]
fn anthropic_python_before_an_openai_provider() {
    let (_behind, served, key) = across("openai", "anthropic");
    let base = format!("http://{}", served.address);
    drive("anthropic_sdk.py", &base, &key, 16);
}

#[test]
fn openai_python_before_litellm() {
    let lacks = [
        // Its chunk with the usage has a choice.
        "usage_in_the_stream",
        // Its error in a stream has words of its own.
        "cut_stream",
        // It knows `dimensions` of some models only.
        "embeddings",
        // It ends a stream of responses that was cut as if it were whole.
        "responses",
        // It has no variations of images, reads no transcription without details of its tokens, and ranks for others only.
        "images_made_and_changed",
        "transcriptions",
        "rerank",
    ];
    drive_before_litellm("openai", "openai_sdk.py", "/v1", &lacks);
}

#[test]
fn anthropic_python_before_litellm() {
    // It tells another reason where the reply was cut short.
    drive_before_litellm("anthropic", "anthropic_sdk.py", "", &["cut_short"]);
}

/// The replies of the scripted provider, and those that are translated, have the form of the libraries' own types.
#[test]
fn every_reply_event_and_error_is_of_the_libraries_own_types() {
    let Some(python) = components::models_python() else {
        return;
    };
    let (plain, key) = keyed(MOCKS);
    let (_messages, before_messages, second) = across("anthropic", "openai");
    let (_chat, before_chat, third) = across("openai", "anthropic");
    let mut command = Command::new(python);
    command.arg(components::models_driver("schemas.py"));
    for (served, key, left_out) in [
        (&plain, &key, "-"),
        (&before_messages, &second, "embeddings,images,audio"),
        (&before_chat, &third, "count_tokens"),
    ] {
        let base = format!("http://{}", served.address);
        command.args([&base, key, "local", left_out]);
    }
    all_hold(&mut command, 8 + 5 + 7);
}

#[test]
fn langchain_and_openai_agents() {
    let (served, key) = keyed(MOCKS);
    drive(
        "frameworks.py",
        &format!("http://{}/v1", served.address),
        &key,
        17,
    );
}

#[test]
fn openai_typescript() {
    let (served, key) = keyed(MOCKS);
    drive_typescript("openai", &format!("http://{}/v1", served.address), &key, 17);
}

#[test]
fn anthropic_typescript() {
    let (served, key) = keyed(MOCKS);
    drive_typescript("anthropic", &format!("http://{}", served.address), &key, 12);
}

#[test]
fn ai_sdk() {
    let (served, key) = keyed(MOCKS);
    drive_typescript("ai-sdk", &format!("http://{}/v1", served.address), &key, 10);
}
