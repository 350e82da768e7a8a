//! Processor time and steps of reading one string of 1 MiB, for the units that cost most when they are repeated.
//!
//! `cargo run --release --package gate --example reading_cost [BYTES]`

#![expect(clippy::print_stdout, reason = "people read what it measures")]

use std::time::Instant;

use gate::paths::reach::{Reader, Text, read_literals, reads_below};
use gate::paths::view::{Link, PathView};
use gate::paths::{StepBudget, meanings_within};

/// Units that are repeated.
const UNITS: [&str; 44] = [
    "/$A",
    "%25",
    "%2525",
    "%252f",
    "[",
    "[a,",
    "{\"a\":\"b\"},",
    "\"a\",",
    "\\u0041",
    "\\",
    "\\/",
    "\\x2f..",
    "&#47;",
    "&sol;a",
    "a/b ",
    "/a ",
    "/a,",
    "/a/../b ",
    "x=/y ",
    "--file=/a ",
    "@a/b ",
    "a=b ",
    "\n/a",
    "- /a\n",
    "a: /b\n",
    "`/a",
    "$(/a) ",
    "${A}/b ",
    "~a/ ",
    "http://a.b/c ",
    "http://127.1/%2e%2e ",
    "file:///a ",
    "\u{ff0f}a",
    "\u{e9}/",
    "\u{200b}a/",
    "e\u{301}",
    "'a' ",
    "/a*b ",
    "/{a,b} ",
    "a|b;c&d ",
    "(/a) ",
    "The file is at /srv/x, see it. ",
    "x:y:z/",
    "-I/a ",
];
const KEYS: [&str; 4] = ["q", "path", "command", "content"];
/// Length of a string, in bytes.
const BYTES: usize = 1 << 20;

/// A machine without links.
struct Machine;

impl PathView for Machine {
    fn home(&self) -> Option<String> {
        Some("/home/u".into())
    }

    fn current_dir(&self) -> Option<String> {
        Some("/srv/work".into())
    }

    fn read_link(&self, _: &str) -> Link {
        Link::NotALink
    }
}

fn main() {
    let bytes = std::env::args().nth(1).and_then(|text| text.parse().ok());
    let bytes: usize = bytes.unwrap_or(BYTES);
    let mut rows = Vec::new();
    for unit in UNITS {
        let text = unit.repeat(bytes / unit.len());
        for key in KEYS {
            let budget = StepBudget::for_input(text.len());
            let begun = Instant::now();
            let mut reader = Reader::new(&[], Some(&Machine), &budget);
            reader.take(Text {
                text: &text,
                key,
                is_path: key == "path",
                is_content: key == "content",
            });
            let reach = reader.done(false);
            let taken = begun.elapsed();
            let begun = Instant::now();
            let _ = meanings_within(&text, Some(&Machine), &budget);
            let _ = reads_below("t", &text);
            let _ = read_literals(&text);
            let beside = begun.elapsed();
            rows.push((
                taken + beside,
                unit,
                key,
                taken,
                budget.spent(),
                reach.unread,
            ));
        }
    }
    rows.sort();
    for (all, unit, key, taken, steps, unread) in rows.iter().rev().take(40) {
        println!(
            "{:>7.1} ms  reader {:>7.1} ms  steps {steps:>9}  unread {unread:5}  {key:8} {unit:?}",
            all.as_secs_f64() * 1e3,
            taken.as_secs_f64() * 1e3,
        );
    }
}
