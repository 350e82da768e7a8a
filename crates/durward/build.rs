//! Names the commit and the target that a binary was built from, for `durward --version`.

#![expect(
    clippy::disallowed_methods,
    reason = "cargo speaks to a build script by the environment"
)]

use std::process::Command;

fn main() {
    println!("cargo::rerun-if-env-changed=DURWARD_COMMIT");
    let target = std::env::var("TARGET").unwrap_or_else(|_| "unknown target".into());
    // A debug build changes between commits; asking git for it would build it anew after each.
    let is_release = std::env::var("PROFILE").is_ok_and(|profile| profile == "release");
    let built = match std::env::var("DURWARD_COMMIT") {
        Ok(commit) if !commit.is_empty() => commit,
        _ if is_release => commit().unwrap_or_else(|| "unknown commit".into()),
        _ => "debug build".into(),
    };
    println!("cargo::rustc-env=DURWARD_BUILD={built}, {target}");
    if target.contains("linux") {
        // What a profile has found to be hot lies together, and what it has not seen lies apart.
        println!("cargo::rustc-link-arg-bins=-Wl,-z,keep-text-section-prefix");
    }
}

/// The commit of the checkout, if this is one. It is asked for again when the checkout moves.
fn commit() -> Option<String> {
    if let Some(log) = git(&["rev-parse", "--git-path", "logs/HEAD"]) {
        println!("cargo::rerun-if-changed={log}");
    }
    git(&["rev-parse", "--short=9", "HEAD"])
}

fn git(args: &[&str]) -> Option<String> {
    let output = Command::new("git").args(args).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    let text = text.trim();
    (output.status.success() && !text.is_empty()).then(|| text.to_owned())
}
