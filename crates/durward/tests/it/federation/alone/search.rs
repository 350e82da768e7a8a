//! Search, cursors, and what is looked for in messages.

use std::fs;

use mcp::client::Era;
use serde_json::json;

use super::super::{Asks as _, configured, text_of};
use super::{is_recorded, servers};
use crate::support::guarded::Place;
use crate::support::refusals::told;
use crate::support::served::{Served, ready};
use crate::support::serving;

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
