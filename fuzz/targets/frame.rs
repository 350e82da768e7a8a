//! Any stream in any portions through the framer: no panic, bounded memory, the same frames as in one piece.
#![no_main]

use libfuzzer_sys::fuzz_target;
use wire::{FrameEvent, LineFramer};

const FRAME_BYTES_MAX: usize = 64;

fn frames(stream: &[u8], portion: usize) -> Vec<Option<Vec<u8>>> {
    let mut framer = LineFramer::new(FRAME_BYTES_MAX);
    let mut seen = Vec::new();
    for part in stream.chunks(portion) {
        framer.push(part);
        while let Some(event) = framer.next() {
            seen.push(match event {
                FrameEvent::Frame(frame) => {
                    assert!(frame.len() <= FRAME_BYTES_MAX && !frame.contains(&b'\n'));
                    Some(frame.to_vec())
                }
                FrameEvent::TooLong(_) => None,
            });
        }
        assert!(framer.remainder().len() <= FRAME_BYTES_MAX);
    }
    seen
}

fuzz_target!(|input: (u8, &[u8])| {
    let (portion, stream) = input;
    let whole = frames(stream, stream.len().max(1));
    assert_eq!(frames(stream, usize::from(portion).max(1)), whole);
});
