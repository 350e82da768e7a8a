//! One place per test: a state folder, a policy, a file that counts what reached the server, and the real
//! binary between the raw client and a mock.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use mcp::client::{Client, Era, Options};
use serde_json::{Value, json};

pub use super::program::{binary, lab_binary};
use super::raised;

/// The longest wait for anything that must happen: a busy machine is no fault.
pub const PATIENCE: Duration = Duration::from_secs(60);
/// The revision that tests use where none matters.
pub const LATEST: Era = Era::Legacy("2025-11-25");

static NEXT: AtomicU32 = AtomicU32::new(0);

/// Folders of one test. Dropping it removes them.
pub struct Place {
    pub dir: PathBuf,
}

/// A process that has ended.
#[derive(Debug)]
pub struct Ended {
    /// The exit code; none where a signal ended it.
    pub code: Option<i32>,
    pub stderr: String,
    /// Lines that were still unread.
    pub rest: Vec<Value>,
}

impl Place {
    /// A fresh place whose policy allows every tool.
    pub fn new() -> Self {
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("durward-faults-{}-{number}", std::process::id());
        let place = Self {
            dir: std::env::temp_dir().join(name),
        };
        let _ = fs::remove_dir_all(&place.dir);
        fs::create_dir_all(place.runtime()).unwrap();
        place.write_policy(
            r#"{"version":"1","default_action":"deny","rules":[
                {"id":"allow-all","effect":"allow","conditions":{"tool_name":"*"}}]}"#,
        );
        place
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.dir.join(name)
    }

    fn text(&self, name: &str) -> String {
        self.path(name).to_str().unwrap().to_owned()
    }

    pub fn write_policy(&self, text: &str) {
        fs::write(self.path("policy.json"), text).unwrap();
    }

    /// Configures a server that is asked on and on, however often it fails.
    pub fn never_spare(&self, name: &str, url: &str) {
        let text = format!(
            "servers: {{ {name}: {{ url: \"{url}\" }} }}\nbreaker: {{ failures: 1000000 }}\n"
        );
        fs::write(self.path("durward.yaml"), text).unwrap();
    }

    /// The journal's folder.
    pub fn journal_dir(&self) -> PathBuf {
        self.path("state/journal")
    }

    /// The segments of the journal, oldest first.
    pub fn segments(&self) -> Vec<PathBuf> {
        let Ok(entries) = fs::read_dir(self.journal_dir()) else {
            return Vec::new();
        };
        let mut paths: Vec<PathBuf> = entries
            .map(|entry| entry.unwrap().path())
            .filter(|path| path.extension().is_some_and(|e| e == "jsonl"))
            .collect();
        paths.sort();
        paths
    }

    /// The arguments of `durward run` with this place's state and policy, and with raised limits
    /// unless a flag is about limits.
    pub fn run_args(&self, flags: &[&str], command: &[&str]) -> Vec<String> {
        let mut args = vec![
            "run".to_owned(),
            "--no-config".to_owned(),
            "--state-dir".to_owned(),
            self.text("state"),
            "--policy".to_owned(),
            self.text("policy.json"),
        ];
        if !flags.iter().any(|flag| flag.starts_with("--limit-")) {
            args.extend(raised::RAISED_LIMITS.map(str::to_owned));
        }
        args.extend(flags.iter().map(|flag| (*flag).to_owned()));
        args.push("--".to_owned());
        args.extend(command.iter().map(|word| (*word).to_owned()));
        args
    }

    /// The words that start a mock which counts.
    pub fn mock(&self, words: &[&str]) -> Vec<String> {
        let mut out: Vec<String> = [lab_binary(), "mock"]
            .iter()
            .chain(words)
            .map(|word| (*word).to_owned())
            .collect();
        out.extend(["--count".to_owned(), self.text("count")]);
        out
    }

    /// Guards a mock.
    pub fn guard(&self, mock: &[&str]) -> Client {
        self.guard_with(&[], mock)
    }

    /// Guards a mock, with further flags of `durward run`.
    pub fn guard_with(&self, flags: &[&str], mock: &[&str]) -> Client {
        let mock = self.mock(mock);
        let words: Vec<&str> = mock.iter().map(String::as_str).collect();
        self.guard_command(flags, &words)
    }

    /// Guards any command.
    pub fn guard_command(&self, flags: &[&str], command: &[&str]) -> Client {
        self.guard_as(flags, command, &self.options())
    }

    pub fn guard_as(&self, flags: &[&str], command: &[&str], options: &Options) -> Client {
        Client::spawn_with(binary(), self.run_args(flags, command), options).unwrap()
    }

    /// Guards what these flags of `durward run` reach, without a command.
    pub fn guard_reached(&self, flags: &[&str]) -> Client {
        let mut args = self.run_args(flags, &[]);
        args.pop();
        Client::spawn_with(binary(), args, &self.options()).unwrap()
    }

    /// Guards a server of a configuration, with further flags of `durward run`.
    pub fn guard_configured(&self, file: &str, flags: &[&str], name: &str) -> Client {
        let mut args = self.run_args(flags, &[]);
        args.pop();
        args.push(name.to_owned());
        let at = args.iter().position(|arg| arg == "--no-config").unwrap();
        args.splice(at..=at, ["--config".to_owned(), file.to_owned()]);
        Client::spawn_with(binary(), args, &self.options()).unwrap()
    }

    /// Where instances of this place have their sockets, in a folder `durward`.
    pub fn runtime(&self) -> PathBuf {
        self.path("runtime")
    }

    /// Where a configuration of the user is looked for: there is none, whatever the user of the tests has.
    pub fn config_home(&self) -> PathBuf {
        self.path("config-home")
    }

    pub fn options(&self) -> Options {
        Options {
            timeout: PATIENCE,
            cwd: Some(self.dir.clone()),
            env: vec![
                ("XDG_RUNTIME_DIR".into(), self.runtime().into()),
                ("XDG_CONFIG_HOME".into(), self.config_home().into()),
            ],
            ..Options::default()
        }
    }

    /// The tool calls that reached the server, in order.
    pub fn counted(&self) -> Vec<Value> {
        let text = fs::read_to_string(self.path("count")).unwrap_or_default();
        text.lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect()
    }

    /// Runs the binary to its end.
    pub fn durward(&self, args: &[&str]) -> Output {
        self.command(args).output().unwrap()
    }

    /// The same before it is run.
    pub fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(binary());
        self.place(command.args(args));
        command
    }

    /// Runs any command here.
    pub fn within(&self, command: &mut Command) -> Output {
        self.place(command).output().unwrap()
    }

    fn place<'c>(&self, command: &'c mut Command) -> &'c mut Command {
        command
            .env("XDG_RUNTIME_DIR", self.runtime())
            .env("XDG_CONFIG_HOME", self.config_home())
            .current_dir(&self.dir)
            .stdin(Stdio::null())
    }

    /// What `audit verify --json` says; it must find nothing wrong. The end of an instance that runs or was killed is open.
    pub fn verified(&self) -> Value {
        let output = self.durward(&["audit", "--state-dir", "state", "verify", "--json"]);
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let verified: Value = serde_json::from_str(&text).unwrap_or_default();
        let open = verified["unproven"]
            .as_array()
            .is_none_or(|open| !open.is_empty());
        let expected = if open { 3 } else { 0 };
        assert_eq!(output.status.code(), Some(expected), "{text} {output:?}");
        verified
    }

    /// The whole journal as `audit show` prints it, verified.
    pub fn journal(&self) -> Journal {
        self.verified();
        self.records()
    }

    /// The whole journal as `audit show` prints it.
    pub fn records(&self) -> Journal {
        let args = ["audit", "--state-dir", "state", "show", "--json", "--limit"];
        let output = self.durward(&[&args[..], &["1000000"]].concat());
        assert!(output.status.success(), "{output:?}");
        let text = String::from_utf8(output.stdout).unwrap();
        Journal(
            text.lines()
                .map(|line| serde_json::from_str(line).unwrap())
                .collect(),
        )
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.dir);
    }
}

