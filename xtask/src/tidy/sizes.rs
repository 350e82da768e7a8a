//! A report of sizes, read at review: it fails nothing.

use std::fmt;
use std::io::Write;
use std::path::Path;

use super::tree::{RustFile, SourceTree};
use crate::command::TaskError;

/// Longest file that the report leaves out, in lines.
const FILE_LINES_MAX: usize = 500;
/// Longest function that the report leaves out, in lines.
const FUNCTION_LINES_MAX: usize = 100;

/// Sizes of all files that are not tests, in lines.
#[derive(Debug, Default, PartialEq, Eq)]
struct SizeSummary {
    files: usize,
    median: usize,
    p90: usize,
    longest: usize,
    longest_function: usize,
}

impl fmt::Display for SizeSummary {
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

/// Prints the longest files and functions, and a summary. Returns true: a size is no finding.
pub(crate) fn run(root: &Path, out: &mut impl Write) -> Result<bool, TaskError> {
    let (long, summary) = measure(&SourceTree::load(root)?);
    for line in &long {
        writeln!(out, "{line}")?;
    }
    writeln!(out, "sizes: {summary}")?;
    Ok(true)
}

/// Returns a line for each file and function over its limit, longest first, and the summary.
fn measure(tree: &SourceTree) -> (Vec<String>, SizeSummary) {
    let mut long = Vec::new();
    let mut lines = Vec::new();
    let mut summary = SizeSummary::default();
    for file in tree.shipped() {
        let size = file.text.lines().count();
        lines.push(size);
        if size > FILE_LINES_MAX {
            long.push((size, format!("{}: {size} lines", file.path)));
        }
        for function in &file.survey.functions {
            summary.longest_function = summary.longest_function.max(function.lines);
            if function.lines > FUNCTION_LINES_MAX {
                long.push((function.lines, function_line(&file, function)));
            }
        }
    }
    long.sort_unstable_by(|a, b| b.cmp(a));
    lines.sort_unstable();
    summary.files = lines.len();
    summary.median = percentile(&lines, 50);
    summary.p90 = percentile(&lines, 90);
    summary.longest = lines.last().copied().unwrap_or_default();
    (long.into_iter().map(|(_, line)| line).collect(), summary)
}

fn function_line(file: &RustFile<'_>, function: &super::survey::FunctionBody) -> String {
    let (name, lines) = (&function.name, function.lines);
    format!(
        "{}:{}: `{name}` has {lines} lines",
        file.path, function.line
    )
}

/// Returns the size at or below which `percent` of the files lie (nearest rank).
fn percentile(sorted: &[usize], percent: usize) -> usize {
    let rank = (sorted.len() * percent).div_ceil(100);
    let size = rank.checked_sub(1).and_then(|index| sorted.get(index));
    size.copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_files_and_functions_are_listed_and_tests_are_not() {
        let body = "        f();\n".repeat(99);
        let long = format!("//! A.\nimpl S {{\n    fn long() {{\n{body}    }}\n}}\n");
        let file = "//\n".repeat(501);
        let (lines, summary) = measure(&SourceTree::of(&[
            ("crates/a/src/lib.rs", &long),
            ("crates/a/src/file.rs", &file),
            ("crates/a/tests/run.rs", &file),
        ]));
        assert_eq!(
            lines,
            [
                "crates/a/src/file.rs: 501 lines",
                "crates/a/src/lib.rs:3: `S::long` has 101 lines"
            ]
        );
        assert_eq!((summary.files, summary.longest), (2, 501));
        assert_eq!(
            measure(&SourceTree::default()),
            (Vec::new(), SizeSummary::default())
        );
    }
}
