//! J21: a notification that is none of the protocol's own is judged as a call is, on both edges.

use std::fs;

use serde_json::{Value, json};

use crate::support::guarded::{LATEST, Place, end, eventually};
use crate::support::serving::Served;

/// A server that writes down every notification that it is told.
const SERVER: &str = r#"
while read -r line; do
  id=${line#*\"id\":}; id=${id%%[,\}]*}
  case $line in
  *initialize\"*) echo '{"jsonrpc":"2.0","id":'$id',"result":{"protocolVersion":"2025-11-25","capabilities":{},"serverInfo":{"name":"s","version":"1"}}}';;
  *notifications/*) echo "$line" >> told;;
  esac
done
"#;

const POLICY: &str = r#"{"rules":[
 {"id":"notes","effect":"allow","conditions":{"mcp_method":"notifications/vendor/*"}},
 {"id":"ask","effect":"hitl","conditions":{"mcp_method":"notifications/vendor/ask"}},
 {"id":"no-deleting","effect":"deny","conditions":{"mcp_method":"notifications/vendor/delete"}}]}"#;

/// What is sent, in order; the last one shows that the others have been dealt with.
const SENT: [&str; 5] = [
    "notifications/vendor/delete",
    "notifications/elsewhere/run",
    "notifications/vendor/ask",
    "notifications/vendor/note",
    "notifications/roots/list_changed",
];

fn place() -> Place {
    let place = Place::new();
    fs::write(place.path("server.sh"), SERVER).unwrap();
    fs::write(place.path("policy.json"), POLICY).unwrap();
    place
}

/// The methods that the server was told of, but for the handshake's.
fn told(place: &Place) -> Vec<String> {
    let text = fs::read_to_string(place.path("told")).unwrap_or_default();
    let methods = text.lines().map(|line| {
        let message: Value = serde_json::from_str(line).unwrap();
        message["method"].as_str().unwrap().to_owned()
    });
    methods
        .filter(|method| method != "notifications/initialized")
        .collect()
}

#[track_caller]
fn judged(place: &Place) {
    let mut told = told(place);
    told.sort_unstable();
    assert_eq!(told, [SENT[4], SENT[3]]);
    let journal = place.journal();
    let decisions = journal.decisions().into_iter().map(|decision| {
        let text = |name: &str| decision[name].as_str().unwrap_or_default().to_owned();
        (text("mcp_method"), text("decision"))
    });
    let mut decisions: Vec<_> = decisions.collect();
    decisions.sort_unstable();
    let expected = [
        (SENT[1], "deny"),
        (SENT[2], "hitl"),
        (SENT[0], "deny"),
        (SENT[3], "allow"),
    ];
    let expected = expected.map(|(method, decision)| (method.to_owned(), decision.to_owned()));
    assert_eq!(decisions, expected);
}

#[test]
fn j21_run_judges_notifications_of_vendors() {
    let place = place();
    let mut client = place.guard_command(&[], &["sh", "server.sh"]);
    client.handshake(LATEST).unwrap();
    for method in SENT {
        client.notify(method, &json!({ "path": "x" })).unwrap();
    }
    eventually("the server is told", || told(&place).len() >= 2);
    assert_eq!(end(client).code, Some(0));
    judged(&place);
}

#[test]
fn j21_serve_judges_notifications_of_vendors() {
    let served = Served::start_server(place(), "echo=sh server.sh", &[]);
    let session = served.open("2025-11-25");
    for method in SENT {
        let body = format!(r#"{{"jsonrpc":"2.0","method":"{method}","params":{{"path":"x"}}}}"#);
        assert_eq!(served.post(Some(&session), &body).status, 202);
    }
    eventually("the server is told", || told(&served.place).len() >= 2);
    let (code, place) = served.stop();
    assert_eq!(code, Some(0));
    judged(&place);
}
