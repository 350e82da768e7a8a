//! `durward demo`: a guided tour. Real processes, real frames, a real journal, in a temporary
//! directory that is removed at the end.

mod one_run;
mod server;
mod simulation;
mod sketch;
mod ssh;

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use mcp::client::{Client, ClientError, Reply};
use serde_json::{Value, json};

use crate::interrupt;
use crate::layout;
use crate::places::Places;

pub use server::{SERVER_COMMAND, serve};

pub const HELP: &str = "\
Examples:
  durward demo                  guard a file server, a model, an SSH host and a simulation

The tour starts real processes in a temporary directory and removes it at the end. It takes a few seconds, needs no
network, and leaves your configuration and your journal alone.

Exit codes: 0 done; 1 a step did not do what it says; 130 ended by Ctrl-C.";

const POLICY: &str = r#"{
  "version": "1",
  "default_action": "deny",
  "rules": [
    { "id": "read-the-workspace", "effect": "allow",
      "conditions": { "operations": ["read"], "path_pattern": "{WORKSPACE}/**" } },
    { "id": "never-keys", "effect": "deny",
      "conditions": { "extension": [".pem", ".key", ".env"] } },
    { "id": "ask-before-writing", "effect": "hitl",
      "conditions": { "operations": ["write"], "path_pattern": "{WORKSPACE}/**" } },
    { "id": "no-deleting", "effect": "deny",
      "conditions": { "operations": ["delete"] } }
  ]
}
"#;
/// How long the question may take to appear.
const ASK_WAIT: Duration = Duration::from_secs(20);
/// Calls per variant of the measurement.
const CALLS: usize = 2_000;

/// Why the tour stopped.
#[derive(Debug)]
enum Stop {
    Io(io::Error),
    Client(ClientError),
    Unexpected(String),
}

impl From<io::Error> for Stop {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

impl From<ClientError> for Stop {
    fn from(error: ClientError) -> Self {
        Self::Client(error)
    }
}

impl std::fmt::Display for Stop {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Io(error) => write!(f, "{error}"),
            Self::Client(error) => write!(f, "{error}"),
            Self::Unexpected(what) => write!(f, "the tour failed: {what}"),
        }
    }
}

/// Removed with all below it when the tour ends, however it ends.
struct Stage(PathBuf);

impl Drop for Stage {
    fn drop(&mut self) {
        clear(&self.0);
    }
}

/// How often a directory is removed again, into which a process that is ending has just written.
const CLEARINGS: u32 = 40;
/// The pause between two tries.
const CLEARING_PAUSE: Duration = Duration::from_millis(50);

/// Removes a directory with all below it. One that stays behind harms nobody.
fn clear(stage: &Path) {
    for _ in 0..CLEARINGS {
        if std::fs::remove_dir_all(stage).is_ok() || !stage.exists() {
            return;
        }
        std::thread::park_timeout(CLEARING_PAUSE);
    }
}

/// A signal has asked for the end: what fails from then on fails because the stage is taken away.
static IS_ENDING: AtomicBool = AtomicBool::new(false);

/// Runs the tour; gives the exit code.
pub fn run(places: &Places, out: &mut dyn Write, err: &mut dyn Write) -> u8 {
    let done = tour(places, out);
    while IS_ENDING.load(Ordering::Acquire) {
        // Who listens to signals ends the process, with their exit code.
        std::thread::park();
    }
    match done {
        Ok(()) => 0,
        Err(stop) => {
            let _ = writeln!(err, "error: {stop}");
            1
        }
    }
}

/// Sets the stage: a workspace with a file, a secret beside it, a policy.
fn set_stage() -> Result<Stage, Stop> {
    let mut name = [0_u8; 8];
    crate::local::random(&mut name)?;
    let name: String = name.iter().map(|b| format!("{b:02x}")).collect();
    let stage = Stage(std::env::temp_dir().join(format!("durward-demo-{name}")));
    let workspace = stage.0.join("workspace");
    std::fs::create_dir_all(&workspace)?;
    std::fs::create_dir_all(runtime(&stage.0))?;
    std::fs::write(workspace.join("notes.txt"), "remember the milk\n")?;
    std::fs::write(stage.0.join("secret.txt"), "the combination is 1-2-3\n")?;
    let policy = stage.0.join("policy.json");
    std::fs::write(
        &policy,
        POLICY.replace("{WORKSPACE}", &workspace.to_string_lossy()),
    )?;
    Ok(stage)
}

