//! Subscriptions at several servers as one.

use serde_json::{Value, json};

use super::super::kept::asked;
use super::{ANYTHING, send, served, stream};
use crate::support::guarded::eventually;
use crate::support::refusals::is_passed;
use crate::support::serving::{self, Events, modern};

fn listen(served: &serving::Served, id: &str, filter: &str) -> Events {
    let filter = format!("\"notifications\":{filter}");
    let body = modern(id, "subscriptions/listen", &filter);
    stream(served, "subscriptions/listen", "", &body)
}

fn subscription(message: &Value) -> &Value {
    &message["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"]
}

#[test]
fn one_subscription_hears_of_all_servers() {
    let served = served(ANYTHING);
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
    let served = served(rules);
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
    let served = served(ANYTHING);
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
