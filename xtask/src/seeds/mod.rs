//! `cargo xtask seeds`: the page of the methods and tables that were taken up, held against the papers, and each of its
//! commands run in its quick form.

mod page;
mod paper;

use std::ffi::OsString;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::command::{self, Error};
use page::{Entry, State};

/// The page.
const PAGE: &str = "docs/seeds.md";
/// Where the papers lie, beside the repository.
const PAPERS: &str = "../shared/seeds";
/// The papers, and the heading of the page's section about each.
const SECTIONS: [(&str, &str); 4] = [
    (
        "access-proxy-performance-method.md",
        "Method of the access proxy",
    ),
    (
        "access-proxy-performance-results.md",
        "Results of the access proxy",
    ),
    (
        "pbpk-bridge-performance-plan.md",
        "Plan of the simulation bridge",
    ),
    ("ssh-server-load-testing.md", "SSH load-testing guide"),
];
/// The file that the papers' calls read: five lines, about 200 bytes.
const TEXT: (&str, &str) = (
    "/tmp/mcp-acp-test.txt",
    "The first of five lines.\nThe second line.\nThe third line is a little longer.\nThe fourth line.\nThe fifth and last line.\n",
);

/// Checks the page and runs its commands; `false` where something is missing or fails.
pub(crate) fn run(root: &Path, out: &mut impl Write) -> Result<bool, Error> {
    let text = fs::read_to_string(root.join(PAGE)).map_err(Error::io(format!("reading {PAGE}")))?;
    let mut sound = rows(root, &text, out)?;
    command::output(
        root,
        "cargo",
        &[
            "build",
            "--quiet",
            "--package",
            "durward",
            "--package",
            "lab",
        ],
    )?;
    let target = variable("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), PathBuf::from);
    let binaries = target.join("debug");
    fs::write(TEXT.0, TEXT.1).map_err(Error::io(format!("writing {}", TEXT.0)))?;
    for line in page::commands(&text) {
        sound &= quick(root, &binaries, &line, out)?;
    }
    Ok(sound)
}

/// Every heading and table of the papers has a row, and no row stands for nothing.
fn rows(root: &Path, text: &str, out: &mut impl Write) -> Result<bool, Error> {
    let mut sound = true;
    for (file, section) in SECTIONS {
        let entries = page::entries(text, section);
        for entry in entries.iter().filter(|entry| entry.state() == State::Empty) {
            sound = false;
            writeln!(out, "{PAGE}: the row \"{}\" says nothing", entry.part)?;
        }
        let path = root.join(PAPERS).join(file);
        let Ok(paper) = fs::read_to_string(&path) else {
            if variable("CI").is_some_and(|ci| ci == "true") {
                writeln!(out, "{PAPERS}/{file} is missing, and CI=true wants it")?;
                sound = false;
            } else {
                writeln!(out, "skipped: {PAPERS}/{file} is not here to compare with")?;
            }
            continue;
        };
        sound &= compare(&paper::parts(&paper), &entries, section, out)?;
    }
    Ok(sound)
}

fn compare(
    parts: &[String],
    entries: &[Entry],
    section: &str,
    out: &mut impl Write,
) -> Result<bool, Error> {
    let missing = parts
        .iter()
        .filter(|part| !entries.iter().any(|e| e.part == **part));
    let unknown = entries.iter().filter(|entry| !parts.contains(&entry.part));
    let mut sound = true;
    for part in missing {
        sound = false;
        writeln!(out, "{PAGE}: \"{section}\" has no row for {part}")?;
    }
    for entry in unknown {
        sound = false;
        writeln!(
            out,
            "{PAGE}: \"{section}\" has a row that the paper has not: {}",
            entry.part
        )?;
    }
    writeln!(
        out,
        "{section}: {} parts, {} rows",
        parts.len(),
        entries.len()
    )?;
    Ok(sound)
}

/// Runs one command of the page in its quick form.
fn quick(root: &Path, binaries: &Path, line: &str, out: &mut impl Write) -> Result<bool, Error> {
    let line = page::quick(line);
    let path = variable("PATH").unwrap_or_default();
    let paths = std::iter::once(binaries.to_path_buf()).chain(std::env::split_paths(&path));
    let joined = std::env::join_paths(paths).map_err(|error| Error::Malformed {
        what: "PATH".into(),
        why: error.to_string(),
    })?;
    let done = Command::new("sh")
        .args(["-c", &line])
        .current_dir(root)
        .env("PATH", joined)
        .stdin(Stdio::null())
        .output()
        .map_err(Error::io(format!("running {line}")))?;
    let word = if done.status.success() {
        "ok"
    } else {
        "failed"
    };
    writeln!(out, "{word}: {line}")?;
    if !done.status.success() {
        writeln!(out, "{}", String::from_utf8_lossy(&done.stderr).trim_end())?;
    }
    Ok(done.status.success())
}

fn variable(name: &str) -> Option<OsString> {
    let mut all = std::env::vars_os();
    all.find(|(known, _)| known == name).map(|(_, value)| value)
}
