//! Reading lists of texts and expressions, with errors that say where and what to do.

use std::sync::Arc;

use crate::policy::conditions::WHEN;
use crate::policy::document::{Document, Entry, PolicyError};
use crate::policy::glob::GlobError;
use crate::policy::when::When;

/// Most members of one condition's list.
const LIST_MAX: usize = 1_000;

/// A string or a list, no member blank; each with where it stands.
pub(super) fn texts<'a>(
    doc: Document<'a>,
    entry: &Entry<'a>,
) -> Result<Vec<(String, &'a str)>, PolicyError> {
    let list = doc.strings(entry.value, &entry.name)?;
    if list.len() > LIST_MAX {
        return Err(doc.error(
            entry.value.get(),
            format!("{} has more than {LIST_MAX} members", entry.name),
            Some("use a glob, or split the rule".into()),
        ));
    }
    match list.iter().find(|(text, _)| text.trim().is_empty()) {
        Some((_, at)) => Err(doc.error(
            at,
            format!("{} is blank", entry.name),
            Some("write a value, or leave the condition out".into()),
        )),
        None => Ok(list),
    }
}

/// Texts that are globs.
pub(super) fn globs<'a, T>(
    doc: Document<'a>,
    entry: &Entry<'a>,
    check: impl Fn(&str) -> Result<T, GlobError>,
) -> Result<Vec<String>, PolicyError> {
    texts(doc, entry)?
        .into_iter()
        .map(|(pattern, at)| match check(&pattern) {
            Ok(_) => Ok(pattern),
            Err(bad) => Err(doc.error(
                at,
                format!("bad glob in {}: {}", entry.name, bad.message),
                Some(bad.hint.into()),
            )),
        })
        .collect()
}

/// An expression.
pub(super) fn expression<'a>(
    doc: Document<'a>,
    entry: &Entry<'a>,
) -> Result<Arc<When>, PolicyError> {
    let text = doc.string(entry.value, WHEN)?;
    When::compile(&text).map(Arc::new).map_err(|bad| {
        let at = Document::inside(entry.value.get(), bad.at);
        doc.error(at, bad.message, bad.hint)
    })
}

/// Whether a text has `{a,b}`.
pub(super) fn has_alternatives(text: &str) -> bool {
    text.split('{').skip(1).any(|rest| {
        rest.split_once('}')
            .is_some_and(|(inside, _)| inside.contains(','))
    })
}

/// Whether a text has a wildcard.
pub(super) fn is_wild(text: &str) -> bool {
    text.contains(['*', '?'])
}
