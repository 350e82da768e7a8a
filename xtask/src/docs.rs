//! Reference pages that are printed from the binary or from data, so that they cannot drift.

use std::fs;
use std::io::Write;
use std::path::Path;

use crate::command::{self, TaskError};
use crate::finding::Finding;
use crate::parity::table;
use crate::test_index::{self, INDEXES};

/// One generated page.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Page {
    /// The file, relative to the repository root.
    file: &'static str,
    source: PageSource,
}

/// Source of the text of a page.
#[derive(Clone, Copy, Debug)]
enum PageSource {
    /// `__docs NAME` of the program that this package builds; no name if the program has one page.
    Binary {
        package: &'static str,
        name: &'static str,
    },
    /// A schema of the data of an operation.
    Schema(&'static str),
    /// An index of tests: its data, relative to the repository root.
    Tests(&'static str),
    /// The table of published measurements.
    Parity,
}

/// The pages that programs print: file, package, and name in its `__docs` command.
const OF_PROGRAMS: [(&str, &str, &str); 6] = [
    ("docs/reference/commands.md", "durward", "commands"),
    ("docs/reference/reasons.md", "durward", "reasons"),
    ("docs/reference/events.md", "durward", "events"),
    ("docs/reference/policy.md", "durward", "policy"),
    ("docs/reference/keys.md", "durward", "keys"),
    ("docs/reference/lab.md", "lab", ""),
];

/// The schemas of the data of operations: file, and name in the example that prints them.
const SCHEMAS: [(&str, &str); 32] = [
    ("docs/schemas/admin/calls.json", "calls"),
    ("docs/schemas/admin/call-kinds.json", "call-kinds"),
    ("docs/schemas/admin/approval.json", "approval"),
    ("docs/schemas/admin/approval-answer.json", "approval-answer"),
    ("docs/schemas/admin/approval-event.json", "approval-event"),
    ("docs/schemas/admin/status.json", "status"),
    ("docs/schemas/admin/segments.json", "segments"),
    ("docs/schemas/admin/witness.json", "witness"),
    ("docs/schemas/admin/key.json", "key"),
    ("docs/schemas/admin/issued-key.json", "issued-key"),
    ("docs/schemas/admin/caller.json", "caller"),
    ("docs/schemas/admin/group.json", "group"),
    ("docs/schemas/admin/pins.json", "pins"),
    ("docs/schemas/admin/pin-changes.json", "pin-changes"),
    ("docs/schemas/admin/pin-classes.json", "pin-classes"),
    ("docs/schemas/admin/reload.json", "reload"),
    ("docs/schemas/admin/model-route.json", "model-route"),
    ("docs/schemas/admin/resting-key.json", "resting-key"),
    ("docs/schemas/admin/limits.json", "limits"),
    ("docs/schemas/admin/server.json", "server"),
    ("docs/schemas/admin/archived-server.json", "archived-server"),
    ("docs/schemas/admin/restored-server.json", "restored-server"),
    ("docs/schemas/admin/server-tools.json", "server-tools"),
    ("docs/schemas/admin/grant.json", "grant"),
    ("docs/schemas/admin/policy-rules.json", "policy-rules"),
    ("docs/schemas/admin/policy-check.json", "policy-check"),
    ("docs/schemas/admin/policy-version.json", "policy-version"),
    ("docs/schemas/admin/explanation.json", "explanation"),
    ("docs/schemas/admin/policy-case.json", "policy-case"),
    (
        "docs/schemas/admin/replay-difference.json",
        "replay-difference",
    ),
    ("docs/schemas/admin/replay-summary.json", "replay-summary"),
    ("docs/schemas/admin/spend.json", "spend"),
];

/// Returns every generated page.
fn pages() -> Vec<Page> {
    let of_programs = OF_PROGRAMS.iter().map(|&(file, package, name)| Page {
        file,
        source: PageSource::Binary { package, name },
    });
    let schemas = SCHEMAS.iter().map(|&(file, name)| Page {
        file,
        source: PageSource::Schema(name),
    });
    let of_tests = INDEXES.iter().map(|&(data, file)| Page {
        file,
        source: PageSource::Tests(data),
    });
    let parity = Page {
        file: table::PAGE,
        source: PageSource::Parity,
    };
    of_programs
        .chain(schemas)
        .chain(of_tests)
        .chain([parity])
        .collect()
}

/// Writes every page again and names the files that changed. Always `true`: nothing is judged.
pub(crate) fn write_all(root: &Path, out: &mut impl Write) -> Result<bool, TaskError> {
    write_pages(root, &pages(), |page| print_page(root, page), out)?;
    Ok(true)
}

/// Compares every page with its source.
pub(crate) fn check(root: &Path) -> Result<Vec<Finding>, TaskError> {
    compare(root, &pages(), |page| print_page(root, page))
}

fn print_page(root: &Path, page: Page) -> Result<Vec<u8>, TaskError> {
    match page.source {
        PageSource::Binary { package, name } => {
            let args = ["run", "--quiet", "--package", package, "--", "__docs", name];
            let args: Vec<&str> = args.into_iter().filter(|arg| !arg.is_empty()).collect();
            command::output(root, "cargo", &args)
        }
        PageSource::Schema(name) => {
            let example = [
                "run",
                "--quiet",
                "--package",
                "durward",
                "--features",
                "schemas",
            ];
            let args = [&example[..], &["--example", "schemas", "--", name]].concat();
            command::output(root, "cargo", &args)
        }
        PageSource::Tests(data) => test_index::print(root, data),
        PageSource::Parity => table::print(root),
    }
}

fn write_pages(
    root: &Path,
    pages: &[Page],
    print: impl Fn(Page) -> Result<Vec<u8>, TaskError>,
    out: &mut impl Write,
) -> Result<(), TaskError> {
    for &page in pages {
        let path = root.join(page.file);
        let text = print(page)?;
        if fs::read(&path).is_ok_and(|old| old == text) {
            continue;
        }
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder).map_err(TaskError::io(page.file))?;
        }
        fs::write(&path, text).map_err(TaskError::io(page.file))?;
        writeln!(out, "{}", page.file)?;
    }
    Ok(())
}

