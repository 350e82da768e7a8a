//! What a server cannot reach whatever it does: Durward's own files are empty for it, a sandbox leaves it
//! only what is listed.
//!
//! The servers here are shell scripts that try one way after the other and write down what they got. They
//! speak no MCP: what the kernel keeps from them does not depend on it.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::process::{Command, Stdio};

use crate::support::guarded::{Place, binary};

const POLICY: &str = r#"{"rules":[{"id":"all","effect":"allow","conditions":{"tool_name":"*"}}]}"#;
const SECRET: &str = "never to be seen";

/// Tries that a server makes, each with a name, and what they printed.
struct Tries {
    place: Place,
    script: String,
}

impl Tries {
    fn new() -> Self {
        let place = Place::new();
        place.write_policy(POLICY);
        let out = place.path("out");
        std::fs::create_dir_all(&out).unwrap();
        std::fs::create_dir_all(place.path("state")).unwrap();
        std::fs::write(place.path("state/secret"), SECRET).unwrap();
        let gate = "gate=$(awk '/^PPid/{print $2}' /proc/$PPID/status)\n";
        Self {
            place,
            script: gate.to_owned(),
        }
    }

    /// One more try: its output, and `refused` where it failed.
    fn add(&mut self, name: &str, command: &str) {
        let out = self.place.path("out").join(name);
        let out = out.display();
        writeln!(
            self.script,
            "{{ {command} ; }} > {out} 2>/dev/null || echo refused >> {out}"
        )
        .unwrap();
    }

    /// Runs them all behind `durward run` with these flags; gives what each printed.
    fn run(&self, flags: &[&str]) -> (BTreeMap<String, String>, String) {
        let args = self.place.run_args(flags, &["sh", "-c", &self.script]);
        let output = Command::new(binary())
            .args(args)
            .current_dir(&self.place.dir)
            .stdin(Stdio::null())
            .output()
            .unwrap();
        let log = String::from_utf8(output.stderr).unwrap();
        let read = |entry: std::fs::DirEntry| {
            let name = entry.file_name().into_string().unwrap();
            let text = String::from_utf8_lossy(&std::fs::read(entry.path()).unwrap()).into_owned();
            (name, text.trim().to_owned())
        };
        let entries = std::fs::read_dir(self.place.path("out")).unwrap();
        (entries.map(|entry| read(entry.unwrap())).collect(), log)
    }
}

/// Ways to the protected places of a running gate.
const WAYS: [(&str, &str); 17] = [
    ("list", "ls -A STATE"),
    ("read", "cat STATE/secret"),
    ("keys", "cat STATE/keys/*"),
    ("journal", "cat STATE/journal/*"),
    ("policy", "cat POLICY"),
    ("write", "echo forged > STATE/secret"),
    ("write_policy", "echo forged >> POLICY"),
    ("move", "mv STATE STATE.gone"),
    ("move_policy", "mv POLICY POLICY.gone"),
    ("umount", "umount STATE && ls -A STATE"),
    ("umount_lazily", "umount -l STATE && ls -A STATE"),
    ("nested", "unshare -Urm sh -c 'umount STATE && ls -A STATE'"),
    (
        "bind",
        "mkdir -p OUT/../m && mount --bind / OUT/../m && ls -A OUT/../m/STATE",
    ),
    ("link", "ln -s STATE OUT/../l && cat OUT/../l/secret"),
    ("proc_root", "cat /proc/$gate/root/STATE/secret"),
    ("proc_environ", "cat /proc/$gate/environ"),
    ("proc_cwd", "cat /proc/$gate/cwd/state/secret"),
];

#[test]
fn j10_no_way_leads_to_durwards_own_files() {
    let mut tries = Tries::new();
    let text = |name: &str| tries.place.path(name).display().to_string();
    let (state, policy, out) = (text("state"), text("policy.json"), text("out"));
    for (name, way) in WAYS {
        let way = way.replace("STATE", &state).replace("POLICY", &policy);
        tries.add(name, &way.replace("OUT", &out));
    }
    tries.add(
        "work",
        &format!("echo works > {out}/../own && cat {out}/../own"),
    );
    let (found, log) = tries.run(&["--confine", "require"]);
    assert_eq!(found["work"], "works", "{log}");
    for (name, way) in WAYS {
        let shown = &found[name];
        assert!(
            shown.is_empty() || shown == "refused",
            "{way} printed {shown}\n{log}"
        );
    }
    let kept = std::fs::read_to_string(tries.place.path("state/secret")).unwrap();
    assert_eq!(kept, SECRET);
    let kept = std::fs::read_to_string(tries.place.path("policy.json")).unwrap();
    assert_eq!(kept, POLICY);
    tries.place.journal().assert_event("session_ended");
}

/// The ways do lead there where nothing is in between, so the test above can fail.
#[test]
fn without_confinement_the_ways_are_open() {
    let mut tries = Tries::new();
    let state = tries.place.path("state").display().to_string();
    tries.add("read", &format!("cat {state}/secret"));
    let (found, _) = tries.run(&["--confine", "off"]);
    assert_eq!(found["read"], SECRET);
}

#[test]
fn a_sandbox_leaves_what_is_listed() {
    let mut tries = Tries::new();
    let text = |name: &str| tries.place.path(name).display().to_string();
    let (readable, other, out) = (text("readable"), text("other"), text("out"));
    for folder in [&readable, &other] {
        std::fs::create_dir_all(folder).unwrap();
        std::fs::write(format!("{folder}/file"), "content").unwrap();
    }
    tries.add("read", &format!("cat {readable}/file"));
    tries.add("write_readable", &format!("echo x > {readable}/file"));
    tries.add("read_other", &format!("cat {other}/file"));
    tries.add("list_other", &format!("ls {other}"));
    tries.add(
        "write",
        &format!("echo written > {out}/new && cat {out}/new"),
    );
    tries.add("network", "cat /proc/net/dev | grep -c eth");
    let flag = format!("read={readable},write={out},network=none");
    let (found, log) = tries.run(&["--sandbox", &flag]);
    assert_eq!(found["read"], "content", "{log}");
    assert_eq!(found["write"], "written", "{log}");
    for refused in ["write_readable", "read_other", "list_other"] {
        assert_eq!(found[refused], "refused", "{refused}\n{log}");
    }
    assert_eq!(found["network"], "0\nrefused", "{log}");
}

/// Whoever starts Durward may have left descriptors open; a server does not get them.
#[test]
fn inherited_descriptors_do_not_reach_the_server() {
    let mut tries = Tries::new();
    tries.add("descriptor", "cat <&9");
    let words = tries.place.run_args(&[], &["sh", "-c", &tries.script]);
    let secret = tries.place.path("state/secret");
    let status = Command::new("sh")
        .args(["-c", r#"exec 9<"$0" "$@""#])
        .arg(secret)
        .arg(binary())
        .args(words)
        .current_dir(&tries.place.dir)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .unwrap();
    assert!(status.code().is_some());
    let got = std::fs::read_to_string(tries.place.path("out/descriptor")).unwrap();
    assert_eq!(got.trim(), "refused");
}

#[test]
fn a_sandbox_that_cannot_be_read_is_refused() {
    let place = Place::new();
    for (flag, expect) in [("read", "is not read=DIR"), ("reed=/", "none of read")] {
        let output = place.durward(&["run", "--sandbox", flag, "--", "true"]);
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(said.contains(expect), "{said}");
    }
}
