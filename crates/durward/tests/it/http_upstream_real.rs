//! Real servers behind HTTP: FastMCP in both eras, and a mock that is killed again and again under load.

use std::collections::HashMap;
use std::io::{BufRead, BufReader};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};

use crate::support::components;
use crate::support::guarded::{LATEST, Place, end, eventually, line};
use crate::support::program::lab_binary;
use crate::support::refusals::{is_passed, told};
use mcp::client::{Client, Era};
use serde_json::{Value, json};

/// A server process, killed when dropped.
struct Served {
    child: Child,
    url: String,
}

impl Served {
    fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn free_port() -> u16 {
    mocks::ports::reserved().unwrap()
}

const FASTMCP: &str = r#"
import asyncio, sys
from fastmcp import FastMCP, Context
mcp = FastMCP("real")
@mcp.tool(annotations={"readOnlyHint": True})
def read_back(text: str) -> str:
    return text
@mcp.tool
async def count(ctx: Context) -> str:
    for step in range(3):
        await ctx.report_progress(step, 3)
        await asyncio.sleep(0.02)
    return "counted"
@mcp.tool
def fail() -> str:
    raise ValueError("its own words")
@mcp.resource("test://notes")
def notes() -> str:
    return "a note"
mcp.run(transport="http", host="127.0.0.1", port=int(sys.argv[1]), show_banner=False, log_level="ERROR")
"#;

fn fastmcp() -> Option<Served> {
    let python = components::fastmcp_python()?;
    let port = free_port();
    let child = Command::new(python)
        .args(["-c", FASTMCP, &port.to_string()])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let served = Served {
        child,
        url: format!("http://127.0.0.1:{port}/mcp"),
    };
    eventually("FastMCP listens", || {
        TcpStream::connect(("127.0.0.1", port)).is_ok()
    });
    Some(served)
}

fn allow_all(place: &Place) {
    place.write_policy(
        r#"{"version":"1","default_action":"deny","rules":[
            {"id":"all","effect":"allow","conditions":{"mcp_method":"*"}}]}"#,
    );
}

fn text_of(answer: &Value) -> Option<&str> {
    answer["result"]["content"][0]["text"].as_str()
}

fn speaks_with_fastmcp(era: Era) {
    let Some(served) = fastmcp() else {
        return;
    };
    let place = Place::new();
    allow_all(&place);
    let mut client = place.guard_reached(&["--url", &served.url]);
    client.handshake(era).unwrap();
    let tools = client.request("tools/list", json!({})).unwrap();
    assert_eq!(
        tools.result().unwrap()["tools"].as_array().unwrap().len(),
        3
    );
    for n in 0..20 {
        let text = format!("{n} \u{e9}\n");
        let answer = client
            .call_tool("read_back", json!({"text": text}))
            .unwrap();
        assert_eq!(answer.text(), Some(text.as_str()), "{}", answer.line());
    }
    let params = json!({"name": "count", "arguments": {}, "_meta": {"progressToken": "p"}});
    client.send_request("tools/call", params).unwrap();
    let mut progress = 0;
    loop {
        let message = line(&mut client);
        if message["method"] == "notifications/progress" {
            assert_eq!(message["params"]["progressToken"], "p");
            progress += 1;
        } else if message.get("id").is_some() {
            assert_eq!(text_of(&message), Some("counted"), "{message}");
            break;
        }
    }
    assert_eq!(progress, 3);
    let failed = client.call_tool("fail", json!({})).unwrap();
    assert!(failed.is_tool_error(), "{}", failed.line());
    let notes = client
        .request("resources/read", json!({"uri": "test://notes"}))
        .unwrap();
    assert_eq!(notes.result().unwrap()["contents"][0]["text"], "a note");
    let unknown = client.request("no/such", json!({})).unwrap();
    assert!(unknown.error().is_some(), "{}", unknown.line());
    let ended = end(client);
    assert_eq!((ended.code, ended.rest.len()), (Some(0), 0), "{ended:?}");
    let journal = place.journal();
    assert_eq!(journal.decisions().len(), 24);
    assert_eq!(journal.operations().len(), 24);
}

