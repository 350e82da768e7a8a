//! The ways to a server.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, ChildStdin, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::time::{Duration, Instant};

use mocks::ambiguous::Ambiguous;
use serde_json::json;

use crate::place::{LIMITS, Place, binary};
use crate::servers::Server;
use crate::{forwarded, written};

/// The longest wait for an answer that must come.
const PATIENCE: Duration = Duration::from_secs(60);
/// How long a server may take to answer behind a frame, before it is started anew.
const STALLED: Duration = Duration::from_secs(10);
/// How long a frame's own answer is waited for over HTTP: a server that took another id never gives it.
const ANSWER: Duration = Duration::from_secs(3);
/// The revision of all sessions.
const VERSION: &str = "2025-06-18";

/// A way to a server.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Edge {
    /// The server itself.
    Direct,
    /// The server itself, with frames as `wire` writes them.
    Written,
    /// The server itself, with those frames as they came that a gate would allow by its own reading of
    /// them: what canonical frames are there to prevent.
    Forwarded,
    /// `durward run`.
    Run,
    /// `durward serve`.
    Serve,
}

impl Edge {
    pub fn name(self) -> &'static str {
        match self {
            Self::Direct => "direct",
            Self::Written => "written",
            Self::Forwarded => "forwarded",
            Self::Run => "run",
            Self::Serve => "serve",
        }
    }

    /// Sends the frames, each behind the other; gives how often the server had to be started anew.
    pub fn drive(self, server: &Server, place: &Place, frames: &[Ambiguous]) -> usize {
        match self {
            Self::Direct => by_lines(&server.command, place, frames),
            Self::Written => by_lines(&server.command, place, &written::all(frames)),
            Self::Forwarded => by_lines(&server.command, place, &forwarded::all(frames)),
            Self::Run => {
                let state = ["run", "--no-config", "--state-dir", "state"];
                let policy = ["--policy", "policy.json", "--env", "DIFFERENTIAL_LOG"];
                let mut command = vec![binary().to_owned()];
                let flags = [&state[..], &policy, &LIMITS, &["--"]].concat();
                command.extend(flags.iter().map(|word| (*word).to_owned()));
                command.extend(server.command.iter().cloned());
                by_lines(&command, place, frames)
            }
            Self::Serve => {
                by_http(server, place, frames);
                0
            }
        }
    }
}

fn opening() -> String {
    format!(
        r#"{{"jsonrpc":"2.0","id":"open","method":"initialize","params":{{"protocolVersion":"{VERSION}","capabilities":{{}},"clientInfo":{{"name":"differential","version":"1"}}}}}}"#
    )
}

const OPENED: &str = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;

/// A process that speaks lines.
struct Lines {
    child: Child,
    input: Option<ChildStdin>,
    output: Receiver<Vec<u8>>,
}

impl Lines {
    fn open(command: &[String], place: &Place) -> Self {
        let (program, arguments) = command.split_first().unwrap();
        let mut child = place
            .command(program)
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut output = BufReader::new(child.stdout.take().unwrap());
        let (tell, told) = sync_channel(10_000);
        std::thread::spawn(move || {
            let mut line = Vec::new();
            while output.read_until(b'\n', &mut line).is_ok_and(|n| n > 0) {
                if tell.send(std::mem::take(&mut line)).is_err() {
                    return;
                }
            }
        });
        let mut lines = Self {
            input: child.stdin.take(),
            child,
            output: told,
        };
        assert!(lines.send(opening().as_bytes()));
        assert!(
            lines.answers("\"open\"", PATIENCE),
            "no session: {command:?}"
        );
        assert!(lines.send(OPENED.as_bytes()));
        lines
    }

    fn send(&mut self, frame: &[u8]) -> bool {
        let Some(input) = &mut self.input else {
            return false;
        };
        let line = [frame, b"\n"].concat();
        input.write_all(&line).and_then(|()| input.flush()).is_ok()
    }

    /// Whether a line with these words comes.
    fn answers(&self, words: &str, longest: Duration) -> bool {
        let until = Instant::now() + longest;
        loop {
            let left = until.saturating_duration_since(Instant::now());
            match self.output.recv_timeout(left) {
                Ok(line) if String::from_utf8_lossy(&line).contains(words) => return true,
                Ok(_) => {}
                Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => return false,
            }
        }
    }

    /// Ends the session and waits until nothing more can be executed.
    fn end(mut self) {
        drop(self.input.take());
        let until = Instant::now() + STALLED;
        while Instant::now() < until {
            if self.child.try_wait().unwrap().is_some() {
                return;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

fn by_lines(command: &[String], place: &Place, frames: &[Ambiguous]) -> usize {
    let mut lines = Lines::open(command, place);
    let mut restarts = 0;
    for frame in frames {
        let mark = format!("\"after-{}\"", frame.number);
        let ping = format!(r#"{{"jsonrpc":"2.0","id":{mark},"method":"ping"}}"#);
        let sent = lines.send(&frame.bytes) && lines.send(ping.as_bytes());
        if !sent || !lines.answers(&mark, STALLED) {
            restarts += 1;
            lines.end();
            lines = Lines::open(command, place);
        }
    }
    lines.end();
    restarts
}

/// A request of its own connection; gives the whole answer.
fn post(address: &str, session: Option<&str>, body: &[u8], longest: Duration) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(longest)).unwrap();
    let session =
        session.map(|id| format!("mcp-session-id: {id}\r\nmcp-protocol-version: {VERSION}\r\n"));
    let head = format!(
        "POST /mcp/d HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\ncontent-type: application/json\r\naccept: application/json, text/event-stream\r\n{}content-length: {}\r\n\r\n",
        session.unwrap_or_default(),
        body.len()
    );
    stream.write_all(head.as_bytes()).unwrap();
    stream.write_all(body).unwrap();
    let mut answer = Vec::new();
    // What is refused may be cut; the book and the journal say what was done.
    let _ = stream.read_to_end(&mut answer);
    String::from_utf8_lossy(&answer).into_owned()
}

fn by_http(server: &Server, place: &Place, frames: &[Ambiguous]) {
    // A server of the configuration inherits no environment but what it is given. JSON is YAML.
    let (program, arguments) = server.command.split_first().unwrap();
    let environment = json!({ "DIFFERENTIAL_LOG": place.book() });
    let server = json!({ "command": program, "args": arguments, "env": environment });
    let configuration = json!({ "servers": { "d": server } }).to_string();
    std::fs::write(place.dir.join("durward.yaml"), configuration).unwrap();
    let mut child = place
        .command(binary())
        .args(["--config", "durward.yaml", "--state-dir", "state", "serve"])
        .args(["--policy", "policy.json", "--listen", "127.0.0.1:0"])
        .args(LIMITS)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    let mut output = BufReader::new(child.stdout.take().unwrap());
    output.read_line(&mut line).unwrap();
    let address = line.trim().rsplit('/').next().unwrap().to_owned();
    let answer = post(&address, None, opening().as_bytes(), PATIENCE);
    let session = answer
        .lines()
        .find_map(|line| line.strip_prefix("mcp-session-id: "))
        .unwrap_or_else(|| panic!("no session: {line} {answer}"))
        .to_owned();
    post(&address, Some(&session), OPENED.as_bytes(), PATIENCE);
    for frame in frames {
        post(&address, Some(&session), &frame.bytes, ANSWER);
    }
    child.kill().unwrap();
    child.wait().unwrap();
}
