//! `durward serve` before mocks, and raw HTTP to it.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use serde_json::Value;

use super::guarded::{PATIENCE, Place, binary};

/// A running `durward serve` with one server, `echo`.
pub struct Served {
    pub place: Place,
    pub address: SocketAddr,
    pub process: Child,
}

/// What came back.
#[derive(Debug)]
pub struct Answer {
    pub status: u16,
    pub headers: Vec<(String, String)>,
    pub body: String,
}

impl Answer {
    pub fn header(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|(n, _)| n == name);
        found.map(|(_, value)| value.as_str())
    }

    /// The answer: the body, or the last message of the stream that it becomes after a second.
    pub fn json(&self) -> Value {
        let is_stream = self.header("content-type") == Some("text/event-stream");
        let events = || {
            self.body
                .lines()
                .filter_map(|line| line.strip_prefix("data: "))
        };
        let text = if is_stream {
            events().next_back().unwrap_or_default()
        } else {
            &self.body
        };
        serde_json::from_str(text).unwrap_or_else(|e| panic!("{e}: {self:?}"))
    }
}

/// Raised, so that no test meets them by accident.
const LIMITS: [&str; 8] = [
    "--limit-requests",
    "1000000/s",
    "--limit-burst",
    "1000000",
    "--limit-tool-calls",
    "1000000",
    "--limit-concurrency",
    "1000",
];

impl Served {
    pub fn start(flags: &[&str]) -> Self {
        Self::start_in(Place::new(), flags)
    }

    /// Serves a counting echo mock.
    pub fn start_in(place: Place, flags: &[&str]) -> Self {
        let mock = place.mock(&["echo"]).join(" ");
        let server = format!("echo={mock}");
        Self::start_server(place, &server, flags)
    }

    pub fn start_server(place: Place, server: &str, flags: &[&str]) -> Self {
        Self::start_with(
            place,
            &["--no-config"],
            &[&["--server", server], flags].concat(),
        )
    }

    /// Serves what the place's `durward.yaml` names.
    pub fn start_configured(place: Place) -> Self {
        Self::start_with(place, &["--config", "durward.yaml"], &[])
    }

    /// The same, with the rules that it names as well.
    pub fn start_ruled(place: Place) -> Self {
        Self::start_ruled_with(place, &[])
    }

    /// The same, with these variables in its environment.
    pub fn start_ruled_with(place: Place, variables: &[(&str, &str)]) -> Self {
        let before = ["--config", "durward.yaml", "--state-dir", "state", "serve"];
        let listen = ["--listen", "127.0.0.1:0"];
        let args = [&before[..], &listen, &LIMITS].concat();
        Self::spawn_set(place, Path::new(binary()), &args, variables)
    }

    /// The same, with these limits in place of raised ones.
    pub fn start_limited(place: Place, limits: &[&str]) -> Self {
        let before = ["--config", "durward.yaml", "--state-dir", "state", "serve"];
        let listen = ["--listen", "127.0.0.1:0"];
        Self::spawn(place, &[&before[..], &listen, limits].concat())
    }

    fn start_with(place: Place, before: &[&str], flags: &[&str]) -> Self {
        let own = flags.iter().any(|flag| flag.starts_with("--limit-"));
        let limits = if own { &[][..] } else { &LIMITS[..] };
        let serve = ["--state-dir", "state", "serve"];
        let listen = match flags.contains(&"--listen") {
            true => &[][..],
            false => &["--listen", "127.0.0.1:0"][..],
        };
        let rest = ["--policy", "policy.json"];
        Self::spawn(
            place,
            &[before, &serve, &rest, listen, limits, flags].concat(),
        )
    }

    /// Serves what the place's `durward.yaml` names, by this program.
    pub fn start_program(place: Place, program: &Path) -> Self {
        let before = ["--config", "durward.yaml", "--state-dir", "state", "serve"];
        let rest = ["--policy", "policy.json", "--listen", "127.0.0.1:0"];
        Self::spawn_program(place, program, &[&before[..], &rest, &LIMITS].concat())
    }

    /// Starts what serves with these words, and waits until it listens.
    pub fn spawn(place: Place, args: &[&str]) -> Self {
        Self::spawn_program(place, Path::new(binary()), args)
    }

    pub fn spawn_program(place: Place, program: &Path, args: &[&str]) -> Self {
        Self::spawn_set(place, program, args, &[])
    }

    /// The same, with what it logs in this file.
    pub fn spawn_logging(place: Place, args: &[&str], log: &Path) -> Self {
        let log = std::fs::File::create(log).unwrap();
        Self::spawn_to(place, Path::new(binary()), args, &[], log.into())
    }

