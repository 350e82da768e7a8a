//! The scenario table and its tests. `table` holds the rows, `red_today` what is known to be wrong, `judge`
//! compares; everything drives the real binary from outside. `input_required_*` hold row H1 on both edges, `list_after_reload`
//! row H2, `hitl_progress` row H3.

mod cell;
mod edge;
mod frames;
mod http;
mod judge;
mod records;
mod red_today;
mod report;
mod row;
mod run;
mod stdio;
mod table;

use judge::Verdict;

/// Runs a row and says where it is wrong.
#[track_caller]
fn check(name: &str) {
    let row = table::rows().iter().find(|row| row.name == name).unwrap();
    let wrong: Vec<String> = judge::verdicts(row)
        .iter()
        .filter_map(|(cell, verdict)| match verdict {
            Verdict::Wrong(text) => Some(format!("{name} in {cell}\n{text}")),
            _ => None,
        })
        .collect();
    assert!(wrong.is_empty(), "{}\n{}", row.about, wrong.concat());
}

/// One test a row, and a test that each row has one.
macro_rules! scenarios {
    ($($name:ident)*) => {
        $(#[test]
        fn $name() {
            check(stringify!($name));
        })*

        #[test]
        fn every_row_has_a_test() {
            let tests = [$(stringify!($name)),*];
            let rows: Vec<&str> = table::rows().iter().map(|row| row.name).collect();
            assert_eq!(rows, tests);
        }
    };
}

scenarios! {
    allow
    deny
    server_progress
    builtin_progress
    batch
    batch_refused
    hitl_person_allows
    hitl_person_denies
    hitl_progress
    hitl_client_elicitation
    hitl_client_elicitation_declined
    hitl_client_input_required
    hitl_client_input_required_denied
    input_required_elicitation_allowed
    input_required_sampling_allowed
    input_required_roots_allowed
    input_required_elicitation_denied
    input_required_sampling_denied
    input_required_roots_denied
    server_request_elicitation_allowed
    server_request_sampling_allowed
    server_request_roots_allowed
    server_request_elicitation_denied
    server_request_sampling_denied
    server_request_roots_denied
    server_request_to_a_modern_client
    list_after_reload
    subscribed_list_after_reload
    cancel
    timeout
    server_dies
    client_dies
}

#[test]
fn no_cell_is_missing() {
    report::complete();
}

#[test]
fn the_whole_table() {
    report::print();
}
