//! No secret is anywhere but where its user put it: after every kind of SSH call, and a call of a model, beside each other.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::ssh_serve::{call_at, opened, post};
use crate::ssh_server::{has_sshd, output, target};
use crate::support::components;
use crate::support::guarded::{Place, binary, eventually};
use crate::support::serving::Served;
use crate::support::web::{Then, Web, reply};

pub const PASSWORD: &str = "canary-f1b7-password";
const CALLERS_PASSWORD: &str = "canary-93ce-from-caller";
pub const PASSPHRASE: &str = "canary-0d52-passphrase";
pub const SUDO: &str = "canary-68aa-of-sudo";
pub const PROVIDER_KEY: &str = "sk-canary-c44e-provider";
const SECRETS: [&str; 5] = [PASSWORD, CALLERS_PASSWORD, PASSPHRASE, SUDO, PROVIDER_KEY];

/// What gives a secret away: itself, and as it would be in hexadecimal or base64.
fn spellings(secret: &str) -> [String; 3] {
    use base64::Engine as _;
    let hexadecimal = secret.bytes().map(|byte| format!("{byte:02x}")).collect();
    let base64 = base64::engine::general_purpose::STANDARD_NO_PAD.encode(secret);
    [secret.to_owned(), hexadecimal, base64]
}

/// The secrets that stand in these bytes.
pub fn found_in(bytes: &[u8]) -> Vec<&'static str> {
    let has = |text: &String| {
        bytes
            .windows(text.len())
            .any(|part| part == text.as_bytes())
    };
    SECRETS
        .into_iter()
        .filter(|secret| spellings(secret).iter().any(has))
        .collect()
}

/// All files below a directory.
pub fn files(directory: &Path, all: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_symlink() {
            continue;
        }
        match path.is_dir() {
            true => files(&path, all),
            false => all.push(path),
        }
    }
}

/// A process and all that it has begun.
pub fn tree(root: u32) -> Vec<u32> {
    let mut parents = BTreeMap::new();
    for entry in fs::read_dir("/proc").unwrap().flatten() {
        let Some(pid) = entry
            .file_name()
            .to_str()
            .and_then(|name| name.parse::<u32>().ok())
        else {
            continue;
        };
        let stat = fs::read_to_string(entry.path().join("stat")).unwrap_or_default();
        let parent = stat
            .rsplit_once(')')
            .and_then(|(_, rest)| rest.split_whitespace().nth(1));
        parents.insert(pid, parent.and_then(|text| text.parse::<u32>().ok()));
    }
    let mut found = vec![root];
    let mut at = 0;
    while let Some(parent) = found.get(at).copied() {
        found.extend(
            parents
                .iter()
                .filter(|(_, of)| **of == Some(parent))
                .map(|(pid, _)| *pid),
        );
        at += 1;
    }
    found
}

/// A gate before a real sshd and a provider, with a secret of each kind, and all that it says in a log.
struct Scene {
    served: Served,
    session: String,
    /// All that was answered.
    told: String,
    /// The tools that were called.
    called: BTreeSet<String>,
}

