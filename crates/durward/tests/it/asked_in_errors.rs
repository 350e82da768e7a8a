//! What a server asks of its client by an error or by news is judged, as a request of it would be.

use std::fs;

use serde_json::Value;

use crate::support::guarded::{LATEST, Place, echo, end};
use crate::support::serving::{Served, call};

/// A server that wants an address opened before it answers, and tells of a task that wants a model asked.
const SERVER: &str = r#"
while read -r line; do
  id=${line#*\"id\":}; id=${id%%[,\}]*}
  case $line in
  *initialize\"*) echo '{"jsonrpc":"2.0","id":'$id',"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"s","version":"1"}}}';;
  *tools/list\"*) echo '{"jsonrpc":"2.0","id":'$id',"result":{"tools":[{"name":"echo","inputSchema":{"type":"object"}}]}}';;
  *tools/call\"*)
    echo '{"jsonrpc":"2.0","method":"notifications/tasks/status","params":{"taskId":"t","status":"working"}}'
    echo '{"jsonrpc":"2.0","method":"notifications/tasks/status","params":{"taskId":"t","inputRequests":{"k":{"method":"sampling/createMessage"}}}}'
    echo '{"jsonrpc":"2.0","id":'$id',"error":{"code":-32042,"message":"first","data":{"elicitations":[{"mode":"url","elicitationId":"e","url":"https://example.com/","message":"m"}]}}}';;
  esac
done
"#;

fn place(effect: &str) -> Place {
    let place = Place::new();
    fs::write(place.path("server.sh"), SERVER).unwrap();
    place.write_policy(&format!(
        r#"{{"rules":[{{"id":"tools","effect":"allow","conditions":{{"tool_name":"*"}}}},
            {{"id":"open","effect":"{effect}","conditions":{{"mcp_method":"elicitation/create"}}}}]}}"#
    ));
    place
}

fn judged(place: &Place, expect: &str) {
    let journal = place.journal();
    let asked = journal.decisions().into_iter();
    let asked: Vec<&Value> = asked
        .filter(|record| record["mcp_method"] == "elicitation/create")
        .collect();
    assert_eq!(asked.len(), 1);
    assert_eq!(asked[0]["decision"], expect);
    assert_eq!(asked[0]["direction"], "to_client");
}

#[test]
fn run_judges_an_address_that_an_error_asks_to_open() {
    for (effect, passes) in [("allow", true), ("deny", false)] {
        let place = place(effect);
        let mut client = place.guard_command(&[], &["sh", "server.sh"]);
        client.handshake(LATEST).unwrap();
        let reply = client.request("tools/call", echo("x")).unwrap();
        assert_eq!(
            reply.line().contains("https://example.com/"),
            passes,
            "{}",
            reply.line()
        );
        assert_eq!(
            reply.error_code() == Some(-32042),
            passes,
            "{}",
            reply.line()
        );
        let news = client.next_message().unwrap();
        assert!(format!("{news:?}").contains("working"), "{news:?}");
        let ended = end(client);
        assert_eq!(ended.code, Some(0));
        judged(&place, effect);
    }
}

#[test]
fn serve_judges_an_address_that_an_error_asks_to_open() {
    for (effect, passes) in [("allow", true), ("deny", false)] {
        let served = Served::start_server(place(effect), "echo=sh server.sh", &[]);
        let session = served.open("2025-11-25");
        let answer = served.post(Some(&session), &call("7", "x"));
        assert_eq!(
            answer.body.contains("https://example.com/"),
            passes,
            "{answer:?}"
        );
        assert!(!answer.body.contains("inputRequests"), "{answer:?}");
        if !passes {
            assert!(answer.body.contains("denied_by_rule"), "{answer:?}");
        }
        let (_, place) = served.stop();
        judged(&place, effect);
    }
}
