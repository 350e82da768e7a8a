//! Reading a content, which every dialect has as a text or as a list of parts.

use super::ask::ContentPart;
use super::fields::{ObjectFields, Read, wrong};
use crate::json;

/// Reads the content under `name`; `part` reads one element of a list; the dialect calls its elements `called`. An
/// absent one is an empty one.
pub(super) fn read<'a>(
    own: &mut ObjectFields<'a>,
    name: &str,
    called: &str,
    mut part: impl FnMut(ObjectFields<'a>) -> Read<ContentPart<'a>>,
) -> Read<Vec<ContentPart<'a>>> {
    let Some(raw) = own.take(name) else {
        return Ok(Vec::new());
    };
    if let Some(text) = json::text(raw) {
        return Ok(match text.is_empty() {
            true => Vec::new(),
            false => vec![ContentPart::Text(text)],
        });
    }
    let at = own.at(name);
    if !raw.trim_start().starts_with('[') {
        return wrong(at, format!("has to be a text or a list of {called}"));
    }
    let elements = json::elements(raw).into_iter().enumerate();
    elements
        .map(|(number, raw)| part(ObjectFields::of(format!("{at}[{number}]"), raw)?))
        .collect()
}
