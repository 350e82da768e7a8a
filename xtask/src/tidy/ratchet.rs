//! Sizes over a limit that are borne for now. The list may only shrink.
//!
//! An entry carries the size of today: growth is a finding, and so is an entry that could be lower or is not needed.

use std::collections::BTreeMap;

use crate::finding::Finding;

/// Where the list lives.
pub(super) const FILE: &str = "xtask/ratchet.toml";

/// How many entries the list may hold. Lower it whenever one goes; nobody raises it unnoticed.
const ENTRIES_MAX: usize = 0;

/// What is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Kind {
    FileLines,
    FunctionLines,
}

impl Kind {
    const ALL: [Self; 2] = [Self::FileLines, Self::FunctionLines];

    fn table(self) -> &'static str {
        match self {
            Self::FileLines => "file_lines",
            Self::FunctionLines => "function_lines",
        }
    }
}

#[derive(Debug)]
struct Entry {
    size: usize,
    line: usize,
    needed: bool,
}

/// The list, and what was wrong with its text.
#[derive(Debug, Default)]
pub(super) struct Ratchet {
    entries: BTreeMap<(Kind, String), Entry>,
    findings: Vec<Finding>,
}

impl Ratchet {
    /// Reads the list: two tables of `"key" = size`.
    pub(super) fn read(text: &str) -> Self {
        let mut ratchet = Self::default();
        let mut kind = None;
        for (index, line) in text.lines().enumerate() {
            let at = index + 1;
            let line = line.trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            if let Some(table) = line.strip_prefix('[').and_then(|l| l.strip_suffix(']')) {
                kind = Kind::ALL.into_iter().find(|kind| kind.table() == table);
                if kind.is_none() {
                    ratchet.complain(
                        at,
                        format!("`{table}` is no table of the ratchet"),
                        "use file_lines or function_lines",
                    );
                }
                continue;
            }
            match (kind, entry(line)) {
                (Some(kind), Some((key, size))) => {
                    let entry = Entry {
                        size,
                        line: at,
                        needed: false,
                    };
                    if ratchet.entries.insert((kind, key), entry).is_some() {
                        ratchet.complain(at, "the entry stands twice", "keep one");
                    }
                }
                _ => ratchet.complain(
                    at,
                    "the line is no entry",
                    "write `\"path\" = lines` below a table",
                ),
            }
        }
        ratchet
    }

    fn complain(&mut self, line: usize, wrong: impl Into<String>, remedy: &str) {
        self.findings.push(Finding::new(FILE, line, wrong, remedy));
    }

    /// Whether a size over its limit is borne. Says so itself where an entry is there but does not fit.
    pub(super) fn bears(&mut self, kind: Kind, key: &str, size: usize) -> bool {
        let Some(entry) = self.entries.get_mut(&(kind, key.to_owned())) else {
            return false;
        };
        entry.needed = true;
        let (line, limit) = (entry.line, entry.size);
        if size > limit {
            self.complain(
                line,
                format!("`{key}` grew from {limit} to {size} lines"),
                "make it smaller: the ratchet only shrinks",
            );
        } else if size < limit {
            self.complain(
                line,
                format!("`{key}` has {size} lines, fewer than its entry"),
                &format!("lower the entry to {size}"),
            );
        }
        true
    }

    /// Everything wrong with the list itself, once all sizes were asked for.
    pub(super) fn finish(mut self) -> Vec<Finding> {
        let idle: Vec<(usize, String)> = self
            .entries
            .iter()
            .filter(|(_, e)| !e.needed)
            .map(|((_, key), e)| (e.line, key.clone()))
            .collect();
        for (line, key) in idle {
            self.complain(
                line,
                format!("the entry of `{key}` is no longer needed"),
                "remove it",
            );
        }
        if self.entries.len() > ENTRIES_MAX {
            let wrong = format!(
                "{} entries, and {ENTRIES_MAX} are allowed",
                self.entries.len()
            );
            self.complain(1, wrong, "make the code smaller instead of adding an entry");
        }
        self.findings
    }
}

fn entry(line: &str) -> Option<(String, usize)> {
    let (key, size) = line.split_once('=')?;
    let key = key.trim().strip_prefix('"')?.strip_suffix('"')?;
    Some((key.to_owned(), size.trim().parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(text: &str, size: Option<usize>) -> Vec<String> {
        let mut ratchet = Ratchet::read(text);
        if let Some(size) = size {
            assert!(ratchet.bears(Kind::FileLines, "a.rs", size));
        }
        let allowed = |finding: &String| !finding.contains("are allowed");
        ratchet
            .finish()
            .iter()
            .map(ToString::to_string)
            .filter(allowed)
            .collect()
    }

    #[test]
    fn an_entry_bears_exactly_its_size() {
        let list = "# list\n[file_lines]\n\"a.rs\" = 900\n";
        assert_eq!(said(list, Some(900)), [""; 0]);
        assert!(said(list, Some(901))[0].contains(":3: `a.rs` grew from 900 to 901 lines"));
        assert!(said(list, Some(850))[0].contains("lower the entry to 850"));
        assert!(said(list, None)[0].contains("no longer needed"));
    }

    #[test]
    fn kinds_do_not_mix() {
        let mut ratchet = Ratchet::read("[function_lines]\n\"a.rs\" = 90\n");
        assert!(!ratchet.bears(Kind::FileLines, "a.rs", 90));
        assert!(ratchet.bears(Kind::FunctionLines, "a.rs", 90));
    }

    #[test]
    fn a_bad_line_is_found() {
        for text in [
            "[other]\n",
            "\"a.rs\" = 1\n",
            "[file_lines]\na.rs = 1\n",
            "[file_lines]\n\"a.rs\" = many\n",
        ] {
            assert!(!said(text, None).is_empty(), "{text}");
        }
        assert!(
            said("[file_lines]\n\"a.rs\" = 900\n\"a.rs\" = 901\n", Some(901))[0]
                .contains("stands twice")
        );
    }

    #[test]
    fn the_list_may_not_grow() {
        let list: String = (0..=ENTRIES_MAX)
            .map(|n| format!("\"{n}.rs\" = 900\n"))
            .collect();
        let mut ratchet = Ratchet::read(&format!("[file_lines]\n{list}"));
        for n in 0..=ENTRIES_MAX {
            assert!(ratchet.bears(Kind::FileLines, &format!("{n}.rs"), 900));
        }
        assert_eq!(ratchet.finish().len(), 1);
    }
}
