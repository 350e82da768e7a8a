//! The members of a record's JSON object, written one behind the other into a reused buffer.
//!
//! A record is written on the path of every call, so this is the plain thing: names are literals of this crate that need no
//! escape, values are looked over once for bytes that do, and nothing is allocated.

use super::{Micros, OpId};
use crate::journal::{Digest, Keys, hex};

/// A member's name with the signs around it: one copy writes all of it.
#[derive(Debug, Clone, Copy)]
pub(in crate::journal) struct Key(pub(super) &'static str);

/// The name of a member, a literal that needs no escape.
macro_rules! key {
    ($name:literal) => {
        $crate::journal::record::members::Key(concat!(",\"", $name, "\":"))
    };
}
pub(super) use key;

/// Longest text of a caller that a record holds whole, in bytes as written.
pub const FACT_BYTES_MAX: usize = 1_024;
/// How much of a longer one is recorded beside its length and digest, in bytes.
pub const FACT_START_BYTES: usize = 128;
/// Most bytes of a list of such texts.
pub const FACTS_BYTES_MAX: usize = 8 * 1_024;

/// Writes members behind those that are there; each begins with its comma.
pub(in crate::journal) struct Members<'a> {
    out: &'a mut Vec<u8>,
    /// Makes the digests of texts that are too long; without it they are whole.
    keys: Option<&'a Keys>,
}

impl<'a> Members<'a> {
    pub(in crate::journal) fn behind(out: &'a mut Vec<u8>) -> Self {
        Members { out, keys: None }
    }

    /// The same for a record whose texts a caller chooses.
    pub(in crate::journal) fn bounded(out: &'a mut Vec<u8>, keys: &'a Keys) -> Self {
        Members {
            out,
            keys: Some(keys),
        }
    }

    fn key(&mut self, key: Key) {
        self.out.extend_from_slice(key.0.as_bytes());
    }

    /// A member whose name is no literal here: the buffer, for its value.
    pub(super) fn named(&mut self, name: &str) -> &mut Vec<u8> {
        self.out.extend_from_slice(b",\"");
        self.out.extend_from_slice(name.as_bytes());
        self.out.extend_from_slice(b"\":");
        self.out
    }

    pub(super) fn text(&mut self, key: Key, text: &str) {
        self.key(key);
        push_text(self.out, text);
    }

    pub(super) fn maybe(&mut self, key: Key, text: Option<&str>) {
        if let Some(text) = text {
            self.text(key, text);
        }
    }

    /// A text that a caller chooses: a long one as length, digest and beginning.
    pub(super) fn fact(&mut self, key: Key, text: &str) {
        self.key(key);
        push_fact(self.out, self.keys, text);
    }

    pub(super) fn maybe_fact(&mut self, key: Key, text: Option<&str>) {
        if let Some(text) = text {
            self.fact(key, text);
        }
    }

    /// The same whose name is no literal here.
    pub(super) fn named_fact(&mut self, name: &str, text: &str) {
        let keys = self.keys;
        push_fact(self.named(name), keys, text);
    }

