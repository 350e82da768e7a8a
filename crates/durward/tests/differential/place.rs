//! The folder of one run: policy, state, and the book of what was executed.

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

use mocks::ambiguous::{ArgumentStream, HiddenCall};
use serde_json::{Value, json};

pub use crate::program::binary;

/// Limits that no run meets.
pub const LIMITS: [&str; 8] = [
    "--limit-requests",
    "1000000/s",
    "--limit-burst",
    "1000000",
    "--limit-tool-calls",
    "1000000",
    "--limit-concurrency",
    "1000",
];

/// Dropping it removes it.
pub struct Place {
    pub dir: PathBuf,
    /// The syntax that the gate does not read in strings: debug builds alone know the variable.
    pub blind: Option<&'static str>,
}

impl Place {
    /// A place whose policy allows two tools below one folder.
    pub fn new() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("durward-differential-{}-{number}", std::process::id());
        let dir = std::env::temp_dir().join(name);
        let _ = fs::remove_dir_all(&dir);
        fs::create_dir_all(dir.join("runtime")).unwrap();
        let rule = |id: &str, tool: &str| {
            let conditions = json!({
                "tool_name": tool,
                "path_pattern": format!("{}/**", HiddenCall::ALLOWED),
            });
            json!({ "id": id, "effect": "allow", "conditions": conditions })
        };
        let rules = [
            rule("note", HiddenCall::TOOL),
            rule("notes", ArgumentStream::TOOL),
        ];
        let policy = json!({ "version": "1", "default_action": "deny", "rules": rules });
        fs::write(dir.join("policy.json"), policy.to_string()).unwrap();
        Self { dir, blind: None }
    }

    /// Where the server writes what it executes.
    pub fn book(&self) -> PathBuf {
        self.dir.join("executed")
    }

    /// A command that runs here.
    pub fn command(&self, program: impl AsRef<std::ffi::OsStr>) -> Command {
        let mut command = Command::new(program);
        command
            .current_dir(&self.dir)
            .env("XDG_RUNTIME_DIR", self.dir.join("runtime"))
            .env("DIFFERENTIAL_LOG", self.book())
            .stderr(Stdio::null());
        if let Some(syntax) = self.blind {
            command.env("DURWARD_BLIND_READER", syntax);
        }
        command
    }

    /// What was executed, in order.
    pub fn executed(&self) -> Vec<Value> {
        let text = fs::read_to_string(self.book()).unwrap_or_default();
        // What cannot be read (half a surrogate pair, as it reaches a server without a gate) is nothing that was allowed.
        let unread = |line| json!({ "tool": line, "paths": [] });
        let lines = text.lines();
        lines
            .map(|line| serde_json::from_str(line).unwrap_or_else(|_| unread(line)))
            .collect()
    }

    /// The decisions in the journal.
    pub fn decisions(&self) -> Vec<Value> {
        let records = self.records().into_iter();
        records
            .filter(|record| record["kind"] == "decision")
            .collect()
    }

    /// How many calls were let through and have no end in the journal yet.
    pub fn under_way(&self) -> usize {
        let records = self.records();
        let count = |key: &str, value: &str| records.iter().filter(|r| r[key] == value).count();
        count("decision", "allow").saturating_sub(count("kind", "operation"))
    }

    fn records(&self) -> Vec<Value> {
        let output = self
            .command(binary())
            .args(["audit", "--state-dir", "state", "show", "--json"])
            .args(["--limit", "1000000"])
            .stdin(Stdio::null())
            .output()
            .unwrap();
        assert!(output.status.success(), "{output:?}");
        let text = String::from_utf8(output.stdout).unwrap();
        let records = text.lines().map(|line| serde_json::from_str(line).unwrap());
        records.collect()
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.dir);
    }
}
