//! One run of an agent over HTTP: a model, the tool that it asks for, a host and a simulation, all found again by the
//! run's id.

use std::io::Write;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use mcp::client::{Era, HttpClient, HttpOptions, Options, Process};
use rustix::process::Signal;
use serde_json::{Value, json};

use super::{Stop, columns, runtime, text_at};

/// What the agent calls its run.
const RUN: &str = "demo-run";
const RUN_HEADER: &str = "x-durward-run";
const POLICY: &str = r#"{"rules":[
  {"id":"tools","effect":"allow","conditions":{"tool_name":"*"}},
  {"id":"models","effect":"allow","conditions":{"model":"*"}}]}"#;
/// How long it may take to end.
const END_WAIT: Duration = Duration::from_secs(15);

/// `durward serve`, and an agent that talks to it.
struct Served {
    process: Process,
    /// In front of all servers.
    tools: HttpClient,
    model: HttpClient,
}

/// Shows it; the title begins with this number.
pub(super) fn show(number: u32, stage: &Path, own: &Path, out: &mut dyn Write) -> Result<(), Stop> {
    writeln!(
        out,
        "{number}. One run: durward serve in front of a model (a mock), echo, the host and the simulation. Each request has \
         the header {RUN_HEADER}: {RUN}"
    )?;
    let mut served = Served::start(stage, own)?;
    let asked = served.asks_model(out)?;
    let name = text_at(&asked, "/function/name").unwrap_or_default();
    let arguments = text_at(&asked, "/function/arguments").unwrap_or_default();
    let arguments: Value = serde_json::from_str(arguments).unwrap_or_default();
    let sum = served.calls(name, &arguments)?;
    let sum = text_at(&sum, "/content/0/text")
        .unwrap_or_default()
        .to_owned();
    writeln!(out, "   {name} → {sum}")?;
    let host = served.calls("ssh__ssh_connect", &json!({"host": "standard"}))?;
    let session = text_at(&host, "/structuredContent/session_id").unwrap_or_default();
    let host = served.calls("ssh__ssh_hostname", &json!({"session_id": session}))?;
    let host = text_at(&host, "/structuredContent/hostname").unwrap_or_default();
    writeln!(out, "   ssh__ssh_hostname → {host}")?;
    let file = json!({"filePath": "two_compartment.xml", "simulationId": "run", "confirm": true});
    served.calls("pbpk__load_simulation", &file)?;
    let job = json!({"simulationId": "run", "confirm": true});
    let job = served.calls("pbpk__run_simulation", &job)?;
    let job = text_at(&job, "/structuredContent/jobId").unwrap_or_default();
    let waits = json!({"jobId": job, "waitSeconds": 60});
    let done = served.calls("pbpk__get_job_status", &waits)?;
    let status = text_at(&done, "/structuredContent/status").unwrap_or("?");
    writeln!(out, "   pbpk__run_simulation → {status}")?;
    served.end()?;
    logs(stage, own, out)
}

/// What `durward logs` has of the run.
fn logs(stage: &Path, own: &Path, out: &mut dyn Write) -> Result<(), Stop> {
    writeln!(out, "   durward logs --run {RUN}")?;
    let output = Command::new(own)
        .args(["--no-config", "--state-dir"])
        .arg(stage.join("state6"))
        .args(["logs", "--run", RUN])
        .envs(columns())
        .output()?;
    let shown = String::from_utf8_lossy(&output.stdout);
    for line in shown.lines() {
        writeln!(out, "   | {line}")?;
    }
    writeln!(out)?;
    for part in [
        "echo__add",
        "ssh_hostname",
        "run_simulation",
        "chat/completions",
    ] {
        let part = part.rsplit("__").next().unwrap_or(part);
        if !shown.contains(part) {
            return Err(Stop::Unexpected(format!("the run has no {part}: {shown}")));
        }
    }
    Ok(())
}

