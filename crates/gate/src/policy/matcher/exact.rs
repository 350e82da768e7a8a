//! Texts that are compared as they stand.

use super::read::{is_wild, texts};
use super::{Misspelt, of_fact};
use crate::facts::FactId;
use crate::policy::document::{Document, Entry, PolicyError};
use crate::policy::seen::Seen;
use crate::policy::tri::Tri;

/// Texts, one of which the fact has to be.
#[derive(Debug)]
pub(in crate::policy) struct Texts {
    texts: Vec<String>,
    fact: FactId,
}

impl Texts {
    pub fn new(texts: &[String], fact: FactId) -> Self {
        Self {
            texts: texts.to_vec(),
            fact,
        }
    }

    pub fn hold(&self, seen: &Seen<'_>) -> Tri {
        of_fact(seen, self.fact, |value| {
            let text = value.text();
            text.is_some_and(|text| self.texts.iter().any(|listed| listed == text))
        })
    }
}

pub(super) fn read<'a>(doc: Document<'a>, entry: &Entry<'a>) -> Result<Vec<String>, PolicyError> {
    let list = texts(doc, entry)?;
    Ok(list.into_iter().map(|(text, _)| text).collect())
}

pub(super) fn misspelt(key: &str, text: &str) -> Option<Misspelt> {
    is_wild(text).then(|| {
        (
            format!("{key} \"{text}\" is compared literally: * and ? are not wildcards here"),
            format!("name each one, or write a when with {key}.startsWith(…)"),
        )
    })
}
