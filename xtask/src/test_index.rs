//! Tables of claims and their tests, kept as data in `docs/tests` and printed as reference pages.

use std::fmt::Write;
use std::fs;
use std::path::Path;

use serde::Deserialize;

use crate::command::TaskError;

/// The data of each index, and the page that is printed from it.
pub(crate) const INDEXES: [(&str, &str); 4] = [
    (
        "docs/tests/security.toml",
        "docs/reference/security_tests.md",
    ),
    ("docs/tests/models.toml", "docs/reference/models_tests.md"),
    ("docs/tests/ssh.toml", "docs/reference/ssh_tests.md"),
    (
        "docs/tests/simulation.toml",
        "docs/reference/simulation_tests.md",
    ),
];

/// Claims by section, each with its tests.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct TestIndex {
    title: String,
    about: String,
    section: Vec<IndexSection>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct IndexSection {
    title: String,
    /// Text below the table.
    #[serde(default)]
    text: String,
    #[serde(default)]
    case: Vec<TestedCase>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct TestedCase {
    case: String,
    result: Option<String>,
    /// Tests as `file::test`, or paths of scripts and test files.
    tests: Vec<String>,
    note: Option<String>,
}

/// Reads the data at `file` and returns its page.
pub(crate) fn print(root: &Path, file: &str) -> Result<Vec<u8>, TaskError> {
    let text = fs::read_to_string(root.join(file)).map_err(TaskError::io(file))?;
    Ok(parse(file, &text)?.to_page(file).into_bytes())
}

/// Parses the data of an index.
pub(crate) fn parse(file: &str, text: &str) -> Result<TestIndex, TaskError> {
    toml::from_str(text).map_err(|error| TaskError::Malformed {
        what: file.to_owned(),
        why: error.to_string(),
    })
}

impl TestIndex {
    /// Returns every test that the index names.
    pub(crate) fn tests(&self) -> impl Iterator<Item = &str> {
        let cases = self.section.iter().flat_map(|section| &section.case);
        cases.flat_map(|case| case.tests.iter().map(String::as_str))
    }

    /// Returns the page of the index as Markdown.
    fn to_page(&self, file: &str) -> String {
        let mut page = format!(
            "# {}\n\n<!-- Printed by `cargo xtask docs` from {file}. -->\n\n{}\n\n\
             A test is named with its file. `cargo xtask tidy` checks that each exists.\n",
            self.title,
            self.about.trim()
        );
        for section in &self.section {
            let _ = write!(page, "\n## {}\n", section.title);
            let has_results = section.case.iter().any(|case| case.result.is_some());
            if !section.case.is_empty() {
                page += match has_results {
                    true => "\n| case | result | tests |\n|---|---|---|\n",
                    false => "\n| case | tests |\n|---|---|\n",
                };
            }
            for case in &section.case {
                let _ = write!(page, "| {} |", case.case);
                if has_results {
                    let _ = write!(page, " {} |", case.result.as_deref().unwrap_or("–"));
                }
                let tests: Vec<String> = case.tests.iter().map(|t| format!("`{t}`")).collect();
                let note = case.note.as_ref().map(|note| format!("; {note}"));
                let _ = writeln!(
                    page,
                    " {}{} |",
                    tests.join(", "),
                    note.as_deref().unwrap_or("")
                );
            }
            if !section.text.is_empty() {
                let _ = write!(page, "\n{}\n", section.text.trim());
            }
        }
        page
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DATA: &str = "title = \"T\"\nabout = \"A.\"\n[[section]]\ntitle = \"S\"\ntext = \"Below.\"\n\
        [[section.case]]\ncase = \"one\"\nresult = \"r\"\ntests = [\"a::b\", \"scripts/c\"]\nnote = \"n\"\n\
        [[section.case]]\ncase = \"two\"\ntests = [\"a::d\"]\n";

    #[test]
    fn an_index_is_printed_as_tables() {
        let index = parse("x.toml", DATA).unwrap();
        assert_eq!(
            index.tests().collect::<Vec<_>>(),
            ["a::b", "scripts/c", "a::d"]
        );
        let page = index.to_page("x.toml");
        assert!(
            page.contains("| one | r | `a::b`, `scripts/c`; n |\n"),
            "{page}"
        );
        assert!(page.contains("| two | – | `a::d` |\n\nBelow.\n"), "{page}");
    }

    #[test]
    fn unknown_members_are_refused() {
        assert!(parse("x.toml", &format!("{DATA}test = []\n")).is_err());
    }
}