fn compare(
    root: &Path,
    pages: &[Page],
    print: impl Fn(Page) -> Result<Vec<u8>, TaskError>,
) -> Result<Vec<Finding>, TaskError> {
    let mut findings = Vec::new();
    for &page in pages {
        let now = print(page)?;
        let kept = fs::read(root.join(page.file)).unwrap_or_default();
        if let Some(line) = first_difference(&kept, &now) {
            findings.push(Finding::new(
                page.file,
                line,
                "the page differs from its source",
                "run `cargo xtask docs` and commit the result",
            ));
        }
    }
    Ok(findings)
}

/// Returns the first line, counted from 1, in which two texts differ.
fn first_difference(kept: &[u8], now: &[u8]) -> Option<usize> {
    if kept == now {
        return None;
    }
    let same = kept
        .split(|&b| b == b'\n')
        .zip(now.split(|&b| b == b'\n'))
        .take_while(|(a, b)| a == b)
        .count();
    Some(same + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: Page = Page {
        file: "docs/reference/reasons.md",
        source: PageSource::Binary {
            package: "durward",
            name: "reasons",
        },
    };

    fn folder(name: &str) -> std::path::PathBuf {
        let folder = std::env::temp_dir().join(format!("xtask-docs-{name}-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        folder
    }

    #[test]
    fn a_page_that_drifted_is_found_and_then_rewritten() {
        let root = folder("drift");
        let print = |_: Page| Ok(b"one\ntwo\nthree\n".to_vec());
        fs::create_dir_all(root.join("docs/reference")).unwrap();
        fs::write(root.join(PAGE.file), "one\n2\nthree\n").unwrap();

        let found = compare(&root, &[PAGE], print).unwrap();
        assert_eq!(found.len(), 1);
        assert!(
            found[0]
                .to_string()
                .starts_with("docs/reference/reasons.md:2: "),
            "{}",
            found[0]
        );

        let mut out = Vec::new();
        write_pages(&root, &[PAGE], print, &mut out).unwrap();
        assert_eq!(out, b"docs/reference/reasons.md\n");
        assert!(compare(&root, &[PAGE], print).unwrap().is_empty());
        fs::remove_dir_all(root).unwrap();
    }

    #[test]
    fn a_page_that_was_never_written_is_found() {
        let root = folder("missing");
        let found = compare(&root, &[PAGE], |_| Ok(b"one\n".to_vec())).unwrap();
        assert_eq!(found.len(), 1);
        fs::remove_dir_all(root).unwrap();
    }

    #[test]
    fn a_page_that_cannot_be_printed_is_an_error() {
        let root = folder("unprintable");
        let print = |_: Page| {
            Err(TaskError::Failed {
                program: "durward".into(),
                stderr: "no such page".into(),
            })
        };
        assert!(compare(&root, &[PAGE], print).is_err());
        fs::remove_dir_all(root).unwrap();
    }
}
