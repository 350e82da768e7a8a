//! Ways in which a server may try to put other rules in the place of those that it is judged by: by the directories and
//! links above them, by mounts, by descriptors, and with the help of a second server.
//!
//! A script tries all of them, each in a process of its own, behind two servers at once. Whatever comes of each, the
//! files that Durward reads are the same afterwards.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt as _, chown, symlink};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use crate::support::guarded::{Place, binary};
use serde_json::json;

const SCRIPT: &str = include_str!("sandbox_escapes.py");
const POLICY: &str = r#"{"rules":[{"id":"all","effect":"allow","conditions":{"tool_name":"*"}}]}"#;
/// An unprivileged user.
const USER: u32 = 12_345;
/// Ways that the script tries, at least.
const WAYS_MIN: usize = 40;

/// A home with rules in it, reached directly and by a link.
struct Home {
    place: Place,
    home: PathBuf,
    is_user: bool,
}

impl Home {
    fn new(is_user: bool) -> Self {
        let place = Place::new();
        let home = place.path("home");
        for folder in [
            ".config/durward",
            ".local/state",
            "bin",
            "dotfiles/rules",
            "out",
            "work",
        ] {
            fs::create_dir_all(home.join(folder)).unwrap();
        }
        symlink("dotfiles", home.join("linked")).unwrap();
        let outside = fs::read_link("/proc/self/ns/mnt").unwrap();
        let config = json!({
            "policy": "policy.json",
            "approval": {"notify": {"command": [home.join("bin/tell")]}},
            "servers": {
                "one": {"command": python(), "args": [home.join("work/escape.py"), home, "one", outside]},
                "two": {"command": python(), "args": [home.join("work/escape.py"), home, "two", outside],
                    "policy": home.join("linked/rules/rules.json")},
            },
        });
        for (name, text) in [
            (".config/durward/durward.yaml", config.to_string().as_str()),
            (".config/durward/policy.json", POLICY),
            ("dotfiles/rules/rules.json", POLICY),
            ("bin/tell", "#!/bin/sh\n"),
            ("work/escape.py", SCRIPT),
        ] {
            fs::write(home.join(name), text).unwrap();
        }
        fs::set_permissions(home.join("bin/tell"), fs::Permissions::from_mode(0o755)).unwrap();
        if is_user {
            give(&place.dir);
        }
        Self {
            place,
            home,
            is_user,
        }
    }

    fn start(&self, server: &str, flags: &[&str]) -> Child {
        let mut command = match self.is_user {
            true => {
                let user = USER.to_string();
                let mut command = Command::new("setpriv");
                command.args([
                    "--reuid",
                    &user,
                    "--regid",
                    &user,
                    "--clear-groups",
                    binary(),
                ]);
                command
            }
            false => Command::new(binary()),
        };
        command
            .arg("run")
            .args(flags)
            .arg(server)
            .env("HOME", &self.home)
            .env("XDG_RUNTIME_DIR", self.place.runtime())
            .env_remove("XDG_CONFIG_HOME")
            .env_remove("XDG_STATE_HOME")
            // Paths that begin in this directory are a way of their own.
            .current_dir(self.home.join(match server {
                "one" => ".config",
                _ => ".config/durward",
            }))
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap()
    }

    /// Runs the script behind both servers; returns the result of each way, and the logs.
    fn attack(&self, flags: &[&str]) -> (Vec<String>, String) {
        let children = ["one", "two"].map(|server| self.start(server, flags));
        let log = children.map(|mut child| {
            // Open until the script has ended, which ends Durward too.
            let _input = child.stdin.take();
            let output = child.wait_with_output().unwrap();
            String::from_utf8_lossy(&output.stderr).into_owned()
        });
        let read = |server| fs::read_to_string(self.home.join("out").join(server));
        let results = ["one", "two"].map(|server| read(server).unwrap_or_default());
        let lines = results.iter().flat_map(|results| results.lines());
        (lines.map(str::to_owned).collect(), log.concat())
    }

