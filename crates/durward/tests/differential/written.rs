//! Frames as `wire` writes them, with no gate between: what a server executes of them is what their
//! scan says.

use mocks::ambiguous::{AmbiguousFrame, ArgumentStream, HiddenCall};
use serde_json::Value;
use wire::canonical::NameTree;
use wire::jsonrpc::{Kind, string};
use wire::members::Shape;
use wire::{Bounds, Canonical};

/// What the protocol knows of the params of a call.
const PARAMS: Shape = Shape {
    known: &["name", "arguments", "_meta", "task"],
    below: &[("_meta", &Shape::flat(&["progressToken"]))],
};

/// The frame as it is written, where nothing of it is refused.
pub fn written(frame: &AmbiguousFrame) -> Option<Canonical> {
    let mut declared = NameTree::default();
    for name in ["path", "text", "count", "paths", "below", "lines", "flags"] {
        declared.declare(name);
    }
    let canonical = Canonical::of(&frame.bytes, &Bounds::default()).ok()?;
    canonical.envelope().ok()?;
    canonical.params_are(&PARAMS).ok()?;
    canonical.arguments_are(&declared).ok()?;
    Some(canonical)
}

/// Every frame that is not refused, as it is written.
pub fn all(frames: &[AmbiguousFrame]) -> Vec<AmbiguousFrame> {
    let written = |frame: &AmbiguousFrame| {
        let bytes = written(frame)?.into_bytes();
        let frame = frame.clone();
        Some(AmbiguousFrame { bytes, ..frame })
    };
    frames.iter().filter_map(written).collect()
}

/// The tool and the paths of a frame that calls one.
pub fn call(frame: &AmbiguousFrame) -> Option<(String, Vec<String>)> {
    let canonical = written(frame)?;
    let Kind::Request { method, .. } = canonical.envelope().ok()?.kind else {
        return None;
    };
    let tool = string(canonical.param("name")?)?.into_owned();
    let arguments = serde_json::from_str(canonical.param("arguments")?).ok()?;
    (method == "tools/call").then(|| (tool, opened(&arguments)))
}

/// The paths that a tool opens of its arguments.
fn opened(arguments: &Value) -> Vec<String> {
    let list = arguments["paths"].as_array().into_iter().flatten();
    let single = ["/path", "/below/path"].map(|at| arguments.pointer(at));
    let all = single
        .into_iter()
        .flatten()
        .chain(list)
        .filter_map(Value::as_str);
    all.map(led).collect()
}

/// Whether the policy of these runs denies a call that opens these places.
pub fn is_denied(tool: &str, paths: &[String]) -> bool {
    let is_allowed = |path: &String| {
        let below = path.strip_prefix(HiddenCall::ALLOWED);
        below.is_some_and(|below| below.starts_with('/'))
    };
    ![HiddenCall::TOOL, ArgumentStream::TOOL].contains(&tool) || !paths.iter().all(is_allowed)
}

/// Where a path leads to by its text: steps to the same place and up are taken.
pub fn led(path: &str) -> String {
    let mut parts: Vec<&str> = Vec::new();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => drop(parts.pop()),
            part => parts.push(part),
        }
    }
    let root = if path.starts_with('/') { "/" } else { "" };
    format!("{root}{}", parts.join("/"))
}
