//! One list out of those of several servers.

use std::sync::Arc;

use serde_json::json;
use serde_json::value::RawValue;
use wire::jsonrpc::{member, string};
use wire::{Bounds, Era, scan_reply};

use super::cursor::Cursor;
use super::places::{self, Step};
use super::spelling::Spelling;
use crate::message::frames;
use crate::message::method::List;

/// The member of `_meta` that names the servers whose part of a list is missing.
const META_MISSING: &str = "durward/missing";
/// The member of `_meta` in which a server of the Modern era names itself.
const META_SERVER: &str = "io.modelcontextprotocol/serverInfo";
/// The code of an answer to a method that a server does not have.
const UNKNOWN_METHOD: i64 = -32601;

/// A server that has no part in an answer, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Missing {
    pub server: String,
    pub reason: String,
    pub message: String,
}

/// A list that is being put together.
#[derive(Debug)]
pub(crate) struct Merged {
    list: List,
    entries: Vec<Arc<str>>,
    more: Cursor,
    missing: Vec<Missing>,
    era: Era,
    /// The shortest time for which a part of it holds.
    ttl_ms: Option<u64>,
}

impl Merged {
    /// Nothing yet, for a client of this era.
    pub fn new(list: List, era: Era) -> Self {
        Self {
            list,
            entries: Vec::new(),
            more: Cursor::default(),
            missing: Vec::new(),
            era,
            ttl_ms: None,
        }
    }

    /// A server has no part in it.
    pub fn lacks(&mut self, missing: Missing) {
        self.missing.push(missing);
    }

    /// Takes a server's part.
    pub fn take(&mut self, server: &str, part: Part) {
        match part.0 {
            Ok(Entries { text, next, ttl_ms }) => {
                self.ttl_ms = Some(self.ttl_ms.map_or(ttl_ms, |least| least.min(ttl_ms)));
                self.entries.extend(text);
                if let Some(cursor) = next {
                    self.more.0.insert(server.to_owned(), cursor);
                }
            }
            Err((reason, message)) => self.missing.push(Missing {
                server: server.to_owned(),
                reason,
                message,
            }),
        }
    }

    /// What all servers have listed, entry by entry.
    pub fn entries(&self) -> Vec<&RawValue> {
        self.entries
            .iter()
            .flat_map(|text| of_server(text))
            .collect()
    }

    /// Whether some server has further pages.
    pub fn has_more(&self) -> bool {
        !self.more.0.is_empty()
    }

    /// Where the next pages begin, if there are any.
    pub fn cursor(&self) -> Option<Cursor> {
        self.has_more().then(|| self.more.clone())
    }

    /// Puts these entries in the place of all that was listed.
    pub fn replace(&mut self, entries: &str) {
        self.entries = vec![Arc::from(entries)];
        self.more = Cursor::default();
    }

