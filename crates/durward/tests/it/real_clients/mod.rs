//! What real clients and servers need of us, each as a check of its own on the real binary.
//!
//! A check that today's build fails stands on [`RED_TODAY`] with the words that it fails with: it must fail so, and
//! an entry whose check passes must be removed. The list may only shrink.

mod browsers;
mod go;
mod python;
mod servers;
mod sessions;
mod typescript;
mod waits;
mod ways;

/// What a check comes to: what is missing, if anything.
type Need = Result<(), String>;

/// The number of the need, its check, and how it is not met today.
const RED_TODAY: &[(&str, &str, &str)] = &[
    (
        "W3",
        "sessions_that_were_left_behind_make_room_for_new_ones",
        "session 33",
    ),
    (
        "W4",
        "a_reply_beyond_sixteen_mib_passes_where_the_limit_is_raised",
        "did not start",
    ),
    (
        "W4",
        "a_body_that_is_too_long_is_read_before_the_connection_is_closed",
        "cut off",
    ),
    (
        "W5",
        "a_server_that_is_started_again_is_subscribed_to_again",
        "resources/subscribe",
    ),
    (
        "W5",
        "a_server_that_is_started_again_logs_at_the_same_level",
        "logging/setLevel",
    ),
    (
        "W7",
        "an_unfit_answer_of_a_person_is_told_as_such",
        "not declared",
    ),
    ("W8", "a_name_may_be_listened_at", "did not start"),
    (
        "W8",
        "a_socket_in_the_file_system_may_be_listened_at",
        "did not start",
    ),
    (
        "W8",
        "a_server_of_the_older_transport_is_named_as_such",
        "2024-11-05",
    ),
];

/// Holds a check against the list.
#[track_caller]
fn need(name: &str, check: fn() -> Need) {
    let found = check();
    let known = RED_TODAY.iter().find(|(_, known, _)| *known == name);
    match (found, known) {
        (Ok(()), None) => {}
        (Ok(()), Some((number, ..))) => panic!("{number} is met: take {name} off the list"),
        (Err(missing), None) => panic!("{missing}"),
        (Err(missing), Some((number, _, today))) => {
            assert!(
                missing.contains(today),
                "{number} is not met in another way: {missing}"
            );
        }
    }
}

/// One test a check, and a test that the list names nothing else.
macro_rules! needs {
    ($($module:ident::$name:ident)*) => {
        $(#[test]
        fn $name() {
            need(stringify!($name), $module::$name);
        })*

        #[test]
        fn the_list_names_checks() {
            let checks = [$(stringify!($name)),*];
            for (number, name, today) in RED_TODAY {
                assert!(checks.contains(name), "{number}: {name}");
                assert!(!today.is_empty(), "{name}");
            }
        }
    };
}

needs! {
    waits::a_quiet_call_is_answered_with_headers_at_once
    waits::a_call_that_waits_for_a_person_is_answered_with_headers_at_once
    waits::a_quiet_stream_carries_a_comment_every_fifteen_seconds
    waits::an_unfit_answer_of_a_person_is_told_as_such
    servers::what_a_server_says_on_initialized_reaches_a_client_of_run
    servers::what_a_server_says_on_initialized_reaches_a_client_of_serve
    servers::a_server_that_is_started_again_is_subscribed_to_again
    servers::a_server_that_is_started_again_logs_at_the_same_level
    servers::a_server_of_the_older_transport_is_named_as_such
    sessions::sessions_that_were_left_behind_make_room_for_new_ones
    sessions::a_reply_beyond_sixteen_mib_passes_where_the_limit_is_raised
    sessions::a_body_that_is_too_long_is_read_before_the_connection_is_closed
    sessions::the_time_that_a_key_takes_is_recorded
    browsers::a_browser_may_ask_before_it_calls
    browsers::a_page_of_an_allowed_origin_may_read_its_session
    browsers::a_page_of_another_origin_may_not
    browsers::a_slash_at_the_end_of_the_path_is_no_other_path
    browsers::a_compressed_body_is_an_unsupported_type
    browsers::a_name_may_be_listened_at
    browsers::a_socket_in_the_file_system_may_be_listened_at
}

/// Waits until something is so, but not longer than this.
fn within(wait_ms: u64, mut is_so: impl FnMut() -> bool) -> bool {
    let deadline = std::time::Instant::now() + std::time::Duration::from_millis(wait_ms);
    while !is_so() {
        if std::time::Instant::now() >= deadline {
            return false;
        }
        crate::support::guarded::pause(5);
    }
    true
}
