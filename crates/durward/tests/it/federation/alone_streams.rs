//! Requests of revision 2026-07-28 in front of several servers that are answered with a stream, or in two steps.

use std::io::BufReader;

use serde_json::{Value, json};

use super::alone::send;
use super::kept::{asked, recording};
use super::{configured, text_of};
use crate::support::guarded::{Place, eventually};
use crate::support::refusals::is_passed;
use crate::support::served::Served as ByUrl;
use crate::support::serving::{self, Events, modern, modern_headers, read_head, write_request};

const ANYTHING: &str =
    r#"{"rules":[{"id":"all","effect":"allow","conditions":{"mcp_method":"*"}}]}"#;

/// Two servers that speak all revisions, and one of the earlier ones.
fn served(policy: &str, more: &Value) -> serving::Served {
    let place = Place::new();
    place.write_policy(policy);
    let mut configuration = json!({"servers": {
        "one": recording(&place, "heard-one", &["conformance"]),
        "two": recording(&place, "heard-two", &["conformance"]),
        "old": recording(&place, "heard-old", &["echo", "--eras", "legacy"]),
        "slow": recording(&place, "heard-slow", &["echo"]),
    }, "policy": place.path("policy.json")});
    for (name, value) in more.as_object().unwrap() {
        configuration[name] = value.clone();
    }
    configured(&place, &configuration);
    serving::Served::start_ruled(place)
}

/// A request that is answered with a stream.
#[track_caller]
fn stream(served: &serving::Served, method: &str, name: &str, body: &str) -> Events {
    let mut stream = served.connect();
    write_request(
        &mut stream,
        "POST",
        "/mcp",
        &modern_headers(method, name),
        body,
    );
    let mut reader = BufReader::new(stream);
    let answer = read_head(&mut reader);
    let kind = answer.header("content-type");
    assert_eq!(kind, Some("text/event-stream"), "{answer:?}");
    Events::over(reader)
}

fn listen(served: &serving::Served, id: &str, filter: &str) -> Events {
    let filter = format!("\"notifications\":{filter}");
    let body = modern(id, "subscriptions/listen", &filter);
    stream(served, "subscriptions/listen", "", &body)
}

fn subscription(message: &Value) -> &Value {
    &message["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"]
}

