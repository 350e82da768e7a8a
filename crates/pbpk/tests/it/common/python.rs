//! The Python with NumPy that `scripts/setup-tests` installs.

use std::io::Write as _;
use std::process::{Command, Stdio};

use serde_json::Value;

use super::root;

/// Runs a script of `tests/numpy` with a JSON document on its standard input; returns what it prints. `None`, with a
/// printed reason, if there is no such Python; with `CI=true` it must be there.
#[expect(
    clippy::disallowed_methods,
    reason = "the tests are told by the environment whether they may skip"
)]
pub fn numpy(script: &str, input: &Value) -> Option<Value> {
    let python = root().join(".cache/wheel-venv/bin/python");
    if !python.exists() {
        let is_ci = std::env::var_os("CI").is_some_and(|ci| ci == "true");
        assert!(
            !is_ci,
            "{} is missing: run scripts/setup-tests",
            python.display()
        );
        let test = std::thread::current();
        let test = test.name().unwrap_or_default();
        let mut err = std::io::stderr();
        let _ = writeln!(err, "skipped: {test} needs NumPy: run scripts/setup-tests");
        return None;
    }
    let script = root().join("crates/pbpk/tests/numpy").join(script);
    let mut child = Command::new(python)
        .arg(script)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let text = input.to_string();
    let mut stdin = child.stdin.take().unwrap();
    let writer = std::thread::spawn(move || stdin.write_all(text.as_bytes()));
    let output = child.wait_with_output().unwrap();
    writer.join().unwrap().unwrap();
    assert!(output.status.success());
    Some(serde_json::from_slice(&output.stdout).unwrap())
}

/// A number of such a document; `nan`, `inf` and `-inf` are texts.
pub fn number(value: &Value) -> f64 {
    match value {
        Value::String(text) => text.parse().unwrap(),
        value => value.as_f64().unwrap(),
    }
}
