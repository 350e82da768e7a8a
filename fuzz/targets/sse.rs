//! Any stream in any portions through the reader of events: no panic, bounded memory, the same events as in one piece.
#![no_main]

use libfuzzer_sys::fuzz_target;
use wire::SseParser;

const EVENT_BYTES_MAX: usize = 64;

type Events = (Vec<(Vec<u8>, Vec<u8>)>, bool, Option<String>, Option<u64>);

fn events(stream: &[u8], portion: usize) -> Events {
    let mut parser = SseParser::new(EVENT_BYTES_MAX);
    let mut seen = Vec::new();
    for part in stream.chunks(portion) {
        parser.push(part);
        loop {
            match parser.next() {
                Ok(Some(event)) => {
                    assert!(event.data.len() <= EVENT_BYTES_MAX);
                    seen.push((event.name.to_vec(), event.data.to_vec()));
                }
                Ok(None) => break,
                Err(_) => return (seen, true, None, None),
            }
        }
    }
    let id = parser.last_event_id().map(str::to_owned);
    (seen, false, id, parser.retry_ms())
}

fuzz_target!(|input: (u8, &[u8])| {
    let (portion, stream) = input;
    let whole = events(stream, stream.len().max(1));
    assert_eq!(events(stream, usize::from(portion).max(1)), whole);
    // What is written of an event is read as that event.
    let mut out = Vec::new();
    wire::sse::push_event(&mut out, None, stream);
    let mut parser = SseParser::default();
    parser.push(&out);
    assert!(matches!(parser.next(), Ok(Some(_))));
    assert_eq!(parser.next(), Ok(None));
});