fn tour(places: &Places, out: &mut dyn Write) -> Result<(), Stop> {
    let stage = set_stage()?;
    let kept = stage.0.clone();
    interrupt::listen(move |signal| {
        IS_ENDING.store(true, Ordering::Release);
        clear(&kept);
        // A process that was just being started has made its directory by now.
        std::thread::park_timeout(CLEARING_PAUSE);
        clear(&kept);
        interrupt::end(signal);
    });
    let (workspace, policy) = (stage.0.join("workspace"), stage.0.join("policy.json"));
    writeln!(
        out,
        "Durward guards a file server (ten tools, embedded) for an agent.\n"
    )?;
    writeln!(
        out,
        "  agent ──▶ durward run --policy policy.json -- files server\n"
    )?;
    let own = &places.own_binary;
    let server = [SERVER_COMMAND.to_owned()];
    let state = stage.0.join("state");
    let options = mcp::client::Options {
        env: vec![("XDG_RUNTIME_DIR".into(), runtime(&stage.0).into())],
        ..mcp::client::Options::default()
    };
    let mut client =
        Client::spawn_with(own, guarded(&state, &policy, own, &[], &server), &options)?;
    client.initialize("2025-11-25")?;
    let list = client.request("tools/list", json!({}))?;
    let shown = list
        .result()?
        .pointer("/tools")
        .and_then(Value::as_array)
        .map_or(0, Vec::len);
    writeln!(
        out,
        "1. The agent asks for tools. It sees {shown} of 10: what no rule could ever allow is not shown.\n"
    )?;
    let notes = workspace.join("notes.txt");
    show(
        out,
        "2. A read that a rule allows",
        "read_file",
        &client.call_tool("read_file", json!({ "path": notes }))?,
    )?;
    approve(&mut client, &stage.0, &notes, own, out)?;
    let deletion = client.call_tool("delete_file", json!({ "path": notes }))?;
    expect_refused(&deletion, "no-deleting")?;
    show(
        out,
        "4. A deletion that a rule refuses",
        "delete_file",
        &deletion,
    )?;
    if !notes.exists() {
        let what = "the refused deletion reached the file";
        return Err(Stop::Unexpected(what.into()));
    }
    tricks(&mut client, &workspace, &state, out)?;
    drop_client(client)?;
    verify(&state, own, out)?;
    built_in(&stage.0, own, out)?;
    simulation::show(9, &stage.0, own, out)?;
    let _host = ssh::Target::start(&stage.0)?;
    ssh::show(10, &stage.0, own, out)?;
    one_run::show(11, &stage.0, own, out)?;
    measure(&stage.0, own, out)
}

/// Two ways to files that no rule names: a path that only looks allowed, and Durward's own key.
fn tricks(
    client: &mut Client,
    workspace: &Path,
    state: &Path,
    out: &mut dyn Write,
) -> Result<(), Stop> {
    let trick = format!("{}/%2e%2e/secret.txt", workspace.display());
    let tricked = client.call_tool("read_file", json!({ "path": trick }))?;
    expect_refused(&tricked, "default")?;
    show(
        out,
        "5. A path trick: workspace/%2e%2e/secret.txt",
        "read_file",
        &tricked,
    )?;
    let keys = client.call_tool(
        "read_file",
        json!({ "path": state.join("keys/checkpoint.key") }),
    )?;
    expect_refused(&keys, "built_in_protected_path")?;
    show(out, "6. Durward's own keys", "read_file", &keys)
}

/// Where the tour's instances have their sockets, apart from those of the user's own.
fn runtime(stage: &Path) -> PathBuf {
    stage.join("runtime")
}

/// Characters that stand before what a second process prints.
const MARGIN: usize = 5;

/// How wide the lines of a second process are, where this one is at a terminal.
fn columns() -> Option<(&'static str, String)> {
    let width = layout::screen_width()?.saturating_sub(MARGIN);
    Some((layout::COLUMNS, width.to_string()))
}

/// The stage, and the folder on it that has an instance's state.
type Place<'p> = (&'p Path, &'p str);

