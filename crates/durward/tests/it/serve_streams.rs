//! Streams of `durward serve`: resumed where they were lost, and by nobody else; requests of servers to their
//! clients, on the right stream and judged; Modern subscriptions.

use crate::support::guarded::{Place, eventually};
use crate::support::refusals::{REFUSED_CODE, is_passed};
use crate::support::serving::{self, Answer, Events, Served, call, modern, modern_headers};
use serde_json::{Value, json};

/// Most events of a session that are kept for resuming.
const EVENTS_KEPT_MAX: usize = 256;

fn mock(words: &[&str], flags: &[&str]) -> Served {
    mock_in(Place::new(), words, flags)
}

fn mock_in(place: Place, words: &[&str], flags: &[&str]) -> Served {
    let mock = place.mock(words).join(" ");
    Served::start_server(place, &format!("echo={mock}"), flags)
}

/// A call with a progress token, as a Legacy message.
fn with_progress(id: &str, tool: &str) -> String {
    format!(
        r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"{tool}","arguments":{{}},"_meta":{{"progressToken":"p"}}}}}}"#
    )
}

#[test]
fn a_lost_stream_is_resumed_where_it_was_lost() {
    let served = mock(&["conformance"], &[]);
    let session = served.open("2025-11-25");
    let body = with_progress("7", "test_tool_with_progress");
    let mut stream = served.stream("POST", &session, &[], &body);
    let (first, news) = stream.next().unwrap();
    assert_eq!(news["method"], "notifications/progress", "{news}");
    assert_eq!(news["params"]["progressToken"], "p", "{news}");
    drop(stream);
    // At once, while the call goes on; and again when it has long ended.
    for _ in 0..2 {
        let mut resumed = served.stream("GET", &session, &[("last-event-id", &first)], "");
        let mut progress = Vec::new();
        let answer = loop {
            let (_, message) = resumed.next().expect("the answer comes");
            if message["id"] == 7 {
                break message;
            }
            progress.push(message["params"]["progress"].clone());
        };
        assert_eq!(progress, [json!(50), json!(100)]);
        assert!(answer["result"]["content"].is_array(), "{answer}");
        assert!(resumed.next().is_none(), "the stream ends with the answer");
    }
    let (code, place) = served.stop();
    assert_eq!(code, Some(0));
    place.journal().assert_ended("7", "Success", None);
    assert_eq!(place.counted().len(), 1);
}

#[test]
fn what_is_replayed_is_bounded_and_ends_with_the_answer() {
    let words = [
        "hostile",
        "--behaviour",
        "notify-flood",
        "--notifications",
        "3000",
    ];
    let served = mock(&words, &[]);
    let session = served.open("2025-11-25");
    let body = with_progress("7", "echo").replace("{}", r#"{"text":"flooded"}"#);
    let mut stream = served.stream("POST", &session, &[], &body);
    let (first, _) = stream.next().unwrap();
    drop(stream);
    eventually("the call has ended", || {
        is_passed(&served.post(Some(&session), &call("7", "again")).json())
    });
    let mut resumed = served.stream("GET", &session, &[("last-event-id", &first)], "");
    let mut replayed = Vec::new();
    while let Some((_, message)) = resumed.next() {
        replayed.push(message);
    }
    assert!(replayed.len() <= EVENTS_KEPT_MAX, "{}", replayed.len());
    let answer = replayed.last().unwrap();
    assert_eq!(
        answer["result"]["content"][0]["text"], "flooded",
        "{answer}"
    );
}

#[test]
fn a_stream_is_resumed_by_its_own_caller_and_session_only() {
    let place = Place::new();
    let key = |name: &str| {
        let output = place.durward(&[
            "--no-config",
            "--state-dir",
            "state",
            "keys",
            "create",
            name,
        ]);
        let text = String::from_utf8(output.stdout).unwrap();
        format!("Bearer {}", text.trim())
    };
    let (one, other) = (key("one"), key("other"));
    let served = mock_in(place, &["conformance"], &[]);
    let open = |key: &str| {
        let body = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}"#;
        let answer = served.send("POST", "/mcp/echo", &[("authorization", key)], body);
        answer.header("mcp-session-id").unwrap().to_owned()
    };
    let (own, foreign) = (open(&one), open(&other));
    let body = with_progress("7", "test_tool_with_progress");
    let mut stream = served.stream("POST", &own, &[("authorization", &one)], &body);
    let (first, _) = stream.next().unwrap();
    drop(stream);
    let get = |key: &str, session: &str, event: &str| {
        let headers = [
            ("authorization", key),
            ("mcp-session-id", session),
            ("last-event-id", event),
        ];
        served.send("GET", "/mcp/echo", &headers, "").status
    };
    assert_eq!(
        get(&other, &own, &first),
        404,
        "the session is another caller's"
    );
    assert_eq!(
        get(&other, &foreign, &first),
        400,
        "the event is another session's"
    );
    for bad in ["", "x", "1", "1-x", "-1", "99999999999999999999-1"] {
        assert_eq!(get(&one, &own, bad), 400, "{bad:?}");
    }
    assert_eq!(get(&one, &own, &first), 200);
}

