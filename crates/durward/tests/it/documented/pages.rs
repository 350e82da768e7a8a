//! The fenced `sh` blocks of README and docs, each page at a desk of its own and from top to bottom.

use std::fs;
use std::path::{Path, PathBuf};

use super::desk::{Desk, said};
use crate::support::components::repository;

/// What says that a line is not run; the reason follows.
const NOT_RUN: &str = "# not run: ";

/// README and every page below docs that is not printed by the binary.
fn pages() -> Vec<PathBuf> {
    let mut found = vec![repository().join("README.md")];
    let mut folders = vec![repository().join("docs")];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() && !path.ends_with("reference") {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "md") {
                found.push(path);
            }
        }
    }
    found.sort();
    found
}

/// The fenced blocks of a page: the word behind the fence, the line on which the block begins, and its text.
fn blocks(text: &str) -> Vec<(String, usize, String)> {
    let mut found: Vec<(String, usize, String)> = Vec::new();
    let mut is_open = false;
    for (index, line) in text.lines().enumerate() {
        if let Some(word) = line.strip_prefix("```") {
            if !is_open {
                found.push((word.trim().to_owned(), index + 2, String::new()));
            }
            is_open = !is_open;
        } else if is_open {
            let (_, _, block) = found.last_mut().unwrap();
            block.push_str(line);
            block.push('\n');
        }
    }
    found
}

#[test]
fn every_block_of_commands_says_its_language() {
    for page in pages() {
        for (word, line, text) in blocks(&fs::read_to_string(&page).unwrap()) {
            let place = format!("{}:{line}", page.display());
            assert!(!word.is_empty(), "{place}: a block without a language");
            let is_command = text
                .lines()
                .any(|line| line.trim_start().starts_with("durward "));
            assert!(
                !is_command || ["sh", "bash", "ini"].contains(&word.as_str()),
                "{place}: commands in a block that no test runs"
            );
        }
    }
}

/// Runs the blocks of a page; gives how many lines were run, and the reasons of those that were not.
fn run(page: &Path, left_out: &mut Vec<String>) -> usize {
    let text = fs::read_to_string(page).unwrap();
    let blocks = blocks(&text).into_iter().filter(|(word, ..)| word == "sh");
    let mut desk: Option<Desk> = None;
    let mut count = 0;
    for (_, line, block) in blocks {
        let mut script = String::new();
        for (offset, command) in block.lines().enumerate() {
            match command.split_once(NOT_RUN) {
                Some((_, reason)) => {
                    left_out.push(format!("{}:{}: {reason}", page.display(), line + offset));
                }
                None if command.trim().is_empty() || command.trim_start().starts_with('#') => {}
                None => {
                    script.push_str(command);
                    script.push('\n');
                    count += 1;
                }
            }
        }
        if script.is_empty() {
            continue;
        }
        if desk.is_none() {
            desk = Desk::new().map(Desk::with_journal);
        }
        let Some(desk) = &desk else { return 0 };
        let done = desk.shell(&script);
        assert!(
            done.status.success(),
            "{}:{line}: {:?}\n{script}{}",
            page.display(),
            done.status,
            said(&done)
        );
    }
    count
}

#[test]
fn every_sh_block_of_readme_and_docs_is_run() {
    let mut left_out = Vec::new();
    let count: usize = pages().iter().map(|page| run(page, &mut left_out)).sum();
    for one in &left_out {
        eprintln!("not run: {one}");
    }
    eprintln!("{count} lines of commands run, {} not", left_out.len());
    assert!(
        left_out.iter().all(|one| !one.ends_with(": ")),
        "{left_out:?}"
    );
}
