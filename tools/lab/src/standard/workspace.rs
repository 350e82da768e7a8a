//! The place a standard run plays in: a directory that is gone afterwards, and the variants made for it.

use crate::LabContext;
use crate::driver::TimedOperation;
use crate::error::LabError;
use crate::guarded::{GuardedBackend, GuardedDirectory};
use crate::policies::{self, RuleEffect};
use crate::variant::{Variant, VariantTransport};
use serde_json::{Value, json};
use std::ffi::OsString;
use std::fs;
use std::net::{SocketAddr, TcpListener};
use std::path::{Path, PathBuf};

/// The paper's file: five lines, about 200 bytes.
const TEXT: &str = "The first of five lines of a small test file.\n\
    The second one holds nothing of interest.\n\
    The third is a little longer than the second.\n\
    The fourth is short.\n\
    The fifth and last line ends the file here.\n";

/// A rule set of the standard run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RuleSet {
    AllowAll,
    Four,
    Mixed(usize),
    /// So many, of which the first asks a person about every read.
    Asked(usize),
}

/// A mock server of the standard run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum MockServer {
    Echo,
    Files,
    /// The official filesystem server, if its command was given.
    Official,
}

/// Files, rule sets and state directories. Removed when dropped.
#[derive(Debug)]
pub(super) struct StandardWorkspace {
    workshop: GuardedDirectory,
    /// The command of the official filesystem server, without the directory that it may see.
    official: Vec<OsString>,
    /// Listener on which connections are never accepted.
    silent: TcpListener,
}

impl RuleSet {
    /// How tables call it.
    pub(super) fn name(self) -> String {
        match self {
            Self::AllowAll => "allow-all".into(),
            Self::Four => "4 rules".into(),
            Self::Mixed(count) => format!("{count} rules"),
            Self::Asked(count) => format!("{count} rules, a person asked"),
        }
    }

    fn document(self) -> Value {
        match self {
            Self::AllowAll => policies::allow_all(),
            Self::Four => policies::four(),
            Self::Mixed(count) => policies::mixed(count),
            Self::Asked(count) => policies::mixed_for("read_file", RuleEffect::Hitl, count),
        }
    }
}

impl StandardWorkspace {
    /// Makes the directory and its two files. `official` is the command line of the official filesystem
    /// server, to which the directory is added.
    pub(super) fn set(context: &LabContext, official: Option<&str>) -> Result<Self, LabError> {
        let official = official
            .map(|line| Variant::parse("official", line, VariantTransport::Stdio))
            .transpose()?;
        let workspace = Self {
            workshop: GuardedDirectory::set(context)?,
            official: official.map_or(Vec::new(), |arm| arm.command().to_vec()),
            silent: TcpListener::bind("127.0.0.1:0").map_err(|source| LabError::System {
                what: "listen on a port",
                source,
            })?,
        };
        let work = workspace.work();
        fs::create_dir(&work).map_err(|source| LabError::path(&work, source))?;
        for file in [workspace.readable(), workspace.forbidden()] {
            fs::write(&file, TEXT).map_err(|source| LabError::path(&file, source))?;
        }
        Ok(workspace)
    }

    fn work(&self) -> PathBuf {
        self.workshop.file("work")
    }

    /// Returns a file that every rule set lets the tool `read_file` read.
    fn readable(&self) -> PathBuf {
        self.work().join("mcp-acp-test.txt")
    }

    /// Returns a file with an extension that the four rules deny.
    fn forbidden(&self) -> PathBuf {
        self.work().join("private.key")
    }

    /// Returns the paper's call.
    pub(super) fn read(&self) -> TimedOperation {
        read_file(&self.readable())
    }

    /// Returns the same call on a file that the rules deny.
    pub(super) fn read_forbidden(&self) -> TimedOperation {
        read_file(&self.forbidden())
    }

    /// Returns a call about which the four rules ask a person. No person approves it.
    pub(super) fn write(&self) -> TimedOperation {
        TimedOperation::Call {
            tool: "write_file".into(),
            arguments: json!({ "path": self.work().join("never.txt"), "content": "no" }),
        }
    }

    /// Returns the server by itself.
    pub(super) fn direct(&self, server: MockServer) -> Variant {
        Variant::new("direct", self.server(server))
    }

    /// Returns the server behind a bare relay.
    pub(super) fn relayed(&self, server: MockServer) -> Variant {
        let mut command = self.own(&["mock", "relay", "--"]);
        command.extend(self.server(server));
        Variant::new("bare relay", command)
    }

    /// Returns the server behind `durward run`, with a state directory of its own.
    pub(super) fn guard_server(
        &self,
        server: MockServer,
        rules: RuleSet,
    ) -> Result<Variant, LabError> {
        let arm = self.guarded_as(&Self::variant_name(server, rules), server, rules)?;
        Ok(arm.with_name(format!("durward, {}", rules.name())))
    }

    /// Returns the echo server behind `durward run` with 50 rules.
    pub(super) fn guarded_echo(&self) -> Result<Variant, LabError> {
        let command = self.server(MockServer::Echo);
        self.web("stdio rate", |name, rules| {
            self.workshop
                .guard(name, rules, GuardedBackend::Command(&command))
        })
    }

    /// Returns the echo server behind `durward run` with 50 rules, under a name of its own, with this configuration and
    /// these flags.
    pub(super) fn guarded_with(
        &self,
        name: &str,
        configuration: &Value,
        flags: &[OsString],
    ) -> Result<Variant, LabError> {
        let rules = policies::mixed_for("echo", RuleEffect::Allow, 50);
        let command = self.server(MockServer::Echo);
        let behind = GuardedBackend::Command(&command);
        self.workshop
            .guard_configured(name, &rules, behind, (configuration, flags))
    }

