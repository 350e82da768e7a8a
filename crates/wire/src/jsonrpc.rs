//! The JSON-RPC 2.0 envelope, raw: parameters and results stay the text they were.

use std::borrow::Cow;

use crate::error::{WireError, WireErrorKind as K};
use crate::id::Id;
pub use crate::scan::{MEMBERS, Own};
use crate::scan::{Member, Scan};

use crate::text;

/// What a message is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Kind<'a> {
    /// A call that wants an answer.
    Request {
        /// Its id.
        id: Id<'a>,
        /// Its method, unescaped.
        method: Cow<'a, str>,
    },
    /// A call that wants none.
    Notification {
        /// Its method, unescaped.
        method: Cow<'a, str>,
    },
    /// An answer. `id` is absent where the peer could not read the request's (`null`).
    Response {
        /// The id of the request it answers.
        id: Option<Id<'a>>,
        /// Whether it carries `error` instead of `result`.
        is_error: bool,
    },
}

/// A message: its kind and its raw payload.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Envelope<'a> {
    /// What it is.
    pub kind: Kind<'a>,
    /// `params`, `result` or `error` as it came; absent where the message has none.
    pub payload: Option<&'a str>,
}

impl<'a> Envelope<'a> {
    /// Reads the envelope out of a scanned frame that is one message (not a batch).
    ///
    /// # Errors
    /// [`K::NotJsonRpc`] where the object is no JSON-RPC 2.0 message, [`K::BatchNotAllowed`] for an
    /// array.
    pub fn of(scan: &Scan<'a>) -> Result<Self, WireError> {
        Self::read(scan.batch.is_some(), |own| {
            member(&scan.members, own.name())
        })
    }

    /// Reads the envelope of a message whose members `get` finds.
    pub(crate) fn read(
        is_batch: bool,
        get: impl Fn(Own) -> Option<&'a str>,
    ) -> Result<Self, WireError> {
        if is_batch {
            return Err(WireError::new(
                K::BatchNotAllowed,
                0,
                "this revision of the protocol has no batches",
            ));
        }
        let bad = |message| Err(WireError::new(K::NotJsonRpc, 0, message));
        let is_2 = |v| v == "\"2.0\"" || string(v).as_deref() == Some("2.0");
        if !get(Own::Jsonrpc).is_some_and(is_2) {
            return bad("the message lacks \"jsonrpc\": \"2.0\"");
        }
        let id = get(Own::Id);
        let (result, error) = (get(Own::Result), get(Own::Error));
        if let Some(raw) = get(Own::Method) {
            let Some(method) = string(raw) else {
                return bad("the method is not a string");
            };
            if result.is_some() || error.is_some() {
                return bad("a message cannot be both a request and a response");
            }
            let payload = get(Own::Params);
            if payload.is_some_and(|p| !p.starts_with(['{', '['])) {
                return bad("params is neither an object nor an array");
            }
            return match id.map(Id::from_raw) {
                None => Ok(Self {
                    kind: Kind::Notification { method },
                    payload,
                }),
                Some(Some(id)) => Ok(Self {
                    kind: Kind::Request { id, method },
                    payload,
                }),
                Some(None) => bad("the id is neither a string nor a number"),
            };
        }
        let (payload, is_error) = match (result, error) {
            (Some(result), None) => (result, false),
            (None, Some(error)) => (error, true),
            _ => {
                return bad("the message has neither a method nor exactly one of result and error");
            }
        };
        let id = match id {
            Some("null") if is_error => None,
            Some(raw) => match Id::from_raw(raw) {
                Some(id) => Some(id),
                None => return bad("the id is neither a string nor a number"),
            },
            None => return bad("a response lacks its id"),
        };
        Ok(Self {
            kind: Kind::Response { id, is_error },
            payload: Some(payload),
        })
    }
}

/// The raw value of a member.
#[must_use]
pub fn member<'a>(members: &[Member<'a>], name: &str) -> Option<&'a str> {
    members
        .iter()
        .find(|(key, _)| key == name)
        .map(|(_, value)| *value)
}

/// The text of a raw JSON string; `None` where the value is not a string.
#[must_use]
pub fn string(raw: &str) -> Option<Cow<'_, str>> {
    text::unescape(raw.strip_prefix('"')?.strip_suffix('"')?)
}

#[cfg(test)]
mod tests;
