//! Any bytes through the scanner and the envelope: no panic, nothing accepted that is not JSON, and what is
//! noted stands there.
#![no_main]

use libfuzzer_sys::fuzz_target;
use wire::jsonrpc::Envelope;
use wire::{Bounds, WireErrorKind, scan_reply, scan_request, text};

fuzz_target!(|bytes: &[u8]| {
    let bounds = Bounds::default();
    let reply = scan_reply(bytes, &bounds);
    match scan_request(bytes, &bounds) {
        Ok(scan) => {
            let json: Result<Box<serde_json::value::RawValue>, _> = serde_json::from_slice(bytes);
            assert!(json.is_ok(), "accepted what is not JSON");
            assert!(reply.is_ok(), "a good request is a bad reply");
            for leaf in &scan.leaves {
                assert!(text::unescape(leaf.value).is_some());
            }
            if let Ok(envelope) = Envelope::of(&scan) {
                let payload = envelope.payload.unwrap_or("null");
                assert!(scan_request(payload.as_bytes(), &bounds).is_ok());
            }
        }
        Err(fault) => {
            assert!(fault.at <= bytes.len());
            if reply.is_ok() {
                assert_eq!(fault.kind, WireErrorKind::DuplicateKey);
            }
        }
    }
});
