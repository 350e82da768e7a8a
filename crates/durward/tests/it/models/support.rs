//! A gateway before providers, and a provider over HTTP that plays the scripts of `models::mock`.

use std::fs;
use std::io::{self, BufRead as _, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use models::mock::{Api, Options, Step, answer};
use serde_json::{Value, json};

use crate::support::components;
use crate::support::guarded::{Place, pause};
use crate::support::serving::{Answer, Served};
use crate::support::web::{Request, Then, Web, Wire};

/// The endpoints that answer and stream: path, and the longest that a reply may be there.
pub const ENDPOINTS: [&str; 3] = ["/v1/chat/completions", "/v1/messages", "/v1/responses"];

/// Each endpoint, and that of a provider which speaks the same dialect or another one.
pub const PAIRS: [(&str, &str); 6] = [
    (ENDPOINTS[0], ENDPOINTS[0]),
    (ENDPOINTS[1], ENDPOINTS[1]),
    (ENDPOINTS[2], ENDPOINTS[2]),
    (ENDPOINTS[0], ENDPOINTS[1]),
    (ENDPOINTS[1], ENDPOINTS[0]),
    (ENDPOINTS[2], ENDPOINTS[1]),
];

/// A provider that a driver in `drivers/models` plays. Ends when dropped.
pub struct Played {
    child: Child,
    /// Where it listens on this machine.
    pub port: String,
}

impl Played {
    /// Starts the driver, which prints its port first.
    pub fn start(python: PathBuf, driver: &str, arguments: &[&Path]) -> Self {
        let mut child = Command::new(python)
            .arg(components::models_driver(driver))
            .args(arguments)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut port = String::new();
        let mut lines = BufReader::new(child.stdout.take().unwrap());
        lines.read_line(&mut port).unwrap();
        let port = port.trim().to_owned();
        assert!(!port.is_empty(), "{driver} ended before it listened");
        Self { child, port }
    }
}

impl Drop for Played {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Allows models and nothing else.
pub const ALLOW: &str =
    r#"{"id":"allow-models","effect":"allow","conditions":{"resource_type":"model"}}"#;

/// A place with this configuration, and these rules beside [`ALLOW`].
pub fn place(yaml: &str, rules: &[&str]) -> Place {
    let place = Place::new();
    let rules = [&[ALLOW], rules].concat().join(",");
    let policy = format!(r#"{{"version":"1","default_action":"deny","rules":[{rules}]}}"#);
    place.write_policy(&policy);
    let text = format!("{yaml}\npolicy: policy.json\n");
    fs::write(place.path("durward.yaml"), text).unwrap();
    place
}

/// Serves what the configuration names.
pub fn serve(yaml: &str, rules: &[&str]) -> Served {
    Served::start_ruled(place(yaml, rules))
}

/// The request to a model, in the words of the endpoint.
pub fn request(path: &str, model: &str, streams: bool) -> Value {
    let turns = json!([{ "role": "user", "content": "hello" }]);
    let mut body = match path {
        "/v1/messages" => json!({ "max_tokens": 100, "messages": turns }),
        "/v1/responses" => json!({ "input": "hello" }),
        _ => json!({ "messages": turns }),
    };
    body["model"] = json!(model);
    if streams {
        body["stream"] = json!(true);
    }
    body
}

/// Asks a model.
pub fn ask(served: &Served, path: &str, model: &str, streams: bool) -> Answer {
    served.send(
        "POST",
        path,
        &[],
        &request(path, model, streams).to_string(),
    )
}

/// The closed label in an error of either dialect.
pub fn code(error: &Value) -> &str {
    let openai = error.pointer("/error/code");
    let anthropic = error.pointer("/error/details/error_code");
    let code = openai.or(anthropic).and_then(Value::as_str);
    code.unwrap_or_else(|| panic!("no error of a dialect: {error}"))
}

/// The data of the events of a stream.
pub fn events(answer: &Answer) -> Vec<String> {
    assert_eq!(
        answer.header("content-type"),
        Some("text/event-stream; charset=utf-8"),
        "{answer:?}"
    );
    let data = answer
        .body
        .lines()
        .filter_map(|line| line.strip_prefix("data: "));
    data.map(str::to_owned).collect()
}

/// Reads up to this mark.
pub fn read_until(reader: &mut impl Read, mark: &str) -> String {
    let mut seen = String::new();
    while !seen.ends_with(mark) {
        let mut byte = [0];
        reader.read_exact(&mut byte).unwrap();
        seen.push(byte[0].into());
    }
    seen
}

/// What the file of budgets says was used, over all accounts.
pub fn used(place: &Place) -> u64 {
    let text = fs::read_to_string(place.path("state/budgets")).unwrap();
    let of = |line: &str| line.rsplit('\t').next().unwrap().parse::<u64>().unwrap();
    text.lines().map(of).sum()
}

/// What the journal says was used.
pub fn journalled(place: &Place) -> u64 {
    let journal = place.records();
    let number = |usage: &Value, name: &str| usage[name].as_u64().unwrap_or(0);
    let operations = journal.operations();
    let usages = operations.iter().map(|operation| &operation["usage"]);
    usages
        .map(|usage| number(usage, "input_tokens") + number(usage, "output_tokens"))
        .sum()
}

/// A provider over HTTP.
pub struct Upstream {
    pub web: Web,
    /// Connections that were closed while it had not ended its reply.
    pub closed: Arc<AtomicUsize>,
}

impl Upstream {
    /// A provider that plays the scripts.
    pub fn start() -> Self {
        Self::before(|_| None)
    }

    /// The same, where `first` has no answer of its own.
    pub fn before(first: impl Fn(&Request) -> Option<Vec<u8>> + Send + Sync + 'static) -> Self {
        let closed = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&closed);
        let web = Web::start(move |request, wire| match first(request) {
            Some(bytes) => {
                wire.write_all(&bytes)?;
                Ok(Then::Keep)
            }
            None => play(request, wire, &count),
        });
        Self { web, closed }
    }

    /// A provider of this name in a configuration. `path` tells whose words are spoken.
    pub fn configured(&self, name: &str, path: &str) -> String {
        let kind = if path == "/v1/messages" {
            "anthropic"
        } else {
            "openai"
        };
        let port = self.web.port;
        format!(
            "{name}: {{ kind: {kind}, base_url: \"http://127.0.0.1:{port}/v1\", api_key: \"${{HOME}}\" }}"
        )
    }

    /// Requests that came.
    pub fn count(&self) -> usize {
        self.web.requests().len()
    }

    pub fn closed(&self) -> usize {
        self.closed.load(Ordering::SeqCst)
    }
}

fn play(request: &Request, wire: &mut dyn Wire, closed: &AtomicUsize) -> io::Result<Then> {
    let api = match request.path.as_str() {
        "/v1/messages" => Api::Messages,
        "/v1/responses" => Api::Responses,
        "/v1/embeddings" => Api::Embeddings,
        "/v1/messages/count_tokens" => Api::CountTokens,
        _ => Api::Chat,
    };
    let reply = answer(api, &request.body, Options { token_ms: 1 }, 0);
    if reply.head_ms > 0 {
        return until_closed(wire, closed);
    }
    let mut head = format!(
        "HTTP/1.1 {} x\r\nTransfer-Encoding: chunked\r\n",
        reply.status
    );
    for (name, value) in &reply.headers {
        head.push_str(&format!("{name}: {value}\r\n"));
    }
    wire.write_all(format!("{head}\r\n").as_bytes())?;
    for step in reply.steps {
        match step {
            Step::Wait(ms) => pause(ms),
            Step::Stall => return until_closed(wire, closed),
            Step::Cut => return Ok(Then::Close),
            Step::Bytes(bytes) => {
                let size = format!("{:x}\r\n", bytes.len());
                let parts = [size.as_bytes(), &bytes, b"\r\n"];
                if wire.write_all(&parts.concat()).is_err() {
                    closed.fetch_add(1, Ordering::SeqCst);
                    return Ok(Then::Close);
                }
            }
        }
    }
    wire.write_all(b"0\r\n\r\n")?;
    Ok(Then::Keep)
}

/// Says nothing until the other side has closed.
fn until_closed(wire: &mut dyn Wire, closed: &AtomicUsize) -> io::Result<Then> {
    let mut byte = [0];
    let read = wire.read(&mut byte);
    assert!(
        !matches!(read, Ok(1)),
        "nobody sends a second request meanwhile"
    );
    closed.fetch_add(1, Ordering::SeqCst);
    Ok(Then::Close)
}