/// The bodies of all records.
#[derive(Debug)]
pub struct Journal(pub Vec<Value>);

impl Journal {
    fn of_kind<'a>(&'a self, kind: &'a str) -> impl Iterator<Item = &'a Value> {
        self.0.iter().filter(move |record| record["kind"] == kind)
    }

    pub fn decisions(&self) -> Vec<&Value> {
        self.of_kind("decision").collect()
    }

    pub fn operations(&self) -> Vec<&Value> {
        self.of_kind("operation").collect()
    }

    /// The one decision about the request with this id, as spelled.
    pub fn decision(&self, id: &str) -> &Value {
        let found: Vec<_> = self
            .of_kind("decision")
            .filter(|record| record["request_id"] == id)
            .collect();
        assert_eq!(found.len(), 1, "decisions about {id}: {self:#?}");
        found[0]
    }

    /// The one outcome of the request with this id, which belongs to its decision.
    pub fn operation(&self, id: &str) -> &Value {
        let op = &self.decision(id)["op"];
        let found: Vec<_> = self
            .of_kind("operation")
            .filter(|record| &record["op"] == op)
            .collect();
        assert_eq!(found.len(), 1, "outcomes of {id}: {self:#?}");
        found[0]
    }

    /// Asserts that this call was allowed and how it ended.
    #[track_caller]
    pub fn assert_ended(&self, id: &str, status: &str, reason: Option<&str>) {
        assert_eq!(self.decision(id)["decision"], "allow");
        let operation = self.operation(id);
        assert_eq!(operation["status"], status, "{operation}");
        assert_eq!(operation["reason"].as_str(), reason, "{operation}");
    }

