//! A host over SSH: a real connection to a server on loopback, before the shipped rules.

use std::io::{self, Write};
use std::net::Ipv4Addr;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;

use mcp::client::{Client, Options};
use serde_json::json;
use tokio::net::TcpListener;
use tokio::runtime::Runtime;

use super::{Stop, answered, drop_client, expect_refused, runtime, text_at};

/// The one key file of the host's only user.
const KEY: &str = "id_ed25519";

/// An SSH server on loopback, in threads of this process; it ends when dropped.
pub(super) struct Target {
    _runtime: Runtime,
}

impl Target {
    /// Starts it, and writes its key, `known_hosts` and file of hosts into `ssh/target`.
    pub(super) fn start(stage: &Path) -> Result<Self, Stop> {
        let dir = stage.join("ssh/target");
        std::fs::create_dir_all(&dir)?;
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()?;
        let (key, host_key) = (sshd::fresh_key()?, sshd::fresh_key()?);
        let listener = runtime.block_on(TcpListener::bind((Ipv4Addr::LOCALHOST, 0)))?;
        let address = listener.local_addr()?;
        let [variant, ..] = sshd::VARIANTS;
        write_private(&dir.join(KEY), &sshd::key_file(&key)?)?;
        let known = sshd::known_hosts_line(address, &host_key)?;
        write_private(&dir.join("known_hosts"), &known)?;
        let hosts = json!({
            "known_hosts": ["known_hosts"],
            "credentials": {"key": {"user": variant.user, "key": KEY}},
            "hosts": {variant.name: {"address": address.ip(), "port": address.port(), "credential": "key"}},
        });
        // JSON is YAML.
        write_private(&dir.join("ssh_hosts.yaml"), &hosts.to_string())?;
        let shared = Arc::new(sshd::ServerShared::new(variant, &key, host_key));
        runtime.spawn(sshd::run(listener, address, shared));
        Ok(Self { _runtime: runtime })
    }
}

fn write_private(path: &Path, text: &str) -> io::Result<()> {
    let mut options = std::fs::OpenOptions::new();
    let mut file = options
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path)?;
    file.write_all(text.as_bytes())
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
