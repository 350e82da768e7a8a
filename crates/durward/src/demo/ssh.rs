//! A host over SSH: a real connection to a server in a process of its own, before the shipped rules.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use mocks::client::{Client, Options};
use serde_json::json;

use super::{Stop, answered, drop_client, expect_refused, runtime, text_at};

/// A server that ends with the tour.
pub(super) struct Target(Child);

impl Drop for Target {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Target {
    /// Starts it, and waits until it says that it does what it is for.
    pub(super) fn start(stage: &Path, own: &Path) -> Result<Self, Stop> {
        let dir = stage.join("ssh/target");
        std::fs::create_dir_all(&dir)?;
        let mut process = Command::new(own)
            .args(["lab", "mock", "ssh-target", "--dir"])
            .arg(dir)
            .args(["--port", "0", "--only", "standard", "--no-twins"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let output = process.stdout.take();
        let target = Self(process);
        let lines = output
            .into_iter()
            .flat_map(|output| BufReader::new(output).lines());
        for line in lines {
            if line?.starts_with("ready: ") {
                return Ok(target);
            }
        }
        Err(Stop::Unexpected("the SSH server does not start".into()))
    }
}

/// Asks the host for its name, is asked about before a service is restarted, and is refused a secret.
pub(super) fn show(number: u32, stage: &Path, own: &Path, out: &mut dyn Write) -> Result<(), Stop> {
    let stage = stage.join("ssh");
    std::fs::create_dir_all(runtime(&stage))?;
    let mut client = guarded(&stage, own)?;
    client.initialize("2025-11-25")?;
    let connected = client.call_tool("ssh_connect", json!({"host": "standard"}))?;
    let session = text_at(connected.result()?, "/structuredContent/session_id");
    let session = session.unwrap_or_default().to_owned();
    let title = format!(
        "{number}. A host over SSH (builtin: ssh, with the shipped rules). The agent asks it for its name"
    );
    let named = client.call_tool("ssh_hostname", json!({"session_id": session}))?;
    let name = text_at(named.result()?, "/structuredContent/hostname");
    if name.is_none_or(str::is_empty) {
        return Err(Stop::Unexpected("the host did not tell its name".into()));
    }
    super::show(out, &title, "ssh_hostname", &named)?;
    restart(&mut client, &stage, &session, own, out)?;
    let secret = json!({"session_id": session, "command": "cat /etc/shadow"});
    let refused = client.call_tool("ssh_run_command", secret)?;
    expect_refused(&refused, "ssh-deny-secrets")?;
    super::show(
        out,
        "   The agent runs cat /etc/shadow",
        "ssh_run_command",
        &refused,
    )?;
    drop_client(client)
}

/// A client before the host, with the rules that `durward ssh rules` prints.
fn guarded(stage: &Path, own: &Path) -> Result<Client, Stop> {
    let rules = Command::new(own).args(["ssh", "rules"]).output()?;
    let (policy, configuration) = (stage.join("rules.json"), stage.join("durward.yaml"));
    std::fs::write(&policy, rules.stdout)?;
    let hosts = "servers: { ssh: { builtin: ssh, hosts: target/ssh_hosts.yaml } }\n";
    std::fs::write(&configuration, hosts)?;
    let text = |path: &Path| path.to_string_lossy().into_owned();
    let args = [
        "run".to_owned(),
        "--config".to_owned(),
        text(&configuration),
        "--state-dir".to_owned(),
        text(&stage.join("state")),
        "--policy".to_owned(),
        text(&policy),
        "ssh".to_owned(),
    ];
    let options = Options {
        env: vec![("XDG_RUNTIME_DIR".into(), runtime(stage).into())],
        ..Options::default()
    };
    Ok(Client::spawn_with(own, args, &options)?)
}

/// A person is asked before a service is restarted, and says no: nothing of this machine is touched.
fn restart(
    client: &mut Client,
    stage: &Path,
    session: &str,
    own: &Path,
    out: &mut dyn Write,
) -> Result<(), Stop> {
    let command = "systemctl restart nginx.service";
    writeln!(
        out,
        "   The agent runs {command}\n   ssh_run_command → waits"
    )?;
    let arguments = json!({"session_id": session, "command": command});
    let call = json!({"name": "ssh_run_command", "arguments": arguments});
    let id = client.send_request("tools/call", call)?;
    let refused = answered(client, &id, (stage, "state"), "deny", own, out)?;
    expect_refused(&refused, "ssh-ask-services")?;
    let said = refused.text().unwrap_or_default();
    writeln!(out, "   ssh_run_command → {said}\n")?;
    Ok(())
}
