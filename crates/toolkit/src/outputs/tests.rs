use proptest::prelude::*;

use super::*;
use crate::results::ByteRange;
use crate::store::tests::Place;

const NOW: i64 = 1_795_232_289_123;

fn open(place: &Place, stream_bytes_max: u64, bytes_max: u64) -> Outputs {
    let bounds = OutputBounds {
        stream_bytes_max,
        bytes_max,
        caller_bytes_max: u64::MAX,
        handles: HandleBounds {
            per_caller_max: 3,
            kept_ms: 1_000,
        },
    };
    Outputs::open(&place.open(), bounds).unwrap()
}

fn reader(place: &Place, bytes: &[u8]) -> OutputReader {
    let outputs = open(place, 1 << 30, 1 << 30);
    let (handle, mut writer) = outputs.create("ada", 1, NOW).unwrap();
    writer.append(0, bytes).unwrap();
    outputs.stream("ada", &handle, 0, NOW).unwrap()
}

#[test]
fn what_is_written_to_an_output_after_it_was_removed_is_not_counted() {
    let place = Place::new();
    let outputs = open(&place, 100, 1000);
    let (_, mut writer) = outputs.create("ada", 1, NOW).unwrap();
    let (_, mut other) = outputs.create("bob", 1, NOW + 1_000).unwrap();
    writer.append(0, b"before").unwrap();
    other.append(0, b"other").unwrap();
    assert_eq!(outputs.bytes_kept(), 11);
    assert_eq!(outputs.sweep(NOW + 1_000).unwrap(), 1);
    assert_eq!(outputs.bytes_kept(), 5);
    let written = writer.append(0, b"after").unwrap();
    assert_eq!(written.dropped, 5, "nobody can read it any more");
    drop(writer);
    assert_eq!(outputs.bytes_kept(), 5);
    drop(other);
    assert_eq!(outputs.sweep(NOW + 2_000).unwrap(), 1);
    assert_eq!(outputs.bytes_kept(), 0);
}

#[test]
fn an_output_is_read_while_it_is_written_and_after_a_restart() {
    let place = Place::new();
    let outputs = open(&place, 100, 1000);
    let (handle, mut writer) = outputs.create("ada", 2, NOW).unwrap();
    writer.append(0, b"out").unwrap();
    writer.append(1, b"\xff\0err").unwrap();
    let read = |outputs: &Outputs, stream| {
        let stream = outputs.stream("ada", &handle, stream, NOW).unwrap();
        stream.page(0, 100).unwrap().bytes
    };
    assert_eq!(read(&outputs, 0), b"out");
    assert_eq!(read(&outputs, 1), b"\xff\0err");
    let written = writer.finish().unwrap();
    assert_eq!(
        written[1],
        Written {
            kept: 5,
            dropped: 0
        }
    );
    drop(outputs);
    let outputs = open(&place, 100, 1000);
    assert_eq!(
        (read(&outputs, 0), outputs.bytes_kept()),
        (b"out".to_vec(), 8)
    );
    let missing = outputs.stream("ada", &handle, 2, NOW).unwrap_err();
    assert!(matches!(missing, OutputError::NoStream));
    for (caller, now) in [("bob", NOW), ("ada", NOW + 1_000)] {
        let unknown = outputs.stream(caller, &handle, 0, now).unwrap_err();
        assert!(matches!(unknown, OutputError::Handle(HandleError::Unknown)));
    }
}

#[test]
fn what_is_beyond_a_bound_is_counted_and_leaves_no_gap() {
    let place = Place::new();
    let outputs = open(&place, 10, 16);
    let (first, mut writer) = outputs.create("ada", 1, NOW).unwrap();
    let bytes = |kept, dropped| Written { kept, dropped };
    assert_eq!(writer.append(0, b"12345678").unwrap(), bytes(8, 0));
    assert_eq!(writer.append(0, b"9abc").unwrap(), bytes(10, 2));
    assert_eq!(writer.append(0, b"d").unwrap(), bytes(10, 3));
    let (_, mut second) = outputs.create("bob", 1, NOW).unwrap();
    assert_eq!(
        second.append(0, b"12345678").unwrap(),
        bytes(6, 2),
        "all outputs together"
    );
    assert!(matches!(second.append(1, b""), Err(OutputError::NoStream)));
    assert!(matches!(
        outputs.create("ada", 9, NOW),
        Err(OutputError::TooManyStreams)
    ));
    assert_eq!(outputs.sweep(NOW + 999).unwrap(), 0);
    assert_eq!(outputs.sweep(NOW + 1_000).unwrap(), 2);
    assert_eq!(outputs.bytes_kept(), 0);
    assert!(outputs.stream("ada", &first, 0, NOW).is_err());
    let left = std::fs::read_dir(place.0.join("outputs")).unwrap().count();
    assert_eq!(left, 0, "the files are gone");
}

