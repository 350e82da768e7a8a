//! All servers of a configuration in front of one client: `durward run` without a name, and `/mcp` of `durward serve`.

mod alone;
mod bounds;
mod client;
mod kept;
mod lists;
mod real;
mod remembered;
mod search;

use std::fs;

use mcp::client::{Client, HttpClient, Reply};
use serde_json::{Value, json};

use crate::support::guarded::{Place, binary};
use crate::support::raised::RAISED_LIMITS;

/// A server on FastMCP whose lists come in pages, and that may grow while it runs.
const FASTMCP: &str = r#"
import mcp.types
from fastmcp import Context, FastMCP

server = FastMCP("pages", instructions="Adds.", list_page_size=2)

@server.tool
def add(a: int, b: int) -> int:
    return a + b

@server.tool
def sub(a: int, b: int) -> int:
    return a - b

@server.tool
async def grow(ctx: Context) -> str:
    def grown() -> str:
        return "grown"
    server.add_tool(grown)
    await ctx.send_notification(mcp.types.ToolListChangedNotification())
    return "done"

@server.resource("note://one")
def one() -> str:
    return "uno"

@server.prompt
def greet(name: str) -> str:
    return f"hello {name}"

server.run(show_banner=False)
"#;

/// Whoever can ask.
trait Asks {
    fn ask(&mut self, method: &str, params: Value) -> Reply;

    /// All pages of a list by the name of each entry, and the servers that were missing from the first.
    fn listed(&mut self, method: &str, member: &str, name: &str) -> (Vec<String>, Vec<String>) {
        let (mut names, mut missing) = (Vec::new(), Vec::new());
        let mut params = json!({});
        loop {
            let reply = self.ask(method, params);
            let result = reply.result().unwrap_or_else(|e| panic!("{e}")).clone();
            let entries = result[member].as_array().unwrap().iter();
            names.extend(entries.map(|entry| entry[name].as_str().unwrap().to_owned()));
            let away = result["_meta"]["durward/missing"].as_array();
            let away = away.into_iter().flatten();
            missing.extend(away.map(|one| one["server"].as_str().unwrap().to_owned()));
            match result.get("nextCursor") {
                None => return (names, missing),
                Some(cursor) => params = json!({ "cursor": cursor }),
            }
        }
    }

    fn tools(&mut self) -> (Vec<String>, Vec<String>) {
        self.listed("tools/list", "tools", "name")
    }

    fn call(&mut self, name: &str, arguments: Value) -> Value {
        let reply = self.ask("tools/call", json!({"name": name, "arguments": arguments}));
        serde_json::from_str(reply.line()).unwrap()
    }
}

impl Asks for Client {
    fn ask(&mut self, method: &str, params: Value) -> Reply {
        self.request(method, params).unwrap()
    }
}

impl Asks for HttpClient {
    fn ask(&mut self, method: &str, params: Value) -> Reply {
        self.request(method, params).unwrap()
    }
}

/// The first text of a tool's result.
fn text_of(answer: &Value) -> &str {
    let text = &answer["result"]["content"][0]["text"];
    text.as_str().unwrap_or_else(|| panic!("{answer}"))
}

fn configured(place: &Place, configuration: &Value) {
    let file = place.path("durward.yaml");
    fs::write(file, configuration.to_string()).unwrap();
}

/// `durward run` for all servers of the place's configuration.
fn run_all(place: &Place, flags: &[&str]) -> Client {
    let args = ["--config", "durward.yaml", "--state-dir", "state", "run"];
    let args = [&args, &RAISED_LIMITS[..], flags].concat();
    Client::spawn_with(binary(), args, &place.options()).unwrap()
}

fn echo_mock(place: &Place) -> Value {
    let words = place.mock(&["echo"]);
    let (command, args) = words.split_first().unwrap();
    json!({"command": command, "args": args})
}
