//! Frames under another spelling of an id: the bytes around it stay as they came.

use std::ops::Range;

use ::http::HeaderMap;

use wire::id::IdKey;
use wire::jsonrpc::{member, string};
use wire::scan::Scan;
use wire::{Bounds, Id, scan_reply};

use crate::message::reply::place;

/// The `_meta` member that ties a Modern notification to its subscription.
pub const META_SUBSCRIPTION: &str = "io.modelcontextprotocol/subscriptionId";

/// Where in a request the two names stand that its server answers to.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Marks {
    /// The request's id.
    pub id: Range<usize>,
    /// The value of `params._meta.progressToken`.
    pub token: Option<Range<usize>>,
    /// The client's headers that repeat arguments (`Mcp-Param-*`). They go on as they are: whether
    /// they say what the body says is for the server to see, who knows its tools.
    pub mirrored: Option<Box<HeaderMap>>,
    /// The client's headers that name its run.
    pub trace: Option<Box<HeaderMap>>,
    /// The tool that is called, where a transport has to know no more of the frame.
    pub tool: Option<Box<str>>,
}

impl Marks {
    /// Finds them in a scanned frame.
    pub fn of(frame: &[u8], scan: &Scan<'_>) -> Option<Self> {
        let id = place(frame, member(&scan.members, "id")?)?;
        let token = meta(&scan.params, "progressToken").and_then(|raw| place(frame, raw));
        Some(Self {
            id,
            token,
            mirrored: None,
            trace: None,
            tool: None,
        })
    }

    /// The request's id as spelled, and as it is compared.
    pub fn spelled_id(&self, frame: &[u8]) -> Option<(String, IdKey)> {
        let raw = std::str::from_utf8(frame.get(self.id.clone())?).ok()?;
        Some((raw.to_owned(), Id::from_raw(raw)?.key()))
    }

    /// Takes the headers that repeat arguments.
    pub fn mirror(&mut self, headers: &HeaderMap) {
        const PREFIX: &str = "mcp-param-";
        let found = headers
            .iter()
            .filter(|(name, _)| name.as_str().starts_with(PREFIX));
        for (name, value) in found {
            let mirrored = self.mirrored.get_or_insert_default();
            mirrored.append(name.clone(), value.clone());
        }
    }

    /// The frame in parts, with this number in the place of both names.
    pub fn renamed<'f>(&self, frame: &'f [u8], number: &'f str) -> Vec<&'f [u8]> {
        let mut places = [Some(self.id.clone()), self.token.clone()];
        places.sort_by_key(|place| place.as_ref().map_or(usize::MAX, |p| p.start));
        let mut parts: Vec<&[u8]> = Vec::with_capacity(5);
        let mut from = 0;
        for place in places.into_iter().flatten() {
            parts.push(frame.get(from..place.start).unwrap_or_default());
            parts.push(number.as_bytes());
            from = place.end;
        }
        parts.push(frame.get(from..).unwrap_or_default());
        parts
    }
}

/// The raw value of a member of `_meta`.
pub fn meta<'a>(params: &[wire::scan::Member<'a>], name: &str) -> Option<&'a str> {
    let meta = member(params, "_meta")?;
    if !meta.contains(name) {
        return None;
    }
    let scan = scan_reply(meta.as_bytes(), &Bounds::default()).ok()?;
    member(&scan.members, name)
}

/// The frame with other bytes at some places, which do not overlap.
pub fn edited(frame: &[u8], edits: &mut [(Range<usize>, &[u8])]) -> Vec<u8> {
    edits.sort_by_key(|(place, _)| place.start);
    let more: usize = edits.iter().map(|(_, with)| with.len()).sum();
    let mut out = Vec::with_capacity(frame.len() + more);
    let mut from = 0;
    for (place, with) in edits.iter() {
        out.extend_from_slice(frame.get(from..place.start).unwrap_or_default());
        out.extend_from_slice(with);
        from = place.end;
    }
    out.extend_from_slice(frame.get(from..).unwrap_or_default());
    out
}

