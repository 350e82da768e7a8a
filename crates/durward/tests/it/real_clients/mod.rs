//! What real clients and servers need of us, each as a check of its own on the real binary.

mod browsers;
mod go;
mod nginx;
mod python;
mod servers;
mod sessions;
mod typescript;
mod waits;
mod ways;

/// What a check comes to: what is missing, if anything.
type Need = Result<(), String>;

/// Holds a check.
#[track_caller]
fn need(check: fn() -> Need) {
    if let Err(missing) = check() {
        panic!("{missing}");
    }
}

/// One test a check.
macro_rules! needs {
    ($($module:ident::$name:ident)*) => {
        $(#[test]
        fn $name() {
            need($module::$name);
        })*
    };
}

needs! {
    waits::w1_a_quiet_call_is_answered_with_headers_at_once
    waits::w1_a_call_that_waits_for_a_person_is_answered_with_headers_at_once
    waits::w1_a_quiet_stream_carries_a_comment_every_fifteen_seconds
    waits::w7_an_unfit_answer_of_a_person_is_told_as_such
    servers::w2_what_a_server_says_on_initialized_reaches_a_client_of_run
    servers::w2_what_a_server_says_on_initialized_reaches_a_client_of_serve
    servers::w5_a_server_that_is_started_again_is_subscribed_to_again
    servers::a_subscription_is_not_renewed_under_another_policy
    servers::w5_a_server_that_is_started_again_logs_at_the_same_level
    servers::w8_a_server_of_the_older_transport_is_named_as_such
    sessions::w3_sessions_that_were_left_behind_make_room_for_new_ones
    sessions::w4_a_reply_beyond_sixteen_mib_passes_where_the_limit_is_raised
    sessions::w4_a_body_that_is_too_long_is_read_before_the_connection_is_closed
    sessions::h5_the_time_that_a_key_takes_is_recorded
    browsers::w6_a_browser_may_ask_before_it_calls
    browsers::w6_a_page_of_an_allowed_origin_may_read_its_session
    browsers::a_page_of_another_origin_may_not
    browsers::w8_a_slash_at_the_end_of_the_path_is_no_other_path
    browsers::w8_a_compressed_body_is_an_unsupported_type
    browsers::w8_a_name_may_be_listened_at
    browsers::w8_a_socket_in_the_file_system_may_be_listened_at
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
