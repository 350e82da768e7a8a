//! Holds what was seen against the table.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Mutex, OnceLock};

use super::cell::{Cell, Edge, Peer};
use super::red_today::RED_TODAY;
use super::row::{Column, Red, Row};
use super::run::{expected, run};
use super::table::rows;

/// Cells of one row that run at the same time.
const AT_ONCE: usize = 4;

/// What became of one cell.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Verdict {
    Ok,
    /// The revision or the peer has no such thing.
    Lacks(&'static str),
    /// As the list of defects says.
    RedToday(Vec<&'static str>),
    /// Neither as it should be nor as it is said to be today.
    Wrong(String),
}

/// Why a cell is not run.
fn absent(row: &Row, cell: Cell) -> Option<Verdict> {
    let lack = row.lacks.iter().find(|lack| cell.fits(lack.cells));
    lack.map(|lack| Verdict::Lacks(lack.why))
}

/// The known defects of a cell.
fn reds(row: &Row, cell: Cell) -> Vec<&'static Red> {
    let of_cell = |red: &&Red| red.row == row.name && cell.fits(red.cells);
    RED_TODAY.iter().filter(of_cell).collect()
}

/// Whether there is nothing to compare: over stdio there are no statuses, and between `durward` and what is
/// inside it there is no wire to listen at.
fn is_blank(cell: Cell, column: Column) -> bool {
    match column {
        Column::Status => cell.edge == Edge::Stdio,
        Column::Server => cell.peer == Peer::Builtin,
        Column::Client | Column::Journal | Column::Marks | Column::Exit => false,
    }
}

/// Calls that end one right after the other are recorded in either order: where an answer of the client ends one call and has
/// the server end another, two threads write of them.
fn ends_in_any_order(records: &mut [String]) {
    let is_end = |record: &String| record.starts_with("operation ");
    for ends in records.chunk_by_mut(|one, next| is_end(one) && is_end(next)) {
        ends.sort();
    }
}

/// Runs a cell and compares every column.
fn judge(row: &Row, cell: Cell) -> Verdict {
    if let Some(absent) = absent(row, cell) {
        return absent;
    }
    let reds = reds(row, cell);
    let seen = match catch_unwind(AssertUnwindSafe(|| run(row, cell, !reds.is_empty()))) {
        Ok(seen) => seen,
        Err(panic) => {
            let text = panic.downcast_ref::<String>().cloned();
            let text = text.or_else(|| panic.downcast_ref::<&str>().map(|t| (*t).to_owned()));
            return Verdict::Wrong(format!("the run broke off: {}", text.unwrap_or_default()));
        }
    };
    let mut wrong = String::new();
    let mut defects = Vec::new();
    for column in Column::ALL {
        if is_blank(cell, column) {
            continue;
        }
        let (mut found, mut expected) = (seen[&column].clone(), expected(row, cell, column));
        if column == Column::Journal {
            ends_in_any_order(&mut found);
            ends_in_any_order(&mut expected);
        }
        let found = &found;
        let red = reds.iter().find(|red| red.column == column);
        match red {
            None if *found == expected => {}
            None => wrong.push_str(&difference(column, "the table says", &expected, found)),
            Some(red) if *found == expected && red.sometimes => {}
            Some(red) if *found == expected => wrong.push_str(&format!(
                "{column:?} has come right: take {} off the list of defects for this cell\n",
                red.defect
            )),
            Some(red) => {
                let today = red.today.iter();
                let today: Vec<String> = today
                    .map(|line| super::frames::fill(line, row, cell))
                    .collect();
                if *found == today {
                    defects.push(red.defect);
                    defects.dedup();
                } else {
                    let said = format!("{} says of today", red.defect);
                    wrong.push_str(&difference(column, &said, &today, found));
                }
            }
        }
    }
    match (wrong.is_empty(), defects.is_empty()) {
        (false, _) => Verdict::Wrong(wrong),
        (true, true) => Verdict::Ok,
        (true, false) => Verdict::RedToday(defects),
    }
}

fn difference(column: Column, said: &str, expected: &[String], found: &[String]) -> String {
    let list = |lines: &[String]| {
        let lines: Vec<String> = lines.iter().map(|line| format!("    {line}\n")).collect();
        if lines.is_empty() {
            "    (nothing)\n".to_owned()
        } else {
            lines.concat()
        }
    };
    format!(
        "  {column:?}: {said}\n{}  and found\n{}",
        list(expected),
        list(found)
    )
}

/// The verdicts on one row, once they are found.
type Found = OnceLock<Vec<(Cell, Verdict)>>;

/// The verdicts on a row, found once.
pub(crate) fn verdicts(row: &'static Row) -> &'static [(Cell, Verdict)] {
    static ALL: OnceLock<Vec<Found>> = OnceLock::new();
    let all = ALL.get_or_init(|| rows().iter().map(|_| Found::new()).collect());
    let place = rows()
        .iter()
        .position(|other| other.name == row.name)
        .unwrap();
    all[place].get_or_init(|| {
        let left = Mutex::new(Cell::all().into_iter());
        let done = Mutex::new(Vec::new());
        std::thread::scope(|scope| {
            for _ in 0..AT_ONCE {
                scope.spawn(|| {
                    loop {
                        let Some(cell) = left.lock().unwrap().next() else {
                            return;
                        };
                        let verdict = judge(row, cell);
                        done.lock().unwrap().push((cell, verdict));
                    }
                });
            }
        });
        let mut done = done.into_inner().unwrap();
        done.sort_by_key(|(cell, _)| *cell);
        done
    })
}
