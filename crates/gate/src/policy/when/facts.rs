//! The facts by the names that an expression calls them.

use cel::Value;
use cel::common::types::CelString;
use cel::common::value::{CowVal, Val};
use cel::context::VariableResolver;

use super::super::seen::Seen;
use super::LIST_MAX;
use crate::effect::Effect;
use crate::facts::{Fact, FactId, URL_FACTS, Value as Known, scheme_of};
use crate::paths::canonical::extension;
use crate::paths::{PathArgument, Role};

/// What is known of a call, stated when an expression asks for it. What is unknown is not stated:
/// asking for it fails, unless the rest of the expression decides.
pub(super) struct Stated<'k, 'f> {
    pub seen: &'k Seen<'f>,
    pub effect: Effect,
}

impl VariableResolver for Stated<'_, '_> {
    fn resolve<'b>(&'b self, name: &str) -> Option<CowVal<'b, 'b>> {
        let id = FactId::named(name)?;
        match id {
            // Which paths there are depends on the rule: an allow rule does not look into contents.
            FactId::Paths => self.paths(),
            FactId::Path => self.only(|_| true).and_then(maybe),
            FactId::SourcePath => self.only(|a| a.role == Role::Source).and_then(maybe),
            FactId::DestPath => self.only(|a| a.role == Role::Destination).and_then(maybe),
            FactId::Extension => match self.only(|_| true)?.and_then(extension) {
                Some(extension) => owned(Value::from(extension.as_ref())),
                None => null(),
            },
            FactId::Scheme => self.scheme(),
            _ if URL_FACTS.contains(&id) => self.of_urls(id),
            _ => match self.seen.get(id) {
                Fact::Known(Known::Text(known)) => owned(Value::from(known.as_ref())),
                Fact::Known(Known::Number(known)) => {
                    owned(Value::Int(i64::try_from(known).unwrap_or(i64::MAX)))
                }
                Fact::Known(known) => list(known.texts()),
                Fact::Absent => null(),
                Fact::Unknown => None,
            },
        }
    }
}

impl Stated<'_, '_> {
    /// The path arguments that the rule looks at; `None` where they are not known.
    fn arguments(&self) -> Option<impl Iterator<Item = &PathArgument>> {
        let arguments = match &self.seen.facts().paths {
            Fact::Known(arguments) => arguments.as_slice(),
            Fact::Unknown => return None,
            Fact::Absent => &[],
        };
        let contents = self.effect != Effect::Allow;
        Some(arguments.iter().filter(move |a| contents || !a.content))
    }

    fn paths<'b>(&'b self) -> Option<CowVal<'b, 'b>> {
        let mut places = Vec::new();
        for argument in self.arguments()? {
            if (argument.meaning.ambiguous && self.effect == Effect::Allow)
                || argument.meaning.uncertain
                || argument.meaning.places.is_empty()
            {
                return None;
            }
            places.extend(argument.meaning.places.iter().map(String::as_str));
            if self.effect == Effect::Allow {
                places.extend(argument.meaning.parts.iter().map(String::as_str));
            }
        }
        let reach = &self.seen.facts().reach;
        if self.effect != Effect::Allow {
            if reach.unread {
                return None;
            }
            places.extend(reach.every_place());
        }
        if places.len() > LIST_MAX {
            return None;
        }
        list(places.into_iter())
    }

    /// The one place of the one argument of this sort; `Some(None)` where there is no such argument.
    fn only(&self, which: impl Fn(&PathArgument) -> bool) -> Option<Option<&str>> {
        let mut arguments = self.arguments()?.filter(|a| which(a));
        let Some(argument) = arguments.next() else {
            return Some(None);
        };
        match argument.meaning.places.as_slice() {
            [place]
                if !(argument.meaning.uncertain
                    || self.effect == Effect::Allow
                        && (argument.meaning.ambiguous || !argument.meaning.parts.is_empty()))
                    && arguments.next().is_none() =>
            {
                Some(Some(place))
            }
            _ => None,
        }
    }

    /// A fact of the URLs that the rule compares; a rule that allows counts on none of which readers make several.
    fn of_urls<'b>(&'b self, id: FactId) -> Option<CowVal<'b, 'b>> {
        let facts = self.seen.facts();
        let is_allow = self.effect == Effect::Allow;
        let mut found = facts.reach.urls.list().iter();
        if is_allow && found.any(|url| url.uncertain || url.ambiguous) {
            return None;
        }
        match facts.of_urls(id, !is_allow) {
            Fact::Unknown => None,
            Fact::Absent => null(),
            Fact::Known(texts) if texts.len() > LIST_MAX => None,
            Fact::Known(texts) if id == FactId::UrlUserinfo => {
                owned(Value::from(texts.first().map_or("no", AsRef::as_ref)))
            }
            Fact::Known(texts) => list(texts.iter().map(AsRef::as_ref)),
        }
    }

    fn scheme<'b>(&'b self) -> Option<CowVal<'b, 'b>> {
        let of = |text: &str| match scheme_of(text) {
            Some(scheme) => owned(Value::from(scheme)),
            None => null(),
        };
        match &self.seen.facts().uri {
            Fact::Known(uri) => of(uri),
            Fact::Unknown => None,
            Fact::Absent => {
                let mut arguments = self.arguments()?;
                match (arguments.next(), arguments.next()) {
                    (None, _) => null(),
                    (Some(argument), None) => of(&argument.text),
                    (Some(_), Some(_)) => None,
                }
            }
        }
    }
}

#[expect(clippy::unnecessary_wraps, reason = "one shape for all facts")]
fn text<'b>(text: &'b str) -> Option<CowVal<'b, 'b>> {
    Some(CowVal::owned(CelString::from(text)))
}

fn maybe<'b>(known: Option<&'b str>) -> Option<CowVal<'b, 'b>> {
    known.map_or_else(null, text)
}

fn null<'b>() -> Option<CowVal<'b, 'b>> {
    owned(Value::Null)
}

fn list<'b, 'n>(texts: impl Iterator<Item = &'n str>) -> Option<CowVal<'b, 'b>> {
    owned(Value::from(texts.map(Value::from).collect::<Vec<Value>>()))
}

fn owned<'b>(value: Value) -> Option<CowVal<'b, 'b>> {
    let value: Box<dyn Val> = value.try_into().ok()?;
    Some(CowVal::Owned(value))
}