#[test]
fn fastmcp_in_the_legacy_era() {
    speaks_with_fastmcp(LATEST);
}

#[test]
fn fastmcp_in_the_modern_era() {
    speaks_with_fastmcp(Era::Modern);
}

/// The echo mock over HTTP, counting into the place's file.
fn echo_mock(place: &Place, address: &str) -> Served {
    let mut child = Command::new(lab_binary())
        .args(["mock", "echo", "--http", address, "--count"])
        .arg(place.path("count"))
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut line = String::new();
    let output = child.stdout.take().unwrap();
    BufReader::new(output).read_line(&mut line).unwrap();
    Served {
        child,
        url: line.trim().to_owned(),
    }
}

/// Reads answers until none is missing.
fn collect(client: &mut Client, sent: &[String]) -> HashMap<String, Value> {
    let mut answers = HashMap::new();
    while answers.len() < sent.len() {
        let answer = line(client);
        let Some(id) = answer.get("id").map(ToString::to_string) else {
            continue;
        };
        assert!(sent.contains(&id), "an answer to nothing: {answer}");
        let before = answers.insert(id, answer);
        assert!(before.is_none(), "a second answer: {before:?}");
    }
    answers
}

fn killed_under_load(era: Era) {
    const ROUNDS: usize = 5;
    const CALLS: usize = 200;
    let place = Place::new();
    allow_all(&place);
    let address = format!("127.0.0.1:{}", free_port());
    let mut served = echo_mock(&place, &address);
    let mut client = place.guard_reached(&["--url", &served.url]);
    client.handshake(era).unwrap();
    // A call whose tool is not listed yet waits for the list, and is refused by name where the server is killed meanwhile.
    let tools = client.request("tools/list", json!({})).unwrap();
    assert!(tools.result().is_ok(), "{}", tools.line());
    let (mut answered, mut lost) = (0, 0);
    for round in 0..ROUNDS {
        let sent: Vec<String> = (0..CALLS)
            .map(|n| {
                let text = format!("{round}-{n}");
                let tool = if n % 2 == 0 { "record" } else { "echo" };
                let params = json!({"name": tool, "arguments": {"text": text}});
                if n == CALLS / 2 {
                    served.kill();
                    served = echo_mock(&place, &address);
                }
                client.send_request("tools/call", params).unwrap()
            })
            .collect();
        for (id, answer) in collect(&mut client, &sent) {
            if is_passed(&answer) {
                answered += 1;
                continue;
            }
            lost += 1;
            let reason = told(&answer)["reason"].as_str().unwrap_or_default();
            let known = [
                "upstream_broken",
                "upstream_no_answer",
                "upstream_unreachable",
            ];
            assert!(known.contains(&reason), "{id}: {answer}");
        }
    }
    let all = ROUNDS * CALLS;
    assert_eq!(answered + lost, all);
    assert!(answered >= all / 2, "{answered} of {all}");
    let ended = end(client);
    assert_eq!((ended.code, ended.rest.len()), (Some(0), 0), "{ended:?}");
    // Each call has its own text. The server says of `echo` that a second call does no harm, so a lost one
    // is sent once more; `record` never is.
    let mut ran: HashMap<String, usize> = HashMap::new();
    for call in place.counted() {
        *ran.entry(call.to_string()).or_default() += 1;
    }
    for (call, times) in &ran {
        let most = if call.contains("\"echo\"") { 2 } else { 1 };
        assert!(*times <= most, "{call} ran {times} times");
    }
    assert!(
        ran.len() >= answered,
        "{} ran, {answered} answered",
        ran.len()
    );
    let journal = place.journal();
    assert_eq!(journal.decisions().len(), all);
    assert_eq!(journal.operations().len(), all);
}

#[test]
fn server_killed_again_and_again_under_load() {
    killed_under_load(LATEST);
}

#[test]
fn server_without_sessions_killed_again_and_again_under_load() {
    killed_under_load(Era::Modern);
}
