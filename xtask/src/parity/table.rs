//! The table of published features and figures, `docs/parity.toml`, and the page that is printed from it.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::fs;
use std::path::Path;

use serde::Deserialize;

use crate::command::TaskError;

/// The data.
pub(crate) const DATA: &str = "docs/parity.toml";
/// The page that is printed from it.
pub(crate) const PAGE: &str = "docs/seeds.md";
/// The measurements that figures are taken from.
const BENCHMARKS: &str = "BENCHMARKS.md";

/// Everything that the papers describe, and what does the same here.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ParityTable {
    /// Files that commands read.
    pub(super) file: Vec<InputFile>,
    /// Cells of `BENCHMARKS.md` by name.
    figure: BTreeMap<String, FigureSource>,
    /// Commands that several parts name.
    pub(super) command: BTreeMap<String, String>,
    pub(super) paper: Vec<Paper>,
    state: Vec<StateTable>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct InputFile {
    pub(super) path: String,
    pub(super) text: String,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct FigureSource {
    section: String,
    row: String,
    column: String,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Paper {
    pub(super) title: String,
    pub(super) file: String,
    /// Text below the table.
    #[serde(default)]
    about: String,
    pub(super) part: Vec<PaperPart>,
}

/// A heading or table of a paper.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct PaperPart {
    pub(super) part: String,
    /// Names of commands, or commands in full.
    #[serde(default)]
    commands: Vec<String>,
    #[serde(default)]
    tests: Vec<String>,
    note: Option<String>,
    original: Option<String>,
    ours: Option<String>,
}

/// What became of parts of an original.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct StateTable {
    kind: String,
    parts: Vec<[String; 2]>,
}

/// Parses the data.
pub(crate) fn parse(text: &str) -> Result<ParityTable, TaskError> {
    toml::from_str(text).map_err(|error| malformed(error.to_string()))
}

/// Returns the page, with its figures from the benchmarks as they are now.
pub(crate) fn print(root: &Path) -> Result<Vec<u8>, TaskError> {
    let read = |file: &str| fs::read_to_string(root.join(file)).map_err(TaskError::io(file));
    let page = parse(&read(DATA)?)?.to_page(&read(BENCHMARKS)?)?;
    Ok(page.into_bytes())
}

fn malformed(why: String) -> TaskError {
    TaskError::Malformed {
        what: DATA.to_owned(),
        why,
    }
}

impl ParityTable {
    /// Returns what is wrong with the table: parts without a command, a test or a note, and names that do not exist.
    pub(crate) fn faults(
        &self,
        has_target: impl Fn(&str) -> bool,
        has_file: impl Fn(&str) -> bool,
        has_test: impl Fn(&str) -> bool,
    ) -> Vec<String> {
        let mut faults = Vec::new();
        for part in self.paper.iter().flat_map(|paper| &paper.part) {
            let name = &part.part;
            if part.commands.is_empty() && part.tests.is_empty() && part.note.is_none() {
                faults.push(format!("\"{name}\" has no command, test or note"));
            }
            for command in &part.commands {
                let words: Vec<&str> = command.split(' ').collect();
                let exists = match words.as_slice() {
                    ["make", target, ..] => has_target(target),
                    ["durward" | "curl", ..] => true,
                    [script, ..] if script.starts_with("scripts/") => has_file(script),
                    _ => self.command.contains_key(command),
                };
                if !exists {
                    faults.push(format!("\"{name}\" names {command}, which does not exist"));
                }
            }
            let missing = part.tests.iter().filter(|test| !has_test(test));
            faults.extend(
                missing.map(|test| format!("\"{name}\" names {test}, which does not exist")),
            );
        }
        faults
    }

    fn to_page(&self, benchmarks: &str) -> Result<String, TaskError> {
        let mut page = format!(
            "# Published measurements, repeated\n\n<!-- Printed by `cargo xtask docs` from {DATA}. -->\n\n\
             Every method and table of five published papers, the command that does it here, the paper's figure and ours. Figures of ours are microseconds added to \
             the median of a call, from [{BENCHMARKS}](../{BENCHMARKS}), with the 95 % interval over launches; \"by the command\" means that you run it for yours. The access proxy was \
             measured on an Apple M3 Pro.\n\n\
             `cargo xtask parity` compares the parts with the papers where they are at hand, and runs each command below in its quick form. `cargo xtask tidy` checks that \
             targets, scripts and tests exist.\n\n## Commands\n\n| name | command |\n|---|---|\n"
        );
        for (name, command) in &self.command {
            let _ = writeln!(page, "| `{name}` | `{command}` |");
        }
        for file in &self.file {
            let _ = write!(
                page,
                "\n`{}` is a file of {} bytes:\n\n```text\n{}```\n",
                file.path,
                file.text.len(),
                file.text
            );
        }
        for paper in &self.paper {
            let _ = write!(
                page,
                "\n## {}\n\n| part | command or test | original | ours |\n|---|---|---|---|\n",
                paper.title
            );
            for part in &paper.part {
                let names = part.commands.iter().chain(&part.tests);
                let named = names.map(|name| format!("`{name}`"));
                let cell: Vec<String> = named.chain(part.note.clone()).collect();
                let ours = self.fill_figures(part.ours.as_deref().unwrap_or("–"), benchmarks)?;
                let original = part.original.as_deref().unwrap_or("–");
                let _ = writeln!(
                    page,
                    "| {} | {} | {original} | {ours} |",
                    part.part,
                    cell.join(", ")
                );
            }
            if !paper.about.is_empty() {
                let _ = write!(page, "\n{}\n", paper.about.trim());
            }
        }
        page += "\n## Parts of the originals\n";
        for table in &self.state {
            let _ = write!(page, "\n| {} | state |\n|---|---|\n", table.kind);
            for [part, state] in &table.parts {
                let _ = writeln!(page, "| {part} | {state} |");
            }
        }
        Ok(page)
    }

