//! Calls with arguments that a tool and a gate may read differently: other kinds of values, JSON in strings, names that
//! are only alike, paths that have several readings.

use super::dress::dress;
use super::forms::HiddenCall;
use super::random::SeededRandom;
use super::{AmbiguousFrame, modern};

/// A line each: a sign, a tool, and the JSON text of its arguments.
const FORMS: &str = include_str!("arguments.txt");

/// Returns the forms of this sign: `+` names allowed places alone, `-` is anything else.
fn forms(sign: char) -> impl Iterator<Item = &'static str> + Clone {
    FORMS.lines().filter(move |line| line.starts_with(sign))
}

/// An endless stream of calls. Every form comes once before any comes again.
#[derive(Debug)]
pub struct ArgumentStream {
    random: SeededRandom,
    number: u64,
    turn: usize,
    is_modern: bool,
}

impl ArgumentStream {
    /// The tool that takes lists and objects; the policy allows it as it does [`HiddenCall::TOOL`].
    pub const TOOL: &'static str = "read_notes";
    /// The number of the first: behind those of [`super::FrameStream`].
    const FIRST: u64 = 500_000;

    /// Returns the stream of this seed.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self {
            random: SeededRandom::new(seed),
            number: Self::FIRST,
            turn: 0,
            is_modern: false,
        }
    }

    /// Returns the same calls, as a client of 2026-07-28 sends them.
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
        forms('+').count() + forms('-').count()
    }

    /// Returns the frame of a form: `+ tool {arguments}`.
    fn frame(&mut self, form: &'static str) -> Option<Vec<u8>> {
        let number = self.number;
        let (tool, arguments) = form.get(2..)?.split_once(' ')?;
        let arguments = arguments
            .replace("{p}", &format!("{}/{number}.txt", HiddenCall::ALLOWED))
            .replace("{q}", &format!("{}/{number}-2.txt", HiddenCall::ALLOWED))
            .replace("{d}", &format!("{}/{number}.txt", HiddenCall::DENIED))
            .replace("{n}", &number.to_string());
        let call = format!(
            r#"{{"jsonrpc":"2.0","id":{number},"method":"tools/call","params":{{"name":"{tool}","arguments":{arguments}}}}}"#
        );
        let bytes = call.into_bytes();
        let bytes = if self.is_modern { modern(bytes) } else { bytes };
        // Spelled in unusual ways from the second round on: first the plain form.
        let text = String::from_utf8(bytes).ok()?;
        if self.turn < Self::forms() || self.random.coin() {
            return Some(text.into_bytes());
        }
        Some(dress(&text, &mut self.random).into_bytes())
    }
}

impl Iterator for ArgumentStream {
    type Item = AmbiguousFrame;

    fn next(&mut self) -> Option<AmbiguousFrame> {
        let all = forms('+').chain(forms('-'));
        let form = all.clone().nth(self.turn % all.count().max(1))?;
        let bytes = self.frame(form)?;
        let number = self.number;
        self.number += 1;
        self.turn += 1;
        Some(AmbiguousFrame {
            number,
            form,
            bytes,
        })
    }
}
