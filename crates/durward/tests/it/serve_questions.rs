//! What servers ask of their clients behind `durward serve`: judged in both eras, and waiting for a person beside its call.

use std::io::BufReader;

use crate::support::guarded::{Place, eventually};
use crate::support::refusals::told;
use crate::support::serving::{
    Answer, Events, Served, call, modern, modern_headers, read_head, write_request,
};
use serde_json::{Value, json};

/// Tools pass; `roots/list` is asked about, by these approvers.
fn asking(approvers: &str, flags: &[&str]) -> Served {
    let place = Place::new();
    place.write_policy(&format!(
        r#"{{"rules":[{{"id":"tools","effect":"allow","conditions":{{"tool_name":"*"}}}},
            {{"id":"ask","effect":"hitl","conditions":{{"mcp_method":"roots/list"}}{approvers}}}]}}"#
    ));
    let words = ["hostile", "--behaviour", "server-request", "--ask", "roots"];
    let mock = place.mock(&words).join(" ");
    Served::start_server(place, &format!("echo={mock}"), flags)
}

const BY_CLIENT: &str = r#","approvers":["client"]"#;

fn open(served: &Served, capabilities: &str) -> String {
    let body = format!(
        r#"{{"jsonrpc":"2.0","id":1,"method":"initialize","params":{{"protocolVersion":"2025-11-25","capabilities":{capabilities},"clientInfo":{{"name":"t","version":"1"}}}}}}"#
    );
    let answer = served.send("POST", "/mcp/echo", &[], &body);
    answer.header("mcp-session-id").unwrap().to_owned()
}

#[track_caller]
fn reply(served: &Served, session: &str, question: &Value, result: &Value) {
    let frame = json!({"jsonrpc": "2.0", "id": question["id"], "result": result});
    assert_eq!(served.post(Some(session), &frame.to_string()).status, 202);
}

fn text(message: &Value) -> String {
    assert_eq!(message["id"], 7, "{message}");
    message["result"]["content"].to_string()
}

/// Waits until something waits for a person; gives its name.
fn waiting(served: &Served) -> String {
    let list = || {
        let args = ["approvals", "list", "--json"];
        let output = served.place.durward(&args);
        let text = String::from_utf8(output.stdout).unwrap();
        let first: Value = serde_json::from_str(text.lines().next()?).ok()?;
        first["id"].as_str().map(str::to_owned)
    };
    eventually("a question waits", || list().is_some());
    list().unwrap()
}

fn allow(served: &Served, id: &str) {
    let args = ["approvals", "once", id];
    let output = served.place.durward(&args);
    assert!(output.status.success(), "{output:?}");
}

fn waits(served: &Served, count: usize) -> bool {
    let metrics = served.send("GET", "/metrics", &[], "").body;
    metrics.contains(&format!("durward_approvals_waiting {count}\n"))
}

