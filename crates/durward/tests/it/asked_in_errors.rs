//! What a server asks of its client by an error or by news is judged, as a request of it would be.

use std::fs;

use serde_json::Value;

use crate::support::guarded::{LATEST, Place, echo, end, line};
use crate::support::serving::{Served, call, modern_call, modern_headers};

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

/// A server that asks by a request, or by a result of revision 2026-07-28, to have ADDRESS opened.
const OPENS: &str = r#"
while read -r line; do
  id=${line#*\"id\":}; id=${id%%[,\}]*}
  case $line in
  *initialize\"*) printf '%s\n' '{"jsonrpc":"2.0","id":'$id',"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"s","version":"1"}}}';;
  *server/discover*) printf '%s\n' '{"jsonrpc":"2.0","id":'$id',"result":{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{}},"serverInfo":{"name":"s","version":"1"},"ttlMs":0,"cacheScope":"private"}}';;
  *tools/list\"*) printf '%s\n' '{"jsonrpc":"2.0","id":'$id',"result":{"tools":[{"name":"echo","inputSchema":{"type":"object"}}]}}';;
  *tools/call\"*2026-07-28*) printf '%s\n' '{"jsonrpc":"2.0","id":'$id',"result":{"resultType":"input_required","inputRequests":{"k":{"method":"elicitation/create","params":{"mode":"url","elicitationId":"e","url":ADDRESS,"message":"m"}}},"requestState":"s"}}';;
  *tools/call\"*)
    call=$id
    printf '%s\n' '{"jsonrpc":"2.0","id":"ask","method":"elicitation/create","params":{"mode":"url","elicitationId":"e","url":ADDRESS,"message":"m"}}';;
  *\"ask\"*) printf '%s\n' '{"jsonrpc":"2.0","id":'$call',"result":{"content":[{"type":"text","text":"answered"}]}}';;
  esac
done
"#;

/// Addresses as JSON, and why they are not opened where a rule denies `scheme: http`.
const ADDRESSES: [(&str, Option<&str>); 9] = [
    (r#""https://example.com/login""#, None),
    (r#""HTTPS://example.com/""#, None),
    (r#""http://example.com/login""#, Some("denied_by_rule")),
    (r#"" ht\tTp://example.com/""#, Some("denied_by_rule")),
    (r#""javascript:alert(1)""#, Some("address_not_web")),
    (r#""java\nscript:alert(1)""#, Some("address_not_web")),
    (r#""data:text/html,x""#, Some("address_not_web")),
    (r#""file:///etc/passwd""#, Some("address_not_web")),
    (
        r#""https://example.com/","URL":"javascript:alert(1)""#,
        Some("address_not_web"),
    ),
];

fn opening(address: &str, server: &str) -> Place {
    let place = Place::new();
    fs::write(place.path("server.sh"), server.replace("ADDRESS", address)).unwrap();
    place.write_policy(
        r#"{"rules":[{"id":"all","effect":"allow","conditions":{"mcp_method":"*"}},
            {"id":"plain","effect":"deny","conditions":{"mcp_method":"elicitation/create","scheme":"http"}}]}"#,
    );
    place
}

#[track_caller]
fn address_judged(place: &Place, address: &str, refused: Option<&str>) {
    let journal = place.journal();
    let asked: Vec<&Value> = journal
        .decisions()
        .into_iter()
        .filter(|record| record["mcp_method"] == "elicitation/create")
        .collect();
    assert_eq!(asked.len(), 1, "{address}");
    assert_eq!(
        asked[0]["reason"].as_str(),
        refused,
        "{address} {}",
        asked[0]
    );
    if let Ok(address) = serde_json::from_str::<String>(address) {
        assert_eq!(asked[0]["uri"], address);
    }
}

#[test]
fn run_judges_an_address_that_a_request_asks_to_open() {
    for (address, refused) in ADDRESSES {
        let place = opening(address, OPENS);
        let mut client = place.guard_command(&[], &["sh", "server.sh"]);
        client.handshake(LATEST).unwrap();
        client.send_request("tools/call", echo("x")).unwrap();
        let first = line(&mut client);
        let is_asked = first["method"] == "elicitation/create";
        assert_eq!(is_asked, refused.is_none(), "{address} {first}");
        if is_asked {
            let answer = r#"{"jsonrpc":"2.0","id":"ask","result":{"action":"accept"}}"#;
            client.process().send_line(answer.as_bytes()).unwrap();
            assert!(
                line(&mut client).to_string().contains("answered"),
                "{address}"
            );
        }
        assert_eq!(end(client).code, Some(0));
        address_judged(&place, address, refused);
    }
}

#[test]
fn run_judges_the_scheme_of_an_address_that_an_error_asks_to_open() {
    let server = SERVER.replace(r#""https://example.com/""#, "ADDRESS");
    let server = server.replace("echo '", "printf '%s\\n' '");
    for (address, refused) in ADDRESSES {
        let place = opening(address, &server);
        let mut client = place.guard_command(&[], &["sh", "server.sh"]);
        client.handshake(LATEST).unwrap();
        let reply = client.request("tools/call", echo("x")).unwrap();
        let passes = reply.error_code() == Some(-32042);
        assert_eq!(passes, refused.is_none(), "{}", reply.line());
        assert_eq!(end(client).code, Some(0));
        address_judged(&place, address, refused);
    }
}

#[test]
fn serve_judges_an_address_that_a_result_asks_to_open() {
    for (address, refused) in ADDRESSES {
        let served = Served::start_server(opening(address, OPENS), "echo=sh server.sh", &[]);
        let headers = modern_headers("tools/call", "echo");
        let body = modern_call("7", "x").replace(
            r#"clientCapabilities":{}"#,
            r#"clientCapabilities":{"elicitation":{"url":{}}}"#,
        );
        let answer = served.send("POST", "/mcp/echo", &headers, &body);
        let passes = answer.body.contains("inputRequests");
        assert_eq!(passes, refused.is_none(), "{answer:?}");
        let (_, place) = served.stop();
        address_judged(&place, address, refused);
    }
}