    fn spawn_set(place: Place, program: &Path, args: &[&str], variables: &[(&str, &str)]) -> Self {
        Self::spawn_to(place, program, args, variables, Stdio::null())
    }

    fn spawn_to(
        place: Place,
        program: &Path,
        args: &[&str],
        variables: &[(&str, &str)],
        stderr: Stdio,
    ) -> Self {
        let mut process = Command::new(program)
            .args(args)
            .current_dir(&place.dir)
            .env("XDG_RUNTIME_DIR", place.runtime())
            .env("XDG_CONFIG_HOME", place.config_home())
            .envs(variables.iter().copied())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(stderr)
            .spawn()
            .unwrap();
        let mut line = String::new();
        let stdout = process.stdout.take().unwrap();
        let mut stdout = BufReader::new(stdout);
        while !line.contains("listening at") {
            line.clear();
            assert!(
                stdout.read_line(&mut line).unwrap() > 0,
                "it does not listen"
            );
        }
        let address = line.trim().rsplit('/').next().unwrap().parse();
        let address = address.unwrap_or_else(|_| panic!("no address: {line:?}"));
        Self {
            place,
            address,
            process,
        }
    }

    pub fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(self.address).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream.set_nodelay(true).unwrap();
        stream
    }

    /// One request on a connection of its own.
    pub fn send(&self, method: &str, path: &str, headers: &[(&str, &str)], body: &str) -> Answer {
        let mut stream = self.connect();
        write_request(&mut stream, method, path, headers, body);
        let mut reader = BufReader::new(stream);
        match method {
            // Its stream may have no end.
            "GET" => read_head(&mut reader),
            _ => read_answer(&mut reader),
        }
    }

    /// A GET that is answered with a JSON of known length.
    pub fn send_get(&self, path: &str) -> Value {
        self.send("GET", path, &[], "").json()
    }

    /// A Legacy message.
    pub fn post(&self, session: Option<&str>, body: &str) -> Answer {
        let mut headers = vec![("mcp-protocol-version", "2025-11-25")];
        headers.extend(session.map(|id| ("mcp-session-id", id)));
        self.send("POST", "/mcp/echo", &headers, body)
    }

    /// Opens a Legacy session.
    pub fn open(&self, version: &str) -> String {
        let body = format!(
            r#"{{"jsonrpc":"2.0","id":"open","method":"initialize","params":{{"protocolVersion":"{version}","capabilities":{{}},"clientInfo":{{"name":"test","version":"1"}}}}}}"#
        );
        let answer = self.send("POST", "/mcp/echo", &[], &body);
        assert_eq!(answer.json()["result"]["protocolVersion"], version);
        let id = answer.header("mcp-session-id").unwrap().to_owned();
        let ready = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;
        assert_eq!(self.post(Some(&id), ready).status, 202);
        id
    }

    /// A Legacy message that is answered with a stream, or the GET that opens one.
    pub fn stream(
        &self,
        method: &str,
        session: &str,
        headers: &[(&str, &str)],
        body: &str,
    ) -> Events {
        let headers = [&[("mcp-session-id", session)], headers].concat();
        Events::of(self, method, &headers, body)
    }

    /// Asks for the end.
    pub fn terminate(&self) {
        let pid = rustix::process::Pid::from_child(&self.process);
        rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
    }

    /// Asks for the end and waits for it.
    pub fn stop(self) -> (Option<i32>, Place) {
        self.terminate();
        self.ended()
    }

    /// Waits for its end: the exit code.
    pub fn ended(mut self) -> (Option<i32>, Place) {
        let status = self.process.wait().unwrap();
        (
            status.code(),
            std::mem::replace(&mut self.place, Place::new()),
        )
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// A stream of events, as it is read.
pub struct Events {
    reader: BufReader<TcpStream>,
    text: String,
}

impl Events {
    /// Sends a request that is answered with a stream.
    #[track_caller]
    pub fn of(served: &Served, method: &str, headers: &[(&str, &str)], body: &str) -> Self {
        let mut stream = served.connect();
        write_request(&mut stream, method, "/mcp/echo", headers, body);
        let mut reader = BufReader::new(stream);
        let answer = read_head(&mut reader);
        let kind = answer.header("content-type");
        assert_eq!(kind, Some("text/event-stream"), "{answer:?}");
        Self::over(reader)
    }

    /// The body of an answer whose head has been read.
    pub fn over(reader: BufReader<TcpStream>) -> Self {
        Self {
            reader,
            text: String::new(),
        }
    }

    /// The next event that carries a message: its id and the message. None at the end.
    pub fn next(&mut self) -> Option<(String, Value)> {
        loop {
            while let Some((event, rest)) = self.text.split_once("\n\n") {
                let field = |name: &str| {
                    let found = event.lines().find_map(|line| line.strip_prefix(name));
                    found.unwrap_or_default().trim().to_owned()
                };
                let (id, data) = (field("id:"), field("data:"));
                self.text = rest.to_owned();
                if !data.is_empty() {
                    return Some((id, serde_json::from_str(&data).unwrap()));
                }
            }
            let chunk = self.chunk()?;
            self.text.push_str(&chunk);
        }
    }

    /// The next message, which must be there.
    #[track_caller]
    pub fn message(&mut self) -> Value {
        self.next().expect("the stream has ended").1
    }

    fn chunk(&mut self) -> Option<String> {
        chunk(&mut self.reader)
    }
}

/// The next part of a body in parts; none at its end.
fn chunk(reader: &mut BufReader<TcpStream>) -> Option<String> {
    let mut line = String::new();
    reader.read_line(&mut line).ok()?;
    let length = usize::from_str_radix(line.trim(), 16).ok()?;
    let mut bytes = vec![0; length + 2];
    reader.read_exact(&mut bytes).ok()?;
    bytes.truncate(length);
    (length > 0).then(|| String::from_utf8(bytes).unwrap())
}

/// The headers of a Modern request, which repeat its body.
pub fn modern_headers<'a>(method: &'a str, name: &'a str) -> Vec<(&'a str, &'a str)> {
    let mut headers = vec![
        ("mcp-protocol-version", "2026-07-28"),
        ("mcp-method", method),
    ];
    if !name.is_empty() {
        headers.push(("mcp-name", name));
    }
    headers
}

