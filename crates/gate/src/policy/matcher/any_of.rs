//! Lists of which one member has to be listed.

use super::read::is_wild;
use super::{Misspelt, of_fact};
use crate::facts::FactId;
use crate::policy::seen::Seen;
use crate::policy::tri::Tri;

/// Texts, one of which has to be in the fact's list.
#[derive(Debug)]
pub(in crate::policy) struct Members {
    texts: Vec<String>,
    fact: FactId,
}

impl Members {
    pub fn new(texts: &[String], fact: FactId) -> Self {
        Self {
            texts: texts.to_vec(),
            fact,
        }
    }

    pub fn hold(&self, seen: &Seen<'_>) -> Tri {
        of_fact(seen, self.fact, |value| {
            value
                .texts()
                .any(|text| self.texts.iter().any(|listed| listed == text))
        })
    }
}

pub(super) fn misspelt(key: &str, text: &str) -> Option<Misspelt> {
    is_wild(text).then(|| {
        (
            format!("{key} \"{text}\" is compared literally: * and ? are not wildcards here"),
            "name each one, or write a when with exists(…)".to_owned(),
        )
    })
}