/// A complete result whose `cacheScope` is public, as private: what it holds was judged for one
/// caller. `None` where nothing has to change.
pub fn made_private(result: &str) -> Option<String> {
    if !result.contains("cacheScope") {
        return None;
    }
    let scan = scan_reply(result.as_bytes(), &Bounds::default()).ok()?;
    let raw = member(&scan.members, "cacheScope")?;
    if string(raw).as_deref() == Some("private") {
        return None;
    }
    let place = place(result.as_bytes(), raw)?;
    let out = edited(result.as_bytes(), &mut [(place, b"\"private\"")]);
    String::from_utf8(out).ok()
}

/// What ties a notification of a server to an exchange.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tie {
    /// The exchange's number.
    pub number: u64,
    /// Where that number stands.
    pub at: Range<usize>,
    /// Whether it is the progress token, which has a spelling of its own.
    pub is_token: bool,
}

impl Tie {
    /// Finds it in a notification.
    pub fn of(frame: &[u8], method: &str, scan: &Scan<'_>) -> Option<Self> {
        let is_token = method == "notifications/progress";
        let raw = if is_token {
            member(&scan.params, "progressToken")?
        } else {
            meta(&scan.params, META_SUBSCRIPTION)?
        };
        let number = string(raw).map_or_else(|| raw.parse().ok(), |text| text.parse().ok())?;
        Some(Self {
            number,
            at: place(frame, raw)?,
            is_token,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wire::scan_request;

    #[test]
    fn names_are_found_where_they_stand() {
        let cases = [
            (r#"{"id":7,"method":"m"}"#, "7", None),
            (
                r#"{"params":{"_meta":{"progressToken": "a\"b"}},"id" : "x"}"#,
                "\"x\"",
                Some("\"a\\\"b\""),
            ),
            (
                r#"{"params":{"x":{"_meta":{"progressToken":1}}},"id":1.0}"#,
                "1.0",
                None,
            ),
            (
                r#"{"params":{"_meta":{"x":{"progressToken":1}}},"id":1}"#,
                "1",
                None,
            ),
        ];
        for (frame, id, token) in cases {
            let scan = scan_request(frame.as_bytes(), &Bounds::default()).unwrap();
            let marks = Marks::of(frame.as_bytes(), &scan).unwrap();
            assert_eq!(frame.get(marks.id.clone()), Some(id), "{frame}");
            assert_eq!(marks.token.map(|at| &frame[at]), token, "{frame}");
        }
    }

    #[test]
    fn notifications_are_tied_by_token_or_subscription() {
        let cases = [
            (
                "notifications/progress",
                r#"{"params":{"progressToken":12}}"#,
                Some((12, "12", true)),
            ),
            (
                "notifications/progress",
                r#"{"params":{"progressToken":"x"}}"#,
                None,
            ),
            (
                "notifications/message",
                r#"{"params":{"progressToken":12}}"#,
                None,
            ),
            (
                "notifications/tools/list_changed",
                r#"{"params":{"_meta":{"io.modelcontextprotocol/subscriptionId":"3"}}}"#,
                Some((3, "\"3\"", false)),
            ),
        ];
        for (method, frame, expect) in cases {
            let scan = scan_reply(frame.as_bytes(), &Bounds::default()).unwrap();
            let tie = Tie::of(frame.as_bytes(), method, &scan);
            let found = tie.map(|t| (t.number, &frame[t.at], t.is_token));
            assert_eq!(found, expect, "{frame}");
        }
    }

    #[test]
    fn editing_keeps_the_rest() {
        let mut edits: [(Range<usize>, &[u8]); 2] = [(4..5, b"Z"), (1..2, b"xy")];
        assert_eq!(edited(b"abcdef", &mut edits), b"axycdZf");
        assert_eq!(edited(b"ab", &mut [(0..9, b"")]), b"");
    }

    #[test]
    fn only_a_public_scope_is_changed() {
        let cases = [
            (
                r#"{"a":1,"cacheScope" : "public","b":2}"#,
                Some(r#"{"a":1,"cacheScope" : "private","b":2}"#),
            ),
            (r#"{"cacheScope":"private"}"#, None),
            (r#"{"cacheScope":7}"#, Some(r#"{"cacheScope":"private"}"#)),
            (r#"{"inner":{"cacheScope":"public"}}"#, None),
            (r#"{}"#, None),
        ];
        for (result, expect) in cases {
            assert_eq!(made_private(result).as_deref(), expect, "{result}");
        }
    }
}
