//! The validating pass: one walk over a frame that proves it well-formed and notes where things are.
//!
//! What it proves: UTF-8, RFC 8259 grammar, depth within the bound, no member name twice in one
//! object (compared after unescaping, because that is how the receiver compares), no lone surrogate.
//! What it notes: the members of the message and of its payload, and every string below
//! `params.arguments` that may be a path. Cost: at most 2 µs per KiB.
//!
//! The same walk serves two ends: [`scan_request`] and [`scan_reply`] note slices of the frame as it
//! came, [`crate::canonical`] writes the frame anew and notes where things stand in what it wrote.

mod names;
mod sink;
mod tokens;
mod walk;

use std::borrow::Cow;

use crate::error::WireError;
pub(crate) use names::is_unique;
pub(crate) use sink::Sink;
use sink::Slices;
pub(crate) use tokens::JsonString;
pub(crate) use walk::{Rules, Walker};

/// The members of JSON-RPC 2.0's messages, of every kind and in every revision of MCP.
pub const MEMBERS: &[&str] = &["jsonrpc", "id", "method", "params", "result", "error"];

/// Named limits of one pass.
#[derive(Debug, Clone, Copy)]
pub struct Bounds {
    /// Deepest nesting of arrays and objects.
    pub depth_max: usize,
    /// Most members in flight (all open objects together) and most noted leaves.
    pub members_max: usize,
}

impl Default for Bounds {
    fn default() -> Self {
        Self {
            depth_max: 128,
            members_max: 65_536,
        }
    }
}

/// What a pass notes, with names of type `N` and parts of the text of type `P`.
#[derive(Debug)]
pub struct Notes<N, P> {
    /// Members of the message itself.
    pub members: Vec<(N, P)>,
    /// Members of its `params`, where that is an object.
    pub params: Vec<(N, P)>,
    /// Members of its `result` or `error`, where that is an object.
    pub reply: Vec<(N, P)>,
    /// Strings below `params.arguments`.
    pub leaves: Vec<NotedLeaf<N, P>>,
    /// Objects below `params.arguments`, itself included.
    pub objects: Vec<NotedObject>,
    /// Elements, where the frame is an array (a JSON-RPC batch).
    pub batch: Option<Vec<P>>,
}

impl<N, P> Default for Notes<N, P> {
    fn default() -> Self {
        Self {
            members: Vec::new(),
            params: Vec::new(),
            reply: Vec::new(),
            leaves: Vec::new(),
            objects: Vec::new(),
            batch: None,
        }
    }
}

/// A string below `params.arguments`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NotedLeaf<N, P> {
    /// The nearest member name above the string, unescaped; empty where there is none.
    pub key: N,
    /// The string without quotes, still escaped.
    pub value: P,
    /// The string is itself a member name.
    pub is_name: bool,
    /// A listed ancestor's member name, from the top of `arguments` down to but excluding `key`:
    /// only the outermost is kept.
    pub top: N,
    /// The innermost object around the string, as an index of [`Notes::objects`]; `None` where
    /// `arguments` is an array.
    pub object: Option<u32>,
}

/// An object below `params.arguments`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NotedObject {
    /// The leaf that is the name of the member in which the object stands, itself or in an array.
    /// `None` for `arguments`.
    pub name: Option<u32>,
}

/// A string below `params.arguments`, borrowed from its frame.
pub type Leaf<'a> = NotedLeaf<Cow<'a, str>, &'a str>;

/// A member of an object: its unescaped name and its value as it came.
pub type Member<'a> = (Cow<'a, str>, &'a str);

/// The outcome of the pass: slices of the frame.
pub type Scan<'a> = Notes<Cow<'a, str>, &'a str>;

/// Walks a request or any frame that is to be judged: every check at every depth.
///
/// # Errors
/// The first fault, with its byte offset.
pub fn scan_request<'a>(frame: &'a [u8], bounds: &Bounds) -> Result<Scan<'a>, WireError> {
    Ok(Walker::new(frame, bounds, Rules::Request, Slices::of)?
        .run()?
        .0)
}

