//! Words of a closed set: one that is not in it is an error when the policy is read.

use super::read::texts;
use crate::policy::document::{Document, Entry, PolicyError};

pub(in crate::policy) fn read<'a>(
    doc: Document<'a>,
    entry: &Entry<'a>,
    what: &str,
    known: &[&str],
) -> Result<Vec<String>, PolicyError> {
    texts(doc, entry)?
        .into_iter()
        .map(|(text, at)| {
            if known.contains(&text.as_str()) {
                Ok(text)
            } else {
                Err(doc.unknown_word(at, &text, what, known))
            }
        })
        .collect()
}
