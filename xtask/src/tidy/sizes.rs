//! How long files and functions may be.

use std::fmt;

use super::ratchet::{self, Kind, Ratchet};
use super::tree::{Rust, Tree};
use crate::finding::Finding;

const FILE_LINES_MAX: usize = 800;
const FILE_LINES_P90_MAX: usize = 450;
const FILE_LINES_MEDIAN_MAX: usize = 150;
const FUNCTION_LINES_MAX: usize = 70;

/// What was measured over all files that are not tests, in lines.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Sizes {
    files: usize,
    median: usize,
    p90: usize,
    longest: usize,
    longest_function: usize,
}

impl fmt::Display for Sizes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            files,
            median,
            p90,
            longest,
            longest_function,
        } = self;
        write!(
            f,
            "{files} files, lines: median {median}, p90 {p90}, longest {longest}, longest function {longest_function}"
        )
    }
}

/// Files and functions that are too long, and a tree whose files are too long as a whole.
pub(super) fn check(tree: &Tree) -> (Vec<Finding>, Sizes) {
    let mut ratchet = Ratchet::read(tree.text(ratchet::FILE).unwrap_or_default());
    let mut findings = Vec::new();
    let mut lines = Vec::new();
    let mut sizes = Sizes::default();
    for file in tree.shipped() {
        let size = file.text.lines().count();
        lines.push((size, file.path));
        if size > FILE_LINES_MAX && !ratchet.bears(Kind::FileLines, file.path, size) {
            let wrong = format!("the file has {size} lines, more than {FILE_LINES_MAX}");
            findings.push(Finding::new(
                file.path,
                FILE_LINES_MAX + 1,
                wrong,
                "split it by the nouns it holds",
            ));
        }
        let longest = functions(&file, &mut ratchet, &mut findings);
        sizes.longest_function = sizes.longest_function.max(longest);
    }
    findings.extend(ratchet.finish());
    lines.sort_unstable();
    sizes.files = lines.len();
    sizes.median = percentile(&lines, 50);
    sizes.p90 = percentile(&lines, 90);
    sizes.longest = lines.last().map_or(0, |(size, _)| *size);
    findings.extend(distribution(
        &lines,
        "median",
        sizes.median,
        FILE_LINES_MEDIAN_MAX,
    ));
    findings.extend(distribution(&lines, "p90", sizes.p90, FILE_LINES_P90_MAX));
    (findings, sizes)
}

/// Judges the functions of a file and returns the longest.
fn functions(file: &Rust<'_>, ratchet: &mut Ratchet, findings: &mut Vec<Finding>) -> usize {
    // Two impls of one trait for one type share a name; the longer one stands for both.
    let mut worst = std::collections::BTreeMap::new();
    for function in &file.survey.functions {
        let longest = worst.entry(&function.name).or_insert(function);
        if function.lines > longest.lines {
            *longest = function;
        }
    }
    for function in worst
        .values()
        .filter(|function| function.lines > FUNCTION_LINES_MAX)
    {
        let key = format!("{}#{}", file.path, function.name);
        if !ratchet.bears(Kind::FunctionLines, &key, function.lines) {
            let wrong = format!(
                "`{}` has {} lines, more than {FUNCTION_LINES_MAX}",
                function.name, function.lines
            );
            findings.push(Finding::new(
                file.path,
                function.line,
                wrong,
                "split it where its steps can be named",
            ));
        }
    }
    worst
        .values()
        .map(|function| function.lines)
        .max()
        .unwrap_or(0)
}

/// The size at or below which `percent` of the files lie (nearest rank).
fn percentile(sorted: &[(usize, &str)], percent: usize) -> usize {
    let rank = (sorted.len() * percent).div_ceil(100);
    rank.checked_sub(1)
        .and_then(|index| sorted.get(index))
        .map_or(0, |(size, _)| *size)
}

