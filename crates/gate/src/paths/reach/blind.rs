//! A reader with one syntax taken out, so that a test can show that it would find what the reader then misses. Debug
//! builds alone have it; a program that is shipped does not.

use std::sync::atomic::{AtomicU8, Ordering};

/// The syntax that is not read; 0 if all are.
static SYNTAX: AtomicU8 = AtomicU8::new(0);
/// Their names, in the order of their numbers from 1 on.
const NAMES: [&str; 3] = ["json", "python", "yaml"];

/// From now on strings of this syntax, and escapes of any, are not read in this process. Returns false if there is no
/// such syntax.
pub fn stop_reading(syntax: &str) -> bool {
    let found = (1..).zip(NAMES).find(|(_, name)| *name == syntax);
    if let Some((number, _)) = found {
        SYNTAX.store(number, Ordering::Relaxed);
    }
    found.is_some()
}

/// Returns whether escapes are not read.
pub(super) fn skips_escapes() -> bool {
    SYNTAX.load(Ordering::Relaxed) != 0
}

/// Returns whether a text of this syntax is not read.
pub(super) fn skips(text: &str, is_block: bool) -> bool {
    let number = match (is_block, text.starts_with('(') || text.contains('\'')) {
        (true, _) => 3,
        (false, true) => 2,
        (false, false) => 1,
    };
    let syntax = SYNTAX.load(Ordering::Relaxed);
    // YAML takes what the others take, too.
    syntax == number || syntax == 3
}
