//! Strings that a server parses into lists and maps, on the official Python SDK: what it executes is what the policy allows,
//! however the string is written.

use std::fs;

use serde_json::{Value, json};

use crate::support::components::fastmcp_python;
use crate::support::guarded::{LATEST, Place, end};

/// Declares lists and maps, so that the SDK parses strings for them, and writes down what it is called with.
const SERVER: &str = r#"
import ast, json, os, yaml
from typing import Annotated, Any
from pydantic import BeforeValidator
from mcp.server.mcpserver import MCPServer

server = MCPServer("coerces")

def executed(tool, given):
    with open(os.environ["EXECUTED"], "a") as book:
        book.write(json.dumps({"tool": tool, "given": given}) + "\n")
    return "done"

@server.tool()
def read_many(paths: list[str]) -> str: return executed("read_many", paths)
@server.tool()
def read_any(paths: list[Any]) -> str: return executed("read_any", paths)
@server.tool()
def read_map(file: dict[str, Any]) -> str: return executed("read_map", file)
@server.tool()
def read_either(path: str | list[str]) -> str: return executed("read_either", path)
@server.tool()
def read_items(items: list[Any]) -> str: return executed("read_items", items)
@server.tool()
def read_texts(content: list[str]) -> str: return executed("read_texts", content)
@server.tool()
def read_yaml(paths: Annotated[list[Any], BeforeValidator(lambda text: yaml.safe_load(text))]) -> str:
    return executed("read_yaml", paths)
@server.tool()
def read_python(paths: Annotated[list[Any], BeforeValidator(lambda text: ast.literal_eval(text))]) -> str:
    return executed("read_python", paths)
@server.tool()
def read_one(path: str) -> str: return executed("read_one", path)
server.run()
"#;

/// A guarded server in a folder of its own.
struct Guarded {
    place: Place,
    client: mcp::client::Client,
}

impl Guarded {
    /// Starts it under these rules; `ROOT` is the folder that it runs in.
    fn start(rules: &Value) -> Option<Self> {
        let python = fastmcp_python()?;
        let place = Place::new();
        let root = place.path("work");
        fs::create_dir_all(&root).unwrap();
        fs::write(place.path("server.py"), SERVER).unwrap();
        let root = root.canonicalize().unwrap();
        place.write_policy(&rules.to_string().replace("ROOT", root.to_str().unwrap()));
        let book = place.path("executed").display().to_string();
        let words = json!({
            "command": python,
            "args": [place.path("server.py")],
            "cwd": root,
            "env": { "EXECUTED": book, "SECRETS": "/etc" },
        });
        let text = json!({ "servers": { "coerces": words } }).to_string();
        fs::write(place.path("durward.yaml"), text).unwrap();
        let mut client = place.guard_configured("durward.yaml", &[], "coerces");
        client.handshake(LATEST).unwrap();
        Some(Self { place, client })
    }

    /// Calls a tool; returns what the server executed because of it.
    fn call(&mut self, tool: &str, argument: &str, value: &str) -> Option<String> {
        let before = self.executed().len();
        let _ = self
            .client
            .call_tool(tool, json!({ argument: value }))
            .unwrap();
        self.executed().get(before).cloned()
    }

    fn executed(&self) -> Vec<String> {
        let text = fs::read_to_string(self.place.path("executed")).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }
}

