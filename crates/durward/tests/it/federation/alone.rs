//! Requests of revision 2026-07-28 in front of several servers: no session, and each server in the revision that it
//! speaks.

use std::fs;
use std::time::Instant;

use mocks::client::{Era, HttpClient};
use serde_json::{Value, json};

use super::kept::{asked, recording};
use super::{Asks, configured, text_of};
use crate::support::guarded::{LATEST, Place, eventually};
use crate::support::refusals::told;
use crate::support::served::{Served, ready};
use crate::support::serving::{self, Answer, modern, modern_headers};

const RULES: &str = r#"{"version":"1","rules":[
    {"id":"hidden","effect":"deny","conditions":{"tool_name":"delayed"}},
    {"id":"no-secret","effect":"deny","conditions":{"path_pattern":"/secret/**"}},
    {"id":"all","effect":"allow","conditions":{"mcp_method":"*"}}]}"#;

/// Servers of each kind: `both` and `full` speak all revisions, `old` the earlier ones, `new` the last, `own` is built in.
fn servers(place: &Place) -> Value {
    place.write_policy(RULES);
    json!({
        "both": recording(place, "heard-both", &["echo"]),
        "old": recording(place, "heard-old", &["echo", "--eras", "legacy"]),
        "new": recording(place, "heard-new", &["echo", "--eras", "modern"]),
        "full": recording(place, "heard-full", &["conformance"]),
        "own": {"builtin": "echo"},
    })
}

/// The request's parts: headers that repeat what it says.
pub(super) fn send(served: &serving::Served, method: &str, name: &str, params: &str) -> Answer {
    let body = modern("\"q\"", method, params);
    served.send("POST", "/mcp", &modern_headers(method, name), &body)
}

fn is_complete(reply: &mocks::client::Reply) {
    let result = reply.result().unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(result["resultType"], "complete", "{result}");
}

/// What was carried out for this caller, and what the journal says of it.
fn is_recorded(place: &Place) {
    let records = place.journal();
    let mut allowed: Vec<String> = records
        .decisions()
        .into_iter()
        .filter(|decision| decision["mcp_method"] == "tools/call")
        .filter(|decision| decision["decision"] == "allow" && decision["backend_id"] != "own")
        .map(|decision| decision["tool_name"].as_str().unwrap().to_owned())
        .collect();
    let executed = place.counted().into_iter();
    let mut executed: Vec<String> = executed
        .map(|call| call["name"].as_str().unwrap().to_owned())
        .collect();
    allowed.sort();
    executed.sort();
    assert_eq!(executed, allowed);
    for decision in records.decisions() {
        let named = decision["tool_name"].as_str().unwrap_or_default();
        assert!(!named.contains("__"), "{decision}");
    }
}

#[test]
fn servers_of_every_revision_are_one_list_and_answer_under_their_names() {
    let place = Place::new();
    let served = Served::start(&place, &servers(&place));
    let mut client = ready(&format!("{}/mcp", served.address), Era::Modern);
    assert_eq!(client.session(), None);
    let discovered = client.ask("server/discover", json!({}));
    is_complete(&discovered);
    let result = discovered.result().unwrap();
    assert_eq!(result["_meta"]["durward/missing"], Value::Null, "{result}");
    assert_eq!(result["cacheScope"], "private", "{result}");
    assert!(result["ttlMs"].is_u64(), "{result}");
    for capability in ["tools", "prompts", "resources", "completions"] {
        assert!(result["capabilities"][capability].is_object(), "{result}");
    }
    let said = result["instructions"].as_str().unwrap();
    assert!(said.contains("# own\n\nSays back"), "{said}");
    let listed = client.ask("tools/list", json!({}));
    is_complete(&listed);
    assert_eq!(listed.result().unwrap()["cacheScope"], "private");
    let (names, missing) = client.tools();
    assert_eq!(missing, [""; 0]);
    for server in ["both", "old", "new", "own"] {
        assert!(names.contains(&format!("{server}__echo")), "{names:?}");
        assert!(!names.contains(&format!("{server}__delayed")), "{names:?}");
        let text = format!("of {server}");
        let reply = client.ask(
            "tools/call",
            json!({"name": format!("{server}__echo"), "arguments": {"text": text}}),
        );
        is_complete(&reply);
        let answer: Value = serde_json::from_str(reply.line()).unwrap();
        assert_eq!(text_of(&answer), text);
    }
    // Each was asked in its own revision, the older one once for all requests.
    assert_eq!(asked(&place, "heard-old", "initialize"), 1);
    assert_eq!(asked(&place, "heard-new", "initialize"), 0);
    assert_eq!(asked(&place, "heard-both", "initialize"), 0);
    assert_eq!(served.end(), Some(0));
    is_recorded(&place);
}

