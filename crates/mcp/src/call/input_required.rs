//! Asking a Modern client's own person: a result that wants input, and the client that comes back with
//! it. What it carries meanwhile (`requestState`) only names the call, which is kept here.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;

use blake3::Hasher;
use gate::approval::{Channel, Question};
use gate::{Gate, Reason, Ticket};
use serde::de::{DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;
use serde_json::{Value, json};
use wire::Bounds;
use wire::jsonrpc::{member, string};
use wire::scan::{Scan, scan_request};

use super::form::{self, ID_PREFIX, Said};
use crate::message::{frames, request};
use crate::upstream::Frame;

/// Under which key a client answers our question.
const INPUT: &str = "durward_approval";

/// The result that asks, and the state that it carries. `name` tells this call from all others that are
/// kept.
#[must_use]
pub fn result(id: &str, question: &Question, name: &str) -> (String, Vec<u8>) {
    let state = format!("{ID_PREFIX}{name}");
    let result = json!({
        "resultType": "input_required",
        "inputRequests": { INPUT: {
            "method": "elicitation/create",
            "params": form::form(question),
        } },
        "requestState": state,
    });
    let frame = format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":{result}}}");
    (state, frame.into_bytes())
}

/// Why a call that is come back for is not gone on with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stray {
    /// No call is kept under this state, or it is none of this caller's.
    Unknown,
    /// It is kept, and it is another one.
    Other,
}

impl Stray {
    /// A sentence for the client.
    #[must_use]
    pub fn sentence(self) -> &'static str {
        match self {
            Self::Unknown => {
                "requestState is unknown, used or too old; send the request again without it"
            }
            Self::Other => "the request is not the one that was asked about",
        }
    }

    /// The answer to a request that comes back so.
    #[must_use]
    pub fn answer(self, id: &str) -> Vec<u8> {
        frames::error(id, -32602, self.sentence(), None)
    }
}

/// What a client comes back with to a call that was asked about: our state, and the answer.
#[derive(Debug)]
pub struct Return {
    /// The state.
    pub state: String,
    /// What the person said, where anything was.
    pub answer: Option<Value>,
}

impl Return {
    /// Reads it out of a request; none where the request carries no state of ours.
    #[must_use]
    pub fn of(scan: &Scan<'_>) -> Option<Self> {
        let state = member(&scan.params, "requestState").and_then(string)?;
        if !state.starts_with(ID_PREFIX) {
            return None;
        }
        let answers: Option<Value> =
            member(&scan.params, "inputResponses").and_then(|raw| serde_json::from_str(raw).ok());
        Some(Self {
            state: state.into_owned(),
            answer: answers.and_then(|mut answers| Some(answers.get_mut(INPUT)?.take())),
        })
    }
}

/// What must be the same when a client comes back: the method and its parameters, without what only
/// belongs to the one or the other message.
#[must_use]
pub fn essence(frame: &[u8]) -> Option<Essence> {
    const PASSING: [&str; 3] = ["_meta", "requestState", "inputResponses"];
    let message: Asked<'_> = serde_json::from_slice(frame).ok()?;
    let mut hasher = Hasher::new();
    put(&mut hasher, "method", &message.method);
    for (name, raw) in message.params {
        if !PASSING.contains(&&*name) {
            put(&mut hasher, "param", &name);
            let mut raw = serde_json::Deserializer::from_str(raw.get());
            Walk(&mut hasher).deserialize(&mut raw).ok()?;
        }
    }
    Some(Essence(*hasher.finalize().as_bytes()))
}

/// A digest of what must be the same: the request itself is kept already, and as a tree it takes many times as much.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Essence([u8; 32]);

#[derive(serde::Deserialize)]
struct Asked<'m> {
    method: String,
    #[serde(borrow)]
    params: BTreeMap<String, &'m RawValue>,
}

fn put(hasher: &mut Hasher, kind: &str, text: &str) {
    hasher.update(kind.as_bytes());
    hasher.update(&(text.len() as u64).to_le_bytes());
    hasher.update(text.as_bytes());
}

/// Reads a value into a digest, in which the order of members does not matter.
struct Walk<'h>(&'h mut Hasher);

