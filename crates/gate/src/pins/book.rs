//! What is known of one server's tools: approved definitions, and those that wait.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// Most tools of one server.
pub const TOOLS_MAX: usize = 10_000;
/// Room that the definitions of one server may take, in bytes as written; the rest of
/// [`super::FILE_BYTES_MAX`] is for what stands between them.
const DEFINITION_BYTES_MAX: usize = 6 * 1_024 * 1_024;

/// A definition as it was seen.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Definition {
    /// SHA-256 of the text, in hexadecimal.
    pub digest: String,
    /// When it was approved, or first seen waiting: milliseconds since 1970.
    pub time_ms: i64,
    /// The canonical text.
    pub text: String,
    /// A person approved it; the first list of a server is pinned without one.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub by_person: bool,
}

impl Definition {
    /// A definition seen at a time.
    #[must_use]
    pub fn new(text: &str, time_ms: i64) -> Self {
        Self {
            digest: super::digest(text),
            time_ms,
            text: text.to_owned(),
            by_person: false,
        }
    }
}

/// One tool.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tool {
    /// What was approved; none where the tool is new to a known server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approved: Option<Definition>,
    /// What the server showed last, where that is something else.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waiting: Option<Definition>,
}

/// All tools of one server.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Book {
    /// Whether a whole list has been seen: from then on nothing is trusted unseen.
    pub complete: bool,
    /// By name.
    pub tools: BTreeMap<String, Tool>,
}

/// How a definition stands to the book.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Standing {
    /// It is the approved one.
    Approved,
    /// Another one was approved.
    Changed {
        /// The digest of the approved one.
        approved: String,
    },
    /// The server is known, this tool is not.
    New,
}

/// What an approval did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Approval {
    /// The waiting definition is the approved one now.
    Approved {
        /// Its digest.
        digest: String,
    },
    /// The approved definition is the one that the server showed last.
    Nothing,
    /// No such tool was ever seen.
    Unknown,
    /// Another definition waits than the one that was named.
    Another {
        /// The digest of the one that waits.
        digest: String,
    },
}

impl Book {
    /// How a definition stands.
    #[must_use]
    pub fn standing(&self, tool: &str, digest: &str) -> Standing {
        match self.tools.get(tool).and_then(|t| t.approved.as_ref()) {
            Some(approved) if approved.digest == digest => Standing::Approved,
            Some(approved) => Standing::Changed {
                approved: approved.digest.clone(),
            },
            None => Standing::New,
        }
    }

    /// Whether taking these definitions would leave the book as it is.
    pub(super) fn agrees(&self, seen: &[(&str, &str, &str)], ends: bool) -> bool {
        (self.complete || !ends)
            && seen.iter().all(|(name, digest, _)| {
                self.tools.get(*name).is_some_and(|tool| {
                    let approved = tool.approved.as_ref().is_some_and(|d| d.digest == *digest);
                    let waiting = tool.waiting.as_ref().map(|d| d.digest == *digest);
                    match (approved, waiting) {
                        (true, None) | (false, Some(true)) => true,
                        (true, Some(_)) | (false, None | Some(false)) => false,
                    }
                })
            })
    }

    /// Takes in what a list showed: name, digest, text. `ends` where the list is whole now. Gives how
    /// many definitions found no room.
    pub(super) fn take(&mut self, seen: &[(&str, &str, &str)], ends: bool, now_ms: i64) -> usize {
        let mut room = DEFINITION_BYTES_MAX.saturating_sub(self.definition_bytes());
        let mut left_out = 0;
        for (name, digest, text) in seen {
            let known = self.tools.get(*name);
            let approved = known.and_then(|tool| tool.approved.as_ref());
            if approved.is_some_and(|d| d.digest == *digest) {
                if let Some(tool) = self.tools.get_mut(*name) {
                    tool.waiting = None;
                }
                continue;
            }
            if known
                .and_then(|tool| tool.waiting.as_ref())
                .is_some_and(|d| d.digest == *digest)
            {
                continue;
            }
            let trusted = !self.complete && approved.is_none();
            let bytes = written_bytes(name, text);
            if bytes > room || (known.is_none() && self.tools.len() >= TOOLS_MAX) {
                left_out += 1;
                continue;
            }
            room -= bytes;
            let definition = Definition {
                digest: (*digest).to_owned(),
                time_ms: now_ms,
                text: (*text).to_owned(),
                by_person: false,
            };
            let tool = self.tools.entry((*name).to_owned()).or_default();
            if trusted {
                tool.approved = Some(definition);
            } else {
                tool.waiting = Some(definition);
            }
        }
        self.complete |= ends;
        left_out
    }

