//! Arguments of tools: how far they have come, and what an object is made of that has none of its form.

use std::borrow::Cow;

use super::ask::Text;
use crate::json;
use crate::write::ObjectWriter;

/// Follows the arguments of a call as they come.
#[derive(Debug, Default)]
pub(super) struct ArgumentScan {
    /// Objects and lists that have begun and not ended, each as the byte that ends it.
    open: Vec<u8>,
    in_text: bool,
    is_escaped: bool,
    is_whole: bool,
}

/// Deepest nesting that is followed.
const DEPTH_MAX: usize = 256;

impl ArgumentScan {
    /// Reads more of the arguments.
    pub fn read(&mut self, json: &str) {
        for byte in json.bytes() {
            match byte {
                _ if self.is_escaped => self.is_escaped = false,
                b'\\' if self.in_text => self.is_escaped = true,
                b'"' => self.in_text = !self.in_text,
                b'{' if !self.in_text && self.open.len() < DEPTH_MAX => self.open.push(b'}'),
                b'[' if !self.in_text && self.open.len() < DEPTH_MAX => self.open.push(b']'),
                b'}' | b']' if !self.in_text => {
                    self.open.pop();
                    self.is_whole = self.open.is_empty();
                }
                _ => {}
            }
        }
    }

    /// Returns whether an object or list has ended.
    pub fn is_whole(&self) -> bool {
        self.is_whole
    }
}

/// Returns the arguments as an object: unchanged if they are one, closed if they were cut off, and else as a text
/// within an object, so that the tool refuses them and nothing is lost.
pub(super) fn to_object<'t>(text: &'t Text<'_>) -> Cow<'t, str> {
    let trimmed = text.trim();
    if trimmed.is_empty() {
        return Cow::Borrowed("{}");
    }
    if json::is_object(text) {
        return Cow::Borrowed(text);
    }
    if let Some(closed) = closed(trimmed) {
        return Cow::Owned(closed);
    }
    let wrapped = ObjectWriter::new().text("arguments", text).end();
    Cow::Owned(String::from_utf8(wrapped).unwrap_or_default())
}

/// Closes an object that was cut off, if that makes one of it.
fn closed(text: &str) -> Option<String> {
    let mut scan = ArgumentScan::default();
    scan.read(text);
    let mut own = text.to_owned();
    if scan.is_escaped {
        own.pop();
    }
    if scan.in_text {
        own.push('"');
    }
    let ends: String = scan.open.iter().rev().map(|end| char::from(*end)).collect();
    let trimmed = own.trim_end();
    let is_object = |own: &String| json::is_object(own);
    let base = trimmed.strip_suffix(',').unwrap_or(trimmed);
    [
        format!("{base}{ends}"),
        format!("{base}null{ends}"),
        format!("{base}:null{ends}"),
    ]
    .into_iter()
    .find(is_object)
}

/// Returns the arguments that a server has sent: a text, or the object itself.
pub(super) fn of_server(raw: &str) -> Option<Text<'_>> {
    let is_object = || raw.trim_start().starts_with(['{', '[']);
    json::text(raw).or_else(|| is_object().then_some(Cow::Borrowed(raw)))
}

/// Returns an id for a call that has none: another one in each reply, so that no two calls of a conversation share it.
pub(super) fn id_of(reply: &str, stamp: (&str, u64), number: usize) -> String {
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    let created = stamp.1.to_le_bytes();
    for byte in [reply.as_bytes(), stamp.0.as_bytes(), &created].concat() {
        hash = (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    }
    format!("call_{hash:016x}_{number}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_that_were_cut_off_are_closed_and_others_are_kept_as_a_text() {
        let cases = [
            ("{\"a\":1}", "{\"a\":1}"),
            ("", "{}"),
            ("{\"a\": [1,2", "{\"a\": [1,2]}"),
            ("{\"a\": \"x", "{\"a\": \"x\"}"),
            ("{\"a\": \"x\\", "{\"a\": \"x\"}"),
            ("{\"a\":1,", "{\"a\":1}"),
            ("{\"a\":", "{\"a\":null}"),
            ("{\"a\":1,\"b\"", "{\"a\":1,\"b\":null}"),
            ("{\"x\": tru", "{\"arguments\":\"{\\\"x\\\": tru\"}"),
            ("[1]", "{\"arguments\":\"[1]\"}"),
            (
                "{\"a\":1}{\"b\":2}",
                "{\"arguments\":\"{\\\"a\\\":1}{\\\"b\\\":2}\"}",
            ),
        ];
        for (text, expect) in cases {
            assert_eq!(to_object(&Cow::Borrowed(text)), expect, "{text}");
        }
    }

    #[test]
    fn ids_differ_between_replies() {
        let ids = [
            id_of("r1", ("q", 7), 0),
            id_of("r2", ("q", 7), 0),
            id_of("r1", ("p", 7), 0),
            id_of("r1", ("q", 8), 0),
            id_of("r1", ("q", 7), 1),
        ];
        for (at, id) in ids.iter().enumerate() {
            assert!(!ids[at + 1..].contains(id) && id.len() <= 40, "{id}");
        }
    }
}
