//! Frames that two readers may read in two ways.
//!
//! Each frame is made of a harmless call and, hidden in it, of what a gate must not let pass: a second
//! tool, a second path, a second message. Some readers see the one, some the other. About half of
//! the frames hide nothing and are only spelled in unusual ways: they must go through.
//!
//! The same seed gives the same frames, so that a difference can be looked at again.

mod arguments;
mod dress;
mod forms;
mod random;

pub use arguments::ArgumentStream;
pub use forms::HiddenCall;
use forms::{FORMS, Form};
pub use random::SeededRandom;

/// One frame: a line without its newline.
#[derive(Debug, Clone)]
pub struct AmbiguousFrame {
    /// Its number; the id of its call, and part of its paths.
    pub number: u64,
    /// The name of its form.
    pub form: &'static str,
    /// The frame. It may hold any byte, a newline too.
    pub bytes: Vec<u8>,
}

impl AmbiguousFrame {
    /// Returns the same call for one of several servers behind one client.
    #[must_use]
    pub fn of_server(self, name: &str) -> Self {
        let bytes = spell_frame(self.bytes, name, usize::MAX);
        Self { bytes, ..self }
    }
}

/// What `_meta` must hold in every request of the revision 2026-07-28.
pub const MODERN_META: &str = r#""io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"differential","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}"#;

/// Returns the frame as a client of 2026-07-28 sends it: with [`MODERN_META`] in its `params`.
fn modern(bytes: Vec<u8>) -> Vec<u8> {
    let Ok(text) = std::str::from_utf8(&bytes) else {
        return bytes;
    };
    let meta = "\"_meta\":{";
    if text.contains(meta) {
        text.replace(meta, &format!("{meta}{MODERN_META},"))
    } else {
        let params = "\"params\":{";
        text.replace(params, &format!("{params}{meta}{MODERN_META}}},"))
    }
    .into_bytes()
}

/// Returns the frame with the server's name before the names of so many tools.
fn spell_frame(bytes: Vec<u8>, server: &str, most: usize) -> Vec<u8> {
    let Ok(text) = std::str::from_utf8(&bytes) else {
        return bytes;
    };
    let name = "\"name\":\"";
    text.replacen(name, &format!("{name}{server}__"), most)
        .into_bytes()
}

/// An endless stream of frames.
#[derive(Debug)]
pub struct FrameStream {
    random: SeededRandom,
    number: u64,
    is_modern: bool,
    /// The server that prefixes the names of its tools.
    server: Option<&'static str>,
}

impl FrameStream {
    /// Returns the stream of this seed; ids begin at 1000.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self {
            random: SeededRandom::new(seed),
            number: 1000,
            is_modern: false,
            server: None,
        }
    }

    /// Returns the same frames for one of several servers behind one client: what names the server is not always there.
    #[must_use]
    pub fn of_server(self, name: &'static str) -> Self {
        Self {
            server: Some(name),
            ..self
        }
    }

    /// Returns the same frames, as a client of 2026-07-28 sends them.
    #[must_use]
    pub fn modern(self) -> Self {
        Self {
            is_modern: true,
            ..self
        }
    }

    /// Returns how many forms there are.
    #[must_use]
    pub fn forms() -> usize {
        FORMS.len()
    }

    /// Returns the form of a turn: every second frame hides nothing, and every form of either kind comes once before
    /// any comes again.
    fn form(&self, turn: usize) -> Option<&'static Form> {
        let wanted = turn.is_multiple_of(2);
        let kind = || {
            FORMS
                .iter()
                .filter(|(name, _)| name.starts_with("plain") == wanted)
        };
        kind().nth((turn / 2) % kind().count().max(1))
    }
}

impl Iterator for FrameStream {
    type Item = AmbiguousFrame;

    fn next(&mut self) -> Option<AmbiguousFrame> {
        let number = self.number;
        self.number += 1;
        let turn = usize::try_from(number).ok()?;
        let (form, make) = self.form(turn)?;
        let call = HiddenCall::new(number);
        let mut bytes = make(&call, &mut self.random);
        if self.is_modern {
            bytes = modern(bytes);
        }
        if let Some(server) = self.server {
            let hides = !form.starts_with("plain");
            let most = if hides {
                self.random.below(3)
            } else {
                usize::MAX
            };
            bytes = spell_frame(bytes, server, most);
        }
        if self.random.below(3) == 0
            && let Ok(text) = std::str::from_utf8(&bytes)
        {
            bytes = dress::dress(text, &mut self.random).into_bytes();
        }
        Some(AmbiguousFrame {
            number,
            form,
            bytes,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_gives_the_same_frames_again_and_another_gives_others() {
        let take =
            |seed| -> Vec<Vec<u8>> { FrameStream::new(seed).take(300).map(|f| f.bytes).collect() };
        assert_eq!(take(7), take(7));
        assert_ne!(take(7), take(8));
    }

    #[test]
    fn frames_of_2026_07_28_carry_what_their_requests_must() {
        let plain = FrameStream::new(3).modern().take(400);
        let mut plain = plain.filter(|frame| frame.form == "plain");
        let carries = |frame: AmbiguousFrame| {
            let text = String::from_utf8(frame.bytes).unwrap();
            let value: serde_json::Value = serde_json::from_str(&text).unwrap();
            value["params"]["_meta"]["io.modelcontextprotocol/protocolVersion"] == "2026-07-28"
        };
        assert!(plain.all(carries));
    }

    #[test]
    fn every_form_of_arguments_comes_before_any_comes_again() {
        let forms = ArgumentStream::forms();
        assert!(forms >= 150, "{forms} forms");
        let seen: std::collections::BTreeSet<_> = ArgumentStream::new(5)
            .take(forms)
            .map(|frame| frame.form)
            .collect();
        assert_eq!(seen.len(), forms);
    }

    #[test]
    fn a_fair_part_of_the_frames_is_a_call_and_a_fair_part_is_refused() {
        let bounds = wire::Bounds::default();
        let count = 600;
        let good = FrameStream::new(1)
            .take(count)
            .filter(|frame| wire::Canonical::of(&frame.bytes, &bounds).is_ok())
            .count();
        assert!(good > count / 2 && good < count * 9 / 10, "{good}");
    }
}