impl Served {
    fn start(stage: &Path, own: &Path) -> Result<Self, Stop> {
        std::fs::write(stage.join("run.json"), POLICY)?;
        let text = |name: &str| stage.join(name).to_string_lossy().into_owned();
        let configured = json!({
            "servers": {
                "echo": { "builtin": "echo" },
                "ssh": { "builtin": "ssh", "hosts": text("ssh/target/ssh_hosts.yaml") },
                "pbpk": { "builtin": "simulation", "models": [text("models")] },
            },
            "models": { "providers": { "mock": { "kind": "mock", "models": ["plain"] } } },
        });
        // JSON is YAML.
        std::fs::write(stage.join("run.yaml"), configured.to_string())?;
        let args = [
            "--config".to_owned(),
            text("run.yaml"),
            "--state-dir".to_owned(),
            text("state6"),
            "serve".to_owned(),
            "--listen".to_owned(),
            "127.0.0.1:0".to_owned(),
            "--policy".to_owned(),
            text("run.json"),
        ];
        let options = Options {
            env: vec![("XDG_RUNTIME_DIR".into(), runtime(stage).into())],
            ..Options::default()
        };
        let mut process = Process::spawn(own.as_os_str(), args, &options)?;
        let line = process.read_line()?;
        let line = String::from_utf8_lossy(&line);
        let url = line.trim().strip_prefix("listening at ");
        let url = url.ok_or_else(|| Stop::Unexpected(process.stderr()))?;
        let client = |path: &str| {
            let options = HttpOptions {
                headers: vec![(RUN_HEADER.to_owned(), RUN.to_owned())],
                ..HttpOptions::default()
            };
            HttpClient::new(&format!("{url}{path}"), options)
        };
        let (mut tools, model) = (client("/mcp")?, client("/v1/chat/completions")?);
        tools.handshake(Era::Legacy("2025-11-25"))?;
        Ok(Self {
            process,
            tools,
            model,
        })
    }

    /// Ends it; its records are written then.
    fn end(mut self) -> Result<(), Stop> {
        self.process.signal(Signal::TERM)?;
        match self.process.wait_within(END_WAIT)? {
            Some(_) => Ok(()),
            None => Err(Stop::Unexpected("durward serve does not end".into())),
        }
    }

    /// Asks the model, offering it a tool; gives the call that it asks for.
    fn asks_model(&mut self, out: &mut dyn Write) -> Result<Value, Stop> {
        let number = |value: u32| json!({"type": "integer", "enum": [value]});
        let parameters = json!({"type": "object", "required": ["a", "b"],
            "properties": {"a": number(2), "b": number(3)}});
        let tool = json!({"type": "function", "function": {"name": "echo__add", "parameters": parameters}});
        let body = json!({"model": "mock/plain", "tools": [tool],
            "messages": [{"role": "user", "content": "What is 2 + 3?"}]});
        let body = body.to_string();
        let mut request = self.model.head("POST", None, None, body.len()).into_bytes();
        request.extend_from_slice(body.as_bytes());
        let answer = self.model.send_raw(&request)?;
        let reply: Value = serde_json::from_slice(&answer.body).unwrap_or_default();
        let asked = reply.pointer("/choices/0/message/tool_calls/0").cloned();
        let asked = asked
            .ok_or_else(|| Stop::Unexpected(format!("the model asks for no tool: {reply}")))?;
        writeln!(
            out,
            "   chat/completions → the model asks for {} {}",
            text_at(&asked, "/function/name").unwrap_or_default(),
            text_at(&asked, "/function/arguments").unwrap_or_default()
        )?;
        Ok(asked)
    }

    /// Calls a tool that has to succeed; gives its result.
    fn calls(&mut self, tool: &str, arguments: &Value) -> Result<Value, Stop> {
        let reply = self.tools.call_tool(tool, arguments.clone())?;
        match reply.result()? {
            result if result.get("isError") != Some(&Value::Bool(true)) => Ok(result.clone()),
            result => Err(Stop::Unexpected(format!("{tool}: {result}"))),
        }
    }
}