    /// The answer to the client.
    pub fn answer(self, id: &str) -> Vec<u8> {
        let head = format!(
            "{{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":{{\"{}\":[",
            self.list.member()
        );
        let mut tail = String::from("]");
        if let Some(cursor) = self.more.text() {
            tail.push_str(&format!(",\"nextCursor\":\"{cursor}\""));
        }
        match self.era {
            Era::Legacy if self.missing.is_empty() => {}
            Era::Legacy => tail.push_str(&format!(",\"_meta\":{}", meta(&self.missing))),
            Era::Modern => {
                let ttl_ms = ttl_ms(self.ttl_ms, &self.missing);
                tail.push_str(&format!(",{}", of_modern(ttl_ms, &self.missing)));
            }
        }
        tail.push_str("}}");
        // Written once: it may be of megabytes.
        let of_entries: usize = self.entries.iter().map(|entries| entries.len() + 1).sum();
        let mut answer = Vec::with_capacity(head.len() + of_entries + tail.len());
        answer.extend_from_slice(head.as_bytes());
        for (at, entries) in self.entries.iter().enumerate() {
            if at > 0 {
                answer.push(b',');
            }
            answer.extend_from_slice(entries.as_bytes());
        }
        answer.extend_from_slice(tail.as_bytes());
        answer
    }
}

/// A server's part in a list, or why there is none: reason and message.
#[derive(Debug, Clone)]
pub(crate) struct Part(Result<Entries, (String, String)>);

/// What a server has listed.
#[derive(Debug, Clone, Default)]
struct Entries {
    /// As it stands between the brackets; none where there is nothing.
    text: Option<Arc<str>>,
    /// The cursor of its next page.
    next: Option<String>,
    /// For how long it says that this holds; not at all where it does not say.
    ttl_ms: u64,
}

impl Part {
    /// Read from a server's answer; `spelling` is none where its names stay as they are.
    pub fn of(list: List, spelling: Option<&Spelling>, answer: &[u8]) -> Self {
        Self(Self::read(list, spelling, answer))
    }

    /// Its entries, where the server has no more of them.
    pub fn whole(&self) -> Option<&str> {
        match &self.0 {
            Ok(Entries {
                text, next: None, ..
            }) => Some(text.as_deref().unwrap_or_default()),
            Ok(_) | Err(_) => None,
        }
    }

    fn read(
        list: List,
        spelling: Option<&Spelling>,
        answer: &[u8],
    ) -> Result<Entries, (String, String)> {
        let garbage = || {
            (
                "upstream_garbage".to_owned(),
                "its list is not valid".to_owned(),
            )
        };
        let scan = scan_reply(answer, &Bounds::default()).map_err(|_| garbage())?;
        if let Some(error) = member(&scan.members, "error") {
            if frames::error_code(error) == Some(UNKNOWN_METHOD) {
                return Ok(Entries::default());
            }
            return Err(why(error));
        }
        let entries = member(&scan.reply, list.member()).ok_or_else(garbage)?;
        let next = member(&scan.reply, "nextCursor").and_then(string);
        let spelled = match spelling {
            Some(spelling) => String::from_utf8(spelled(list, spelling, entries)),
            None => Ok(entries.to_owned()),
        };
        let spelled = spelled.map_err(|_| garbage())?;
        let inner = spelled
            .trim()
            .strip_prefix('[')
            .and_then(|s| s.strip_suffix(']'));
        let inner = inner.ok_or_else(garbage)?.trim();
        Ok(Entries {
            text: (!inner.is_empty()).then(|| Arc::from(inner)),
            next: next.map(std::borrow::Cow::into_owned),
            ttl_ms: ttl_of(member(&scan.reply, "ttlMs")),
        })
    }
}

fn spelled(list: List, spelling: &Spelling, entries: &str) -> Vec<u8> {
    let (name, is_uri) = match list {
        List::Tools | List::Prompts => ("name", false),
        List::Resources => ("uri", true),
        List::Templates => ("uriTemplate", true),
    };
    let names = places::at(entries, &[Step::Each, Step::In(name)]);
    let edits = names.into_iter().filter_map(|raw| {
        let own = string(raw)?;
        let spelled = match is_uri {
            true => spelling.uri(&own),
            false => spelling.name(&own),
        };
        let place = places::place_of(entries, raw)?;
        Some((place, serde_json::Value::from(spelled).to_string()))
    });
    places::edited(entries.as_bytes(), edits.collect())
}

/// What is said of servers that are missing.
pub(super) fn meta(missing: &[Missing]) -> serde_json::Value {
    let row = |missing: &Missing| json!({"server": missing.server, "reason": missing.reason, "message": missing.message});
    let rows: Vec<serde_json::Value> = missing.iter().map(row).collect();
    json!({ META_MISSING: rows })
}

/// What every result of the Modern era has, and what caches may do with one that was put together for one caller;
/// members without their braces.
pub(super) fn of_modern(ttl_ms: u64, missing: &[Missing]) -> String {
    let mut meta = match missing {
        [] => json!({}),
        some => meta(some),
    };
    if let Some(meta) = meta.as_object_mut() {
        let server = json!({"name": "durward", "version": env!("CARGO_PKG_VERSION")});
        meta.insert(META_SERVER.into(), server);
    }
    format!(
        "\"resultType\":\"complete\",\"ttlMs\":{ttl_ms},\"cacheScope\":\"private\",\"_meta\":{meta}"
    )
}

/// For how long all parts of a result hold. A server that is missing may be there the next moment.
pub(super) fn ttl_ms(shortest: Option<u64>, missing: &[Missing]) -> u64 {
    match missing {
        [] => shortest.unwrap_or_default(),
        _ => 0,
    }
}

/// What a server says of how long its result holds.
pub(super) fn ttl_of(raw: Option<&str>) -> u64 {
    raw.and_then(|raw| raw.parse().ok()).unwrap_or_default()
}

/// The result that a server has answered with, or why it has no part in ours.
pub(crate) fn result_of(server: &str, answer: &[u8]) -> Result<String, Missing> {
    let missing = |(reason, message)| Missing {
        server: server.to_owned(),
        reason,
        message,
    };
    let garbage = || {
        (
            "upstream_garbage".to_owned(),
            "its answer is not valid".to_owned(),
        )
    };
    let scan = scan_reply(answer, &Bounds::default()).map_err(|_| missing(garbage()))?;
    match (
        member(&scan.members, "result"),
        member(&scan.members, "error"),
    ) {
        (Some(result), _) => Ok(result.to_owned()),
        (None, Some(error)) => Err(missing(why(error))),
        (None, None) => Err(missing(garbage())),
    }
}

/// Why a server has answered with an error.
fn why(error: &str) -> (String, String) {
    let error: serde_json::Value = serde_json::from_str(error).unwrap_or_default();
    let text =
        |value: Option<&serde_json::Value>| value.and_then(|v| v.as_str()).map(str::to_owned);
    let reason = text(error.get("data").and_then(|data| data.get("reason")));
    let message = text(error.get("message"));
    (
        reason.unwrap_or_else(|| "refused_by_server".to_owned()),
        message.unwrap_or_else(|| "the server answered with an error".to_owned()),
    )
}

/// The entries of one server, which stand between brackets that were taken off.
fn of_server(text: &str) -> Vec<&RawValue> {
    let mut found = Vec::new();
    let mut rest = text.trim();
    while !rest.is_empty() {
        let mut values = serde_json::Deserializer::from_str(rest).into_iter::<&RawValue>();
        let Some(Ok(entry)) = values.next() else {
            break;
        };
        let end = values.byte_offset();
        found.push(entry);
        rest = rest.get(end..).unwrap_or_default();
        rest = rest.trim_start().trim_start_matches(',').trim_start();
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(result: &str) -> Vec<u8> {
        format!(r#"{{"jsonrpc":"2.0","id":1,"result":{result}}}"#).into_bytes()
    }

    fn take(merged: &mut Merged, server: &str, spelling: Option<&Spelling>, answer: &[u8]) {
        merged.take(server, Part::of(List::Tools, spelling, answer));
    }

    #[test]
    fn lists_become_one_and_a_server_without_an_answer_takes_nothing_away() {
        let mut merged = Merged::new(List::Tools, Era::Legacy);
        let (a, b) = (Spelling::of(&Arc::from("a")), Spelling::of(&Arc::from("b")));
        take(
            &mut merged,
            "a",
            Some(&a),
            &answer(r#"{"tools":[{"name":"x","n":1e400}],"nextCursor":"2"}"#),
        );
        take(&mut merged, "b", Some(&b), &answer(r#"{"tools":[ ]}"#));
        let none = br#"{"jsonrpc":"2.0","id":1,"error":{"code":-32601,"message":"no"}}"#;
        take(&mut merged, "c", None, none);
        let dead = br#"{"jsonrpc":"2.0","id":1,"error":{"code":-32603,"message":"it ended","data":{"reason":"upstream_died"}}}"#;
        take(&mut merged, "d", None, dead);
        take(&mut merged, "e", None, b"{");
        let text = String::from_utf8(merged.answer("7")).unwrap();
        assert!(
            text.contains(r#""tools":[{"name":"a__x","n":1e400}],"nextCursor":"durward."#),
            "{text}"
        );
        assert!(
            text.contains(r#"{"message":"it ended","reason":"upstream_died","server":"d"}"#),
            "{text}"
        );
        assert!(
            !text.contains("\"server\":\"c\"") && text.contains("\"server\":\"e\""),
            "{text}"
        );
    }

    #[test]
    fn a_list_of_the_modern_era_holds_for_as_long_as_each_part_of_it_for_its_caller_alone() {
        let of = |answers: &[&[u8]]| -> serde_json::Value {
            let mut merged = Merged::new(List::Tools, Era::Modern);
            for (at, answer) in answers.iter().enumerate() {
                take(&mut merged, &format!("s{at}"), None, answer);
            }
            let answer: serde_json::Value = serde_json::from_slice(&merged.answer("1")).unwrap();
            assert_eq!(answer["result"]["resultType"], "complete");
            assert_eq!(answer["result"]["cacheScope"], "private");
            assert_eq!(answer["result"]["_meta"][META_SERVER]["name"], "durward");
            answer["result"].clone()
        };
        let long = answer(r#"{"tools":[],"ttlMs":9000,"cacheScope":"public"}"#);
        let short = answer(r#"{"tools":[],"ttlMs":70}"#);
        let unsaid = answer(r#"{"tools":[]}"#);
        let dead = br#"{"jsonrpc":"2.0","id":1,"error":{"code":-32603,"message":"it ended"}}"#;
        assert_eq!(of(&[&long, &short])["ttlMs"], 70);
        assert_eq!(of(&[&long, &unsaid])["ttlMs"], 0);
        let missing = of(&[&long, dead]);
        assert_eq!(missing["ttlMs"], 0);
        assert_eq!(missing["_meta"][META_MISSING][0]["server"], "s1");
    }

    #[test]
    fn resources_are_spelled_by_their_addresses() {
        for (list, entry, expect) in [
            (
                List::Resources,
                r#"{"uri":"x:y","name":"n"}"#,
                r#"{"uri":"a+x:y","name":"n"}"#,
            ),
            (
                List::Templates,
                r#"{"uriTemplate":"x:{y}"}"#,
                r#"{"uriTemplate":"a+x:{y}"}"#,
            ),
            (List::Prompts, r#"{"name":"p"}"#, r#"{"name":"a__p"}"#),
        ] {
            let mut merged = Merged::new(list, Era::Legacy);
            let result = format!(r#"{{"{}":[{entry}]}}"#, list.member());
            let spelling = Spelling::of(&Arc::from("a"));
            merged.take("a", Part::of(list, Some(&spelling), &answer(&result)));
            let text = String::from_utf8(merged.answer("1")).unwrap();
            assert!(text.contains(expect), "{text}");
        }
    }
}