    /// A list of such texts; an empty one is left out.
    pub(super) fn facts<'t>(&mut self, key: Key, texts: impl Iterator<Item = &'t str>) {
        let mut texts = texts.peekable();
        if texts.peek().is_some() {
            self.key(key);
            push_facts(self.out, self.keys, texts);
        }
    }

    /// The same whose name is no literal here.
    pub(super) fn named_facts<'t>(&mut self, name: &str, texts: impl Iterator<Item = &'t str>) {
        let mut texts = texts.peekable();
        if texts.peek().is_some() {
            let keys = self.keys;
            push_facts(self.named(name), keys, texts);
        }
    }

    /// A word of a closed set, which needs no escape.
    pub(super) fn label(&mut self, key: Key, label: &'static str) {
        self.key(key);
        push_label(self.out, label);
    }

    pub(super) fn maybe_label(&mut self, key: Key, label: Option<&'static str>) {
        if let Some(label) = label {
            self.label(key, label);
        }
    }

    /// A list of words of ours; an empty one is left out.
    pub(super) fn list(&mut self, key: Key, texts: &[&str]) {
        self.each(key, texts, |out, text| push_text(out, text));
    }

    /// A list of values that know how to write themselves; an empty one is left out.
    pub(super) fn each<T>(&mut self, key: Key, values: &[T], push: impl Fn(&mut Vec<u8>, &T)) {
        if values.is_empty() {
            return;
        }
        self.key(key);
        for (at, value) in values.iter().enumerate() {
            self.out.push(if at == 0 { b'[' } else { b',' });
            push(self.out, value);
        }
        self.out.push(b']');
    }

    /// A list of texts; an empty one is left out.
    pub(super) fn each_text<'t>(&mut self, key: Key, texts: impl Iterator<Item = &'t str>) {
        let mut texts = texts.peekable();
        if texts.peek().is_some() {
            self.key(key);
            push_texts(self.out, texts);
        }
    }

    pub(super) fn op(&mut self, key: Key, op: OpId) {
        self.hex(key, &op.0.to_be_bytes());
    }

    pub(super) fn digest(&mut self, key: Key, digest: Option<Digest>) {
        if let Some(digest) = digest {
            self.hex(key, &digest.0);
        }
    }

    fn hex(&mut self, key: Key, bytes: &[u8]) {
        self.key(key);
        self.out.push(b'"');
        hex::push(self.out, bytes);
        self.out.push(b'"');
    }

    pub(super) fn number(&mut self, key: Key, number: Option<i64>) {
        if let Some(number) = number {
            self.key(key);
            push_number(self.out, number);
        }
    }

    pub(super) fn count(&mut self, key: Key, count: u64) {
        self.key(key);
        hex::push_decimal(self.out, count);
    }

    pub(super) fn flag(&mut self, key: Key, value: bool) {
        self.key(key);
        self.out
            .extend_from_slice(if value { b"true" } else { b"false" });
    }

    #[inline]
    pub(super) fn micros(&mut self, key: Key, micros: Micros) {
        self.key(key);
        push_micros(self.out, micros);
    }

    /// An object as the value of a member.
    pub(super) fn object(&mut self, key: Key, members: impl FnOnce(&mut Members<'_>)) {
        self.key(key);
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
    let (whole, rest) = (micros.nanos() / 1_000, micros.nanos() % 1_000);
    hex::push_decimal(out, whole);
    if rest > 0 {
        let digit = |number: u64| b'0' + u8::try_from(number % 10).unwrap_or_default();
        out.extend_from_slice(&[b'.', digit(rest / 100), digit(rest / 10), digit(rest)]);
    }
}

/// Appends a text that a caller chooses.
fn push_fact(out: &mut Vec<u8>, keys: Option<&Keys>, text: &str) {
    let Some(keys) = keys else {
        return push_text(out, text);
    };
    let before = out.len();
    if text.len() <= FACT_BYTES_MAX {
        push_text(out, text);
        if out.len().saturating_sub(before) <= FACT_BYTES_MAX {
            return;
        }
        // With its escapes it is longer.
        out.truncate(before);
    }
    let start = text.get(..text.floor_char_boundary(FACT_START_BYTES));
    push_object(out, |members| {
        members.count(key!("bytes"), text.len() as u64);
        members.digest(key!("digest"), Some(keys.digest(text.as_bytes())));
        members.text(key!("start"), start.unwrap_or_default());
    });
}

/// Appends a list of one such text at least; where they are too many, the last element says how many are left out.
fn push_facts<'t>(
    out: &mut Vec<u8>,
    keys: Option<&Keys>,
    mut texts: impl Iterator<Item = &'t str>,
) {
    let start = out.len();
    let mut before = b'[';
    while let Some(text) = texts.next() {
        out.push(before);
        before = b',';
        let is_full =
            out.len().saturating_sub(start) + text.len().min(FACT_BYTES_MAX) > FACTS_BYTES_MAX;
        if keys.is_some() && is_full {
            let omitted = texts.count().saturating_add(1) as u64;
            push_object(out, |members| members.count(key!("omitted"), omitted));
            break;
        }
        push_fact(out, keys, text);
    }
    out.push(b']');
}

/// Appends a list of one text at least.
pub(super) fn push_texts<'t>(out: &mut Vec<u8>, texts: impl Iterator<Item = &'t str>) {
    let mut before = b'[';
    for text in texts {
        out.push(before);
        push_text(out, text);
        before = b',';
    }
    out.push(b']');
}

/// Appends a JSON string.
pub(super) fn push_text(out: &mut Vec<u8>, text: &str) {
    if is_plain(text.as_bytes()) {
        push_plain(out, text);
    } else {
        out.push(b'"');
        push_escaped(out, text);
        out.push(b'"');
    }
}

/// Appends a word of a closed set as a JSON string.
pub(super) fn push_label(out: &mut Vec<u8>, label: &'static str) {
    debug_assert!(is_plain(label.as_bytes()), "{label} needs an escape");
    push_plain(out, label);
}

#[inline]
fn push_plain(out: &mut Vec<u8>, text: &str) {
    out.push(b'"');
    out.extend_from_slice(text.as_bytes());
    out.push(b'"');
}

