//! Cache of answers to `initialize`: sessions that only open are answered from it and start no process of their own.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use serde_json::Value;
use tokio::sync::Mutex as AsyncMutex;
use wire::jsonrpc::member;
use wire::{Bounds, scan_request};

use super::link::Link;

/// Most kinds of clients that answers of one server are kept for.
const CLIENT_KINDS_MAX: usize = 16;
/// Longest answer that is kept, in bytes.
const RESULT_BYTES_MAX: usize = 64 * 1024;

/// Answers of one server, by what a client says that the answer depends on.
#[derive(Default)]
pub(super) struct HandshakeCache {
    /// The one used last is at the end.
    answers: Mutex<Vec<(Negotiation, Arc<AsyncMutex<Handshake>>)>>,
}

/// Revision and capabilities that a client offers, as it spells them.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Negotiation {
    revision: Box<str>,
    capabilities: Box<str>,
}

/// The latest answer to clients of one kind. Its lock is held while a server is being asked, so that clients that arrive
/// together start one process.
#[derive(Debug, Default)]
pub(super) struct Handshake {
    answer: Option<(Weak<Link>, String)>,
    /// The server's answers name their client, so that each client gets its own.
    names_client: bool,
}

impl Handshake {
    /// Returns the result of the answer while the process that gave it runs.
    pub fn result(&self) -> Option<&str> {
        let (link, result) = self.answer.as_ref()?;
        let is_running = link.upgrade().is_some_and(|link| !link.has_ended());
        is_running.then_some(result)
    }

    /// Returns whether each client has to ask the server itself, at the same time as others.
    pub fn names_client(&self) -> bool {
        self.names_client
    }

    /// Keeps the result that a process has answered an `initialize` with, unless it is long or repeats what only this client
    /// has said of itself: other clients must not see that.
    pub fn keep(&mut self, link: &Arc<Link>, initialize: &[u8], result: &str) {
        self.names_client = repeats_client(initialize, result);
        if result.len() <= RESULT_BYTES_MAX && !self.names_client {
            self.answer = Some((Arc::downgrade(link), result.to_owned()));
        }
    }
}

impl HandshakeCache {
    /// Returns the answer to clients that offer what this `initialize` does; `None` if the frame cannot be read.
    pub fn of_client(&self, initialize: &[u8]) -> Option<Arc<AsyncMutex<Handshake>>> {
        let negotiation = Negotiation::read(initialize)?;
        let mut answers = self.answers.lock().unwrap_or_else(PoisonError::into_inner);
        let known = answers.iter().position(|(known, _)| *known == negotiation);
        let entry = match known {
            Some(at) => answers.remove(at),
            None => {
                if answers.len() >= CLIENT_KINDS_MAX {
                    answers.remove(0);
                }
                (negotiation, Arc::default())
            }
        };
        let handshake = Arc::clone(&entry.1);
        answers.push(entry);
        Some(handshake)
    }
}

impl Negotiation {
    fn read(initialize: &[u8]) -> Option<Self> {
        let scan = scan_request(initialize, &Bounds::default()).ok()?;
        let text = |name| member(&scan.params, name).unwrap_or_default();
        let (revision, capabilities) = (text("protocolVersion"), text("capabilities"));
        let is_short = revision.len() + capabilities.len() <= RESULT_BYTES_MAX;
        is_short.then(|| Self {
            revision: revision.into(),
            capabilities: capabilities.into(),
        })
    }
}

/// Returns whether a string of the result contains, as words of its own, a string of the client's `clientInfo`, its version
/// apart. An `initialize` or a result that cannot be read counts as such.
fn repeats_client(initialize: &[u8], result: &str) -> bool {
    let read = || {
        let scan = scan_request(initialize, &Bounds::default()).ok()?;
        let client = member(&scan.params, "clientInfo").unwrap_or("null");
        let client: Value = serde_json::from_str(client).ok()?;
        let result: Value = serde_json::from_str(result).ok()?;
        Some((client, result))
    };
    let Some((client, result)) = read() else {
        return true;
    };
    let members = client.as_object().into_iter().flatten();
    let members = members.filter(|(name, _)| *name != "version");
    let own: Vec<&str> = members
        .flat_map(|(_, value)| strings(value))
        .filter(|text| !text.is_empty())
        .collect();
    let of_result = strings(&result);
    let is_repeated = |text: &&str| of_result.iter().any(|said| has_words(said, text));
    own.iter().any(is_repeated)
}

/// Returns whether `text` contains `words` with no letter or digit right before or behind it.
fn has_words(text: &str, words: &str) -> bool {
    text.match_indices(words).any(|(at, found)| {
        let before = text.get(..at).and_then(|before| before.chars().next_back());
        let behind = text
            .get(at + found.len()..)
            .and_then(|behind| behind.chars().next());
        let is_open = |c: Option<char>| c.is_none_or(|c| !c.is_alphanumeric());
        is_open(before) && is_open(behind)
    })
}

/// Returns the names of members and the strings of a value.
fn strings(value: &Value) -> Vec<&str> {
    let (mut found, mut open) = (Vec::new(), vec![value]);
    while let Some(value) = open.pop() {
        match value {
            Value::String(text) => found.push(text.as_str()),
            Value::Array(items) => open.extend(items),
            Value::Object(members) => {
                found.extend(members.keys().map(String::as_str));
                open.extend(members.values());
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }
    found
}

impl fmt::Debug for HandshakeCache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HandshakeCache").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_that_repeats_its_client_is_for_that_client_alone() {
        let initialize = br#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25",
            "capabilities":{},"clientInfo":{"name":"ada's desk","title":"","version":"1"}}}"#;
        let repeats = |result: &str| repeats_client(initialize, result);
        assert!(!repeats(
            r#"{"serverInfo":{"name":"echo","version":"1"},"capabilities":{"tools":{}}}"#
        ));
        assert!(repeats(r#"{"instructions":"Welcome, ada\u0027s desk!"}"#));
        assert!(repeats(r#"{"_meta":{"of ada's desk":1}}"#));
        assert!(!repeats(r#"{"serverInfo":{"name":"ada's desks"}}"#));
        assert!(repeats("no JSON"));
        assert!(repeats_client(b"no JSON", "{}"));
    }
}
