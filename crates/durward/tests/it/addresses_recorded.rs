//! Passwords and tokens in the addresses of a call reach its server and no record, refusal or table.

use std::fs;

use serde_json::{Value, json};

use crate::support::guarded::{LATEST, Place, end};

const ADDRESS: &str = "https://user:pw4711@host.example/x?page=2&access_token=tok4711";

#[test]
fn the_secrets_of_an_address_are_in_no_record_of_its_call() {
    let place = Place::new();
    place.write_policy(
        r#"{"rules":[{"id":"all","effect":"allow","conditions":{"tool_name":"echo"}}]}"#,
    );
    let mut client = place.guard(&["echo"]);
    client.handshake(LATEST).unwrap();
    let call = json!({"name": "echo", "arguments": {"text": "x", "path": ADDRESS}});
    let id = client.send_request("tools/call", call).unwrap();
    let _ = client.response(&id).unwrap();
    let refused = client.request("resources/read", json!({"uri": ADDRESS}));
    let refused = refused.unwrap().line().to_owned();
    assert_eq!(end(client).code, Some(0));
    let arrived = serde_json::to_string(&place.counted()).unwrap();
    assert!(arrived.contains("tok4711"), "{arrived}");
    let left = "https://user:***@host.example/x?page=2&access_token=***";
    let journal = place.journal();
    let decision = journal.decision(&id);
    let paths: Vec<&Value> = decision["paths"].as_array().unwrap().iter().collect();
    assert!(paths.contains(&&json!(left)), "{decision}");
    let mut texts = vec![refused];
    for segment in place.segments() {
        texts.push(fs::read_to_string(segment).unwrap());
    }
    let table = place.durward(&["logs", "--json"]);
    texts.push(String::from_utf8(table.stdout).unwrap());
    for text in texts {
        assert!(!text.contains("4711"), "{text}");
    }
}
