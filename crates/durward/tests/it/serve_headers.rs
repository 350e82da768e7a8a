//! Headers that repeat the body, as the Modern era has them: arguments that a tool declares (`x-mcp-header`) are
//! compared, and tools that declare them against the rules are not shown.

use crate::support::guarded::Place;
use crate::support::serving::{Served, modern, modern_headers};

const TOOL: &str = "test_header_parameter";

fn conformance() -> Served {
    let place = Place::new();
    let mock = place.mock(&["conformance"]).join(" ");
    Served::start_server(place, &format!("echo={mock}"), &[])
}

fn list(served: &Served) -> serde_json::Value {
    let headers = modern_headers("tools/list", "");
    let answer = served.send(
        "POST",
        "/mcp/echo",
        &headers,
        &modern("1", "tools/list", ""),
    );
    assert_eq!(answer.status, 200, "{answer:?}");
    answer.json()["result"].clone()
}

#[test]
fn arguments_in_headers_are_compared_with_the_body() {
    // Nobody has listed the tool before its first call.
    let served = conformance();
    let region = r#""name":"test_header_parameter","arguments":{"region":"caf\u00e9"}"#;
    let none = r#""name":"test_header_parameter","arguments":{}"#;
    let good = ("mcp-param-region", "=?base64?Y2Fmw6k=?=");
    let other = ("mcp-param-region", "cafe");
    let garbled = ("Mcp-Param-Region", "=?base64?Y2Fmw6k?=");
    let unknown = ("mcp-param-else", "x");
    type Case<'c> = (&'c str, &'c [(&'c str, &'c str)], bool);
    let cases: [Case<'_>; 8] = [
        (region, &[other], false),
        (region, &[good], true),
        (region, &[good, unknown], true),
        (region, &[], false),
        (region, &[garbled], false),
        (region, &[good, good], false),
        (region, &[good, other], false),
        (none, &[good], false),
    ];
    for (params, more, passes) in cases {
        let headers = [&modern_headers("tools/call", TOOL)[..], more].concat();
        let body = modern("2", "tools/call", params);
        let answer = served.send("POST", "/mcp/echo", &headers, &body);
        let status = if passes { 200 } else { 400 };
        assert_eq!(answer.status, status, "{params} {more:?} {answer:?}");
        let code = answer.json()["error"]["code"].as_i64();
        assert_eq!(code, (!passes).then_some(-32020), "{params} {more:?}");
    }
    assert_eq!(
        served.place.counted().len(),
        2,
        "what differs never arrives"
    );
    // Legacy clients know no such headers.
    let session = served.open("2025-11-25");
    let body = format!(r#"{{"jsonrpc":"2.0","id":9,"method":"tools/call","params":{{{region}}}}}"#);
    assert_eq!(served.post(Some(&session), &body).status, 200);
    assert_eq!(served.place.counted().len(), 3);
}

/// A Modern server with three tools, the second of which declares a header that cannot be.
const UNFIT: &str = r#"
while read -r line; do
  id=${line#*\"id\":}; id=${id%%[,\}]*}
  case $line in
  *server/discover*) echo '{"jsonrpc":"2.0","id":'$id',"result":{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{}},"ttlMs":0,"cacheScope":"private"}}';;
  *initialize\"*) echo '{"jsonrpc":"2.0","id":'$id',"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"s","version":"1"}}}';;
  *tools/list*) echo '{"jsonrpc":"2.0","id":'$id',"result":{"resultType":"complete","ttlMs":0,"cacheScope":"private","tools":[{"name":"first","inputSchema":{"type":"object"}},{"name":"unfit","inputSchema":{"type":"object","properties":{"a":{"type":"number","x-mcp-header":"A"}}}},{"name":"last","inputSchema":{"type":"object"}}]}}';;
  esac
done
"#;

#[test]
fn a_tool_that_declares_headers_against_the_rules_is_not_shown_to_modern_clients() {
    let place = Place::new();
    std::fs::write(place.path("server.sh"), UNFIT).unwrap();
    let served = Served::start_server(place, "echo=sh server.sh", &[]);
    let names = |result: &serde_json::Value| -> Vec<String> {
        let tools = result["tools"].as_array().unwrap();
        let name = |tool: &serde_json::Value| tool["name"].as_str().unwrap().to_owned();
        tools.iter().map(name).collect()
    };
    assert_eq!(names(&list(&served)), ["first", "last"]);
    let session = served.open("2025-11-25");
    let answer = served.post(
        Some(&session),
        r#"{"jsonrpc":"2.0","id":2,"method":"tools/list"}"#,
    );
    assert_eq!(names(&answer.json()["result"]), ["first", "unfit", "last"]);
    let (code, place) = served.stop();
    assert_eq!(code, Some(0));
    place.journal().assert_event("tool_header_unfit");
}
