//! The table of conditions: one row for each. Reading, judging, explaining, the linter and the
//! reference page go by it.

use std::sync::Arc;

use super::document::{Document, Entry, PolicyError};
use super::glob::is_literal;
use super::matcher::{Matcher, Part};
use super::when::When;
use crate::effects;
use crate::facts::{FactId, Operation, ResourceType};
use crate::labels::Label;

/// One row of the table.
#[derive(Debug, Clone, Copy)]
pub struct ConditionDef {
    /// Its name in a policy file.
    pub key: &'static str,
    /// Another name that it has there.
    pub also: Option<&'static str>,
    /// The fact that it looks at; an expression looks at any.
    pub fact: Option<FactId>,
    /// How the fact is compared.
    pub matcher: Matcher,
    /// What it asks, for the reference page.
    pub about: &'static str,
}

const fn row(
    key: &'static str,
    fact: FactId,
    matcher: Matcher,
    about: &'static str,
) -> ConditionDef {
    ConditionDef {
        key,
        also: None,
        fact: Some(fact),
        matcher,
        about,
    }
}

/// The conditions, in the order in which they are held against a call: cheap ones first.
pub static CONDITIONS: &[ConditionDef] = &[
    row(
        "tool_name",
        FactId::ToolName,
        Matcher::Name { fold: true },
        "shell globs over the tool's own name, ignoring case",
    ),
    row(
        "subject_id",
        FactId::SubjectId,
        Matcher::Exact,
        "callers, compared literally",
    ),
    row(
        "subject_group",
        FactId::SubjectGroups,
        Matcher::AnyOf(None),
        "groups, one of which the caller belongs to",
    ),
    row(
        "issuer",
        FactId::SubjectIssuer,
        Matcher::Exact,
        "issuers that the caller has signed in at, compared literally; a key, an account and the local user have none",
    ),
    row(
        "scope",
        FactId::Scopes,
        Matcher::AnyOf(None),
        "scopes, one of which the caller's access token has",
    ),
    row(
        "agent",
        FactId::Agent,
        Matcher::Name { fold: false },
        "shell globs over the name of the agent that calls on the caller's behalf; a call of the caller's own client has none",
    ),
    row(
        "resource_type",
        FactId::ResourceType,
        Matcher::Word("resource type", ResourceType::labels),
        "kinds of thing",
    ),
    row(
        "operations",
        FactId::Operation,
        Matcher::Word("operation", Operation::labels),
        "what the call does: an allow rule has to list all of it; a tool that nothing is known of may do anything",
    ),
    row(
        "side_effects",
        FactId::SideEffects,
        Matcher::AnyOf(Some(("side effect", effects::labels))),
        "side effects, any of which the call has; one whose side effects are not known may have any",
    ),
    row(
        "reads_only",
        FactId::ReadsOnly,
        Matcher::Word("answer", crate::facts::reads_only_words),
        "whether the call is known to read files or the like and to do nothing else",
    ),
    row(
        "session_labels",
        FactId::SessionLabels,
        Matcher::AnyOf(Some(("label", Label::asked))),
        "labels that earlier results have given the caller's session, one of which it has",
    ),
    row(
        "sends_outward",
        FactId::SendsOutward,
        Matcher::Word("answer", crate::facts::reads_only_words),
        "whether the call may send something beyond this machine",
    ),
    ConditionDef {
        also: Some("method"),
        ..row(
            "mcp_method",
            FactId::Method,
            Matcher::Name { fold: false },
            "shell globs over the protocol's method",
        )
    },
    row(
        "backend_id",
        FactId::BackendId,
        Matcher::Name { fold: true },
        "shell globs over the server's name, ignoring case",
    ),
    row(
        "host",
        FactId::Host,
        Matcher::Host,
        "shell globs over the machine that the call reaches, by its configured name, or over the hosts of the call's URLs, ignoring case",
    ),
    row(
        "address_class",
        FactId::UrlAddressClass,
        Matcher::AddressClass,
        "classes of the addresses that the call's URLs lead to: loopback, private, link_local, metadata, public, or name for a host that only DNS resolves",
    ),
    row(
        "url_pattern",
        FactId::Urls,
        Matcher::Url,
        "patterns SCHEME://HOST[:PORT]/PATH over the call's URLs, in whatever way they are spelled; without a port that of the scheme, query and fragment are not compared",
    ),
    row(
        "program",
        FactId::Program,
        Matcher::Name { fold: false },
        "shell globs over the program that a command runs, as written",
    ),
    row(
        "operands",
        FactId::Operands,
        Matcher::AnyOf(None),
        "words, one of which is an operand of the command",
    ),
    row(
        "argv",
        FactId::Argv,
        Matcher::Form,
        "forms of commands, one of which the whole command has",
    ),
    row(
        "model",
        FactId::Model,
        Matcher::Name { fold: true },
        "shell globs over the names of a model, ignoring case: as the caller wrote it, PROVIDER/MODEL, the provider's own",
    ),
    row(
        "provider",
        FactId::Provider,
        Matcher::Name { fold: true },
        "shell globs over the model provider's name, ignoring case",
    ),
    row(
        "path_pattern",
        FactId::Paths,
        Matcher::Path(Part::Any),
        "path globs over every path-like argument",
    ),
    row(
        "extension",
        FactId::Paths,
        Matcher::Extension,
        "extensions of paths, with their dot",
    ),
    row(
        "source_path",
        FactId::SourcePath,
        Matcher::Path(Part::Source),
        "path globs over the sources",
    ),
    row(
        "dest_path",
        FactId::DestPath,
        Matcher::Path(Part::Destination),
        "path globs over the destinations",
    ),
    row("scheme", FactId::Scheme, Matcher::Scheme, "URI schemes"),
    ConditionDef {
        key: WHEN,
        also: None,
        fact: None,
        matcher: Matcher::Expression,
        about: "an expression in CEL",
    },
];

