//! What a session learned of its server's tools, and which of them may not be shown or called.

use ahash::AHashMap as HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use gate::effects::Annotations;
use gate::names::{look, skeleton};
use gate::pins::{self, Page, PinOptions, Pins, Quarantine};

use crate::describe::{Defined, annotations_of};
use crate::descriptions::finding::{Event, Finding, quoted};
use crate::descriptions::listing::Listed;
use crate::descriptions::tree::Node;
use crate::descriptions::{self, Options, Screened, hidden};
use crate::message::method::List;

/// Most tools that a session remembers.
const TOOLS_MAX: usize = 10_000;
/// Room for entries that were screened before, in bytes; beyond it they are screened anew.
pub const MEMO_BYTES_MAX: usize = 4 * 1_024 * 1_024;

/// What was worked out about one entry of a list.
#[derive(Debug)]
pub struct Entry {
    /// What of it may be shown.
    pub screened: Screened,
    /// Its definition, where it is a tool: digest and canonical text.
    definition: Option<(Arc<str>, String)>,
    /// What it says of its effects.
    annotations: Annotations,
    /// What its name looks like, where it is a tool.
    looks: [String; 2],
}

#[derive(Debug)]
struct Known {
    digest: Arc<str>,
    /// What the definition says of its effects.
    annotations: Annotations,
    unseen_name: bool,
}

/// What was worked out before, by the text as it came. Sessions of one server may share it: the same
/// text means the same to each of them.
#[derive(Debug, Default)]
pub struct Memo(Mutex<Entries>);

#[derive(Debug, Default)]
struct Entries {
    by_list: HashMap<List, HashMap<String, Arc<Entry>>>,
    bytes: usize,
}

impl Memo {
    fn entries(&self) -> std::sync::MutexGuard<'_, Entries> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn get(&self, list: List, raw: &str) -> Option<Arc<Entry>> {
        let entries = self.entries();
        entries.by_list.get(&list)?.get(raw).cloned()
    }

    fn keep(&self, list: List, raw: &str, entry: &Arc<Entry>) {
        let mut entries = self.entries();
        let bytes = raw.len().saturating_mul(2);
        if entries.bytes.saturating_add(bytes) > MEMO_BYTES_MAX {
            *entries = Entries::default();
        }
        if bytes <= MEMO_BYTES_MAX {
            entries.bytes = entries.bytes.saturating_add(bytes);
            let of_list = entries.by_list.entry(list).or_default();
            of_list.insert(raw.to_owned(), Arc::clone(entry));
        }
    }
}

/// Definitions, pins and descriptions of one session.
#[derive(Debug)]
pub struct Definitions {
    options: Options,
    pins: Pins,
    tools: HashMap<String, Known>,
    memo: Arc<Memo>,
    /// Names of the list that is being read, by what they look like.
    looks: HashMap<String, String>,
    /// Pages of tools that were taken in.
    taken: u64,
}

impl Defined for Definitions {
    fn definition_digest(&self, tool: &str) -> Option<Arc<str>> {
        self.tools.get(tool).map(|known| Arc::clone(&known.digest))
    }

    fn quarantine(&self, tool: &str) -> Option<Quarantine> {
        let unseen = || self.tools.get(tool).is_some_and(|known| known.unseen_name);
        self.unseen_name(tool)
            .or_else(|| unseen().then_some(Quarantine::UnseenName))
            .or_else(|| self.pins.quarantine(tool))
    }

    fn unseen_name(&self, name: &str) -> Option<Quarantine> {
        (self.options.invisible && hidden::any(name)).then_some(Quarantine::UnseenName)
    }

    fn annotations(&self, tool: &str) -> Annotations {
        let Some(known) = self.tools.get(tool) else {
            return Annotations::default();
        };
        Annotations {
            approved: self.pins.is_approved_by_person(tool),
            ..known.annotations
        }
    }
}

impl Definitions {
    /// Begins with what is pinned for a server.
    #[must_use]
    pub fn new(options: Options, pins: &PinOptions, server: &str) -> Self {
        Self::sharing(options, pins, server, Arc::default())
    }

    /// As [`Definitions::new`], with what other sessions of the server have worked out.
    #[must_use]
    pub fn sharing(options: Options, pins: &PinOptions, server: &str, memo: Arc<Memo>) -> Self {
        Self {
            options,
            pins: Pins::open(pins, server),
            tools: HashMap::new(),
            memo,
            looks: HashMap::new(),
            taken: 0,
        }
    }