#[test]
fn a_caller_has_a_share_also_after_a_restart_and_what_it_forgets_is_free() {
    let place = Place::new();
    let open = || {
        let bounds = OutputBounds {
            stream_bytes_max: 100,
            bytes_max: 100,
            caller_bytes_max: 75,
            handles: HandleBounds {
                per_caller_max: 9,
                kept_ms: 1_000,
            },
        };
        Outputs::open(&place.open(), bounds).unwrap()
    };
    let write = |outputs: &Outputs, caller: &str, bytes: usize| {
        let (handle, mut writer) = outputs.create(caller, 1, NOW).unwrap();
        (handle, writer.append(0, &vec![7; bytes]).unwrap().kept)
    };
    let outputs = open();
    let (first, kept) = write(&outputs, "ada", 50);
    assert_eq!((kept, write(&outputs, "ada", 50).1), (50, 25));
    assert_eq!(write(&outputs, "bob", 10).1, 10);
    drop(outputs);
    let outputs = open();
    assert_eq!(outputs.bytes_kept(), 85);
    assert_eq!(write(&outputs, "ada", 1).1, 0);
    assert!(outputs.forget("bob", &first, NOW).is_err());
    outputs.forget("ada", &first, NOW).unwrap();
    assert!(outputs.stream("ada", &first, 0, NOW).is_err());
    assert_eq!(
        (outputs.bytes_kept(), write(&outputs, "ada", 60).1),
        (35, 50)
    );
}

#[test]
fn the_oldest_output_makes_room_and_strays_are_removed_at_the_start() {
    let place = Place::new();
    let outputs = open(&place, 100, 1000);
    let handles: Vec<_> = (0..4)
        .map(|n| {
            let (handle, mut writer) = outputs.create("ada", 1, NOW + n).unwrap();
            writer.append(0, b"x").unwrap();
            handle
        })
        .collect();
    assert!(outputs.stream("ada", &handles[0], 0, NOW + 5).is_err());
    assert!(outputs.stream("ada", &handles[1], 0, NOW + 5).is_ok());
    assert_eq!(outputs.bytes_kept(), 3);
    drop(outputs);
    std::fs::write(place.0.join("outputs/o_stray.0"), "left by a crash").unwrap();
    let outputs = open(&place, 100, 1000);
    assert_eq!(outputs.bytes_kept(), 3);
    assert!(!place.0.join("outputs/o_stray.0").exists());
}

#[test]
fn a_preview_has_both_ends_and_tells_text_from_bytes() {
    let place = Place::new();
    let stream = reader(&place, "beginning … end".as_bytes());
    let preview = stream.preview(4).unwrap();
    assert_eq!(
        (&*preview.head, &*preview.tail),
        (b"begi".as_slice(), b" end".as_slice())
    );
    assert_eq!(
        (preview.length, preview.omitted, preview.is_text),
        (17, 9, true)
    );
    let all = stream.preview(100).unwrap();
    assert_eq!((all.omitted, all.tail.len(), all.head.len()), (0, 0, 17));
    let place = Place::new();
    assert!(!reader(&place, b"a\0b").preview(4).unwrap().is_text);
    assert_eq!(shown(b"a\xff").encoding, "base64");
    assert_eq!(shown("ü".as_bytes()).data, "ü");
    let range = ByteRange::new(2, 100).unwrap();
    assert_eq!(stream.range(range).unwrap().len(), 15);
}

