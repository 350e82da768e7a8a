//! A question as a person sees it. All text in it is safe to show: see [`super::display`].

use std::borrow::Cow;
use std::cell::Cell;
use std::fmt;

use serde::Serialize;

use crate::channel::Channel;
use crate::facts::Facts;
use crate::journal::format_utc;
use crate::paths::{PathView, Role};

use super::change::{self, Seen};
use super::display;
use super::grants::Binding;

/// Longest name, path or URI that is shown, in characters.
const NAME_CHARS_MAX: usize = 1_000;

/// What a request shows of itself to the person who is asked about it.
pub trait Shown {
    /// The arguments as raw JSON, exactly as they would be sent; `None` where there are none.
    fn arguments(&self) -> Option<Cow<'_, str>>;

    /// The file system of the side that will carry it out, where that can be looked at.
    fn view(&self) -> Option<&dyn PathView> {
        None
    }

    /// Looks up what the arguments do not say. Called where a person is about to be asked; it changes nothing and has
    /// an end of its own.
    fn look(&mut self) -> impl Future<Output = ()> + Send {
        std::future::ready(())
    }

    /// The file that would be written, where that was looked up.
    fn seen(&self) -> Option<&Seen> {
        None
    }

    /// What it takes while it waits, about, in bytes.
    fn weight(&self) -> usize;
}

impl Shown for () {
    fn arguments(&self) -> Option<Cow<'_, str>> {
        None
    }

    fn weight(&self) -> usize {
        0
    }
}

/// The name of a question: eight letters and digits, unique among the questions of this instance and, as
/// good as certainly, among those of all.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Id(pub(super) u64);

/// Letters and digits that are not mistaken for each other.
const ALPHABET: &[u8; 32] = b"0123456789abcdefghjkmnpqrstvwxyz";
/// Bits of a name.
pub(super) const ID_BITS: u32 = 40;

impl fmt::Display for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for place in (0..ID_BITS / 5).rev() {
            let at = (self.0 >> (5 * place)) & 31;
            let letter = usize::try_from(at)
                .ok()
                .and_then(|at| ALPHABET.get(at))
                .copied()
                .unwrap_or(b'0');
            write!(f, "{}", letter as char)?;
        }
        Ok(())
    }
}

/// What the gate knows when it asks.
pub(crate) struct Asking<'a> {
    pub facts: &'a Facts,
    pub request_id: &'a str,
    pub session_id: &'a str,
    pub client_id: Option<&'a str>,
    pub arguments: Option<Cow<'a, str>>,
    pub rule: &'a str,
    pub description: Option<&'a str>,
    pub side_effects: &'a [&'static str],
    pub approvers: &'a [Channel],
    /// The calls that gave the caller's session its labels.
    pub labelled_by: Vec<String>,
    /// The file system of the side that will carry it out.
    pub view: Option<&'a dyn PathView>,
    /// The file that would be written, where its server has looked it up.
    pub seen: Option<&'a Seen>,
    /// Set where a yes may be remembered.
    pub binding: Option<Binding>,
    pub created_ms: i64,
    /// Set where the question takes the place of one that became void.
    pub deadline_ns: Option<u64>,
    /// What the call takes while it waits, in bytes.
    pub weight: usize,
}

