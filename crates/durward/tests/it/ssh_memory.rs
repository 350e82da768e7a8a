//! What a gate has in its memory and its environment stays there: no core has it, no other process of its user, no child.

use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Output, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;

use crate::ssh_canary::{PASSPHRASE, PASSWORD, PROVIDER_KEY, SUDO, files, found_in, tree};
use crate::ssh_serve::{call_at, opened};
use crate::ssh_server::{has_sshd, output, target};
use crate::support::guarded::{Place, binary, eventually};
use crate::support::serving::Served;

/// Files of a process that tell what it has in it.
const TELLING: [&str; 2] = ["environ", "maps"];

/// A script that runs its words with cores as large as they may be, and with no more rights than any process of this
/// user has: root could look into every process.
fn plain(place: &Place) -> PathBuf {
    let drop = match output("id", &["-u"]).as_str() {
        "0" => "setpriv --bounding-set -all --inh-caps -all --",
        _ => "",
    };
    let text = format!("#!/bin/sh\nulimit -c $(ulimit -Hc)\nexec {drop} \"$@\"\n");
    script(place, "plain", &text)
}

fn script(place: &Place, name: &str, text: &str) -> PathBuf {
    let path = place.path(name);
    fs::write(&path, text).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    path
}

/// The same for a gate, with a secret of each kind in its environment.
fn start(place: &Place) -> PathBuf {
    let plain = plain(place).display().to_string();
    let variables = [
        ("IT_PASSWORD", PASSWORD),
        ("IT_PASSPHRASE", PASSPHRASE),
        ("IT_SUDO", SUDO),
        ("IT_KEY", PROVIDER_KEY),
    ];
    let set = variables.map(|(name, value)| format!("export {name}={value}\n"));
    let text = format!(
        "#!/bin/sh\n{}exec {plain} {} \"$@\"\n",
        set.concat(),
        binary()
    );
    script(place, "start", &text)
}

fn configure(place: &Place) {
    let key = place.path("user").display().to_string();
    output(
        "ssh-keygen",
        &["-q", "-p", "-f", &key, "-P", "", "-N", PASSPHRASE],
    );
    let text = fs::read_to_string(place.path("ssh_hosts.yaml")).unwrap();
    let text = text
        .replace(
            "key: user }",
            "key: user, passphrase_env: IT_PASSPHRASE, sudo_password_env: IT_SUDO }",
        )
        .replace("password_file: password", "password_env: IT_PASSWORD");
    fs::write(place.path("ssh_hosts.yaml"), text).unwrap();
    let yaml = format!(
        "servers:\n  ssh: {{ builtin: ssh, hosts: ssh_hosts.yaml }}\n  child: {{ command: {}, args: [lab, mock, echo] }}\n  slow: {{ command: sh, args: [-c, \"touch began; exec sleep 600\"] }}\n\
         models: {{ providers: {{ far: {{ kind: openai, base_url: \"http://127.0.0.1:1/v1\", api_key: \"${{IT_KEY}}\" }} }} }}\n",
        binary()
    );
    fs::write(place.path("durward.yaml"), yaml).unwrap();
    place.write_policy(
        r#"{"version":"1","default_action":"deny","rules":[
            {"id":"tools","effect":"allow","conditions":{"tool_name":"*"}},
            {"id":"models","effect":"allow","conditions":{"resource_type":"model"}}]}"#,
    );
}

/// What another process of the same user reads of a process.
fn looked_at(place: &Place, pid: u32, name: &str) -> Output {
    Command::new(place.path("plain"))
        .args(["cat", &format!("/proc/{pid}/{name}")])
        .output()
        .unwrap()
}

/// Sends it a signal until it has ended: the first one may be caught.
fn crashed(process: &mut Child, signal: Signal) -> ExitStatus {
    let mut ended = None;
    eventually("it crashes", || {
        let _ = kill_process(Pid::from_child(process), signal);
        ended = process.try_wait().unwrap();
        ended.is_some()
    });
    ended.unwrap()
}

/// A program that keeps nothing to itself can be looked at, and leaves a core: what is refused below is refused by the gate.
fn control(place: &Place) {
    let mut sleep = Command::new(place.path("plain"))
        .args(["sleep", "600"])
        .current_dir(&place.dir)
        .spawn()
        .unwrap();
    let pid = sleep.id();
    eventually("it sleeps", || {
        fs::read(format!("/proc/{pid}/cmdline")).is_ok_and(|line| line == b"sleep\x00600\0")
    });
    for name in TELLING {
        let read = looked_at(place, pid, name);
        // What it read is not shown: it may be the tester's own.
        assert!(read.status.success() && !read.stdout.is_empty(), "{name}");
    }
    let dumped = crashed(&mut sleep, Signal::ABORT).core_dumped();
    // Where an administrator has forbidden cores, a gate cannot leave one either.
    let forbidden = rustix::process::getrlimit(rustix::process::Resource::Core).maximum == Some(0);
    assert!(dumped || forbidden, "no program leaves a core here");
}

