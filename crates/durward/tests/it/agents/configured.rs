//! The configuration of agents: faults with their line, the command `durward agents`, the shipped example, further agents.

use std::fs;

use super::support::{ALLOW_ALL, BASE, STANDARD, ask, place, serve};
use crate::support::components::repository;
use crate::support::serving::Served;

fn run(agents: &str, words: &[&str]) -> (Option<i32>, String, String) {
    let place = place(agents, ALLOW_ALL);
    let first = ["--config", "durward.yaml", "--state-dir", "state"];
    let output = place.durward(&[&first, words].concat());
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (
        output.status.code(),
        text(output.stdout),
        text(output.stderr),
    )
}

#[test]
fn what_is_wrong_has_its_line_and_the_nearest_name() {
    let line = BASE.lines().count() + 1;
    for (agents, expect) in [
        ("agents: { a: { modle: x } }", "did you mean \"model\""),
        ("agents: { a: { instruction: x } }", "agents.a has no model"),
        (
            "agents: { a: { model: mock/plain } }",
            "agents.a has no instruction",
        ),
        (
            "agents: { a: { model: mokc/plain, instruction: x } }",
            "\"mokc/plain\" is not a known model",
        ),
        (
            "agents: { a: { model: mock/plain, instruction: \"{{ user }}\" } }",
            "date, caller and tools",
        ),
        (
            "agents: { a: { model: mock/plain, instruction: x, pattern: raect } }",
            "did you mean \"react\"",
        ),
        (
            "agents: { a: { model: mock/plain, instruction: x, toolsets: [{ server: ecoh }] } }",
            "did you mean \"echo\"",
        ),
        (
            "agents: { a: { model: mock/plain, instruction: x, toolsets: [{ tools: [x] }] } }",
            "neither server nor agent",
        ),
        (
            "agents: { a: { model: mock/plain, instruction: x, toolsets: [{ server: echo, tools: [\"x[\"] }] } }",
            "holds \"x[\"",
        ),
        (
            "agents: { a: { model: mock/plain, instruction: x, permissions: { allow: [\"echo/x[\"] } } }",
            "holds \"x[\"",
        ),
        (
            "agents: { a: { model: mock/plain, instruction: x, limits: { tokens: 0 } } }",
            "is outside of 1",
        ),
        (
            "agents: { a: { model: mock/plain, instruction: x, limits: { token: 9 } } }",
            "did you mean \"tokens\"",
        ),
        (
            "agents: { a: { model: mock/plain, instruction: x, on_limit: stop } }",
            "is not one of answer, error",
        ),
        (
            "agents: { a: { model: mock/plain, instruction: x, aliases: [mock] } }",
            "is also the name of a provider",
        ),
        (
            "agents: { a: { model: mock/plain, instruction: x }, b: { model: a, instruction: x } }",
            "names the agent \"a\"",
        ),
        (
            "agents: { a: { model: mock/plain, instruction: x, toolsets: [{ agent: b }] }, b: { model: mock/plain, instruction: x, toolsets: [{ agent: a }] } }",
            "in a circle: a -> b -> a",
        ),
    ] {
        let (code, _, err) = run(agents, &["agents", "check"]);
        assert_eq!(code, Some(16), "{agents}: {err}");
        assert!(err.contains(expect), "{agents}: {err}");
        assert!(err.contains(&format!("line {line}")), "{agents}: {err}");
        let (code, _, _) = run(agents, &["check"]);
        assert_eq!(code, Some(16), "{agents}");
    }
}

#[test]
fn the_command_checks_lists_and_runs() {
    let (code, out, err) = run(STANDARD, &["agents", "check"]);
    assert_eq!((code, err.as_str()), (Some(0), ""));
    assert_eq!(
        out,
        "1 agent and 0 patterns are valid; clients see 3 models\n"
    );
    let (code, out, _) = run(STANDARD, &["agents", "list"]);
    assert_eq!(code, Some(0));
    for line in [
        "standard_agent  Uses a tool and answers",
        "  called as  standard_agent, helper, standard_agent_native",
        "  tools      echo/echo",
    ] {
        assert!(out.contains(line), "{line}: {out}");
    }
    let (code, out, err) = run(STANDARD, &["agents", "run", "standard_agent", "hi"]);
    assert_eq!(
        (code, out.trim()),
        (Some(0), "The tool said: mock"),
        "{err}"
    );
    assert!(err.contains("### echo__echo"), "{err}");
    let (code, out, _) = run(STANDARD, &["agents", "run", "helper", "hi", "--json"]);
    assert_eq!(code, Some(0));
    let body: serde_json::Value = serde_json::from_str(&out).unwrap();
    assert_eq!(body["choices"][0]["finish_reason"], "stop");
    let (code, _, err) = run(STANDARD, &["agents", "run", "standard_agnet", "hi"]);
    assert_eq!(code, Some(16));
    assert!(err.contains("did you mean \"standard_agent\""), "{err}");
    let (code, _, err) = run("", &["agents", "list"]);
    assert_eq!(code, Some(16));
    assert!(err.contains("no agent is configured"), "{err}");
}

#[test]
fn the_shipped_agents_answer_on_the_mock() {
    let place = place("", ALLOW_ALL);
    let shipped = repository().join("docs/examples/agents.yaml");
    let text = fs::read_to_string(shipped).unwrap();
    let text = text.replace("kind: mock", "kind: mock, latency: 0ms");
    fs::write(
        place.path("durward.yaml"),
        format!("{text}\npolicy: policy.json\n"),
    )
    .unwrap();
    let served = Served::start_ruled(place);
    for (name, has_tool) in [
        ("standard_agent", true),
        ("standard_agent_native", true),
        ("standard_agent_simple", true),
        ("standard_agent_linear", false),
        ("coding_agent", true),
        ("coder", true),
        ("math_agent", true),
        ("vision-agent", false),
        ("mcp_agent", true),
        ("load_test_agent", false),
        ("mock_agent", false),
    ] {
        let answer = ask(&served, name, "hi", false);
        assert_eq!(answer.status, 200, "{name}: {answer:?}");
        let choice = answer.json()["choices"][0].clone();
        assert_eq!(choice["finish_reason"], "stop", "{name}: {choice}");
        let content = choice["message"]["content"].as_str().unwrap();
        assert_eq!(
            content.starts_with("The tool said: "),
            has_tool,
            "{name}: {choice}"
        );
    }
}

#[test]
fn an_agent_calls_another_one() {
    let agents = "agents:\n  outer: { model: mock/plain, instruction: x, toolsets: [{ agent: inner }] }\n  inner: { model: mock/plain, instruction: x, toolsets: [{ server: echo, tools: [echo] }] }\n";
    let served = serve(agents);
    let answer = ask(&served, "outer", "hi", false);
    assert_eq!(answer.status, 200, "{answer:?}");
    let content = answer.json()["choices"][0]["message"]["content"].clone();
    assert_eq!(content, "The tool said: The tool said: mock", "{answer:?}");
}
