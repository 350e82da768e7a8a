//! Extensions of paths.

use super::Misspelt;
use super::path::over;
use super::read::{is_wild, texts};
use crate::effect::Effect;
use crate::facts::Facts;
use crate::paths::canonical::extension;
use crate::policy::document::{Document, Entry, PolicyError};
use crate::policy::target::Target;
use crate::policy::tri::Tri;

/// Extensions with their dot, lower case.
#[derive(Debug)]
pub(in crate::policy) struct Extensions {
    texts: Vec<String>,
    all: bool,
}

impl Extensions {
    pub fn new(texts: &[String], effect: Effect) -> Self {
        Self {
            texts: texts.to_vec(),
            all: effect == Effect::Allow,
        }
    }

    pub fn hold(&self, facts: &Facts) -> Tri {
        let is_listed = |place: &str| {
            extension(place).is_some_and(|e| self.texts.iter().any(|listed| *listed == e))
        };
        let reach = &facts.reach;
        if !self.all
            && (reach.relative.iter().any(|text| is_listed(text))
                || reach.globs.iter().any(|glob| self.may_be_of(glob)))
        {
            return Tri::Yes;
        }
        over(facts, self.all, &|_| true, &is_listed)
    }
}

impl Extensions {
    /// Whether a file of a listed extension matches a glob.
    fn may_be_of(&self, glob: &str) -> bool {
        let any = |text: &String| Target::of(&format!("**/*{text}")).meets(glob);
        self.texts.iter().any(any)
    }
}

pub(super) fn read<'a>(doc: Document<'a>, entry: &Entry<'a>) -> Result<Vec<String>, PolicyError> {
    texts(doc, entry)?
        .into_iter()
        .map(|(text, at)| {
            if text.starts_with('.') && text.len() > 1 && !text.contains('/') {
                return Ok(text.to_lowercase());
            }
            Err(doc.error(
                at,
                format!("\"{text}\" is not an extension"),
                Some(format!(
                    "write it with its dot: \".{}\"",
                    text.trim_start_matches(['*', '.'])
                )),
            ))
        })
        .collect()
}

pub(super) fn misspelt(key: &str, text: &str) -> Option<Misspelt> {
    (is_wild(text) || text.trim_start_matches('.').contains('.')).then(|| {
        let last = text.rsplit('.').next().unwrap_or_default();
        (
            format!("{key} \"{text}\" never matches: an extension is what stands behind the last dot, without wildcards"),
            format!("write \".{last}\", or a path_pattern \"**/*{text}\""),
        )
    })
}
