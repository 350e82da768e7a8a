//! W1: what is silent for longer than a proxy waits gets through a real nginx with the settings that it comes with.

use std::fs;
use std::io::BufReader;
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::support::approver::{self, ask, sockets};
use crate::support::components;
use crate::support::guarded::{Place, eventually, pause};
use crate::support::serving::{Served, read_answer, write_request};

/// Longer than the 60 s after which nginx gives up a server that says nothing.
const QUIET: Duration = Duration::from_secs(90);
/// The longest wait for an answer that must come.
const PATIENCE: Duration = Duration::from_secs(150);

const POLICY: &str = r#"{"rules":[
    {"id":"ask","effect":"hitl","conditions":{"tool_name":"echo"}},
    {"id":"quiet","effect":"allow","conditions":{"tool_name":"delayed"}}]}"#;

/// nginx before an address, killed when dropped.
struct Nginx {
    child: Child,
    port: u16,
    _folder: Place,
}

impl Nginx {
    fn start(program: &std::path::Path, before: &str) -> Self {
        let port = mocks::ports::reserved().unwrap();
        let folder = Place::new();
        let at = |name: &str| folder.path(name).display().to_string();
        // Where it may write is given; how it treats what it passes on is left as it comes.
        let temporary = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
            .map(|kind| format!("{kind}_temp_path {};", at(kind)))
            .concat();
        let text = format!(
            "daemon off; master_process off; pid {}; error_log {};\nevents {{}}\nhttp {{ access_log off; {temporary}\nserver {{ listen 127.0.0.1:{port}; location / {{ proxy_pass http://{before}; }} }} }}\n",
            at("pid"),
            at("errors"),
        );
        fs::write(folder.path("nginx.conf"), text).unwrap();
        let child = Command::new(program)
            .args(["-p", &at(""), "-e", &at("errors"), "-c", &at("nginx.conf")])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        eventually("nginx listens", || {
            TcpStream::connect(("127.0.0.1", port)).is_ok()
        });
        Self {
            child,
            port,
            _folder: folder,
        }
    }

    /// Calls a tool of a session and gives the answer and how long it took.
    fn call(&self, session: &str, tool: &str, arguments: &Value) -> (Value, Duration) {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        let params = json!({"name": tool, "arguments": arguments});
        let body = json!({"jsonrpc": "2.0", "id": tool, "method": "tools/call", "params": params});
        let begun = Instant::now();
        let headers = [("mcp-session-id", session)];
        write_request(
            &mut stream,
            "POST",
            "/mcp/echo",
            &headers,
            &body.to_string(),
        );
        let answer = read_answer(&mut BufReader::new(stream));
        assert_eq!(answer.status, 200, "{tool}: {answer:?}");
        (answer.json(), begun.elapsed())
    }
}

impl Drop for Nginx {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Says yes to the one question that waits, after this long.
fn allow_after(place: &Place, wait: Duration) {
    std::thread::sleep(wait);
    let socket = &sockets(&place.runtime().join("durward"))[0];
    let waits = approver::waiting(socket).unwrap();
    let [id] = waits.as_slice() else {
        panic!("one call has to wait: {waits:?}");
    };
    let answered = ask(socket, &json!({"do": "answer", "id": id, "answer": "once"})).unwrap();
    assert!(answered.get("ok").is_some(), "{answered}");
}

#[test]
fn w1_a_quiet_call_and_an_approval_of_ninety_seconds_get_through_nginx() {
    let Some(program) = components::nginx() else {
        return;
    };
    let place = Place::new();
    place.write_policy(POLICY);
    let served = Served::start_in(place, &["--approval-timeout", "140"]);
    let nginx = Nginx::start(&program, &served.address.to_string());
    let session = served.open("2025-11-25");
    let (quiet, asked) = std::thread::scope(|scope| {
        let delay_us = u64::try_from(QUIET.as_micros()).unwrap();
        let arguments = json!({"text": "quiet", "delay_us": delay_us});
        let (nginx, session) = (&nginx, session.as_str());
        let quiet = scope.spawn(move || nginx.call(session, "delayed", &arguments));
        let asked = scope.spawn(move || nginx.call(session, "echo", &json!({"text": "asked"})));
        // The calls are under way by then; the answer comes late.
        pause(500);
        allow_after(&served.place, QUIET);
        (quiet.join().unwrap(), asked.join().unwrap())
    });
    for ((answer, took), text) in [(quiet, "quiet"), (asked, "asked")] {
        assert_eq!(answer["result"]["content"][0]["text"], text, "{answer}");
        assert!(took >= QUIET, "{text}: {took:?}");
    }
}
