//! A job on a host goes on when this program is killed, and the next one finds it.

use std::fs;
use std::path::Path;
use std::time::Instant;

use serde_json::{Value, json};

use crate::ssh_serve::{call_at, opened};
use crate::ssh_server::{has_sshd, target};
use crate::support::guarded::{PATIENCE, Place};
use crate::support::serving::Served;

#[test]
fn a_job_goes_on_when_this_program_is_killed_and_is_found_again() {
    if !has_sshd() {
        return;
    }
    let place = Place::new();
    let _sshd = target(&place);
    let (gate, count, home) = (place.path("go"), place.path("count"), place.path("home"));
    let mut served = Served::start_configured(place);
    let session = opened(&served, "/mcp/ssh");
    let call = |served: &Served, session: &str, tool: &str, arguments: Value| {
        let said = call_at(served, "/mcp/ssh", session, tool, arguments);
        assert_ne!(said["result"]["isError"], true, "{said}");
        said["result"]["structuredContent"].clone()
    };
    let connected = call(&served, &session, "ssh_connect", json!({"host": "web"}));
    let script = format!(
        "echo begun; pwd >{}; echo 1 >>{}; while [ ! -e {} ]; do sleep 0.1; done; echo over; exit 5",
        home.display(),
        count.display(),
        gate.display()
    );
    // A script of its own: words of a command that look like paths are looked up.
    let path = served.place.path("script");
    fs::write(&path, script).unwrap();
    let script = format!("sh {}", path.display());
    let arguments = json!({"session_id": connected["session_id"], "command": script});
    let started = call(&served, &session, "ssh_job_start", arguments);
    assert_eq!(started["state"], "running", "{started}");
    served.process.kill().unwrap();
    let (code, place) = served.ended();
    assert_eq!(code, None);
    // It ends while nobody follows it.
    fs::write(gate, "").unwrap();
    let served = Served::start_configured(place);
    // Nobody asks for it: its output is fetched all the same, and its directory at the host is removed then.
    let name = started["job"].as_str().unwrap().rsplit(':').next().unwrap();
    let home = fs::read_to_string(home).unwrap();
    let kept = Path::new(home.trim())
        .join(".cache/durward/jobs")
        .join(name);
    let began = Instant::now();
    while kept.exists() {
        assert!(began.elapsed() < PATIENCE, "{} is there", kept.display());
        std::thread::yield_now();
    }
    let session = opened(&served, "/mcp/ssh");
    let began = Instant::now();
    let status = loop {
        let arguments = json!({"job": started["job"], "wait_ms": 10_000});
        let status = call(&served, &session, "ssh_job_status", arguments);
        if status["state"] != "running" {
            break status;
        }
        assert!(began.elapsed() < PATIENCE, "{status}");
    };
    assert_eq!(
        (&status["state"], &status["exit_code"]),
        (&json!("failed"), &json!(5)),
        "{status}"
    );
    let arguments = json!({"job": started["job"]});
    let output = call(&served, &session, "ssh_job_output", arguments);
    assert_eq!(output["content"], "begun\nover\n");
    assert_eq!(fs::read_to_string(count).unwrap(), "1\n", "it began once");
}
