mod resources;

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use serde_json::{Value, json};

use super::*;
use crate::server::{Answer, ToolServer};
use crate::trial::Trial;

/// Tools that do what the tests need.
struct Probe {
    tools: Vec<ToolDef>,
    dropped: Arc<AtomicUsize>,
    ended: AtomicUsize,
}

struct Dropped(Arc<AtomicUsize>);

impl Drop for Dropped {
    fn drop(&mut self) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

impl Probe {
    fn new() -> Self {
        let any =
            json!({"type": "object", "properties": {"ms": {"type": "integer", "minimum": 0}}});
        let tool = |name| ToolDef::new(name, "Title", "Does it.", any.clone()).unwrap();
        let number =
            json!({"type": "object", "required": ["n"], "properties": {"n": {"type": "integer"}}});
        Self {
            tools: vec![
                tool("say"),
                tool("data").with_output(number.clone()).unwrap(),
                tool("broken").with_output(number).unwrap(),
                tool("fail"),
                tool("steps"),
                tool("polite"),
                tool("deaf"),
                tool("big"),
            ],
            dropped: Arc::default(),
            ended: AtomicUsize::new(0),
        }
    }
}

impl ToolServer for Probe {
    fn identity(&self) -> Identity {
        Identity {
            name: "probe",
            title: "Probe",
            version: "1.2.3",
            instructions: "Try it.",
        }
    }

    fn tools(&self) -> &[ToolDef] {
        &self.tools
    }

    async fn call(&self, call: ToolCall, mut reply: ReplySink) -> Outcome {
        let _dropped = Dropped(Arc::clone(&self.dropped));
        match call.tool() {
            "say" => Outcome::Done(Answer::text(format!("to {}", call.session().caller))),
            "data" => Outcome::Done(Answer::data(json!({"n": 3}))),
            "broken" => Outcome::Done(Answer::data(json!({"n": "three"}))),
            "steps" => {
                for step in 1..=3 {
                    reply.progress(f64::from(step), Some(3.0), Some("step"));
                    tokio::time::sleep(Duration::from_millis(5)).await;
                }
                Outcome::Done(Answer::text("done"))
            }
            "polite" => {
                reply.cancel().cancelled().await;
                Outcome::Cancelled
            }
            "deaf" => std::future::pending().await,
            "big" => Outcome::Done(Answer::text("x".repeat(RESULT_BYTES_MAX))),
            _ => Outcome::Failed(Failure::new("on_purpose", "it failed on purpose").with("n", 1)),
        }
    }

    fn session_ended(&self, _session: &SessionRef) {
        self.ended.fetch_add(1, Ordering::SeqCst);
    }
}

fn trial() -> (Trial, Arc<Probe>) {
    let probe = Arc::new(Probe::new());
    let server: Arc<dyn DynToolServer> = probe.clone();
    (Trial::new(server, None).unwrap(), probe)
}

const OPEN: &str = r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{}}}"#;

async fn opened(trial: &Trial) -> BuiltinSession {
    let session = trial.session("ada");
    reply(trial, &session, OPEN).await;
    session
}

/// Everything that comes back on a frame.
async fn all(trial: &Trial, session: &BuiltinSession, frame: &str) -> Vec<Value> {
    let mut exchange = trial.send(session, frame).unwrap();
    let mut out = Vec::new();
    while let Some(arrival) = exchange.next().await {
        out.push(serde_json::from_slice(arrival.frame()).unwrap());
    }
    out
}

async fn reply(trial: &Trial, session: &BuiltinSession, frame: &str) -> Value {
    let mut out = all(trial, session, frame).await;
    assert_eq!(out.len(), 1, "{out:?}");
    out.remove(0)
}

fn modern(method: &str, params: &str) -> String {
    format!(
        r#"{{"jsonrpc":"2.0","id":"m","method":"{method}","params":{{{params}"_meta":{{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{{}}}}}}}}"#
    )
}

fn legacy(method: &str, params: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":7,"method":"{method}","params":{{{params}}}}}"#)
}