const ASKS: &str = r#"{"version":"1","default_action":"deny","rules":[
    {"id":"tools","effect":"allow","conditions":{"tool_name":"*"}},
    {"id":"questions","effect":"allow","conditions":{"mcp_method":["elicitation/create","roots/list"]}},
    {"id":"no-model","effect":"deny","conditions":{"mcp_method":"sampling/createMessage"}}]}"#;

/// A call during which the server asks its client; what the client was asked, and the call's answer.
fn asked(ask: &str, answer: &Value) -> (Option<Value>, String, Place) {
    let place = Place::new();
    place.write_policy(ASKS);
    let served = mock_in(
        place,
        &["hostile", "--behaviour", "server-request", "--ask", ask],
        &[],
    );
    let session = served.open("2025-11-25");
    // Another session of the same server hears nothing of it.
    let bystander = served.open("2025-11-25");
    let mut aside = served.stream("GET", &bystander, &[], "");
    let mut news = served.stream("GET", &session, &[], "");
    let question;
    let text = {
        let mut stream = served.connect();
        let id = ("mcp-session-id", session.as_str());
        serving::write_request(&mut stream, "POST", "/mcp/echo", &[id], &call("7", "asks"));
        let mut reader = std::io::BufReader::new(stream);
        let head = serving::read_head(&mut reader);
        if head.header("content-type") == Some("text/event-stream") {
            let mut stream = Events::over(reader);
            let asked = stream.message();
            let reply = json!({"jsonrpc": "2.0", "id": asked["id"], "result": answer});
            assert_eq!(served.post(Some(&session), &reply.to_string()).status, 202);
            // The same answer again answers nothing.
            assert_eq!(served.post(Some(&session), &reply.to_string()).status, 202);
            question = Some(asked);
            let message = stream.message();
            assert!(stream.next().is_none());
            text_of(&message)
        } else {
            question = None;
            text_of(&head.json())
        }
    };
    served.terminate();
    assert!(
        news.next().is_none(),
        "the question belongs to the call's stream"
    );
    assert!(aside.next().is_none(), "and to no other session");
    let (code, place) = served.ended();
    assert_eq!(code, Some(0));
    (question, text, place)
}

fn text_of(message: &Value) -> String {
    assert_eq!(message["id"], 7, "{message}");
    message["result"]["content"].to_string()
}

#[test]
fn a_server_asks_its_client_on_the_stream_of_the_call() {
    for (ask, method, answer, learned) in [
        (
            "elicitation",
            "elicitation/create",
            json!({"action": "accept", "content": {"name": "Ada"}}),
            "Ada",
        ),
        (
            "roots",
            "roots/list",
            json!({"roots": [{"uri": "file:///tmp"}]}),
            "file:///tmp",
        ),
    ] {
        let (question, text, place) = asked(ask, &answer);
        let question = question.expect("the client is asked");
        assert_eq!(question["method"], method, "{question}");
        assert!(text.contains(learned), "{text}");
        let journal = place.journal();
        let decision = journal.decision("\"mock-ask-1\"");
        assert_eq!(decision["direction"], "to_client", "{decision}");
        assert_eq!(decision["final_rule"], "questions", "{decision}");
        journal.assert_ended("\"mock-ask-1\"", "Success", None);
        journal.assert_ended("7", "Success", None);
        journal.assert_event("client_answer_unknown");
    }
}

