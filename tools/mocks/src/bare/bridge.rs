//! From standard input and output to a server over HTTP: a line becomes a request, what comes back becomes
//! lines. One call at a time.

use crate::{FRAME_BYTES_MAX, Line, Lines, MockError};
use net::blocking::{Connection, ExchangeError, split_url};
use serde::Deserialize;
use serde_json::value::RawValue;
use std::io::{self, Write};
use std::net::ToSocketAddrs;
use std::os::fd::AsFd;
use std::time::Duration;
use wire::header::encode;

/// How long one wait may take.
const WAIT_MAX: Duration = Duration::from_secs(300);

/// Routing members of a frame.
#[derive(Debug, Deserialize)]
pub(super) struct BridgeMessage<'a> {
    #[serde(borrow, default)]
    id: Option<&'a RawValue>,
    #[serde(borrow, default)]
    method: Option<&'a str>,
    #[serde(borrow, default)]
    params: Option<BridgeParams<'a>>,
    #[serde(borrow, default)]
    result: Option<&'a RawValue>,
}

#[derive(Debug, Deserialize)]
struct BridgeParams<'a> {
    #[serde(borrow, default)]
    name: Option<&'a RawValue>,
    #[serde(borrow, default)]
    uri: Option<&'a RawValue>,
    #[serde(borrow, default, rename = "protocolVersion")]
    version: Option<&'a RawValue>,
    #[serde(borrow, default, rename = "_meta")]
    meta: Option<BridgeMeta<'a>>,
}

#[derive(Debug, Deserialize)]
struct BridgeMeta<'a> {
    #[serde(borrow, default, rename = "io.modelcontextprotocol/protocolVersion")]
    version: Option<&'a RawValue>,
}

impl<'a> BridgeMessage<'a> {
    /// Reads a frame; nothing if it is no object.
    pub(super) fn read(frame: &'a [u8]) -> Option<Self> {
        serde_json::from_slice(frame).ok()
    }

    /// Returns whether it wants an answer.
    pub(super) fn is_request(&self) -> bool {
        self.id.is_some() && self.method.is_some()
    }

    /// Returns whether it answers a request.
    pub(super) fn is_answer(&self) -> bool {
        self.id.is_some() && self.method.is_none()
    }
}

/// Moves frames until standard input ends.
pub(crate) fn run(url: &str) -> Result<u8, MockError> {
    let wrong = || {
        MockError::Usage(format!(
            "{url} is not a URL of the form http://HOST:PORT/PATH"
        ))
    };
    let (host, path) = split_url(url).ok_or_else(wrong)?;
    let address = host
        .to_socket_addrs()
        .map_err(MockError::Stdio)?
        .next()
        .ok_or_else(wrong)?;
    let connection =
        Connection::open(address, WAIT_MAX, FRAME_BYTES_MAX as u64).map_err(exchange_fault)?;
    let mut bridge = StdioBridge {
        connection,
        head: format!(
            "POST {path} HTTP/1.1\r\nhost: {host}\r\ncontent-type: application/json\r\naccept: application/json, text/event-stream\r\n"
        ),
        version: None,
        session: None,
        request: Vec::new(),
        body: Vec::new(),
    };
    let cannot = MockError::Stdio;
    let mut input = std::fs::File::from(io::stdin().as_fd().try_clone_to_owned().map_err(cannot)?);
    let mut output =
        std::fs::File::from(io::stdout().as_fd().try_clone_to_owned().map_err(cannot)?);
    let mut lines = Lines::new(FRAME_BYTES_MAX);
    loop {
        match lines.next_line() {
            Line::Frame(frame) => bridge.pass(frame, &mut output)?,
            Line::TooLong => return Err(MockError::Usage("a line beyond the bound".into())),
            Line::Incomplete => {
                if lines.fill(&mut input).map_err(cannot)? == 0 {
                    return Ok(0);
                }
            }
        }
    }
}

fn exchange_fault(error: ExchangeError) -> MockError {
    MockError::Stdio(io::Error::other(error.to_string()))
}

struct StdioBridge {
    connection: Connection,
    head: String,
    /// The revision that the client asked for, once it did.
    version: Option<String>,
    session: Option<String>,
    request: Vec<u8>,
    body: Vec<u8>,
}

impl StdioBridge {
    /// Sends a frame and writes what comes back.
    fn pass(&mut self, frame: &[u8], output: &mut impl Write) -> Result<(), MockError> {
        let Some(message) = BridgeMessage::read(frame) else {
            return Err(MockError::Usage("a line that is not a message".into()));
        };
        self.render(frame, &message);
        self.connection
            .send(&self.request)
            .map_err(exchange_fault)?;
        let status = self.connection.read_head().map_err(exchange_fault)?;
        self.body.clear();
        self.connection
            .read_body(&mut self.body)
            .map_err(exchange_fault)?;
        if message.method == Some("initialize") {
            let named = self.connection.header("mcp-session-id");
            self.session = named.map(str::to_owned);
            self.version = message.params.and_then(|p| text(p.version));
        }
        if message.result.is_some()
            || message
                .method
                .is_some_and(|m| m.starts_with("notifications/"))
        {
            return Ok(());
        }
        if status >= 300 && BridgeMessage::read(&self.body).is_none() {
            return Err(MockError::Usage(format!(
                "the server answered with status {status}"
            )));
        }
        let is_stream = self
            .connection
            .header("content-type")
            .is_some_and(|kind| kind.starts_with("text/event-stream"));
        let mut written = Vec::with_capacity(self.body.len() + 1);
        if is_stream {
            let data = self.body.split(|byte| *byte == b'\n');
            for line in data.filter_map(|line| line.strip_prefix(b"data:")) {
                let line = line.trim_ascii();
                if !line.is_empty() {
                    written.extend_from_slice(line);
                    written.push(b'\n');
                }
            }
        } else {
            written.extend_from_slice(self.body.trim_ascii());
            written.push(b'\n');
        }
        output.write_all(&written).map_err(MockError::Stdio)
    }

    /// Puts a request together, with the headers that the era of the frame asks for.
    fn render(&mut self, frame: &[u8], message: &BridgeMessage<'_>) {
        let request = &mut self.request;
        request.clear();
        request.extend_from_slice(self.head.as_bytes());
        let params = message.params.as_ref();
        let modern = params.and_then(|p| text(p.meta.as_ref()?.version));
        let version = modern.as_ref().or(self.version.as_ref());
        // Writing to a vector does not fail.
        if let Some(version) = version {
            let _ = write!(request, "mcp-protocol-version: {version}\r\n");
        }
        if let Some(session) = &self.session {
            let _ = write!(request, "mcp-session-id: {session}\r\n");
        }
        if let (Some(_), Some(method)) = (&modern, message.method) {
            let _ = write!(request, "mcp-method: {}\r\n", encode(method));
            let name = params.and_then(|p| text(p.name.or(p.uri)));
            if let Some(name) = name {
                let _ = write!(request, "mcp-name: {}\r\n", encode(&name));
            }
        }
        let _ = write!(request, "content-length: {}\r\n\r\n", frame.len());
        request.extend_from_slice(frame);
    }
}

fn text(raw: Option<&RawValue>) -> Option<String> {
    serde_json::from_str(raw?.get()).ok()
}
