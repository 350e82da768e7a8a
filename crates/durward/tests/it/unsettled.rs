//! Calls whose places another call may change meanwhile (J9): they wait for it, and are judged by what is there
//! then. A directory in the open folder holds a link to the secret one; whoever moves it makes a way to the secret
//! that did not exist when the next call was read.
//!
//! The servers are FastMCP's, whose tools wait until they are told to go on, and the official one.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use mcp::client::Client;
use serde_json::{Value, json};

use crate::support::components;
use crate::support::guarded::{LATEST, Place, end, eventually, line, pause};
use crate::support::refusals::{is_passed, told};
use crate::support::serving::Served;

/// Each tool notes that it has begun, and goes on once its file is there.
pub const SERVER: &str = r#"
import asyncio, os, sys
from fastmcp import FastMCP
mcp = FastMCP("real")
signs = sys.argv[1]
async def until(after):
    open(os.path.join(signs, "begun-" + after), "w").close()
    while not os.path.exists(os.path.join(signs, after)):
        await asyncio.sleep(0.01)
async def moved(source, destination, after):
    await until(after)
    os.rename(source, destination)
    return "moved"
@mcp.tool
async def move_file(source: str, destination: str, after: str) -> str:
    return await asyncio.shield(moved(source, destination, after))
@mcp.tool
async def read_file(path: str, after: str) -> str:
    await until(after)
    return open(path).read()
mcp.run(show_banner=False, log_level="ERROR")
"#;

const POLICY: &str = r#"{"version":"1","default_action":"deny","rules":[
    {"id":"open","effect":"allow","conditions":{"path_pattern":"DIR/open/**"}},
    {"id":"secret","effect":"deny","conditions":{"path_pattern":"DIR/secret/**"}}]}"#;

/// The same, and a person is asked before a file is read.
pub const ASKS: &str = r#"{"version":"1","default_action":"deny","rules":[
    {"id":"open","effect":"allow","conditions":{"path_pattern":"DIR/open/**"}},
    {"id":"ask","effect":"hitl","conditions":{"tool_name":"read_file"}},
    {"id":"secret","effect":"deny","conditions":{"path_pattern":"DIR/secret/**"}}]}"#;

/// The folders, and what the server is told by.
pub struct Folders {
    dir: PathBuf,
}

impl Folders {
    pub fn new(place: &Place, policy: &str) -> Self {
        let dir = place.path("files").canonicalize();
        let dir = dir.unwrap_or_else(|_| {
            fs::create_dir(place.path("files")).unwrap();
            place.path("files").canonicalize().unwrap()
        });
        let folders = Self { dir };
        for name in ["open/bundle", "secret", "signs"] {
            fs::create_dir_all(folders.dir.join(name)).unwrap();
        }
        fs::write(folders.dir.join("open/a.txt"), "plain").unwrap();
        fs::write(folders.dir.join("secret/x.txt"), "hidden").unwrap();
        symlink(
            folders.dir.join("secret"),
            folders.dir.join("open/bundle/l"),
        )
        .unwrap();
        place.write_policy(&policy.replace("DIR", folders.dir.to_str().unwrap()));
        folders
    }

    pub fn at(&self, name: &str) -> String {
        self.dir.join(name).to_str().unwrap().to_owned()
    }

    /// Lets whoever waits for this go on.
    pub fn go(&self, name: &str) {
        fs::write(self.dir.join("signs").join(name), "").unwrap();
    }

    fn has_begun(&self, name: &str) -> bool {
        self.dir
            .join("signs")
            .join(format!("begun-{name}"))
            .exists()
    }

    #[track_caller]
    pub fn until_begun(&self, name: &str) {
        eventually("a tool has begun", || self.has_begun(name));
    }

    pub fn moves(&self, id: u64, to: &str, after: &str) -> String {
        call(
            id,
            "move_file",
            &json!({"source": self.at("open/bundle"), "destination": self.at(to), "after": after}),
        )
    }

    pub fn reads(&self, id: u64, path: &str, after: &str) -> String {
        call(
            id,
            "read_file",
            &json!({"path": self.at(path), "after": after}),
        )
    }
}

fn call(id: u64, tool: &str, arguments: &Value) -> String {
    json!({"jsonrpc": "2.0", "id": id, "method": "tools/call",
        "params": {"name": tool, "arguments": arguments}})
    .to_string()
}

/// Everything at once, in one write.
fn send(client: &mut Client, frames: &[String]) {
    let text = frames.join("\n") + "\n";
    client.process().send_raw(text.as_bytes()).unwrap();
}

/// A guarded server, and what it has answered that nobody has asked for yet.
struct Scene {
    folders: Folders,
    client: Client,
    answers: Vec<Value>,
}

impl Scene {
    fn new(place: &Place, policy: &str) -> Option<Self> {
        let python = components::fastmcp_python()?;
        let folders = Folders::new(place, policy);
        fs::write(place.path("server.py"), SERVER).unwrap();
        let script = place.path("server.py");
        let signs = folders.at("signs");
        let command = [python.to_str().unwrap(), script.to_str().unwrap(), &signs];
        let mut client = place.guard_command(&[], &command);
        client.handshake(LATEST).unwrap();
        Some(Self {
            folders,
            client,
            answers: Vec::new(),
        })
    }

