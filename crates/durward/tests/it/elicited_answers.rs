//! Answers of a person to what a server on the official Python SDK elicits in a session: they are judged as arguments
//! are, so the server receives no path or address that a rule refuses.

use std::fs;
use std::io::BufReader;

use mcp::client::{Client, Message};
use serde_json::{Value, json};

use crate::support::components::fastmcp_python;
use crate::support::guarded::{Place, end, eventually};
use crate::support::serving::{Events, Served, read_head, write_request};

const SERVER: &str = r#"
import json, os
from mcp.server.mcpserver import Context, MCPServer
from pydantic import BaseModel

server = MCPServer("asks")

class Where(BaseModel):
    place: str

@server.tool()
async def ask(ctx: Context) -> str:
    answer = await ctx.elicit("Where?", Where)
    place = answer.data.place if answer.action == "accept" else answer.action
    with open(os.environ["RECEIVED"], "a") as book:
        book.write(json.dumps(place) + "\n")
    return "received"
server.run()
"#;

/// Spellings of places that the rules refuse.
const REFUSED: [&str; 8] = [
    "/etc/passwd",
    "file:///etc/passwd",
    "/srv/../etc/passwd",
    r#" ["\u002fetc\u002fpasswd"]"#,
    r#"{"a":"/etc/passwd","n":NaN}"#,
    "['/et' 'c/passwd']",
    "- /etc/passwd",
    "http://127.1:9/secret",
];

fn refusing() -> Value {
    json!([
        {"id": "outside", "effect": "deny",
         "conditions": {"path_pattern": ["/etc/**", "http://127.0.0.1:9/**"]}},
        {"id": "all", "effect": "allow", "conditions": {"mcp_method": "*"}},
    ])
}

/// A place with the server under these rules; `ROOT` is a folder of the place.
fn place_with(rules: &Value) -> Option<Place> {
    let python = fastmcp_python()?;
    let place = Place::new();
    let root = place.path("work");
    fs::create_dir_all(&root).unwrap();
    let root = root.canonicalize().unwrap();
    let policy = json!({"version": "1", "rules": rules}).to_string();
    place.write_policy(&policy.replace("ROOT", root.to_str().unwrap()));
    fs::write(place.path("server.py"), SERVER).unwrap();
    let server = json!({
        "command": python,
        "args": [place.path("server.py")],
        "cwd": root,
        "env": {"RECEIVED": place.path("received").display().to_string()},
    });
    let file = json!({"servers": {"asks": server}}).to_string();
    fs::write(place.path("durward.yaml"), file).unwrap();
    Some(place)
}

/// Returns what the server received, in order.
fn received(place: &Place) -> Vec<String> {
    let text = fs::read_to_string(place.path("received")).unwrap_or_default();
    let read = |line| serde_json::from_str(line).unwrap();
    text.lines().map(read).collect()
}

fn accept(answer: &str) -> Value {
    json!({"action": "accept", "content": {"place": answer}})
}

/// Returns the parameters of `initialize` of a client that can show its person a form.
fn hello() -> Value {
    json!({
        "protocolVersion": "2025-11-25",
        "capabilities": {"elicitation": {"form": {}}},
        "clientInfo": {"name": "c", "version": "1"},
    })
}

/// A client that can show its person a form, in a session over standard streams.
struct Session {
    place: Place,
    client: Client,
}

impl Session {
    fn open(rules: &Value) -> Option<Self> {
        Some(Self::open_in(place_with(rules)?))
    }

    fn open_in(place: Place) -> Self {
        let mut client = place.guard_configured("durward.yaml", &[], "asks");
        client.request("initialize", hello()).unwrap();
        client
            .notify("notifications/initialized", &json!({}))
            .unwrap();
        Self { place, client }
    }

    /// Calls the tool and answers what it asks; returns the id of the call.
    fn answer(&mut self, answer: &Value) -> String {
        let params = json!({"name": "ask", "arguments": {}});
        let id = self.client.send_request("tools/call", params).unwrap();
        let question = loop {
            if let Message::Request { id, method, .. } = self.client.next_message().unwrap() {
                assert_eq!(method, "elicitation/create");
                break id;
            }
        };
        self.client.respond(&question, answer).unwrap();
        id
    }

