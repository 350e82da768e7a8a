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
        let share =
            budget.spent() * 100 / (u64::try_from(text.len()).unwrap() * 32 + 2 * 1024 * 1024);
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