    /// Everything at once, in one write.
    fn send(&mut self, frames: &[String]) {
        send(&mut self.client, frames);
    }

    fn answer(&mut self, id: u64) -> Value {
        loop {
            if let Some(at) = self.answers.iter().position(|answer| answer["id"] == id) {
                return self.answers.swap_remove(at);
            }
            self.answers.push(line(&mut self.client));
        }
    }

    /// The answer to a call that had to wait; where the machine was so slow that it has waited too long, the
    /// answer to the same call made again.
    fn answer_in_order(&mut self, id: u64, call: &str) -> Value {
        let answer = self.answer(id);
        if told(&answer)["reason"] != "place_unsettled" {
            return answer;
        }
        self.send(&[call.to_owned()]);
        self.answer(id)
    }
}

#[track_caller]
fn denied(answer: &Value) {
    assert_eq!(told(answer)["reason"], "denied_by_rule", "{answer}");
}

#[track_caller]
fn passed(answer: &Value) {
    assert!(is_passed(answer), "{answer}");
}

#[test]
fn j09_a_call_behind_one_that_makes_a_link_is_judged_by_where_that_leads() {
    let place = Place::new();
    let Some(mut scene) = Scene::new(&place, POLICY) else {
        return;
    };
    // Reads wait for nobody, and a read of another place not for the move.
    let behind = scene.folders.reads(4, "open/new/l/x.txt", "read");
    scene.send(&[
        scene.folders.reads(1, "open/a.txt", "first"),
        scene.folders.reads(2, "open/a.txt", "second"),
        scene.folders.moves(3, "open/new", "move"),
        behind.clone(),
        scene.folders.reads(5, "open/a.txt", "third"),
    ]);
    for name in ["first", "second", "move", "third"] {
        scene.folders.until_begun(name);
    }
    scene.folders.go("move");
    passed(&scene.answer(3));
    denied(&scene.answer_in_order(4, &behind));
    for (id, name) in [(2, "second"), (1, "first"), (5, "third")] {
        scene.folders.go(name);
        passed(&scene.answer(id));
    }
    assert!(!scene.folders.has_begun("read"));

    // A write waits for whoever is on the way to its place.
    let moved = scene.folders.at("open/new");
    fs::rename(moved, scene.folders.at("open/bundle")).unwrap();
    let late = scene.folders.moves(7, "open/other", "late");
    scene.folders.go("late");
    scene.send(&[
        scene.folders.reads(6, "open/other/l/x.txt", "early"),
        late.clone(),
    ]);
    scene.folders.until_begun("early");
    assert!(!scene.folders.has_begun("late"));
    scene.folders.go("early");
    let nothing_there = scene.answer(6);
    assert!(
        !nothing_there.to_string().contains("hidden"),
        "{nothing_there}"
    );
    passed(&scene.answer_in_order(7, &late));
    assert_eq!(end(scene.client).code, Some(0));
    assert_eq!(place.journal().decision("4")["decision"], "deny");
}

#[test]
fn j09_a_call_that_waits_too_long_is_refused_and_may_be_made_again() {
    let place = Place::new();
    let Some(mut scene) = Scene::new(&place, POLICY) else {
        return;
    };
    let behind = scene.folders.reads(2, "open/new/l/x.txt", "read");
    scene.send(&[scene.folders.moves(1, "open/new", "move"), behind.clone()]);
    let answer = scene.answer(2);
    assert_eq!(told(&answer)["reason"], "place_unsettled", "{answer}");
    assert_eq!(told(&answer)["retryable"], true, "{answer}");
    assert_eq!(told(&answer)["retry_after_ms"], 1000, "{answer}");
    scene.folders.go("move");
    passed(&scene.answer(1));
    scene.send(&[behind]);
    denied(&scene.answer(2));
    assert!(!scene.folders.has_begun("read"));
    assert_eq!(end(scene.client).code, Some(0));
    let journal = place.journal();
    assert_eq!(journal.decisions()[1]["reason"], "place_unsettled");
}

#[test]
fn j09_a_writing_call_that_is_cancelled_holds_others_back_while_its_server_may_go_on() {
    let place = Place::new();
    let Some(mut scene) = Scene::new(&place, POLICY) else {
        return;
    };
    scene.send(&[scene.folders.moves(1, "open/new", "move")]);
    scene.folders.until_begun("move");
    let cancel =
        json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}});
    let cancelled = Instant::now();
    scene.folders.go("read");
    let read = scene.folders.reads(2, "open/new/l/x.txt", "read");
    scene.send(&[cancel.to_string(), read]);
    let answer = scene.answer(2);
    assert!(cancelled.elapsed() >= Duration::from_secs(5), "{answer}");
    assert_eq!(end(scene.client).code, Some(0));
}

