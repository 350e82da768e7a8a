//! The table as it is printed, and what must hold of it as a whole.

use std::collections::{BTreeMap, BTreeSet};

use super::cell::Cell;
use super::judge::{Verdict, verdicts};
use super::red_today::RED_TODAY;
use super::row::{Column, Row};
use super::table::rows;

/// Every scenario that the table must have.
const SCENARIOS: [&str; 13] = [
    "allow",
    "deny",
    "hitl_person_allows",
    "hitl_client_elicitation",
    "hitl_client_input_required",
    "input_required_sampling_denied",
    "server_request_sampling_denied",
    "list_after_reload",
    "cancel",
    "timeout",
    "server_dies",
    "client_dies",
    "batch",
];

/// Prints all rows with all cells, and the reasons below; fails if any is wrong.
#[expect(clippy::print_stdout, reason = "the table is printed for people")]
pub(crate) fn print() {
    let mut text = format!("{:28}", "");
    for cell in Cell::all() {
        text.push_str(&format!(" {:>20}", cell.to_string()));
    }
    text.push('\n');
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    let mut reasons: BTreeSet<String> = BTreeSet::new();
    for row in rows() {
        text.push_str(&format!("{:28}", row.name));
        for (cell, verdict) in verdicts(row) {
            let (kind, shown) = match verdict {
                Verdict::Ok => ("ok", "ok".to_owned()),
                Verdict::Lacks(why) => {
                    reasons.insert(format!("lacks: {}: {why}", row.name));
                    ("lacks", "lacks".to_owned())
                }
                Verdict::RedToday(defects) => ("red today", format!("red {}", defects.join(" "))),
                Verdict::Wrong(why) => {
                    reasons.insert(format!("WRONG: {} in {cell}\n{why}", row.name));
                    ("wrong", "WRONG".to_owned())
                }
            };
            *counts.entry(kind).or_default() += 1;
            text.push_str(&format!(" {shown:>20}"));
        }
        text.push('\n');
    }
    for reason in &reasons {
        text.push_str(&format!("{reason}\n"));
    }
    let counts: Vec<String> = counts
        .iter()
        .map(|(kind, n)| format!("{n} {kind}"))
        .collect();
    let cells = rows().len() * Cell::all().len();
    println!(
        "{text}{} rows, {cells} cells: {}",
        rows().len(),
        counts.join(", ")
    );
    assert!(!text.contains("WRONG"), "{text}");
}

/// Asserts that no scenario and no cell is missing, and that what the table says of cells is meant for some.
pub(crate) fn complete() {
    let names: Vec<&str> = rows().iter().map(|row| row.name).collect();
    for scenario in SCENARIOS {
        assert!(names.contains(&scenario), "no row {scenario}");
    }
    assert_eq!(names.iter().collect::<BTreeSet<_>>().len(), names.len());
    assert_eq!(Cell::all().len(), 2 * 2 * 3);
    for row in rows() {
        assert!(
            !row.script.is_empty() && !row.about.is_empty(),
            "{}",
            row.name
        );
        let mut seen: Vec<(&str, Column)> = Vec::new();
        for except in row.except {
            assert!(!except.why.is_empty(), "{}: {}", row.name, except.cells);
            assert!(applies(row, except.cells), "{}: {}", row.name, except.cells);
            assert!(
                !seen.contains(&(except.cells, except.column)),
                "{}",
                row.name
            );
            seen.push((except.cells, except.column));
        }
        for lack in row.lacks {
            assert!(!lack.why.is_empty(), "{}: {}", row.name, lack.cells);
            assert!(Cell::all().iter().any(|cell| cell.fits(lack.cells)));
        }
    }
    for red in RED_TODAY {
        let meant = rows().iter().filter(|row| red.row == row.name);
        assert!(meant.clone().count() > 0, "{} names no row", red.defect);
        for row in meant {
            assert!(applies(row, red.cells), "{}", red.defect);
        }
    }
}

/// Whether a pattern means a cell that the row has.
fn applies(row: &Row, pattern: &str) -> bool {
    let has = |cell: &Cell| !row.lacks.iter().any(|lack| cell.fits(lack.cells));
    Cell::all()
        .iter()
        .filter(|cell| has(cell))
        .any(|cell| cell.fits(pattern))
}