#[test]
fn a_server_whose_question_is_denied_is_told_so_and_the_client_never_hears_of_it() {
    let (question, text, place) = asked("sampling", &Value::Null);
    assert_eq!(question, None);
    assert!(
        text.contains(&REFUSED_CODE.to_string()) && text.contains("no-model"),
        "{text}"
    );
    let journal = place.journal();
    assert_eq!(
        journal.decision("\"mock-ask-1\"")["reason"],
        "denied_by_rule"
    );
}

/// A Legacy server that pings before it answers a call, and answers once the ping was.
const PINGS: &str = r#"
while read -r line; do
  id=${line#*\"id\":}; id=${id%%[,\}]*}
  case $line in
  *initialize\"*) echo '{"jsonrpc":"2.0","id":'$id',"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"s","version":"1"}}}';;
  *tools/list*) echo '{"jsonrpc":"2.0","id":'$id',"result":{"tools":[{"name":"echo","inputSchema":{"type":"object"}}]}}';;
  *tools/call*) call=$id; echo '{"jsonrpc":"2.0","id":"pinged","method":"ping"}';;
  *pinged*) echo '{"jsonrpc":"2.0","id":'$call',"result":{"content":[{"type":"text","text":"awake"}]}}';;
  esac
done
"#;

#[test]
fn a_ping_of_the_server_reaches_its_client() {
    let place = Place::new();
    std::fs::write(place.path("server.sh"), PINGS).unwrap();
    let served = Served::start_server(place, "echo=sh server.sh", &[]);
    let session = served.open("2025-11-25");
    let mut stream = served.stream("POST", &session, &[], &call("7", "x"));
    let ping = stream.message();
    assert_eq!(ping["method"], "ping", "{ping}");
    let pong = json!({"jsonrpc": "2.0", "id": ping["id"], "result": {}});
    served.post(Some(&session), &pong.to_string());
    assert!(text_of(&stream.message()).contains("awake"));
}

#[test]
fn a_server_may_not_ask_a_modern_client() {
    let served = mock(&["hostile", "--behaviour", "server-request"], &[]);
    let headers = modern_headers("tools/call", "echo");
    let body = modern(
        "7",
        "tools/call",
        r#""name":"echo","arguments":{"text":"x"}"#,
    );
    let answer: Answer = served.send("POST", "/mcp/echo", &headers, &body);
    assert_eq!(answer.status, 200, "{answer:?}");
    let text = text_of(&answer.json());
    assert!(text.contains("-32601"), "{text}");
}

#[test]
fn a_modern_subscription_tells_of_changes_and_ends_with_its_client_or_with_serving() {
    let served = mock(&["conformance"], &[]);
    let filter = r#""notifications":{"toolsListChanged":true}"#;
    let listen = |id: &str| {
        let headers = modern_headers("subscriptions/listen", "");
        Events::of(
            &served,
            "POST",
            &headers,
            &modern(id, "subscriptions/listen", filter),
        )
    };
    let subscription = |message: &Value| {
        message["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"].clone()
    };
    let mut one = listen("\"one\"");
    let mut two = listen("2.0");
    for (stream, id) in [(&mut one, json!("one")), (&mut two, json!(2.0))] {
        let first = stream.message();
        assert_eq!(
            first["method"], "notifications/subscriptions/acknowledged",
            "{first}"
        );
        assert_eq!(subscription(&first), id, "{first}");
    }
    let change = || {
        let headers = modern_headers("tools/call", "test_trigger_tool_change");
        let params = r#""name":"test_trigger_tool_change","arguments":{}"#;
        let answer = served.send(
            "POST",
            "/mcp/echo",
            &headers,
            &modern("9", "tools/call", params),
        );
        assert_eq!(answer.status, 200, "{answer:?}");
    };
    change();
    for (stream, id) in [(&mut one, json!("one")), (&mut two, json!(2.0))] {
        let news = stream.message();
        assert_eq!(news["method"], "notifications/tools/list_changed", "{news}");
        assert_eq!(subscription(&news), id, "{news}");
    }
    drop(one);
    change();
    assert_eq!(two.message()["method"], "notifications/tools/list_changed");
    served.terminate();
    assert!(
        two.next().is_none(),
        "a subscription does not hold up the end"
    );
    assert_eq!(served.ended().0, Some(0));
}
