//! Frames as `wire` writes them, with no gate between: what a server executes of them is what their
//! scan says.

use mocks::ambiguous::{Ambiguous, Call};
use wire::canonical::NameTree;
use wire::jsonrpc::{Kind, member, string};
use wire::members::Shape;
use wire::{Bounds, Canonical, scan_reply};

/// What the protocol knows of the params of a call.
const PARAMS: Shape = Shape {
    known: &["name", "arguments", "_meta", "task"],
    below: &[("_meta", &Shape::flat(&["progressToken"]))],
};

/// The frame as it is written, where nothing of it is refused.
pub fn written(frame: &Ambiguous) -> Option<Canonical> {
    let mut declared = NameTree::default();
    for name in ["path", "text", "count"] {
        declared.declare(name);
    }
    let canonical = Canonical::of(&frame.bytes, &Bounds::default()).ok()?;
    canonical.envelope().ok()?;
    canonical.params_are(&PARAMS).ok()?;
    canonical.arguments_are(&declared).ok()?;
    Some(canonical)
}

/// Every frame that is not refused, as it is written.
pub fn all(frames: &[Ambiguous]) -> Vec<Ambiguous> {
    let written = |frame: &Ambiguous| {
        let bytes = written(frame)?.into_bytes();
        let frame = frame.clone();
        Some(Ambiguous { bytes, ..frame })
    };
    frames.iter().filter_map(written).collect()
}

/// The tool and the path of a frame that calls one.
pub fn call(frame: &Ambiguous) -> Option<(String, String)> {
    let canonical = written(frame)?;
    let Kind::Request { method, .. } = canonical.envelope().ok()?.kind else {
        return None;
    };
    let text = |raw: &str| string(raw).map(std::borrow::Cow::into_owned);
    let arguments = canonical.param("arguments")?;
    let arguments = scan_reply(arguments.as_bytes(), &Bounds::default()).ok()?;
    let path = member(&arguments.members, "path").and_then(text);
    (method == "tools/call").then_some((text(canonical.param("name")?)?, path?))
}

/// Whether the policy of these runs denies a call.
pub fn is_denied(tool: &str, path: &str) -> bool {
    tool != Call::TOOL || !path.starts_with(Call::ALLOWED) || path.contains("..")
}
