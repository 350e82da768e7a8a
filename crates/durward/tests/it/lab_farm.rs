//! `lab farm`: three hosts on a bridge, a load test across it, and nothing left behind.

use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Stdio};

use crate::support::guarded::{Place, binary, eventually};
use crate::support::program::{lab_binary, lab_command};

const SPACES: [&str; 3] = ["durward-agent", "durward-mcp", "durward-target"];

/// Where limits are, in either version.
const GROUPS: [&str; 3] = [
    "/sys/fs/cgroup/durward-farm",
    "/sys/fs/cgroup/memory/durward-farm",
    "/sys/fs/cgroup/cpu/durward-farm",
];

fn farm(place: &Place, words: &[&str]) -> (Option<i32>, String) {
    let output = place.within(lab_command().arg("farm").args(words));
    let text = [output.stdout, output.stderr].concat();
    (
        output.status.code(),
        String::from_utf8_lossy(&text).into_owned(),
    )
}

/// Runs our program in a host, for as long as the test wants.
fn inside(place: &Place, host: &str, program: &str, words: &[&str]) -> Child {
    lab_command()
        .args(["farm", "run", host, "--", program])
        .args(words)
        .current_dir(&place.dir)
        .env("XDG_RUNTIME_DIR", place.runtime())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap()
}

fn waits_for(child: &mut Child, text: &str) {
    let stdout = child.stdout.take().unwrap();
    let mut lines = BufReader::new(stdout).lines().map_while(Result::ok);
    assert!(
        lines.any(|line| line.contains(text)),
        "it never says {text}"
    );
    // What it says later has to go somewhere.
    std::thread::spawn(move || lines.count());
}

fn there_is_nothing() {
    for space in SPACES {
        assert!(!Path::new("/run/netns").join(space).exists(), "{space}");
    }
    for link in ["durward-farm0", "dwf-agent", "dwf-mcp", "dwf-target"] {
        assert!(!Path::new("/sys/class/net").join(link).exists(), "{link}");
    }
    for group in GROUPS {
        assert!(!Path::new(group).exists(), "{group}");
    }
}

/// Takes the farm away, whatever became of the test.
struct Down<'a>(&'a Place);

impl Drop for Down<'_> {
    fn drop(&mut self) {
        farm(self.0, &["down"]);
    }
}

#[test]
fn three_hosts_on_a_bridge_carry_a_load_test_and_leave_nothing() {
    let place = Place::new();
    let _down = Down(&place);
    let (code, said) = farm(&place, &["up"]);
    assert_eq!(code, Some(0), "{said}");
    if said.contains("no network namespaces here: ") {
        // Then loopback stands for all of them, and a command runs as it is.
        assert!(
            said.contains("agent, mcp and target are 127.0.0.1"),
            "{said}"
        );
        let (code, said) = farm(&place, &["run", "mcp", "--", "echo", "here"]);
        assert_eq!((code, said.as_str()), (Some(0), "here\n"));
        return there_is_nothing();
    }
    for (host, address) in [
        ("agent", "10.178.0.5"),
        ("mcp", "10.178.0.10"),
        ("target", "10.178.0.20"),
    ] {
        let show = ["run", host, "--", "ip", "-o", "-4", "addr", "show", "eth0"];
        let (code, own) = farm(&place, &show);
        assert!(
            code == Some(0) && own.contains(&format!("{address}/24")),
            "{own}"
        );
        let line = said.lines().find(|line| line.starts_with(host)).unwrap();
        let (_, groups) = farm(&place, &["run", host, "--", "cat", "/proc/self/cgroup"]);
        let limited = !line.contains("no limits: ");
        assert_eq!(
            groups.contains(&format!("durward-farm/{host}")),
            limited,
            "{line}"
        );
        let limits = GROUPS.map(|root| Path::new(root).join(host));
        assert_eq!(limits.iter().any(|own| own.exists()), limited, "{line}");
    }
    let (code, _) = farm(&place, &["run", "agent", "--", "sh", "-c", "exit 7"]);
    assert_eq!(code, Some(7));
    let target = [
        "mock",
        "ssh-target",
        "--address",
        "10.178.0.20",
        "--only",
        "standard",
        "--no-twins",
        "--dir",
        "target",
    ];
    let mut target = inside(&place, "target", lab_binary(), &target);
    waits_for(&mut target, "ready: ");
    let serve = [
        "--state-dir",
        "state",
        "ssh",
        "serve",
        "--hosts",
        "target/ssh_hosts.yaml",
        "--port",
        "3000",
        "--calls-per-minute",
        "1000000",
    ];
    let mut server = inside(&place, "mcp", binary(), &serve);
    waits_for(&mut server, "listening at");
    let load = [
        "run",
        "mcp",
        "--",
        lab_binary(),
        "load",
        "ssh",
        "--quick",
        "--duration",
        "1",
        "--target-host",
        "standard",
    ];
    let (code, said) = farm(&place, &load);
    assert_eq!(code, Some(0), "{said}");
    // As after a crash: what runs there is ended, and all of it is made anew.
    let (code, said) = farm(&place, &["up"]);
    assert_eq!(code, Some(0), "{said}");
    for child in [&mut target, &mut server] {
        eventually("it was ended", || child.try_wait().unwrap().is_some());
    }
    let (code, said) = farm(&place, &["down"]);
    assert_eq!(
        (code, said.as_str()),
        (Some(0), "down; 0 processes ended\n")
    );
    there_is_nothing();
    let (code, said) = farm(&place, &["down"]);
    assert_eq!(
        (code, said.as_str()),
        (Some(0), "down; 0 processes ended\n")
    );
}
