//! The first hour of a new user, at a terminal and with a real client: wrap what is there, answer the first write, deny
//! the second with a reason, find the refusal, and take it all away again.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use serde_json::{Value, json};

use crate::support::components;
use crate::support::world::{World, binary};

/// A server of the user's own, on FastMCP.
const NOTES: &str = "\
from fastmcp import FastMCP

server = FastMCP('notes')

@server.tool
def read_note(name: str) -> str:
    return f'the note {name}'

server.run(show_banner=False)
";

/// What is installed for these tests.
struct Components {
    node: String,
    packages: String,
    python: String,
    filesystem: String,
    everything: String,
}

impl Components {
    fn find() -> Option<Self> {
        let text = |path: std::path::PathBuf| path.to_str().unwrap().to_owned();
        Some(Self {
            node: text(components::node()?),
            packages: text(components::client_packages()?),
            python: text(components::fastmcp_python()?),
            filesystem: text(components::official_filesystem()?),
            everything: text(components::everything()?),
        })
    }

    /// A client's configuration as people have it: indented by hand, with members that are none of our business.
    fn configuration(&self, folder: &Path, notes: &Path) -> String {
        let list = |words: &[&str]| json!(words).to_string();
        format!(
            "{{\n    \"theme\": \"dark\",\n    \"mcpServers\": {{\n        \"files\": {{ \"command\": {}, \"args\": {} }},\n        \"everything\": {{\n            \"command\": {},\n            \"args\": {}\n        }},\n        \"notes\": {{ \"command\": {}, \"args\": {}, \"env\": {{ \"NOTES\": \"1\" }} }}\n    }}\n}}",
            json!(self.filesystem),
            list(&[folder.to_str().unwrap()]),
            json!(self.node),
            list(&[&self.everything, "stdio"]),
            json!(self.python),
            list(&[notes.to_str().unwrap()]),
        )
    }

    /// Starts `durward` in a terminal of 120 columns, in a login's environment: nothing but a home and a search path.
    fn terminal(&self, world: &World, args: &[&str], steps: &Value) -> Child {
        let driver = components::repository().join("crates/durward/tests/drivers/terminal.py");
        Command::new(&self.python)
            .arg(driver)
            .args(["120", "40", &steps.to_string(), "--", binary()])
            .args(args)
            .env_clear()
            .envs(login(world, self))
            .current_dir(&world.tmp)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap()
    }

    /// The same to its end; gives the last screen.
    fn screen(&self, world: &World, args: &[&str], steps: &Value) -> String {
        screen(self.terminal(world, args, steps))
    }
}

