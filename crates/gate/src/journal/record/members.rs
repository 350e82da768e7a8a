//! The members of a record's JSON object, written one behind the other into a reused buffer.
//!
//! A record is written on the path of every call, so this is the plain thing: names are literals of this crate that need no
//! escape, values are looked over once for bytes that do, and nothing is allocated.

use super::{Micros, OpId};
use crate::journal::{Digest, hex};

/// Writes members behind those that are there; each begins with its comma.
pub(in crate::journal) struct Members<'a> {
    out: &'a mut Vec<u8>,
}

impl<'a> Members<'a> {
    pub(in crate::journal) fn behind(out: &'a mut Vec<u8>) -> Self {
        Members { out }
    }

    fn name(&mut self, name: &str) {
        self.out.extend_from_slice(b",\"");
        self.out.extend_from_slice(name.as_bytes());
        self.out.extend_from_slice(b"\":");
    }

    pub(super) fn text(&mut self, name: &str, text: &str) {
        self.name(name);
        push_text(self.out, text);
    }

    pub(super) fn maybe(&mut self, name: &str, text: Option<&str>) {
        if let Some(text) = text {
            self.text(name, text);
        }
    }

    /// A list; an empty one is left out.
    pub(super) fn list(&mut self, name: &str, texts: &[&str]) {
        self.each(name, texts, |out, text| push_text(out, text));
    }

    /// A list of values that know how to write themselves; an empty one is left out.
    pub(super) fn each<T>(&mut self, name: &str, values: &[T], push: impl Fn(&mut Vec<u8>, &T)) {
        if values.is_empty() {
            return;
        }
        self.name(name);
        for (at, value) in values.iter().enumerate() {
            self.out.push(if at == 0 { b'[' } else { b',' });
            push(self.out, value);
        }
        self.out.push(b']');
    }

    /// A list of texts; an empty one is left out.
    pub(super) fn each_text<'t>(&mut self, name: &str, texts: impl Iterator<Item = &'t str>) {
        let mut texts = texts.peekable();
        if texts.peek().is_none() {
            return;
        }
        self.name(name);
        let mut before = b'[';
        for text in texts {
            self.out.push(before);
            push_text(self.out, text);
            before = b',';
        }
        self.out.push(b']');
    }

    pub(super) fn op(&mut self, name: &str, op: OpId) {
        self.hex(name, &op.0.to_be_bytes());
    }

    pub(super) fn digest(&mut self, name: &str, digest: Option<Digest>) {
        if let Some(digest) = digest {
            self.hex(name, &digest.0);
        }
    }

    fn hex(&mut self, name: &str, bytes: &[u8]) {
        self.name(name);
        self.out.push(b'"');
        hex::push(self.out, bytes);
        self.out.push(b'"');
    }

    pub(super) fn number(&mut self, name: &str, number: Option<i64>) {
        if let Some(number) = number {
            self.name(name);
            push_number(self.out, number);
        }
    }

    pub(super) fn count(&mut self, name: &str, count: u64) {
        self.name(name);
        hex::push_decimal(self.out, count);
    }

    pub(super) fn flag(&mut self, name: &str, value: bool) {
        self.name(name);
        self.out
            .extend_from_slice(if value { b"true" } else { b"false" });
    }

    pub(super) fn micros(&mut self, name: &str, micros: Micros) {
        self.name(name);
        push_micros(self.out, micros);
    }

    /// An object as the value of a member.
    pub(super) fn object(&mut self, name: &str, members: impl FnOnce(&mut Members<'_>)) {
        self.name(name);
        push_object(self.out, members);
    }
}

