//! A Modern client over stdio whose own person may answer: it is asked by a result that wants input, and
//! comes back with the answer.

use crate::support::guarded::{Place, end, eventually, line};
use crate::support::refusals::told;
use mcp::client::Client;
use serde_json::{Value, json};

/// Calls of echo are asked about; `approvers` may answer.
fn scene(approvers: &Value, flags: &[&str]) -> (Place, Client) {
    let place = Place::new();
    let policy = json!({"rules": [{"id": "ask", "effect": "hitl",
        "conditions": {"tool_name": ["echo", "delayed"]}, "approvers": approvers}]});
    place.write_policy(&policy.to_string());
    let client = place.guard_with(flags, &["echo"]);
    (place, client)
}

/// A call by a client that can show a form, with these further members of `params`.
fn send(client: &mut Client, id: u64, text: &str, more: &Value) {
    send_to(client, id, "echo", &json!({"text": text}), more);
}

fn send_to(client: &mut Client, id: u64, tool: &str, arguments: &Value, more: &Value) {
    let mut params = json!({"name": tool, "arguments": arguments, "_meta": {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": {"name": "m", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": {"elicitation": {"form": {}}}}});
    for (name, value) in more.as_object().unwrap() {
        params[name] = value.clone();
    }
    let call = json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params});
    client
        .process()
        .send_line(call.to_string().as_bytes())
        .unwrap();
}

fn ask(client: &mut Client, id: u64, text: &str, more: &Value) -> Value {
    send(client, id, text, more);
    line(client)
}

/// The state of a result that wants input.
#[track_caller]
fn state(answer: &Value) -> String {
    assert_eq!(answer["result"]["resultType"], "input_required", "{answer}");
    let input = &answer["result"]["inputRequests"]["durward_approval"];
    assert_eq!(input["method"], "elicitation/create", "{answer}");
    answer["result"]["requestState"]
        .as_str()
        .unwrap()
        .to_owned()
}

/// What a client adds that comes back with this answer of its person.
fn back(state: &str, answer: &str) -> Value {
    json!({"requestState": state, "inputResponses": {"durward_approval":
        {"action": "accept", "content": {"answer": answer}}}})
}

#[track_caller]
fn reason(answer: &Value) -> &str {
    told(answer)["reason"]
        .as_str()
        .unwrap_or_else(|| panic!("{answer}"))
}

#[test]
fn it_is_asked_by_a_result_and_comes_back() {
    let (place, mut client) = scene(&json!(["client"]), &[]);
    let first = state(&ask(&mut client, 1, "x", &json!({})));
    let passed = ask(&mut client, 2, "x", &back(&first, "allow once"));
    assert_eq!(passed["result"]["content"][0]["text"], "x", "{passed}");
    // A state is good once, and for the same request; what is wrong does not use it up.
    let again = ask(&mut client, 3, "x", &back(&first, "allow once"));
    assert_eq!(again["error"]["code"], -32602, "{again}");
    let second = state(&ask(&mut client, 4, "y", &json!({})));
    let other = ask(&mut client, 5, "z", &back(&second, "allow once"));
    assert_eq!(other["error"]["code"], -32602, "{other}");
    let denied = ask(&mut client, 6, "y", &back(&second, "deny"));
    assert_eq!(reason(&denied), "approval_denied");
    // Without an answer there is none.
    let third = state(&ask(&mut client, 7, "x", &json!({})));
    let none = ask(&mut client, 8, "x", &json!({"requestState": third}));
    assert_eq!(reason(&none), "approval_unfit");
    // What is still kept at the end is withdrawn.
    state(&ask(&mut client, 9, "x", &json!({})));
    assert_eq!(end(client).code, Some(0));
    let journal = place.journal();
    assert_eq!(journal.decision("1")["hitl_channel"], "client");
    assert_eq!(journal.operation("1")["status"], "Success");
    assert_eq!(journal.decision("4")["reason"], "approval_denied");
    assert_eq!(journal.decision("9")["hitl_outcome"], "withdrawn");
}

