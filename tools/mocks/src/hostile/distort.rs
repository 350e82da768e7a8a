//! An honest answer, made wrong in one respect.

use super::behaviour::DuplicatePosition;
use crate::json::quote;

/// How deep the arrays of `deep` nest.
const DEEP: usize = 10_000;

/// A response our own server wrote: `{"jsonrpc":"2.0","id":ID,…}}`, which is all that is relied upon.
#[derive(Clone)]
pub(super) struct OwnFrame {
    bytes: Vec<u8>,
    id: String,
}

impl OwnFrame {
    pub(super) fn new(bytes: Vec<u8>, id: &str) -> Self {
        Self {
            bytes,
            id: id.into(),
        }
    }

    pub(super) fn bytes(&self) -> Vec<u8> {
        self.bytes.clone()
    }

    pub(super) fn first_half(&self) -> Vec<u8> {
        self.bytes
            .get(..self.bytes.len() / 2)
            .unwrap_or_default()
            .to_vec()
    }

    /// Everything behind the id, from the comma on.
    fn behind_id(&self) -> &[u8] {
        let head = format!(r#"{{"jsonrpc":"2.0","id":{}"#, self.id);
        self.bytes
            .strip_prefix(head.as_bytes())
            .unwrap_or(&self.bytes)
    }

    /// Returns a number a million higher, or a longer string.
    pub(super) fn with_wrong_id(&self) -> Vec<u8> {
        let wrong = match self.id.strip_suffix('"') {
            Some(start) => format!("{start}-wrong\""),
            None => self.id.parse::<i64>().map_or("-1".into(), |number| {
                number.wrapping_add(1_000_000).to_string()
            }),
        };
        [
            format!(r#"{{"jsonrpc":"2.0","id":{wrong}"#).as_bytes(),
            self.behind_id(),
        ]
        .concat()
    }

    pub(super) fn without_id(&self) -> Vec<u8> {
        [br#"{"jsonrpc":"2.0""#, self.behind_id()].concat()
    }

    /// With further members at the end of the result or error object.
    fn with_members(&self, members: &[u8]) -> Vec<u8> {
        let open = self.bytes.strip_suffix(b"}}").unwrap_or(&self.bytes);
        [open, b",", members, b"}}"].concat()
    }

    pub(super) fn padded_to(&self, bytes: usize) -> Vec<u8> {
        let padding = bytes.saturating_sub(self.bytes.len() + r#","padding":"""#.len());
        self.with_members(format!(r#""padding":"{}""#, "x".repeat(padding)).as_bytes())
    }

    pub(super) fn deep(&self) -> Vec<u8> {
        self.with_members(format!(r#""deep":{}{}"#, "[".repeat(DEEP), "]".repeat(DEEP)).as_bytes())
    }

    pub(super) fn not_utf8(&self) -> Vec<u8> {
        self.with_members(b"\"bytes\":\"\xff\xfe\xc0\x80\"")
    }

    pub(super) fn duplicate_keys(&self, place: DuplicatePosition) -> Vec<u8> {
        let inner = match place {
            DuplicatePosition::Envelope => self.bytes(),
            DuplicatePosition::Deep | DuplicatePosition::Both => {
                self.with_members(br#""deep":{"a":[{"key":1,"key":2}]}"#)
            }
        };
        if place == DuplicatePosition::Deep {
            return inner;
        }
        let open = inner.strip_suffix(b"}").unwrap_or(&inner);
        [open, br#","result":{"content":[{"type":"text","text":"the second result"}],"isError":false}}"#].concat()
    }

    /// With `text` as the first part of a tool result; an error answer stays as it is.
    pub(super) fn with_text_first(&self, text: &str) -> Vec<u8> {
        let honest = String::from_utf8_lossy(&self.bytes);
        honest
            .replacen(
                r#""content":["#,
                &format!(r#""content":[{{"type":"text","text":{}}},"#, quote(text)),
                1,
            )
            .into_bytes()
    }
}

/// One progress notification; `token` is raw JSON.
pub(super) fn progress(token: &str, number: u64) -> Vec<u8> {
    format!(r#"{{"jsonrpc":"2.0","method":"notifications/progress","params":{{"progressToken":{token},"progress":{number}}}}}"#).into_bytes()
}