fn distribution(sorted: &[(usize, &str)], name: &str, is: usize, limit: usize) -> Option<Finding> {
    let next = sorted
        .iter()
        .rev()
        .find(|(size, _)| *size <= FILE_LINES_MAX)?;
    (is > limit).then(|| {
        let wrong = format!("the {name} of all files is {is} lines, more than {limit}");
        Finding::new(next.1, 1, wrong, "split the longer files, this one first")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source(lines: usize) -> String {
        "//\n".repeat(lines)
    }

    fn function(lines: usize) -> String {
        format!(
            "//! A.\nimpl S {{\n    fn long() {{\n{}    }}\n}}\n",
            "        f();\n".repeat(lines - 2)
        )
    }

    fn found(files: &[(&str, &str)]) -> Vec<String> {
        check(&Tree::of(files))
            .0
            .iter()
            .map(ToString::to_string)
            .collect()
    }

    #[test]
    fn a_file_over_the_limit_is_found() {
        let (fits, long, small) = (source(800), source(801), source(10));
        let names: Vec<String> = (0..20).map(|n| format!("crates/a/src/s{n}.rs")).collect();
        let mut files: Vec<(&str, &str)> = names
            .iter()
            .map(|name| (name.as_str(), small.as_str()))
            .collect();
        files.push(("crates/a/src/long.rs", fits.as_str()));
        assert_eq!(found(&files), [""; 0]);
        files.push(("crates/a/src/longer.rs", long.as_str()));
        assert!(found(&files)[0].starts_with("crates/a/src/longer.rs:801: the file has 801 lines"));
        files.pop();
        files.push(("crates/a/tests/longer.rs", long.as_str()));
        assert_eq!(found(&files), [""; 0]);
    }

    #[test]
    fn a_function_over_the_limit_is_found() {
        assert_eq!(found(&[("crates/a/src/lib.rs", &function(70))]), [""; 0]);
        let found_long = found(&[("crates/a/src/lib.rs", &function(71))]);
        assert_eq!(found_long.len(), 1);
        assert!(
            found_long[0]
                .starts_with("crates/a/src/lib.rs:3: `S::long` has 71 lines, more than 70; "),
            "{found_long:?}"
        );
        assert_eq!(found(&[("crates/a/tests/run.rs", &function(71))]), [""; 0]);
    }

    #[test]
    fn attributes_and_docs_of_a_function_do_not_count() {
        let text = function(70).replace("    fn long", "    /// Long.\n    #[inline]\n    fn long");
        assert_eq!(found(&[("crates/a/src/lib.rs", &text)]), [""; 0]);
    }

    #[test]
    fn an_entry_bears_a_function_but_the_list_is_bounded() {
        let list = "[function_lines]\n\"crates/a/src/lib.rs#S::long\" = 71\n";
        let found = found(&[
            ("crates/a/src/lib.rs", &function(71)),
            (ratchet::FILE, list),
        ]);
        assert!(
            found
                .iter()
                .all(|finding| finding.starts_with(ratchet::FILE)),
            "{found:?}"
        );
    }

    #[test]
    fn the_distribution_is_held() {
        let (small, middle, big) = (source(150), source(151), source(451));
        assert_eq!(
            found(&[
                ("a/src/a.rs", &small),
                ("a/src/b.rs", &small),
                ("a/src/c.rs", &small)
            ]),
            [""; 0]
        );
        let median = found(&[
            ("a/src/a.rs", &small),
            ("a/src/b.rs", &middle),
            ("a/src/c.rs", &middle),
        ]);
        assert!(
            median[0].contains("the median of all files is 151 lines"),
            "{median:?}"
        );
        let p90 = found(&[
            ("a/src/a.rs", &small),
            ("a/src/b.rs", &small),
            ("a/src/c.rs", &big),
        ]);
        assert!(
            p90[0].contains("the p90 of all files is 451 lines"),
            "{p90:?}"
        );
    }

    #[test]
    fn an_empty_tree_has_no_sizes() {
        assert_eq!(check(&Tree::default()), (Vec::new(), Sizes::default()));
    }
}