    /// Returns the address of a telemetry collector that takes connections and never answers.
    pub(super) fn silent_collector(&self) -> Result<SocketAddr, LabError> {
        self.silent.local_addr().map_err(|source| LabError::System {
            what: "read the address of a socket",
            source,
        })
    }

    /// Returns the directories of the two programs: the guard's, and that of every mock server.
    pub(super) fn binaries(&self) -> Vec<PathBuf> {
        let folders = self.workshop.binaries().map(Path::parent);
        let mut folders: Vec<PathBuf> = folders
            .into_iter()
            .flatten()
            .map(Path::to_path_buf)
            .collect();
        folders.dedup();
        folders
    }

    /// Returns the same under a name, and with a state directory, of its own: for variants that run side by side.
    pub(super) fn guarded_as(
        &self,
        name: &str,
        server: MockServer,
        rules: RuleSet,
    ) -> Result<Variant, LabError> {
        let command = self.server(server);
        self.workshop
            .guard(name, &rules.document(), GuardedBackend::Command(&command))
    }

    /// Returns the directory in which the guarded variant keeps its journal and keys.
    pub(super) fn state(&self, server: MockServer, rules: RuleSet) -> PathBuf {
        self.workshop.state(&Self::variant_name(server, rules))
    }

    /// Returns the least that a server over HTTP costs.
    pub(super) fn direct_http(&self) -> Variant {
        let command = self.own(&["mock", "echo", "--http", "127.0.0.1:0", "--bare"]);
        Variant::new("direct", command).over_http(None)
    }

    /// Returns a bare relay from HTTP to a server over stdio.
    pub(super) fn relayed_http(&self, server: MockServer) -> Variant {
        let mut command = self.own(&["mock", "relay", "--http", "127.0.0.1:0", "--"]);
        command.extend(self.server(server));
        Variant::new("bare relay", command).over_http(None)
    }

    /// Returns a bare relay before the first variant, HTTP on both sides.
    pub(super) fn tunnelled(&self) -> Variant {
        let words = [
            "mock",
            "relay",
            "--http",
            "127.0.0.1:0",
            "--url",
            "{direct}",
        ];
        Variant::new("bare relay", self.own(&words)).over_http(None)
    }

    /// Returns a bare bridge from stdio to the first variant.
    pub(super) fn bridged(&self) -> Variant {
        self.workshop.bridge()
    }

    /// Returns a server over stdio behind `durward serve` with 50 rules.
    pub(super) fn serve_server(&self, server: MockServer) -> Result<Variant, LabError> {
        let command = self.server(server);
        self.web("HTTP to stdio", |name, rules| {
            self.workshop
                .serve(name, rules, GuardedBackend::Command(&command))
        })
    }

    /// So many echo servers with so many tools each, named `s0` and so on, behind the one URL of `durward serve` with
    /// 50 rules.
    pub(super) fn served_all(&self, servers: usize, tools: usize) -> Result<Variant, LabError> {
        let tools = tools.to_string();
        let words = ["mock", "echo", "--announce-changes", "--tools", &tools];
        let server = |number| (format!("s{number}"), self.own(&words));
        let servers: Vec<_> = (0..servers).map(server).collect();
        let rules = policies::mixed_for("*", RuleEffect::Allow, 50);
        let arm = self.workshop.serve_all("one URL", &rules, &servers)?;
        Ok(arm.with_name("durward, 50 rules".into()))
    }

    /// Returns the first variant behind `durward serve` with 50 rules.
    pub(super) fn served_http(&self) -> Result<Variant, LabError> {
        self.web("HTTP to HTTP", |name, rules| {
            self.workshop
                .serve(name, rules, GuardedBackend::Url("{direct}"))
        })
    }

    /// Returns the first variant behind `durward run --url` with 50 rules.
    pub(super) fn guarded_http(&self) -> Result<Variant, LabError> {
        self.web("stdio to HTTP", |name, rules| {
            self.workshop
                .guard(name, rules, GuardedBackend::Url("{direct}"))
        })
    }

    fn web(
        &self,
        place: &str,
        make: impl Fn(&str, &Value) -> Result<Variant, LabError>,
    ) -> Result<Variant, LabError> {
        let arm = make(place, &policies::mixed_for("echo", RuleEffect::Allow, 50))?;
        Ok(arm.with_name("durward, 50 rules".into()))
    }

    fn variant_name(server: MockServer, rules: RuleSet) -> String {
        format!("{server:?} {}", rules.name())
    }

    /// Returns a place for a file of the run.
    pub(super) fn file(&self, name: &str) -> PathBuf {
        self.workshop.file(name)
    }

    /// Returns whether the official filesystem server is there.
    pub(super) fn has_official(&self) -> bool {
        !self.official.is_empty()
    }

    pub(super) fn server(&self, server: MockServer) -> Vec<OsString> {
        match server {
            MockServer::Echo => self.own(&["mock", "echo"]),
            MockServer::Files => {
                let mut command = self.own(&["mock", "files", "--root"]);
                command.push(self.work().into());
                command
            }
            MockServer::Official => {
                let mut command = self.official.clone();
                command.push(self.work().into());
                command
            }
        }
    }

    fn own(&self, words: &[&str]) -> Vec<OsString> {
        self.workshop.own(words)
    }
}

fn read_file(path: &Path) -> TimedOperation {
    TimedOperation::Call {
        tool: "read_file".into(),
        arguments: json!({ "path": path }),
    }
}
