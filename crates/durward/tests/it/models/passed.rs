//! Endpoints whose replies are passed on as they are: audio, images, rerank. Judged, limited and recorded as the others.

use serde_json::{Value, json};

use super::support::{Upstream, code, journalled, serve, used};
use crate::support::serving::Served;
use crate::support::web::reply;

const MOCK: &str = "models: { providers: { a: { kind: mock, latency: 0ms, models: [m] } }, budgets: { all: { tokens: 100000, per: all } } }";

const FORM: [(&str, &str); 1] = [("content-type", "multipart/form-data; boundary=xx")];

/// A form with this model and these lines more.
fn form(model: &str, more: &str) -> String {
    format!(
        "--xx\r\ncontent-disposition: form-data; name=\"file\"; filename=\"a.wav\"\r\ncontent-type: audio/wav\r\n\r\nRIFF\r\n--x\r\n--xx\r\ncontent-disposition: form-data; name=\"model\"\r\n\r\n{model}\r\n{more}--xx--\r\n"
    )
}

/// Every such endpoint: whether it takes a form, and what stands in the reply of the script.
const ALL: [(&str, bool, &str); 7] = [
    ("/v1/rerank", false, "relevance_score"),
    ("/v1/images/generations", false, "b64_json"),
    ("/v1/images/edits", true, "b64_json"),
    ("/v1/images/variations", true, "b64_json"),
    ("/v1/audio/speech", false, "WAVE"),
    ("/v1/audio/transcriptions", true, "MOCK"),
    ("/v1/audio/translations", true, "MOCK"),
];

fn ask(served: &Served, path: &str, is_form: bool, model: &str) -> crate::support::serving::Answer {
    let body = json!({ "model": model, "input": "say it", "prompt": "a cat", "query": "q", "documents": ["x", "y"] });
    match is_form {
        true => served.send("POST", path, &FORM, &form(model, "")),
        false => served.send("POST", path, &[], &body.to_string()),
    }
}

#[test]
fn each_is_answered_refused_by_rules_and_recorded_with_what_was_used() {
    let deny = r#"{"id":"no-other","effect":"deny","conditions":{"model":"a/other"}}"#;
    let open = MOCK.replace(", models: [m]", "");
    let served = serve(&open, &[deny]);
    for (path, is_form, says) in ALL {
        let answer = ask(&served, path, is_form, "a/m");
        assert_eq!(answer.status, 200, "{path} {answer:?}");
        assert!(answer.body.contains(says), "{path} {answer:?}");
        let kind = if path.ends_with("speech") {
            "audio/wav"
        } else {
            "application/json"
        };
        assert_eq!(answer.header("content-type"), Some(kind), "{path}");
        let refused = ask(&served, path, is_form, "a/other");
        assert_eq!(refused.status, 403, "{path} {refused:?}");
        assert_eq!(code(&refused.json()), "denied_by_rule", "{path}");
    }
    let (_, place) = served.stop();
    let records = place.journal();
    assert_eq!(records.operations().len(), ALL.len());
    for (path, _, _) in ALL {
        let method = path.trim_start_matches("/v1/");
        let of = |own: &&&Value| own["method"] == method;
        assert_eq!(records.operations().iter().filter(of).count(), 1, "{path}");
    }
    assert!(used(&place) > 0 && used(&place) == journalled(&place));
}

#[test]
fn rules_see_that_an_image_is_shown_and_limits_count_such_calls() {
    let deny = r#"{"id":"no-images","effect":"deny","conditions":{"resource_type":"model","when":"has_images == 'yes'"}}"#;
    let served = serve(MOCK, &[deny]);
    for (path, is_form, _) in ALL {
        let answer = ask(&served, path, is_form, "m");
        let shows = path.ends_with("edits") || path.ends_with("variations");
        assert_eq!(
            answer.status,
            if shows { 403 } else { 200 },
            "{path} {answer:?}"
        );
    }
}

#[test]
fn every_byte_of_a_form_but_the_model_reaches_the_provider() {
    let upstream = Upstream::before(|_| {
        let text = "1\n00:00:00,000 --> 00:00:01,000\nhello\n";
        Some(reply("200 OK", "", "text/vtt", text))
    });
    let provider = upstream.configured("far", "");
    let yaml = format!(
        "models: {{ providers: {{ {provider} }}, aliases: {{ ears: {{ tiers: [far/whisper-1] }} }} }}"
    );
    let served = serve(&yaml, &[]);
    let body = form("ears", "");
    let answer = served.send("POST", "/v1/audio/transcriptions", &FORM, &body);
    assert_eq!(answer.status, 200, "{answer:?}");
    assert_eq!(answer.header("content-type"), Some("text/vtt"));
    assert!(answer.body.ends_with("hello\n"), "{answer:?}");
    let got = upstream.web.requests().pop().unwrap();
    assert_eq!(
        String::from_utf8(got.body.clone()).unwrap(),
        body.replace("ears", "whisper-1")
    );
    assert_eq!(got.header("content-type"), Some(FORM[0].1));
    assert_eq!(got.path, "/v1/audio/transcriptions");
}