/// A second process, as a person at another terminal would use it.
fn approvals((stage, state): Place<'_>, own: &Path, words: &[&str]) -> Result<String, Stop> {
    let output = std::process::Command::new(own)
        .args(["--no-config", "--state-dir"])
        .arg(stage.join(state))
        .arg("approvals")
        .args(words)
        .env("XDG_RUNTIME_DIR", runtime(stage))
        .envs(columns())
        .output()?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let said = String::from_utf8_lossy(&output.stderr).trim().to_owned();
    Err(Stop::Unexpected(format!("approvals: {said}")))
}

/// A write waits for a person, is shown to a second process, answered there, and goes through.
fn approve(
    client: &mut Client,
    stage: &Path,
    notes: &Path,
    own: &Path,
    out: &mut dyn Write,
) -> Result<(), Stop> {
    writeln!(
        out,
        "3. A write that a rule asks a person about\n   write_file → waits"
    )?;
    let write = json!({ "name": "write_file", "arguments": { "path": notes, "content": "remember the bread" } });
    let id = client.send_request("tools/call", write)?;
    let reply = answered(client, &id, (stage, "state"), "once", own, out)?;
    let said = text_at(reply.result()?, "/content/0/text").unwrap_or_default();
    writeln!(
        out,
        "   write_file → allowed, the server answered: {said}\n"
    )?;
    if std::fs::read_to_string(notes)? != "remember the bread" {
        let what = "the approved write did not reach the file";
        return Err(Stop::Unexpected(what.into()));
    }
    Ok(())
}

/// Shows the question that a call waits for, answers it with this word, and gives the call's reply.
fn answered(
    client: &mut Client,
    id: &str,
    place: Place<'_>,
    answer: &str,
    own: &Path,
    out: &mut dyn Write,
) -> Result<Reply, Stop> {
    let deadline = Instant::now() + ASK_WAIT;
    let question = loop {
        let listed = approvals(place, own, &["list", "--json"])?;
        if let Ok(question) = serde_json::from_str::<Value>(&listed) {
            break question;
        }
        if Instant::now() >= deadline {
            return Err(Stop::Unexpected("nobody was asked".into()));
        }
    };
    writeln!(out, "   in another terminal: durward approvals list")?;
    for line in approvals(place, own, &["list"])?.lines() {
        writeln!(out, "   | {line}")?;
    }
    let name = text_at(&question, "/id").unwrap_or_default();
    writeln!(
        out,
        "   in another terminal: durward approvals {answer} {name}"
    )?;
    for line in approvals(place, own, &[answer, name])?.lines() {
        writeln!(out, "   | {line}")?;
    }
    Ok(client.response(id)?)
}

fn guarded(
    state: &Path,
    policy: &Path,
    own: &Path,
    flags: &[&str],
    server: &[String],
) -> Vec<String> {
    let text = |path: &Path| path.to_string_lossy().into_owned();
    let mut args = vec![
        "run".to_owned(),
        "--no-config".into(),
        "--state-dir".into(),
        text(state),
        "--policy".into(),
        text(policy),
    ];
    args.extend(flags.iter().map(|flag| (*flag).to_owned()));
    args.extend(["--".to_owned(), text(own)]);
    args.extend_from_slice(server);
    args
}

fn show(out: &mut dyn Write, title: &str, tool: &str, reply: &Reply) -> Result<(), Stop> {
    writeln!(out, "{title}")?;
    match reply.refusal() {
        None => {
            let text = text_at(reply.result()?, "/content/0/text")
                .unwrap_or_default()
                .trim()
                .to_owned();
            writeln!(
                out,
                "   {tool} → allowed, the server answered: {}\n",
                text.lines().next().unwrap_or_default()
            )?;
        }
        Some(refusal) => {
            writeln!(
                out,
                "   {tool} → {}\n   decided by: {}\n",
                reply.text().unwrap_or_default(),
                text_at(refusal, "/final_rule").unwrap_or("?")
            )?;
        }
    }
    Ok(())
}

fn text_at<'v>(value: &'v Value, pointer: &str) -> Option<&'v str> {
    value.pointer(pointer).and_then(Value::as_str)
}

fn expect_refused(reply: &Reply, rule: &str) -> Result<(), Stop> {
    match reply.refusal() {
        Some(refusal) if text_at(refusal, "/final_rule") == Some(rule) => Ok(()),
        other => Err(Stop::Unexpected(format!(
            "expected a refusal by {rule}, got {other:?}"
        ))),
    }
}

