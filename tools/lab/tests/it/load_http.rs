//! Load over Streamable HTTP, on a mock in both revisions.

use crate::support::{document, lab_path};
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

struct Ended(Child);

impl Drop for Ended {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn a_tool_over_http_in_both_revisions() {
    let mock = Command::new(lab_path())
        .args(["mock", "echo", "--http", "127.0.0.1:0"])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut mock = Ended(mock);
    let mut url = String::new();
    let mut output = BufReader::new(mock.0.stdout.take().unwrap());
    output.read_line(&mut url).unwrap();
    for protocol in ["2025-11-25", "2026-07-28"] {
        let more = ["--workers", "2", "--duration", "300ms", "--json", "--quiet"];
        let output = Command::new(lab_path())
            .args([
                "load",
                "tool",
                "--target",
                url.trim(),
                "--protocol",
                protocol,
            ])
            .args(more)
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{protocol}: {said}");
        let found = document(&output);
        let phase = &found["phases"][0];
        assert_eq!(phase["calls"], phase["ok"], "{protocol}: {phase}");
        assert!(phase["ok"].as_u64() > Some(0));
    }
}