    /// Returns the text with each `{NAME}` of a figure replaced by its value.
    fn fill_figures(&self, text: &str, benchmarks: &str) -> Result<String, TaskError> {
        let mut filled = text.to_owned();
        for (name, source) in &self.figure {
            let mark = format!("{{{name}}}");
            if filled.contains(&mark) {
                let value = source.value(benchmarks).ok_or_else(|| {
                    malformed(format!("{BENCHMARKS} lacks the cell of the figure {name}"))
                })?;
                filled = filled.replace(&mark, &format!("+{value} µs"));
            }
        }
        Ok(filled)
    }
}

impl FigureSource {
    /// Returns the cell, if the benchmarks have it.
    fn value<'b>(&self, benchmarks: &'b str) -> Option<&'b str> {
        let cells = |line: &'b str| line.trim_matches(['|', ' ']).split(" | ");
        let mut rows = benchmarks
            .lines()
            .skip_while(|line| *line != self.section)
            .skip(1)
            .take_while(|line| !line.starts_with('#'))
            .filter(|line| line.starts_with("| "));
        let at = cells(rows.next()?).position(|head| head == self.column)?;
        let row = rows.find(|row| cells(row).next() == Some(self.row.as_str()))?;
        cells(row).nth(at)
    }
}

/// Returns a command in its quick form.
pub(super) fn to_quick(command: &str) -> String {
    let mut words = command.split(' ');
    match words.nth(2) {
        Some("overhead") => format!("{command} --quick --quiet"),
        Some("load") => format!("{command} --duration 500ms --quiet"),
        Some("standard") => format!("{command} --quick"),
        _ => command.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: &str = "[[file]]\npath = \"/tmp/a\"\ntext = \"x\\n\"\n\
        [figure]\necho = { section = \"## E\", row = \"r 2\", column = \"added\" }\n\
        [command]\nrun = \"durward lab load tool --x\"\n\
        [[paper]]\ntitle = \"P\"\nfile = \"p.md\"\nabout = \"Below.\"\n\
        [[paper.part]]\npart = \"A\"\ncommands = [\"run\", \"make b\"]\noriginal = \"1 ms\"\nours = \"{echo}; n\"\n\
        [[paper.part]]\npart = \"B\"\nnote = \"prose\"\n\
        [[state]]\nkind = \"key\"\nparts = [[\"k\", \"built\"]]\n";
    const FIGURES: &str = "## D\n| v | added |\n|---|--:|\n| r 2 | 9 |\n## E\n| v | p50 | added |\n|---|--:|--:|\n| r | 1 | 2 |\n| r 2 | 3 | 4 [3, 5] |\n";

    #[test]
    fn the_page_has_figures_of_the_benchmarks() {
        let table = parse(TABLE).unwrap();
        let page = table.to_page(FIGURES).unwrap();
        for row in [
            "| `run` | `durward lab load tool --x` |\n",
            "| A | `run`, `make b` | 1 ms | +4 [3, 5] µs; n |\n",
            "| B | prose | – | – |\n\nBelow.\n",
            "| key | state |\n|---|---|\n| k | built |\n",
        ] {
            assert!(page.contains(row), "{row}\n{page}");
        }
        assert!(table.to_page("## E\n").is_err(), "the figure is gone");
    }

    #[test]
    fn names_that_do_not_exist_are_faults() {
        let table = parse(TABLE).unwrap();
        let faults = |is: bool| table.faults(|_| is, |_| is, |_| is);
        assert_eq!(faults(true), [""; 0]);
        assert_eq!(faults(false), ["\"A\" names make b, which does not exist"]);
        let bare = TABLE.replace("note = \"prose\"\n", "");
        let bare = parse(&bare.replace("\"run\", ", "\"walk\", ")).unwrap();
        let faults = bare.faults(|_| true, |_| true, |_| true);
        assert_eq!(faults.len(), 2, "{faults:?}");
    }

    #[test]
    fn commands_have_a_quick_form() {
        assert_eq!(
            to_quick("durward lab overhead --a"),
            "durward lab overhead --a --quick --quiet"
        );
        assert_eq!(
            to_quick("durward lab audit-latency --a"),
            "durward lab audit-latency --a"
        );
    }
}