/// Closes the client's side and waits for the end.
fn drop_client(mut client: Client) -> Result<(), Stop> {
    client.process().close_input();
    client
        .process()
        .wait_within(std::time::Duration::from_secs(10))?;
    Ok(())
}

fn verify(state: &Path, own: &Path, out: &mut dyn Write) -> Result<(), Stop> {
    writeln!(
        out,
        "7. Every decision was written before it took effect. Verify that the journal has not been altered"
    )?;
    let output = std::process::Command::new(own)
        .args(["--no-config", "--state-dir"])
        .arg(state)
        .args(["audit", "verify"])
        .output()?;
    for line in String::from_utf8_lossy(&output.stdout).lines() {
        writeln!(out, "   {line}")?;
    }
    if !output.status.success() {
        return Err(Stop::Unexpected("the journal did not verify".into()));
    }
    writeln!(out)?;
    Ok(())
}

/// A server of the configuration that needs no process: what its tools do it states itself.
fn built_in(stage: &Path, own: &Path, out: &mut dyn Write) -> Result<(), Stop> {
    let (policy, configuration) = (stage.join("reads.json"), stage.join("durward.yaml"));
    std::fs::write(
        &policy,
        r#"{"rules":[{"id":"reads","effect":"allow","conditions":{"operations":["read"]}}]}"#,
    )?;
    std::fs::write(&configuration, "servers: { echo: { builtin: echo } }\n")?;
    let text = |path: &Path| path.to_string_lossy().into_owned();
    let args = [
        "run".to_owned(),
        "--config".to_owned(),
        text(&configuration),
        "--state-dir".to_owned(),
        text(&stage.join("state3")),
        "--policy".to_owned(),
        text(&policy),
        "echo".to_owned(),
    ];
    let mut client = Client::spawn(own, args)?;
    client.initialize("2025-11-25")?;
    show(
        out,
        "8. A server inside Durward (builtin: echo in durward.yaml), by a rule that lets reads pass",
        "add",
        &client.call_tool("add", json!({ "a": 2, "b": 3 }))?,
    )?;
    drop_client(client)
}

/// Direct and guarded in turn, so that a busy machine disturbs both.
fn measure(stage: &Path, own: &Path, out: &mut dyn Write) -> Result<(), Stop> {
    let policy = stage.join("allow.json");
    std::fs::write(
        &policy,
        r#"{"rules":[{"id":"allow-all","effect":"allow","conditions":{"tool_name":"*"}}]}"#,
    )?;
    let server = [SERVER_COMMAND.to_owned()];
    let mut direct = Client::spawn(own, server.clone())?;
    let state = stage.join("state2");
    let raised = [
        "--limit-requests",
        "1000000/s",
        "--limit-tool-calls",
        "1000000",
    ];
    let mut through = Client::spawn(own, guarded(&state, &policy, own, &raised, &server))?;
    direct.initialize("2025-11-25")?;
    through.initialize("2025-11-25")?;
    let (mut a, mut b) = (Vec::with_capacity(CALLS), Vec::with_capacity(CALLS));
    for round in 0..CALLS + CALLS / 10 {
        let (direct_us, through_us) = (time_one(&mut direct)?, time_one(&mut through)?);
        if round >= CALLS / 10 {
            a.push(direct_us);
            b.push(through_us);
        }
    }
    let (direct_us, through_us) = (median(&mut a), median(&mut b));
    writeln!(
        out,
        "12. What it costs: {CALLS} echo calls each, in turn. Direct {direct_us:.0} µs, guarded {through_us:.0} µs (median): +{:.0} µs\n   \
         policy, journal and one more process included{}. Measured properly: make bench.",
        through_us - direct_us,
        if cfg!(debug_assertions) {
            "; this is a debug build"
        } else {
            ""
        }
    )?;
    drop_client(direct)?;
    drop_client(through)
}

fn time_one(client: &mut Client) -> Result<f64, Stop> {
    let start = Instant::now();
    let reply = client.call_tool("echo", json!({ "text": "hello" }))?;
    let took = start.elapsed();
    reply.result()?;
    Ok(took.as_secs_f64() * 1e6)
}

fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}
