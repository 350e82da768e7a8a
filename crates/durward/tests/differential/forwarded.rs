//! A gate without canonical frames, in the test alone: it judges its own reading of a frame and forwards
//! the bytes as they came.

use mocks::ambiguous::AmbiguousFrame;
use wire::jsonrpc::{member, string};
use wire::{Bounds, scan_request};

use crate::written::{is_denied, led};

/// The tool and the paths that this gate reads in a frame: of a call that it allows, else none.
pub fn call(frame: &AmbiguousFrame) -> Option<(String, Vec<String>)> {
    let scan = scan_request(&frame.bytes, &Bounds::default()).ok()?;
    let text = |raw: &str| string(raw).map(std::borrow::Cow::into_owned);
    if text(member(&scan.members, "method")?)? != "tools/call" {
        return None;
    }
    let named = |key: &str| ["path", "paths"].contains(&key);
    let paths = scan
        .leaves
        .iter()
        .filter(|leaf| named(leaf.key.as_ref()) && !leaf.is_name)
        .filter_map(|leaf| wire::text::unescape(leaf.value))
        .map(|path| led(&path))
        .collect::<Vec<_>>();
    let tool = text(member(&scan.params, "name")?)?;
    (!paths.is_empty() && !is_denied(&tool, &paths)).then_some((tool, paths))
}

/// What it forwards: calls that it allows, and whatever it reads as no call. What it cannot read, it
/// refuses.
pub fn all(frames: &[AmbiguousFrame]) -> Vec<AmbiguousFrame> {
    let passes = |frame: &&AmbiguousFrame| {
        let Ok(scan) = scan_request(&frame.bytes, &Bounds::default()) else {
            return false;
        };
        let method = member(&scan.members, "method").and_then(string);
        method.is_none_or(|method| method != "tools/call") || call(frame).is_some()
    };
    frames.iter().filter(passes).cloned().collect()
}
