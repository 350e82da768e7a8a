//! The SSH servers that the lab starts, as OpenSSH's own client finds them.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::os::unix::fs::PermissionsExt as _;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use crate::support::{Directory, lab, lab_path, stderr};

/// Servers with their users, the twins not among them.
const ALL: [&str; 7] = [
    "standard", "keyonly", "prompts", "slowauth", "denyall", "unstable", "root",
];

/// Running servers; they end with their standard input.
struct Targets {
    place: Directory,
    process: Child,
    /// What they said when they looked at themselves.
    looked: Vec<String>,
}

fn has_ssh() -> bool {
    let found = Command::new("ssh")
        .arg("-V")
        .stderr(Stdio::null())
        .status()
        .is_ok();
    assert!(found, "ssh is missing; run scripts/setup-tests");
    found
}

impl Targets {
    fn start() -> Self {
        let place = Directory::new();
        let mut process = Command::new(lab_path())
            .args([
                "mock",
                "ssh-target",
                "--port",
                "0",
                "--dir",
                &place.join("target"),
            ])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut looked = Vec::new();
        for line in BufReader::new(process.stdout.take().unwrap()).lines() {
            let line = line.unwrap();
            if line.starts_with("ready: ") {
                break;
            }
            looked.push(line);
        }
        let askpass = place.join("askpass");
        fs::write(&askpass, "#!/bin/sh\necho \"$LAB_PASSWORD\"\n").unwrap();
        fs::set_permissions(&askpass, fs::Permissions::from_mode(0o755)).unwrap();
        Self {
            place,
            process,
            looked,
        }
    }

    /// Where a host listens, as the file of hosts has it.
    fn port(&self, name: &str) -> String {
        let text = fs::read_to_string(self.place.join("target/ssh_hosts.yaml")).unwrap();
        let is_host = |line: &&str| {
            line.trim_start().starts_with(&format!("{name}:")) && line.contains("port: ")
        };
        let line = text.lines().find(is_host);
        let (_, rest) = line.unwrap().split_once("port: ").unwrap();
        rest.split(',').next().unwrap().to_owned()
    }

    /// Logs in with the key, or with a password, and runs a command.
    fn ssh(&self, host: &str, user: &str, password: Option<&str>, command: &str) -> Output {
        let known = format!(
            "UserKnownHostsFile={}",
            self.place.join("target/known_hosts")
        );
        let key = self.place.join("target/id_ed25519");
        let methods = match password {
            Some(_) => "PreferredAuthentications=password",
            None => "PreferredAuthentications=publickey",
        };
        Command::new("ssh")
            .args([
                "-F",
                "none",
                "-o",
                &known,
                "-o",
                "StrictHostKeyChecking=yes",
                "-o",
                methods,
            ])
            .args([
                "-o",
                "NumberOfPasswordPrompts=1",
                "-o",
                "IdentitiesOnly=yes",
                "-i",
                &key,
            ])
            .args([
                "-p",
                &self.port(host),
                &format!("{user}@127.0.0.1"),
                command,
            ])
            .env("SSH_ASKPASS", self.place.join("askpass"))
            .env("SSH_ASKPASS_REQUIRE", "force")
            .env("LAB_PASSWORD", password.unwrap_or_default())
            .stdin(Stdio::null())
            .output()
            .unwrap()
    }
}

impl Drop for Targets {
    fn drop(&mut self) {
        drop(self.process.stdin.take());
        let _ = self.process.wait();
    }
}

#[test]
fn every_server_does_what_is_peculiar_about_it_and_its_twin_is_as_far_as_it_says() {
    if !has_ssh() {
        return;
    }
    let on = Targets::start();
    for name in ALL {
        for name in [name.to_owned(), format!("{name}-far")] {
            assert!(
                on.looked.iter().any(|line| line.contains(&name)),
                "{name}: {:?}",
                on.looked
            );
        }
    }
    let says = |output: &Output| String::from_utf8_lossy(&output.stdout).trim().to_owned();
    for (host, user, password) in [
        ("standard", "testuser", None),
        ("standard", "testuser", Some("testpass")),
        ("keyonly", "testuser", None),
        ("prompts", "fancyuser", Some("testpass")),
        ("prompts", "gituser", Some("testpass")),
        ("root", "root", Some("root")),
    ] {
        let output = on.ssh(host, user, password, "echo 'a  b'; echo c >&2; exit 3");
        assert_eq!(
            (says(&output).as_str(), output.status.code()),
            ("a  b", Some(3)),
            "{host} {user}: {}",
            stderr(&output)
        );
        assert!(stderr(&output).contains('c'), "{host}");
    }
    for (host, user, password) in [
        ("standard", "testuser", Some("wrong")),
        ("standard", "nobody-here", Some("testpass")),
        ("standard", "root", Some("root")),
        ("keyonly", "testuser", Some("testpass")),
        ("denyall", "testuser", None),
        ("denyall", "testuser", Some("testpass")),
    ] {
        let output = on.ssh(host, user, password, "echo in");
        assert_eq!(
            output.status.code(),
            Some(255),
            "{host} {user} {password:?}"
        );
        assert!(
            stderr(&output).contains("Permission denied"),
            "{}",
            stderr(&output)
        );
    }
    // Only the least that it must take can be said of a time.
    for (host, user, least_ms) in [
        ("slowauth", "slowuser", 2_000),
        ("standard-far", "testuser", 400),
        ("root-far", "root", 200),
    ] {
        let password = if user == "root" { "root" } else { "testpass" };
        let began = Instant::now();
        let output = on.ssh(host, user, Some(password), "true");
        assert_eq!(output.status.code(), Some(0), "{host}: {}", stderr(&output));
        let least = Duration::from_millis(least_ms);
        assert!(began.elapsed() >= least, "{host}: {:?}", began.elapsed());
    }
    // All of its connections are dropped within five seconds; the command would go on much longer.
    let output = on.ssh("unstable", "testuser", Some("testpass"), "sleep 60");
    assert_eq!(output.status.code(), Some(255), "{}", stderr(&output));
}

#[test]
fn what_cannot_be_started_is_said() {
    let place = Directory::new();
    let dir = place.join("target");
    let output = lab(&["mock", "ssh-target", "--dir", &dir, "--only", "standrad"]);
    assert!(!output.status.success());
    assert!(
        stderr(&output).contains("there is no server \"standrad\""),
        "{}",
        stderr(&output)
    );
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port().to_string();
    let words = [
        "mock",
        "ssh-target",
        "--dir",
        &dir,
        "--only",
        "standard",
        "--no-twins",
        "--port",
        &port,
    ];
    let output = lab(&words);
    assert!(!output.status.success());
    assert!(stderr(&output).contains(&port), "{}", stderr(&output));
}
