//! The mocks over Streamable HTTP, in both eras.

use crate::common::{Directory, mock};
use mcp::client::{Answer, Client, ClientError, Era, HttpClient, HttpOptions, Message};
use serde_json::{Value, json};
use std::time::Duration;

/// A mock over HTTP; dropping it ends the process.
struct Site {
    process: Client,
    url: String,
}

impl Site {
    fn start(args: &[&str]) -> Self {
        Self::start_at(args, "127.0.0.1:0")
    }

    fn start_at(args: &[&str], address: &str) -> Self {
        let mut process = mock(&[args, &["--http", address]].concat());
        let url = process.process().read_line().unwrap();
        Self {
            process,
            url: String::from_utf8(url).unwrap(),
        }
    }

    fn client(&self) -> HttpClient {
        HttpClient::new(&self.url, HttpOptions::default()).unwrap()
    }

    fn ready(&self, era: Era) -> HttpClient {
        let mut client = self.client();
        client.handshake(era).unwrap();
        client
    }

    fn address(&self) -> &str {
        let rest = self.url.strip_prefix("http://").unwrap();
        rest.strip_suffix("/mcp").unwrap()
    }
}

type Headers<'a> = &'a [(&'a str, &'a str)];

/// A request with these headers and this body.
fn post(client: &mut HttpClient, headers: Headers<'_>, body: &str) -> Answer {
    let headers: String = headers
        .iter()
        .map(|(name, value)| format!("{name}: {value}\r\n"))
        .collect();
    let request = format!(
        "POST /mcp HTTP/1.1\r\nhost: localhost\r\ncontent-length: {}\r\n{headers}\r\n{body}",
        body.len()
    );
    client.send_raw(request.as_bytes()).unwrap()
}

const JSON: (&str, &str) = ("content-type", "application/json");
const BOTH: (&str, &str) = ("accept", "application/json, text/event-stream");
const MODERN: (&str, &str) = ("mcp-protocol-version", "2026-07-28");

fn code(answer: &Answer) -> i64 {
    let body: Value = serde_json::from_slice(&answer.body).unwrap();
    body["error"]["code"].as_i64().unwrap_or_default()
}

#[test]
fn echo_answers_in_every_revision_and_both_forms() {
    for form in ["auto", "events"] {
        let site = Site::start(&["echo", "--replies", form]);
        for era in Era::ALL {
            let mut client = site.ready(era);
            assert_eq!(client.session().is_some(), era != Era::Modern);
            for text in ["a", "two\nlines", "z\u{fc}g"] {
                let reply = client.call_tool("echo", json!({"text": text})).unwrap();
                assert_eq!(reply.text(), Some(text), "{form} {era:?}");
            }
            let reply = client
                .request("resources/read", json!({"uri": "mock://echo/word/\u{e9}"}))
                .unwrap();
            assert_eq!(reply.result().unwrap()["contents"][0]["text"], "\u{e9}");
            let reply = client.request("no/such", json!({})).unwrap();
            assert_eq!(reply.error_code(), Some(-32601));
        }
    }
}