/// Walks a reply: grammar and depth everywhere, member names only in the envelope.
///
/// # Errors
/// The first fault, with its byte offset.
pub fn scan_reply<'a>(frame: &'a [u8], bounds: &Bounds) -> Result<Scan<'a>, WireError> {
    Ok(Walker::new(frame, bounds, Rules::Reply, Slices::of)?
        .run()?
        .0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::WireErrorKind as K;

    fn kind(frame: &[u8]) -> Result<(), K> {
        scan_request(frame, &Bounds::default())
            .map(|_| ())
            .map_err(|e| e.kind)
    }

    #[test]
    fn accepts_and_refuses() {
        let deep = |n: usize| [vec![b'['; n], vec![b']'; n]].concat();
        let cases: Vec<(Vec<u8>, Result<(), K>)> = vec![
            (
                br#"{"a":[1,-0.5e+3,true,false,null,"x\u00e9"],"b":{}}"#.to_vec(),
                Ok(()),
            ),
            (b" [ ] ".to_vec(), Ok(())),
            (br#"{"a":1,"a":2}"#.to_vec(), Err(K::DuplicateKey)),
            (
                br#"{"a":{"b":[{"c":1,"c":2}]}}"#.to_vec(),
                Err(K::DuplicateKey),
            ),
            (br#"{"a":1,"\u0061":2}"#.to_vec(), Err(K::DuplicateKey)),
            (br#"{"a":"\ud800"}"#.to_vec(), Err(K::Syntax)),
            (b"{\"a\":\"\x01\"}".to_vec(), Err(K::Syntax)),
            (b"{\"a\":\xff}".to_vec(), Err(K::NotUtf8)),
            (b"\xef\xbb\xbf{}".to_vec(), Err(K::Syntax)),
            (b"{\"a\":NaN}".to_vec(), Err(K::Syntax)),
            (b"{\"a\":01}".to_vec(), Err(K::Syntax)),
            (b"{\"a\":1.}".to_vec(), Err(K::Syntax)),
            (b"{\"a\":1,}".to_vec(), Err(K::Syntax)),
            (b"{} {}".to_vec(), Err(K::Syntax)),
            (b"".to_vec(), Err(K::Syntax)),
            (b"{\"a\":\"\\\"}".to_vec(), Err(K::Syntax)),
            (deep(128), Ok(())),
            (deep(129), Err(K::TooDeep)),
            (deep(10_000), Err(K::TooDeep)),
        ];
        for (frame, expect) in cases {
            assert_eq!(
                kind(&frame),
                expect,
                "{}",
                String::from_utf8_lossy(&frame[..frame.len().min(60)])
            );
        }
    }

    #[test]
    fn duplicates_are_found_among_many_names() {
        let mut names: Vec<String> = (0..500).map(|i| format!("\"k{i}\":0")).collect();
        assert_eq!(kind(format!("{{{}}}", names.join(",")).as_bytes()), Ok(()));
        names.push("\"k250\":1".into());
        assert_eq!(
            kind(format!("{{{}}}", names.join(",")).as_bytes()),
            Err(K::DuplicateKey)
        );
    }

    #[test]
    fn notes_members_params_and_leaves() {
        let frame = br#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"copy","_meta":{"path":"/no"},
            "arguments":{"path":"/a","list":["x",{"file":"b\/c"}],"o":{"/key":"v"},"n":3}}}"#;
        let scan = scan_request(frame, &Bounds::default()).unwrap();
        let names: Vec<_> = scan.members.iter().map(|(k, _)| k.as_ref()).collect();
        assert_eq!(names, ["jsonrpc", "id", "method", "params"]);
        assert_eq!(
            scan.params.first().unwrap(),
            &(Cow::Borrowed("name"), "\"copy\"")
        );
        let leaves: Vec<_> = scan
            .leaves
            .iter()
            .filter(|l| !l.is_name)
            .map(|l| (l.key.as_ref(), l.value))
            .collect();
        assert_eq!(
            leaves,
            [
                ("path", "/a"),
                ("list", "x"),
                ("file", "b\\/c"),
                ("/key", "v")
            ]
        );
        assert!(scan.leaves.iter().any(|l| l.is_name && l.value == "/key"));
        assert_eq!(
            scan.leaves.iter().find(|l| l.value == "b\\/c").unwrap().top,
            "list"
        );
    }

    #[test]
    fn replies_are_checked_in_their_envelope_only() {
        let inner = br#"{"id":1,"result":{"a":1,"a":2}}"#;
        assert!(scan_reply(inner, &Bounds::default()).is_ok());
        assert!(scan_reply(br#"{"id":1,"id":2}"#, &Bounds::default()).is_err());
        assert_eq!(
            scan_reply(b"[1,2]", &Bounds::default()).unwrap().batch,
            Some(vec!["1", "2"])
        );
    }
}
