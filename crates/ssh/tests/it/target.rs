//! A real sshd on a free port of this machine, with keys of its own, for one test.

use std::fs;
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use gate::limits::{Limits, Rate};
use serde_json::{Value, json};
use ssh::hosts::Hosts;
use ssh::{Environment, Ssh};
use toolkit::mcp::BuiltinSession;
use toolkit::trial::Trial;

/// A line of a configuration by which sshd has no SFTP server.
pub const NO_SFTP: &str = "# no sftp\n";

/// The processes of this machine, with their parents and words.
fn processes() -> Vec<(u32, u32, Vec<String>)> {
    let entries = fs::read_dir("/proc").unwrap().flatten();
    entries
        .filter_map(|entry| {
            let pid = entry.file_name().to_str()?.parse().ok()?;
            let stat = fs::read_to_string(entry.path().join("stat")).ok()?;
            let parent = stat
                .rsplit_once(')')?
                .1
                .split_whitespace()
                .nth(1)?
                .parse()
                .ok()?;
            let line = fs::read(entry.path().join("cmdline")).ok()?;
            let words = String::from_utf8_lossy(&line)
                .split('\0')
                .map(str::to_owned)
                .collect();
            Some((pid, parent, words))
        })
        .collect()
}

fn kill(pid: u32) {
    let _ = Command::new("kill")
        .args(["-9", &pid.to_string()])
        .stderr(Stdio::null())
        .status();
}

/// Ends the processes that have this word, which a test has made up.
pub fn end(word: &str) {
    for (pid, _, words) in processes() {
        if words.iter().any(|is| is == word) {
            kill(pid);
        }
    }
}

/// A running sshd; it is killed by its id at the end.
pub struct Target {
    pub folder: PathBuf,
    pub port: u16,
    user: String,
    sshd: Child,
}

/// A server before targets, as one client has it.
pub struct Client {
    pub trial: Trial,
    pub session: BuiltinSession,
}

