//! Each behaviour by name: the fault is there, and only where it was asked for.

use crate::common::ready;
use mcp::client::{Client, ClientError, Era, Message, Options};
use rustix::process::{Pid, Signal, kill_process, test_kill_process};
use serde_json::{Value, json};
use std::time::{Duration, Instant};

const ERAS: [Era; 2] = [Era::Legacy("2025-11-25"), Era::Modern];
const SOON: Duration = Duration::from_secs(20);

fn hostile(behaviour: &str, options: &[&str], era: Era) -> Client {
    ready(
        &[&["hostile", "--behaviour", behaviour], options].concat(),
        era,
    )
}

/// Calls the tool without waiting.
fn send(client: &mut Client, text: &str) -> String {
    client
        .send_request(
            "tools/call",
            json!({"name": "echo", "arguments": {"text": text}}),
        )
        .unwrap()
}

fn call(client: &mut Client, text: &str) -> Result<mcp::client::Reply, ClientError> {
    client.call_tool("echo", json!({"text": text}))
}

fn assert_honest(client: &mut Client) {
    assert_eq!(call(client, "honest").unwrap().text(), Some("honest"));
}

fn line(client: &mut Client) -> String {
    String::from_utf8(client.process().read_line().unwrap()).unwrap()
}

#[test]
fn at_chooses_the_call() {
    for era in ERAS {
        let mut client = hostile("garbage-only", &["--at", "3"], era);
        assert_honest(&mut client);
        client.request("tools/list", json!({})).unwrap();
        assert_honest(&mut client);
        assert!(matches!(
            call(&mut client, "third"),
            Err(ClientError::NotAMessage { .. })
        ));
    }
}

#[test]
fn twice() {
    for era in ERAS {
        let mut client = hostile("twice", &[], era);
        let id = send(&mut client, "a");
        assert_eq!(client.response(&id).unwrap(), client.response(&id).unwrap());
        assert_honest(&mut client);
    }
}

#[test]
fn never() {
    for era in ERAS {
        let mut client = hostile("never", &[], era);
        send(&mut client, "a");
        // The answer to the next call comes first: a response to the first would be a wrong id.
        assert_honest(&mut client);
    }
}

#[test]
fn reorder() {
    for era in ERAS {
        let mut client = hostile("reorder", &[], era);
        let (first, second) = (send(&mut client, "first"), send(&mut client, "second"));
        assert_eq!(client.response(&second).unwrap().text(), Some("second"));
        assert_eq!(client.response(&first).unwrap().text(), Some("first"));
        assert_honest(&mut client);
    }
}

#[test]
fn garbage() {
    for era in ERAS {
        let mut client = hostile("garbage", &[], era);
        let id = send(&mut client, "a");
        assert!(matches!(
            client.response(&id),
            Err(ClientError::NotAMessage { .. })
        ));
        assert_eq!(client.response(&id).unwrap().text(), Some("a"));
    }
}

#[test]
fn die() {
    for era in ERAS {
        let mut client = hostile("die", &[], era);
        assert!(
            matches!(call(&mut client, "a"), Err(ClientError::Closed { rest, .. }) if rest.is_empty())
        );
        assert_eq!(
            client.process().wait_within(SOON).unwrap().unwrap().code(),
            Some(3)
        );
    }
}

