//! Rules over URLs in front of a server that really fetches, with urllib and with undici: whatever spelling of an
//! address the libraries open, the rule knows it.

use std::fs;
use std::io;

use serde_json::{Value, json};

use crate::support::components;
use crate::support::guarded::Place;
use crate::support::refusals::is_passed;
use crate::support::serving::Served;
use crate::support::web::{Request, Then, Web, Wire, send};

const SERVER: &str = r#"
import subprocess, sys, urllib.request
from fastmcp import FastMCP
mcp = FastMCP("web")
NODE = sys.argv[1]
SCRIPT = "fetch(process.argv[1]).then(r => r.text()).then(t => console.log(t), () => console.log('failed'))"
def get(url: str, reader: str) -> str:
    try:
        if reader == "undici":
            return subprocess.run([NODE, "-e", SCRIPT, url], capture_output=True, text=True).stdout
        with urllib.request.urlopen(url, timeout=20) as page:
            return page.read().decode()
    except Exception:
        return "failed"
for name in ["fetch_any", "fetch_outside", "fetch_listed"]:
    mcp.tool(get, name=name)
mcp.run(show_banner=False, log_level="ERROR")
"#;

fn page(_: &Request, wire: &mut dyn Wire) -> io::Result<Then> {
    send(
        wire,
        b"HTTP/1.1 200 OK\r\ncontent-length: 8\r\n\r\nTHE-PAGE",
        Then::Close,
    )
}

/// Spellings of one address, and of one path there.
fn spellings(port: u16) -> Vec<String> {
    let hosts = [
        "127.0.0.1",
        "127.1",
        "2130706433",
        "0x7f000001",
        "0x7f.1",
        "017700000001",
        "0177.0.0.1",
        "0",
        "127.0.0.1.",
        "LOCALHOST",
        "localhost.",
        "%31%32%37.0.0.1",
        "１２７.0.0.1",
        "127。0。0。1",
        "[::ffff:127.0.0.1]",
        "[::ffff:7f00:1]",
        "u:p@127.0.0.1",
        "x@y@127.1",
    ];
    let mut all: Vec<String> = hosts
        .iter()
        .map(|host| format!("http://{host}:{port}/public/x"))
        .collect();
    all.extend([
        format!("HTTP://127.0.0.1:{port}/public/x"),
        format!("http://127.0.0.1:0{port}/public/x"),
        format!("http:/127.0.0.1:{port}/public/x"),
        format!("http:127.0.0.1:{port}/public/x"),
        format!(r"http:\\127.0.0.1:{port}\public\x"),
        format!("ht\ttp://127.0.0.1:{port}/public/x"),
        format!(" http://127.0.0.1:{port}/public/x\n"),
        format!(r"http://127.0.0.1:{port}\@other.example/public/x"),
        format!("http://127.0.0.1:{port}#@other.example/public/x"),
        format!("http://127.0.0.1:{port}?@other.example/public/x"),
    ]);
    all
}

/// A session with the server, under rules over the page's address.
struct Fetcher {
    served: Served,
    session: String,
    calls: u64,
}

impl Fetcher {
    fn new(web: &Web) -> Option<Self> {
        let (python, node) = (components::fastmcp_python()?, components::node()?);
        let place = Place::new();
        let port = web.port;
        let rules = json!([
            {"id": "any", "effect": "allow", "conditions": {"tool_name": ["fetch_any", "fetch_outside"]}},
            {"id": "outside", "effect": "deny",
             "conditions": {"tool_name": "fetch_outside", "path_pattern": format!("http://127.0.0.1:{port}/**")}},
            {"id": "listed", "effect": "allow",
             "conditions": {"tool_name": "fetch_listed", "path_pattern": format!("http://127.0.0.1:{port}/public/**")}},
        ]);
        place.write_policy(&json!({"version": "1", "rules": rules}).to_string());
        fs::write(place.path("server.py"), SERVER).unwrap();
        let configuration = json!({"servers": {"web": {
            "command": python, "args": [place.path("server.py"), node],
        }}});
        fs::write(place.path("durward.yaml"), configuration.to_string()).unwrap();
        let served = Served::start_configured(place);
        let body = r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"agent","version":"1"}}}"#;
        let answer = served.send("POST", "/mcp/web", &[], body);
        let session = answer.header("mcp-session-id").unwrap().to_owned();
        let ready = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;
        let headers = [("mcp-session-id", session.as_str())];
        assert_eq!(served.send("POST", "/mcp/web", &headers, ready).status, 202);
        Some(Self {
            served,
            session,
            calls: 0,
        })
    }

    fn call(&mut self, tool: &str, url: &str, reader: &str) -> Value {
        self.calls += 1;
        let params = json!({"name": tool, "arguments": {"url": url, "reader": reader}});
        let body =
            json!({"jsonrpc": "2.0", "id": self.calls, "method": "tools/call", "params": params});
        let headers = [("mcp-session-id", self.session.as_str())];
        self.served
            .send("POST", "/mcp/web", &headers, &body.to_string())
            .json()
    }
}

#[test]
fn no_spelling_that_a_library_opens_passes_a_rule_that_refuses_the_address() {
    let web = Web::start(page);
    let Some(mut fetcher) = Fetcher::new(&web) else {
        return;
    };
    let mut opened = 0;
    for url in spellings(web.port) {
        for reader in ["urllib", "undici"] {
            let free = fetcher.call("fetch_any", &url, reader);
            assert!(is_passed(&free), "{url:?}: {free}");
            if !free.to_string().contains("THE-PAGE") {
                continue;
            }
            opened += 1;
            let before = web.requests().len();
            let guarded = fetcher.call("fetch_outside", &url, reader);
            assert!(
                !guarded.to_string().contains("THE-PAGE"),
                "{reader} {url:?}: {guarded}"
            );
            assert!(
                guarded.to_string().contains("outside"),
                "{reader} {url:?}: {guarded}"
            );
            assert_eq!(web.requests().len(), before, "{reader} {url:?}");
        }
    }
    // Both libraries open most spellings.
    assert!(opened >= 24, "{opened}");
}

#[test]
fn a_rule_that_allows_a_url_lets_it_pass_and_no_other_one() {
    let web = Web::start(page);
    let Some(mut fetcher) = Fetcher::new(&web) else {
        return;
    };
    let port = web.port;
    let pages = [
        "http://127.0.0.1:PORT/public/x",
        "http://127.1:PORT/public/x?page=2",
    ];
    for url in pages.map(|url| url.replace("PORT", &port.to_string())) {
        let answer = fetcher.call("fetch_listed", &url, "urllib");
        assert!(answer.to_string().contains("THE-PAGE"), "{url}: {answer}");
    }
    let before = web.requests().len();
    for url in [
        format!("http://127.0.0.1:{port}/private/x"),
        format!("http://127.0.0.1:{port}/public/../private/x"),
        format!("http://localhost:{port}/public/x"),
        format!("http://other.example\\@127.0.0.1:{port}/public/x"),
        format!("http://127.0.0.1:{port}/public/x,http://127.0.0.1:{port}/private/x"),
    ] {
        let answer = fetcher.call("fetch_listed", &url, "urllib");
        assert!(!is_passed(&answer), "{url}: {answer}");
    }
    assert_eq!(web.requests().len(), before);
}
