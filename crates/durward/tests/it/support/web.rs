//! A small HTTP server of MCP for the tests, on threads of its own: it does what it is told, right or wrong,
//! and notes every request.

use std::collections::HashMap;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;

use serde_json::{Value, json};

/// A request as it came.
#[derive(Debug, Clone)]
pub struct Request {
    pub method: String,
    pub path: String,
    /// Names in lower case, in order.
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

impl Request {
    pub fn header(&self, name: &str) -> Option<&str> {
        let found: Vec<&str> = self
            .headers
            .iter()
            .filter(|(n, _)| n == name)
            .map(|(_, value)| value.as_str())
            .collect();
        assert!(found.len() <= 1, "{name} stands twice: {self:?}");
        found.first().copied()
    }

    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or(Value::Null)
    }

    pub fn rpc_method(&self) -> String {
        self.json()["method"]
            .as_str()
            .unwrap_or_default()
            .to_owned()
    }

    /// The text that the tool `echo` is called with.
    pub fn text(&self) -> Option<String> {
        let json = self.json();
        (json["method"] == "tools/call").then(|| {
            json["params"]["arguments"]["text"]
                .as_str()
                .unwrap_or_default()
                .to_owned()
        })
    }
}

/// What becomes of the connection after a reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Then {
    Keep,
    Close,
}

/// Something that can be read from and written to: in the clear or not.
pub trait Wire: Read + Write + Send {}
impl<T: Read + Write + Send> Wire for T {}

type Handler = dyn Fn(&Request, &mut dyn Wire) -> io::Result<Then> + Send + Sync;
/// Turns a connection into what is spoken over it.
type Wrap = dyn Fn(TcpStream) -> io::Result<Box<dyn Wire>> + Send + Sync;

/// The server. Dropping it closes all its connections.
pub struct Web {
    pub port: u16,
    shared: Arc<Shared>,
}

struct Shared {
    requests: Mutex<Vec<Request>>,
    sockets: Mutex<Vec<TcpStream>>,
    connections: AtomicUsize,
    stop: AtomicBool,
    handler: Box<Handler>,
    wrap: Box<Wrap>,
}

impl Web {
    /// A server that answers as `handler` says.
    pub fn start(
        handler: impl Fn(&Request, &mut dyn Wire) -> io::Result<Then> + Send + Sync + 'static,
    ) -> Self {
        Self::start_over(handler, |socket| Ok(Box::new(socket)))
    }

    /// The same, over what `wrap` makes of each connection.
    pub fn start_over(
        handler: impl Fn(&Request, &mut dyn Wire) -> io::Result<Then> + Send + Sync + 'static,
        wrap: impl Fn(TcpStream) -> io::Result<Box<dyn Wire>> + Send + Sync + 'static,
    ) -> Self {
        Self::listen(0, Box::new(handler), Box::new(wrap))
    }

    /// The same as [`Web::start`], on this port.
    pub fn start_at(
        port: u16,
        handler: impl Fn(&Request, &mut dyn Wire) -> io::Result<Then> + Send + Sync + 'static,
    ) -> Self {
        Self::listen(
            port,
            Box::new(handler),
            Box::new(|socket| Ok(Box::new(socket))),
        )
    }

    fn listen(port: u16, handler: Box<Handler>, wrap: Box<Wrap>) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", port)).unwrap();
        let port = listener.local_addr().unwrap().port();
        let shared = Arc::new(Shared {
            requests: Mutex::default(),
            sockets: Mutex::default(),
            connections: AtomicUsize::new(0),
            stop: AtomicBool::new(false),
            handler,
            wrap,
        });
        let accepting = Arc::clone(&shared);
        thread::spawn(move || {
            for socket in listener.incoming().flatten() {
                if accepting.stop.load(Ordering::SeqCst) {
                    return;
                }
                accepting.connections.fetch_add(1, Ordering::SeqCst);
                accepting
                    .sockets
                    .lock()
                    .unwrap()
                    .push(socket.try_clone().unwrap());
                let shared = Arc::clone(&accepting);
                thread::spawn(move || drop(serve(&shared, socket)));
            }
        });
        Self { port, shared }
    }

    pub fn url(&self) -> String {
        format!("http://127.0.0.1:{}/mcp", self.port)
    }

    pub fn requests(&self) -> Vec<Request> {
        self.shared.requests.lock().unwrap().clone()
    }

    /// Requests whose body has this method.
    pub fn of_method(&self, method: &str) -> Vec<Request> {
        let mut requests = self.requests();
        requests.retain(|request| request.rpc_method() == method);
        requests
    }

    /// The texts that `echo` was called with, in order.
    pub fn texts(&self) -> Vec<String> {
        self.requests().iter().filter_map(Request::text).collect()
    }

    pub fn connections(&self) -> usize {
        self.shared.connections.load(Ordering::SeqCst)
    }

    /// Closes every connection, as a server that ends does.
    pub fn hang_up(&self) {
        for socket in self.shared.sockets.lock().unwrap().drain(..) {
            let _ = socket.shutdown(Shutdown::Both);
        }
    }
}

