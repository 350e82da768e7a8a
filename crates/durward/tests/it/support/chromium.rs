//! A real browser, spoken to over the pipes of its debugging protocol: no port, no driver, no network.

use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

/// How long the browser may take over one thing.
const PATIENCE: Duration = Duration::from_secs(60);
/// Quiet flags: without them it looks for updates and the like.
const FLAGS: [&str; 12] = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--disable-dev-shm-usage",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-default-apps",
    "--disable-sync",
    "--hide-scrollbars",
    "--remote-debugging-pipe",
];

/// The browser of the system, or `None` with a word on standard error. Continuous integration has one.
pub fn installed() -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let found = std::env::split_paths(&path)
        .flat_map(|dir| ["chromium", "chromium-browser", "google-chrome"].map(|n| dir.join(n)))
        .find(|file| file.exists());
    if found.is_none() {
        assert!(
            std::env::var_os("CI").is_none(),
            "chromium is missing: run scripts/setup-tests"
        );
        eprintln!("skipped: chromium is missing: run scripts/setup-tests");
    }
    found
}

/// A page in a browser. Dropping it ends the browser.
pub struct Browser {
    child: Child,
    input: File,
    messages: Receiver<Value>,
    session: Option<String>,
    next: u64,
    /// Everything it reported that answered nothing.
    pub events: Vec<Value>,
}

impl Browser {
    /// Starts it with a profile of its own below `place`, and opens an empty page.
    pub fn start(program: &Path, place: &Path) -> Self {
        let (to, from) = (place.join("browser-in"), place.join("browser-out"));
        for pipe in [&to, &from] {
            assert!(Command::new("mkfifo").arg(pipe).status().unwrap().success());
        }
        let script = "exec 3<\"$1\" 4>\"$2\"; shift 2; exec \"$@\"";
        let child = Command::new("sh")
            .args(["-c", script, "sh"])
            .args([&to, &from])
            .arg(program)
            .args(FLAGS)
            .arg(format!(
                "--user-data-dir={}",
                place.join("profile").display()
            ))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let input = File::options().write(true).open(&to).unwrap();
        let output = BufReader::new(File::open(&from).unwrap());
        let (tell, messages) = sync_channel(10_000);
        std::thread::spawn(move || {
            for message in output.split(0) {
                let Ok(message) = message else { return };
                let value = serde_json::from_slice(&message).unwrap_or_default();
                if tell.send(value).is_err() {
                    return;
                }
            }
        });
        let mut browser = Self {
            child,
            input,
            messages,
            session: None,
            next: 1,
            events: Vec::new(),
        };
        let target = browser.ask("Target.createTarget", json!({ "url": "about:blank" }));
        let attached = browser.ask(
            "Target.attachToTarget",
            json!({ "targetId": target["targetId"], "flatten": true }),
        );
        browser.session = attached["sessionId"].as_str().map(str::to_owned);
        for domain in ["Page", "Network", "Runtime", "Log"] {
            browser.ask(&format!("{domain}.enable"), json!({}));
        }
        browser
    }

    /// One command of the protocol; its result.
    pub fn ask(&mut self, method: &str, params: Value) -> Value {
        let id = self.next;
        self.next += 1;
        let mut message = json!({ "id": id, "method": method, "params": params });
        if let Some(session) = &self.session {
            message["sessionId"] = json!(session);
        }
        let mut bytes = message.to_string().into_bytes();
        bytes.push(0);
        self.input.write_all(&bytes).unwrap();
        let end = Instant::now() + PATIENCE;
        loop {
            let message = self.next_message(end, method);
            if message["id"] == id {
                assert!(message["error"].is_null(), "{method}: {message}");
                return message["result"].clone();
            }
            self.events.push(message);
        }
    }

    /// Opens an address and waits until all of it is there.
    pub fn open(&mut self, url: &str) {
        self.events.clear();
        self.ask("Page.navigate", json!({ "url": url }));
        let end = Instant::now() + PATIENCE;
        while !self
            .events
            .iter()
            .any(|e| e["method"] == "Page.loadEventFired")
        {
            let message = self.next_message(end, "the page");
            self.events.push(message);
        }
    }

    /// The value of an expression in the page.
    pub fn value(&mut self, expression: &str) -> Value {
        let found = self.ask(
            "Runtime.evaluate",
            json!({ "expression": expression, "returnByValue": true }),
        );
        found["result"]["value"].clone()
    }

    fn next_message(&mut self, end: Instant, what: &str) -> Value {
        let left = end.saturating_duration_since(Instant::now());
        match self.messages.recv_timeout(left) {
            Ok(message) => message,
            Err(RecvTimeoutError::Timeout) => panic!("the browser is silent about {what}"),
            Err(RecvTimeoutError::Disconnected) => panic!("the browser ended during {what}"),
        }
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