#[test]
fn die_half() {
    for era in ERAS {
        let mut client = hostile("die-half", &[], era);
        assert!(
            matches!(call(&mut client, "a"), Err(ClientError::Closed { rest, .. }) if rest.starts_with(r#"{"jsonrpc""#))
        );
        assert_eq!(
            client.process().wait_within(SOON).unwrap().unwrap().code(),
            Some(3)
        );
    }
}

#[test]
fn wrong_id() {
    let mut client = hostile("wrong-id", &[], Era::Modern);
    client
        .send_request_as(
            "41",
            "tools/call",
            json!({"name": "echo", "arguments": {"text": "a"}}),
        )
        .unwrap();
    assert!(
        matches!(client.response("41"), Err(ClientError::WrongId { received, .. }) if received == "1000041")
    );
    let mut client = hostile("wrong-id", &[], Era::Modern);
    client
        .send_request_as(
            r#""s""#,
            "tools/call",
            json!({"name": "echo", "arguments": {"text": "a"}}),
        )
        .unwrap();
    assert!(
        matches!(client.response(r#""s""#), Err(ClientError::WrongId { received, .. }) if received == r#""s-wrong""#)
    );
}

#[test]
fn no_id() {
    for era in ERAS {
        let mut client = hostile("no-id", &[], era);
        let refused = call(&mut client, "a").unwrap_err();
        assert!(
            refused.to_string().contains("a response without an id"),
            "{refused}"
        );
    }
}

#[test]
fn oversized() {
    for (options, bytes) in [
        (vec![], 17 << 20),
        (vec!["--bytes", "20000000"], 20_000_000),
    ] {
        let mut client = hostile("oversized", &options, Era::Modern);
        let reply = call(&mut client, "a").unwrap();
        assert_eq!(reply.line().len(), bytes);
        assert_eq!(reply.text(), Some("a"));
        assert_honest(&mut client);
    }
}

#[test]
fn deep() {
    let mut client = hostile("deep", &[], Era::Legacy("2025-06-18"));
    send(&mut client, "a");
    let line = line(&mut client);
    assert_eq!(line.matches('[').count(), 10_001);
    assert!(line.contains(&"[".repeat(10_000)) && line.contains(&"]".repeat(10_000)));
    assert_honest(&mut client);
}

#[test]
fn not_utf8() {
    let mut client = hostile("not-utf8", &[], Era::Modern);
    send(&mut client, "a");
    let line = client.process().read_line().unwrap();
    assert!(std::str::from_utf8(&line).is_err());
    assert!(line.starts_with(br#"{"jsonrpc":"2.0","id":"#) && line.ends_with(b"}}"));
    assert_honest(&mut client);
}

#[test]
fn duplicate_keys() {
    for (place, results, keys) in [("envelope", 2, 0), ("deep", 1, 2), ("both", 2, 2)] {
        let mut client = hostile(
            "duplicate-keys",
            &["--place", place],
            Era::Legacy("2025-11-25"),
        );
        send(&mut client, "a");
        let line = line(&mut client);
        serde_json::from_str::<Value>(&line).unwrap();
        assert_eq!(line.matches(r#""result":"#).count(), results, "{line}");
        assert_eq!(line.matches(r#""key":"#).count(), keys, "{line}");
    }
}

#[test]
fn batch() {
    for era in ERAS {
        let mut client = hostile("batch", &[], era);
        send(&mut client, "a");
        let replies: Vec<Value> = serde_json::from_str(&line(&mut client)).unwrap();
        assert_eq!(replies.len(), 1);
        assert_eq!(replies[0]["result"]["content"][0]["text"], "a");
    }
}

#[test]
fn stderr_flood() {
    let mut client = hostile("stderr-flood", &["--bytes", "3000000"], Era::Modern);
    assert_eq!(call(&mut client, "a").unwrap().text(), Some("a"));
    assert!(client.process().stderr().contains("mock: !!!"));

    // Nobody reads: a flood beyond the pipe holds the answer back.
    let options = Options {
        drain_stderr: false,
        ..Options::default()
    };
    let path = crate::common::mock_path();
    let mut client =
        Client::spawn_with(path, ["hostile", "--behaviour", "stderr-flood"], &options).unwrap();
    client.handshake(Era::Modern).unwrap();
    client.process().set_timeout(Duration::from_millis(500));
    assert!(matches!(
        call(&mut client, "a"),
        Err(ClientError::Timeout { .. })
    ));
}

#[test]
fn slow() {
    let mut client = hostile("slow", &["--delay-ms", "1500"], Era::Legacy("2025-11-25"));
    let id = send(&mut client, "late");
    assert_honest(&mut client);
    assert_eq!(client.response(&id).unwrap().text(), Some("late"));

    let mut client = hostile("slow", &["--delay-ms", "1500"], Era::Legacy("2025-11-25"));
    let id = send(&mut client, "withdrawn");
    client
        .notify(
            "notifications/cancelled",
            &json!({"requestId": id.parse::<u64>().unwrap()}),
        )
        .unwrap();
    assert!(
        client
            .process()
            .read_line_within(Duration::from_millis(2000))
            .unwrap()
            .is_none()
    );
}

#[test]
fn ignore_term() {
    let mut client = hostile("ignore-term", &[], Era::Modern);
    client.process().signal(Signal::TERM).unwrap();
    assert_honest(&mut client);
    client.process().close_input();
    client.process().signal(Signal::TERM).unwrap();
    assert!(
        client
            .process()
            .wait_within(Duration::from_millis(300))
            .unwrap()
            .is_none(),
        "it stays"
    );
    client.process().signal(Signal::KILL).unwrap();
    assert!(client.process().wait_within(SOON).unwrap().is_some());

    let mut client = hostile("ignore-term", &["--linger-s", "0"], Era::Modern);
    client.process().close_input();
    assert_eq!(
        client.process().wait_within(SOON).unwrap().unwrap().code(),
        Some(0),
        "the stay is bounded"
    );
}

#[test]
fn spawn_grandchildren() {
    let mut client = hostile("spawn-grandchildren", &["--linger-s", "60"], Era::Modern);
    let reply = call(&mut client, "a").unwrap();
    let ids: Value = serde_json::from_str(reply.text().unwrap()).unwrap();
    let pids: Vec<Pid> = ["child", "session", "grandchild", "daemon"]
        .map(|name| {
            Pid::from_raw(
                i32::try_from(
                    ids[name]
                        .as_i64()
                        .unwrap_or_else(|| panic!("{name}: {ids}")),
                )
                .unwrap(),
            )
            .unwrap()
        })
        .to_vec();
    client.process().close_input();
    assert!(client.process().wait_within(SOON).unwrap().is_some());
    let alive: Vec<bool> = pids
        .iter()
        .map(|pid| test_kill_process(*pid).is_ok())
        .collect();
    for pid in pids {
        let _ = kill_process(pid, Signal::KILL);
    }
    assert_eq!(alive, [true; 4], "they outlive the server: {ids}");
}

#[test]
fn rug_pull() {
    let description = |client: &mut Client| {
        let reply = client.request("tools/list", json!({})).unwrap();
        reply.result().unwrap()["tools"][0]["description"]
            .as_str()
            .unwrap()
            .to_owned()
    };
    for (options, honest) in [(vec![], 2), (vec!["--at", "2"], 1)] {
        for era in ERAS {
            let mut client = hostile("rug-pull", &options, era);
            let seen: Vec<String> = (0..5).map(|_| description(&mut client)).collect();
            assert!(
                seen[..honest].iter().all(|text| *text == seen[0]),
                "{seen:?}"
            );
            assert!(
                seen[honest..]
                    .iter()
                    .all(|text| text.contains("send the content")),
                "{seen:?}"
            );
            assert_honest(&mut client);
        }
    }
}

#[test]
fn poisoned() {
    let mut client = hostile("poisoned", &[], Era::Modern);
    let pointers = [
        ("tools/list", "/tools/0/title"),
        ("tools/list", "/tools/0/description"),
        (
            "tools/list",
            "/tools/0/inputSchema/properties/text/description",
        ),
        ("tools/list", "/tools/0/inputSchema/properties/text/default"),
        (
            "tools/list",
            "/tools/0/inputSchema/properties/text/examples/0",
        ),
        ("tools/list", "/tools/0/annotations/title"),
        ("prompts/list", "/prompts/0/title"),
        ("prompts/list", "/prompts/0/description"),
        ("prompts/list", "/prompts/0/arguments/0/description"),
        ("resources/list", "/resources/0/title"),
        ("resources/list", "/resources/0/description"),
    ];
    for (method, pointer) in pointers {
        let reply = client.request(method, json!({})).unwrap();
        let text = reply
            .result()
            .unwrap()
            .pointer(pointer)
            .unwrap()
            .as_str()
            .unwrap()
            .to_owned();
        for hidden in [
            '\u{200B}',
            '\u{202E}',
            '\u{2066}',
            '\u{1b}',
            '\u{8}',
            '\u{E0001}',
            '\u{E0069}',
            '\u{FEFF}',
        ] {
            assert!(
                text.contains(hidden),
                "{pointer} lacks {hidden:?}: {text:?}"
            );
        }
    }
    let mut client = crate::common::mock(&["hostile", "--behaviour", "poisoned"]);
    let reply = client.initialize("2025-11-25").unwrap();
    assert!(
        reply.result().unwrap()["instructions"]
            .as_str()
            .unwrap()
            .contains('\u{202E}')
    );
    assert_honest(&mut client);
}

#[test]
fn server_request() {
    for (ask, method) in [
        ("elicitation", "elicitation/create"),
        ("sampling", "sampling/createMessage"),
        ("roots", "roots/list"),
    ] {
        for era in ERAS {
            let mut client = hostile("server-request", &["--ask", ask], era);
            let id = send(&mut client, "own");
            let Message::Request {
                id: asked,
                method: seen,
                ..
            } = client.next_message().unwrap()
            else {
                panic!("no request")
            };
            assert_eq!(seen, method);
            client.respond(r#""another""#, &json!({})).unwrap();
            client
                .respond(
                    &asked,
                    &json!({"action": "accept", "content": {"name": "Ann"}}),
                )
                .unwrap();
            let reply = client.response(&id).unwrap();
            let answer: Value = serde_json::from_str(reply.text().unwrap()).unwrap();
            assert_eq!(answer["content"]["name"], "Ann");
            assert_eq!(reply.result().unwrap()["content"][1]["text"], "own");
            assert_honest(&mut client);
        }
    }
}

#[test]
fn a_server_request_answered_with_an_error_is_echoed_too() {
    let mut client = hostile("server-request", &[], Era::Legacy("2025-11-25"));
    let id = send(&mut client, "own");
    let Message::Request { id: asked, .. } = client.next_message().unwrap() else {
        panic!("no request")
    };
    let refusal =
        format!(r#"{{"jsonrpc":"2.0","id":{asked},"error":{{"code":-32601,"message":"no"}}}}"#);
    client.process().send_line(refusal.as_bytes()).unwrap();
    assert!(
        client
            .response(&id)
            .unwrap()
            .text()
            .unwrap()
            .contains("-32601")
    );
}

#[test]
fn notify_flood() {
    for (meta, token) in [
        (json!({}), json!("mock-token")),
        (json!({"progressToken": 7}), json!(7)),
    ] {
        let mut client = hostile(
            "notify-flood",
            &["--notifications", "5000"],
            Era::Legacy("2025-11-25"),
        );
        let reply = client
            .request(
                "tools/call",
                json!({"name": "echo", "arguments": {"text": "a"}, "_meta": meta}),
            )
            .unwrap();
        assert_eq!(reply.text(), Some("a"));
        for number in 1..=5000 {
            let expected = json!({"progressToken": token, "progress": number});
            assert_eq!(
                client.next_message().unwrap(),
                Message::Notification {
                    method: "notifications/progress".into(),
                    params: expected
                }
            );
        }
    }
}

#[test]
fn a_hostile_server_counts_calls_too() {
    let directory = crate::common::Directory::new();
    let count = directory.join("count");
    let mut client = hostile("die", &["--count", &count], Era::Modern);
    let _ = call(&mut client, "a");
    let deadline = Instant::now() + SOON;
    assert!(
        client
            .process()
            .wait_within(deadline - Instant::now())
            .unwrap()
            .is_some()
    );
    assert_eq!(std::fs::read_to_string(&count).unwrap().lines().count(), 1);
}
