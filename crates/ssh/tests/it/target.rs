//! A real sshd on a free port of this machine, with keys of its own, for one test.

use std::fs;
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use ssh::hosts::Hosts;
use ssh::{Environment, Ssh};
use toolkit::mcp::BuiltinSession;
use toolkit::trial::Trial;

/// A running sshd; it is killed by its id at the end.
pub struct Target {
    pub folder: PathBuf,
    pub port: u16,
    sshd: Child,
}

/// A server before targets, as one client has it.
pub struct Client {
    pub trial: Trial,
    pub session: BuiltinSession,
}

fn program(name: &str) -> Option<PathBuf> {
    [
        "/usr/sbin",
        "/usr/bin",
        "/usr/local/sbin",
        "/usr/local/bin",
        "/bin",
    ]
    .iter()
    .map(|folder| Path::new(folder).join(name))
    .find(|path| path.exists())
}

/// Whether a program is here; a missing one fails under `CI=true` and is told elsewhere.
#[expect(clippy::disallowed_methods, reason = "the tests' own switch")]
pub fn has(name: &str) -> bool {
    let found = program(name).is_some();
    if !found {
        assert!(
            std::env::var_os("CI").is_none(),
            "{name} is missing; run scripts/setup-tests"
        );
        eprintln!("skipped: {name} is missing; run scripts/setup-tests");
    }
    found
}

pub fn user() -> String {
    let output = Command::new("id").arg("-un").output().unwrap();
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

pub fn keygen(path: &Path, more: &[&str]) {
    let status = Command::new("ssh-keygen")
        .args(["-q", "-t", "ed25519", "-N", "", "-f"])
        .arg(path)
        .args(more)
        .status()
        .unwrap();
    assert!(status.success());
}

pub fn folder() -> PathBuf {
    static NUMBER: AtomicU64 = AtomicU64::new(0);
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    let folder = std::env::temp_dir().join(format!("ssh-it-{}-{number}", std::process::id()));
    fs::create_dir_all(&folder).unwrap();
    folder
}

impl Target {
    /// An sshd that takes one key, with more lines in its configuration.
    pub fn new(more: &str) -> Self {
        let folder = folder();
        keygen(&folder.join("host"), &[]);
        keygen(&folder.join("user"), &[]);
        Self::start(folder, more, None)
    }

    /// An sshd behind which every command is read by this shell.
    pub fn with_shell(shell: &str) -> Self {
        let path = program(shell).unwrap();
        Self::new(&format!(
            "ForceCommand exec {} -c \"$SSH_ORIGINAL_COMMAND\"\n",
            path.display()
        ))
    }

    /// One with keys that are there.
    pub fn start(folder: PathBuf, more: &str, port: Option<u16>) -> Self {
        if user() == "root" {
            // sshd's place to drop its rights in.
            fs::create_dir_all("/run/sshd").unwrap();
        }
        let port = port.unwrap_or_else(|| {
            TcpListener::bind("127.0.0.1:0")
                .unwrap()
                .local_addr()
                .unwrap()
                .port()
        });
        let at = |name: &str| folder.join(name).display().to_string();
        let config = format!(
            "Port {port}\nListenAddress 127.0.0.1\nHostKey {}\nPidFile none\nAuthorizedKeysFile {}\nStrictModes no\nUseDNS no\nUsePAM no\nPermitRootLogin yes\nPasswordAuthentication no\nKbdInteractiveAuthentication no\nMaxStartups 500:30:1000\nSubsystem sftp internal-sftp\n{more}",
            at("host"),
            at("user.pub"),
        );
        fs::write(folder.join("config"), config).unwrap();
        let sshd = Command::new(program("sshd").unwrap())
            .args(["-D", "-f", &at("config"), "-E", &at("log")])
            .stdin(Stdio::null())
            .spawn()
            .unwrap();
        let target = Self { folder, port, sshd };
        let began = Instant::now();
        while TcpStream::connect(("127.0.0.1", port)).is_err() {
            assert!(
                began.elapsed() < Duration::from_secs(20),
                "sshd does not start: {}",
                target.log()
            );
            std::thread::yield_now();
        }
        target.know();
        target
    }

    /// Stops sshd and starts it again; the connections that it has go on.
    pub fn log(&self) -> String {
        fs::read_to_string(self.folder.join("log")).unwrap_or_default()
    }

    /// Writes its key into a file of known hosts.
    pub fn know(&self) {
        let key = fs::read_to_string(self.folder.join("host.pub")).unwrap();
        fs::write(
            self.folder.join("known_hosts"),
            format!("[127.0.0.1]:{} {key}", self.port),
        )
        .unwrap();
    }

    /// A file of hosts with this target as `web`, and more.
    pub fn hosts(&self, more: &str) -> Hosts {
        let text = format!(
            "known_hosts: [known_hosts]\ncredentials:\n  me: {{ user: {}, key: user }}\nhosts:\n  web: {{ address: 127.0.0.1, port: {}, credential: me }}\n{more}",
            user(),
            self.port,
        );
        Hosts::of(&text, &self.folder).unwrap()
    }

    pub fn client(&self) -> Client {
        Client::new(self.hosts(""), None)
    }
}

impl Drop for Target {
    fn drop(&mut self) {
        let _ = self.sshd.kill();
        let _ = self.sshd.wait();
        let _ = fs::remove_dir_all(&self.folder);
    }
}

impl Client {
    pub fn new(hosts: Hosts, policy: Option<&str>) -> Self {
        let server = Ssh::new(hosts, Environment::default()).unwrap();
        let trial = Trial::new(Arc::new(server), policy).unwrap();
        let session = trial.session("ada");
        Self { trial, session }
    }

    pub async fn call(&self, tool: &str, arguments: Value) -> Result<Value, String> {
        self.trial.call(&self.session, "ada", tool, arguments).await
    }

    /// A session on a host.
    pub async fn connect(&self, host: &str) -> String {
        let said = self
            .call("ssh_connect", json!({"host": host}))
            .await
            .unwrap();
        match said["structuredContent"]["session_id"].as_str() {
            Some(id) => id.to_owned(),
            None => panic!("{said}"),
        }
    }

    /// Runs a command, and gives the whole result.
    pub async fn run(&self, session: &str, command: &str) -> Result<Value, String> {
        self.call(
            "ssh_run_command",
            json!({"session_id": session, "command": command}),
        )
        .await
    }
}
