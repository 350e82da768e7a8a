//! The place a standard run plays in: a directory that is gone afterwards, and the arms made for it.

use super::policies;
use crate::arm::Arm;
use crate::driver::Operation;
use crate::error::LabError;
use serde_json::{Value, json};
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

/// The paper's policies name /tmp, so the files must be there.
const BASE: &str = "/tmp";
/// The paper's file: five lines, about 200 bytes.
const TEXT: &str = "The first of five lines of a small test file.\n\
    The second one holds nothing of interest.\n\
    The third is a little longer than the second.\n\
    The fourth is short.\n\
    The fifth and last line ends the file here.\n";

/// Limits are raised, never switched off: what is measured counts every call.
const RAISED_LIMITS: [&str; 8] = [
    "--limit-requests",
    "1000000/s",
    "--limit-burst",
    "1000000",
    "--limit-tool-calls",
    "1000000",
    "--limit-concurrency",
    "1024",
];

/// A rule set of the standard run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Rules {
    AllowAll,
    Four,
    Mixed(usize),
}

/// A mock server of the standard run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Server {
    Echo,
    Files,
}

/// Files, rule sets and state directories. Removed when dropped.
#[derive(Debug)]
pub(super) struct Scene {
    root: PathBuf,
    own_binary: PathBuf,
}

impl Rules {
    /// How tables call it.
    pub(super) fn name(self) -> String {
        match self {
            Self::AllowAll => "allow-all".into(),
            Self::Four => "4 rules".into(),
            Self::Mixed(count) => format!("{count} rules"),
        }
    }

    fn document(self) -> Value {
        match self {
            Self::AllowAll => policies::allow_all(),
            Self::Four => policies::four(),
            Self::Mixed(count) => policies::mixed(count),
        }
    }
}

impl Scene {
    /// Makes the directory and its two files.
    pub(super) fn set(own_binary: &Path) -> Result<Self, LabError> {
        let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
        let moment = since.map_or(0, |d| d.as_nanos());
        let name = format!("durward-lab-{}-{moment}", std::process::id());
        let scene = Self {
            root: Path::new(BASE).join(name),
            own_binary: own_binary.to_path_buf(),
        };
        // `create_dir` refuses what exists already, a link included.
        fs::create_dir(&scene.root).map_err(|source| path_error(&scene.root, source))?;
        let work = scene.root.join("work");
        fs::create_dir(&work).map_err(|source| path_error(&work, source))?;
        for file in [scene.readable(), scene.forbidden()] {
            fs::write(&file, TEXT).map_err(|source| path_error(&file, source))?;
        }
        Ok(scene)
    }

    /// A file that every rule set lets the tool `read_file` read.
    fn readable(&self) -> PathBuf {
        self.root.join("work/mcp-acp-test.txt")
    }

    /// A file whose extension the four rules deny.
    fn forbidden(&self) -> PathBuf {
        self.root.join("work/private.key")
    }

    /// The paper's call.
    pub(super) fn read(&self) -> Operation {
        read_file(&self.readable())
    }

    /// The same call on a file that the rules deny.
    pub(super) fn read_forbidden(&self) -> Operation {
        read_file(&self.forbidden())
    }

    /// The server by itself.
    pub(super) fn direct(&self, server: Server) -> Arm {
        Arm::new("direct", self.server(server))
    }

    /// The server behind a bare relay.
    pub(super) fn relayed(&self, server: Server) -> Arm {
        let mut command = self.own(&["lab", "mock", "relay", "--"]);
        command.extend(self.server(server));
        Arm::new("bare relay", command)
    }

    /// The server behind `durward run`, with a state directory of its own.
    pub(super) fn guarded(&self, server: Server, rules: Rules) -> Result<Arm, LabError> {
        let name = rules.name();
        let policy = self.root.join(format!("policy {name}.json"));
        fs::write(&policy, rules.document().to_string())
            .map_err(|source| path_error(&policy, source))?;
        let mut command = self.own(&["--no-config", "--state-dir"]);
        command.push(self.state(server, rules).into());
        command.extend(["run", "--name", "mock", "--policy"].map(OsString::from));
        command.push(policy.into());
        command.extend(RAISED_LIMITS.map(OsString::from));
        command.push("--".into());
        command.extend(self.server(server));
        Ok(Arm::new(format!("durward, {name}"), command))
    }

    /// Where the guarded arm keeps its journal and keys.
    pub(super) fn state(&self, server: Server, rules: Rules) -> PathBuf {
        self.root.join(format!("state {server:?} {}", rules.name()))
    }

    /// A place for a file of the run.
    pub(super) fn file(&self, name: &str) -> PathBuf {
        self.root.join(name)
    }

    fn server(&self, server: Server) -> Vec<OsString> {
        match server {
            Server::Echo => self.own(&["lab", "mock", "echo"]),
            Server::Files => {
                let mut command = self.own(&["lab", "mock", "files", "--root"]);
                command.push(self.root.join("work").into());
                command
            }
        }
    }

    fn own(&self, words: &[&str]) -> Vec<OsString> {
        std::iter::once(self.own_binary.clone().into())
            .chain(words.iter().map(OsString::from))
            .collect()
    }
}

impl Drop for Scene {
    fn drop(&mut self) {
        // What cannot be removed is small and lies in a directory for temporary files.
        let _ = fs::remove_dir_all(&self.root);
    }
}

fn read_file(path: &Path) -> Operation {
    Operation::Call {
        tool: "read_file".into(),
        arguments: json!({ "path": path }),
    }
}

pub(super) fn path_error(path: &Path, source: std::io::Error) -> LabError {
    LabError::Path {
        path: path.to_path_buf(),
        source,
    }
}
