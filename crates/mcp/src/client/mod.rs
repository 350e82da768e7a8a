//! A raw MCP client over a child's stdio: it sends the bytes it is told to send, shows the bytes that
//! came, waits no longer than it was allowed to, and checks every id.
//!
//! It retries nothing, repairs nothing and interprets nothing beyond JSON-RPC, so that a test sees
//! what a server or a gateway really does.

mod error;
mod handshake;
mod http;
mod message;
mod process;

pub use error::ClientError;
pub use http::{Answer, HttpClient, HttpOptions};
pub use message::{Message, Reply};
pub use net::blocking::Connection;
pub use process::{Options, Process};

use serde_json::Value;
use std::{collections::VecDeque, ffi::OsStr, time::Instant};

/// The stateless revision.
const MODERN_VERSION: &str = "2026-07-28";
/// How many messages that answered no request are kept.
const ASIDE_MAX: usize = 100_000;

/// How a client introduces itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Era {
    /// `initialize` with this revision.
    Legacy(&'static str),
    /// 2026-07-28: `_meta` on every request.
    Modern,
}

impl Era {
    /// Every revision, oldest first.
    pub const ALL: [Self; 5] = [
        Self::Legacy("2024-11-05"),
        Self::Legacy("2025-03-26"),
        Self::Legacy("2025-06-18"),
        Self::Legacy("2025-11-25"),
        Self::Modern,
    ];

    /// The revision's date.
    #[must_use]
    pub fn version(self) -> &'static str {
        match self {
            Self::Legacy(version) => version,
            Self::Modern => MODERN_VERSION,
        }
    }
}

/// A client and the server process it talks to. Dropping it kills that process.
#[derive(Debug)]
pub struct Client {
    process: Process,
    era: Option<Era>,
    next_id: u64,
    /// Notifications and requests of the server that came while a response was awaited.
    aside: VecDeque<Message>,
}

impl Client {
    /// Starts a server with default [`Options`].
    ///
    /// # Errors
    /// When the program cannot be started.
    pub fn spawn<S: AsRef<OsStr>>(
        program: impl AsRef<OsStr>,
        args: impl IntoIterator<Item = S>,
    ) -> Result<Self, ClientError> {
        Self::spawn_with(program, args, &Options::default())
    }

    /// Starts a server.
    ///
    /// # Errors
    /// When the program cannot be started.
    pub fn spawn_with<S: AsRef<OsStr>>(
        program: impl AsRef<OsStr>,
        args: impl IntoIterator<Item = S>,
        options: &Options,
    ) -> Result<Self, ClientError> {
        let process = Process::spawn(program.as_ref(), args, options)?;
        Ok(Self {
            process,
            era: None,
            next_id: 1,
            aside: VecDeque::new(),
        })
    }

    /// The process, for what goes beyond messages: raw lines, end of input, exit code, standard error.
    pub fn process(&mut self) -> &mut Process {
        &mut self.process
    }

    /// The era a handshake settled on.
    #[must_use]
    pub fn era(&self) -> Option<Era> {
        self.era
    }

    /// Sends a request with the next integer id and waits for its response. In the Modern era the
    /// required `_meta` is added, unless `params` brings its own.
    ///
    /// # Errors
    /// When nothing comes in time, the server is gone, a line is no message, or a response names
    /// another id. An error response is no error here: see [`Reply::result`].
    pub fn request(&mut self, method: &str, params: Value) -> Result<Reply, ClientError> {
        let id = self.send_request(method, params)?;
        self.response(&id)
    }

    /// Sends a request without waiting; returns the id as spelled.
    ///
    /// # Errors
    /// When the server does not take the bytes in time, or is gone.
    pub fn send_request(&mut self, method: &str, params: Value) -> Result<String, ClientError> {
        let id = self.next_id.to_string();
        self.next_id += 1;
        self.send_request_as(&id, method, params)?;
        Ok(id)
    }

    /// Sends a request under `id`, which is raw JSON: its spelling goes out as it is.
    ///
    /// # Errors
    /// When the server does not take the bytes in time, or is gone.
    pub fn send_request_as(
        &mut self,
        id: &str,
        method: &str,
        params: Value,
    ) -> Result<(), ClientError> {
        let params = handshake::dress(self.era, params);
        let method = Value::from(method);
        let line = format!(r#"{{"jsonrpc":"2.0","id":{id},"method":{method},"params":{params}}}"#);
        self.process.send_line(line.as_bytes())
    }

    /// Sends a notification.
    ///
    /// # Errors
    /// When the server does not take the bytes in time, or is gone.
    pub fn notify(&mut self, method: &str, params: &Value) -> Result<(), ClientError> {
        let method = Value::from(method);
        let line = format!(r#"{{"jsonrpc":"2.0","method":{method},"params":{params}}}"#);
        self.process.send_line(line.as_bytes())
    }

    /// Answers a request of the server; `id` is raw JSON as it came.
    ///
    /// # Errors
    /// When the server does not take the bytes in time, or is gone.
    pub fn respond(&mut self, id: &str, result: &Value) -> Result<(), ClientError> {
        self.process
            .send_line(format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{result}}}"#).as_bytes())
    }

    /// Waits for the response with this id, spelled the same. Notifications and requests of the server
    /// are set aside for [`Client::next_message`].
    ///
    /// # Errors
    /// As [`Client::request`].
    pub fn response(&mut self, id: &str) -> Result<Reply, ClientError> {
        let deadline = Instant::now() + self.process.timeout();
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            let Some(line) = self.process.read_line_within(left)? else {
                return Err(ClientError::Timeout {
                    waiting_for: format!("the response to {id}"),
                    after: self.process.timeout(),
                });
            };
            match Message::read(line)? {
                Message::Response(reply) if reply.id() == id => return Ok(reply),
                Message::Response(reply) => {
                    return Err(ClientError::WrongId {
                        expected: id.into(),
                        received: reply.id().into(),
                        line: reply.line().into(),
                    });
                }
                other if self.aside.len() < ASIDE_MAX => self.aside.push_back(other),
                _ => {
                    return Err(ClientError::Flooded {
                        messages: ASIDE_MAX,
                    });
                }
            }
        }
    }

    /// The oldest message set aside, else the next one that comes.
    ///
    /// # Errors
    /// When nothing comes in time, the server is gone, or a line is no message.
    pub fn next_message(&mut self) -> Result<Message, ClientError> {
        match self.aside.pop_front() {
            Some(message) => Ok(message),
            None => Message::read(self.process.read_line()?),
        }
    }

    /// Calls a tool and waits for its response.
    ///
    /// # Errors
    /// As [`Client::request`].
    pub fn call_tool(&mut self, name: &str, arguments: Value) -> Result<Reply, ClientError> {
        self.request(
            "tools/call",
            serde_json::json!({"name": name, "arguments": arguments}),
        )
    }
}