#[test]
fn progress_comes_under_the_clients_token_and_the_answer_last() {
    let served = served(ANYTHING, &json!({}));
    let name = "two__test_tool_with_progress";
    let params = format!(r#""name":"{name}","arguments":{{}}"#);
    let body = modern("5", "tools/call", &params)
        .replace("\"_meta\":{", "\"_meta\":{\"progressToken\":\"mine\",");
    let mut events = stream(&served, "tools/call", name, &body);
    let mut progress = 0;
    loop {
        let message = events.message();
        if message["method"] == "notifications/progress" {
            assert_eq!(message["params"]["progressToken"], "mine", "{message}");
            progress += 1;
            continue;
        }
        assert_eq!(message["id"], 5, "{message}");
        assert_eq!(message["result"]["resultType"], "complete", "{message}");
        break;
    }
    assert!(progress > 0);
    assert!(events.next().is_none());
}

#[test]
fn a_client_that_closes_its_stream_cancels_at_the_server() {
    let served = served(ANYTHING, &json!({}));
    for (id, server) in [("61", "slow"), ("62", "old")] {
        let name = format!("{server}__delayed");
        let params = format!(r#""name":"{name}","arguments":{{"text":"x","delay_us":600000000}}"#);
        let body = modern(id, "tools/call", &params);
        // It stays silent for so long that its answer begins as a stream.
        let events = stream(&served, "tools/call", &name, &body);
        let heard = format!("heard-{server}");
        assert_eq!(asked(&served.place, &heard, "tools/call"), 1);
        drop(events);
        eventually("the server is told", || {
            asked(&served.place, &heard, "notifications/cancelled") == 1
        });
    }
    let (code, place) = served.stop();
    assert_eq!(code, Some(0));
    let journal = place.journal();
    for id in ["61", "62"] {
        assert_eq!(journal.operation(id)["status"], "Cancelled", "{journal:?}");
    }
}

#[test]
fn one_subscription_hears_of_all_servers() {
    let served = served(ANYTHING, &json!({}));
    let filter = r#"{"toolsListChanged":true,"resourceSubscriptions":["two+test://watched-resource","nobody+x:y","x:y"]}"#;
    let mut events = listen(&served, "\"sub\"", filter);
    let first = events.message();
    assert_eq!(first["method"], "notifications/subscriptions/acknowledged");
    assert_eq!(subscription(&first), "sub", "{first}");
    assert_eq!(
        first["params"]["notifications"],
        json!({"toolsListChanged": true,
            "resourceSubscriptions": ["two+test://watched-resource"]})
    );
    let call = |name: &str, arguments: &str| {
        let params = format!(r#""name":"{name}","arguments":{arguments}"#);
        let answer = send(&served, "tools/call", name, &params);
        assert_eq!(answer.status, 200, "{answer:?}");
        assert!(is_passed(&answer.json()), "{answer:?}");
    };
    for server in ["one", "two"] {
        call(&format!("{server}__test_trigger_tool_change"), "{}");
        let news = events.message();
        assert_eq!(news["method"], "notifications/tools/list_changed", "{news}");
        assert_eq!(subscription(&news), "sub", "{news}");
    }
    call("one__test_trigger_resource_update", "{}");
    call("two__test_trigger_resource_update", "{}");
    let news = events.message();
    assert_eq!(news["method"], "notifications/resources/updated", "{news}");
    assert_eq!(
        news["params"]["uri"], "two+test://watched-resource",
        "{news}"
    );
    drop(events);
    eventually("both servers are told", || {
        ["heard-one", "heard-two"]
            .iter()
            .all(|heard| asked(&served.place, heard, "notifications/cancelled") == 1)
    });
}

#[test]
fn a_subscription_is_refused_where_no_server_may_be_listened_to() {
    let rules = r#"{"rules":[{"id":"tools","effect":"allow","conditions":{"tool_name":"*"}}]}"#;
    let served = served(rules, &json!({}));
    let ask = |filter: &str| {
        let filter = format!("\"notifications\":{filter}");
        send(&served, "subscriptions/listen", "", &filter).json()
    };
    let refused = ask(r#"{"resourceSubscriptions":["two+test://watched-resource"]}"#);
    assert_eq!(
        refused["error"]["data"]["reason"], "no_rule_allows",
        "{refused}"
    );
    let nothing = ask(r#"{"resourceSubscriptions":["nobody+x:y"]}"#);
    assert_eq!(nothing["error"]["code"], -32602, "{nothing}");
    let heard = |name: &str| asked(&served.place, name, "subscriptions/listen");
    assert_eq!((heard("heard-one"), heard("heard-two")), (0, 0));
}

#[test]
fn a_reload_of_the_rules_is_told_to_who_listens() {
    let served = served(ANYTHING, &json!({}));
    let mut events = listen(&served, "1", r#"{"toolsListChanged":true}"#);
    assert_eq!(
        events.message()["method"],
        "notifications/subscriptions/acknowledged"
    );
    let less = r#"{"rules":[{"id":"some","effect":"allow","conditions":{"tool_name":"echo"}}]}"#;
    served.place.write_policy(less);
    let news = events.message();
    assert_eq!(news["method"], "notifications/tools/list_changed", "{news}");
    // The end of serving is the end of the stream.
    served.terminate();
    while events.next().is_some() {}
    let (code, _) = served.ended();
    assert_eq!(code, Some(0));
}

#[test]
fn a_servers_question_in_a_result_is_answered_under_the_same_name() {
    let served = served(ANYTHING, &json!({}));
    let name = "one__test_input_required_result_elicitation";
    let ask = |more: &str| {
        let params = format!(r#""name":"{name}","arguments":{{}}{more}"#);
        let body = modern("7", "tools/call", &params).replace(
            "clientCapabilities\":{}",
            "clientCapabilities\":{\"elicitation\":{}}",
        );
        served
            .send("POST", "/mcp", &modern_headers("tools/call", name), &body)
            .json()
    };
    let wanted = ask("");
    assert_eq!(wanted["result"]["resultType"], "input_required", "{wanted}");
    let requests = wanted["result"]["inputRequests"].as_object().unwrap();
    let (key, request) = requests.iter().next().unwrap();
    assert_eq!(request["method"], "elicitation/create", "{wanted}");
    let mut more =
        json!({"inputResponses": {key: {"action": "accept", "content": {"name": "Ada"}}}});
    if let Some(state) = wanted["result"].get("requestState") {
        more["requestState"] = state.clone();
    }
    let more = more.to_string();
    let more = format!(",{}", &more[1..more.len() - 1]);
    let answer = ask(&more);
    assert_eq!(answer["result"]["resultType"], "complete", "{answer}");
    assert!(text_of(&answer).contains("Ada"), "{answer}");
}

#[test]
fn the_clients_own_person_is_asked_by_a_result_and_the_call_is_carried_out_once() {
    let rules = r#"{"rules":[{"id":"ask","effect":"hitl","conditions":{"tool_name":"echo"},"approvers":["client"]}]}"#;
    let served = served(rules, &json!({}));
    let ask = |name: &str, more: &str| {
        let params = format!(r#""name":"{name}","arguments":{{"text":"x"}}{more}"#);
        let body = modern("7", "tools/call", &params).replace(
            "clientCapabilities\":{}",
            "clientCapabilities\":{\"elicitation\":{\"form\":{}}}",
        );
        served
            .send("POST", "/mcp", &modern_headers("tools/call", name), &body)
            .json()
    };
    for name in ["slow__echo", "old__echo"] {
        let before = served.place.counted().len();
        let wanted = ask(name, "");
        assert_eq!(wanted["result"]["resultType"], "input_required", "{wanted}");
        let state = wanted["result"]["requestState"].to_string();
        let back = format!(
            r#","requestState":{state},"inputResponses":{{"durward_approval":{{"action":"accept","content":{{"answer":"allow once"}}}}}}"#
        );
        // A state is good for the same call of the same server alone.
        let other = match name {
            "old__echo" => "slow__echo",
            _ => "old__echo",
        };
        let elsewhere = ask(other, &back);
        assert_eq!(elsewhere["error"]["code"], -32602, "{elsewhere}");
        assert_eq!(served.place.counted().len(), before);
        assert_eq!(text_of(&ask(name, &back)), "x");
        let again = ask(name, &back);
        assert_eq!(again["error"]["code"], -32602, "{again}");
        assert_eq!(served.place.counted().len(), before + 1);
    }
}

#[test]
fn a_server_over_http_is_spoken_to_in_its_own_revision() {
    let place = Place::new();
    place.write_policy(ANYTHING);
    let site = |eras: &str| {
        let words = ["echo", "--eras", eras];
        crate::support::served::Site::start(&place, &words, "127.0.0.1:0")
    };
    let (old, new) = (site("legacy"), site("modern"));
    let servers = json!({"old": {"url": old.url}, "new": {"url": new.url}});
    let served = ByUrl::start(&place, &servers);
    let url = format!("{}/mcp", served.address);
    let mut client = crate::support::served::ready(&url, mocks::client::Era::Modern);
    use super::Asks as _;
    let (names, missing) = client.tools();
    assert_eq!(missing, [""; 0]);
    for name in ["old__echo", "new__echo"] {
        assert!(names.iter().any(|known| known == name), "{names:?}");
        for text in ["first", "second"] {
            let answer = client.call(name, json!({ "text": text }));
            assert_eq!(text_of(&answer), text);
            assert_eq!(answer["result"]["resultType"], "complete", "{answer}");
        }
    }
}