/// Nobody looks into this gate, and it leaves no core.
fn keeps_to_itself(place: &Place, gate: &mut Child, signal: Signal) {
    for name in TELLING.into_iter().chain(["mem"]) {
        let read = looked_at(place, gate.id(), name);
        assert!(
            !read.status.success() && read.stdout.is_empty(),
            "{name} could be read"
        );
    }
    let ended = crashed(gate, signal);
    assert!(!ended.core_dumped(), "{ended}");
    let mut all = Vec::new();
    files(&place.dir, &mut all);
    let own = ["start", "password"].map(|name| place.path(name));
    let holding: Vec<PathBuf> = all
        .into_iter()
        .filter(|path| !own.contains(path))
        .filter(|path| !found_in(&fs::read(path).unwrap_or_default()).is_empty())
        .collect();
    assert_eq!(holding, [] as [PathBuf; 0]);
}

/// A gate that has logged in with a passphrase, tried a password, used sudo's and has a child and a provider's key.
fn used(place: Place, program: &Path) -> Served {
    let served = Served::start_program(place, program);
    let session = opened(&served, "/mcp/ssh");
    let call = |tool: &str, arguments| call_at(&served, "/mcp/ssh", &session, tool, arguments);
    let said = call("ssh_connect", json!({"host": "web"}));
    let id = &said["result"]["structuredContent"]["session_id"];
    assert!(id.is_string(), "{said}");
    let said = call("ssh_connect", json!({"host": "locked"}));
    assert_eq!(said["result"]["isError"], true, "{said}");
    let sudo = json!({"session_id": id, "command": "sudo id"});
    let said = call("ssh_run_command", sudo);
    assert!(said["result"].is_object(), "{said}");
    let body = json!({"model": "far/any", "messages": [{"role": "user", "content": "hello"}]});
    let answer = served.send("POST", "/v1/chat/completions", &[], &body.to_string());
    assert!(answer.status >= 500, "{answer:?}");
    let session = opened(&served, "/mcp/child");
    let said = call_at(
        &served,
        "/mcp/child",
        &session,
        "echo",
        json!({"text": "hello"}),
    );
    assert!(said["result"]["content"].is_array(), "{said}");
    served
}

#[test]
fn a_gate_that_crashes_leaves_no_core_and_no_process_of_its_user_looks_into_it() {
    if !has_sshd() {
        return;
    }
    let place = Place::new();
    let _sshd = target(&place);
    configure(&place);
    let program = start(&place);
    control(&place);
    let mut served = used(place, &program);
    let own = fs::read(format!("/proc/{}/environ", served.process.id()));
    if let Ok(own) = own {
        assert!(found_in(&own).contains(&SUDO), "it has them");
    }
    // What it has begun, its watchers and its child, has none of what it has itself.
    let below = &tree(served.process.id())[1..];
    assert!(below.len() >= 2, "{below:?}");
    for pid in below {
        for name in ["environ", "cmdline"] {
            let bytes = fs::read(format!("/proc/{pid}/{name}")).unwrap_or_default();
            assert_eq!(found_in(&bytes), Vec::<&str>::new(), "/proc/{pid}/{name}");
        }
    }
    keeps_to_itself(&served.place, &mut served.process, Signal::ABORT);
    let (_, place) = served.ended();
    let words = ["--state-dir", "state-ssh", "ssh", "serve", "--port", "0"];
    let words = [&words[..], &["--hosts", "ssh_hosts.yaml"]].concat();
    let mut served = Served::spawn_program(place, &program, &words);
    keeps_to_itself(&served.place, &mut served.process, Signal::SEGV);
}

#[test]
fn a_client_of_a_moment_and_a_gate_over_streams_leave_no_core_either() {
    if !has_sshd() {
        return;
    }
    let place = Place::new();
    let _sshd = target(&place);
    configure(&place);
    let program = start(&place);
    let begin = |words: &[&str]| {
        Command::new(&program)
            .args(["--config", "durward.yaml", "--state-dir", "state"])
            .args(words)
            .current_dir(&place.dir)
            .env("XDG_RUNTIME_DIR", place.runtime())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap()
    };
    let mut called = begin(&["call", "slow", "any", "--policy", "policy.json"]);
    eventually("its server has begun", || place.path("began").exists());
    keeps_to_itself(&place, &mut called, Signal::ABORT);
    let mut gate = begin(&["run", "--policy", "policy.json", "ssh"]);
    let params = json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}});
    let hello = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params});
    writeln!(gate.stdin.as_mut().unwrap(), "{hello}").unwrap();
    let mut answer = String::new();
    let mut said = BufReader::new(gate.stdout.take().unwrap());
    said.read_line(&mut answer).unwrap();
    assert!(answer.contains("protocolVersion"), "{answer}");
    keeps_to_itself(&place, &mut gate, Signal::SEGV);
}
