//! Any bytes as a request to a model, and as the events of its stream: no panic, and what is written of a body is
//! that body but for what was put in.
#![no_main]

use dialects::{Body, Endpoint, StreamWatch, message_of, of_reply};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: (u8, &[u8])| {
    let (which, bytes) = input;
    let endpoint = Endpoint::ALL[usize::from(which) % Endpoint::ALL.len()];
    let mut watch = StreamWatch::new(endpoint);
    for data in bytes.split(|byte| *byte == b'\n') {
        watch.see(data);
        let _ = (watch.used_tokens(), watch.has_finished(), watch.end_mark());
    }
    if let Ok(text) = std::str::from_utf8(bytes) {
        let _ = (of_reply(endpoint, text), message_of(text));
    }
    let Ok(body) = Body::read(bytes, endpoint.known_members()) else {
        return;
    };
    let _ = (
        endpoint.max_tokens(&body),
        endpoint.tools_offered(&body),
        endpoint.has_images(&body),
    );
    assert_eq!(body.with(&[]).as_bytes(), bytes);
    let written = body.with(&[("model", "\"m\""), ("stream", "true")]);
    let again = Body::read(written.as_bytes(), endpoint.known_members()).unwrap();
    assert_eq!(again.text("model").as_deref(), Some("m"));
    assert!(again.is_true("stream"));
});