/// Appends a JSON object.
pub(super) fn push_object(out: &mut Vec<u8>, members: impl FnOnce(&mut Members<'_>)) {
    let start = out.len();
    members(&mut Members::behind(out));
    match out.get_mut(start) {
        Some(comma) => *comma = b'{',
        None => out.push(b'{'),
    }
    out.push(b'}');
}

pub(super) fn push_number(out: &mut Vec<u8>, number: i64) {
    if number < 0 {
        out.push(b'-');
    }
    hex::push_decimal(out, number.unsigned_abs());
}

/// Appends microseconds, with three decimals where they are no whole ones.
fn push_micros(out: &mut Vec<u8>, micros: Micros) {
    // 17 digits, a point, and three digits.
    let mut spelt = [0; 21];
    let mut length = 0;
    let mut places = spelt.iter_mut().rev();
    let mut put = |byte| {
        if let Some(place) = places.next() {
            *place = byte;
            length += 1;
        }
    };
    let (mut whole, rest) = (micros.nanos() / 1_000, micros.nanos() % 1_000);
    let digit = |number: u64| b'0' + u8::try_from(number % 10).unwrap_or_default();
    if rest > 0 {
        for number in [rest, rest / 10, rest / 100] {
            put(digit(number));
        }
        put(b'.');
    }
    loop {
        put(digit(whole));
        whole /= 10;
        if whole == 0 {
            break;
        }
    }
    out.extend_from_slice(spelt.get(spelt.len() - length..).unwrap_or_default());
}

/// Appends a JSON string.
pub(super) fn push_text(out: &mut Vec<u8>, text: &str) {
    out.push(b'"');
    if is_plain(text.as_bytes()) {
        out.extend_from_slice(text.as_bytes());
    } else {
        push_escaped(out, text);
    }
    out.push(b'"');
}

/// Whether none of the bytes has to be escaped. Eight at a time: a mark is the highest bit of a byte.
fn is_plain(bytes: &[u8]) -> bool {
    const ONES: u64 = 0x0101_0101_0101_0101;
    const HIGH: u64 = ONES << 7;
    let zero_bytes = |word: u64| word.wrapping_sub(ONES) & !word;
    let marks = |word: [u8; 8]| {
        let word = u64::from_le_bytes(word);
        let quote = zero_bytes(word ^ (ONES * u64::from(b'"')));
        let backslash = zero_bytes(word ^ (ONES * u64::from(b'\\')));
        let control = word.wrapping_sub(ONES * 0x20) & !word;
        (quote | backslash | control) & HIGH
    };
    match bytes.last_chunk::<8>() {
        Some(last) => {
            let words = bytes.as_chunks::<8>().0;
            words
                .iter()
                .fold(marks(*last), |found, word| found | marks(*word))
                == 0
        }
        None => !bytes.iter().copied().any(escaped),
    }
}

fn escaped(byte: u8) -> bool {
    (byte < 0x20) | (byte == b'"') | (byte == b'\\')
}

fn push_escaped(out: &mut Vec<u8>, text: &str) {
    for byte in text.bytes() {
        match byte {
            b'"' | b'\\' => out.extend_from_slice(&[b'\\', byte]),
            b'\n' => out.extend_from_slice(b"\\n"),
            b'\r' => out.extend_from_slice(b"\\r"),
            b'\t' => out.extend_from_slice(b"\\t"),
            0..0x20 => {
                out.extend_from_slice(b"\\u00");
                hex::push(out, &[byte]);
            }
            _ => out.push(byte),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_text_reads_back_as_it_was() {
        let every: String = (0..0x2000_u32).filter_map(char::from_u32).collect();
        for text in [
            "",
            "plain",
            "\"",
            "\\",
            "a\nb\tc\rd\0\u{1f}\u{7f}",
            "a quote at the end is seen\"",
            "\u{1f}a control character at the beginning is seen, too",
            "with a \\ in the middle",
            "é\u{2028}\u{1f511}\"",
            &every,
        ] {
            let mut out = Vec::new();
            push_text(&mut out, text);
            assert!(!out.contains(&b'\n'));
            assert_eq!(serde_json::from_slice::<String>(&out).unwrap(), text);
        }
    }

    #[test]
    fn members_form_an_object() {
        let mut out = b"{\"first\":1".to_vec();
        let mut members = Members::behind(&mut out);
        members.text("text", "a");
        members.maybe("absent", None);
        members.list("empty", &[]);
        members.list("list", &["a", "b"]);
        members.op("op", OpId(0xab));
        members.digest("digest", Some(Digest([0xcd; 16])));
        for (name, nanos) in [
            ("m0", 0),
            ("m1", 1),
            ("m2", 1_000),
            ("m3", 1_020),
            ("m4", u64::MAX),
        ] {
            members.micros(name, Micros::from_nanos(nanos));
        }
        members.number("low", Some(i64::MIN));
        members.object("inner", |inner| inner.number("a", Some(1)));
        members.object("none", |_| {});
        out.push(b'}');
        let expect = concat!(
            r#"{"first":1,"text":"a","list":["a","b"],"op":"000000000000000000000000000000ab","#,
            r#""digest":"cdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcd","m0":0,"m1":0.001,"m2":1,"m3":1.020,"#,
            r#""m4":18446744073709551.615,"low":-9223372036854775808,"inner":{"a":1},"none":{}}"#
        );
        assert_eq!(String::from_utf8(out.clone()).unwrap(), expect);
        serde_json::from_slice::<serde_json::Value>(&out).unwrap();
    }
}