#[test]
fn grep_finds_lines_with_their_surroundings_in_parts() {
    let place = Place::new();
    let text: String = (1..=100).map(|n| format!("line {n}\r\n")).collect();
    let stream = reader(&place, text.as_bytes());
    let lines = |found: &Found| -> Vec<String> {
        let lines = found.lines.iter();
        lines
            .map(|line| {
                let mark = if line.is_match { "*" } else { "" };
                assert!(
                    String::from_utf8_lossy(&line.bytes)
                        .ends_with(&format!(" {}", line.position.line))
                );
                format!("{mark}{}", line.position.line)
            })
            .collect()
    };
    let grep = Grep::new("LINE [34]0$", true, 1, 10).unwrap();
    let found = stream.grep(&grep, Position::default()).unwrap();
    assert_eq!(lines(&found), ["29", "*30", "31", "39", "*40", "41"]);
    assert_eq!(found.next, None);
    let grep = Grep::new("0$", false, 0, 3).unwrap();
    let mut from = Position::default();
    let mut seen = Vec::new();
    loop {
        let found = stream.grep(&grep, from).unwrap();
        seen.extend(lines(&found));
        let Some(next) = found.next else { break };
        from = next;
    }
    assert_eq!(seen.join(" "), "*10 *20 *30 *40 *50 *60 *70 *80 *90 *100");
    for (pattern, wrong) in [
        ("(", "the pattern cannot be used"),
        ("(?=a)", "the pattern cannot be used"),
        ("((a{100}){100}){100}", "the pattern cannot be used"),
    ] {
        let fault = Grep::new(pattern, false, 0, 1).unwrap_err().to_string();
        assert!(fault.starts_with(wrong), "{fault}");
    }
    assert!(Grep::new(&"a".repeat(2_000), false, 0, 1).is_err());
}

#[test]
fn a_line_without_end_is_looked_at_in_parts() {
    let place = Place::new();
    let mut bytes = vec![b'x'; 3 * LINE_BYTES_MAX];
    bytes.extend_from_slice(b"needle\n\xff\0needle");
    let stream = reader(&place, &bytes);
    let grep = Grep::new("needle", false, 0, 10).unwrap();
    let found = stream.grep(&grep, Position::default()).unwrap();
    let at: Vec<u64> = found.lines.iter().map(|line| line.position.line).collect();
    assert_eq!(at, [1, 2]);
    assert_eq!(found.lines[1].bytes, b"\xff\0needle");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn pages_put_together_are_the_whole_and_text_stays_text(text in "\\PC{0,80}", bytes in prop::collection::vec(any::<u8>(), 0..80), page in 1..20_usize) {
        for (whole, is_text) in [(text.as_bytes(), true), (bytes.as_slice(), false)] {
            let place = Place::new();
            let stream = reader(&place, whole);
            let mut seen = Vec::new();
            let mut at = Some(0);
            while let Some(from) = at {
                let page = stream.page(from, page).unwrap();
                prop_assert!(!is_text || std::str::from_utf8(&page.bytes).is_ok());
                prop_assert!(page.next.is_none_or(|next| next > from));
                seen.extend_from_slice(&page.bytes);
                at = page.next;
            }
            prop_assert_eq!(&seen, whole);
        }
    }

    #[test]
    fn grep_agrees_with_looking_at_every_line(lines in prop::collection::vec("[ab]{0,4}", 0..30), context in 0..3_usize, most in 1..5_usize) {
        let place = Place::new();
        let stream = reader(&place, lines.join("\n").as_bytes());
        let grep = Grep::new("aa", false, context, most).unwrap();
        let mut from = Position::default();
        let mut seen = Vec::new();
        loop {
            let found = stream.grep(&grep, from).unwrap();
            prop_assert!(found.lines.iter().filter(|line| line.is_match).count() <= most);
            seen.extend(found.lines.into_iter().filter(|line| line.is_match).map(|line| line.position.line));
            let Some(next) = found.next else { break };
            prop_assert!(next.at > from.at);
            from = next;
        }
        let expect: Vec<u64> = (1..).zip(&lines).filter(|(_, line)| line.contains("aa")).map(|(n, _)| n).collect();
        prop_assert_eq!(seen, expect);
    }
}