    /// What is done about descriptions.
    #[must_use]
    pub fn options(&self) -> &Options {
        &self.options
    }

    /// As [`Defined::quarantine`], after another look at the pins, which may have been approved
    /// meanwhile.
    pub fn quarantine_now(&mut self, tool: &str) -> Option<Quarantine> {
        self.pins.refresh();
        self.quarantine(tool)
    }

    /// What is wrong with the pins from the start.
    #[must_use]
    pub fn fault(&self) -> Option<Finding> {
        self.pins.fault().map(|error| Finding {
            reason: Some(error.fault().into()),
            ..Finding::new(Event::PinsFailed, error.to_string())
        })
    }

    /// Takes in one page of a list: gives what may be shown of each entry, in order, and what is to
    /// be told. `first` where the page was asked for without a cursor.
    pub fn take(
        &mut self,
        list: List,
        listed: &Listed<'_>,
        first: bool,
        now_ms: i64,
    ) -> (Vec<Arc<Entry>>, Vec<Finding>) {
        let entries: Vec<Arc<Entry>> = listed
            .entries
            .iter()
            .map(|entry| self.entry(list, entry.raw, &entry.label))
            .collect();
        let mut findings: Vec<Finding> = entries
            .iter()
            .flat_map(|entry| entry.screened.findings.iter().cloned())
            .collect();
        if list == List::Tools {
            self.taken += 1;
            if first {
                self.looks.clear();
            }
            let mut pinned = Vec::with_capacity(entries.len());
            for (row, entry) in listed.entries.iter().zip(&entries) {
                self.remember(&row.label, entry);
                findings.extend(self.confusable(&row.label, &entry.looks));
                if let Some((digest, text)) = &entry.definition {
                    pinned.push((row.label.as_str(), digest.as_ref(), text.as_str()));
                }
            }
            let page = Page {
                first,
                last: listed.is_last,
            };
            let observed = self.pins.observe(&pinned, page, now_ms);
            findings.extend(observed.into_iter().map(Finding::from));
        }
        (entries, findings)
    }

    /// How many pages of tools were taken in.
    #[must_use]
    pub fn taken(&self) -> u64 {
        self.taken
    }

    /// Whether taking in the same page once more would leave everything as it is: it was the last one, and it agreed with
    /// the pins as they are.
    #[must_use]
    pub fn would_stay(&self, taken: u64) -> bool {
        self.taken == taken && self.pins.would_agree()
    }

    fn remember(&mut self, tool: &str, entry: &Entry) {
        let Some((digest, _)) = &entry.definition else {
            return;
        };
        if self.tools.len() < TOOLS_MAX || self.tools.contains_key(tool) {
            let known = Known {
                digest: Arc::clone(digest),
                annotations: entry.annotations,
                unseen_name: entry.screened.unseen_name,
            };
            self.tools.insert(tool.to_owned(), known);
        }
    }

    /// A name that looks like another one of the same list.
    fn confusable(&mut self, name: &str, looks: &[String; 2]) -> Option<Finding> {
        let twin = looks.iter().find_map(|looks| {
            if let Some(other) = self.looks.get(looks) {
                return (other != name).then(|| other.clone());
            }
            if self.looks.len() < 2 * TOOLS_MAX {
                self.looks.insert(looks.clone(), name.to_owned());
            }
            None
        })?;
        let message = format!("tools {} and {} look alike", quoted(&twin), quoted(name));
        Some(Finding::new(Event::ConfusableName, message))
    }

    fn entry(&self, list: List, raw: &str, label: &str) -> Arc<Entry> {
        if let Some(known) = self.memo.get(list, raw) {
            return known;
        }
        let entry = Arc::new(self.work_out(list, raw, label));
        self.memo.keep(list, raw, &entry);
        entry
    }

    fn work_out(&self, list: List, raw: &str, label: &str) -> Entry {
        let Some(node) = Node::parse(raw) else {
            // The frame was scanned before anyone got here; what cannot be read is not shown.
            return Entry {
                screened: Screened {
                    unseen_name: true,
                    ..Screened::default()
                },
                definition: None,
                annotations: Annotations::default(),
                looks: [look(label), skeleton(label)],
            };
        };
        let of = format!("{} {}", list.noun(), quoted(label));
        let definition = (list == List::Tools).then(|| {
            let text = definition_text(&node);
            (Arc::from(pins::digest(&text)), text)
        });
        Entry {
            screened: descriptions::entry(raw, &node, &of, &self.options),
            annotations: annotations_of(raw),
            looks: [look(label), skeleton(label)],
            definition,
        }
    }

