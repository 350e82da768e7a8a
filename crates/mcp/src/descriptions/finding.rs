//! What is told of descriptions and definitions: a closed set of events, each a record of kind
//! `system` in the journal and a line on standard error.

use std::collections::HashSet;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use gate::Gate;
use gate::journal::{Component, Level, Record, System};
use gate::pins::Observation;
use gate::{ClosedSet, Explained, Label};

use crate::descriptions::hidden::spelled_out;

/// Most findings of one session that are told one by one.
pub const SAID_MAX: usize = 4_096;
/// Longest name that is told, in characters.
const NAME_CHARS_MAX: usize = 128;

/// What was found: a closed set.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Event {
    /// Characters that cannot be seen were taken out of a text.
    HiddenCharacters,
    /// A text holds a suspicious phrase; the message names which kind.
    Suspicious,
    /// A name holds characters that cannot be seen; the entry is not shown.
    UnseenName,
    /// Two tools of one list have names that look alike.
    ConfusableName,
    /// A tool declares a header against the rules; it is not shown where headers matter.
    HeaderUnfit,
    /// One list has two definitions of the same name.
    DefinitionTwice,
    /// A tool's definition is not the one that was approved.
    DefinitionChanged,
    /// A server that is known has a tool that it did not have.
    DefinitionNew,
    /// There is no room for more pins.
    PinsFull,
    /// Pins cannot be read or kept.
    PinsFailed,
    /// There was more to tell than is told.
    More,
}

impl Event {
    /// All, in the order of the reference page.
    pub const ALL: [Self; 11] = [
        Self::HiddenCharacters,
        Self::Suspicious,
        Self::UnseenName,
        Self::ConfusableName,
        Self::HeaderUnfit,
        Self::DefinitionTwice,
        Self::DefinitionChanged,
        Self::DefinitionNew,
        Self::PinsFull,
        Self::PinsFailed,
        Self::More,
    ];

    /// The label in the journal.
    #[must_use]
    pub fn label(self) -> &'static str {
        match self {
            Self::HiddenCharacters => "description_hidden_characters",
            Self::Suspicious => "description_suspicious",
            Self::UnseenName => "name_unseen",
            Self::ConfusableName => "tool_name_confusable",
            Self::HeaderUnfit => "tool_header_unfit",
            Self::DefinitionTwice => "tool_definition_twice",
            Self::DefinitionChanged => "tool_definition_changed",
            Self::DefinitionNew => "tool_definition_new",
            Self::PinsFull => "tool_pins_full",
            Self::PinsFailed => "tool_pins_failed",
            Self::More => "findings_left_out",
        }
    }

    /// What it means, in one sentence.
    #[must_use]
    pub fn sentence(self) -> &'static str {
        match self {
            Self::HiddenCharacters => {
                "invisible characters were removed from a text that a model reads"
            }
            Self::Suspicious => {
                "a text that a model reads has a suspicious phrase; it was not changed"
            }
            Self::UnseenName => "a name has invisible characters; its entry is not shown",
            Self::ConfusableName => "two tools of one list have names that look alike",
            Self::HeaderUnfit => {
                "a tool declares an invalid header (x-mcp-header); clients of revision 2026-07-28 over HTTP are not shown it"
            }
            Self::DefinitionTwice => "one list has two definitions of the same name",
            Self::DefinitionChanged => "a tool's definition is not the one that was approved",
            Self::DefinitionNew => "a server has a tool that it did not have before",
            Self::PinsFull => "there is no room for more pins of this server",
            Self::PinsFailed => "the pins of this server cannot be read or kept",
            Self::More => "one session had more findings than are recorded one by one",
        }
    }
}

impl ClosedSet for Event {
    const EVERY: &'static [Self] = &Self::ALL;

    fn word(self) -> &'static str {
        self.label()
    }
}

impl Explained for Event {
    fn sentence(self) -> &'static str {
        Self::sentence(self)
    }
}

/// One thing to tell.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Finding {
    /// What sort of thing.
    pub event: Event,
    /// In words, for people; texts of the server in it are spelled out.
    pub message: String,
    /// The tool, where it is about one.
    pub tool: Option<String>,
    /// Digest of the definition that the server lists.
    pub listed: Option<String>,
    /// Digest of the approved definition.
    pub approved: Option<String>,
    /// The closed label of an error.
    pub reason: Option<Label>,
}

