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
        let is_listed = |place: &str| self.texts.iter().any(|listed| is_of(place, listed));
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

/// Whether a place has this extension, as [`extension`] finds it.
fn is_of(place: &str, listed: &str) -> bool {
    if !place.is_ascii() {
        return extension(place).is_some_and(|found| found == listed);
    }
    // What ends in a listed text has it as its extension, unless that text holds another dot.
    let end = place.len().checked_sub(listed.len());
    let end = end.and_then(|from| place.get(from..)).unwrap_or_default();
    end.eq_ignore_ascii_case(listed) && listed.rfind('.') == Some(0)
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
            format!("{key} \"{text}\" never matches: an extension is the part after the last dot, without wildcards"),
            format!("write \".{last}\", or a path_pattern \"**/*{text}\""),
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_of_its_extension_and_of_no_other() {
        let places = [
            "/a/k.PEM",
            "/a/.env",
            "/a.d/x",
            "/a/x.",
            "/a/x.tar.gz",
            "/a/x.é",
            "/a/X.É",
            "/a/pem",
            ".pem",
            "",
            "/",
            "/a/.pem/x",
            "/a/x.pem.",
            "/é/k.pem",
            "/a/k.\u{212a}ey",
        ];
        let listed = [
            ".pem", ".env", ".d", ".gz", ".tar.gz", ".é", ".k", ".key", ".x.",
        ];
        for place in places {
            let found = extension(place);
            for text in listed {
                let is = found.as_deref() == Some(text);
                assert_eq!(is_of(place, text), is, "{place} {text}");
            }
        }
    }
}