#[test]
fn every_call_is_counted_once_whatever_its_session() {
    let directory = Directory::new();
    let count = directory.join("count");
    let site = Site::start(&["echo", "--count", &count]);
    let mut clients: Vec<HttpClient> = Era::ALL.map(|era| site.ready(era)).into();
    for client in &mut clients {
        for number in 0..20 {
            client
                .call_tool("echo", json!({"text": number.to_string()}))
                .unwrap();
        }
    }
    let lines = std::fs::read_to_string(&count).unwrap();
    assert_eq!(lines.lines().count(), 20 * clients.len());
    assert!(
        lines
            .lines()
            .all(|line| line.starts_with(r#"{"name":"echo","arguments":{"text":"#))
    );
}

#[test]
fn a_session_ends_by_delete_and_with_the_process() {
    let site = Site::start(&["echo"]);
    let mut client = site.ready(Era::Legacy("2025-11-25"));
    let session = client.session().unwrap().to_owned();
    assert_eq!(client.end_session().unwrap(), 204);
    let headers = [JSON, BOTH, ("mcp-session-id", session.as_str())];
    let ping = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;
    assert_eq!(post(&mut client, &headers, ping).status, 404);

    let mut client = site.ready(Era::Legacy("2025-06-18"));
    let address = site.address().to_owned();
    drop(site);
    let site = Site::start_at(&["echo"], &address);
    assert_eq!(site.address(), address);
    let lost = client.call_tool("echo", json!({"text": "a"}));
    assert!(lost.is_err(), "the connection went with the process");
    match client.call_tool("echo", json!({"text": "a"})) {
        Err(ClientError::Status { status: 404, .. }) => {}
        other => panic!("a new process knows no session: {other:?}"),
    }
    client.handshake(Era::Legacy("2025-06-18")).unwrap();
    client.call_tool("echo", json!({"text": "a"})).unwrap();
}

#[test]
fn requests_that_break_the_transport_are_refused() {
    let site = Site::start(&["echo"]);
    let mut client = site.client();
    let ping = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;
    let cases: [(Headers<'_>, &str, u16); 9] = [
        (&[BOTH], ping, 415),
        (&[("content-type", "text/plain"), BOTH], ping, 415),
        (&[JSON], ping, 406),
        (&[JSON, ("accept", "application/json")], ping, 406),
        (&[JSON, BOTH], ping, 400),
        (&[JSON, BOTH, ("mcp-session-id", "unknown")], ping, 404),
        (&[JSON, BOTH, ("origin", "http://evil.example")], ping, 403),
        (&[JSON, BOTH, MODERN], "{", 400),
        (&[JSON, BOTH, MODERN], "[]", 400),
    ];
    for (headers, body, status) in cases {
        let answer = post(&mut client, headers, body);
        assert_eq!(answer.status, status, "{headers:?} {body}");
    }
    for (request, status) in [
        ("GET /mcp HTTP/1.1\r\nhost: localhost\r\n\r\n", 406),
        (
            "GET /mcp HTTP/1.1\r\nhost: localhost\r\naccept: text/event-stream\r\n\r\n",
            400,
        ),
        ("DELETE /mcp HTTP/1.1\r\nhost: localhost\r\n\r\n", 400),
        ("PUT /mcp HTTP/1.1\r\nhost: localhost\r\n\r\n", 405),
        ("GET / HTTP/1.1\r\nhost: localhost\r\n\r\n", 404),
        ("GET /mcp HTTP/1.1\r\nhost: evil.example\r\n\r\n", 403),
    ] {
        let answer = client.send_raw(request.as_bytes()).unwrap();
        assert_eq!(answer.status, status, "{request}");
    }
}

#[test]
fn a_modern_request_says_the_same_in_headers_and_body() {
    let site = Site::start(&["conformance"]);
    let mut client = site.client();
    let meta = r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}"#;
    let call = |tool: &str, arguments: &str| {
        format!(
            r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"{tool}","arguments":{arguments},{meta}}}}}"#
        )
    };
    let plain = call("test_simple_text", "{}");
    let region = call("test_header_parameter", r#"{"region":"caf\u00e9"}"#);
    let method = ("mcp-method", "tools/call");
    let name = ("mcp-name", "test_simple_text");
    let named = ("mcp-name", "test_header_parameter");
    let cases: [(Headers<'_>, &str, u16, i64); 12] = [
        (&[MODERN, method, name], &plain, 200, 0),
        (&[method, name], &plain, 400, -32020),
        (
            &[("mcp-protocol-version", "2027-01-01"), method, name],
            &plain,
            400,
            -32020,
        ),
        (&[MODERN, MODERN, method, name], &plain, 400, -32020),
        (&[MODERN, name], &plain, 400, -32020),
        (&[MODERN, method], &plain, 400, -32020),
        (&[MODERN, method, named], &plain, 400, -32020),
        (&[MODERN, method, name, name], &plain, 400, -32020),
        (&[MODERN, method, named], &region, 400, -32020),
        (
            &[MODERN, method, named, ("mcp-param-region", "cafe")],
            &region,
            400,
            -32020,
        ),
        (
            &[
                MODERN,
                method,
                named,
                ("mcp-param-region", "=?base64?Y2Fmw6k?="),
            ],
            &region,
            400,
            -32020,
        ),
        (
            &[
                MODERN,
                method,
                named,
                ("mcp-param-region", "=?base64?Y2Fmw6k=?="),
            ],
            &region,
            200,
            0,
        ),
    ];
    for (headers, body, status, expect) in cases {
        let headers = [&[JSON, BOTH], headers].concat();
        let answer = post(&mut client, &headers, body);
        assert_eq!(
            (answer.status, code(&answer)),
            (status, expect),
            "{headers:?}"
        );
    }
}

#[test]
fn what_a_tool_sends_on_the_way_comes_before_its_answer() {
    let site = Site::start(&["conformance"]);
    for era in [
        Era::Legacy("2025-11-25"),
        Era::Legacy("2025-03-26"),
        Era::Modern,
    ] {
        let mut client = site.ready(era);
        let params = json!({"name": "test_tool_with_progress", "arguments": {}, "_meta": {"progressToken": 7}});
        client.request("tools/call", params).unwrap();
        let mut seen = Vec::new();
        while let Some(Message::Notification { method, params }) = client.next_aside() {
            assert_eq!(method, "notifications/progress");
            assert_eq!(params["progressToken"], 7);
            seen.push(params["progress"].as_u64().unwrap());
        }
        assert_eq!(seen, [0, 50, 100], "{era:?}");
    }
}

#[test]
fn a_stream_that_was_cut_goes_on_where_it_was() {
    let site = Site::start(&["conformance"]);
    let mut client = site.ready(Era::Legacy("2025-11-25"));
    let cut = client.call_tool("test_reconnection", json!({}));
    assert!(matches!(cut, Err(ClientError::NotHttp { .. })), "{cut:?}");
    let session = client.session().unwrap();
    // The stream of initialize was none; this one is the first.
    let resume = format!(
        "GET /mcp HTTP/1.1\r\nhost: localhost\r\naccept: text/event-stream\r\nmcp-session-id: {session}\r\nlast-event-id: 1-1\r\n\r\n"
    );
    let answer = client.send_raw(resume.as_bytes()).unwrap();
    let text = String::from_utf8(answer.body).unwrap();
    assert_eq!(answer.content_type, "text/event-stream");
    assert!(text.contains("You came back."), "{text}");
    // And once more: what was sent is kept.
    let again = client.send_raw(resume.as_bytes()).unwrap();
    assert!(
        String::from_utf8(again.body)
            .unwrap()
            .contains("You came back.")
    );
}

#[test]
fn a_cancelled_call_gets_no_answer_and_the_session_goes_on() {
    let site = Site::start(&["echo"]);
    let mut waiting = site.ready(Era::Legacy("2025-11-25"));
    let mut other = site.client();
    let head = waiting.head("POST", None, None, 0);
    let session = waiting.session().unwrap().to_owned();
    assert!(head.contains(&session));
    let call = r#"{"jsonrpc":"2.0","id":"slow","method":"tools/call","params":{"name":"delayed","arguments":{"text":"a","delay_us":60000000}}}"#;
    let thread = std::thread::spawn(move || {
        waiting.exchange("tools/call", Some("delayed"), call.as_bytes(), "\"slow\"")
    });
    let headers = [JSON, BOTH, ("mcp-session-id", session.as_str())];
    let cancel =
        r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"slow"}}"#;
    // The call may not have arrived yet: cancel until it is over.
    for _ in 0..2000 {
        assert_eq!(post(&mut other, &headers, cancel).status, 202);
        if thread.is_finished() {
            break;
        }
    }
    let result = thread.join().unwrap();
    assert!(
        matches!(result, Err(ClientError::Status { status: 202, .. })),
        "{result:?}"
    );
    let ping = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;
    assert_eq!(post(&mut other, &headers, ping).status, 200);
}

