//! Every case with reference numbers, at the file's tolerances and at tight ones.

use crate::common;
use crate::common::cases::{Case, PKML, RESTATED, XML};

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
    if crate::common::is_reference_absent() {
        return;
    }
    check_all(&PKML);
}

#[test]
fn restated_files() {
    if crate::common::is_reference_absent() {
        return;
    }
    check_all(&RESTATED);
}

#[test]
fn simmodel_files_first_half() {
    if crate::common::is_reference_absent() {
        return;
    }
    check_all(&XML[..9]);
}

#[test]
fn simmodel_files_second_half() {
    if crate::common::is_reference_absent() {
        return;
    }
    check_all(&XML[9..]);
}

/// The page lists every case, each within its bounds; the numbers themselves may differ in their last digit.
#[test]
fn page_is_complete() {
    let page = std::fs::read_to_string(common::root().join("docs/parity.md")).unwrap();
    for case in PKML.iter().chain(&RESTATED).chain(&XML) {
        let file = case.file.rsplit('/').next().unwrap();
        let row = page
            .lines()
            .find(|l| l.starts_with(&format!("| {file} |")))
            .unwrap_or_else(|| panic!("{file} is not in docs/parity.md"));
        let cells: Vec<f64> = row
            .split('|')
            .skip(2)
            .filter_map(|c| c.trim().parse().ok())
            .collect();
        assert_eq!(cells.len(), 6, "{row}");
        assert!(cells[2] <= cells[3] && cells[4] <= cells[5], "{row}");
    }
}