#[test]
fn where_others_may_answer_too_the_first_answer_stands() {
    let (place, mut client) = scene(&json!(["client", "cli"]), &[]);
    let answer = |word: &str| {
        eventually("the call waits and is answered", || {
            let listed = place.durward(&["approvals", "list", "--json"]);
            let listed = String::from_utf8(listed.stdout).unwrap();
            let question: Option<Value> = listed
                .lines()
                .next()
                .map(|l| serde_json::from_str(l).unwrap());
            question.is_some_and(|q| {
                let given = place.durward(&["approvals", word, q["id"].as_str().unwrap()]);
                given.status.success()
            })
        });
    };
    // Answered elsewhere before the client comes back, and while it waits without an answer of its own.
    let first = state(&ask(&mut client, 1, "x", &json!({})));
    answer("once");
    let passed = ask(&mut client, 2, "x", &back(&first, "deny"));
    assert_eq!(passed["result"]["content"][0]["text"], "x", "{passed}");
    let second = state(&ask(&mut client, 3, "x", &json!({})));
    send(&mut client, 4, "x", &json!({"requestState": second}));
    answer("deny");
    assert_eq!(reason(&line(&mut client)), "approval_denied");
    end(client);
}

#[test]
fn a_client_that_never_comes_back_is_given_up() {
    let (place, mut client) = scene(&json!(["client"]), &["--approval-timeout", "5"]);
    let first = state(&ask(&mut client, 1, "x", &json!({})));
    eventually("the call is given up", || {
        let shown = place.durward(&["--state-dir", "state", "logs", "show"]);
        String::from_utf8(shown.stdout).unwrap().contains("  ask ")
    });
    let late = ask(&mut client, 2, "x", &back(&first, "allow once"));
    assert_eq!(late["error"]["code"], -32602, "{late}");
    end(client);
    assert_eq!(place.journal().decision("1")["reason"], "approval_timeout");
}

/// Trying states costs as much as calling.
#[test]
fn states_that_are_none_count_against_the_limits() {
    let (_place, mut client) = scene(
        &json!(["client"]),
        &["--limit-requests", "1/m", "--limit-burst", "3"],
    );
    // The first request tells the era.
    let first = state(&ask(&mut client, 1, "x", &json!({})));
    for id in [2, 3] {
        let unknown = ask(
            &mut client,
            id,
            "x",
            &back("durward-approval-00", "allow once"),
        );
        assert_eq!(unknown["error"]["code"], -32602, "{unknown}");
    }
    let beyond = ask(
        &mut client,
        4,
        "x",
        &back("durward-approval-00", "allow once"),
    );
    assert_eq!(reason(&beyond), "rate_limited");
    // What was counted when it first came is not counted again.
    let passed = ask(&mut client, 5, "x", &back(&first, "allow once"));
    assert_eq!(passed["result"]["content"][0]["text"], "x", "{passed}");
    end(client);
}

/// The server knows the call by the id of the first request, the client by that of the second.
#[test]
fn a_call_that_was_come_back_for_is_cancelled_by_either_name() {
    let (place, mut client) = scene(&json!(["client"]), &[]);
    let endless = json!({"text": "x", "delay_us": 600_000_000});
    let begin = |client: &mut Client, id: u64| {
        send_to(client, id, "delayed", &endless, &json!({}));
        let state = state(&line(client));
        send_to(
            client,
            id + 1,
            "delayed",
            &endless,
            &back(&state, "allow once"),
        );
        // Once its question has ended, the call is on its way; both of its ids are in use.
        for used in [id, id + 1] {
            let refused = ask(client, used, "x", &json!({}));
            assert_eq!(refused["error"]["code"], -32600, "{refused}");
        }
    };
    for (id, named) in [(1, 2), (11, 11)] {
        begin(&mut client, id);
        client
            .notify("notifications/cancelled", &json!({"requestId": named}))
            .unwrap();
        // The very next request finds both ids free again, but for what it waits for itself.
        let state = state(&ask(&mut client, id + 5, "y", &json!({})));
        let passed = ask(&mut client, id + 6, "y", &back(&state, "allow once"));
        assert_eq!(passed["result"]["content"][0]["text"], "y", "{passed}");
    }
    assert_eq!(end(client).code, Some(0));
    let journal = place.journal();
    for id in ["1", "11"] {
        assert_eq!(journal.operation(id)["status"], "Cancelled");
    }
}