/// Where a program is.
pub fn program(name: &str) -> Option<PathBuf> {
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

/// The password of every user of a target, where this is root.
pub const PASSWORD: &str = "testpass";
const HASH: &str = "$6$durward$PIfTN0ns49KEBSKH9JKrtXaUPuOrIbpm26fBAnV/1SPKSMRxHQgaZAHemnfQjm9nls6CjEROyGifRRfcOedKc1";
const SHELLS: [&str; 6] = ["bash", "dash", "zsh", "fish", "tcsh", "rbash"];

/// A user whose processes are one test's alone.
const QUIET: &str = "it-quiet";

/// Whether targets have users of their own: root gives sshd its own list of them, in a namespace.
pub fn is_root() -> bool {
    this_user() == "root"
}

/// Who logs in: as root a user that only targets have, because sshd signals nothing that root runs.
pub fn user() -> String {
    if is_root() {
        "it-bash".into()
    } else {
        this_user()
    }
}

fn this_user() -> String {
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

/// An sshd of the configuration in this folder.
fn sshd(folder: &Path) -> Command {
    let at = |name: &str| folder.join(name).display().to_string();
    let own = program("sshd").unwrap().display().to_string();
    if !is_root() {
        let mut command = Command::new(own);
        command.args(["-D", "-f", &at("config"), "-E", &at("log")]);
        return command;
    }
    // sshd's place to drop its rights in.
    fs::create_dir_all("/run/sshd").unwrap();
    let (mut users, mut hashes) = (
        fs::read_to_string("/etc/passwd").unwrap(),
        fs::read_to_string("/etc/shadow").unwrap(),
    );
    let own_home = folder.join("home");
    let home = if own_home.exists() {
        own_home.display().to_string()
    } else {
        "/tmp".to_owned()
    };
    for (number, shell) in SHELLS.iter().enumerate() {
        let path =
            program(shell).map_or_else(|| "/bin/sh".into(), |path| path.display().to_string());
        users.push_str(&format!(
            "it-{shell}:x:{0}:{0}::{home}:{path}\n",
            61_000 + number
        ));
        hashes.push_str(&format!("it-{shell}:{HASH}:19000:0:99999:7:::\n"));
    }
    users.push_str(&format!("{QUIET}:x:61090:61090::{home}:/bin/sh\n"));
    hashes.push_str(&format!("{QUIET}:{HASH}:19000:0:99999:7:::\n"));
    fs::write(folder.join("users"), users).unwrap();
    fs::write(folder.join("hashes"), hashes).unwrap();
    let script = "[ ! -e \"$0/small\" ] || mount -t tmpfs -o size=1m,mode=777 tmpfs \"$0/home\"; [ ! -e \"$0/sudoers\" ] || mount --bind \"$0/sudoers\" /etc/sudoers; mount --bind \"$0/users\" /etc/passwd && mount --bind \"$0/hashes\" /etc/shadow && exec \"$1\" -D -f \"$0/config\" -E \"$0/log\"";
    let mut command = Command::new("unshare");
    command
        .args(["--mount", "--propagation", "private", "sh", "-c", script])
        .arg(folder)
        .arg(own);
    command
}

fn write_sudoers(folder: &Path, line: &str) {
    let text = format!("Defaults lecture=never\nDefaults timestamp_timeout=5\n{line}\n");
    let path = folder.join("sudoers");
    fs::write(&path, text).unwrap();
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o440);
    fs::set_permissions(&path, mode).unwrap();
}

impl Target {
    /// An sshd that takes one key, with more lines in its configuration.
    pub fn new(more: &str) -> Self {
        let folder = folder();
        keygen(&folder.join("host"), &[]);
        keygen(&folder.join("user"), &[]);
        Self::start(folder, more, None)
    }

    /// One with a user whose processes are this test's alone; for root only.
    pub fn quiet() -> Self {
        let mut target = Self::new("");
        target.user = QUIET.to_owned();
        target
    }

    /// One at which users may run what this line of `sudoers` says; for root only.
    pub fn with_sudo(line: &str) -> Self {
        let folder = folder();
        keygen(&folder.join("host"), &[]);
        keygen(&folder.join("user"), &[]);
        write_sudoers(&folder, line);
        Self::start(folder, "", None)
    }

    /// One whose users have a home with this file; for root only.
    pub fn with_home(shell: &str, (name, text): (&str, &str), sudoers: Option<&str>) -> Self {
        let folder = folder();
        keygen(&folder.join("host"), &[]);
        keygen(&folder.join("user"), &[]);
        let file = folder.join("home").join(name);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(file, text).unwrap();
        if let Some(line) = sudoers {
            write_sudoers(&folder, line);
        }
        let mut target = Self::start(folder, "", None);
        target.user = format!("it-{shell}");
        target
    }

    /// One whose users have a home with a disk of its own, of 1 MiB; for root only.
    pub fn with_small_home() -> Self {
        let folder = folder();
        keygen(&folder.join("host"), &[]);
        keygen(&folder.join("user"), &[]);
        fs::create_dir(folder.join("home")).unwrap();
        fs::write(folder.join("small"), "").unwrap();
        Self::start(folder, "", None)
    }

    /// An sshd behind which every command is read by this shell.
    pub fn with_shell(shell: &str) -> Self {
        if is_root() {
            let mut target = Self::new("");
            target.user = format!("it-{shell}");
            return target;
        }
        let path = program(shell).unwrap();
        Self::new(&format!(
            "ForceCommand exec {} -c \"$SSH_ORIGINAL_COMMAND\"\n",
            path.display()
        ))
    }

    /// One with keys that are there.
    pub fn start(folder: PathBuf, more: &str, port: Option<u16>) -> Self {
        let port = port.unwrap_or_else(|| mocks::ports::reserved().unwrap());
        let at = |name: &str| folder.join(name).display().to_string();
        let sftp = if more.contains(NO_SFTP) {
            ""
        } else {
            "Subsystem sftp internal-sftp\n"
        };
        let config = format!(
            "{more}{sftp}Port {port}\nListenAddress 127.0.0.1\nHostKey {}\nPidFile none\nAuthorizedKeysFile {}\nStrictModes no\nUseDNS no\nUsePAM no\nPermitRootLogin yes\nPasswordAuthentication no\nKbdInteractiveAuthentication no\nMaxStartups 500:30:1000\n",
            at("host"),
            at("user.pub"),
        );
        fs::write(folder.join("config"), config).unwrap();
        let sshd = sshd(&folder).stdin(Stdio::null()).spawn().unwrap();
        let target = Self {
            folder,
            port,
            user: user(),
            sshd,
        };
        target.listens();
        target.know();
        target
    }

    /// Waits until it can be connected to.
    fn listens(&self) {
        let began = Instant::now();
        while TcpStream::connect(("127.0.0.1", self.port)).is_err() {
            assert!(
                began.elapsed() < Duration::from_secs(20),
                "sshd does not start: {}",
                self.log()
            );
            std::thread::yield_now();
        }
    }

    /// Ends it with all of its connections, and starts it anew at its port.
    pub fn restart(&mut self) {
        self.cut();
        self.sshd.kill().unwrap();
        self.sshd.wait().unwrap();
        let next = sshd(&self.folder).stdin(Stdio::null()).spawn();
        self.sshd = next.unwrap();
        self.listens();
    }

    /// Cuts all of its connections; it takes new ones.
    pub fn cut(&self) {
        // Each has a process with sshd's rights, and one with the user's, which has the socket.
        let all = processes();
        let below = |parent: u32| {
            let is_sshd =
                |words: &[String]| words.first().is_some_and(|name| name.starts_with("sshd"));
            all.iter()
                .filter(move |(_, of, words)| *of == parent && is_sshd(words))
                .map(|(pid, _, _)| *pid)
        };
        for own in below(self.sshd.id()) {
            for users in below(own) {
                kill(users);
            }
            kill(own);
        }
    }

    /// A command that runs this text: a script of its own, since words that look like paths are looked up.
    pub fn script(&self, name: &str, text: &str) -> String {
        let path = self.folder.join(name);
        fs::write(&path, text).unwrap();
        format!("sh {}", path.display())
    }

    /// An empty file that whoever logs in may write.
    pub fn open_file(&self, name: &str) -> PathBuf {
        let path = self.folder.join(name);
        fs::write(&path, "").unwrap();
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o666);
        fs::set_permissions(&path, mode).unwrap();
        path
    }

    /// All processes that it has begun, and those that they have.
    pub fn below(&self) -> Vec<u32> {
        let all = processes();
        let mut found = vec![self.sshd.id()];
        let mut at = 0;
        while let Some(parent) = found.get(at).copied() {
            found.extend(
                all.iter()
                    .filter(|(_, of, _)| *of == parent)
                    .map(|(pid, ..)| *pid),
            );
            at += 1;
        }
        found
    }

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
        let more = more.replace("PORT", &self.port.to_string());
        let text = format!(
            "known_hosts: [known_hosts]\ncredentials:\n  me: {{ user: {}, key: user }}\nhosts:\n  web: {{ address: 127.0.0.1, port: {}, credential: me }}\n{more}",
            user(),
            self.port,
        );
        Hosts::of(&text, &self.folder).unwrap()
    }

    /// The same as the user of this target's shell.
    pub fn hosts_as(&self, more: &str) -> Hosts {
        let more = more.replace("PORT", &self.port.to_string());
        let text = format!(
            "known_hosts: [known_hosts]\ncredentials:\n  me: {{ user: {}, key: user }}\nhosts:\n{more}",
            self.user,
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
    /// One that knows these variables.
    pub fn with(hosts: Hosts, variables: &[(&str, &str)]) -> Self {
        let variables = variables
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        Self::of(Ssh::new(hosts, Environment::of(variables)).unwrap(), None)
    }

    pub fn new(hosts: Hosts, policy: Option<&str>) -> Self {
        Self::of(Ssh::new(hosts, Environment::default()).unwrap(), policy)
    }

    /// One that keeps long outputs in a folder.
    pub fn keeping(hosts: Hosts, folder: &Path) -> Self {
        Self::of(
            Ssh::new(hosts, Environment::default())
                .unwrap()
                .keeping(folder.join("kept")),
            None,
        )
    }

    fn of(server: Ssh, policy: Option<&str>) -> Self {
        let limits = Limits {
            requests: Rate::per_second(100_000),
            requests_burst: 100_000,
            tool_calls_max: 100_000,
            under_way_max: 1_000,
            ..Limits::default()
        };
        let trial = Trial::within(Arc::new(server), policy, limits).unwrap();
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