    /// Asserts that a record of this event is there.
    #[track_caller]
    pub fn assert_event(&self, event: &str) {
        let events: Vec<_> = self.0.iter().map(|record| &record["event"]).collect();
        assert!(
            events.iter().any(|found| *found == event),
            "no {event} among {events:?}"
        );
    }
}

/// The result of the tool `echo` for this text, as a request's parameters.
pub fn echo(text: &str) -> Value {
    json!({"name": "echo", "arguments": {"text": text}})
}

/// Calls `echo` and expects its text back.
#[track_caller]
pub fn call_works(client: &mut Client, text: &str) {
    let reply = client.request("tools/call", echo(text)).unwrap();
    assert_eq!(reply.text(), Some(text), "{}", reply.line());
}

/// The next line as JSON.
pub fn line(client: &mut Client) -> Value {
    serde_json::from_slice(&client.process().read_line().unwrap()).unwrap()
}

/// Closes the client's side, reads what is left, and waits for the end.
pub fn end(mut client: Client) -> Ended {
    client.process().close_input();
    wait_for_end(client)
}

/// Reads what is left and waits for the end.
pub fn wait_for_end(mut client: Client) -> Ended {
    let mut rest = Vec::new();
    while let Ok(line) = client.process().read_line() {
        rest.push(serde_json::from_slice(&line).unwrap());
    }
    let status = client.process().wait_within(PATIENCE).unwrap();
    let status = status.expect("the process did not end");
    Ended {
        code: status.code(),
        stderr: client.process().stderr(),
        rest,
    }
}

/// Waits, in milliseconds. Nothing may be concluded from it.
#[expect(clippy::disallowed_methods, reason = "a test has no runtime to block")]
pub fn pause(wait_ms: u64) {
    std::thread::sleep(Duration::from_millis(wait_ms));
}

/// Waits until something is so.
#[track_caller]
pub fn eventually(what: &str, is_so: impl FnMut() -> bool) {
    eventually_within(PATIENCE, what, is_so);
}

/// The same for what takes longer.
#[track_caller]
pub fn eventually_within(patience: Duration, what: &str, mut is_so: impl FnMut() -> bool) {
    let deadline = Instant::now() + patience;
    while !is_so() {
        assert!(Instant::now() < deadline, "never: {what}");
        pause(5);
    }
}

/// Processes whose environment holds `NAME=value`, by id and command line.
pub fn marked(name: &str, value: &str) -> Vec<(u32, String)> {
    let wanted = format!("{name}={value}").into_bytes();
    let mut found = Vec::new();
    for entry in fs::read_dir("/proc").unwrap().flatten() {
        let Some(pid) = entry.file_name().to_str().and_then(|n| n.parse().ok()) else {
            continue;
        };
        let Ok(environment) = fs::read(entry.path().join("environ")) else {
            continue;
        };
        if environment.split(|byte| *byte == 0).any(|v| v == wanted) {
            let command = fs::read(entry.path().join("cmdline")).unwrap_or_default();
            let command = String::from_utf8_lossy(&command).replace('\0', " ");
            found.push((pid, command));
        }
    }
    found
}

/// The mock that was started with these words.
pub fn mock_with(words: &str) -> i32 {
    let found = fs::read_dir("/proc").unwrap().flatten().find_map(|entry| {
        let pid: i32 = entry.file_name().to_str()?.parse().ok()?;
        let line = fs::read(entry.path().join("cmdline")).ok()?;
        let line = String::from_utf8_lossy(&line).into_owned();
        let mut args = line.split('\0').skip(1);
        let is_mock = args.next() == Some("mock") && args.any(|arg| arg == words);
        is_mock.then_some(pid)
    });
    found.expect("the mock runs")
}

/// The most memory that a process has held, in KiB, without the pages of its program.
pub fn most_resident_kib(pid: u32) -> u64 {
    let status = fs::read_to_string(Path::new("/proc").join(pid.to_string()).join("status"));
    let status = status.unwrap();
    let kib = |name: &str| -> u64 {
        let line = status.lines().find(|line| line.starts_with(name));
        let number = line.and_then(|line| line.split_whitespace().nth(1));
        number.unwrap().parse().unwrap()
    };
    kib("VmHWM:").saturating_sub(kib("RssFile:"))
}
