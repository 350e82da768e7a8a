//! A caller that goes away: the provider's work ends, and the call is settled.

use super::support::{ENDPOINTS, Upstream, request, serve};
use crate::support::guarded::eventually;
use crate::support::serving::{read_head, write_request};
use std::io::{BufReader, Read};

/// Reads up to this mark.
fn read_until(reader: &mut impl Read, mark: &str) -> String {
    let mut seen = String::new();
    while !seen.ends_with(mark) {
        let mut byte = [0];
        reader.read_exact(&mut byte).unwrap();
        seen.push(byte[0].into());
    }
    seen
}

/// Sends a request, goes away when `leave` says, and gives the journal's word on it.
fn gone(model: &str, streams: bool, begun: bool) {
    for path in ENDPOINTS {
        let upstream = Upstream::start();
        let provider = upstream.configured("far", path);
        let served = serve(&format!("models:\n  providers:\n    {provider}\n"), &[]);
        let mut stream = served.connect();
        let body = request(path, &format!("far/{model}"), streams).to_string();
        write_request(
            &mut stream,
            "POST",
            path,
            &[("x-request-id", "leaver")],
            &body,
        );
        eventually("the provider is asked", || upstream.count() == 1);
        if begun {
            let mut reader = BufReader::new(stream.try_clone().unwrap());
            assert_eq!(read_head(&mut reader).status, 200);
            read_until(&mut reader, "This");
        }
        drop(stream);
        eventually("the provider's connection is closed", || {
            upstream.closed() == 1
        });
        let (code, place) = served.stop();
        assert_eq!(code, Some(0));
        let journal = place.journal();
        let operation = journal.operation("leaver");
        assert_eq!(operation["status"], "Cancelled", "{path} {operation}");
        if begun {
            assert_eq!(operation["reason"], "client_gone", "{path}");
            assert!(
                operation["usage"]["output_tokens"].as_u64() >= Some(1),
                "{operation}"
            );
        }
    }
}

#[test]
fn before_the_providers_head() {
    gone("fault-silent", false, false);
    gone("fault-silent", true, false);
}

#[test]
fn before_the_first_token() {
    gone("fault-stall", false, false);
}

#[test]
fn in_the_middle_of_a_stream() {
    gone("fault-stall", true, true);
    gone("fault-endless", true, true);
}

#[test]
fn a_key_that_is_revoked_ends_its_streams() {
    let yaml = "models: { providers: { a: { kind: mock, latency: 1ms } } }";
    let place = super::support::place(yaml, &[]);
    let keys = |place: &crate::support::guarded::Place, args: &[&str]| {
        let made =
            place.durward(&[&["--no-config", "--state-dir", "state", "keys"], args].concat());
        assert!(made.status.success(), "{made:?}");
        String::from_utf8(made.stdout).unwrap().trim().to_owned()
    };
    let (first, second) = (
        keys(&place, &["create", "one"]),
        keys(&place, &["create", "two"]),
    );
    let served = crate::support::serving::Served::start_ruled(place);
    let open = |key: &str, id: &str| {
        let mut stream = served.connect();
        let body = request(ENDPOINTS[0], "a/fault-stall", true).to_string();
        let bearer = format!("Bearer {key}");
        let headers = [("authorization", bearer.as_str()), ("x-request-id", id)];
        write_request(&mut stream, "POST", ENDPOINTS[0], &headers, &body);
        let mut reader = BufReader::new(stream);
        assert_eq!(read_head(&mut reader).status, 200);
        reader
    };
    let (mut revoked, _kept) = (open(&first, "revoked"), open(&second, "kept"));
    keys(&served.place, &["revoke", "one"]);
    let rest = read_until(&mut revoked, "0\r\n\r\n");
    assert!(
        rest.contains("key_not_good") && !rest.contains("[DONE]"),
        "{rest}"
    );
    eventually("the end of the stream is recorded", || {
        !served.place.records().operations().is_empty()
    });
    let journal = served.place.records();
    assert_eq!(journal.operation("revoked")["reason"], "key_not_good");
    let operations = journal.operations();
    assert_eq!(operations.len(), 1, "the other key's stream goes on");
}