fn write_configuration(place: &Place, provider: u16) {
    let key = place.path("user").display().to_string();
    output(
        "ssh-keygen",
        &["-q", "-p", "-f", &key, "-P", "", "-N", PASSPHRASE],
    );
    for (name, secret) in [
        ("password", PASSWORD),
        ("passphrase", PASSPHRASE),
        ("sudo", SUDO),
    ] {
        fs::write(place.path(name), secret).unwrap();
    }
    let me = output("id", &["-un"]);
    let text = fs::read_to_string(place.path("ssh_hosts.yaml")).unwrap();
    let (_, port) = text.split_once("port: ").unwrap();
    let port = port.split(',').next().unwrap();
    let at = format!("address: 127.0.0.1, port: {port}");
    let hosts = format!(
        "known_hosts: [known_hosts]\nlocal_folders: {{ drop: drop }}\nrecordings: recordings\nenv: [APP_*]\ncredentials:\n\
         \x20 me: {{ user: {me}, key: user, passphrase_file: passphrase, sudo_password_file: sudo }}\n\
         \x20 wrong: {{ user: {me}, key: user, passphrase_file: password }}\n\
         \x20 locked: {{ user: {me}, password_file: password }}\n\
         \x20 asks: {{ user: {me}, password_from_caller: true }}\n\
         hosts:\n\
         \x20 web: {{ {at}, credential: me }}\n\x20 wrong: {{ {at}, credential: wrong }}\n\
         \x20 locked: {{ {at}, credential: locked }}\n\x20 asks: {{ {at}, credential: asks }}\n"
    );
    fs::write(place.path("ssh_hosts.yaml"), hosts).unwrap();
    for name in ["drop", "recordings"] {
        fs::create_dir(place.path(name)).unwrap();
    }
    let yaml = format!(
        "servers: {{ ssh: {{ builtin: ssh, hosts: ssh_hosts.yaml }} }}\n\
         models: {{ providers: {{ far: {{ kind: openai, base_url: \"http://127.0.0.1:{provider}/v1\", api_key: {PROVIDER_KEY} }} }} }}\n"
    );
    fs::write(place.path("durward.yaml"), yaml).unwrap();
    place.write_policy(
        r#"{"version":"1","default_action":"deny","rules":[
            {"id":"not-this","effect":"deny","conditions":{"tool_name":"ssh_*","path_pattern":"/etc/shadow"}},
            {"id":"tools","effect":"allow","conditions":{"tool_name":"*"}},
            {"id":"models","effect":"allow","conditions":{"resource_type":"model"}}]}"#,
    );
}

