//! Search in place of a long list of tools.

use std::collections::BTreeSet;

use mcp::client::{HttpClient, HttpOptions};
use serde_json::{Value, json};

use super::{Asks, configured, echo_mock, run_all, text_of};
use crate::support::guarded::{LATEST, Place, end};
use crate::support::refusals::told;
use crate::support::serving::Served;

const SEARCH: &str = "durward__search_tools";
const CALL: &str = "durward__call_tool";

/// Two servers, of whose tools the policy shows all but one, and a search above so many tools.
fn site(above: u64) -> Place {
    let place = Place::new();
    place.write_policy(
        r#"{"version":"1","rules":[
            {"id":"all","effect":"allow","conditions":{"tool_name":"*"}},
            {"id":"hidden","effect":"deny","conditions":{"tool_name":"delayed"}}]}"#,
    );
    configured(
        &place,
        &json!({"servers": {"a": echo_mock(&place), "b": echo_mock(&place)},
            "search_above": above, "policy": place.path("policy.json")}),
    );
    place
}

fn found(client: &mut impl Asks, arguments: Value) -> Vec<String> {
    let answer = client.call(SEARCH, arguments);
    let tools = answer["result"]["structuredContent"]["tools"].as_array();
    let tools = tools.unwrap_or_else(|| panic!("{answer}"));
    let name = |tool: &Value| tool["name"].as_str().unwrap().to_owned();
    tools.iter().map(name).collect()
}

/// What holds at both edges.
fn holds(client: &mut impl Asks) {
    let (names, _) = client.tools();
    assert_eq!(names, [SEARCH, CALL]);
    let words = json!({"query": "echo", "limit": 2});
    let best: BTreeSet<String> = found(client, words).into_iter().collect();
    assert_eq!(best, ["a__echo".to_owned(), "b__echo".to_owned()].into());
    // What the policy hides is not found, and not called either.
    let all = found(client, json!({"query": "", "limit": 50}));
    assert!(all.len() > 4, "{all:?}");
    assert!(!all.iter().any(|name| name.ends_with("delayed")), "{all:?}");
    let call = |name: &str, arguments: Value| json!({"name": name, "arguments": arguments});
    let answer = client.call(CALL, call("b__echo", json!({"text": "hello"})));
    assert_eq!(text_of(&answer), "hello");
    let refused = client.call(CALL, call("a__delayed", json!({})));
    assert_eq!(told(&refused)["reason"], "denied_by_rule", "{refused}");
    assert_eq!(told(&refused)["final_rule"], "hidden", "{refused}");
    // The name that was found works by itself as well.
    let answer = client.call("a__echo", json!({"text": "itself"}));
    assert_eq!(text_of(&answer), "itself");
    for (arguments, part) in [
        (json!({}), "needs the name of a tool"),
        (call("nowhere__x", json!({})), "does not name a server"),
        (call(CALL, json!({})), "does not name a server"),
    ] {
        let answer = client.call(CALL, arguments);
        let message = answer["error"]["message"].as_str().unwrap_or_default();
        assert!(message.contains(part), "{answer}");
    }
}

/// A call is recorded as its own server's, whichever way it came.
fn is_recorded(place: &Place) {
    let records = place.records();
    let decisions = records.0.iter().filter(|record| {
        record["event"] == "policy_decision" && record["mcp_method"] == "tools/call"
    });
    let of = |record: &Value| {
        let text = |member: &str| record[member].as_str().unwrap_or_default().to_owned();
        (text("backend_id"), text("tool_name"), text("decision"))
    };
    let seen: BTreeSet<(String, String, String)> = decisions.map(of).collect();
    let row = |server: &str, tool: &str, decision: &str| {
        (server.to_owned(), tool.to_owned(), decision.to_owned())
    };
    let expect = [
        row("a", "delayed", "deny"),
        row("a", "echo", "allow"),
        row("b", "echo", "allow"),
    ];
    assert_eq!(seen, expect.into());
}

#[test]
fn a_long_list_is_searched_over_standard_streams() {
    let place = site(4);
    let mut client = run_all(&place, &[]);
    client.handshake(LATEST).unwrap();
    holds(&mut client);
    assert_eq!(end(client).code, Some(0));
    is_recorded(&place);
}

#[test]
fn a_long_list_is_searched_over_http() {
    let served = Served::start_ruled(site(4));
    let url = format!("http://{}/mcp", served.address);
    let mut client = HttpClient::new(&url, HttpOptions::default()).unwrap();
    client.handshake(LATEST).unwrap();
    holds(&mut client);
    let (_, place) = served.stop();
    is_recorded(&place);
}

#[test]
fn a_list_within_the_bound_is_listed() {
    let place = site(1_000);
    let mut client = run_all(&place, &[]);
    client.handshake(LATEST).unwrap();
    let (names, _) = client.tools();
    assert!(names.contains(&"a__echo".to_owned()), "{names:?}");
    assert!(!names.contains(&SEARCH.to_owned()), "{names:?}");
}