/// Whether none of the bytes has to be escaped. Sixteen at a time, without an early end, so that they are compared at once;
/// the last sixteen may have been looked at already.
fn is_plain(bytes: &[u8]) -> bool {
    fn any<const N: usize>(chunk: &[u8; N]) -> bool {
        chunk.iter().fold(false, |any, byte| any | escaped(*byte))
    }
    if let Some(last) = bytes.last_chunk::<16>() {
        let chunks = bytes.as_chunks::<16>().0;
        return !chunks
            .iter()
            .fold(any(last), |found, chunk| found | any(chunk));
    }
    match (bytes.first_chunk::<8>(), bytes.last_chunk::<8>()) {
        (Some(first), Some(last)) => !(any(first) | any(last)),
        _ => !bytes.iter().copied().any(escaped),
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
    fn what_has_to_be_escaped_is_found_wherever_it_stands() {
        let every = (0..0x20).chain([0x22, 0x5c, 0x7f, 0xe9, 0x2028, 0x1_f511]);
        let every: Vec<char> = every.filter_map(char::from_u32).collect();
        for length in 0..=64_usize {
            for at in 0..=length {
                for special in &every {
                    let text = format!("{}{special}{}", "x".repeat(at), "y".repeat(length - at));
                    let mut out = Vec::new();
                    push_text(&mut out, &text);
                    assert_eq!(serde_json::from_slice::<String>(&out).unwrap(), text);
                }
            }
        }
    }

    #[test]
    fn a_long_text_is_recorded_as_length_digest_and_beginning() {
        let keys = Keys::ephemeral(&mut |bytes| bytes.fill(7));
        let written = |text: &str| {
            let mut out = b"{\"a\":1".to_vec();
            Members::bounded(&mut out, &keys).fact(key!("text"), text);
            out.push(b'}');
            serde_json::from_slice::<serde_json::Value>(&out).unwrap()["text"].clone()
        };
        let whole = "x".repeat(FACT_BYTES_MAX - 2);
        assert_eq!(written(&whole), whole.as_str());
        // One byte more, bytes that are written as six, and a character on the border.
        for text in [
            "x".repeat(FACT_BYTES_MAX - 1),
            "\u{1}".repeat(200),
            format!("{}é{}", "x".repeat(127), "y".repeat(FACT_BYTES_MAX)),
            "z".repeat(250_000),
        ] {
            let long = written(&text);
            assert_eq!(long["bytes"], text.len(), "{long}");
            assert_eq!(long["digest"], keys.digest(text.as_bytes()).to_string());
            let start = long["start"].as_str().unwrap();
            assert!(text.starts_with(start) && start.len() <= FACT_START_BYTES);
            assert!(start.len() + 2 > FACT_START_BYTES);
            assert!(long.to_string().len() < FACT_BYTES_MAX);
        }
    }

    #[test]
    fn a_long_list_says_how_many_it_leaves_out() {
        let keys = Keys::ephemeral(&mut |bytes| bytes.fill(7));
        let texts = vec!["y".repeat(1_000); 100];
        let mut out = b"{\"a\":1".to_vec();
        Members::bounded(&mut out, &keys).facts(key!("list"), texts.iter().map(String::as_str));
        out.push(b'}');
        assert!(out.len() < FACTS_BYTES_MAX + 100, "{}", out.len());
        let read: serde_json::Value = serde_json::from_slice(&out).unwrap();
        let list = read["list"].as_array().unwrap();
        let (last, whole) = list.split_last().unwrap();
        assert_eq!(last["omitted"], 100 - whole.len(), "{last}");
        assert!(whole.iter().all(|text| text == texts[0].as_str()));
    }

    #[test]
    fn members_form_an_object() {
        let mut out = b"{\"first\":1".to_vec();
        let mut members = Members::behind(&mut out);
        members.text(key!("text"), "a");
        members.maybe(key!("absent"), None);
        members.list(key!("empty"), &[]);
        members.list(key!("list"), &["a", "b"]);
        members.op(key!("op"), OpId(0xab));
        members.digest(key!("digest"), Some(Digest([0xcd; 16])));
        for (key, nanos) in [
            (key!("m0"), 0),
            (key!("m1"), 1),
            (key!("m2"), 1_000),
            (key!("m3"), 1_020),
            (key!("m4"), u64::MAX),
        ] {
            members.micros(key, Micros::from_nanos(nanos));
        }
        members.number(key!("low"), Some(i64::MIN));
        members.object(key!("inner"), |inner| inner.number(key!("a"), Some(1)));
        members.object(key!("none"), |_| {});
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
