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

use smallvec::SmallVec;

use crate::error::WireError;
pub(crate) use names::is_unique;
pub(crate) use sink::Sink;
use sink::Slices;
pub(crate) use tokens::JsonString;
pub(crate) use walk::{Rules, Walker};

/// The members of JSON-RPC 2.0's messages, of every kind and in every revision of MCP.
pub const MEMBERS: &[&str] = &["jsonrpc", "id", "method", "params", "result", "error"];

/// A member of a message, in the order of [`MEMBERS`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Own {
    /// `jsonrpc`.
    Jsonrpc,
    /// `id`.
    Id,
    /// `method`.
    Method,
    /// `params`.
    Params,
    /// `result`.
    Result,
    /// `error`.
    Error,
}

impl Own {
    /// The member of this name.
    #[must_use]
    pub fn of(name: &str) -> Option<Self> {
        Some(match name {
            "jsonrpc" => Self::Jsonrpc,
            "id" => Self::Id,
            "method" => Self::Method,
            "params" => Self::Params,
            "result" => Self::Result,
            "error" => Self::Error,
            _ => return None,
        })
    }

    /// Its name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Jsonrpc => "jsonrpc",
            Self::Id => "id",
            Self::Method => "method",
            Self::Params => "params",
            Self::Result => "result",
            Self::Error => "error",
        }
    }
}

/// Which of the members noted for a message are JSON-RPC's own, in the order of [`MEMBERS`].
pub(crate) type OwnPlaces = [Option<usize>; MEMBERS.len()];

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
    pub objects: SmallVec<[NotedObject; 2]>,
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
            objects: SmallVec::new(),
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
        .notes)
}

/// Walks a reply: grammar and depth everywhere, member names only in the envelope.
///
/// # Errors
/// The first fault, with its byte offset.
pub fn scan_reply<'a>(frame: &'a [u8], bounds: &Bounds) -> Result<Scan<'a>, WireError> {
    Ok(Walker::new(frame, bounds, Rules::Reply, Slices::of)?
        .run()?
        .notes)
}

#[cfg(test)]
mod tests;