impl Drop for Web {
    fn drop(&mut self) {
        self.shared.stop.store(true, Ordering::SeqCst);
        let _ = TcpStream::connect(("127.0.0.1", self.port));
        self.hang_up();
    }
}

fn serve(shared: &Shared, socket: TcpStream) -> io::Result<()> {
    let raw = socket.try_clone()?;
    let mut reader = BufReader::new((shared.wrap)(socket)?);
    while let Some(request) = read(&mut reader)? {
        shared.requests.lock().unwrap().push(request.clone());
        let then = (shared.handler)(&request, reader.get_mut().as_mut());
        if !matches!(then, Ok(Then::Keep)) {
            let _ = raw.shutdown(Shutdown::Both);
            return Ok(());
        }
    }
    Ok(())
}

fn read(reader: &mut BufReader<Box<dyn Wire>>) -> io::Result<Option<Request>> {
    let mut line = String::new();
    if reader.read_line(&mut line)? == 0 {
        return Ok(None);
    }
    let mut words = line.split_whitespace().map(str::to_owned);
    let method = words.next();
    let mut headers = Vec::new();
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line)? == 0 {
            return Ok(None);
        }
        let Some((name, value)) = line.trim_end().split_once(':') else {
            break;
        };
        headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
    }
    let lengths: HashMap<_, _> = headers.iter().cloned().collect();
    let length = lengths
        .get("content-length")
        .map_or(0, |v| v.parse().unwrap());
    let mut body = vec![0; length];
    reader.read_exact(&mut body)?;
    Ok(Some(Request {
        method: method.unwrap_or_default(),
        path: words.next().unwrap_or_default(),
        headers,
        body,
    }))
}

/// A whole reply with a body of this type.
pub fn reply(status: &str, headers: &str, kind: &str, body: &str) -> Vec<u8> {
    format!(
        "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\n{headers}Content-Length: {}\r\n\r\n{body}",
        body.len()
    )
    .into_bytes()
}

pub fn json_reply(body: &Value) -> Vec<u8> {
    reply("200 OK", "", "application/json", &body.to_string())
}

/// A whole stream of these events, each a data field with what stands before it.
pub fn events_reply(events: &[(&str, Value)]) -> Vec<u8> {
    let mut out = EVENTS_HEAD.as_bytes().to_vec();
    for (before, data) in events {
        out.extend(event(before, data));
    }
    out.extend(b"0\r\n\r\n");
    out
}

pub const EVENTS_HEAD: &str =
    "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n";
pub const ACCEPTED: &[u8] = b"HTTP/1.1 202 Accepted\r\nContent-Length: 0\r\n\r\n";
pub const NOT_ALLOWED: &[u8] = b"HTTP/1.1 405 Method Not Allowed\r\nContent-Length: 0\r\n\r\n";

/// One event as a chunk.
pub fn event(before: &str, data: &Value) -> Vec<u8> {
    let data = if data.is_null() {
        String::new()
    } else {
        data.to_string()
    };
    let text = format!("{before}data: {data}\n\n");
    format!("{:x}\r\n{text}\r\n", text.len()).into_bytes()
}

/// The result of `echo`.
pub fn echoed(request: &Request) -> Value {
    json!({"jsonrpc": "2.0", "id": request.json()["id"], "result": {
        "content": [{"type": "text", "text": request.text().unwrap_or_default()}]}})
}

/// An answer without anything in it.
pub fn empty(request: &Request) -> Value {
    json!({"jsonrpc": "2.0", "id": request.json()["id"], "result": {}})
}

/// What a well-behaved server of the Legacy era says; its session is `s-1`.
pub fn behave(request: &Request, wire: &mut dyn Wire) -> io::Result<Then> {
    let bytes = match (request.method.as_str(), request.rpc_method().as_str()) {
        ("GET", _) => NOT_ALLOWED.to_vec(),
        ("DELETE", _) => ACCEPTED.to_vec(),
        (_, "initialize") => reply(
            "200 OK",
            "Mcp-Session-Id: s-1\r\n",
            "application/json",
            &initialized(request).to_string(),
        ),
        (_, "tools/list") => json_reply(&json!({"jsonrpc": "2.0", "id": request.json()["id"],
            "result": {"tools": [{"name": "echo", "inputSchema": {"type": "object"}},
                {"name": "other", "inputSchema": {"type": "object"}},
                {"name": "read_echo", "inputSchema": {"type": "object"},
                 "annotations": {"readOnlyHint": true}}]}})),
        (_, "tools/call") => json_reply(&echoed(request)),
        _ if request.json()["id"].is_null() || request.rpc_method().is_empty() => ACCEPTED.to_vec(),
        _ => json_reply(&empty(request)),
    };
    wire.write_all(&bytes)?;
    Ok(Then::Keep)
}

