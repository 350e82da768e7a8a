use super::*;

#[test]
fn cuts_lines_in_any_portions() {
    let stream = b"{\"a\":1}\r\n\n  \n{\"b\":2}\n{\"c\"";
    for portion in 1..stream.len() {
        let mut framer = LineFramer::default();
        let mut seen = Vec::new();
        for part in stream.chunks(portion) {
            framer.push(part);
            while let Some(event) = framer.next() {
                match event {
                    FrameEvent::Frame(f) => seen.push(String::from_utf8(f.to_vec()).unwrap()),
                    FrameEvent::TooLong(_) => panic!("nothing is too long here"),
                }
            }
        }
        assert_eq!(seen, ["{\"a\":1}", "{\"b\":2}"]);
        assert_eq!(framer.remainder(), b"{\"c\"");
    }
}

#[test]
fn an_overlong_line_is_skipped_to_its_end_and_not_stored() {
    let mut framer = LineFramer::new(100);
    let mut events = 0;
    for _ in 0..1000 {
        framer.push(&[b'x'; 64]);
        assert!(framer.next().is_none());
        assert!(framer.buffer.len() <= 200);
    }
    framer.push(b"\n{}\n");
    while let Some(event) = framer.next() {
        events += 1;
        match event {
            FrameEvent::TooLong(head) => assert!(head.iter().all(|b| *b == b'x')),
            FrameEvent::Frame(frame) => assert_eq!(frame, b"{}"),
        }
    }
    assert_eq!(events, 2);
}