impl Scene {
    fn new(place: Place) -> Self {
        // All that it says goes to a file, in every detail.
        let script = place.path("start");
        let log = place.path("gate.log").display().to_string();
        let text = format!("#!/bin/sh\nexec {} -vv \"$@\" 2> {log}\n", binary());
        fs::write(&script, text).unwrap();
        fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).unwrap();
        let served = Served::start_program(place, &script);
        let session = opened(&served, "/mcp/ssh");
        Self {
            served,
            session,
            told: String::new(),
            called: BTreeSet::new(),
        }
    }

    fn call(&mut self, tool: &str, arguments: Value) -> Value {
        let said = call_at(&self.served, "/mcp/ssh", &self.session, tool, arguments);
        self.told.push_str(&said.to_string());
        self.called.insert(tool.to_owned());
        said["result"].clone()
    }

    /// The same, and it does what it was asked for.
    fn done(&mut self, tool: &str, arguments: Value) -> Value {
        let said = self.call(tool, arguments);
        assert!(
            said["isError"] != true && said.is_object(),
            "{tool}: {said}"
        );
        said["structuredContent"].clone()
    }

    fn logins_that_fail(&mut self) {
        for arguments in [
            json!({"host": "locked"}),
            json!({"host": "wrong"}),
            json!({"host": "asks", "password": CALLERS_PASSWORD}),
            json!({"host": "web", "password": CALLERS_PASSWORD}),
            json!({"host": CALLERS_PASSWORD.len().to_string()}),
        ] {
            let said = self.call("ssh_connect", arguments);
            assert_eq!(said["isError"], true, "{said}");
        }
    }

    fn commands(&mut self, id: &Value) {
        for command in [
            "hostname",
            "cat /etc/shadow",
            "cat /no/such/file",
            "hostname; id",
            "false",
        ] {
            self.call(
                "ssh_run_command",
                json!({"session_id": id, "command": command}),
            );
        }
        let run = json!({"session_id": id, "command": "printenv APP_A", "env": {"APP_A": "1"}, "cwd": "/tmp"});
        self.done("ssh_run_command", run);
        self.done(
            "ssh_batch_commands",
            json!({"session_id": id, "commands": ["id", "false"]}),
        );
        self.done(
            "ssh_cat_file",
            json!({"session_id": id, "path": "/etc/hostname"}),
        );
        self.done(
            "ssh_fan_out",
            json!({"hosts": ["web"], "command": "hostname"}),
        );
        if components::installed("/usr/bin/sudo") {
            let said = self.call(
                "ssh_run_command",
                json!({"session_id": id, "command": "sudo id"}),
            );
            assert!(
                said.to_string().contains("uid=0") || said["isError"] == true,
                "{said}"
            );
        }
        let late = json!({"session_id": id, "command": "sleep 60", "timeout_ms": 50});
        self.call("ssh_run_command", late);
    }

    fn files(&mut self, id: &Value) {
        let at = self.served.place.path("far.txt").display().to_string();
        fs::write(self.served.place.path("drop/one"), "one\ntwo\n").unwrap();
        self.done(
            "ssh_put",
            json!({"session_id": id, "path": at, "local": "drop/one"}),
        );
        self.call(
            "ssh_put",
            json!({"session_id": id, "path": at, "local": "drop/one"}),
        );
        let edits = json!([{"old_text": "two", "new_text": "three"}]);
        self.done(
            "ssh_edit_file",
            json!({"session_id": id, "path": at, "edits": edits}),
        );
        self.done(
            "ssh_get",
            json!({"session_id": id, "path": at, "local": "drop/two"}),
        );
        self.done("ssh_list_dir", json!({"session_id": id, "path": "/tmp"}));
    }

    fn what_stays_open(&mut self, id: &Value) {
        let job = self.done(
            "ssh_job_start",
            json!({"session_id": id, "command": "echo job"}),
        );
        let asked = json!({"job": job["job"], "wait_ms": 20_000});
        self.done("ssh_job_status", asked);
        self.done("ssh_job_output", json!({"job": job["job"]}));
        let open = json!({"session_id": id, "command": "cat", "wait_ms": 0});
        let terminal = self.done("ssh_terminal_open", open);
        let typed = json!({"session_id": id, "terminal": terminal["terminal"], "text": "typed\r", "wait_for": "typed", "wait_ms": 20_000});
        self.done("ssh_terminal_send", typed);
        self.done(
            "ssh_terminal_close",
            json!({"session_id": id, "terminal": terminal["terminal"]}),
        );
        let forward = json!({"session_id": id, "kind": "local", "targets": ["127.0.0.1:1"]});
        self.call("ssh_forward_open", forward);
        for tool in ["ssh_list_sessions", "ssh_pool_stats", "ssh_forward_list"] {
            self.call(tool, json!({"session_id": id}));
        }
    }

    /// The tools that nothing else here calls, and that none is left out.
    fn others(&mut self, id: &Value) {
        for tool in [
            "ssh_hostname",
            "ssh_network_interfaces",
            "ssh_network_routes",
            "ssh_network_firewall",
            "ssh_network_qdisc",
            "ssh_network_compare",
        ] {
            self.call(tool, json!({"session_id": id}));
        }
        let ping = json!({"session_id": id, "target": "::1", "tests": ["ping"], "ping_count": 1});
        self.call("ssh_network_connectivity", ping);
        // Those of something that is not there say so.
        for (tool, arguments) in [
            ("ssh_read_output", json!({"output": "none"})),
            ("ssh_job_cancel", json!({"job": "web:none"})),
            (
                "ssh_terminal_read",
                json!({"session_id": id, "terminal": "none"}),
            ),
            (
                "ssh_forward_close",
                json!({"session_id": id, "forward": "none"}),
            ),
        ] {
            self.call(tool, arguments);
        }
        self.done("ssh_run", json!({"session_id": id, "command": "hostname"}));
        self.done("ssh_disconnect", json!({"session_id": id}));
        let listed = post(
            &self.served,
            "/mcp/ssh",
            Some(&self.session),
            "tools/list",
            &json!({}),
        );
        let listed = listed.json();
        let tools = listed["result"]["tools"].as_array().unwrap();
        let all: BTreeSet<String> = tools
            .iter()
            .map(|tool| tool["name"].as_str().unwrap().to_owned())
            .collect();
        assert_eq!(self.called, all);
    }

    fn models(&mut self) {
        for streams in [false, true] {
            let body = json!({"model": "far/any", "stream": streams, "messages": [{"role": "user", "content": "hello"}]});
            let answer = self
                .served
                .send("POST", "/v1/chat/completions", &[], &body.to_string());
            assert!(answer.status >= 400, "{answer:?}");
            self.told.push_str(&format!("{answer:?}"));
        }
    }

    /// The processes of the gate and of sshd while a command runs, as everybody on the machine may see them.
    fn processes(&mut self, sshd: u32) {
        let gate = self.served.process.id();
        for root in [gate, sshd] {
            for pid in tree(root) {
                for name in ["cmdline", "environ"] {
                    let bytes = fs::read(format!("/proc/{pid}/{name}")).unwrap_or_default();
                    assert_eq!(found_in(&bytes), Vec::<&str>::new(), "/proc/{pid}/{name}");
                }
            }
        }
        let own = fs::read(format!("/proc/{gate}/cmdline")).unwrap();
        assert!(
            String::from_utf8_lossy(&own).contains("serve"),
            "it was looked at"
        );
    }

    fn pages(&mut self) {
        for path in ["/metrics", "/health", "/v1/models"] {
            let answer = self.served.send("GET", path, &[], "");
            assert!(!answer.body.is_empty(), "{path}");
            self.told.push_str(&format!("{answer:?}"));
        }
    }
}

