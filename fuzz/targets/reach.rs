//! Any string of any argument: reading it takes no more steps than docs/what_is_read.md gives, and one that is not read to its end
//! is never taken for one that was.
#![no_main]

use gate::paths::reach::{Reader, Text};
use gate::paths::{StepBudget, meanings_within};
use libfuzzer_sys::fuzz_target;

/// Steps for each byte, steps of any call beside those, and the most of any call.
const DOCUMENTED_STEPS: (u64, u64, u64) = (24, 2 * 1024 * 1024, 16 * 1024 * 1024);
/// How often the input may be repeated: most that takes long does so again and again.
const REPEATS_MAX: usize = 64;

const KEYS: [&str; 6] = ["q", "path", "command", "content", "url", "pattern"];

fuzz_target!(|input: (u8, u8, &str)| {
    let (key, repeats, unit) = input;
    let text = unit.repeat(1 + usize::from(repeats) % REPEATS_MAX);
    let budget = StepBudget::for_input(text.len());
    let mut reader = Reader::new(&[], None, &budget);
    reader.take(Text {
        text: &text,
        key: KEYS[usize::from(key) % KEYS.len()],
        is_path: key & 0x80 != 0,
        is_content: key & 0x40 != 0,
    });
    let is_exceeded = budget.is_exceeded();
    let reach = reader.done(false);
    assert!(reach.unread || !is_exceeded, "{text:?}");
    let meaning = meanings_within(&text, None, &budget);
    assert!(meaning.uncertain || !budget.is_exceeded() || is_exceeded);
    let (each, beside, most) = DOCUMENTED_STEPS;
    let bound = (each * text.len() as u64 + beside).min(most);
    assert!(budget.spent() <= bound, "{} of {bound}", budget.spent());
});
