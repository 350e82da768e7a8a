//! Every case with reference numbers, at the file's tolerances and at tight ones.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    missing_docs
)]

mod common;

use common::cases::{Case, PKML, RESTATED, XML};

fn check(case: &Case) {
    let (loose, tight, rel_tol) = common::measure(case);
    assert!(
        loose.worst <= case.loose(rel_tol),
        "{}: {:.2e} above {:.2e} in '{}'",
        case.file,
        loose.worst,
        case.loose(rel_tol),
        loose.column
    );
    assert!(
        tight.worst <= case.tight(),
        "{}, tight: {:.2e} above {:.2e} in '{}'",
        case.file,
        tight.worst,
        case.tight(),
        tight.column
    );
}

/// All cases are checked even when one fails.
fn check_all(cases: &[Case]) {
    let failed: Vec<String> = cases
        .iter()
        .filter_map(|case| std::panic::catch_unwind(|| check(case)).err())
        .map(|e| e.downcast_ref::<String>().cloned().unwrap_or_default())
        .collect();
    assert!(failed.is_empty(), "{}", failed.join("\n"));
}

#[test]
fn pkml_files() {
    check_all(&PKML);
}

#[test]
fn restated_files() {
    check_all(&RESTATED);
}

#[test]
fn simmodel_files_first_half() {
    check_all(&XML[..9]);
}

#[test]
fn simmodel_files_second_half() {
    check_all(&XML[9..]);
}
