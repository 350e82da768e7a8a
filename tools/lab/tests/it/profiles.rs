//! Profiles kept with a run, with and without `perf`.

use crate::support::{lab_path, stderr};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::atomic::{AtomicU32, Ordering};

/// Runs the lab where no other program can be found.
fn alone(args: &[&str]) -> Output {
    Command::new(lab_path())
        .args(args)
        .env("PATH", "")
        .output()
        .unwrap()
}

struct Runs(PathBuf);

impl Runs {
    fn new() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("lab-profiles-{}-{number}", std::process::id());
        Self(std::env::temp_dir().join(name))
    }

    fn out(&self) -> &str {
        self.0.to_str().unwrap()
    }

    /// The only run below.
    fn only(&self) -> PathBuf {
        fs::read_dir(&self.0)
            .unwrap()
            .next()
            .unwrap()
            .unwrap()
            .path()
    }

    /// A command of the lab that is profiled.
    fn overhead(&self, profile: &str) -> Output {
        let echo = format!("'{}' mock echo", lab_path());
        let slow = format!("{echo} --delay-us 2000");
        let arms = ["overhead", "--direct", &echo, "--proxied", &slow];
        alone(
            &[
                &arms[..],
                &["--quick", "--quiet", profile, "--out", self.out()],
            ]
            .concat(),
        )
    }
}

impl Drop for Runs {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn page(run: &Path, name: &str) -> String {
    fs::read_to_string(run.join(name)).unwrap()
}

#[test]
fn without_perf_each_arm_is_looked_at() {
    let runs = Runs::new();
    let output = runs.overhead("--profile");
    assert!(output.status.success(), "{}", stderr(&output));
    for arm in ["direct", "proxied"] {
        let page = page(&runs.only(), &format!("profile-{arm}.txt"));
        assert!(
            page.starts_with(&format!("{arm}: tools/call echo")),
            "{page}"
        );
        assert!(page.contains("by looking at /proc"), "{page}");
        assert!(page.contains("waiting"), "{page}");
    }
    assert!(runs.only().join("summary.json").exists());
}

#[test]
fn a_profile_that_cannot_be_made_costs_no_measurement() {
    let runs = Runs::new();
    let output = runs.overhead("--profile=perf");
    assert!(output.status.success(), "{}", stderr(&output));
    let said = stderr(&output);
    assert!(
        said.contains("no profile of variant direct: perf cannot be started"),
        "{said}"
    );
    assert!(!runs.only().join("profile-direct.txt").exists());
    assert!(runs.only().join("summary.json").exists());
}

#[test]
fn load_is_profiled_while_it_runs_and_says_so() {
    let runs = Runs::new();
    let echo = format!("'{}' mock echo", lab_path());
    let load = [
        "load",
        "tool",
        "--target",
        &echo,
        "--workers",
        "2",
        "--duration",
        "300ms",
    ];
    let output = alone(&[&load[..], &["--quiet", "--profile", "--out", runs.out()]].concat());
    assert!(output.status.success(), "{}", stderr(&output));
    let page = page(&runs.only(), "profile.txt");
    assert_eq!(page.matches("lab mock echo (").count(), 2, "{page}");
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.contains("profiled while it ran"), "{text}");
}

#[test]
fn a_profile_needs_a_place() {
    let output = alone(&["load", "tool", "--target", "x", "--profile"]);
    assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
    assert!(stderr(&output).contains("--out"), "{}", stderr(&output));
}