/// The condition that is an expression.
pub(super) const WHEN: &str = "when";

impl ConditionDef {
    /// The condition of this name.
    #[must_use]
    pub fn named(name: &str) -> Option<&'static Self> {
        CONDITIONS
            .iter()
            .find(|row| row.key == name || row.also == Some(name))
    }
}

/// What a rule asks of a call: all of these. AND across, OR inside a list; an empty list never matches.
#[derive(Debug, Clone, Default)]
pub struct Conditions {
    /// In the order of the table.
    asked: Vec<Asked>,
}

/// One condition as a rule asks it.
#[derive(Debug, Clone)]
pub struct Asked {
    /// Its row.
    pub row: &'static ConditionDef,
    /// What is asked for, as written.
    pub texts: Vec<String>,
    /// Compiled, where it is an expression.
    pub(super) when: Option<Arc<When>>,
}

impl Conditions {
    /// Reads the conditions of a rule.
    pub(super) fn read<'a>(doc: Document<'a>, entry: &Entry<'a>) -> Result<Self, PolicyError> {
        let entries = doc.entries(entry.value.get())?;
        if entries.is_empty() {
            return Err(doc.error(
                entry.value.get(),
                "the rule has no condition",
                Some("to match every tool write \"tool_name\": \"*\"".into()),
            ));
        }
        let mut asked: Vec<Asked> = Vec::with_capacity(entries.len());
        for entry in entries {
            let Some(row) = ConditionDef::named(&entry.name) else {
                let names: Vec<&str> = CONDITIONS.iter().map(|row| row.key).collect();
                return Err(doc.unknown(&entry, "condition", &names));
            };
            if asked.iter().any(|other| std::ptr::eq(other.row, row)) {
                let message = format!("{} is asked for twice, under both of its names", row.key);
                let hint = "write one list".to_owned();
                return Err(doc.error(entry.value.get(), message, Some(hint)));
            }
            let (texts, when) = row.matcher.read(doc, &entry)?;
            asked.push(Asked { row, texts, when });
        }
        let place = |asked: &Asked| {
            CONDITIONS
                .iter()
                .position(|row| std::ptr::eq(row, asked.row))
        };
        asked.sort_by_key(place);
        Ok(Self { asked })
    }

    /// What is asked, in the order of [`CONDITIONS`].
    #[must_use]
    pub fn all(&self) -> &[Asked] {
        &self.asked
    }

    /// How many conditions are asked.
    #[must_use]
    pub fn count(&self) -> usize {
        self.asked.len()
    }

    /// Whether the condition of this key is asked.
    #[must_use]
    pub fn asks(&self, key: &str) -> bool {
        self.list(key).is_some()
    }

    /// What the condition of this key asks for, as written; `None` where it is not asked.
    #[must_use]
    pub fn list(&self, key: &str) -> Option<&[String]> {
        let asked = self.asked.iter().find(|asked| asked.row.key == key);
        asked.map(|asked| asked.texts.as_slice())
    }

    /// How specific the rule is: 100 per condition, +10 per glob condition without a wildcard, +1
    /// per path segment before the first wildcard. It only picks which rule is named.
    #[must_use]
    pub fn specificity(&self) -> usize {
        let one = |asked: &Asked| match asked.row.matcher {
            Matcher::Name { .. } => 10 * literal(&asked.texts),
            Matcher::Host => 10 * literal(&asked.texts),
            Matcher::Path(_) | Matcher::Url => {
                let segments = asked
                    .texts
                    .iter()
                    .map(|text| segments_before_wildcard(text));
                10 * literal(&asked.texts) + segments.max().unwrap_or(0)
            }
            Matcher::Exact
            | Matcher::Word(..)
            | Matcher::AnyOf(_)
            | Matcher::Form
            | Matcher::Extension
            | Matcher::Scheme
            | Matcher::AddressClass
            | Matcher::Expression => 0,
        };
        self.asked.iter().map(|asked| 100 + one(asked)).sum()
    }
}

fn literal(globs: &[String]) -> usize {
    usize::from(globs.iter().all(|glob| is_literal(glob)))
}

fn segments_before_wildcard(pattern: &str) -> usize {
    pattern
        .split('/')
        .filter(|s| !s.is_empty())
        .take_while(|s| is_literal(s))
        .count()
}
