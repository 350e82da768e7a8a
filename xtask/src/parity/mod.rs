//! `cargo xtask parity`: compares `docs/parity.toml` with the papers, and runs each of its commands in the quick form.

mod paper;
pub(crate) mod table;

use std::ffi::OsString;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::command::{self, TaskError};
use table::{DATA, Paper};

/// The folder of the papers, beside the repository.
const PAPERS: &str = "../shared/seeds";

/// Checks the table and runs its commands; `false` if a part is missing or a command fails.
pub(crate) fn run(root: &Path, out: &mut impl Write) -> Result<bool, TaskError> {
    let text = fs::read_to_string(root.join(DATA)).map_err(TaskError::io(DATA))?;
    let table = table::parse(&text)?;
    let mut is_sound = true;
    for paper in &table.paper {
        is_sound &= compare_paper(root, paper, out)?;
    }
    let packages = [
        "build",
        "--quiet",
        "--package",
        "durward",
        "--package",
        "lab",
    ];
    command::output(root, "cargo", &packages)?;
    let target = variable("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), PathBuf::from);
    let binaries = target.join("debug");
    for file in &table.file {
        fs::write(&file.path, &file.text)
            .map_err(TaskError::io(format!("writing {}", file.path)))?;
    }
    for line in table.command.values() {
        is_sound &= run_quick(root, &binaries, line, out)?;
    }
    Ok(is_sound)
}

/// Compares the parts of a paper with those of the table. A paper that is not there is skipped, except under `CI=true`.
fn compare_paper(root: &Path, paper: &Paper, out: &mut impl Write) -> Result<bool, TaskError> {
    let file = format!("{PAPERS}/{}", paper.file);
    let Ok(text) = fs::read_to_string(root.join(&file)) else {
        let is_required = variable("CI").is_some_and(|ci| ci == "true");
        let word = if is_required {
            "missing under CI=true"
        } else {
            "skipped, absent"
        };
        writeln!(out, "{word}: {file}")?;
        return Ok(!is_required);
    };
    let of_paper = paper::parts(&text);
    let of_table: Vec<&str> = paper.part.iter().map(|part| part.part.as_str()).collect();
    let missing = of_paper
        .iter()
        .filter(|part| !of_table.contains(&part.as_str()));
    let unknown = of_table
        .iter()
        .filter(|part| !of_paper.iter().any(|known| known == *part));
    let mut is_sound = true;
    for part in missing {
        is_sound = false;
        writeln!(out, "{DATA}: \"{}\" has no part {part}", paper.title)?;
    }
    for part in unknown {
        is_sound = false;
        writeln!(
            out,
            "{DATA}: \"{}\" has a part that its paper lacks: {part}",
            paper.title
        )?;
    }
    writeln!(
        out,
        "{}: {} parts, {} rows",
        paper.title,
        of_paper.len(),
        of_table.len()
    )?;
    Ok(is_sound)
}

/// Runs one command in its quick form.
fn run_quick(
    root: &Path,
    binaries: &Path,
    line: &str,
    out: &mut impl Write,
) -> Result<bool, TaskError> {
    let line = table::to_quick(line);
    let path = variable("PATH").unwrap_or_default();
    let paths = std::iter::once(binaries.to_path_buf()).chain(std::env::split_paths(&path));
    let joined = std::env::join_paths(paths).map_err(|error| TaskError::Malformed {
        what: "PATH".into(),
        why: error.to_string(),
    })?;
    let done = Command::new("sh")
        .args(["-c", &line])
        .current_dir(root)
        .env("PATH", joined)
        .stdin(Stdio::null())
        .output()
        .map_err(TaskError::io(format!("running {line}")))?;
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
