//! Any bytes in any portions through the reader of Amazon's frames: no panic, no frame longer than it may be, the same frames as in
//! one piece; and frames with good checksums around any headers and payloads are read as what they are.
#![no_main]

use libfuzzer_sys::fuzz_target;
use wire::eventstream::{FrameFault, FrameReader};

const FRAME_BYTES_MAX: usize = 512;

type Frames = (Vec<(Option<String>, Vec<u8>)>, Option<FrameFault>, bool);

fn frames(stream: &[u8], portion: usize) -> Frames {
    let mut reader = FrameReader::new(FRAME_BYTES_MAX);
    let mut seen = Vec::new();
    for part in stream.chunks(portion) {
        reader.push(part);
        loop {
            match reader.next() {
                Ok(Some(frame)) => {
                    assert!(frame.payload.len() + 16 <= FRAME_BYTES_MAX);
                    let kind = frame.header(":event-type").map(str::to_owned);
                    seen.push((kind, frame.payload.to_vec()));
                }
                Ok(None) => break,
                Err(fault) => return (seen, Some(fault), false),
            }
        }
    }
    let is_between = reader.is_between_frames();
    (seen, None, is_between)
}

/// A frame whose checksums hold: what no random bytes are.
fn frame(headers: &[u8], payload: &[u8]) -> Vec<u8> {
    let length = |bytes: usize| u32::try_from(bytes).unwrap().to_be_bytes();
    let mut out = length(16 + headers.len() + payload.len()).to_vec();
    out.extend(length(headers.len()));
    out.extend(crc32(&out));
    out.extend(headers);
    out.extend(payload);
    out.extend(crc32(&out));
    out
}

/// As RFC 1952 has it, bit by bit.
fn crc32(bytes: &[u8]) -> [u8; 4] {
    let step = |crc: u32, _| (crc >> 1) ^ (0xedb8_8320 & (crc & 1).wrapping_neg());
    let byte = |crc: u32, byte: &u8| (0..8).fold(crc ^ u32::from(*byte), step);
    (!bytes.iter().fold(!0, byte)).to_be_bytes()
}

fuzz_target!(|input: (u8, &[u8], &[u8])| {
    let (portion, headers, payload) = input;
    let portion = usize::from(portion).max(1);
    assert_eq!(
        frames(payload, portion),
        frames(payload, payload.len().max(1))
    );
    let mut stream = frame(headers, payload);
    let (seen, fault, is_between) = frames(&stream, portion);
    match (seen.as_slice(), fault) {
        ([(_, read)], None) => assert!(read == payload && is_between),
        ([], Some(FrameFault::TooLong)) => assert!(stream.len() > FRAME_BYTES_MAX),
        ([], Some(FrameFault::Malformed)) => assert!(!headers.is_empty()),
        other => panic!("{other:?}"),
    }
    // Behind a whole frame stands whatever stands there.
    if stream.len() <= FRAME_BYTES_MAX && fault.is_none() {
        stream.extend(headers);
        let whole = frames(&stream, stream.len());
        assert_eq!(frames(&stream, portion), whole);
        assert_eq!(whole.0[0].1, payload);
    }
});