/// A Modern request; `params` are members without their braces.
pub fn modern(id: &str, method: &str, params: &str) -> String {
    let meta = r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}"#;
    let params = if params.is_empty() {
        meta.to_owned()
    } else {
        format!("{params},{meta}")
    };
    format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}","params":{{{params}}}}}"#)
}

/// `tools/call` of `echo` as a Legacy message.
pub fn call(id: &str, text: &str) -> String {
    format!(
        r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"echo","arguments":{{"text":"{text}"}}}}}}"#
    )
}

/// `tools/call` of `echo` as a Modern message.
pub fn modern_call(id: &str, text: &str) -> String {
    let params = format!(r#""name":"echo","arguments":{{"text":"{text}"}}"#);
    modern(id, "tools/call", &params)
}

pub fn write_request(
    stream: &mut TcpStream,
    method: &str,
    path: &str,
    headers: &[(&str, &str)],
    body: &str,
) {
    let mut text = format!("{method} {path} HTTP/1.1\r\n");
    let mut all = vec![
        ("host", "localhost"),
        ("content-type", "application/json"),
        ("accept", "application/json, text/event-stream"),
    ];
    all.retain(|(name, _)| !headers.iter().any(|(n, _)| n == name));
    all.extend(headers);
    for (name, value) in all {
        text.push_str(&format!("{name}: {value}\r\n"));
    }
    text.push_str(&format!("content-length: {}\r\n\r\n{body}", body.len()));
    stream.write_all(text.as_bytes()).unwrap();
}

/// Reads a head and the body that it announces; none for a stream.
pub fn read_answer(reader: &mut BufReader<TcpStream>) -> Answer {
    let mut answer = read_head(reader);
    let is_stream = |kind: &str| kind.starts_with("text/event-stream");
    if answer.header("content-type").is_some_and(is_stream) {
        while let Some(part) = chunk(reader) {
            answer.body.push_str(&part);
        }
    }
    answer
}

/// The same, without the stream that a slow call is answered with.
pub fn read_head(reader: &mut BufReader<TcpStream>) -> Answer {
    let mut line = String::new();
    reader.read_line(&mut line).unwrap();
    let status = line.split(' ').nth(1).and_then(|code| code.parse().ok());
    let mut answer = Answer {
        status: status.unwrap_or_else(|| panic!("no status: {line:?}")),
        headers: Vec::new(),
        body: String::new(),
    };
    loop {
        line.clear();
        reader.read_line(&mut line).unwrap();
        let Some((name, value)) = line.trim_end().split_once(": ") else {
            break;
        };
        answer
            .headers
            .push((name.to_ascii_lowercase(), value.to_owned()));
    }
    if let Some(length) = answer.header("content-length") {
        let mut body = vec![0; length.parse().unwrap()];
        reader.read_exact(&mut body).unwrap();
        answer.body = String::from_utf8(body).unwrap();
    }
    answer
}