#[test]
fn no_secret_is_in_a_log_a_record_a_metric_an_answer_or_a_process() {
    if !has_sshd() {
        return;
    }
    // It refuses, and repeats the key, as some providers do.
    let provider = Web::start(|request, wire| {
        let key = request.header("authorization").unwrap_or_default();
        let body = json!({"error": {"message": format!("incorrect key {key}"), "code": "invalid_api_key"}});
        wire.write_all(&reply(
            "401 Unauthorized",
            "",
            "application/json",
            &body.to_string(),
        ))?;
        Ok(Then::Close)
    });
    let place = Place::new();
    let sshd = target(&place);
    write_configuration(&place, provider.port);
    let mut scene = Scene::new(place);
    scene.logins_that_fail();
    let id = scene.done("ssh_connect", json!({"host": "web"}))["session_id"].clone();
    scene.commands(&id);
    scene.files(&id);
    scene.what_stays_open(&id);
    scene.models();
    let gate = scene.served.place.path("go");
    let runs = scene.served.place.path("runs");
    let script = format!(
        "touch {}; while [ ! -e {} ]; do sleep 0.05; done",
        runs.display(),
        gate.display()
    );
    fs::write(scene.served.place.path("script"), script).unwrap();
    let command = format!("sh {}", scene.served.place.path("script").display());
    let job = scene.done(
        "ssh_job_start",
        json!({"session_id": id, "command": command}),
    );
    eventually("the command runs", || runs.exists());
    scene.processes(sshd.id());
    fs::write(&gate, "").unwrap();
    scene.done(
        "ssh_job_status",
        json!({"job": job["job"], "wait_ms": 20_000}),
    );
    scene.others(&id);
    scene.pages();
    assert!(!provider.requests().is_empty(), "the provider was asked");
    let Scene { served, told, .. } = scene;
    assert_eq!(found_in(told.as_bytes()), Vec::<&str>::new(), "{told}");
    let (_, place) = served.stop();
    let own = ["durward.yaml", "passphrase", "password", "sudo"].map(|name| place.path(name));
    let mut all = Vec::new();
    files(&place.dir, &mut all);
    let holding: Vec<(PathBuf, Vec<&str>)> = all
        .iter()
        .filter(|path| !own.contains(path))
        .map(|path| (path.clone(), found_in(&fs::read(path).unwrap_or_default())))
        .filter(|(_, found)| !found.is_empty())
        .collect();
    assert_eq!(holding, []);
    let written = |part: &str| {
        all.iter()
            .any(|path| path.display().to_string().contains(part))
    };
    assert!(
        written("gate.log") && written("sshd.log") && written("journal") && written(".cast"),
        "{all:?}"
    );
    assert!(
        fs::metadata(place.path("gate.log")).unwrap().len() > 0,
        "the log has something"
    );
    // What is looked for would be found.
    assert_eq!(
        found_in(format!("x{}", spellings(SUDO)[2]).as_bytes()),
        [SUDO]
    );
}