    /// Returns whether a person approved this definition.
    #[must_use]
    pub fn is_approved_by_person(&self, tool: &str, digest: &str) -> bool {
        let approved = self.tools.get(tool).and_then(|tool| tool.approved.as_ref());
        approved.is_some_and(|definition| definition.by_person && definition.digest == digest)
    }

    /// Approves what waits for a tool, or confirms the definition that was pinned without a person; where a digest is
    /// named (or its beginning), only that one.
    pub fn approve(&mut self, tool: &str, digest: Option<&str>, now_ms: i64) -> Approval {
        let Some(tool) = self.tools.get_mut(tool) else {
            return Approval::Unknown;
        };
        match tool.waiting.take() {
            None => match tool.approved.as_mut().filter(|pinned| !pinned.by_person) {
                None => Approval::Nothing,
                Some(pinned) if digest.is_some_and(|named| !pinned.digest.starts_with(named)) => {
                    Approval::Another {
                        digest: pinned.digest.clone(),
                    }
                }
                Some(pinned) => {
                    pinned.by_person = true;
                    pinned.time_ms = now_ms;
                    Approval::Approved {
                        digest: pinned.digest.clone(),
                    }
                }
            },
            Some(waiting) if digest.is_some_and(|named| !waiting.digest.starts_with(named)) => {
                let digest = waiting.digest.clone();
                tool.waiting = Some(waiting);
                Approval::Another { digest }
            }
            Some(waiting) => {
                let digest = waiting.digest.clone();
                tool.approved = Some(Definition {
                    time_ms: now_ms,
                    by_person: true,
                    ..waiting
                });
                Approval::Approved { digest }
            }
        }
    }

    /// Returns the tools with a definition that no person has approved: one that waits, or the one that was pinned from
    /// the server's first list.
    pub fn unapproved(&self) -> impl Iterator<Item = &str> {
        let unapproved = self.tools.iter().filter(|(_, tool)| {
            let pinned = tool.approved.as_ref();
            tool.waiting.is_some() || pinned.is_some_and(|pinned| !pinned.by_person)
        });
        unapproved.map(|(name, _)| name.as_str())
    }

    /// The tools that wait.
    pub fn waiting(&self) -> impl Iterator<Item = (&str, &Tool)> {
        self.tools
            .iter()
            .filter(|(_, tool)| tool.waiting.is_some())
            .map(|(name, tool)| (name.as_str(), tool))
    }

    /// What is wrong with a book that was read, if anything: each text must have its digest.
    pub(super) fn fault(&self) -> Option<String> {
        if self.tools.len() > TOOLS_MAX {
            return Some(format!("more than {TOOLS_MAX} tools"));
        }
        self.tools.iter().find_map(|(name, tool)| {
            let mut definitions = tool.approved.iter().chain(&tool.waiting);
            definitions
                .any(|d| super::digest(&d.text) != d.digest)
                .then(|| {
                    format!(
                        "the digest of tool \"{}\" does not fit",
                        name.escape_debug()
                    )
                })
        })
    }

    fn definition_bytes(&self) -> usize {
        let of = |name: &str, d: &Option<Definition>| {
            d.as_ref().map_or(0, |d| written_bytes(name, &d.text))
        };
        self.tools
            .iter()
            .map(|(name, tool)| of(name, &tool.approved) + of(name, &tool.waiting))
            .sum()
    }
}

