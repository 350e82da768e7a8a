//! A caller that goes away or takes nothing: the provider's work ends or waits, and the call is settled.

use super::support::{ENDPOINTS, PAIRS, Upstream, journalled, read_until, request, serve, used};
use crate::support::guarded::{eventually, most_resident_kib, pause};
use crate::support::serving::{read_head, write_request};
use crate::support::web::{Then, Web};
use std::io::{BufReader, Read as _};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Sends a request, goes away before the reply or in the middle of it, and reads the journal's word on it.
fn gone(model: &str, streams: bool, begun: bool) {
    let upstreams = PAIRS.map(|_| Upstream::start());
    let all = PAIRS.iter().zip(&upstreams).enumerate();
    let providers = all.map(|(at, ((_, spoken), upstream))| {
        let provider = upstream.configured(&format!("far{at}"), spoken);
        format!("    {provider}\n")
    });
    let providers: String = providers.collect();
    let budget = "  budgets: { all: { tokens: 1000000, per: all } }\n";
    let served = serve(&format!("models:\n  providers:\n{providers}{budget}"), &[]);
    for (at, ((path, _), upstream)) in PAIRS.iter().zip(&upstreams).enumerate() {
        let mut stream = served.connect();
        let body = request(path, &format!("far{at}/{model}"), streams).to_string();
        let id = format!("leaver-{at}");
        let headers = [("x-request-id", id.as_str())];
        write_request(&mut stream, "POST", path, &headers, &body);
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
    }
    let (code, place) = served.stop();
    assert_eq!(code, Some(0));
    let journal = place.journal();
    for (at, (path, _)) in PAIRS.iter().enumerate() {
        let operation = journal.operation(&format!("leaver-{at}"));
        assert_eq!(operation["status"], "Cancelled", "{path} {operation}");
        assert_eq!(operation["reason"], "client_gone", "{path} {operation}");
        assert_eq!(operation["error_code"], 499, "{path} {operation}");
        if begun {
            let output = operation["usage"]["output_tokens"].as_u64();
            assert!(output >= Some(1), "{operation}");
        }
    }
    assert_eq!(used(&place), journalled(&place), "the account is settled");
}

#[test]
fn before_the_providers_head() {
    gone("fault-silent", false, false);
    gone("fault-silent", true, false);
}

#[test]
fn before_the_first_token() {
    gone("fault-stall", false, false);
    gone("fault-mute", true, false);
}

#[test]
fn in_the_middle_of_a_stream() {
    gone("fault-stall", true, true);
    gone("fault-endless", true, true);
}

/// Events of the flood, and bytes of text in each.
const FLOOD: (usize, usize) = (1_024, 32 * 1024);

/// A provider that sends as fast as it can, and how many events it could send.
fn flood() -> (Web, Arc<AtomicUsize>) {
    let sent = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&sent);
    let web = Web::start(move |_, wire| {
        let text = "x".repeat(FLOOD.1);
        let event = format!(
            "data: {{\"id\":\"c\",\"object\":\"chat.completion.chunk\",\"choices\":[{{\"index\":0,\"delta\":{{\"content\":\"{text}\"}}}}]}}\n\n"
        );
        let part = format!("{:x}\r\n{event}\r\n", event.len());
        wire.write_all(crate::support::web::EVENTS_HEAD.as_bytes())?;
        for _ in 0..FLOOD.0 {
            wire.write_all(part.as_bytes())?;
            count.fetch_add(1, Ordering::SeqCst);
        }
        let end = "data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n";
        wire.write_all(format!("{:x}\r\n{end}\r\n0\r\n\r\n", end.len()).as_bytes())?;
        Ok(Then::Keep)
    });
    (web, sent)
}

#[test]
fn a_slow_reader_has_the_provider_wait_and_loses_nothing() {
    let (web, sent) = flood();
    let yaml = format!(
        "models: {{ providers: {{ far: {{ kind: openai, base_url: \"http://127.0.0.1:{}/v1\" }} }} }}",
        web.port
    );
    let served = serve(&yaml, &[]);
    let before = most_resident_kib(served.process.id());
    let mut stream = served.connect();
    let body = request(ENDPOINTS[0], "far/x", true).to_string();
    write_request(&mut stream, "POST", ENDPOINTS[0], &[], &body);
    let mut reader = BufReader::new(stream);
    assert_eq!(read_head(&mut reader).status, 200);
    // Nothing is read until the provider can send no more. Where this ends too early, less is shown, and nothing fails.
    let mut last = usize::MAX;
    eventually("the provider waits", || {
        pause(250);
        let now = sent.load(Ordering::SeqCst);
        std::mem::replace(&mut last, now) == now
    });
    let held = most_resident_kib(served.process.id()).saturating_sub(before);
    assert!(held < 8 * 1024, "{held} KiB are held for one slow reader");
    let mut body = Vec::new();
    let mut part = vec![0; 1 << 20];
    while !body.ends_with(b"0\r\n\r\n") {
        let count = reader.read(&mut part).unwrap();
        assert!(count > 0, "the stream ends without its end");
        body.extend_from_slice(&part[..count]);
    }
    let text = String::from_utf8(body).unwrap();
    assert_eq!(text.matches("chat.completion.chunk").count(), FLOOD.0);
    assert!(text.contains("[DONE]"));
    let held = most_resident_kib(served.process.id()).saturating_sub(before);
    assert!(held < 8 * 1024, "{held} KiB");
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
