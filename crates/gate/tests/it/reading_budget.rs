//! Reading a call takes steps in proportion to its size: ordinary calls stay far below the budget, crafted ones are cut off.

use gate::paths::reach::{Reader, Text};
use gate::paths::{PathArgument, Reach, Role, StepBudget, meanings_within};

/// Reads one string as an argument of this name; returns what it may lead to and the steps that took.
fn read(key: &str, text: &str) -> (Reach, StepBudget) {
    let budget = StepBudget::for_input(text.len());
    let mut reader = Reader::new(&[], None, &budget);
    reader.take(Text {
        text,
        key,
        is_path: false,
        is_content: false,
    });
    (reader.done(false), budget)
}

/// A file of this repository, some times over.
fn source(path: &str, bytes: usize) -> String {
    let path = format!("{}/../../{path}", env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(path).unwrap();
    text.repeat(bytes / text.len() + 1)
}

#[test]
fn code_prose_and_data_of_every_size_are_read_whole() {
    let json = format!(
        "[{}]",
        vec![r#"{"path":"src/a.rs","line":12,"text":"use x::y;\n"}"#; 500].join(",")
    );
    for (key, text) in [
        (
            "code",
            source("crates/gate/src/paths/reach/read.rs", 200_000),
        ),
        ("command", source("scripts/setup-tests", 60_000)),
        ("q", source("DESIGN.md", 300_000)),
        ("q", source("Cargo.lock", 100_000)),
        ("q", json),
        (
            "q",
            "SELECT a.b, c FROM t WHERE x = 'y/z' AND u LIKE '%w%'; ".repeat(400),
        ),
        ("q", "https://example.com/a/b?c=d&e=%2Ff#g ".repeat(200)),
    ] {
        let (_, budget) = read(key, &text);
        let (each, beside, _) = DOCUMENTED_STEPS;
        let share = budget.spent() * 100 / (u64::try_from(text.len()).unwrap() * each + beside);
        assert!(
            !budget.is_exceeded(),
            "{key}: {} bytes, {share} % of its steps",
            text.len()
        );
    }
}

#[test]
fn what_exceeds_the_budget_is_undecidable() {
    let mut exceeded = 0;
    for unit in [
        "/$A",
        "%25",
        "%2525/",
        "\\u005c",
        "=/",
        "a@/",
        "'/a'",
        "[#",
        "[[\"",
        "{a",
        "$(a/b",
        "&#47;",
        "x/../",
        "~a/",
        "?/#/",
        "!a/",
        "\"\\\\\\\\/\",",
    ] {
        let text = unit.repeat(200_000 / unit.len());
        let (reach, budget) = read("q", &text);
        // A call that is not read to its end is never taken for one that was.
        assert!(reach.unread || !budget.is_exceeded(), "{unit}");
        exceeded += usize::from(budget.is_exceeded());
    }
    assert!(exceeded > 0, "no text was too much");
}

/// Steps for each byte, steps of any call beside those, and the most of any call, as docs/what_is_read.md gives them.
const DOCUMENTED_STEPS: (u64, u64, u64) = (24, 2 * 1024 * 1024, 16 * 1024 * 1024);

/// What strings are made of that take long to read: each is taken apart, decoded or compared in another way.
const UNITS: [&str; 32] = [
    "/$A",
    "%25",
    "%2525",
    "%2f",
    "..",
    "/",
    "\\",
    "\\u005c",
    "\\x2f",
    "\"",
    "'",
    "[",
    "]",
    "{",
    "}",
    ":",
    ",",
    "=",
    "@",
    "~",
    "$(",
    "`",
    "&#47;",
    "http://a/",
    "file://",
    "//",
    "?",
    "#",
    " ",
    "\n",
    "é",
    "\u{200b}",
];

/// A generator of numbers that depend on the seed alone.
struct Draws(u64);

impl Draws {
    fn below(&mut self, most: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % u64::try_from(most).unwrap()).unwrap()
    }

    /// A string of some of the units, repeated in one order or drawn anew, and as JSON in a string some levels deep.
    fn text(&mut self, bytes: usize) -> String {
        let few: Vec<&str> = (0..=self.below(4))
            .map(|_| UNITS[self.below(UNITS.len())])
            .collect();
        let is_drawn = self.below(2) == 0;
        let mut text = String::new();
        for at in 0.. {
            if text.len() >= bytes {
                break;
            }
            let unit = if is_drawn {
                self.below(few.len())
            } else {
                at % few.len()
            };
            text.push_str(few[unit]);
        }
        for _ in 0..self.below(4) {
            let again = serde_json::to_string(&[&text]).unwrap();
            if again.len() > 2 * bytes {
                break;
            }
            text = again;
        }
        text
    }
}

/// Prints what took longest, where it is asked for: `READING_BYTES=1048576 cargo test --release … -- --nocapture`.
#[test]
fn crafted_strings_take_no_more_steps_than_documented() {
    let (each, beside, most) = DOCUMENTED_STEPS;
    let asked = std::env::var("READING_BYTES").ok();
    let bytes: usize = asked.as_ref().map_or(4_096, |bytes| bytes.parse().unwrap());
    let mut draws = Draws(0x9e37_79b9_7f4a_7c15);
    let mut slowest = Vec::new();
    for _ in 0..300 {
        let text = draws.text(bytes);
        let key = ["q", "path", "command", "content", "url", "pattern"][draws.below(6)];
        let began = std::time::Instant::now();
        let (reach, budget) = read(key, &text);
        slowest.push((
            began.elapsed(),
            budget.spent(),
            key,
            text.chars().take(60).collect::<String>(),
        ));
        let bound = (each * u64::try_from(text.len()).unwrap() + beside).min(most);
        assert!(
            budget.spent() <= bound,
            "{key} {text:.60}: {} of {bound}",
            budget.spent()
        );
        // A call that is not read to its end is never taken for one that was.
        assert!(reach.unread || !budget.is_exceeded(), "{key} {text:.60}");
    }
    slowest.sort_unstable();
    if asked.is_some() {
        for (time, steps, key, text) in slowest.iter().rev().take(15) {
            println!("{time:?} {steps} steps {key} {text:?}");
        }
    }
}

#[test]
fn a_path_for_which_no_steps_are_left_is_uncertain() {
    let budget = StepBudget::for_input(0);
    let path = format!("/{}", "a/".repeat(2_000));
    let many: Vec<PathArgument> = (0..2_000)
        .map(|_| PathArgument {
            text: path.clone(),
            role: Role::Path,
            content: false,
            meaning: meanings_within(&path, None, &budget),
        })
        .collect();
    assert!(!many.first().unwrap().meaning.uncertain);
    let last = &many.last().unwrap().meaning;
    assert!(last.uncertain && last.ambiguous && budget.is_exceeded());
}
