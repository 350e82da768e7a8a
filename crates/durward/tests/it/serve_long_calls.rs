//! Calls that take long to read, beside those of an ordinary caller.

use std::fs;
use std::io::BufReader;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use serde_json::{Value, json};

use crate::support::guarded::Place;
use crate::support::serving::{Answer, Served, read_answer, write_request};

const ALLOW_ALL: &str = r#"{"version":"1","default_action":"deny","rules":[
    {"id":"all","effect":"allow","conditions":{"mcp_method":"*"}}]}"#;
const PATH: &str = "/mcp/echo";
/// Calls of the hostile caller at the same time, and those of the ordinary one, one after another.
const HOSTILE: usize = 8;
const ORDINARY: usize = 10;

/// A caller: its key, and its session.
struct Caller {
    authorization: String,
    session: String,
}

impl Caller {
    fn open(served: &Served, key: &str) -> Self {
        let authorization = format!("Bearer {key}");
        let body = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
            "protocolVersion": "2025-11-25", "capabilities": {},
            "clientInfo": {"name": "t", "version": "1"}}});
        let headers = [("authorization", authorization.as_str())];
        let answer = served.send("POST", PATH, &headers, &body.to_string());
        let session = answer.header("mcp-session-id").unwrap().to_owned();
        Self {
            authorization,
            session,
        }
    }

    fn headers(&self) -> [(&str, &str); 2] {
        [
            ("authorization", self.authorization.as_str()),
            ("mcp-session-id", self.session.as_str()),
        ]
    }

    fn call(&self, served: &Served, id: usize, text: &str) -> Answer {
        served.send("POST", PATH, &self.headers(), &call(id, text))
    }
}

fn call(id: usize, text: &str) -> String {
    let params = json!({"name": "echo", "arguments": {"message": text, "text": text}});
    json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params}).to_string()
}

/// A key of this name, which its caller needs from then on.
fn key(place: &Place, name: &str) -> String {
    let args = ["--config", "durward.yaml", "--state-dir", "state"];
    let output = place.durward(&[&args[..], &["keys", "create", name]].concat());
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let found = text
        .split(|c: char| !c.is_ascii_alphanumeric() && c != '_')
        .find(|word| word.starts_with("dw_"));
    found.unwrap_or_else(|| panic!("{output:?}")).to_owned()
}

/// Lets the ordinary caller call while calls with this text are under way.
fn ordinary_calls_end_first(text: &str) {
    let place = Place::new();
    place.write_policy(ALLOW_ALL);
    let configuration = json!({"servers": {"echo": {"builtin": "echo"}}, "policy": "policy.json"});
    fs::write(place.path("durward.yaml"), configuration.to_string()).unwrap();
    let keys = ["hostile", "ordinary"].map(|name| key(&place, name));
    let served = Served::start_configured(place);
    let [hostile, ordinary] = keys.map(|key| Caller::open(&served, &key));
    let answered = AtomicUsize::new(0);
    thread::scope(|scope| {
        let mut streams = Vec::new();
        for id in 0..HOSTILE {
            let mut stream = served.connect();
            write_request(
                &mut stream,
                "POST",
                PATH,
                &hostile.headers(),
                &call(id, text),
            );
            streams.push(stream);
        }
        let waiting: Vec<_> = streams
            .into_iter()
            .map(|stream| {
                scope.spawn(|| {
                    let answer = read_answer(&mut BufReader::new(stream));
                    answered.fetch_add(1, Ordering::SeqCst);
                    answer
                })
            })
            .collect();
        for id in 0..ORDINARY {
            let call = scope.spawn({
                let (ordinary, served) = (&ordinary, &served);
                move || ordinary.call(served, 100 + id, "hi").json()
            });
            let answer = call.join().unwrap_or_default();
            assert!(
                answer["result"].is_object(),
                "the ordinary caller has no answer while hostile calls are read: {answer}"
            );
        }
        let before = answered.load(Ordering::SeqCst);
        assert!(before < HOSTILE, "all hostile calls were answered before");
        for answer in waiting {
            let answer: Value = answer.join().unwrap().json();
            let is_decided = answer["result"].is_object() || answer["error"].is_object();
            assert!(is_decided, "{answer}");
        }
    });
    let (code, place) = served.stop();
    assert_eq!(code, Some(0));
    let journal = place.journal();
    for id in 0..ORDINARY {
        let decision = journal.decision(&(100 + id).to_string());
        assert_eq!(decision["decision"], "allow", "{decision}");
    }
}

/// More calls than wait for one caller's thread: those that find no place are refused, and each refusal is in the journal.
#[test]
fn a_long_call_that_finds_no_place_is_refused_with_a_record() {
    const CALLS: usize = 24;
    let place = Place::new();
    place.write_policy(ALLOW_ALL);
    let configuration = json!({"servers": {"echo": {"builtin": "echo"}}, "policy": "policy.json",
        "limits": {"concurrency": 100}});
    fs::write(place.path("durward.yaml"), configuration.to_string()).unwrap();
    let key = key(&place, "hostile");
    let served = Served::start_configured(place);
    let hostile = Caller::open(&served, &key);
    // All arrive in less time than a few of them take to read.
    let text = "%25".repeat(100_000);
    let mut streams = Vec::new();
    for id in 0..CALLS {
        let mut stream = served.connect();
        let body = call(1_000 + id, &text);
        write_request(&mut stream, "POST", PATH, &hostile.headers(), &body);
        streams.push(stream);
    }
    let mut refused = 0_u64;
    for stream in streams {
        let answer = read_answer(&mut BufReader::new(stream)).json();
        let reason = &answer["result"]["_meta"]["durward/refusal"]["reason"];
        assert!(answer["error"].is_null(), "{answer}");
        refused += u64::from(reason == "reading_queue_full");
    }
    assert!(refused > 0, "every call found a place");
    let (code, place) = served.stop();
    assert_eq!(code, Some(0));
    let journal = place.journal();
    let decisions = journal.decisions();
    let of_reason = decisions
        .iter()
        .filter(|own| own["reason"] == "reading_queue_full");
    // The first of a second is a record, and the count of those that follow is another.
    let counted = of_reason.map(|own| own["refusals"].as_u64().unwrap_or(1));
    assert_eq!(counted.sum::<u64>(), refused);
}

#[test]
fn an_ordinary_caller_is_answered_while_calls_of_900_kb_are_read() {
    ordinary_calls_end_first(&"%25".repeat(300_000));
}
