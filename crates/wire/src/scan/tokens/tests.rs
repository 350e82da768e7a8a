use super::*;

#[test]
fn plain_bytes_end_where_a_special_byte_stands() {
    for length in 0..40 {
        for at in 0..=length {
            for special in [0_u8, 0x1f, b'"', b'\\', 0x80, 0xff] {
                for plain in [b' ', b'!', b'#', b'[', b']', b'a', 0x7f] {
                    let mut bytes = vec![plain; length];
                    if let Some(byte) = bytes.get_mut(at) {
                        *byte = special;
                    }
                    assert_eq!(plain_bytes(&bytes), at, "{special:#x} {plain:#x} {length}");
                }
            }
        }
    }
}

#[test]
fn line_breaks_beyond_ascii_are_seen() {
    for (text, expect) in [
        ("\"a\u{85}\"", true),
        ("\"é\u{2028}\"", true),
        ("\"\u{2029}\"", true),
        ("\"\u{2027}\u{202a}\u{a5}\u{105}é\"", false),
        ("\"\\u2028\"", false),
    ] {
        let (string, end) = string(text, 0).unwrap();
        assert_eq!(string.has_line_break, expect, "{text:?}");
        assert_eq!((end, string.inner.len() + 2), (text.len(), text.len()));
    }
}
