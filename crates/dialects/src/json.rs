//! Looking into raw JSON values that were validated before, or that come from a provider.

use std::borrow::Cow;

use wire::scan::{Bounds, Member, scan_reply};
use wire::text::unescape;

/// Returns the members of an object; empty if it is none or is no JSON.
#[must_use]
pub fn members(raw: &str) -> Vec<Member<'_>> {
    if !raw.trim_start().starts_with('{') {
        return Vec::new();
    }
    scan_reply(raw.as_bytes(), &Bounds::default()).map_or_else(|_| Vec::new(), |scan| scan.members)
}

/// Returns whether this is an object.
#[must_use]
pub(super) fn is_object(raw: &str) -> bool {
    raw.trim_start().starts_with('{') && scan_reply(raw.as_bytes(), &Bounds::default()).is_ok()
}

/// Returns the elements of an array; empty if it is none or is no JSON.
#[must_use]
pub fn elements(raw: &str) -> Vec<&str> {
    if !raw.trim_start().starts_with('[') {
        return Vec::new();
    }
    let scan = scan_reply(raw.as_bytes(), &Bounds::default());
    scan.ok().and_then(|scan| scan.batch).unwrap_or_default()
}

/// Returns the same; `None` for an array with more elements than are read.
#[must_use]
pub(super) fn all_elements(raw: &str) -> Option<Vec<&str>> {
    if !raw.trim_start().starts_with('[') {
        return Some(Vec::new());
    }
    scan_reply(raw.as_bytes(), &Bounds::default()).ok()?.batch
}

/// Returns the text of a string.
#[must_use]
pub fn text(raw: &str) -> Option<Cow<'_, str>> {
    unescape(raw.trim().strip_prefix('"')?.strip_suffix('"')?)
}

/// Returns a whole number that is not negative, also if it is spelled `7.0` or `1e3`.
#[must_use]
pub fn number(raw: &str) -> Option<u64> {
    let raw = raw.trim();
    if let Ok(number) = raw.parse() {
        return Some(number);
    }
    let number: f64 = raw.parse().ok()?;
    let fits = (0.0..9.0e15).contains(&number) && number.fract() == 0.0;
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "it is whole and within 2^53"
    )]
    fits.then_some(number as u64)
}

/// Returns the raw value of a member.
pub(super) fn member<'a>(members: &[Member<'a>], name: &str) -> Option<&'a str> {
    let found = members.iter().find(|(own, _)| own == name);
    found
        .map(|(_, value)| *value)
        .filter(|value| *value != "null")
}