/// A call that waits for a person, as every channel shows it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Question {
    /// Its name.
    pub id: String,
    /// `to_server`, or `to_client` where a server asks something of the client.
    pub direction: &'static str,
    /// The protocol's method.
    pub mcp_method: String,
    /// The tool.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool_name: Option<String>,
    /// The resource's URI.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub uri: Option<String>,
    /// The first path, where it may lead.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// The first source.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source_path: Option<String>,
    /// The first destination.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dest_path: Option<String>,
    /// How many further places the call's paths may lead to.
    pub more_places: usize,
    /// The arguments on one line, cut where they are long; what is missing is said in them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub arguments: Option<String>,
    /// What would change in a file, line by line: for channels of the machine's own user alone, since a caller
    /// may not be allowed to read the file.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub change: Vec<String>,
    /// Whether something of the call is too long to be shown: a yes has to say that it knows.
    pub is_cut: bool,
    /// What the tool is known to do to the world.
    pub side_effects: Vec<&'static str>,
    /// The server.
    pub backend_id: String,
    /// Who calls.
    pub subject_id: String,
    /// The client program, as it names itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub client_id: Option<String>,
    /// The client's own id of the request.
    pub request_id: String,
    /// The session.
    pub session_id: String,
    /// The rule that asks.
    pub rule: String,
    /// What that rule says of itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// The calls that gave the caller's session its labels.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub labelled_by: Vec<String>,
    /// Who may answer.
    pub approvers: Vec<Channel>,
    /// Whether *allow* will be remembered.
    pub can_cache: bool,
    /// For how long, in seconds.
    pub cache_ttl_seconds: u64,
    /// When it was asked, UTC.
    pub created_at: String,
    /// How long it waits in all, in seconds.
    pub timeout_seconds: u64,
    /// How long it still waits, in milliseconds: as of the moment when it was listed.
    pub remaining_ms: u64,
}

impl Question {
    pub(super) fn new(id: Id, asking: &Asking<'_>, timeout_ms: u64, remember_ms: u64) -> Self {
        let cut = Cell::new(false);
        let name = |text: &str| {
            cut.set(cut.get() || display::is_cut(text, NAME_CHARS_MAX));
            display::text(text, NAME_CHARS_MAX)
        };
        let raw = asking.arguments.as_deref();
        let change = raw.and_then(|raw| change::of(asking.facts, raw, asking.view, asking.seen));
        let change = change.unwrap_or_default();
        let arguments = raw.map(display::arguments);
        cut.set(change.is_cut || arguments.as_ref().is_some_and(|(_, is_cut)| *is_cut));
        let arguments = arguments.map(|(shown, _)| shown);
        let facts = asking.facts;
        let paths = facts.paths.known().map(Vec::as_slice).unwrap_or_default();
        let first = |role: Role| {
            paths
                .iter()
                .find(|a| a.role == role && !a.content)
                .and_then(|a| a.meaning.places.first())
        };
        let (path, source, dest) = (
            first(Role::Path).or_else(|| first(Role::Shape)),
            first(Role::Source),
            first(Role::Destination),
        );
        let shown = [path, source, dest].iter().flatten().count();
        let places: usize = paths
            .iter()
            .filter(|a| !a.content)
            .map(|a| a.meaning.places.len())
            .sum();
        let mut question = Self {
            id: id.to_string(),
            direction: facts.direction.label(),
            mcp_method: name(&facts.method),
            tool_name: facts.tool_name.known().map(|t| name(t)),
            uri: facts.uri.known().map(|u| name(u)),
            path: path.map(|p| name(p)),
            source_path: source.map(|p| name(p)),
            dest_path: dest.map(|p| name(p)),
            more_places: places.saturating_sub(shown),
            arguments,
            change: change.lines,
            is_cut: false,
            side_effects: asking.side_effects.to_vec(),
            backend_id: name(&facts.backend_id),
            subject_id: name(&facts.subject_id),
            client_id: asking.client_id.map(name),
            request_id: name(asking.request_id),
            session_id: name(asking.session_id),
            rule: name(asking.rule),
            description: asking.description.map(name),
            labelled_by: asking.labelled_by.iter().map(|by| name(by)).collect(),
            approvers: asking.approvers.to_vec(),
            can_cache: asking.binding.is_some() && remember_ms > 0,
            cache_ttl_seconds: if asking.binding.is_some() {
                remember_ms / 1_000
            } else {
                0
            },
            created_at: format_utc(asking.created_ms),
            timeout_seconds: timeout_ms / 1_000,
            remaining_ms: timeout_ms,
        };
        question.is_cut = cut.get();
        question
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_have_eight_letters() {
        assert_eq!(Id(0).to_string(), "00000000");
        assert_eq!(Id((1 << ID_BITS) - 1).to_string(), "zzzzzzzz");
        assert_eq!(Id(33).to_string(), "00000011");
    }
}
