//! `durward serve` in a place of its own, and mocks over HTTP behind it or beside it.

use std::fs;

use mcp::client::{Era, HttpClient, HttpOptions, Process};
use rustix::process::Signal;
use serde_json::{Value, json};

use super::guarded::{PATIENCE, Place, binary};
use crate::support::program::lab_binary;

/// A running `durward serve`. Dropping it kills it.
pub struct Served {
    process: Process,
    /// `http://HOST:PORT`
    pub address: String,
}

impl Served {
    /// Serves `servers` (the object of the configuration) under the place's policy and state.
    pub fn start(place: &Place, servers: &Value) -> Self {
        let policy = place.path("policy.json");
        // Raised, so that no test meets them by accident; with a window that is full long before memory is weighed.
        let limits = json!({"requests": {"rate": "1000000/s", "burst": 1_000_000},
            "per_tool": {"calls": 1_000_000, "window": "1s"}, "concurrency": 1_000});
        let configuration = json!({"servers": servers, "policy": policy, "limits": limits});
        let file = place.path("durward.yaml");
        // JSON is YAML.
        fs::write(&file, configuration.to_string()).unwrap();
        let state = place.path("state");
        let args = ["serve", "--listen", "127.0.0.1:0", "--config"].map(str::to_owned);
        let files = [
            file.to_str().unwrap(),
            "--state-dir",
            state.to_str().unwrap(),
        ];
        let args = args.into_iter().chain(files.map(str::to_owned));
        let mut process = Process::spawn(binary().as_ref(), args, &place.options()).unwrap();
        let line = String::from_utf8(process.read_line().unwrap()).unwrap();
        let (_, address) = line.split_once("listening at ").unwrap();
        Self {
            address: address.trim().to_owned(),
            process,
        }
    }

    /// The endpoint of one server.
    pub fn url(&self, name: &str) -> String {
        format!("{}/mcp/{name}", self.address)
    }

    pub fn pid(&self) -> u32 {
        self.process.pid()
    }

    /// Asks it to end and waits until it has; returns the exit code.
    pub fn end(mut self) -> Option<i32> {
        self.process.signal(Signal::TERM).unwrap();
        let status = self.process.wait_within(PATIENCE).unwrap();
        status.unwrap_or_else(|| panic!("it does not end")).code()
    }
}

/// A mock over HTTP. Dropping it kills it.
pub struct Site {
    process: Process,
    pub url: String,
}

impl Site {
    /// Starts `durward-lab mock WORDS --http ADDRESS`.
    pub fn start(place: &Place, words: &[&str], address: &str) -> Self {
        let args = [&["mock"], words, &["--http", address]].concat();
        let mut process = Process::spawn(lab_binary().as_ref(), args, &place.options()).unwrap();
        let url = String::from_utf8(process.read_line().unwrap()).unwrap();
        Self { process, url }
    }

    /// The same at an address where another can be started when this one is gone.
    pub fn start_to_return(place: &Place, words: &[&str]) -> Self {
        let port = mocks::ports::reserved().unwrap();
        Self::start(place, words, &format!("127.0.0.1:{port}"))
    }

    /// `HOST:PORT`
    pub fn address(&self) -> &str {
        let rest = self.url.strip_prefix("http://").unwrap();
        rest.split_once('/').unwrap().0
    }

    pub fn kill(self) {
        self.process.signal(Signal::KILL).unwrap();
    }
}

/// A mock behind `durward serve` as the configuration names it: started over stdio, counting.
pub fn stdio_mock(place: &Place, kind: &str) -> Value {
    let words = place.mock(&[kind]);
    let (command, args) = words.split_first().unwrap();
    json!({"command": command, "args": args})
}

/// A raw client with the handshake done.
pub fn ready(url: &str, era: Era) -> HttpClient {
    let options = HttpOptions {
        timeout: PATIENCE,
        ..HttpOptions::default()
    };
    let mut client = HttpClient::new(url, options).unwrap();
    client.handshake(era).unwrap();
    client
}