/// A result without what only one of the revisions has.
fn bare(reply: &mocks::client::Reply) -> Value {
    let answer: Value = serde_json::from_str(reply.line()).unwrap();
    let mut answer = match answer.get("result") {
        Some(result) => result.clone(),
        None => json!({"code": answer["error"]["code"], "data": answer["error"]["data"]}),
    };
    for only in ["resultType", "ttlMs", "cacheScope", "_meta"] {
        answer.as_object_mut().unwrap().remove(only);
    }
    answer
}

#[test]
fn what_is_asked_in_either_revision_is_answered_alike() {
    let place = Place::new();
    let mut all = servers(&place);
    // A session cannot be opened with a server that has none.
    all.as_object_mut().unwrap().remove("new");
    let served = Served::start(&place, &all);
    let url = format!("{}/mcp", served.address);
    let mut clients: [HttpClient; 2] = [ready(&url, LATEST), ready(&url, Era::Modern)];
    let call = |name: &str, arguments: Value| {
        let params = json!({"name": name, "arguments": arguments});
        ("tools/call", params)
    };
    let cases = [
        call("both__echo", json!({"text": "x"})),
        call("old__echo", json!({"text": "x"})),
        call("own__echo", json!({"text": "x"})),
        call("full__test_multiple_content_types", json!({})),
        call("full__test_embedded_resource", json!({})),
        call("full__test_error_handling", json!({})),
        // Refused by a rule, by its name and by its arguments; and named wrongly.
        call("both__delayed", json!({"text": "x", "delay_us": 1})),
        call("old__delayed", json!({"text": "x", "delay_us": 1})),
        call("old__echo", json!({"text": "/secret/one"})),
        call("nobody__echo", json!({"text": "x"})),
        call("echo", json!({"text": "x"})),
        ("prompts/list", json!({})),
        ("resources/list", json!({})),
        ("resources/templates/list", json!({})),
        ("prompts/get", json!({"name": "full__test_simple_prompt"})),
        ("prompts/get", json!({"name": "full__nothing"})),
        ("resources/read", json!({"uri": "full+test://static-text"})),
        ("resources/read", json!({"uri": "test://static-text"})),
        (
            "completion/complete",
            json!({"ref": {"type": "ref/prompt", "name": "full__test_prompt_with_arguments"},
                "argument": {"name": "arg1", "value": "p"}}),
        ),
        ("tasks/get", json!({"taskId": "1"})),
    ];
    for (method, params) in cases {
        let [legacy, modern] = &mut clients;
        let legacy = legacy.ask(method, params.clone());
        let modern = modern.ask(method, params.clone());
        assert_eq!(bare(&modern), bare(&legacy), "{method} {params}");
    }
    let [legacy, modern] = &mut clients;
    let names = modern.tools();
    assert_eq!(names, legacy.tools());
    assert_eq!(names.1, [""; 0]);
    assert_eq!(served.end(), Some(0));
    is_recorded(&place);
}