#[tokio::test]
async fn initialize_settles_on_a_revision() {
    let (trial, _) = trial();
    for (asked, settled) in [
        ("2024-11-05", "2024-11-05"),
        ("2025-06-18", "2025-06-18"),
        ("2025-11-25", "2025-11-25"),
        ("2026-07-28", "2025-11-25"),
        ("1999-01-01", "2025-11-25"),
    ] {
        let session = trial.session("ada");
        let frame = legacy("initialize", &format!(r#""protocolVersion":"{asked}""#));
        let told = reply(&trial, &session, &frame).await;
        assert_eq!(told["result"]["protocolVersion"], settled);
        assert_eq!(told["result"]["serverInfo"]["name"], "probe");
        assert_eq!(told["result"]["instructions"], "Try it.");
        let listed = reply(&trial, &session, &legacy("tools/list", "")).await;
        let data = &listed["result"]["tools"][1];
        let structured = settled >= "2025-06-18";
        assert_eq!(data.get("outputSchema").is_some(), structured, "{asked}");
        assert_eq!(data.get("annotations").is_some(), settled > "2024-11-05");
        assert!(listed["result"].get("resultType").is_none());
        let called = reply(&trial, &session, &legacy("tools/call", r#""name":"data""#)).await;
        let result = &called["result"];
        assert_eq!(result["content"][0]["text"], r#"{"n":3}"#);
        assert_eq!(result.get("structuredContent").is_some(), structured);
    }
}

#[tokio::test]
async fn each_request_of_the_modern_era_stands_alone() {
    let (trial, _) = trial();
    let session = trial.session("ada");
    let told = reply(&trial, &session, &modern("server/discover", "")).await;
    let result = &told["result"];
    assert_eq!(told["id"], "m");
    assert_eq!(result["supportedVersions"], json!(["2026-07-28"]));
    assert_eq!(
        (&result["resultType"], &result["cacheScope"]),
        (&json!("complete"), &json!("public"))
    );
    let server = &result["_meta"]["io.modelcontextprotocol/serverInfo"];
    assert_eq!(server["version"], "1.2.3");
    let listed = reply(&trial, &session, &modern("tools/list", "")).await;
    assert_eq!(listed["result"]["tools"].as_array().unwrap().len(), 8);
    assert!(listed["result"]["ttlMs"].as_u64().unwrap() > 0);
    let called = reply(&trial, &session, &modern("tools/call", r#""name":"say","#)).await;
    assert_eq!(called["result"]["content"][0]["text"], "to ada");
    assert_eq!(called["result"]["resultType"], "complete");
}

#[tokio::test]
async fn what_cannot_be_served_is_refused_with_the_code_of_the_protocol() {
    let (trial, _) = trial();
    let fresh = trial.session("ada");
    let open = opened(&trial).await;
    let version = |v: &str| {
        legacy(
            "tools/list",
            &format!(r#""_meta":{{"io.modelcontextprotocol/protocolVersion":{v}}}"#),
        )
    };
    let cases: [(&BuiltinSession, String, i64, &str); 14] = [
        (
            &fresh,
            legacy("tools/list", ""),
            -32600,
            "the session is not initialized; send initialize first",
        ),
        (
            &fresh,
            legacy("server/discover", ""),
            -32601,
            "unknown method server/discover",
        ),
        (
            &fresh,
            legacy("initialize", ""),
            -32602,
            "params.protocolVersion is not a string",
        ),
        (
            &fresh,
            version(r#""2026-07-28""#),
            -32602,
            "_meta lacks io.modelcontextprotocol/clientCapabilities, an object; send {} if there are none",
        ),
        (
            &fresh,
            version(r#""2027-01-01""#),
            -32022,
            "unsupported protocol version 2027-01-01; use 2026-07-28",
        ),
        (&fresh, modern("ping", ""), -32601, "unknown method ping"),
        (
            &fresh,
            modern("tools/call", r#""name":"say","requestState":"x","#),
            -32602,
            "params.requestState was not issued here",
        ),
        (
            &open,
            legacy("tools/call", r#""name":"none""#),
            -32602,
            "unknown tool none",
        ),
        (
            &open,
            legacy("tools/call", r#""name":3"#),
            -32602,
            "params.name is not a string",
        ),
        (
            &open,
            legacy("tools/call", r#""name":"say","arguments":[]"#),
            -32602,
            "params.arguments is not an object",
        ),
        (
            &open,
            legacy("tools/list", r#""cursor":"x""#),
            -32602,
            "params.cursor was not issued here",
        ),
        (
            &open,
            legacy("resources/list", ""),
            -32601,
            "unknown method resources/list",
        ),
        (
            &open,
            "{".into(),
            -32700,
            "the frame ends in the middle of a value at byte 1",
        ),
        (
            &open,
            "[]".into(),
            -32600,
            "this revision of the protocol has no batches at byte 0",
        ),
    ];
    for (session, frame, code, message) in cases {
        let told = reply(&trial, session, &frame).await;
        assert_eq!(told["error"]["code"], code, "{frame}");
        assert!(
            told["error"]["message"] == message || frame == "{",
            "{told}"
        );
    }
    assert!(reply(&trial, &open, &legacy("ping", "")).await["result"].is_object());
    for silent in [
        r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#,
        r#"{"jsonrpc":"2.0","id":1,"result":{}}"#,
        r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":99}}"#,
        r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":{}}}"#,
    ] {
        assert!(all(&trial, &open, silent).await.is_empty());
    }
}

#[tokio::test]
async fn failures_are_results_that_the_model_reads() {
    let (trial, _) = trial();
    let session = opened(&trial).await;
    let told = |frame: String| {
        let (trial, session) = (&trial, &session);
        async move {
            let told = reply(trial, session, &frame).await;
            let result = &told["result"];
            assert_eq!(result["isError"], true);
            (
                result["content"][0]["text"].as_str().unwrap().to_owned(),
                result["_meta"][META_FAILURE]["code"]
                    .as_str()
                    .unwrap()
                    .to_owned(),
            )
        }
    };
    let call = |name: &str, arguments: &str| {
        legacy(
            "tools/call",
            &format!(r#""name":"{name}","arguments":{arguments}"#),
        )
    };
    let (text, code) = told(call("fail", "{}")).await;
    assert_eq!((&*text, &*code), ("it failed on purpose", "on_purpose"));
    let (text, code) = told(call("say", r#"{"ms":-1}"#)).await;
    assert_eq!(code, "unfit_arguments");
    assert_eq!(text, "arguments do not fit: \"ms\" must be at least 0");
    let (text, code) = told(call("broken", "{}")).await;
    assert_eq!(code, "unfit_result");
    assert!(text.ends_with("\"n\" must be an integer"), "{text}");
    let (text, code) = told(call("big", "{}")).await;
    assert_eq!(code, "result_too_large");
    assert!(text.contains("at most 4194304"), "{text}");
}

#[tokio::test]
async fn progress_comes_before_the_reply_to_who_asked_for_it() {
    let (trial, _) = trial();
    let session = opened(&trial).await;
    let params = r#""name":"steps","_meta":{"progressToken":"t-1"}"#;
    let told = all(&trial, &session, &legacy("tools/call", params)).await;
    let steps: Vec<_> = told[..3].iter().map(|news| &news["params"]).collect();
    for (step, number) in steps.iter().zip(1..) {
        let expect =
            json!({"progressToken": "t-1", "progress": number, "total": 3, "message": "step"});
        assert_eq!(**step, expect);
    }
    assert_eq!(told[3]["id"], 7);
    let told = all(&trial, &session, &legacy("tools/call", r#""name":"steps""#)).await;
    assert_eq!(told.len(), 1, "no token, no news");
}

#[tokio::test(start_paused = true)]
async fn a_cancelled_call_has_no_reply_and_ends() {
    let (trial, probe) = trial();
    let session = opened(&trial).await;
    for (number, tool) in ["polite", "deaf"].into_iter().enumerate() {
        let frame = legacy("tools/call", &format!(r#""name":"{tool}""#));
        let mut exchange = trial.send(&session, &frame).unwrap();
        let waiting = tokio::time::timeout(Duration::from_millis(50), exchange.next()).await;
        assert!(waiting.is_err(), "it is at work");
        assert_eq!((session.under_way(), trial.builtin().under_way()), (1, 1));
        let cancel =
            r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":7.0}}"#;
        assert!(all(&trial, &session, cancel).await.is_empty());
        let wait = Duration::from_millis(CANCEL_WAIT_MS_MAX + 1000);
        let ended = tokio::time::timeout(wait, exchange.next()).await.unwrap();
        assert_eq!(ended, None);
        drop(exchange);
        assert_eq!(probe.dropped.load(Ordering::SeqCst), number + 1);
        assert_eq!((session.under_way(), trial.builtin().under_way()), (0, 0));
    }
}

#[tokio::test]
async fn who_goes_away_cancels() {
    let (trial, probe) = trial();
    let session = opened(&trial).await;
    let mut exchange = trial
        .send(&session, &legacy("tools/call", r#""name":"deaf""#))
        .unwrap();
    let waiting = tokio::time::timeout(Duration::from_millis(5), exchange.next()).await;
    assert!(waiting.is_err());
    drop(exchange);
    assert_eq!(probe.dropped.load(Ordering::SeqCst), 1);
    assert_eq!(trial.builtin().under_way(), 0);
    let mut exchange = trial
        .send(&session, &legacy("tools/call", r#""name":"polite""#))
        .unwrap();
    drop(session);
    assert_eq!(exchange.next().await, None, "the session's end cancels");
    assert_eq!(probe.ended.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn who_listens_is_told_of_nothing_until_the_end() {
    let (trial, _) = trial();
    let session = trial.session("ada");
    let frame = modern(
        "subscriptions/listen",
        r#""notifications":{"toolsListChanged":true},"#,
    );
    let mut exchange = trial.send(&session, &frame).unwrap();
    let Some(Arrival::News(first)) = exchange.next().await else {
        panic!("no acknowledgement");
    };
    let first: Value = serde_json::from_slice(&first).unwrap();
    assert_eq!(first["method"], "notifications/subscriptions/acknowledged");
    let heard = json!({"toolsListChanged": true});
    assert_eq!(first["params"]["notifications"], heard);
    assert_eq!(
        first["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"],
        "m"
    );
    let waiting = tokio::time::timeout(Duration::from_millis(5), exchange.next()).await;
    assert!(waiting.is_err());
    session.close();
    let Some(Arrival::Reply(last)) = exchange.next().await else {
        panic!("no result at the end");
    };
    let last: Value = serde_json::from_slice(&last.bytes).unwrap();
    assert_eq!(last["result"]["resultType"], "complete");
    assert_eq!(exchange.next().await, None);
}

#[tokio::test]
async fn a_caller_has_half_of_a_servers_requests_and_those_beyond_come_back_unused() {
    let (trial, _) = trial();
    let sharing = |caller: &str| {
        let session = SessionRef {
            id: caller.into(),
            caller: caller.into(),
            groups: Arc::default(),
            shares: true,
        };
        trial.builtin().session(session)
    };
    let (session, other) = (sharing("ada"), sharing("grace"));
    reply(&trial, &session, OPEN).await;
    reply(&trial, &other, OPEN).await;
    let frame = |id: usize| {
        format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"deaf"}}}}"#)
    };
    let mut open: Vec<_> = (0..SERVER_REQUESTS_MAX / 2)
        .map(|id| trial.send(&session, &frame(id)).unwrap())
        .collect();
    let spent = trial.spent(&frame(1000), trial.builtin().id()).unwrap();
    let unsent = session.request(spent).map(drop).unwrap_err();
    assert_eq!(unsent.why, UnsentReason::Busy);
    assert!(
        trial.send(&other, &frame(0)).is_ok(),
        "another caller has its part"
    );
    open.pop();
    let again = session.request(unsent.frame);
    assert!(again.is_ok(), "the freed part can be used");
    drop((open, again));
    assert_eq!(trial.builtin().under_way(), 0);
}

#[tokio::test]
async fn a_pass_for_another_peer_comes_back_unused() {
    let (trial, probe) = trial();
    let session = opened(&trial).await;
    let other = PeerId::server("other");
    let frame = legacy("tools/call", r#""name":"say""#);
    let spent = trial.spent(&frame, &other).unwrap();
    let unsent = session.request(spent).map(drop).unwrap_err();
    assert_eq!(unsent.why, UnsentReason::Elsewhere);
    assert_eq!(unsent.frame.at(), &other);
    assert_eq!(probe.dropped.load(Ordering::SeqCst), 0);
}

#[tokio::test]
async fn a_call_goes_through_the_gate_and_a_denied_one_does_not() {
    let probe = Arc::new(Probe::new());
    let policy = r#"{"rules":[
        {"id":"all","effect":"allow","conditions":{"tool_name":"*"}},
        {"id":"not-fail","effect":"deny","conditions":{"tool_name":"fail"}}]}"#;
    let server: Arc<dyn DynToolServer> = probe.clone();
    let trial = Trial::new(server, Some(policy)).unwrap();
    let session = trial.session("bob");
    let done = trial.call(&session, "bob", "say", json!({})).await.unwrap();
    assert_eq!(done["content"][0]["text"], "to bob");
    let refused = trial.call(&session, "bob", "fail", json!({})).await;
    assert!(refused.unwrap_err().contains("not-fail"));
    // Judged by what the definition says, not by what the name looks like.
    let policy =
        r#"{"rules":[{"id":"reads","effect":"allow","conditions":{"operations":["read"]}}]}"#;
    let server: Arc<dyn DynToolServer> = probe.clone();
    let strict = Trial::new(server, Some(policy)).unwrap();
    let session = strict.session("bob");
    assert!(strict.call(&session, "bob", "say", json!({})).await.is_ok());
    assert_eq!(probe.dropped.load(Ordering::SeqCst), 2);
}
