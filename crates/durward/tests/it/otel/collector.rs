//! A collector that keeps what it is sent.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::Command;
use std::sync::{Arc, Mutex};

use serde_json::Value;

use crate::support::components::{otel_python, repository};
use crate::support::guarded::PATIENCE;

/// A request as it came.
#[derive(Clone)]
pub struct Kept {
    pub head: String,
    pub body: Vec<u8>,
}

impl Kept {
    fn carries(&self, signal: &str) -> bool {
        self.head.starts_with(&format!("POST /base/v1/{signal} "))
    }
}

/// What it answers: one status after the other, the last one for good. `None`: nothing, ever.
pub type Answers = Option<&'static [&'static str]>;

pub struct Collector {
    pub port: u16,
    kept: Arc<Mutex<Vec<Kept>>>,
}

impl Collector {
    pub fn start(answers: Answers) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let kept = Arc::new(Mutex::new(Vec::new()));
        let (own, answered) = (Arc::clone(&kept), Arc::new(Mutex::new(0)));
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let (own, answered) = (Arc::clone(&own), Arc::clone(&answered));
                std::thread::spawn(move || answer(stream.unwrap(), answers, &own, &answered));
            }
        });
        Self { port, kept }
    }

    pub fn kept(&self) -> Vec<Kept> {
        self.kept.lock().unwrap().clone()
    }

    /// How many requests came with this signal.
    pub fn number_of(&self, signal: &str) -> usize {
        let kept = self.kept.lock().unwrap();
        kept.iter().filter(|kept| kept.carries(signal)).count()
    }

    /// The bodies sent to `/v1/traces` or `/v1/metrics`, decoded; `None` where the decoder is missing.
    pub fn decoded(&self, signal: &str, place: &Path) -> Option<Vec<Value>> {
        let python = otel_python()?;
        let mut files = Vec::new();
        for (number, kept) in self.kept().iter().enumerate() {
            if kept.carries(signal) {
                let file = place.join(format!("{signal}-{number}"));
                std::fs::write(&file, &kept.body).unwrap();
                files.push(file);
            }
        }
        let script = repository().join("crates/durward/tests/drivers/otel/decode.py");
        let output = Command::new(python)
            .arg(script)
            .args(&files)
            .output()
            .unwrap();
        assert!(output.status.success(), "{output:?}");
        let text = String::from_utf8(output.stdout).unwrap();
        Some(
            text.lines()
                .map(|line| serde_json::from_str(line).unwrap())
                .collect(),
        )
    }
}

fn answer(
    mut stream: TcpStream,
    answers: Answers,
    kept: &Mutex<Vec<Kept>>,
    answered: &Mutex<usize>,
) {
    while let Some(request) = request(&mut stream) {
        let is_traces = request.head.contains("/v1/traces ");
        kept.lock().unwrap().push(request);
        let Some(statuses) = answers else {
            // The connection stays open, and nothing comes.
            continue;
        };
        let status = if is_traces {
            let mut answered = answered.lock().unwrap();
            *answered += 1;
            statuses[(*answered - 1).min(statuses.len() - 1)]
        } else {
            "200 OK"
        };
        let answer = format!("HTTP/1.1 {status}\r\ncontent-length: 0\r\n\r\n");
        if stream.write_all(answer.as_bytes()).is_err() {
            return;
        }
    }
}

/// The next request; `None` at the end of the connection.
fn request(stream: &mut TcpStream) -> Option<Kept> {
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    let (mut bytes, mut part) = (Vec::new(), [0; 4_096]);
    loop {
        let end = bytes.windows(4).position(|four: &[u8]| four == b"\r\n\r\n");
        if let Some(end) = end {
            let head = String::from_utf8(bytes[..end].to_vec()).unwrap();
            let lower = head.to_ascii_lowercase();
            let length = lower.split("content-length: ").nth(1).unwrap();
            let length: usize = length.lines().next().unwrap().parse().unwrap();
            if bytes.len() >= end + 4 + length {
                let body = bytes[end + 4..end + 4 + length].to_vec();
                return Some(Kept { head, body });
            }
        }
        match stream.read(&mut part) {
            Ok(read) if read > 0 => bytes.extend_from_slice(&part[..read]),
            _ => return None,
        }
    }
}