    fn call(&mut self, answer: &Value) -> String {
        let id = self.answer(answer);
        self.client.response(&id).unwrap().line().to_owned()
    }
}

#[test]
fn an_answer_that_a_rule_refuses_does_not_reach_the_server() {
    let Some(mut session) = Session::open(&refusing()) else {
        return;
    };
    for place in REFUSED {
        let answer = session.call(&accept(place));
        assert!(answer.contains("outside"), "{place:?}: {answer}");
        assert_eq!(received(&session.place), [""; 0], "{place:?}");
    }
    // A form's content may be text that a lenient server parses.
    let text = json!({"action": "accept", "content": "{\"place\": \"/etc/passwd\"}"});
    let answer = session.call(&text);
    assert!(answer.contains("outside"), "{answer}");
    for place in ["notes.txt", "Ada Lovelace", "https://other.example/x"] {
        let answer = session.call(&accept(place));
        assert!(answer.contains("received"), "{place}: {answer}");
    }
    session.call(&json!({"action": "decline"}));
    let expected = [
        "notes.txt",
        "Ada Lovelace",
        "https://other.example/x",
        "decline",
    ];
    assert_eq!(received(&session.place), expected);
    let Session { place, client } = session;
    end(client);
    let journal = place.journal();
    let refused = journal.decisions().into_iter();
    let refused = refused.filter(|decision| decision["final_rule"] == "outside");
    let refused: Vec<&Value> = refused.collect();
    assert_eq!(refused.len(), REFUSED.len() + 1);
    for decision in refused {
        assert_eq!(decision["direction"], "to_server", "{decision}");
        assert_eq!(decision["mcp_method"], "elicitation/create", "{decision}");
    }
}