/// Room that a definition takes in the file.
fn written_bytes(name: &str, text: &str) -> usize {
    /// Digest, time, and the names of the members.
    const AROUND_BYTES: usize = 192;
    let escaped = |text: &str| {
        text.bytes()
            .map(|b| match b {
                b'"' | b'\\' => 2,
                0..0x20 => 6,
                _ => 1,
            })
            .sum::<usize>()
    };
    AROUND_BYTES + escaped(name) + escaped(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(tools: &[(String, String, String)]) -> Vec<(&str, &str, &str)> {
        tools
            .iter()
            .map(|(n, d, t)| (n.as_str(), d.as_str(), t.as_str()))
            .collect()
    }

    fn list(tools: &[(&str, &str)]) -> Vec<(String, String, String)> {
        tools
            .iter()
            .map(|(n, t)| ((*n).into(), crate::pins::digest(t), (*t).into()))
            .collect()
    }

    fn take(book: &mut Book, tools: &[(&str, &str)], ends: bool) -> usize {
        let tools = list(tools);
        let seen = seen(&tools);
        let changes = !book.agrees(&seen, ends);
        let before = book.clone();
        let left_out = book.take(&seen, ends, 5);
        assert_eq!(changes, *book != before || left_out > 0, "{tools:?}");
        left_out
    }

    fn standing(book: &Book, tool: &str, text: &str) -> Standing {
        book.standing(tool, &crate::pins::digest(text))
    }

    #[test]
    fn the_first_whole_list_is_trusted_and_nothing_after_it() {
        let mut book = Book::default();
        take(&mut book, &[("a", "1")], false);
        take(&mut book, &[("b", "1")], true);
        assert_eq!(standing(&book, "a", "1"), Standing::Approved);
        assert_eq!(standing(&book, "b", "1"), Standing::Approved);
        take(&mut book, &[("a", "2"), ("b", "1"), ("c", "1")], true);
        let approved = crate::pins::digest("1");
        assert_eq!(standing(&book, "a", "2"), Standing::Changed { approved });
        assert_eq!(standing(&book, "c", "1"), Standing::New);
        let waiting: Vec<&str> = book.waiting().map(|(name, _)| name).collect();
        assert_eq!(waiting, ["a", "c"]);
        // A change before the first list has ended is a change all the same.
        let mut book = Book::default();
        take(&mut book, &[("a", "1")], false);
        take(&mut book, &[("a", "2")], false);
        assert_ne!(standing(&book, "a", "2"), Standing::Approved);
    }

    #[test]
    fn what_changes_back_no_longer_waits() {
        let mut book = Book::default();
        take(&mut book, &[("a", "1")], true);
        take(&mut book, &[("a", "2")], true);
        take(&mut book, &[("a", "2")], true);
        assert_eq!(book.waiting().count(), 1);
        take(&mut book, &[("a", "1")], true);
        assert_eq!(book.waiting().count(), 0);
    }

    #[test]
    fn approvals() {
        let mut book = Book::default();
        take(&mut book, &[("a", "1")], true);
        let first = crate::pins::digest("1");
        // What was pinned from the first list is no person's yes until one gives it.
        assert!(!book.is_approved_by_person("a", &first));
        assert_eq!(book.unapproved().collect::<Vec<_>>(), ["a"]);
        let other = Approval::Another {
            digest: first.clone(),
        };
        assert_eq!(book.approve("a", Some("0123"), 9), other);
        let approved = Approval::Approved {
            digest: first.clone(),
        };
        assert_eq!(book.approve("a", None, 9), approved);
        assert!(book.is_approved_by_person("a", &first));
        assert_eq!(book.unapproved().count(), 0);
        assert_eq!(book.approve("a", None, 9), Approval::Nothing);
        assert_eq!(book.approve("x", None, 9), Approval::Unknown);
        take(&mut book, &[("a", "2")], true);
        let digest = crate::pins::digest("2");
        assert_eq!(
            book.approve("a", Some("0123"), 9),
            Approval::Another {
                digest: digest.clone()
            }
        );
        assert_eq!(
            book.approve("a", digest.get(..8), 9),
            Approval::Approved { digest }
        );
        assert_eq!(standing(&book, "a", "2"), Standing::Approved);
        assert!(book.is_approved_by_person("a", &crate::pins::digest("2")));
        assert!(!book.is_approved_by_person("a", &first));
        assert_eq!(book.tools["a"].approved.as_ref().unwrap().time_ms, 9);
    }

    #[test]
    fn a_full_book_takes_no_more() {
        let names: Vec<String> = (0..TOOLS_MAX).map(|n| n.to_string()).collect();
        let tools: Vec<(&str, &str)> = names.iter().map(|n| (n.as_str(), "1")).collect();
        let mut book = Book::default();
        assert_eq!(take(&mut book, &tools, false), 0);
        assert_eq!(take(&mut book, &[("one too many", "1")], false), 1);
        let mut book = Book::default();
        let long = "x".repeat(DEFINITION_BYTES_MAX - 500);
        assert_eq!(
            take(&mut book, &[("a", &long), ("b", "1"), ("c", "1")], true),
            1
        );
        assert_eq!(standing(&book, "b", "1"), Standing::Approved);
        assert_eq!(standing(&book, "c", "1"), Standing::New);
        assert!(serde_json::to_string(&book).unwrap().len() < crate::pins::FILE_BYTES_MAX);
    }
}
