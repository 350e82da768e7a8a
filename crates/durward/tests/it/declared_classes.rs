//! What a person accepted of a server's tools holds for the server that a client's entry starts, whichever command
//! declared it.

use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use crate::support::world::{World, binary};
use mcp::client::{Client, Era};
use serde_json::{Value, json};

/// Calls that only read pass.
const READS: &str = r#"{"version":"1","rules":[
    {"id":"reads","effect":"allow","conditions":{"operations":["read"]}}]}"#;

/// A server with a tool that reads and one that writes, by names that no table has.
const NOTES: &str = r#"
import json, sys
TOOLS = [
    {"name": "lookup_note", "inputSchema": {"type": "object", "properties": {"title": {"type": "string"}}},
     "annotations": {"readOnlyHint": True, "openWorldHint": False}},
    {"name": "keep_note", "inputSchema": {"type": "object", "properties": {"title": {"type": "string"}}},
     "annotations": {"readOnlyHint": False}},
]
for line in sys.stdin:
    request = json.loads(line)
    method = request.get("method")
    if "id" not in request:
        continue
    if method == "initialize":
        result = {"protocolVersion": request["params"]["protocolVersion"], "capabilities": {"tools": {}},
                  "serverInfo": {"name": "notes", "version": "1"}}
    elif method == "tools/list":
        result = {"tools": TOOLS}
    elif method == "tools/call":
        result = {"content": [{"type": "text", "text": "done"}]}
    else:
        result = {}
    print(json.dumps({"jsonrpc": "2.0", "id": request["id"], "result": result}), flush=True)
"#;

/// A world with a client's file that has the server.
struct Scene {
    world: World,
    file: PathBuf,
}

impl Scene {
    fn new() -> Self {
        let world = World::new(Some(READS));
        let script = world.tmp.join("notes.py");
        fs::write(&script, NOTES).unwrap();
        let file = world.home().join(".cursor/mcp.json");
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        let entry = json!({"mcpServers": {"notes": {"command": "python3", "args": [script]}}});
        fs::write(&file, entry.to_string()).unwrap();
        Self { world, file }
    }

    /// Runs the program with success; returns its standard output.
    fn run(&self, args: &[&str]) -> String {
        let output = self.world.durward(args);
        let err = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(0), "{args:?}: {err}");
        String::from_utf8(output.stdout).unwrap()
    }

    fn wrap(&self, flags: &[&str]) {
        let policy = self.world.policy.as_ref().unwrap().to_str().unwrap();
        self.run(&[&["wrap", "cursor", "--yes", "--policy", policy], flags].concat());
    }

    /// Starts what the client would start, and returns whether a call of each tool passes: of the reader, of the writer.
    fn passes(&self) -> (bool, bool) {
        let wrapped: Value =
            serde_json::from_str(&fs::read_to_string(&self.file).unwrap()).unwrap();
        let args = &wrapped["mcpServers"]["notes"]["args"];
        let args: Vec<String> = serde_json::from_value(args.clone()).unwrap();
        let mut client = Client::spawn_with(binary(), &args, &self.world.options()).unwrap();
        client.handshake(Era::ALL[1]).unwrap();
        client.request("tools/list", json!({})).unwrap();
        let mut call = |tool: &str| {
            let reply = client.call_tool(tool, json!({"title": "a"})).unwrap();
            assert!(reply.refusal().is_some() || reply.result().is_ok());
            reply.refusal().is_none()
        };
        let passes = (call("lookup_note"), call("keep_note"));
        client.process().close_input();
        let end = client.process().wait_within(Duration::from_secs(30));
        end.unwrap();
        passes
    }

    fn configuration(&self) -> PathBuf {
        self.world.config().join("durward.yaml")
    }
}

#[test]
fn a_wrapped_server_is_judged_by_what_was_accepted_at_wrap() {
    let scene = Scene::new();
    scene.wrap(&["--accept-classes"]);
    assert_eq!(scene.passes(), (true, false));
    let written = fs::read_to_string(scene.configuration()).unwrap();
    assert!(written.contains("lookup_note: read"), "{written}");
    assert!(written.contains("keep_note: write"), "{written}");
    // The configuration is one that every command takes.
    scene.run(&["check"]);
}

#[test]
fn a_wrapped_server_of_which_nothing_was_accepted_has_no_readers() {
    let scene = Scene::new();
    scene.wrap(&[]);
    assert_eq!(scene.passes(), (false, false));
    assert!(!scene.configuration().exists());
}

#[test]
fn pins_approve_declares_for_a_wrapped_server_where_its_next_start_reads() {
    let scene = Scene::new();
    let before = "# mine\nlimits: {}\n";
    fs::create_dir_all(scene.world.config()).unwrap();
    fs::write(scene.configuration(), before).unwrap();
    scene.wrap(&[]);
    assert_eq!(scene.passes(), (false, false));
    scene.run(&[
        "pins",
        "approve",
        "notes",
        "--all",
        "--accept-classes",
        "--json",
    ]);
    let written = fs::read_to_string(scene.configuration()).unwrap();
    assert!(written.starts_with(before), "{written}");
    assert!(written.contains("lookup_note: read"), "{written}");
    assert_eq!(scene.passes(), (true, false));
}

#[test]
fn a_configured_server_lends_its_classes_to_its_own_command_alone() {
    let scene = Scene::new();
    let script = scene.world.tmp.join("notes.py");
    fs::create_dir_all(scene.world.config()).unwrap();
    let configured = |script: &str| {
        let tools = json!({"lookup_note": "read"});
        let servers = json!({"notes": {"command": "python3", "args": [script], "tools": tools}});
        fs::write(
            scene.configuration(),
            json!({"servers": servers}).to_string(),
        )
        .unwrap();
    };
    scene.wrap(&[]);
    configured(script.to_str().unwrap());
    assert_eq!(scene.passes(), (true, false));
    configured("/elsewhere/notes.py");
    assert_eq!(scene.passes(), (false, false));
}