#[test]
fn headers_repeat_the_name_as_the_client_spells_it() {
    let place = Place::new();
    let configuration = json!({"servers": servers(&place), "policy": place.path("policy.json")});
    configured(&place, &configuration);
    let served = serving::Served::start_ruled(place);
    let call = |name: &str, header: &str| {
        let params = format!(r#""name":"{name}","arguments":{{"text":"x"}}"#);
        send(&served, "tools/call", header, &params)
    };
    for (name, header, status, code) in [
        ("both__echo", "both__echo", 200, None),
        ("both__echo", "echo", 400, Some(-32020)),
        ("both__echo", "", 400, Some(-32020)),
        ("both__echo", "new__echo", 400, Some(-32020)),
        ("old__echo", "echo", 400, Some(-32020)),
    ] {
        let answer = call(name, header);
        assert_eq!(answer.status, status, "{name} {header} {answer:?}");
        let found = answer.json()["error"]["code"].as_i64();
        assert_eq!(found, code, "{name} {header} {answer:?}");
    }
    // Arguments that a tool wants repeated as well.
    let region = r#""name":"full__test_header_parameter","arguments":{"region":"eu"}"#;
    send(&served, "tools/list", "", "");
    let name = "full__test_header_parameter";
    let refused = send(&served, "tools/call", name, region);
    assert_eq!(refused.json()["error"]["code"], -32020, "{refused:?}");
    let body = modern("1", "tools/call", region);
    let headers = [
        &modern_headers("tools/call", name)[..],
        &[("mcp-param-region", "eu")],
    ]
    .concat();
    let answer = served.send("POST", "/mcp", &headers, &body);
    assert_eq!(answer.status, 200, "{answer:?}");
    let unknown = send(&served, "ping", "", "");
    assert_eq!(unknown.status, 404, "{unknown:?}");
    let vendor = send(&served, "vendor/do", "", "");
    assert_eq!(
        (vendor.status, &vendor.json()["error"]["code"]),
        (404, &(-32601).into()),
        "{vendor:?}"
    );
    assert_eq!(served.place.counted().len(), 2);
    let (code, place) = served.stop();
    assert_eq!(code, Some(0));
    is_recorded(&place);
}

#[test]
fn a_server_that_is_down_is_named_and_takes_nothing_from_the_others() {
    let place = Place::new();
    let mut all = servers(&place);
    all["dead"] = json!({"command": "/bin/false"});
    let served = Served::start(&place, &all);
    let mut client = ready(&format!("{}/mcp", served.address), Era::Modern);
    let discovered = client.ask("server/discover", json!({}));
    let result = discovered.result().unwrap();
    let away = &result["_meta"]["durward/missing"];
    assert_eq!(away.as_array().map(Vec::len), Some(1), "{result}");
    assert_eq!(away[0]["server"], "dead", "{result}");
    assert_eq!(away[0]["reason"], "upstream_died", "{result}");
    // It may be there the next moment.
    assert_eq!(result["ttlMs"], 0, "{result}");
    let said = result["instructions"].as_str().unwrap();
    assert!(
        said.ends_with("Not available at the moment: dead."),
        "{said}"
    );
    let (names, missing) = client.tools();
    assert_eq!(missing, ["dead"]);
    assert!(names.contains(&"old__echo".to_owned()), "{names:?}");
    let absent = client.call("dead__x", json!({}));
    let message = absent["error"]["message"].as_str().unwrap_or_default();
    assert!(message.contains("\"dead\" is not available"), "{absent}");
    assert_eq!(
        text_of(&client.call("new__echo", json!({"text": "x"}))),
        "x"
    );
}

#[test]
fn a_server_that_is_down_is_tried_again_now_and_then_and_is_listed_once_it_is_up() {
    let place = Place::new();
    let mut all = servers(&place);
    let mock = place.mock(&["echo", "--eras", "legacy"]).join(" ");
    let (started, up) = (place.path("started"), place.path("up"));
    let script = format!(
        "echo x >> {}; test -e {} || exit 1; exec {mock}",
        started.display(),
        up.display()
    );
    all["late"] = json!({"command": "sh", "args": ["-c", script]});
    let served = Served::start(&place, &all);
    let mut client = ready(&format!("{}/mcp", served.address), Era::Modern);
    let begun = Instant::now();
    for _ in 0..50 {
        assert_eq!(client.tools().1, ["late"]);
    }
    let starts = fs::read_to_string(&started).unwrap().lines().count();
    let most = 2 + begun.elapsed().as_secs() / 5;
    assert!(starts as u64 <= most, "{starts} starts, at most {most}");
    fs::write(up, "").unwrap();
    eventually("the server is there", || client.tools().1.is_empty());
    let answer = client.call("late__echo", json!({"text": "x"}));
    assert_eq!(text_of(&answer), "x");
}

#[test]
fn where_no_server_speaks_the_revision_the_client_is_told_to_open_a_session() {
    let place = Place::new();
    let old = ["echo", "--eras", "legacy"];
    let all = json!({"a": recording(&place, "a", &old), "b": recording(&place, "b", &old)});
    let configuration = json!({"servers": all, "policy": place.path("policy.json")});
    configured(&place, &configuration);
    let served = serving::Served::start_ruled(place);
    for method in ["server/discover", "tools/list", "subscriptions/listen"] {
        let told = send(&served, method, "", "");
        assert_eq!(told.status, 400, "{told:?}");
        let error = &told.json()["error"];
        assert_eq!(error["code"], -32022, "{told:?}");
        assert_eq!(error["data"]["reason"], "era_mismatch", "{told:?}");
        let supported = error["data"]["supported"].as_array().unwrap();
        assert!(supported.contains(&json!("2025-11-25")), "{told:?}");
        let message = error["message"].as_str().unwrap();
        assert!(
            message.contains("open a session with initialize"),
            "{told:?}"
        );
    }
    let mut client = ready(&format!("http://{}/mcp", served.address), LATEST);
    assert_eq!(text_of(&client.call("b__echo", json!({"text": "x"}))), "x");
}

#[test]
fn a_denied_call_reaches_no_server() {
    let place = Place::new();
    let served = Served::start(&place, &servers(&place));
    let mut client = ready(&format!("{}/mcp", served.address), Era::Modern);
    for server in ["both", "old", "new", "own"] {
        for (tool, arguments, rule) in [
            ("delayed", json!({"text": "x", "delay_us": 1}), "hidden"),
            ("echo", json!({"text": "/secret/two"}), "no-secret"),
        ] {
            let refused = client.call(&format!("{server}__{tool}"), arguments);
            assert_eq!(told(&refused)["final_rule"], rule, "{refused}");
        }
    }
    for server in ["both", "old", "new"] {
        assert_eq!(asked(&place, &format!("heard-{server}"), "tools/call"), 0);
    }
    assert_eq!(place.counted().len(), 0);
    assert_eq!(served.end(), Some(0));
    let records = place.journal();
    let denied = records.decisions().into_iter();
    let denied = denied.filter(|decision| decision["decision"] == "deny");
    assert_eq!(denied.count(), 8);
}

#[test]
fn a_key_for_one_server_shows_and_reaches_no_other() {
    let place = Place::new();
    let configuration = json!({"servers": servers(&place), "policy": place.path("policy.json")});
    configured(&place, &configuration);
    let create = [
        "--no-config",
        "--state-dir",
        "state",
        "keys",
        "create",
        "only",
        "--scope",
        "old",
        "--scope",
        "own",
        "--unlisted",
    ];
    let output = place.durward(&create);
    assert!(output.status.success(), "{output:?}");
    let key = format!(
        "Bearer {}",
        String::from_utf8(output.stdout).unwrap().trim()
    );
    let served = serving::Served::start_ruled(place);
    let ask = |method: &str, name: &str, params: &str| {
        let own = [("authorization", key.as_str())];
        let headers = [&modern_headers(method, name)[..], &own].concat();
        let answer = served.send("POST", "/mcp", &headers, &modern("1", method, params));
        answer.json()
    };
    let listed = ask("tools/list", "", "");
    let tools = listed["result"]["tools"].as_array().unwrap();
    let theirs = |tool: &Value| {
        let name = tool["name"].as_str().unwrap();
        name.starts_with("old__") || name.starts_with("own__")
    };
    assert!(!tools.is_empty() && tools.iter().all(theirs), "{listed}");
    let call = |name: &str| {
        let params = format!(r#""name":"{name}","arguments":{{"text":"x"}}"#);
        ask("tools/call", name, &params)
    };
    assert_eq!(text_of(&call("old__echo")), "x");
    let other = call("both__echo");
    assert_eq!(
        other["error"]["data"]["reason"], "server_unknown",
        "{other}"
    );
    assert_eq!(served.place.counted().len(), 1);
}

#[test]
fn a_long_list_is_searched() {
    let place = Place::new();
    let configuration = json!({"servers": servers(&place), "policy": place.path("policy.json"),
        "search_above": 5});
    configured(&place, &configuration);
    let served = serving::Served::start_ruled(place);
    let mut client = ready(&format!("http://{}/mcp", served.address), Era::Modern);
    let (names, _) = client.tools();
    assert_eq!(names, ["durward__search_tools", "durward__call_tool"]);
    let arguments = json!({"query": "header parameter mirrored", "limit": 1});
    let found = client.call("durward__search_tools", arguments);
    assert_eq!(found["result"]["resultType"], "complete", "{found}");
    let tool = &found["result"]["structuredContent"]["tools"][0]["name"];
    assert_eq!(tool, "full__test_header_parameter", "{found}");
    // What the tool wants repeated in headers, the client of the other tool cannot know.
    for (name, arguments) in [
        ("full__test_header_parameter", json!({"region": "eu"})),
        ("old__echo", json!({"text": "eu"})),
    ] {
        let inner = json!({"name": name, "arguments": arguments});
        let answer = client.call("durward__call_tool", inner);
        assert!(text_of(&answer).contains("eu"), "{answer}");
    }
    let refused = client.call(
        "durward__call_tool",
        json!({"name": "old__delayed", "arguments": {}}),
    );
    assert_eq!(told(&refused)["final_rule"], "hidden", "{refused}");
    let (code, place) = served.stop();
    assert_eq!(code, Some(0));
    is_recorded(&place);
}

#[test]
fn what_is_sent_and_answered_is_inspected() {
    let place = Place::new();
    let mut configuration =
        json!({"servers": servers(&place), "policy": place.path("policy.json")});
    configuration["inspect"] =
        json!({"keys": {"secrets": "all", "on": "requests", "action": "mask"}});
    configured(&place, &configuration);
    let served = serving::Served::start_ruled(place);
    let mut client = ready(&format!("http://{}/mcp", served.address), Era::Modern);
    // In parts: a scanner is not to take this file for a leak.
    let token = ["ghp_", "0123456789abcdefghij", "ABCDEFGHIJ0123456789"].concat();
    for server in ["both", "old", "new"] {
        let answer = client.call(&format!("{server}__echo"), json!({"text": token}));
        assert_eq!(text_of(&answer), "[masked: keys]", "{answer}");
        let heard = served.place.path(&format!("heard-{server}"));
        assert!(!fs::read_to_string(heard).unwrap().contains(&token));
    }
}

#[test]
fn cursors_stand_for_those_of_all_servers() {
    let place = Place::new();
    let served = Served::start(&place, &servers(&place));
    let mut client = ready(&format!("{}/mcp", served.address), Era::Modern);
    for cursor in ["2", "durward.e30", ""] {
        let refused = client.ask("tools/list", json!({ "cursor": cursor }));
        assert_eq!(refused.error_code(), Some(-32602), "{}", refused.line());
    }
}