impl<'de> DeserializeSeed<'de> for Walk<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<(), D::Error> {
        from.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Walk<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        put(self.0, "null", "");
        Ok(())
    }

    fn visit_bool<E>(self, value: bool) -> Result<(), E> {
        put(self.0, "bool", if value { "true" } else { "false" });
        Ok(())
    }

    fn visit_i64<E>(self, value: i64) -> Result<(), E> {
        put(self.0, "number", &value.to_string());
        Ok(())
    }

    fn visit_u64<E>(self, value: u64) -> Result<(), E> {
        put(self.0, "number", &value.to_string());
        Ok(())
    }

    fn visit_f64<E>(self, value: f64) -> Result<(), E> {
        put(self.0, "float", &value.to_string());
        Ok(())
    }

    fn visit_str<E>(self, value: &str) -> Result<(), E> {
        put(self.0, "text", value);
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<(), A::Error> {
        put(self.0, "list", "");
        while items.next_element_seed(Walk(self.0))?.is_some() {}
        put(self.0, "end", "");
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<(), A::Error> {
        let mut all = Vec::new();
        while let Some(name) = members.next_key::<Cow<'de, str>>()? {
            let mut member = Hasher::new();
            put(&mut member, "name", &name);
            members.next_value_seed(Walk(&mut member))?;
            all.push(*member.finalize().as_bytes());
        }
        all.sort_unstable();
        put(self.0, "object", &all.len().to_string());
        for member in all {
            self.0.update(&member);
        }
        Ok(())
    }
}

/// Whether nobody but the client may answer.
#[must_use]
pub fn only_client(ticket: &Ticket<Frame>) -> bool {
    ticket.approvers().iter().all(|c| *c == Channel::Client)
}

/// Takes what the caller's person has said about a call; gives the reason where that ends it.
#[must_use]
pub fn take_answer(
    gate: &Gate,
    caller: &str,
    ticket: &Ticket<Frame>,
    answer: Option<&Value>,
) -> Option<Reason> {
    let only_client = only_client(ticket);
    let said = answer.map_or(Said::Nothing, |answer| {
        form::said(answer, caller, only_client)
    });
    let is_taken = said.is_taken(gate, &ticket.id().to_string());
    (!is_taken && only_client && !ticket.is_settled()).then_some(Reason::ApprovalUnfit)
}

/// Whether a request says of its client that it can show its person a form.
#[must_use]
pub fn elicits(frame: &[u8]) -> bool {
    let says = || {
        let scan = scan_request(frame, &Bounds::default()).ok()?;
        let meta: Value = serde_json::from_str(member(&scan.params, "_meta")?).ok()?;
        let capabilities = meta.get(request::META_CAPABILITIES)?.to_string();
        Some(form::can_elicit(&capabilities))
    };
    says().unwrap_or(false)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_comes_back_must_be_the_same_request() {
        let first = br#"{"id":1,"method":"tools/call","params":{"name":"a","arguments":{"x":1,"y":2},"_meta":{"k":1}}}"#;
        let same = br#"{"params":{"requestState":"s","inputResponses":{},"arguments":{"y":2,"x":1},"name":"a"},"id":"2","method":"tools/call"}"#;
        assert_eq!(essence(first), essence(same));
        for other in [
            br#"{"method":"tools/call","params":{"name":"a","arguments":{"x":1,"y":3}}}"#
                .as_slice(),
            br#"{"method":"prompts/get","params":{"name":"a","arguments":{"x":1,"y":2}}}"#,
            br#"{"method":"tools/call","params":{"name":"b","arguments":{"x":1,"y":2}}}"#,
            br#"{"method":"tools/call","params":{"name":"a","arguments":{"x":1,"y":2},"more":1}}"#,
            br#"{"method":"tools/call","params":{"name":"a","arguments":{"x":[1],"y":2}}}"#,
            br#"{"method":"tools/call","params":{"name":"a","arguments":{"x":"1","y":2}}}"#,
            br#"{"method":"tools/call","params":{"name":"a","arguments":{"x":1,"z":2}}}"#,
        ] {
            assert_ne!(essence(first), essence(other));
        }
        assert_eq!(essence(b"{}"), None);
    }
}