#[test]
fn a_hostile_server_misbehaves_over_http_too() {
    let call = |behaviour: &str, era| {
        let site = Site::start(&["hostile", "--behaviour", behaviour, "--delay-ms", "50"]);
        let options = HttpOptions {
            timeout: Duration::from_secs(5),
            ..HttpOptions::default()
        };
        let mut client = HttpClient::new(&site.url, options).unwrap();
        client.handshake(era).unwrap();
        let tool = client.request("tools/list", json!({})).unwrap();
        let tool = tool.result().unwrap()["tools"][0]["name"].clone();
        client.call_tool(tool.as_str().unwrap(), json!({"text": "a"}))
    };
    for era in [Era::Legacy("2025-11-25"), Era::Modern] {
        let check = |behaviour, fits: fn(&ClientError) -> bool| {
            let seen = call(behaviour, era);
            assert!(
                seen.as_ref().is_err_and(fits),
                "{behaviour} {era:?}: {seen:?}"
            );
        };
        check("twice", |e| matches!(e, ClientError::Twice { .. }));
        check("never", |e| matches!(e, ClientError::Timeout { .. }));
        check("wrong-id", |e| matches!(e, ClientError::WrongId { .. }));
        check("garbage", |e| matches!(e, ClientError::NotAMessage { .. }));
        check("batch", |e| matches!(e, ClientError::Status { .. }));
        check("die", |e| {
            matches!(e, ClientError::Io(_) | ClientError::Closed { .. })
        });
        check("die-half", |e| {
            matches!(e, ClientError::Io(_) | ClientError::Closed { .. })
        });
        assert!(call("slow", era).is_ok());
    }
}

#[test]
fn a_signal_ends_it_and_an_address_in_use_is_told() {
    let mut site = Site::start(&["echo"]);
    let address = site.address().to_owned();
    let mut second = mock(&["echo", "--http", &address]);
    let status = second
        .process()
        .wait_within(Duration::from_secs(20))
        .unwrap();
    assert_eq!(status.and_then(|status| status.code()), Some(2));
    match second.process().read_line() {
        Err(ClientError::Closed { stderr, .. }) => assert!(stderr.contains("cannot listen on")),
        other => panic!("{other:?}"),
    }
    let process = site.process.process();
    process.signal(rustix::process::Signal::TERM).unwrap();
    let status = process.wait_within(Duration::from_secs(20)).unwrap();
    assert_eq!(status.and_then(|status| status.code()), Some(0));
}
