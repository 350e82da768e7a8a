//! The standard set when it does not come to its end.

use std::io::{BufRead as _, BufReader, Read as _};
use std::process::{Command, Stdio};

use crate::support::program::lab_command;

#[test]
fn ctrl_c_prints_the_tables_that_are_whole_and_leaves_the_page_alone() {
    let name = format!("durward-standard-{}.md", std::process::id());
    let page = std::env::temp_dir().join(name);
    std::fs::write(&page, "what was there\n").unwrap();
    let mut child = lab_command()
        .args(["standard", "--quick", "--write"])
        .arg(&page)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // The second title comes when the first table is whole.
    let mut said = BufReader::new(child.stderr.take().unwrap());
    for _ in 0..2 {
        said.read_line(&mut String::new()).unwrap();
    }
    let sent = Command::new("kill")
        .args(["-INT", &child.id().to_string()])
        .status();
    assert!(sent.unwrap().success());
    let mut rest = String::new();
    said.read_to_string(&mut rest).unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(97), "{rest}");
    assert!(rest.contains("the page was not written"), "{rest}");
    let told = String::from_utf8(output.stdout).unwrap();
    assert!(told.starts_with("# `tools/call echo`\n"), "{told}");
    assert!(
        told.contains("durward, allow-all  added over direct"),
        "{told}"
    );
    assert_eq!(std::fs::read_to_string(&page).unwrap(), "what was there\n");
    std::fs::remove_file(&page).unwrap();
}

#[test]
fn what_a_stopped_set_printed_is_compared_and_judged_only_when_forced() {
    let mut child = lab_command()
        .args(["standard", "--quick", "--json"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut said = BufReader::new(child.stderr.take().unwrap());
    for _ in 0..2 {
        said.read_line(&mut String::new()).unwrap();
    }
    let sent = Command::new("kill")
        .args(["-INT", &child.id().to_string()])
        .status();
    assert!(sent.unwrap().success());
    let output = child.wait_with_output().unwrap();
    let name = format!("durward-standard-{}.json", std::process::id());
    let file = std::env::temp_dir().join(name);
    std::fs::write(&file, &output.stdout).unwrap();
    let lab = |words: &[&str]| {
        let output = lab_command().args(words).output();
        output.unwrap()
    };
    let path = file.to_str().unwrap();
    let compared = lab(&["compare", path, path, "--json"]);
    let compared: serde_json::Value = serde_json::from_slice(&compared.stdout).unwrap();
    let arm = compared["rows"][0]["arm"].as_str().unwrap();
    assert!(arm.starts_with("`tools/call echo`: "), "{arm}");
    let gate = ["gate", path, "--rule", "p50 <= 100s"];
    let judged = lab(&gate);
    assert_eq!(judged.status.code(), Some(1), "{judged:?}");
    let forced = lab(&[&gate[..], &["--force"]].concat());
    assert_eq!(forced.status.code(), Some(0), "{forced:?}");
    std::fs::remove_file(&file).unwrap();
}
