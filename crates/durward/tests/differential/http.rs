//! A client over HTTP, before `durward serve`.

use std::fmt::Write as _;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use mocks::ambiguous::{AmbiguousFrame, HiddenCall};
use serde_json::{Value, json};
use wire::jsonrpc::{member, string};
use wire::{Bounds, scan_request};

use crate::edge::{Edge, NAME, Way};
use crate::lines::{LIST, PATIENCE};
use crate::place::{LIMITS, Place, binary};
use crate::servers::{Listening, Server};

/// How long a frame's own answer is waited for: a server that took another id never gives it.
pub const ANSWER: Duration = Duration::from_secs(3);

/// A request of its own connection; gives the whole answer.
fn post(address: &str, path: &str, headers: &str, body: &[u8], longest: Duration) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(longest)).unwrap();
    let head = format!(
        "POST {path} HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\ncontent-type: application/json\r\naccept: application/json, text/event-stream\r\n{headers}content-length: {}\r\n\r\n",
        body.len()
    );
    stream.write_all(head.as_bytes()).unwrap();
    stream.write_all(body).unwrap();
    let mut answer = Vec::new();
    // What is refused may be cut; the book and the journal say what was done.
    let _ = stream.read_to_end(&mut answer);
    String::from_utf8_lossy(&answer).into_owned()
}

/// The headers that say again what the frame says, as Durward reads it; of a frame that it cannot
/// read, those of the allowed call.
fn mirrored(frame: &[u8]) -> String {
    let scan = scan_request(frame, &Bounds::default());
    let read = |name: &str| {
        let scan = scan.as_ref().ok()?;
        let raw = member(&scan.members, name).or_else(|| member(&scan.params, name))?;
        let text = string(raw)?.into_owned();
        let is_plain = text.bytes().all(|byte| (b' '..0x7f).contains(&byte));
        is_plain.then_some(text)
    };
    let method = read("method").unwrap_or_else(|| "tools/call".to_owned());
    let tool = read("name").unwrap_or_else(|| HiddenCall::TOOL.to_owned());
    let mut headers = format!("mcp-method: {method}\r\n");
    if method == "tools/call" {
        let _ = write!(headers, "mcp-name: {tool}\r\n");
    }
    headers
}

/// `durward serve` in front of one server at its own address, or of all at theirs; dropping it ends it.
pub struct Serving {
    child: Child,
    address: String,
    path: String,
}

impl Serving {
    /// Starts it in front of this server, with these flags.
    pub fn of(server: &Value, place: &Place, flags: &[&str]) -> Self {
        let servers = json!({ NAME: server });
        Self::before(&servers, &format!("/mcp/{NAME}"), place, flags)
    }

    /// Starts it in front of this server and of one that is not there, so that names carry their server's.
    pub fn of_all(server: &Value, place: &Place) -> Self {
        let servers = json!({ NAME: server, "absent": { "command": "false" } });
        Self::before(&servers, "/mcp", place, &[])
    }

    fn before(servers: &Value, path: &str, place: &Place, flags: &[&str]) -> Self {
        // JSON is YAML.
        let configuration = json!({ "servers": servers }).to_string();
        std::fs::write(place.dir.join("durward.yaml"), configuration).unwrap();
        let mut child = place
            .command(binary())
            .args(["--config", "durward.yaml", "--state-dir", "state", "serve"])
            .args(["--policy", "policy.json", "--listen", "127.0.0.1:0"])
            .args(LIMITS)
            .args(flags)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        let mut output = BufReader::new(child.stdout.take().unwrap());
        output.read_line(&mut line).unwrap();
        let address = line.trim().rsplit('/').next().unwrap().to_owned();
        Self {
            child,
            address,
            path: path.to_owned(),
        }
    }

    /// A request of its own connection; gives the whole answer.
    pub fn post(&self, headers: &str, body: &[u8], longest: Duration) -> String {
        post(&self.address, &self.path, headers, body, longest)
    }

    /// Opens a session, or shows in the Modern era that the other side answers; gives the headers of what
    /// follows, these among them.
    pub fn open(&self, way: Way, headers: &str) -> String {
        let version = way.revision.name();
        let opening = way.opening();
        let mut all = format!("{headers}mcp-protocol-version: {version}\r\n");
        if way.is_modern() {
            let mirrored = format!("{all}{}", mirrored(opening.as_bytes()));
            let answer = self.post(&mirrored, opening.as_bytes(), PATIENCE);
            // All servers of an earlier revision introduce themselves in sessions alone; calls reach them.
            let is_answered = ["supportedVersions", "era_mismatch"]
                .iter()
                .any(|word| answer.contains(word));
            assert!(is_answered, "{answer}");
        } else {
            let answer = self.post(headers, opening.as_bytes(), PATIENCE);
            let session = answer
                .lines()
                .find_map(|line| line.strip_prefix("mcp-session-id: "))
                .unwrap_or_else(|| panic!("no session: {} {answer}", self.address));
            let _ = write!(all, "mcp-session-id: {session}\r\n");
        }
        if let Some(opened) = way.opened() {
            self.post(&all, opened.as_bytes(), PATIENCE);
            // A server that takes long to start comes into a session with all of them later.
            let until = Instant::now() + PATIENCE;
            while !self.post(&all, LIST, PATIENCE).contains("inputSchema") {
                assert!(Instant::now() < until, "the server is not there");
                std::thread::sleep(Duration::from_millis(200));
            }
        }
        all
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// What a configuration says of a server that Durward starts. It inherits no environment but what it is given.
pub fn started(server: &Server, place: &Place) -> Value {
    let (program, arguments) = server.command.split_first().unwrap();
    let environment = json!({ "DIFFERENTIAL_LOG": place.book() });
    json!({ "command": program, "args": arguments, "env": environment })
}

/// Starts `durward serve` and sends the frames.
pub fn drive(
    way: Way,
    server: &Server,
    listening: Option<&Listening>,
    place: &Place,
    frames: &[AmbiguousFrame],
) {
    let upstream = match listening {
        Some(listening) => json!({ "url": listening.url }),
        None => started(server, place),
    };
    let serving = match way.edge {
        Edge::ServeAll => Serving::of_all(&upstream, place),
        _ => Serving::of(&upstream, place, &[]),
    };
    send_all(way, &serving, frames);
}

/// Sends the frames in a session of their own.
pub fn send_all(way: Way, serving: &Serving, frames: &[AmbiguousFrame]) {
    let headers = serving.open(way, "");
    for frame in frames {
        let mirrors = if way.is_modern() {
            mirrored(&frame.bytes)
        } else {
            String::new()
        };
        let all = format!("{headers}{mirrors}");
        serving.post(&all, &frame.bytes, ANSWER);
    }
}