#[test]
fn j09_a_yes_to_a_call_whose_place_has_changed_since_is_void() {
    let place = Place::new();
    let Some(mut scene) = Scene::new(&place, ASKS) else {
        return;
    };
    let read = scene.folders.reads(1, "open/new/l/x.txt", "read");
    scene.send(&[read, scene.folders.moves(2, "open/new", "move")]);
    // Nobody waits for what waits for a person.
    scene.folders.until_begun("move");
    let mut asked = String::new();
    eventually("a person is asked", || {
        let listed = place.durward(&["approvals", "list", "--json"]);
        let text = String::from_utf8(listed.stdout).unwrap();
        let question: Value = serde_json::from_str(text.trim()).unwrap_or_default();
        question["id"]
            .as_str()
            .unwrap_or_default()
            .clone_into(&mut asked);
        !asked.is_empty()
    });
    let answered = place.durward(&["approvals", "once", &asked]);
    assert!(answered.status.success(), "{answered:?}");
    scene.folders.go("move");
    passed(&scene.answer(2));
    let answer = scene.answer(1);
    let reason = told(&answer)["reason"].as_str().unwrap_or_default();
    // Where the machine was so slow that it has waited too long, it is refused for that.
    assert!(
        ["denied_by_rule", "place_unsettled"].contains(&reason),
        "{answer}"
    );
    assert!(!scene.folders.has_begun("read"));
    assert_eq!(end(scene.client).code, Some(0));
}

/// Two sessions, each with a process of its own over the same files; and two calls of one batch.
#[test]
fn j09_sessions_and_servers_of_one_process_wait_for_one_another() {
    let Some(python) = components::fastmcp_python() else {
        return;
    };
    let place = Place::new();
    let folders = Folders::new(&place, POLICY);
    fs::write(place.path("server.py"), SERVER).unwrap();
    let command = format!(
        "{{ command: \"{}\", args: [\"{}\", \"{}\"] }}",
        python.to_str().unwrap(),
        place.path("server.py").to_str().unwrap(),
        folders.at("signs")
    );
    let configuration = format!("servers:\n  echo: {command}\n  other: {command}\n");
    fs::write(place.path("durward.yaml"), configuration).unwrap();
    let served = Served::start_configured(place);
    let writer = served.open("2025-03-26");
    let post = |server: &str, session: &str, body: &str| {
        let headers = [("mcp-session-id", session)];
        served.send("POST", &format!("/mcp/{server}"), &headers, body)
    };
    let body = r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"agent","version":"1"}}}"#;
    let opened = served.send("POST", "/mcp/other", &[], body);
    let reader = opened.header("mcp-session-id").unwrap().to_owned();
    let list = r#"{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{}}"#;
    assert_eq!(post("other", &reader, list).status, 200);
    let read = folders.reads(2, "open/new/l/x.txt", "read");
    std::thread::scope(|scope| {
        let moved = scope.spawn(|| post("echo", &writer, &folders.moves(1, "open/new", "move")));
        folders.until_begun("move");
        let read = scope.spawn(|| post("other", &reader, &read));
        // Long enough that a call which does not wait is at its server; nothing is concluded from it.
        pause(300);
        folders.go("move");
        let moved = moved.join().unwrap();
        assert!(moved.body.contains("moved"), "{}", moved.body);
        let read = read.join().unwrap();
        assert!(read.body.contains("denied_by_rule"), "{}", read.body);
    });
    fs::rename(folders.at("open/new"), folders.at("open/bundle")).unwrap();
    folders.go("again");
    let batch = format!(
        "[{},{}]",
        folders.moves(3, "open/more", "again"),
        folders.moves(4, "open/more", "again")
    );
    let answers = post("echo", &writer, &batch);
    assert!(answers.body.contains("moved"), "{}", answers.body);
}

#[test]
fn j09_the_official_server_moves_and_reads_in_one_write() {
    let Some(program) = components::official_filesystem() else {
        return;
    };
    let place = Place::new();
    let folders = Folders::new(&place, POLICY);
    let command = [program.to_str().unwrap(), folders.dir.to_str().unwrap()];
    let mut client = place.guard_command(&[], &command);
    client.handshake(LATEST).unwrap();
    client.request("tools/list", json!({})).unwrap();
    for round in 0..20_u64 {
        let (from, to) = match round {
            0 => ("open/bundle".to_owned(), "open/0".to_owned()),
            _ => (format!("open/{}", round - 1), format!("open/{round}")),
        };
        let moved = json!({"source": folders.at(&from), "destination": folders.at(&to)});
        let read = json!({"path": folders.at(&format!("{to}/l/x.txt"))});
        send(
            &mut client,
            &[
                call(2 * round + 1, "move_file", &moved),
                call(2 * round + 2, "read_text_file", &read),
            ],
        );
        let mut answers = [line(&mut client), line(&mut client)];
        answers.sort_by_key(|answer| answer["id"].as_u64());
        passed(&answers[0]);
        denied(&answers[1]);
    }
    assert_eq!(end(client).code, Some(0));
}
