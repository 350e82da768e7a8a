//! `durward lab` is `durward-lab`: arguments, streams, signals and exit code pass through, and a missing one is named.

use std::fs;
use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::ExitStatusExt as _;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

use crate::support::program::binary;

/// A folder with the program under test and without `durward-lab`.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("durward-lab-command-{}-{number}", std::process::id());
        let path = std::env::temp_dir().join(name);
        fs::create_dir_all(path.join("path")).unwrap();
        let program = path.join("durward");
        if fs::hard_link(binary(), &program).is_err() {
            fs::copy(binary(), &program).unwrap();
        }
        Self(path)
    }

    /// Writes a `durward-lab` that is this shell script.
    fn write_lab(&self, place: &str, script: &str) {
        let file = self.0.join(place).join("durward-lab");
        fs::write(&file, format!("#!/bin/sh\n{script}\n")).unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).unwrap();
    }

    fn run(&self, words: &[&str], input: &str) -> Output {
        let path = self.0.join("path");
        let mut child = Command::new(self.0.join("durward"))
            .args(words)
            .env("PATH", format!("{}:/usr/bin:/bin", path.display()))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        // A program that reads nothing may be gone by now.
        let _ = child.stdin.take().unwrap().write_all(input.as_bytes());
        child.wait_with_output().unwrap()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn arguments_streams_and_exit_code_pass_through() {
    let folder = Folder::new();
    let script = r#"printf '%s\n' "$DURWARD_PROGRAM" "$@"; cat; echo told >&2; exit 42"#;
    folder.write_lab("path", script);
    let words = ["lab", "overhead", "--json", "-x", "--help", "--", "a b"];
    let output = folder.run(&words, "from the input");
    assert_eq!(output.status.code(), Some(42), "{output:?}");
    let own = folder.0.join("durward");
    let own = fs::canonicalize(own).unwrap();
    let expected = format!(
        "{}\noverhead\n--json\n-x\n--help\n--\na b\nfrom the input",
        own.display()
    );
    assert_eq!(text(&output.stdout), expected);
    assert_eq!(text(&output.stderr), "told\n");
    let helped = folder.run(&["help", "lab", "mock", "echo"], "");
    assert!(
        text(&helped.stdout).ends_with("mock\necho\n--help\n"),
        "{helped:?}"
    );
    let helped = folder.run(&["lab", "--help"], "");
    assert!(text(&helped.stdout).ends_with("--help\n"), "{helped:?}");
}

#[test]
fn a_signal_that_ends_the_lab_is_the_end_of_the_command() {
    let folder = Folder::new();
    folder.write_lab("path", "kill -TERM $$");
    let output = folder.run(&["lab", "standard"], "");
    assert_eq!(output.status.signal(), Some(15), "{output:?}");
}

#[test]
fn the_lab_beside_the_program_comes_before_the_one_on_the_path() {
    let folder = Folder::new();
    folder.write_lab("path", "exit 3");
    folder.write_lab(".", "exit 4");
    assert_eq!(folder.run(&["lab", "mock"], "").status.code(), Some(4));
    fs::remove_file(folder.0.join("durward-lab")).unwrap();
    assert_eq!(folder.run(&["lab", "mock"], "").status.code(), Some(3));
}

#[test]
fn a_missing_lab_is_named_with_the_way_to_get_it() {
    let folder = Folder::new();
    let output = folder.run(&["lab", "overhead"], "");
    assert_eq!(output.status.code(), Some(127), "{output:?}");
    assert!(output.stdout.is_empty(), "{output:?}");
    let said = text(&output.stderr);
    assert!(said.contains("durward-lab is not installed"), "{said}");
    assert!(said.contains("cargo install --path tools/lab"), "{said}");
    fs::write(folder.0.join("durward-lab"), "no program").unwrap();
    let output = folder.run(&["lab", "overhead"], "");
    assert_eq!(output.status.code(), Some(126), "{output:?}");
    let help = folder.run(&["help", "lab"], "");
    assert!(text(&help.stdout).contains("audit-latency"), "{help:?}");
}
