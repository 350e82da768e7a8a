//! The list of allowed circles: `crates/gate/src: policy -> paths`, one arrow a line.

use std::collections::{BTreeMap, BTreeSet};

use super::graph::Arrow;
use crate::finding::Finding;

/// Path of the list.
pub(super) const FILE: &str = "xtask/circles.txt";

/// How many entries the list may hold. Lower it whenever one goes; raising it shows in a review.
const ENTRIES_MAX: usize = 0;

/// The entries, with their lines, and what was wrong with the text.
#[derive(Debug, Default)]
pub(super) struct ExceptionList {
    entries: BTreeMap<(String, Arrow), ExceptionEntry>,
    findings: Vec<Finding>,
}

#[derive(Debug)]
struct ExceptionEntry {
    line: usize,
    needed: bool,
}

impl ExceptionList {
    pub(super) fn read(text: &str) -> Self {
        let mut list = Self::default();
        for (index, line) in text.lines().enumerate() {
            let at = index + 1;
            let line = line.trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let Some(key) = entry(line) else {
                list.complain(at, "the line is no entry", "write `folder: from -> to`");
                continue;
            };
            let entry = ExceptionEntry {
                line: at,
                needed: false,
            };
            if list.entries.insert(key, entry).is_some() {
                list.complain(at, "the entry stands twice", "keep one");
            }
        }
        list
    }

    fn complain(&mut self, line: usize, wrong: impl Into<String>, remedy: &str) {
        self.findings.push(Finding::new(FILE, line, wrong, remedy));
    }

    /// Returns the allowed arrows between the children of a folder.
    pub(super) fn of(&self, folder: &str) -> BTreeSet<Arrow> {
        let here = self.entries.keys().filter(|(at, _)| at == folder);
        here.map(|(_, arrow)| arrow.clone()).collect()
    }

    /// Notes that an entry keeps a circle from being found.
    pub(super) fn needed(&mut self, folder: &str, arrow: Arrow) {
        if let Some(entry) = self.entries.get_mut(&(folder.to_owned(), arrow)) {
            entry.needed = true;
        }
    }

    /// Everything wrong with the list itself, once all folders were looked at.
    pub(super) fn finish(mut self) -> Vec<Finding> {
        let idle: Vec<(usize, String)> = self
            .entries
            .iter()
            .filter(|(_, entry)| !entry.needed)
            .map(|((folder, (from, to)), entry)| (entry.line, format!("{folder}: {from} -> {to}")))
            .collect();
        for (line, entry) in idle {
            self.complain(
                line,
                format!("`{entry}` closes no circle any more"),
                "remove the entry",
            );
        }
        if self.entries.len() > ENTRIES_MAX {
            let wrong = format!(
                "{} entries, and {ENTRIES_MAX} are allowed",
                self.entries.len()
            );
            self.complain(1, wrong, "take the circle apart instead of adding an entry");
        }
        self.findings
    }
}

fn entry(line: &str) -> Option<(String, Arrow)> {
    let (folder, arrow) = line.split_once(": ")?;
    let (from, to) = arrow.split_once(" -> ")?;
    Some((
        folder.to_owned(),
        (from.trim().to_owned(), to.trim().to_owned()),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list_faults(text: &str) -> Vec<String> {
        ExceptionList::read(text)
            .finish()
            .iter()
            .map(ToString::to_string)
            .collect()
    }

    #[test]
    fn bad_lines_and_doubles_are_found() {
        assert!(
            list_faults("# a note\n\na -> b\n")[0]
                .starts_with("xtask/circles.txt:3: the line is no entry")
        );
        assert!(list_faults("s: a -> b\ns: a -> b\n")[0].contains(":2: the entry stands twice"));
    }

    #[test]
    fn the_list_may_not_grow() {
        let text: String = (0..=ENTRIES_MAX)
            .map(|n| format!("s: a{n} -> b\n"))
            .collect();
        let mut list = ExceptionList::read(&text);
        for n in 0..=ENTRIES_MAX {
            list.needed("s", (format!("a{n}"), "b".to_owned()));
        }
        let found = list.finish();
        assert_eq!(found.len(), 1);
        assert!(found[0].to_string().contains("are allowed"), "{found:?}");
    }
}