#[test]
fn the_clients_own_person_is_asked_before_the_server_may_ask() {
    for (answer, learned) in [("allow once", "file:///tmp"), ("deny", "-31001")] {
        let served = asking(BY_CLIENT, &[]);
        let session = open(&served, r#"{"elicitation":{}}"#);
        let mut stream = served.stream("POST", &session, &[], &call("7", "x"));
        let form = stream.message();
        assert_eq!(form["method"], "elicitation/create", "{form}");
        let shown = form["params"]["message"].as_str().unwrap();
        assert!(
            shown.contains("roots/list") && shown.contains("rule: ask"),
            "{shown}"
        );
        let said = json!({"action": "accept", "content": {"answer": answer}});
        reply(&served, &session, &form, &said);
        let mut message = stream.message();
        if answer == "allow once" {
            assert_eq!(message["method"], "roots/list", "{message}");
            let roots = json!({"roots": [{"uri": "file:///tmp"}]});
            reply(&served, &session, &message, &roots);
            message = stream.message();
        }
        let told = text(&message);
        assert!(told.contains(learned), "{answer}: {told}");
    }
}

#[test]
fn a_client_that_cannot_be_asked_leaves_the_server_refused() {
    let served = asking(BY_CLIENT, &[]);
    let session = open(&served, "{}");
    let answer = served.post(Some(&session), &call("7", "x"));
    let told = text(&answer.json());
    assert!(told.contains("approval_unreachable"), "{told}");
}

#[test]
fn another_person_may_let_the_question_pass() {
    let served = asking("", &[]);
    let session = open(&served, "{}");
    let mut stream = served.connect();
    let id = ("mcp-session-id", session.as_str());
    write_request(&mut stream, "POST", "/mcp/echo", &[id], &call("7", "x"));
    allow(&served, &waiting(&served));
    let mut reader = BufReader::new(stream);
    read_head(&mut reader);
    let mut stream = Events::over(reader);
    let question = stream.message();
    assert_eq!(question["method"], "roots/list", "{question}");
    let roots = json!({"roots": [{"uri": "file:///srv"}]});
    reply(&served, &session, &question, &roots);
    assert!(text(&stream.message()).contains("file:///srv"));
}

#[test]
fn a_question_that_waits_holds_up_neither_the_calls_time_nor_its_cancellation() {
    let served = asking("", &["--call-timeout", "1"]);
    let session = open(&served, "{}");
    let answer = served.post(Some(&session), &call("7", "x")).json();
    assert_eq!(told(&answer)["reason"], "upstream_timeout", "{answer}");
    assert!(waits(&served, 1), "the question itself still waits");
    let headers = [("mcp-session-id", session.as_str())];
    assert_eq!(served.send("DELETE", "/mcp/echo", &headers, "").status, 204);
    eventually("it ends with its session", || waits(&served, 0));
    let (_, place) = served.stop();
    let journal = place.journal();
    assert_eq!(
        journal.decision("\"mock-ask-1\"")["reason"],
        "approval_withdrawn"
    );
}

const MODERN_RULES: &str = r#"{"rules":[{"id":"tools","effect":"allow","conditions":{"tool_name":"*"}},
    {"id":"forms","effect":"allow","conditions":{"mcp_method":"elicitation/create"}},
    {"id":"no-model","effect":"deny","conditions":{"mcp_method":"sampling/createMessage"}},
    {"id":"ask-roots","effect":"hitl","conditions":{"mcp_method":"roots/list"}}]}"#;

fn modern_call(served: &Served, id: &str, tool: &str) -> Answer {
    let body = modern(
        id,
        "tools/call",
        &format!(r#""name":"{tool}","arguments":{{}}"#),
    )
    .replace(
        r#"clientCapabilities":{}"#,
        r#"clientCapabilities":{"elicitation":{},"sampling":{},"roots":{}}"#,
    );
    served.send(
        "POST",
        "/mcp/echo",
        &modern_headers("tools/call", tool),
        &body,
    )
}

#[test]
fn h1_what_a_modern_result_asks_of_the_client_is_judged() {
    let place = Place::new();
    place.write_policy(MODERN_RULES);
    let mock = place.mock(&["conformance"]).join(" ");
    let served = Served::start_server(place, &format!("echo={mock}"), &[]);
    let asks = |id: &str, kind: &str| {
        modern_call(&served, id, &format!("test_input_required_result_{kind}")).json()
    };
    let form = asks("1", "elicitation");
    assert_eq!(form["result"]["resultType"], "input_required", "{form}");
    for (id, kind) in [("2", "sampling"), ("3", "multiple_inputs")] {
        let refused = asks(id, kind);
        assert_eq!(refused["result"]["isError"], true, "{refused}");
        assert_eq!(told(&refused)["final_rule"], "no-model", "{refused}");
        assert!(!refused.to_string().contains("inputRequests"), "{refused}");
    }
    let answer = std::thread::scope(|scope| {
        let asked = scope.spawn(|| asks("4", "list_roots"));
        allow(&served, &waiting(&served));
        asked.join().unwrap()
    });
    assert_eq!(answer["result"]["resultType"], "input_required", "{answer}");
    let (_, place) = served.stop();
    let journal = place.journal();
    let of = |method: &str| {
        let found = journal.0.iter().rfind(|r| r["mcp_method"] == method);
        found
            .unwrap_or_else(|| panic!("{method} is not in the journal"))
            .clone()
    };
    assert_eq!(of("elicitation/create")["decision"], "allow");
    assert_eq!(of("elicitation/create")["direction"], "to_client");
    assert_eq!(of("sampling/createMessage")["reason"], "denied_by_rule");
    assert_eq!(of("roots/list")["hitl_outcome"], "user_allowed");
    let call = journal
        .0
        .iter()
        .find(|r| r["kind"] == "operation" && r["request_id"] == "2");
    assert_eq!(call.unwrap()["status"], "Failure");
}