/// Strings that lead to `/etc/passwd` once some server has parsed them.
const TO_PASSWD: [(&str, &str, &str); 30] = [
    ("read_yaml", "paths", "- /etc/passwd"),
    ("read_yaml", "paths", "- \"\\x2fetc\\x2fpasswd\""),
    ("read_yaml", "paths", "[/etc/passwd, 'x']"),
    ("read_yaml", "paths", "# note\n[!!str /etc/passwd]"),
    ("read_python", "paths", "['/etc/passwd']"),
    ("read_python", "paths", "['\\x2fetc\\57passwd']"),
    ("read_python", "paths", "['/et' 'c/passwd']"),
    ("read_python", "paths", "[['/etc/passwd', None]]"),
    (
        "read_many",
        "paths",
        r#"["\u002fetc\u002fpasswd","\ud800"]"#,
    ),
    ("read_many", "paths", r#"["/etc/passwd"]"#),
    ("read_many", "paths", " [\"\\u002Fetc\\u002Fpasswd\"]"),
    ("read_many", "paths", "\t[\"/etc/passwd\"]"),
    ("read_any", "paths", r#"["\u002fetc\u002fpasswd", NaN]"#),
    ("read_any", "paths", r#"["\u002fetc\u002fpasswd", 1e999]"#),
    ("read_any", "paths", r#"[[["\u002fetc\u002fpasswd"]]]"#),
    ("read_map", "file", r#"{"\u002fetc\u002fpasswd":"\ud800"}"#),
    (
        "read_map",
        "file",
        r#"{"x":"\u002fetc\u002fpasswd","y":"\ud800"}"#,
    ),
    (
        "read_map",
        "file",
        r#"{"f":"\u002fetc\u002fpasswd","n":NaN}"#,
    ),
    ("read_either", "path", r#" ["/etc/passwd"]"#),
    (
        "read_either",
        "path",
        r#"["..\u002f..\u002f..\u002f..\u002f..\u002f..\u002fetc\u002fpasswd"]"#,
    ),
    (
        "read_items",
        "items",
        r#"["\u002fetc\u002fpasswd","\ud800"]"#,
    ),
    (
        "read_items",
        "items",
        r#"[{"path":"\u002fetc\u002fpasswd"},1e999]"#,
    ),
    (
        "read_texts",
        "content",
        r#"["\u002fetc\u002fpasswd","\ud800"]"#,
    ),
    ("read_one", "path", "['/etc/passwd']"),
    ("read_one", "path", "[/etc/passwd]"),
    ("read_one", "path", "('/etc/passwd',)"),
    ("read_one", "path", "a\t/etc/passwd"),
    ("read_one", "path", "$SECRETS/passwd"),
    ("read_one", "path", "\\x2fetc/passwd"),
    ("read_one", "path", "&#47;etc/passwd"),
];

#[test]
fn a_deny_rule_on_a_folder_holds_for_strings_that_a_server_parses() {
    let rules = json!({ "rules": [
        { "id": "all", "effect": "allow", "conditions": { "tool_name": "*" } },
        { "id": "no", "effect": "deny", "conditions": { "path_pattern": "/etc/**" } },
    ]});
    let Some(mut guarded) = Guarded::start(&rules) else {
        return;
    };
    let mut passed = Vec::new();
    for (tool, argument, value) in TO_PASSWD {
        if let Some(executed) = guarded.call(tool, argument, value) {
            passed.push(format!("{value:?} executed {executed}"));
        }
    }
    assert!(passed.is_empty(), "{passed:#?}");
    let harmless = guarded.call("read_many", "paths", r#"["notes/a.txt"]"#);
    assert!(harmless.is_some(), "a list elsewhere passes");
    end(guarded.client);
}

#[test]
fn an_allow_rule_on_a_folder_admits_no_string_that_a_server_parses() {
    let rules = json!({ "rules": [
        { "id": "work", "effect": "allow", "conditions": { "path_pattern": "ROOT/**" } },
    ]});
    let Some(mut guarded) = Guarded::start(&rules) else {
        return;
    };
    let mut passed = Vec::new();
    for (tool, argument, value) in TO_PASSWD {
        if let Some(executed) = guarded.call(tool, argument, value) {
            passed.push(format!("{value:?} executed {executed}"));
        }
    }
    for value in [
        "x/y,b/../../../../../../etc/passwd",
        "$HOME/x",
        "\u{a0}[\"/etc/passwd\"]",
    ] {
        if let Some(executed) = guarded.call("read_one", "path", value) {
            passed.push(format!("{value:?} executed {executed}"));
        }
    }
    assert!(passed.is_empty(), "{passed:#?}");
    for plain in ["notes/a.txt", "My letter, final.txt", "app/[id]/page.tsx"] {
        let executed = guarded.call("read_one", "path", plain);
        assert!(executed.is_some(), "{plain} is below the folder");
    }
    end(guarded.client);
}

#[test]
fn a_protected_file_is_out_of_reach_for_strings_that_a_server_parses() {
    let rules = json!({ "rules": [
        { "id": "all", "effect": "allow", "conditions": { "tool_name": "*" } },
    ]});
    let Some(mut guarded) = Guarded::start(&rules) else {
        return;
    };
    let policy = guarded.place.path("policy.json").canonicalize().unwrap();
    let hidden = policy.to_str().unwrap().replace('/', "\\u002f");
    for (tool, argument, value) in [
        ("read_many", "paths", format!("[\"{hidden}\",\"\\ud800\"]")),
        ("read_map", "file", format!("{{\"{hidden}\":NaN}}")),
        ("read_items", "items", format!("[\"{hidden}\",1e999]")),
        (
            "read_texts",
            "content",
            format!("[\"{hidden}\",\"\\ud800\"]"),
        ),
    ] {
        let executed = guarded.call(tool, argument, &value);
        assert_eq!(executed, None, "{tool} {value}");
    }
    end(guarded.client);
}
