//! `builtin: ssh` as a user meets it: the shipped rules, a person's yes, the journal, and a real sshd.

use std::fs;
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Instant;

use mcp::client::Client;
use serde_json::{Value, json};

use crate::support::components;
use crate::support::guarded::{LATEST, PATIENCE, Place, end};
use crate::support::program::binary;

/// A secret that nothing may repeat.
const CANARY: &str = "canary-5d1f-password";

/// Files below a directory that have a text in them.
fn with_text(directory: &Path, text: &str, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            with_text(&path, text, found);
        } else if fs::read(&path).is_ok_and(|bytes| {
            bytes
                .windows(text.len())
                .any(|part| part == text.as_bytes())
        }) {
            found.push(path);
        }
    }
}

/// An sshd of this test's, stopped by its id.
pub struct Sshd(Child);

impl Sshd {
    pub fn id(&self) -> u32 {
        self.0.id()
    }
}

impl Drop for Sshd {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

pub fn output(program: &str, args: &[&str]) -> String {
    let output = Command::new(program).args(args).output().unwrap();
    assert!(output.status.success(), "{program} {args:?}");
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

/// An sshd on a free port that takes one key, and the file of hosts that says so.
pub fn target(place: &Place) -> Sshd {
    let at = |name: &str| place.path(name).display().to_string();
    for key in ["host", "user"] {
        output(
            "ssh-keygen",
            &["-q", "-t", "ed25519", "-N", "", "-f", &at(key)],
        );
    }
    let me = output("id", &["-un"]);
    if me == "root" {
        fs::create_dir_all("/run/sshd").unwrap();
    }
    let port = mocks::ports::reserved().unwrap();
    let config = format!(
        "Port {port}\nListenAddress 127.0.0.1\nHostKey {}\nPidFile none\nAuthorizedKeysFile {}\nStrictModes no\nUseDNS no\nUsePAM no\nPermitRootLogin yes\nPasswordAuthentication no\nKbdInteractiveAuthentication no\nMaxStartups 500:30:1000\nSubsystem sftp internal-sftp\n",
        at("host"),
        at("user.pub"),
    );
    fs::write(place.path("sshd_config"), config).unwrap();
    let sshd = Command::new("/usr/sbin/sshd")
        .args(["-D", "-f", &at("sshd_config"), "-E", &at("sshd.log")])
        .stdin(Stdio::null())
        .spawn()
        .unwrap();
    let sshd = Sshd(sshd);
    let began = Instant::now();
    while TcpStream::connect(("127.0.0.1", port)).is_err() {
        assert!(began.elapsed() < PATIENCE, "sshd does not start");
        std::thread::yield_now();
    }
    let key = fs::read_to_string(place.path("host.pub")).unwrap();
    fs::write(
        place.path("known_hosts"),
        format!("[127.0.0.1]:{port} {key}"),
    )
    .unwrap();
    fs::write(place.path("password"), CANARY).unwrap();
    let hosts = format!(
        "known_hosts: [known_hosts]\ncredentials:\n  me: {{ user: {me}, key: user }}\n  locked: {{ user: {me}, password_file: password }}\nhosts:\n  web: {{ address: 127.0.0.1, port: {port}, credential: me }}\n  locked: {{ address: 127.0.0.1, port: {port}, credential: locked }}\n"
    );
    fs::write(place.path("ssh_hosts.yaml"), hosts).unwrap();
    fs::write(
        place.path("durward.yaml"),
        "servers: { ssh: { builtin: ssh, hosts: ssh_hosts.yaml } }\n",
    )
    .unwrap();
    sshd
}

pub fn has_sshd() -> bool {
    components::installed("/usr/sbin/sshd")
}

#[test]
fn without_a_policy_the_shipped_rules_apply() {
    if !has_sshd() {
        return;
    }
    let place = Place::new();
    let _sshd = target(&place);
    let mut args = place.run_args(&[], &[]);
    let policy = args.iter().position(|arg| arg == "--policy").unwrap();
    args.drain(policy..=policy + 1);
    args.pop();
    args.push("ssh".to_owned());
    let at = args.iter().position(|arg| arg == "--no-config").unwrap();
    args.splice(at..=at, ["--config".to_owned(), "durward.yaml".to_owned()]);
    let mut client = Client::spawn_with(binary(), args, &place.options()).unwrap();
    client.handshake(LATEST).unwrap();
    let said = client
        .call_tool("ssh_connect", json!({"host": "web"}))
        .unwrap();
    let session = said.result().unwrap()["structuredContent"]["session_id"].clone();
    let mut call = |tool: &str, mut arguments: Value| {
        arguments["session_id"] = session.clone();
        let said = client.call_tool(tool, arguments).unwrap();
        format!("{:?}", said.result())
    };
    let key = "/etc/ssh/ssh_host_ed25519_key";
    let refused = call("ssh_cat_file", json!({"path": key}));
    assert!(refused.contains("ssh-deny-secrets"), "{refused}");
    let passes = call("ssh_run_command", json!({"command": "hostname"}));
    assert!(passes.contains(&output("hostname", &[])), "{passes}");
    let ended = end(client);
    assert!(
        ended.stderr.contains("the shipped SSH rules apply"),
        "{}",
        ended.stderr
    );
    let check = place.durward(&["check", "--config", "durward.yaml", "--json"]);
    let check: Value = serde_json::from_slice(&check.stdout).unwrap();
    assert_eq!(check["servers"][0]["policy_source"], "ssh", "{check}");
}

#[test]
fn an_agent_runs_what_the_shipped_rules_allow_and_nothing_else() {
    if !has_sshd() {
        return;
    }
    let place = Place::new();
    let _sshd = target(&place);
    let rules = place.durward(&["ssh", "rules"]);
    place.write_policy(&String::from_utf8(rules.stdout).unwrap());
    let mut client = place.guard_configured("durward.yaml", &[], "ssh");
    client.handshake(LATEST).unwrap();
    let said = client
        .call_tool("ssh_connect", json!({"host": "web"}))
        .unwrap();
    let session = said.result().unwrap()["structuredContent"]["session_id"]
        .as_str()
        .unwrap()
        .to_owned();
    let mut run = |command: &str| {
        let said = client
            .call_tool(
                "ssh_run_command",
                json!({"session_id": session, "command": command}),
            )
            .unwrap();
        said.result().cloned().map_err(|error| format!("{error:?}"))
    };
    let said = run("hostname").unwrap();
    assert_eq!(
        said["structuredContent"]["stdout"],
        output("hostname", &[]) + "\n"
    );
    assert_eq!(said["structuredContent"]["exit_code"], 0);
    let touched = place.path("touched");
    for refused in [
        "cat /etc/shadow".to_owned(),
        format!("hostname\ntouch {}", touched.display()),
        format!("hostname\rtouch {}", touched.display()),
        format!("hostname\ttouch {}", touched.display()),
        format!("hostname & touch {}", touched.display()),
        format!("hostname & id > {}", touched.display()),
        format!("sort -o {} /etc/hosts", touched.display()),
        format!("touch {}", touched.display()),
        "bash -c id".to_owned(),
    ] {
        let said = run(&refused);
        assert!(
            said.is_err() || said.as_ref().is_ok_and(|said| said["isError"] == true),
            "{refused}: {said:?}"
        );
        // What cannot be read is told as that, whatever rule could not be decided for it.
        let told = format!("{said:?}");
        assert_eq!(
            refused.starts_with("hostname"),
            told.contains("the arguments do not fit: "),
            "{refused}: {told}"
        );
    }
    assert!(!touched.exists());
    // A link is judged once it is known where it leads, and the refusal is a decision of its own.
    for (name, to) in [("plain", "/etc/hostname"), ("bait", "/etc/shadow")] {
        std::os::unix::fs::symlink(to, place.path(name)).unwrap();
    }
    let said = run(&format!("cat {}", place.path("plain").display())).unwrap();
    let opened = &said["structuredContent"]["opened"];
    assert_eq!(opened.as_object().unwrap().len(), 1, "{said}");
    let said = run(&format!("cat {}", place.path("bait").display())).unwrap();
    assert_eq!(said["isError"], true, "{said}");
    assert_eq!(
        said["_meta"]["durward/refusal"]["final_rule"], "ssh-deny-secrets",
        "{said}"
    );
    // Secrets of the file and of a call: in no answer, no journal, no log.
    for arguments in [
        json!({"host": "locked"}),
        json!({"host": "web", "password": CANARY}),
    ] {
        let said = client.call_tool("ssh_connect", arguments).unwrap();
        let told = format!("{:?}", said.result());
        assert!(
            told.contains("locked: the server refused the password")
                || told.contains("takes no password"),
            "{told}"
        );
        assert!(!told.contains(CANARY), "{told}");
    }
    let ended = end(client);
    assert_eq!(ended.code, Some(0));
    assert!(!ended.stderr.contains(CANARY), "{}", ended.stderr);
    let mut found = Vec::new();
    with_text(&place.dir, CANARY, &mut found);
    assert_eq!(found, [place.path("password")]);
    let journal = place.journal();
    let decided = journal.decisions();
    let of = |rule: &str| {
        decided
            .iter()
            .filter(|record| record["final_rule"] == rule)
            .count()
    };
    assert_eq!(
        (of("ssh-allow-host"), of("ssh-deny-secrets")),
        (1, 2),
        "{decided:#?}"
    );
    // The one that was let pass before its link was known.
    assert_eq!(of("ssh-allow-cat"), 2, "{decided:#?}");
    let ran = decided
        .iter()
        .find(|record| record["final_rule"] == "ssh-allow-host")
        .unwrap()
        .to_string();
    assert!(
        ran.contains("\"host\"") && ran.contains("web") && ran.contains("hostname"),
        "{ran}"
    );
}

#[test]
fn check_tells_what_becomes_of_a_command_by_its_exit_code() {
    let place = Place::new();
    for (command, code, word) in [
        (
            "cat /etc/hostname",
            0,
            "ALLOWED  rule ssh-allow-cat: whole files\n",
        ),
        (
            "systemctl restart nginx",
            3,
            "ASKS  rule ssh-ask-services: ",
        ),
        ("cat /etc/shadow", 4, "REFUSED  rule ssh-deny-secrets: "),
        (
            "rm -rf /tmp/x",
            4,
            "REFUSED  rule default: no rule allows it\nnote: the shipped rules do not know",
        ),
        (
            "sort -o /tmp/x /tmp/y",
            4,
            "REFUSED  rule default: no rule allows it\nnote: of this program, these forms are allowed:\n  sort {",
        ),
        (
            "hostname; id",
            4,
            "REFUSED  it cannot be read: ; outside of quotes is for a shell",
        ),
    ] {
        let output = place.durward(&["ssh", "check", command]);
        let told = String::from_utf8(output.stdout).unwrap();
        assert_eq!(output.status.code(), Some(code), "{command}: {told}");
        assert!(told.starts_with(word), "{command}: {told}");
    }
    fs::write(
        place.path("hosts.yaml"),
        "hosts: { web: { credential: none } }\n",
    )
    .unwrap();
    let output = place.durward(&["ssh", "hosts", "check", "hosts.yaml"]);
    let told = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(16));
    assert_eq!(
        told,
        "error: hosts.yaml: hosts.web.credential: there is no credential \"none\"\n"
    );
}

#[test]
fn a_file_of_hosts_is_looked_at_before_anybody_connects() {
    let place = Place::new();
    let text = "known_hosts: [known]\ncredentials:\n  me: { user: me, key: missing }\n  you: { user: you, password_file: secret }\nhosts:\n  web: { address: 10.0.0.5, port: 2222, credential: me }\n  db: { address: 10.0.0.9, credential: you, trust: first_use }\n";
    fs::write(place.path("hosts.yaml"), text).unwrap();
    fs::write(place.path("secret"), "x\n").unwrap();
    let looked = |code: i32, expected: &[&str]| {
        let output = place.durward(&["ssh", "hosts", "check", "hosts.yaml"]);
        let told = String::from_utf8(output.stdout).unwrap();
        assert_eq!(output.status.code(), Some(code), "{told}");
        let found: Vec<&str> = told
            .lines()
            .filter(|line| line.contains("will fail"))
            .collect();
        assert_eq!(found.len(), expected.len(), "{told}");
        for (line, begin) in found.iter().zip(expected) {
            assert!(line.starts_with(begin), "{told}");
        }
    };
    looked(
        1,
        &[
            "web  will fail: key ",
            "web  will fail: the key of [10.0.0.5]:2222 is not known: `ssh-keyscan -p 2222 10.0.0.5` prints it",
        ],
    );
    fs::write(place.path("missing"), "x\n").unwrap();
    fs::write(place.path("known"), "[10.0.0.5]:2222 ssh-ed25519 AAAA\n").unwrap();
    looked(0, &[]);
    fs::remove_file(place.path("secret")).unwrap();
    looked(1, &["db  will fail: secret "]);
}
