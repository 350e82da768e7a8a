//! Reading a content, which every dialect has as a text or as a list of parts.

use super::ask::Part;
use super::fields::{Fields, Read, wrong};
use crate::json;

/// Reads the content under `name`; `part` reads one element of a list, whose elements the dialect calls `called`. None
/// is as good as an empty one.
pub(super) fn read<'a>(
    own: &mut Fields<'a>,
    name: &str,
    called: &str,
    mut part: impl FnMut(Fields<'a>) -> Read<Part<'a>>,
) -> Read<Vec<Part<'a>>> {
    let Some(raw) = own.take(name) else {
        return Ok(Vec::new());
    };
    if let Some(text) = json::text(raw) {
        return Ok(match text.is_empty() {
            true => Vec::new(),
            false => vec![Part::Text(text)],
        });
    }
    let at = own.at(name);
    if !raw.trim_start().starts_with('[') {
        return wrong(at, format!("has to be a text or a list of {called}"));
    }
    let elements = json::elements(raw).into_iter().enumerate();
    elements
        .map(|(number, raw)| part(Fields::of(format!("{at}[{number}]"), raw)?))
        .collect()
}
