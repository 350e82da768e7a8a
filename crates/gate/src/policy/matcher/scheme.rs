//! Schemes of the resource's URI and of paths that are URIs.

use super::Misspelt;
use super::read::texts;
use crate::effect::Effect;
use crate::facts::{Fact, Facts, scheme_of};
use crate::policy::document::{Document, Entry, PolicyError};
use crate::policy::tri::Tri;

/// Schemes, lower case.
#[derive(Debug)]
pub(in crate::policy) struct Schemes {
    texts: Vec<String>,
    /// The URI and every path that is not content have to be of a listed scheme, and one of them has to
    /// be there; else any of them suffices.
    all: bool,
}

impl Schemes {
    pub fn new(texts: &[String], effect: Effect) -> Self {
        Self {
            texts: texts.to_vec(),
            all: effect == Effect::Allow,
        }
    }

    pub fn hold(&self, facts: &Facts) -> Tri {
        let (Fact::Known(_) | Fact::Absent, Fact::Known(_) | Fact::Absent) =
            (&facts.uri, &facts.paths)
        else {
            return Tri::Unknown;
        };
        let paths = facts.paths.known().into_iter().flatten();
        let texts = facts
            .uri
            .known()
            .into_iter()
            .chain(paths.filter(|a| !a.content).map(|a| &a.text));
        let mut listed =
            texts.map(|text| scheme_of(text).is_some_and(|scheme| self.texts.contains(&scheme)));
        if self.all {
            let first = listed.next();
            (first == Some(true) && listed.all(|is| is)).into()
        } else {
            let inside = facts.reach.schemes.iter();
            let is_found =
                listed.any(|is| is) || inside.into_iter().any(|scheme| self.texts.contains(scheme));
            match facts.reach.unread {
                // What was not read may have a URI of any scheme.
                true => Tri::from(is_found).max(Tri::Unknown),
                false => is_found.into(),
            }
        }
    }
}

pub(super) fn read<'a>(doc: Document<'a>, entry: &Entry<'a>) -> Result<Vec<String>, PolicyError> {
    let list = texts(doc, entry)?.into_iter();
    Ok(list
        .map(|(text, _)| text.trim_end_matches(':').to_lowercase())
        .collect())
}

pub(super) fn misspelt(key: &str, text: &str) -> Option<Misspelt> {
    (scheme_of(&format!("{text}:")).as_deref() != Some(text)).then(|| {
        let plain = text.split(':').next().unwrap_or_default();
        (
            format!("{key} \"{text}\" is not a scheme"),
            format!("write it without what follows, as in \"{plain}\""),
        )
    })
}