/// Writes these bytes.
pub fn send(wire: &mut dyn Wire, bytes: &[u8], then: Then) -> io::Result<Then> {
    wire.write_all(bytes)?;
    Ok(then)
}

/// The answer to `initialize`.
pub fn initialized(request: &Request) -> Value {
    let json = request.json();
    json!({"jsonrpc": "2.0", "id": json["id"], "result": {
        "protocolVersion": json["params"]["protocolVersion"],
        "capabilities": {"tools": {}}, "serverInfo": {"name": "web", "version": "1"}}})
}

/// Answers the call of `echo` whose text is `faulty` as told, and everything else well.
pub fn faulty(
    fault: impl Fn(&Request, &mut dyn Wire) -> io::Result<Then> + Send + Sync + 'static,
) -> Web {
    Web::start(move |request, wire| match request.text().as_deref() {
        Some("faulty") => fault(request, wire),
        _ => behave(request, wire),
    })
}

/// A server that knows only its newest session, numbered, and says so with this status.
pub fn forgetful(status: &'static str, body: &'static str) -> (Web, Arc<AtomicUsize>) {
    let newest = Arc::new(AtomicUsize::new(0));
    let known = Arc::clone(&newest);
    let web = Web::start(move |request, wire| {
        if request.rpc_method() == "initialize" {
            assert_eq!(request.header("mcp-session-id"), None);
            let id = known.fetch_add(1, Ordering::SeqCst) + 1;
            let header = format!("Mcp-Session-Id: s-{id}\r\n");
            let body = initialized(request).to_string();
            return send(
                wire,
                &reply("200 OK", &header, "application/json", &body),
                Then::Keep,
            );
        }
        let own = format!("s-{}", known.load(Ordering::SeqCst));
        if request.header("mcp-session-id") != Some(&own) {
            return send(
                wire,
                &reply(status, "", "application/json", body),
                Then::Keep,
            );
        }
        behave(request, wire)
    });
    (web, newest)
}

/// A server that keeps calls of `slow` open until their connection is closed, and counts the ends.
pub fn slow() -> (Web, Arc<AtomicUsize>) {
    let closed = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&closed);
    let web = Web::start(move |request, wire| {
        if request.text().as_deref() != Some("slow") {
            return behave_modern(request, wire);
        }
        wire.write_all(EVENTS_HEAD.as_bytes())?;
        loop {
            if wire.write_all(b"3\r\n:\n\n\r\n").is_err() {
                count.fetch_add(1, Ordering::SeqCst);
                return Ok(Then::Close);
            }
            super::guarded::pause(5);
        }
    });
    (web, closed)
}

/// A server of both eras.
pub fn behave_modern(request: &Request, wire: &mut dyn Wire) -> io::Result<Then> {
    if request.rpc_method() != "server/discover" {
        return behave(request, wire);
    }
    let answer = json!({"jsonrpc": "2.0", "id": request.json()["id"], "result": {
        "resultType": "complete", "supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}},
        "ttlMs": 0, "cacheScope": "private"}});
    send(wire, &json_reply(&answer), Then::Keep)
}

/// A server that hangs up after so many bytes of the reply `of` as the call's text says.
pub fn cut_off(of: fn(&Request) -> Vec<u8>) -> Web {
    Web::start(move |request, wire| {
        let Some(count) = request.text().and_then(|text| text.parse::<usize>().ok()) else {
            return behave(request, wire);
        };
        let whole = of(request);
        // Who hangs up after the whole reply races with the next call, which is another fault.
        match whole.get(..count) {
            Some(part) if part.len() < whole.len() => send(wire, part, Then::Close),
            _ => send(wire, &whole, Then::Keep),
        }
    })
}

/// How long the reply `of` is, to a call with an id and a text of three digits.
pub fn whole(of: fn(&Request) -> Vec<u8>) -> usize {
    of(&Request {
        method: "POST".into(),
        path: String::new(),
        headers: Vec::new(),
        body: br#"{"id":100,"method":"tools/call","params":{"arguments":{"text":"100"}}}"#.to_vec(),
    })
    .len()
}
