//! What a decision record keeps of a call's paths and of the facts that few calls have: enough to hold
//! another policy against it, nothing of what stood in contents.

use crate::facts::{Class, Fact, Facts, scheme_of};
use crate::journal::{RecordedFact, RecordedPath};
use crate::paths::{Meaning, PathArgument};

/// Most path arguments that one record holds.
const ARGUMENTS_MAX: usize = 64;
/// Most bytes of places that one record holds, all its path arguments together, as they are written.
const PLACES_BYTES_MAX: usize = 16 * 1024;

/// A path argument on its way into a record.
pub(super) struct PathFact<'f> {
    argument: &'f PathArgument,
    scheme: Option<String>,
}

impl PathFact<'_> {
    /// As the record takes it.
    pub fn borrowed(&self) -> RecordedPath<'_> {
        RecordedPath {
            role: self.argument.role.label(),
            places: &self.argument.meaning.places,
            parts: &self.argument.meaning.parts,
            uncertain: self.argument.meaning.uncertain,
            ambiguous: self.argument.meaning.ambiguous,
            scheme: self.scheme.as_deref(),
        }
    }
}

/// The path arguments that find room, whole ones only, and how many do not.
pub(super) fn recorded(facts: &Facts) -> (Vec<PathFact<'_>>, u64) {
    let (mut out, mut omitted, mut room_bytes) = (Vec::new(), 0_u64, PLACES_BYTES_MAX);
    for argument in facts.paths.known().into_iter().flatten() {
        if argument.content {
            continue;
        }
        let Meaning { places, parts, .. } = &argument.meaning;
        let texts = places.iter().chain(parts);
        let bytes: usize = texts.map(|text| written_bytes(text)).sum();
        match room_bytes.checked_sub(bytes) {
            Some(left) if out.len() < ARGUMENTS_MAX => {
                room_bytes = left;
                out.push(PathFact {
                    argument,
                    scheme: scheme_of(&argument.text),
                });
            }
            _ => omitted = omitted.saturating_add(1),
        }
    }
    (out, omitted)
}

/// How long a text is as JSON, at most.
fn written_bytes(text: &str) -> usize {
    let escaped = text.bytes().filter(|byte| *byte < 0x20).count();
    let signs = text.bytes().filter(|byte| matches!(byte, b'"' | b'\\'));
    text.len() + 5 * escaped + signs.count()
}

/// How many path-like strings stand in contents; `None` where the arguments are not known.
pub(super) fn contents(facts: &Facts) -> Option<u64> {
    match &facts.paths {
        Fact::Known(paths) => {
            let in_contents = paths.iter().filter(|argument| argument.content).count();
            // Of a URL nothing is recorded that a rule about it could be judged by.
            let reached = facts
                .reach
                .count()
                .max(usize::from(!facts.reach.urls.is_empty()));
            u64::try_from(in_contents + reached).ok()
        }
        Fact::Unknown | Fact::Absent => None,
    }
}

/// The names of such facts that nobody knew.
pub(super) fn unknown(facts: &Facts) -> impl Iterator<Item = &'static str> {
    let kept = facts.kept_beside();
    kept.filter(|(_, value)| *value == Fact::Unknown)
        .map(|(row, _)| row.on_disk())
}

/// The facts that have no member of their own in a record. Those of another class than *plain* are left
/// out: they have a digest where one is wanted, and else nothing.
pub(super) fn more(facts: &Facts) -> impl Iterator<Item = RecordedFact<'_>> {
    facts
        .kept_beside()
        .filter_map(|(row, value)| match (row.class, value) {
            (Class::Plain, Fact::Known(value)) => Some(RecordedFact {
                name: row.on_disk(),
                value,
            }),
            (Class::Plain, Fact::Unknown | Fact::Absent) | (Class::Digest | Class::Never, _) => {
                None
            }
        })
}
