//! A client that speaks lines: to a server itself, or to `durward run`.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::time::{Duration, Instant};

use mocks::ambiguous::{AmbiguousFrame, MODERN_META};

use crate::edge::{Edge, Way};
use crate::place::Place;

/// The longest wait for an answer that must come.
pub const PATIENCE: Duration = Duration::from_secs(60);
/// Asks for the tools.
pub const LIST: &[u8] = br#"{"jsonrpc":"2.0","id":"list","method":"tools/list"}"#;
/// How long a server may take to answer behind a frame, before it is started anew.
const STALLED: Duration = Duration::from_secs(10);

/// A process that speaks lines.
pub struct Lines {
    child: Child,
    input: Option<ChildStdin>,
    output: Receiver<Vec<u8>>,
}

impl Lines {
    /// Starts it, and opens a session in it.
    pub fn open(way: Way, command: &[String], place: &Place) -> Self {
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
        assert!(lines.send(way.opening().as_bytes()));
        assert!(
            lines.answers("\"open\"", PATIENCE),
            "no session: {command:?}"
        );
        if let Some(opened) = way.opened() {
            assert!(lines.send(opened.as_bytes()));
        }
        if way.edge == Edge::Together {
            lines.wait_for_server();
        }
        lines
    }

    /// A server that takes long to start comes into a session with all of them later.
    fn wait_for_server(&mut self) {
        let until = Instant::now() + PATIENCE;
        loop {
            assert!(self.send(LIST));
            let listed = self.line("\"list\"", PATIENCE).unwrap();
            if listed.contains("inputSchema") {
                return;
            }
            assert!(Instant::now() < until, "the server is not there");
            std::thread::sleep(Duration::from_millis(200));
        }
    }

    /// Sends a message; whether it could be written.
    pub fn send(&mut self, frame: &[u8]) -> bool {
        let Some(input) = &mut self.input else {
            return false;
        };
        let line = [frame, b"\n"].concat();
        input.write_all(&line).and_then(|()| input.flush()).is_ok()
    }

    /// The first line with these words that comes.
    pub fn line(&self, words: &str, longest: Duration) -> Option<String> {
        let until = Instant::now() + longest;
        loop {
            let left = until.saturating_duration_since(Instant::now());
            match self.output.recv_timeout(left) {
                Ok(line) => {
                    let line = String::from_utf8_lossy(&line);
                    if line.contains(words) {
                        return Some(line.into_owned());
                    }
                }
                Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => return None,
            }
        }
    }

    fn answers(&self, words: &str, longest: Duration) -> bool {
        self.line(words, longest).is_some()
    }

    /// Waits for the calls that were let through: in front of several servers the marks are not answered by the server, so a
    /// slow one may still have all of them before it. One that is never answered is waited for while others end.
    fn settle(&self, place: &Place) {
        let (mut left, mut since) = (place.under_way(), Instant::now());
        while left > 0 && since.elapsed() < STALLED {
            std::thread::sleep(Duration::from_millis(200));
            let now = place.under_way();
            if now != left {
                (left, since) = (now, Instant::now());
            }
        }
    }

    /// Ends the process at once.
    pub fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Ends the session and waits until nothing more can be executed.
    pub fn end(mut self) {
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

/// A request whose answer, whichever it is, comes behind what was sent before it.
fn mark(way: Way, id: &str) -> String {
    let params = if way.is_modern() {
        format!(r#","params":{{"_meta":{{{MODERN_META}}}}}"#)
    } else {
        String::new()
    };
    let method = if way.is_modern() {
        "server/discover"
    } else {
        "ping"
    };
    format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}"{params}}}"#)
}

/// Sends the frames; gives how often the process had to be started anew.
pub fn drive(way: Way, command: &[String], place: &Place, frames: &[AmbiguousFrame]) -> usize {
    let mut lines = Lines::open(way, command, place);
    let mut restarts = 0;
    for frame in frames {
        let id = format!("\"after-{}\"", frame.number);
        let sent = lines.send(&frame.bytes) && lines.send(mark(way, &id).as_bytes());
        if !sent || !lines.answers(&id, STALLED) {
            restarts += 1;
            lines.end();
            lines = Lines::open(way, command, place);
        }
    }
    if way.edge == Edge::Together {
        lines.settle(place);
    }
    lines.end();
    restarts
}
