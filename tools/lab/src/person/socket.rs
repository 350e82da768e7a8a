//! The control socket of a `durward`, as `docs/approval.md` describes it: one JSON object a line.

use crate::processes;
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// How long the socket of a variant is looked for, in milliseconds. It is there before the variant answers.
const LOOK_MS_MAX: u64 = 2_000;
/// How often it is looked for.
const LOOK_EVERY: Duration = Duration::from_millis(5);
/// How long an answer may take, in milliseconds.
const ANSWER_MS_MAX: u64 = 5_000;
/// The longest line of an answer, in bytes.
const LINE_BYTES_MAX: u64 = 512 * 1024;

/// A connection to one instance.
#[derive(Debug)]
pub(super) struct ControlConnection {
    path: PathBuf,
    connection: BufReader<UnixStream>,
    line: Vec<u8>,
}

impl ControlConnection {
    /// Connects to the process `pid`, or a descendant of it, with its socket in this directory.
    pub(super) fn of(directory: &Path, pid: u32) -> Result<Self, String> {
        let since = Instant::now();
        loop {
            if let Some(path) = find(directory, pid) {
                return Self::connect(&path);
            }
            if since.elapsed() >= Duration::from_millis(LOOK_MS_MAX) {
                return Err(format!(
                    "it has no control socket in {}: no NAME-{pid}.sock came within {LOOK_MS_MAX} ms",
                    directory.display()
                ));
            }
            std::thread::park_timeout(LOOK_EVERY);
        }
    }

    fn connect(path: &Path) -> Result<Self, String> {
        let connect = || {
            let stream = UnixStream::connect(path)?;
            let limit = Some(Duration::from_millis(ANSWER_MS_MAX));
            stream.set_read_timeout(limit)?;
            stream.set_write_timeout(limit)?;
            Ok(stream)
        };
        let stream = connect().map_err(|error: io::Error| {
            format!(
                "its control socket {} cannot be reached: {error}",
                path.display()
            )
        })?;
        Ok(Self {
            path: path.to_path_buf(),
            connection: BufReader::new(stream),
            line: Vec::new(),
        })
    }

    /// Returns a further connection to the same instance.
    pub(super) fn again(&self) -> Result<Self, String> {
        Self::connect(&self.path)
    }

    /// Another handle of the same connection, to end it from elsewhere.
    pub(super) fn handle(&self) -> Result<UnixStream, String> {
        let copied = self.connection.get_ref().try_clone();
        copied.map_err(|error| format!("a descriptor cannot be copied: {error}"))
    }

    /// From now on waits without end for the next line.
    pub(super) fn wait_without_end(&self) -> Result<(), String> {
        let set = self.connection.get_ref().set_read_timeout(None);
        set.map_err(|error| format!("its control socket cannot be waited at: {error}"))
    }

    /// Sends one request.
    pub(super) fn send(&mut self, request: &Value) -> Result<(), String> {
        let mut line = request.to_string();
        line.push('\n');
        let sent = self.connection.get_mut().write_all(line.as_bytes());
        sent.map_err(|error| format!("its control socket takes no request: {error}"))
    }

    /// Returns the next line, read as `T`.
    pub(super) fn next<T: DeserializeOwned>(&mut self) -> Result<T, String> {
        self.line.clear();
        let mut limited = (&mut self.connection).take(LINE_BYTES_MAX);
        let read = limited.read_until(b'\n', &mut self.line);
        read.map_err(|error| format!("its control socket gives no answer: {error}"))?;
        if self.line.last() != Some(&b'\n') {
            return Err(if self.line.len() as u64 == LINE_BYTES_MAX {
                "a line of its control socket is longer than 512 KiB".into()
            } else {
                "its control socket was closed".into()
            });
        }
        serde_json::from_slice(&self.line).map_err(|error| {
            let text: String = String::from_utf8_lossy(&self.line)
                .chars()
                .take(160)
                .collect();
            format!(
                "its control socket says what is not understood ({error}): {}",
                text.trim_end()
            )
        })
    }

    /// Returns the answer that ends a request: what is in `ok`, or the refusal's text.
    pub(super) fn answer(&mut self) -> Result<Value, String> {
        let mut line: Value = self.next()?;
        match line.get_mut("ok") {
            Some(value) => Ok(value.take()),
            None => Err(refusal(&line)),
        }
    }
}

/// Returns the sentence of a refusal.
pub(super) fn refusal(line: &Value) -> String {
    let said = line.pointer("/error/message").and_then(Value::as_str);
    match said {
        Some(message) => format!("it refused at its control socket: {message}"),
        None => "its control socket gives an answer that is none".into(),
    }
}

/// Returns the socket of this process or of a descendant: `NAME-PID.sock`, or `NAME-PID-COUNT.sock`.
fn find(directory: &Path, pid: u32) -> Option<PathBuf> {
    let tree = processes::numbers(pid);
    let entries = std::fs::read_dir(directory).ok()?;
    entries.flatten().map(|entry| entry.path()).find(|path| {
        let name = path.file_name().and_then(|name| name.to_str());
        name.and_then(|name| name.strip_suffix(".sock"))
            .is_some_and(|stem| {
                let ends = |stem: &str| {
                    let number = stem
                        .rsplit_once('-')
                        .and_then(|(_, number)| number.parse().ok());
                    number.is_some_and(|number| tree.contains(&number))
                };
                ends(stem)
                    || stem
                        .rsplit_once('-')
                        .is_some_and(|(before, _)| ends(before))
            })
    })
}
