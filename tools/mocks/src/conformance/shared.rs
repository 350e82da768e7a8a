//! What all sessions of one conformance server have in common.

use std::collections::hash_map::RandomState;
use std::fmt::Write;
use std::hash::BuildHasher;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// The longest state that is opened, in characters.
const STATE_CHARS_MAX: usize = 64 * 1024;

/// What changes by tool calls, and the key that states are sealed with. A restart forgets both.
#[derive(Debug, Default)]
pub(super) struct SharedState {
    passing_tool: AtomicBool,
    passing_prompt: AtomicBool,
    resource_changes: AtomicU64,
    /// A keyed hash is seal enough for a fixture: nothing here is worth forging.
    key: RandomState,
}

/// State of a conversation, carried by the client between two requests.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct ConversationState {
    /// Which round's answers are awaited, from 0.
    pub(super) round: usize,
    /// The answers of the rounds before, a JSON object.
    pub(super) answers: String,
}

impl SharedState {
    pub(super) fn has_passing_tool(&self) -> bool {
        self.passing_tool.load(Ordering::Relaxed)
    }

    pub(super) fn has_passing_prompt(&self) -> bool {
        self.passing_prompt.load(Ordering::Relaxed)
    }

    pub(super) fn resource_changes(&self) -> u64 {
        self.resource_changes.load(Ordering::Relaxed)
    }

    pub(super) fn change_tools(&self) {
        self.passing_tool.fetch_xor(true, Ordering::Relaxed);
    }

    pub(super) fn change_prompts(&self) {
        self.passing_prompt.fetch_xor(true, Ordering::Relaxed);
    }

    pub(super) fn change_resource(&self) {
        self.resource_changes.fetch_add(1, Ordering::Relaxed);
    }

    fn mac(&self, name: &str, state: &ConversationState) -> u64 {
        self.key
            .hash_one((name, state.round, state.answers.as_str()))
    }

    /// Returns the state of a conversation with the tool or prompt `name`, as text that no client can change.
    pub(super) fn seal(&self, name: &str, state: &ConversationState) -> String {
        let mut text = format!("{}-{:016x}-", state.round, self.mac(name, state));
        for byte in state.answers.bytes() {
            // Writing to a string cannot fail.
            let _ = write!(text, "{byte:02x}");
        }
        text
    }

    /// Returns the state, if this server sealed it for `name`.
    pub(super) fn open(&self, name: &str, sealed: &str) -> Option<ConversationState> {
        if sealed.len() > STATE_CHARS_MAX {
            return None;
        }
        let mut parts = sealed.splitn(3, '-');
        let (round, mac, answers) = (parts.next()?, parts.next()?, parts.next()?);
        let state = ConversationState {
            round: round.parse().ok()?,
            answers: unhex(answers)?,
        };
        let mac = u64::from_str_radix(mac, 16).ok()?;
        (mac == self.mac(name, &state)).then_some(state)
    }
}

fn unhex(text: &str) -> Option<String> {
    let digits = text.as_bytes();
    if !digits.len().is_multiple_of(2) {
        return None;
    }
    let bytes: Option<Vec<u8>> = digits
        .chunks_exact(2)
        .map(|pair| {
            let pair = std::str::from_utf8(pair).ok()?;
            u8::from_str_radix(pair, 16).ok()
        })
        .collect();
    String::from_utf8(bytes?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_its_own_states_open_and_only_for_their_tool() {
        let (shared, other) = (SharedState::default(), SharedState::default());
        let state = ConversationState {
            round: 1,
            answers: r#"{"name":"Zoë"}"#.into(),
        };
        let sealed = shared.seal("tool", &state);
        assert_eq!(shared.open("tool", &sealed), Some(state));
        assert_eq!(shared.open("another", &sealed), None);
        assert_eq!(other.open("tool", &sealed), None);
        for damaged in [
            format!("{sealed}-TAMPERED"),
            sealed.replacen('1', "0", 1),
            format!("{sealed}00"),
            format!("{sealed}0"),
            String::new(),
            "x".repeat(STATE_CHARS_MAX + 1),
        ] {
            assert_eq!(shared.open("tool", &damaged), None, "{damaged}");
        }
    }
}
