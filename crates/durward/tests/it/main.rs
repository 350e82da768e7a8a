//! What a user sees, on the real binary, and the real components beside it.
//!
//! One binary for the whole crate: a module is a subject, and `cargo test -p durward approval_calls::` runs one of them.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stderr,
    clippy::disallowed_methods,
    reason = "a test fails where its helpers do, and reads what it was started with"
)]

mod addresses_recorded;
mod agents;
mod approval_calls;
mod approval_change;
mod approval_client;
mod approval_control;
mod approval_many;
mod approval_modern;
mod approval_notify;
mod approval_screen;
mod asked_in_errors;
mod bounds;
mod breaker;
mod builtin_server;
mod certificates;
mod chained_schemes;
mod check_refuses;
mod client_notifications;
mod coerced_strings;
mod composed_schemas;
mod config_file;
mod conformance;
mod data_flow;
mod decisions;
mod declared_classes;
mod descriptions_screened;
mod disk;
mod documented;
mod door;
mod effects;
mod elicited_answers;
mod faults_client;
mod faults_journal;
mod faults_kill;
mod faults_orphans;
mod faults_server;
mod faults_start;
mod federation;
mod fetched_urls;
mod first_hour;
mod first_hour_wrapped;
mod found_by_use;
mod going_on;
mod guarded_files;
mod http_upstream_faults;
mod http_upstream_real;
mod http_upstream_reopened;
mod http_upstream_sessions;
mod http_upstream_start;
mod init_command;
mod inspected;
mod inspected_outside;
mod install_command;
mod install_models;
mod journal_retain;
mod journal_start;
mod journal_weight;
mod json_output;
mod lab_command;
mod lab_farm;
mod lab_hitl;
mod lab_http;
mod lab_report;
mod lab_standard;
mod limits_messages;
mod limits_session;
mod logs_command;
mod models;
mod otel;
mod paths_opened;
mod pins_command;
mod pins_held;
mod policy_command;
mod policy_history;
mod policy_replay;
mod real_clients;
mod refusals;
mod reload_configuration;
mod reload_lists;
mod reload_policy;
mod reload_reported;
mod reload_serving;
mod run_id;
mod sandbox;
mod sandbox_escapes;
mod scenarios;
mod screens;
mod serve_approval;
mod serve_bounds;
mod serve_browsers;
mod serve_callers;
mod serve_clients;
mod serve_end;
mod serve_headers;
mod serve_http;
mod serve_idle;
mod serve_keys;
mod serve_keys_lasting;
mod serve_long_calls;
mod serve_places;
mod serve_processes;
mod serve_questions;
mod serve_reach;
mod serve_reach_faults;
mod serve_shared;
mod serve_soak;
mod serve_streams;
mod serve_tls;
mod serve_users;
mod server_messages;
mod servers_command;
mod sign_in;
mod sim_command;
mod sim_files;
mod simulation;
mod ssh_callers;
mod ssh_canary;
mod ssh_defects;
mod ssh_edits;
mod ssh_jobs;
mod ssh_load;
mod ssh_masking;
mod ssh_memory;
mod ssh_recordings;
mod ssh_serve;
mod ssh_server;
mod support;
mod tools_command;
mod unlisted_tools;
mod unsettled;
mod url_spellings;
mod wrap_command;
mod wrong_input;