/// The search path finds node, which the official server is started with.
fn login(world: &World, components: &Components) -> [(&'static str, String); 2] {
    let node = Path::new(&components.node).parent().unwrap().display();
    let path = std::env::var("PATH").unwrap();
    [
        ("HOME", world.home().to_str().unwrap().to_owned()),
        ("PATH", format!("{node}:{path}")),
    ]
}

fn screen(child: Child) -> String {
    let output = child.wait_with_output().unwrap();
    let err = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{err}");
    String::from_utf8(output.stdout).unwrap()
}

/// What the client printed, line by line; `None` where no line of this kind is left.
struct Printed(Vec<Value>);

impl Printed {
    fn all<'p>(&'p self, member: &'p str) -> impl Iterator<Item = &'p Value> {
        self.0.iter().filter(move |line| !line[member].is_null())
    }

    fn wrote(&self, name: &str) -> &Value {
        let found = self.all("wrote").find(|line| line["wrote"] == name);
        found.unwrap_or_else(|| panic!("{name} was not written: {:#?}", self.0))
    }
}

#[test]
fn the_first_hour() {
    let Some(components) = Components::find() else {
        return;
    };
    let world = World::new(None);
    let folder = world.tmp.join("work");
    fs::create_dir_all(&folder).unwrap();
    let notes = world.tmp.join("notes.py");
    fs::write(&notes, NOTES).unwrap();
    let before = components.configuration(&folder, &notes);
    let file = world.home().join(".cursor/mcp.json");
    fs::create_dir_all(file.parent().unwrap()).unwrap();
    fs::write(&file, &before).unwrap();

    // Three servers are wrapped after the user has seen the changes and said yes.
    components.screen(
        &world,
        &["wrap", "cursor"],
        &json!([
            ["wait", "Write these changes? [y/N]"],
            ["keys", "y\r"],
            ["wait", "what their tools do? [y/N]"],
            ["keys", "n\r"],
            ["exit", 0]
        ]),
    );
    let wrapped: Value = serde_json::from_str(&fs::read_to_string(&file).unwrap()).unwrap();
    for name in ["files", "everything", "notes"] {
        assert_eq!(wrapped["mcpServers"][name]["args"][0], "run", "{wrapped}");
    }

    // The client's writes wait on the live screen: the first is allowed, the second is denied with a reason.
    let watch = components.terminal(
        &world,
        &["approvals", "watch"],
        &json!([
            ["wait", "1 call waits"],
            ["wait", "first.txt"],
            ["pause", 1_100],
            ["keys", "o"],
            ["wait", "allowed once"],
            ["wait", "second.txt"],
            ["pause", 1_100],
            ["keys", "d"],
            ["wait", "reason (optional)"],
            ["keys", "not this file"],
            ["wait", "not this file"],
            ["keys", "\r"],
            ["wait", "denied"],
            ["wait", "nothing waits"],
            ["keys", "q"],
            ["exit", 0]
        ]),
    );
    let mut client = Command::new(&components.node)
        .arg(components::client_driver("first_hour.mjs"))
        .args([&components.packages, file.to_str().unwrap()])
        .arg(&folder)
        .env_clear()
        .envs(login(&world, &components))
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = BufReader::new(client.stdout.take().unwrap()).lines();
    let printed = Printed(
        lines
            .map(|line| serde_json::from_str(&line.unwrap()).unwrap())
            .collect(),
    );
    assert!(client.wait().unwrap().success(), "{:#?}", printed.0);
    screen(watch);

    // All three servers were there, with the tools that they have.
    let tools: Vec<_> = printed.all("tools").collect();
    assert_eq!(tools.len(), 3, "{tools:#?}");
    // Standard error told the user that a call waits and how to answer it.
    let said: String = printed
        .all("stderr")
        .map(|line| line["stderr"].as_str().unwrap())
        .collect();
    assert!(
        said.contains("\"write_file\" on files waits for approval")
            && said.contains("answer with: durward approvals allow"),
        "{said}"
    );
    // What servers write is passed on with its quotes.
    assert!(said.contains("[ '") && !said.contains("\\'"), "{said}");
    let first = printed.wrote("first.txt");
    assert_eq!(first["error"], false, "{first}");
    let second = printed.wrote("second.txt");
    assert_eq!(second["error"], true, "{second}");
    let told = second["text"].as_str().unwrap();
    assert!(told.contains("not this file"), "{told}");
    assert!(folder.join("first.txt").exists() && !folder.join("second.txt").exists());

    // The refusal is the first row of what was refused.
    let found = json!([["wait", "user_denied"], ["exit", 0]]);
    let logs = components.screen(&world, &["logs", "--refused"], &found);
    let row = logs.lines().nth(1).unwrap_or_default();
    assert!(
        row.contains("write_file") && row.contains("files"),
        "{logs}"
    );
    assert!(logs.lines().next().unwrap().contains("caller"), "{logs}");

    // And all of it is taken away again, byte for byte.
    let shown = components.screen(&world, &["unwrap", "cursor"], &yes("byte for byte"));
    assert!(shown.contains("byte for byte"), "{shown}");
    assert_eq!(fs::read_to_string(&file).unwrap(), before);
}

/// Says yes to the changes, and sees this at the end.
fn yes(end: &str) -> Value {
    json!([
        ["wait", "Write these changes? [y/N]"],
        ["keys", "y\r"],
        ["wait", end],
        ["exit", 0]
    ])
}
