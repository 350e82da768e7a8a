//! What a server cannot reach whatever it does: Durward's own files are empty for it, a sandbox leaves it
//! only what is listed.
//!
//! The servers here are shell scripts that try one way after the other and write down what they got. They
//! speak no MCP: what the kernel keeps from them does not depend on it.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::Write as _;
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::net::{SocketAddr, UnixListener};
use std::path::Path;
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
        self.run_in(self.place.dir.as_path(), flags)
    }

    /// The same where this is the user's home.
    fn run_in(&self, home: &Path, flags: &[&str]) -> (BTreeMap<String, String>, String) {
        let args = self.place.run_args(flags, &["sh", "-c", &self.script]);
        let output = Command::new(binary())
            .args(args)
            .current_dir(&self.place.dir)
            .env("HOME", home)
            .env_remove("XDG_CONFIG_HOME")
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

/// A configuration that was not there when a server started would be Durward's own at the next start.
#[test]
fn a_server_cannot_make_a_configuration_where_there_is_none() {
    let mut tries = Tries::new();
    let home = tries.place.path("home");
    std::fs::create_dir_all(&home).unwrap();
    let config = home.join(".config/durward");
    tries.add(
        "make",
        &format!(
            "mkdir -p {0} && echo forged > {0}/durward.yaml",
            config.display()
        ),
    );
    let (found, log) = tries.run_in(&home, &["--confine", "require"]);
    assert_eq!(found["make"], "refused", "{log}");
    assert!(!config.join("durward.yaml").exists());
    let (found, log) = tries.run_in(&home, &["--confine", "off"]);
    assert_eq!(found["make"], "", "{log}");
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

/// Whoever listens at a socket may do anything: a session bus starts programs, a multiplexer types into terminals.
#[test]
fn a_sandbox_hides_sockets_that_are_not_listed_and_holds_signals_back() {
    let mut tries = Tries::new();
    let text = |name: &str| tries.place.path(name).display().to_string();
    let (listed, other, out) = (text("listed"), text("other"), text("out"));
    let mut addresses = Vec::new();
    for folder in [&listed, &other] {
        std::fs::create_dir_all(folder).unwrap();
        addresses.push(SocketAddr::from_pathname(format!("{folder}/socket")).unwrap());
    }
    let hidden = format!("durward-sandbox-{}", std::process::id());
    addresses.push(SocketAddr::from_abstract_name(&hidden).unwrap());
    for address in addresses {
        let listener = UnixListener::bind_addr(&address).unwrap();
        // Ends with the test.
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let _ = stream.unwrap().write_all(b"answered");
            }
        });
    }
    let ask = |name: &str| {
        format!(
            r#"perl -MSocket -e 'socket(S, AF_UNIX, SOCK_STREAM, 0); connect(S, pack_sockaddr_un({name})) or exit 1; print <S>'"#
        )
    };
    tries.add("listed", &ask(&format!(r#""{listed}/socket""#)));
    tries.add("other", &ask(&format!(r#""{other}/socket""#)));
    tries.add("by_directory", &ask(r#""other/socket""#));
    tries.add("abstract", &ask(&format!(r#""\0{hidden}""#)));
    tries.add("signal", &format!("kill -0 {}", std::process::id()));
    tries.add("list", "ls -A . ..");
    // Without a network of its own the abstract sockets are gone anyhow.
    let flag = format!("write={listed},write={out}");
    let (found, log) = tries.run(&["--confine", "require", "--sandbox", &flag]);
    assert_eq!(found["listed"], "answered", "{log}");
    for way in ["other", "by_directory", "abstract", "signal", "list"] {
        assert_eq!(found[way], "refused", "{way}\n{log}");
    }
    let (found, log) = tries.run(&["--confine", "off"]);
    for way in ["listed", "other", "by_directory", "abstract"] {
        assert_eq!(found[way], "answered", "{way}\n{log}");
    }
    assert_eq!(found["signal"], "", "{log}");
}

/// Memory that other programs share is none of the sandbox's, whether it has a name in the file system or a number.
#[test]
fn a_sandbox_has_shared_memory_of_its_own() {
    let mut tries = Tries::new();
    let out = tries.place.path("out").display().to_string();
    let name = format!("durward-sandbox-{}", std::process::id());
    let theirs = format!("/dev/shm/{name}");
    std::fs::write(&theirs, "of another program").unwrap();
    tries.add("read", &format!("cat {theirs}"));
    tries.add("list", &format!("ls /dev/shm | grep {name}"));
    tries.add("own", &format!("echo kept > {theirs} && cat {theirs}"));
    tries.add("numbered", "readlink /proc/self/ns/ipc");
    let (found, log) = tries.run(&["--confine", "require", "--sandbox", &format!("write={out}")]);
    let machines = std::fs::read_link("/proc/self/ns/ipc").unwrap();
    let machines = machines.display().to_string();
    for way in ["read", "list"] {
        assert_eq!(found[way], "refused", "{way}\n{log}");
    }
    assert_eq!(found["own"], "kept", "{log}");
    assert_ne!(found["numbered"], machines, "{log}");
    assert_eq!(
        std::fs::read_to_string(&theirs).unwrap(),
        "of another program"
    );
    // Unless it is listed, or nothing is.
    for flags in [
        &["--sandbox", &format!("write={out},read=/dev/shm")][..],
        &["--confine", "off"],
    ] {
        let (found, log) = tries.run(flags);
        assert_eq!(found["read"], "of another program", "{log}");
        std::fs::write(&theirs, "of another program").unwrap();
    }
    std::fs::remove_file(theirs).unwrap();
}

/// A place is reached by the name that it is listed under, also where that leads over links.
#[test]
fn a_sandbox_keeps_links_to_what_is_listed() {
    let mut tries = Tries::new();
    let text = |name: &str| tries.place.path(name).display().to_string();
    let (real, link, out) = (text("real"), text("link"), text("out"));
    std::fs::create_dir_all(format!("{real}/below")).unwrap();
    std::fs::write(format!("{real}/below/file"), "content").unwrap();
    std::os::unix::fs::symlink("real", &link).unwrap();
    tries.add("by_link", &format!("cat {link}/below/file"));
    tries.add("by_name", &format!("cat {real}/below/file"));
    tries.add("beside", &format!("cat {real}/../policy.json"));
    tries.add("here", "pwd");
    let flag = format!("read={link}/below,read={link}/below/file,write={out}");
    let (found, log) = tries.run(&["--sandbox", &flag]);
    assert_eq!(found["by_link"], "content", "{log}");
    assert_eq!(found["by_name"], "content", "{log}");
    assert_eq!(found["beside"], "refused", "{log}");
    assert_eq!(found["here"], tries.place.dir.display().to_string());
}

/// What a program types into the terminal that Durward was started at, the shell there would run.
#[test]
fn a_server_has_no_terminal() {
    if Command::new("script").arg("--version").output().is_err() {
        assert!(std::env::var_os("CI").is_none(), "script(1) is missing");
        eprintln!("skipped: script(1) is missing");
        return;
    }
    let mut tries = Tries::new();
    tries.add("terminal", "sh -c 'echo > /dev/tty' && echo opened");
    std::fs::write(tries.place.path("tries"), &tries.script).unwrap();
    let words = tries
        .place
        .run_args(&["--confine", "off"], &["sh", "tries"]);
    let words = [&[binary().to_owned()][..], &words].concat();
    let quoted: Vec<String> = words.iter().map(|word| format!("'{word}'")).collect();
    let command = format!("echo > /dev/tty && {}", quoted.join(" "));
    let status = Command::new("script")
        .args(["--quiet", "--return", "--command", &command, "/dev/null"])
        .current_dir(&tries.place.dir)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .status()
        .unwrap();
    assert!(status.code().is_some());
    let got = std::fs::read_to_string(tries.place.path("out/terminal")).unwrap();
    assert_eq!(got.trim(), "refused");
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
    for (flag, expect) in [("read", "is not read=DIR"), ("reed=/", "not one of read")] {
        let output = place.durward(&["run", "--sandbox", flag, "--", "true"]);
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(said.contains(expect), "{said}");
    }
}