/// Go's reader of content types takes `boundary*` (RFC 2231) for the boundary, and finds another form, with another model,
/// between the same bytes.
#[test]
fn a_provider_is_told_of_the_boundary_that_was_judged_and_of_no_other() {
    let upstream = Upstream::before(|_| Some(reply("200 OK", "", "application/json", "{}")));
    let provider = upstream.configured("far", "");
    let deny = r#"{"id":"no-other","effect":"deny","conditions":{"model":"*other*"}}"#;
    let served = serve(
        &format!("models: {{ providers: {{ {provider} }} }}"),
        &[deny],
    );
    let hidden = "--xx\r\ncontent-disposition: form-data; name=\"prompt\"\r\n\r\n\r\n--yy\r\ncontent-disposition: form-data; name=\"model\"\r\n\r\nother\r\n--yy--\r\n\r\n";
    let body = form("far/m", hidden);
    for kind in [
        "multipart/form-data; boundary=xx; boundary*=utf-8''yy",
        "multipart/form-data; boundary*0=yy; boundary=xx",
        "multipart/form-data; boundary=xx",
    ] {
        let headers = [("content-type", kind)];
        let answer = served.send("POST", "/v1/audio/transcriptions", &headers, &body);
        assert_eq!(answer.status, 200, "{kind} {answer:?}");
        let got = upstream.web.requests().pop().unwrap();
        assert_eq!(got.header("content-type"), Some(FORM[0].1), "{kind}");
    }
}

#[test]
fn forms_that_two_readers_read_in_two_ways_and_streams_are_refused() {
    let served = serve(MOCK, &[]);
    let twice = "--xx\r\ncontent-disposition: form-data; name=\"model\"\r\n\r\nother\r\n";
    let folded = twice.replace("\"model\"", "\"Model\"");
    let stream = twice
        .replace("\"model\"", "\"stream\"")
        .replace("other", "true");
    for (more, says) in [
        (twice, "two parts"),
        (&folded, "Model"),
        (&stream, "not streamed"),
        ("--xx", "parts do not follow"),
    ] {
        let answer = served.send("POST", "/v1/audio/transcriptions", &FORM, &form("m", more));
        assert_eq!(answer.status, 400, "{more} {answer:?}");
        assert_eq!(code(&answer.json()), "request_unreadable");
        assert!(answer.body.contains(says), "{more} {answer:?}");
    }
    for (kind, says) in [
        ("multipart/form-data", "no boundary"),
        ("multipart/form-data; boundary=yy", "parts do not follow"),
    ] {
        let headers = [("content-type", kind)];
        let answer = served.send("POST", "/v1/audio/transcriptions", &headers, &form("m", ""));
        assert_eq!(code(&answer.json()), "request_unreadable", "{answer:?}");
        assert!(answer.body.contains(says), "{kind} {answer:?}");
    }
    let long = twice.replace("\"model\"", "\"prompt\"");
    let long = long.replace("other", &"x".repeat(300_000));
    let answer = served.send("POST", "/v1/audio/transcriptions", &FORM, &form("m", &long));
    assert!(answer.body.contains("longer than"), "{answer:?}");
    let speech = json!({ "model": "m", "input": "x", "stream_format": "sse" }).to_string();
    let answer = served.send("POST", "/v1/audio/speech", &[], &speech);
    assert_eq!(code(&answer.json()), "request_unreadable", "{answer:?}");
    // A form where none is taken is no JSON.
    let answer = served.send("POST", "/v1/rerank", &FORM, &form("m", ""));
    assert_eq!(answer.status, 400, "{answer:?}");
    let upstream = Upstream::start();
    let far = upstream.configured("far", "/v1/messages");
    let served = serve(&format!("models: {{ providers: {{ {far} }} }}"), &[]);
    for (path, is_form, _) in ALL {
        let answer = ask(&served, path, is_form, "far/x");
        assert_eq!(
            (answer.status, code(&answer.json())),
            (404, "endpoint_not_spoken"),
            "{path}"
        );
    }
}

#[test]
fn a_page_of_a_provider_is_bytes_to_a_browser() {
    let upstream = Upstream::before(|_| Some(reply("200 OK", "", "text/html", "<script>")));
    let provider = upstream.configured("far", "");
    let served = serve(&format!("models: {{ providers: {{ {provider} }} }}"), &[]);
    let answer = ask(&served, "/v1/audio/speech", false, "far/x");
    assert_eq!(
        answer.header("content-type"),
        Some("application/octet-stream"),
        "{answer:?}"
    );
}

#[test]
fn fields_and_transcripts_are_inspected_and_a_form_is_not_written_anew() {
    let secret = "ghp_aB3dE6gH9kaB3dE6gH9kaB3dE6gH9kaB3dE6";
    let upstream = Upstream::before(move |_| Some(reply("200 OK", "", "text/plain", secret)));
    let provider = upstream.configured("far", "");
    let yaml = format!(
        "models: {{ providers: {{ {provider} }} }}\ninspect:\n  keys: {{ secrets: all, action: mask }}\n"
    );
    let served = serve(&yaml, &[]);
    let path = "/v1/audio/transcriptions";
    let field =
        format!("--xx\r\ncontent-disposition: form-data; name=\"prompt\"\r\n\r\n{secret}\r\n");
    let answer = served.send("POST", path, &FORM, &form("far/x", &field));
    assert_eq!(answer.status, 400, "{answer:?}");
    assert!(answer.body.contains("inspect:"), "{answer:?}");
    assert_eq!(upstream.count(), 0, "nothing is sent");
    let answer = ask(&served, path, true, "far/x");
    assert_eq!(answer.status, 200, "{answer:?}");
    assert!(!answer.body.contains(secret), "{answer:?}");
}
