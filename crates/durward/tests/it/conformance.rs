//! A handful of scenarios of the official conformance suite, directly and through Durward; `make conformance` runs
//! them all.

use std::process::Command;

use crate::support::components;
use crate::support::program::binary;

#[test]
fn the_short_form_of_the_suite_passes_directly_and_through_durward() {
    if components::conformance_suite().is_none() {
        return;
    }
    let done = Command::new(components::repository().join("scripts/conformance"))
        .args(["--durward", binary(), "--short"])
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&done.stdout).into_owned();
    let complaints = String::from_utf8_lossy(&done.stderr);
    assert!(done.status.success(), "{said}{complaints}");
    for set in ["2026-07-28", "2025-11-25"] {
        for column in ["direct", "1:1 stdio", "1:1 http", "federated"] {
            let line = format!("{set}  {column:10} 6 of 6");
            assert!(said.contains(&line), "{line} is missing: {said}");
        }
    }
}