/// Tools pass and forms may be shown; the client's model may not be used; roots are asked about.
const INPUT_RULES: &str = r#"{"rules":[
    {"id":"tools","effect":"allow","conditions":{"tool_name":"*"}},
    {"id":"forms","effect":"allow","conditions":{"mcp_method":"elicitation/create"}},
    {"id":"no-model","effect":"deny","conditions":{"mcp_method":"sampling/createMessage"}},
    {"id":"ask-roots","effect":"hitl","conditions":{"mcp_method":"roots/list"}}]}"#;

fn input_call(client: &mut Client, id: u64, kind: &str) {
    let capabilities = json!({"elicitation": {}, "sampling": {}, "roots": {}});
    let call = json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": {
        "name": format!("test_input_required_result_{kind}"), "arguments": {}, "_meta": {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": {"name": "m", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": capabilities}}});
    let call = call.to_string();
    client.process().send_line(call.as_bytes()).unwrap();
}

#[test]
fn what_a_result_asks_of_the_client_is_judged() {
    let place = Place::new();
    place.write_policy(INPUT_RULES);
    let mut client = place.guard_with(&[], &["conformance"]);
    let mut asks = |id: u64, kind: &str| {
        input_call(&mut client, id, kind);
        line(&mut client)
    };
    let form = asks(1, "elicitation");
    assert_eq!(form["result"]["resultType"], "input_required", "{form}");
    for (id, kind) in [(2, "sampling"), (3, "multiple_inputs")] {
        let refused = asks(id, kind);
        let data = told(&refused);
        assert_eq!(data["final_rule"], "no-model", "{refused}");
        assert!(!refused.to_string().contains("inputRequests"), "{refused}");
    }
    input_call(&mut client, 4, "list_roots");
    eventually("the question waits and is allowed", || {
        let listed = place.durward(&["approvals", "list", "--json"]);
        let listed = String::from_utf8(listed.stdout).unwrap();
        listed.lines().next().is_some_and(|first| {
            let first: Value = serde_json::from_str(first).unwrap();
            let id = first["id"].as_str().unwrap();
            place.durward(&["approvals", "once", id]).status.success()
        })
    });
    let allowed = line(&mut client);
    assert_eq!(
        allowed["result"]["resultType"], "input_required",
        "{allowed}"
    );
    // A call whose result waits for a person can be cancelled.
    input_call(&mut client, 5, "list_roots");
    let waits = || {
        !place
            .durward(&["approvals", "list", "--json"])
            .stdout
            .is_empty()
    };
    eventually("the next question waits", waits);
    let cancel =
        json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 5}});
    let cancel = cancel.to_string();
    client.process().send_line(cancel.as_bytes()).unwrap();
    eventually("the question is withdrawn", || !waits());
    assert_eq!(end(client).code, Some(0));
    let journal = place.journal();
    let of = |method: &str, id: &str| {
        let mut records = journal.0.iter();
        let found = records.find(|r| {
            r["kind"] == "decision" && r["mcp_method"] == method && r["request_id"] == id
        });
        found.unwrap_or_else(|| panic!("{method} of {id}")).clone()
    };
    assert_eq!(of("elicitation/create", "1")["decision"], "allow");
    assert_eq!(of("elicitation/create", "1")["direction"], "to_client");
    assert_eq!(
        of("sampling/createMessage", "2")["reason"],
        "denied_by_rule"
    );
    assert_eq!(of("roots/list", "4")["hitl_outcome"], "user_allowed");
    assert_eq!(of("roots/list", "5")["hitl_outcome"], "withdrawn");
    let ends = |id: &str| {
        let mut records = journal.0.iter();
        let is_end = |r: &&Value| {
            r["kind"] == "operation" && r["request_id"] == id && r["tool_name"].is_string()
        };
        records.find(is_end).unwrap()["status"].clone()
    };
    assert_eq!(ends("1"), "Success");
    assert_eq!(ends("2"), "Failure");
    assert_eq!(ends("4"), "Success");
    assert_eq!(ends("5"), "Cancelled");
}