#[test]
fn an_answer_passes_under_an_allow_rule_on_a_folder_only_if_it_stays_there() {
    let rules = json!([
        {"id": "calls", "effect": "allow", "conditions": {"mcp_method": ["tools/*"]}},
        {"id": "questions", "effect": "allow",
         "conditions": {"mcp_method": "elicitation/*", "when": "direction == 'to_client'"}},
        {"id": "answers", "effect": "allow",
         "conditions": {"mcp_method": "elicitation/*", "path_pattern": "ROOT/**"}},
    ]);
    let Some(mut session) = Session::open(&rules) else {
        return;
    };
    let inside = session.place.path("work").canonicalize().unwrap();
    let inside = inside.join("a.txt").display().to_string();
    for (place, is_passed) in [
        (inside.as_str(), true),
        ("/etc/passwd", false),
        (r#" ["/etc/passwd"]"#, false),
        ("a\t/etc/passwd", false),
    ] {
        let answer = session.call(&accept(place));
        assert_eq!(answer.contains("received"), is_passed, "{place}: {answer}");
    }
    assert_eq!(received(&session.place), [inside]);
    end(session.client);
}

#[test]
fn an_answer_that_names_a_protected_file_does_not_reach_the_server() {
    let rules = json!([{"id": "all", "effect": "allow", "conditions": {"mcp_method": "*"}}]);
    let Some(mut session) = Session::open(&rules) else {
        return;
    };
    let policy = session.place.path("policy.json").canonicalize().unwrap();
    let answer = session.call(&accept(policy.to_str().unwrap()));
    assert!(answer.contains("built_in_protected_path"), "{answer}");
    assert_eq!(received(&session.place), [""; 0]);
    end(session.client);
}

#[test]
fn a_person_is_asked_about_an_answer_where_a_rule_says_so() {
    let rules = json!([
        {"id": "look", "effect": "hitl", "conditions": {"path_pattern": "ROOT/private/**"}},
        {"id": "all", "effect": "allow", "conditions": {"mcp_method": "*"}},
    ]);
    for (word, is_passed) in [("once", true), ("deny", false)] {
        let Some(mut session) = Session::open(&rules) else {
            return;
        };
        let root = session.place.path("work").canonicalize().unwrap();
        let place = root.join("private/a.txt").display().to_string();
        let call = session.answer(&accept(&place));
        let waiting = || {
            let output = session.place.durward(&["approvals", "list", "--json"]);
            let text = String::from_utf8(output.stdout).unwrap();
            let first: Value = serde_json::from_str(text.lines().next()?).ok()?;
            first["id"].as_str().map(str::to_owned)
        };
        eventually("the answer waits", || waiting().is_some());
        assert_eq!(received(&session.place), [""; 0]);
        let output = session
            .place
            .durward(&["approvals", word, &waiting().unwrap()]);
        assert!(output.status.success(), "{output:?}");
        let answer = session.client.response(&call).unwrap().line().to_owned();
        assert_eq!(answer.contains("received"), is_passed, "{word}: {answer}");
        let expected = if is_passed { vec![place] } else { Vec::new() };
        assert_eq!(received(&session.place), expected);
        end(session.client);
    }
}

#[test]
fn an_answer_is_judged_by_the_labels_of_its_session() {
    let rules = json!([
        {"id": "no-answers", "effect": "deny", "conditions":
         {"mcp_method": "elicitation/*", "session_labels": "untrusted", "when": "direction == 'to_server'"}},
        {"id": "all", "effect": "allow", "conditions": {"mcp_method": "*"}},
    ]);
    let Some(place) = place_with(&rules) else {
        return;
    };
    let file = fs::read_to_string(place.path("durward.yaml")).unwrap();
    let mut file: Value = serde_json::from_str(&file).unwrap();
    file["servers"]["asks"]["labels"] = json!(["untrusted"]);
    fs::write(place.path("durward.yaml"), file.to_string()).unwrap();
    let mut session = Session::open_in(place);
    let answer = session.call(&accept("notes.txt"));
    assert!(answer.contains("no-answers"), "{answer}");
    assert_eq!(received(&session.place), [""; 0]);
    end(session.client);
}

/// Calls the tool in a session over HTTP at this path and answers what it asks; returns the call's answer.
fn over_http(served: &Served, path: &str, answer: &Value) -> Value {
    let hello = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello()});
    let opened = served.send("POST", path, &[], &hello.to_string());
    let session = opened.header("mcp-session-id").unwrap().to_owned();
    let headers = [("mcp-session-id", session.as_str())];
    let ready = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;
    assert_eq!(served.send("POST", path, &headers, ready).status, 202);
    let list = r#"{"jsonrpc":"2.0","id":2,"method":"tools/list"}"#;
    let mut tool = None;
    eventually("the server is there", || {
        let listed = served.send("POST", path, &headers, list).json();
        tool = listed["result"]["tools"][0]["name"]
            .as_str()
            .map(str::to_owned);
        tool.is_some()
    });
    let call = json!({"jsonrpc": "2.0", "id": 7, "method": "tools/call",
        "params": {"name": tool, "arguments": {}}});
    let mut stream = served.connect();
    write_request(&mut stream, "POST", path, &headers, &call.to_string());
    let mut reader = BufReader::new(stream);
    read_head(&mut reader);
    let mut events = Events::over(reader);
    let mut message = events.message();
    assert_eq!(message["method"], "elicitation/create", "{message}");
    let reply = json!({"jsonrpc": "2.0", "id": message["id"], "result": answer});
    let accepted = served.send("POST", path, &headers, &reply.to_string());
    assert_eq!(accepted.status, 202);
    message = events.message();
    assert_eq!(message["id"], 7, "{message}");
    message
}

#[test]
fn over_http_an_answer_that_a_rule_refuses_does_not_reach_the_server() {
    for path in ["/mcp/asks", "/mcp"] {
        let Some(place) = place_with(&refusing()) else {
            return;
        };
        let file = fs::read_to_string(place.path("durward.yaml")).unwrap();
        let mut file: Value = serde_json::from_str(&file).unwrap();
        file["servers"]["absent"] = json!({"command": "false"});
        fs::write(place.path("durward.yaml"), file.to_string()).unwrap();
        let served = Served::start_configured(place);
        for place in [REFUSED[0], REFUSED[3], REFUSED[7]] {
            let answer = over_http(&served, path, &accept(place));
            assert!(answer.to_string().contains("outside"), "{path}: {answer}");
        }
        assert_eq!(received(&served.place), [""; 0], "{path}");
        let answer = over_http(&served, path, &accept("notes.txt"));
        assert!(answer.to_string().contains("received"), "{path}: {answer}");
        assert_eq!(received(&served.place), ["notes.txt"]);
    }
}
