//! The gate from outside: tables of policy, limits, questions to a person, and a journal that is harmed.
//!
//! One binary for the whole crate: a module is a subject, and `cargo test -p gate approval::` runs one of them.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::disallowed_methods,
    reason = "a test fails where its helpers do"
)]

mod approval;
mod inspected;
mod journal_back;
mod journal_basic;
mod journal_bytes;
mod journal_faults;
mod journal_head;
mod journal_repair;
mod journal_retained;
mod journal_support;
mod journal_tampering;
mod journal_tampering_table;
mod journal_writers;
mod limits;
mod passes;
mod plain_paths;
mod policy;
mod policy_index;
mod policy_lint;
mod policy_when;
mod reading_budget;
mod real_tools;
mod store_contract;
mod url_rules;
