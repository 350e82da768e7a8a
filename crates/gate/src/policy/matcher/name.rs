//! Shell globs over names.

use super::read::{globs, has_alternatives};
use super::{Misspelt, of_fact};
use crate::facts::{FactId, Value};
use crate::policy::document::{Document, Entry, PolicyError};
use crate::policy::glob::is_literal;
use crate::policy::pattern::Pattern;
use crate::policy::seen::Seen;
use crate::policy::shell::{self, Shell};
use crate::policy::tri::Tri;

/// Globs over the text of one fact.
#[derive(Debug)]
pub(in crate::policy) struct Names {
    pub(super) patterns: Vec<Pattern>,
    fact: FactId,
    fold: bool,
}

impl Names {
    pub fn new(texts: &[String], fact: FactId, fold: bool) -> Result<Self, String> {
        let patterns: Result<Vec<_>, String> =
            texts.iter().map(|text| Pattern::name(text, fold)).collect();
        Ok(Self {
            patterns: patterns?,
            fact,
            fold,
        })
    }

    pub fn hold(&self, seen: &Seen<'_>) -> Tri {
        of_fact(seen, self.fact, |value| match value {
            Value::Text(text) if self.fold => self.any(text, &seen.folded(self.fact, text)),
            Value::Text(text) => self.any(text, ""),
            Value::Words(_)
            | Value::Names(_)
            | Value::Places(_)
            | Value::Made(_)
            | Value::Number(_) => {
                let mut texts = value.texts();
                texts.any(|text| self.any(text, &shell::fold(text)))
            }
        })
    }

    pub(super) fn any(&self, text: &str, folded: &str) -> bool {
        self.patterns.iter().any(|p| p.matches(text, folded))
    }
}

pub(super) fn read<'a>(
    doc: Document<'a>,
    entry: &Entry<'a>,
    fold: bool,
) -> Result<Vec<String>, PolicyError> {
    globs(doc, entry, |text| Shell::parse(text, fold))
}

/// Whether every name that `inner` matches is matched by `outer`.
pub(super) fn covers(outer: &str, inner: &str, fold: bool) -> bool {
    let folded = |text: &str| {
        if fold {
            shell::fold(text)
        } else {
            text.to_owned()
        }
    };
    outer.chars().all(|c| c == '*')
        || folded(outer) == folded(inner)
        || is_literal(inner)
            && Pattern::name(outer, fold).is_ok_and(|p| p.matches(inner, &shell::fold(inner)))
}

pub(super) fn misspelt(key: &str, text: &str) -> Option<Misspelt> {
    has_alternatives(text).then(|| {
        (
            format!("{key} \"{text}\": braces are not special"),
            "give a list of names, one for each".to_owned(),
        )
    })
}
