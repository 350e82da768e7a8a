//! The same answers in either revision, from servers of each.

use mcp::client::{Era, HttpClient};
use serde_json::{Value, json};

use super::super::kept::asked;
use super::super::{Asks as _, text_of};
use super::{is_recorded, servers};
use crate::support::guarded::{LATEST, Place};
use crate::support::served::{Served, ready};

fn is_complete(reply: &mcp::client::Reply) {
    let result = reply.result().unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(result["resultType"], "complete", "{result}");
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
fn bare(reply: &mcp::client::Reply) -> Value {
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