    /// The session ends.
    pub fn close(&mut self) {
        self.pins.close();
    }
}

/// What belongs to a tool's definition: all of it except `_meta`, which is no model's and which
/// servers fill with what changes by itself.
#[must_use]
pub fn definition_text(tool: &Node<'_>) -> String {
    match tool {
        Node::Object(members) => {
            let kept = members.iter().filter(|(name, _)| name != "_meta");
            Node::Object(kept.cloned().collect()).canonical()
        }
        Node::Array(_) | Node::String(_) | Node::Scalar(_) => tool.canonical(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::descriptions::listing;

    fn fresh() -> Definitions {
        let pins = PinOptions {
            mode: pins::PinMode::Off,
            ..PinOptions::default()
        };
        Definitions::new(Options::default(), &pins, "s")
    }

    fn take(definitions: &mut Definitions, list: List, result: &str) -> Vec<Finding> {
        let listed = listing::read(list, result).unwrap().unwrap();
        definitions.take(list, &listed, true, 0).1
    }

    fn tools(names: &[&str]) -> String {
        let tools: Vec<String> = names
            .iter()
            .map(|n| format!(r#"{{"name":"{n}"}}"#))
            .collect();
        format!(r#"{{"tools":[{}]}}"#, tools.join(","))
    }

    #[test]
    fn names_of_one_list_that_look_alike_are_found() {
        let cases: [(&[&str], bool); 8] = [
            (&["read_file", "write_file"], false),
            (&["read_file", "read_files"], false),
            (&["read_file", "readFile"], true),
            (&["read_file", "READ-FILE"], true),
            (&["read_file", "re\u{430}d_file"], true),
            (&["list", "1ist"], true),
            (&["modern", "rnodern"], true),
            (&["echo", "echo"], false),
        ];
        for (names, alike) in cases {
            let mut definitions = fresh();
            for _ in 0..2 {
                let found = take(&mut definitions, List::Tools, &tools(names));
                assert_eq!(
                    found.iter().any(|f| f.event == Event::ConfusableName),
                    alike,
                    "{names:?}"
                );
            }
        }
    }

    #[test]
    fn the_same_text_in_another_list_is_another_thing() {
        let mut definitions = fresh();
        take(
            &mut definitions,
            List::Prompts,
            r#"{"prompts":[{"name":"a"}]}"#,
        );
        assert_eq!(definitions.definition_digest("a"), None);
        take(&mut definitions, List::Tools, &tools(&["a"]));
        assert!(definitions.definition_digest("a").is_some());
    }

    #[test]
    fn a_digest_is_of_what_a_model_reads() {
        let digest = |tool: &str| {
            let mut definitions = fresh();
            take(
                &mut definitions,
                List::Tools,
                &format!(r#"{{"tools":[{tool}]}}"#),
            );
            definitions.definition_digest("a").unwrap()
        };
        let first = digest(r#"{"name":"a","title":"t","n":1}"#);
        assert_eq!(
            first,
            digest(r#"{ "n":1,"title":"\u0074","_meta":{"at":7},"name":"a"}"#)
        );
        for other in [
            r#"{"name":"a","title":"t","n":1.0}"#,
            r#"{"name":"a","title":"t\u200b","n":1}"#,
            r#"{"name":"a","title":"t","n":1,"icons":[]}"#,
        ] {
            assert_ne!(first, digest(other), "{other}");
        }
    }

    #[test]
    fn what_is_remembered_is_bounded() {
        let mut definitions = fresh();
        for n in 0..5 {
            let long = "x".repeat(MEMO_BYTES_MAX / 6);
            let list = format!(r#"{{"tools":[{{"name":"t{n}","description":"{long}"}}]}}"#);
            take(&mut definitions, List::Tools, &list);
            let bytes = definitions.memo.entries().bytes;
            assert!(bytes <= MEMO_BYTES_MAX, "{bytes}");
        }
        let huge = format!(
            r#"{{"tools":[{{"name":"huge","title":"{}"}}]}}"#,
            "x".repeat(MEMO_BYTES_MAX)
        );
        take(&mut definitions, List::Tools, &huge);
        assert!(definitions.memo.entries().bytes <= MEMO_BYTES_MAX);
        assert!(definitions.definition_digest("huge").is_some());
        let names: Vec<String> = (0..=TOOLS_MAX).map(|n| format!("n{n}")).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        take(&mut definitions, List::Tools, &tools(&names));
        assert_eq!(definitions.tools.len(), TOOLS_MAX);
    }
}