    /// Everything that Durward reads, by its path: contents, and which files and directories they are.
    fn judged_by(&self) -> Vec<String> {
        let paths = [
            "",
            ".config",
            ".config/durward",
            ".config/durward/durward.yaml",
            ".config/durward/policy.json",
            ".local",
            ".local/state",
            ".local/state/durward",
            ".local/state/durward/keys",
            "linked",
            "linked/rules",
            "linked/rules/rules.json",
            "bin",
            "bin/tell",
        ];
        let shown = paths.map(|name| {
            let path = self.home.join(name);
            let found = fs::symlink_metadata(&path).ok();
            let inode = found.as_ref().map(MetadataExt::ino);
            let text = fs::read_to_string(&path).ok();
            let target = fs::read_link(&path).ok();
            format!("{name}: {inode:?} {text:?} {target:?}")
        });
        let mut shown = shown.to_vec();
        let entries = fs::read_dir(self.home.join(".config/durward"));
        let mut names: Vec<_> = entries
            .into_iter()
            .flatten()
            .map(|e| e.unwrap().file_name())
            .collect();
        names.sort();
        shown.push(format!("{names:?}"));
        shown
    }
}

fn python() -> &'static str {
    // One that every user may run.
    match Path::new("/usr/bin/python3").exists() {
        true => "/usr/bin/python3",
        false => "python3",
    }
}

/// Makes the user the owner of all below.
fn give(path: &Path) {
    std::os::unix::fs::lchown(path, Some(USER), Some(USER)).unwrap();
    let is_link = fs::symlink_metadata(path).unwrap().is_symlink();
    if let (false, Ok(entries)) = (is_link, fs::read_dir(path)) {
        entries.for_each(|entry| give(&entry.unwrap().path()));
    }
    if !is_link {
        chown(path, Some(USER), Some(USER)).unwrap();
    }
}

/// Whether this machine lets this user have namespaces; says why not.
fn has_namespaces(is_user: bool) -> bool {
    let user = USER.to_string();
    let id = match is_user {
        true => user.as_str(),
        false => "0",
    };
    let tried = Command::new("setpriv")
        .args([
            "--reuid",
            id,
            "--regid",
            id,
            "--clear-groups",
            "unshare",
            "-Urm",
            "true",
        ])
        .output();
    let why = match tried {
        Ok(output) if output.status.success() => return true,
        Ok(output) => String::from_utf8_lossy(&output.stderr).into_owned(),
        Err(error) => error.to_string(),
    };
    assert!(std::env::var_os("CI").is_none(), "no namespaces: {why}");
    eprintln!("skipped: this kernel refuses namespaces to user {id}: {why}");
    false
}

fn no_way_leads_to_other_rules(is_user: bool) {
    if is_user && !rustix::process::geteuid().is_root() {
        eprintln!("skipped: only root can become another user");
        return;
    }
    if !has_namespaces(is_user) {
        return;
    }
    for confine in ["auto", "require"] {
        for is_listed in [false, true] {
            let home = Home::new(is_user);
            // What is made at the first start is there before.
            let (_, log) = home.attack_with_nothing(confine);
            let sandbox = format!("write={}", home.home.display());
            let mut flags = vec!["--confine", confine];
            if is_listed {
                flags.extend(["--sandbox", &sandbox]);
            }
            let before = home.judged_by();
            let (results, more) = home.attack(&flags);
            assert_eq!(home.judged_by(), before, "{flags:?} {results:#?}\n{more}");
            assert!(
                results.len() >= 2 * WAYS_MIN,
                "{flags:?}: {} ways were tried\n{results:#?}\n{log}{more}",
                results.len()
            );
        }
    }
}

impl Home {
    /// Starts both servers once with a script that does nothing.
    fn attack_with_nothing(&self, confine: &str) -> (Vec<String>, String) {
        let script = self.home.join("work/escape.py");
        fs::write(&script, "").unwrap();
        let done = self.attack(&["--confine", confine]);
        fs::write(&script, SCRIPT).unwrap();
        done
    }
}

#[test]
fn no_way_leads_root_to_other_rules() {
    no_way_leads_to_other_rules(false);
}

#[test]
fn no_way_leads_a_user_to_other_rules() {
    no_way_leads_to_other_rules(true);
}

/// Shows that the tests above can fail: unconfined, the ways do lead there. One of them may end Durward before it reloads,
/// by taking the journal away, so the attack is repeated.
#[test]
fn without_confinement_the_ways_lead_to_other_rules() {
    const ATTACKS_MAX: usize = 10;
    let is_forged = (0..ATTACKS_MAX).any(|_| {
        let home = Home::new(false);
        let is_forged = || home.judged_by().iter().any(|line| line.contains("forged"));
        assert!(!is_forged());
        let _ = home.attack(&["--confine", "off"]);
        is_forged()
    });
    assert!(is_forged, "no attack led to other rules");
}