impl Finding {
    /// A finding that is told in words only.
    #[must_use]
    pub fn new(event: Event, message: String) -> Self {
        Self {
            event,
            message,
            tool: None,
            listed: None,
            approved: None,
            reason: None,
        }
    }
}

/// A name of the server's for people: on one line, of a bounded length.
#[must_use]
pub fn quoted(name: &str) -> String {
    let shown: String = spelled_out(name).chars().take(NAME_CHARS_MAX).collect();
    format!("\"{shown}\"")
}

impl From<Observation> for Finding {
    fn from(observation: Observation) -> Self {
        match observation {
            Observation::Changed {
                tool,
                approved,
                listed,
            } => Self {
                tool: Some(tool.chars().take(NAME_CHARS_MAX).collect()),
                listed: Some(listed),
                approved: Some(approved),
                ..Self::new(
                    Event::DefinitionChanged,
                    format!(
                        "the definition of tool {} is not the one that was approved; see durward pins diff",
                        quoted(&tool)
                    ),
                )
            },
            Observation::New { tool, listed } => Self {
                tool: Some(tool.chars().take(NAME_CHARS_MAX).collect()),
                listed: Some(listed),
                ..Self::new(
                    Event::DefinitionNew,
                    format!(
                        "tool {} is new on this server; see durward pins diff",
                        quoted(&tool)
                    ),
                )
            },
            Observation::Twice { tool } => Self {
                tool: Some(tool.chars().take(NAME_CHARS_MAX).collect()),
                ..Self::new(
                    Event::DefinitionTwice,
                    format!("one list has two definitions of tool {}", quoted(&tool)),
                )
            },
            Observation::Full { left_out } => Self::new(
                Event::PinsFull,
                format!("there is no room to pin {left_out} more definitions of this server"),
            ),
            Observation::Failed { fault, message } => Self {
                reason: Some(fault.into()),
                ..Self::new(Event::PinsFailed, message)
            },
        }
    }
}

/// What a session has told already.
#[derive(Debug, Default)]
pub struct Told {
    said: HashSet<u64>,
}

impl Told {
    /// The finding, where it has not been told; one word about the rest where there are too many.
    fn fresh(&mut self, finding: Finding) -> Option<Finding> {
        let finding = if self.said.len() < SAID_MAX {
            finding
        } else {
            Finding::new(Event::More, Event::More.sentence().to_owned())
        };
        let mut hasher = DefaultHasher::new();
        finding.hash(&mut hasher);
        self.said.insert(hasher.finish()).then_some(finding)
    }

    /// Tells what has not been told: once in a session, and no more than [`SAID_MAX`] things.
    pub fn tell(
        &mut self,
        findings: Vec<Finding>,
        gate: &Gate,
        session_id: &str,
        backend_id: &str,
    ) {
        let fresh: Vec<Finding> = findings.into_iter().filter_map(|f| self.fresh(f)).collect();
        for finding in fresh {
            let event = finding.event.label();
            tracing::warn!(event, server = backend_id, "{}", finding.message);
            let record = System {
                level: Some(Level::Warning),
                component: Some(Component::Mcp),
                message: Some(&finding.message),
                reason: finding.reason,
                session_id: Some(session_id),
                backend_id: Some(backend_id),
                tool_name: finding.tool.as_deref(),
                definition_digest: finding.listed.as_deref(),
                approved_digest: finding.approved.as_deref(),
                ..System::of(finding.event)
            };
            // A journal that fails here fails the gate, which the session sees.
            drop(gate.record(&Record::System(&record)));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_thing_is_told_once_and_not_without_end() {
        let mut told = Told::default();
        let finding = |n: usize| Finding::new(Event::Suspicious, n.to_string());
        assert_eq!(told.fresh(finding(0)), Some(finding(0)));
        assert_eq!(told.fresh(finding(0)), None);
        let rest = (1..SAID_MAX + 50).filter_map(|n| told.fresh(finding(n)));
        let events: Vec<Event> = rest.map(|f| f.event).collect();
        assert_eq!(events.len(), SAID_MAX);
        assert_eq!(events.iter().filter(|e| **e == Event::More).count(), 1);
    }

    #[test]
    fn names_are_told_on_one_line_and_not_at_any_length() {
        assert_eq!(quoted("a\u{202e}\n"), "\"a\\u{202e}\\n\"");
        assert_eq!(quoted(&"x".repeat(500)).len(), NAME_CHARS_MAX + 2);
    }
}
