//! The standard set when it does not come to its end.

use std::io::{BufRead as _, BufReader, Read as _};
use std::process::{Command, Stdio};

const DURWARD: &str = env!("CARGO_BIN_EXE_durward");

#[test]
fn ctrl_c_prints_the_tables_that_are_whole_and_leaves_the_page_alone() {
    let name = format!("durward-standard-{}.md", std::process::id());
    let page = std::env::temp_dir().join(name);
    std::fs::write(&page, "what was there\n").unwrap();
    let mut child = Command::new(DURWARD)
        .args(["lab", "standard", "--quick", "--write"])
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
