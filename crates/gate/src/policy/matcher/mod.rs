//! How conditions are compared with facts: one kind of matcher a file.

mod any_of;
mod effects;
mod exact;
mod extension;
mod form;
mod name;
mod path;
mod read;
mod scheme;
mod url;
pub(super) mod word;

use std::sync::Arc;

use super::document::{Document, Entry, PolicyError};
use super::pattern::Pattern;
use super::seen::Seen;
use super::tri::Tri;
use super::when::When;
use crate::effect::Effect;
use crate::facts::{FactId, Value};
use crate::paths::PathView;
use crate::urls::AddressClass;

pub(super) use path::OtherPaths;
pub(super) use url::leaves_open;

/// The words of a closed set: what they are called, and which there are.
pub type Words = fn() -> Vec<&'static str>;

/// How a fact is compared with what a rule asks for.
#[derive(Debug, Clone, Copy)]
pub enum Matcher {
    /// Shell globs over a name; `fold` without case.
    Name {
        /// Case does not count.
        fold: bool,
    },
    /// Texts, exactly.
    Exact,
    /// Words of a closed set.
    Word(&'static str, Words),
    /// A list of which one member is listed; of a closed set, where there is one.
    AnyOf(Option<(&'static str, Words)>),
    /// Forms of commands, as usage lines write them.
    Form,
    /// Path globs over arguments of this part.
    Path(Part),
    /// Extensions of paths.
    Extension,
    /// Schemes of URIs.
    Scheme,
    /// Patterns over URLs.
    Url,
    /// Classes of the addresses that URLs lead to.
    AddressClass,
    /// Shell globs over the machine that the call reaches, or the hosts of its URLs.
    Host,
    /// An expression in CEL.
    Expression,
}

/// Which path arguments are looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// All.
    Any,
    /// Where a copy or move reads.
    Source,
    /// Where it writes.
    Destination,
}

/// What is wrong with a member of a condition, and what to write instead.
pub(super) type Misspelt = (String, String);

/// A condition made ready.
#[derive(Debug)]
pub(super) enum Test {
    Name(name::Names),
    Exact(exact::Texts),
    AnyOf(any_of::Members),
    Operations(effects::Operations),
    SideEffects(effects::SideEffects),
    Form(form::Forms),
    Path(path::Paths),
    OtherPaths(OtherPaths),
    Extension(extension::Extensions),
    Scheme(scheme::Schemes),
    Url(url::UrlPatterns),
    AddressClass(url::AddressClasses),
    Host(url::Hosts),
    Expression(Arc<When>),
}

impl Matcher {
    /// Reads what a rule asks for; an expression comes compiled as well.
    pub(super) fn read<'a>(
        &self,
        doc: Document<'a>,
        entry: &Entry<'a>,
    ) -> Result<(Vec<String>, Option<Arc<When>>), PolicyError> {
        let texts = match self {
            Self::Name { fold } => name::read(doc, entry, *fold),
            Self::Exact | Self::AnyOf(None) => exact::read(doc, entry),
            Self::Word(what, words) | Self::AnyOf(Some((what, words))) => {
                word::read(doc, entry, what, &words())
            }
            Self::Form => form::read(doc, entry),
            Self::Path(_) => path::read(doc, entry),
            Self::Extension => extension::read(doc, entry),
            Self::Scheme => scheme::read(doc, entry),
            Self::Url => url::read(doc, entry),
            Self::AddressClass => word::read(doc, entry, "address class", &AddressClass::labels()),
            Self::Host => name::read(doc, entry, true),
            Self::Expression => {
                let when = read::expression(doc, entry)?;
                return Ok((vec![when.text().to_owned()], Some(when)));
            }
        };
        texts.map(|texts| (texts, None))
    }

    /// Makes ready what was read.
    pub(super) fn compile(
        self,
        fact: Option<FactId>,
        (texts, when): (&[String], Option<&Arc<When>>),
        effect: Effect,
        view: Option<&dyn PathView>,
    ) -> Result<Test, String> {
        if let (Self::Expression, Some(when)) = (self, when) {
            return Ok(Test::Expression(Arc::clone(when)));
        }
        let Some(fact) = fact else {
            return Err("a condition without a fact, and no expression".to_owned());
        };
        Ok(match self {
            Self::Name { fold } => Test::Name(name::Names::new(texts, fact, fold)?),
            Self::Word(..) if fact == FactId::Operation => {
                Test::Operations(effects::Operations::new(texts))
            }
            Self::AnyOf(_) if fact == FactId::SideEffects => {
                Test::SideEffects(effects::SideEffects::new(texts))
            }
            Self::Exact | Self::Word(..) => Test::Exact(exact::Texts::new(texts, fact)),
            Self::AnyOf(_) => Test::AnyOf(any_of::Members::new(texts, fact)),
            Self::Form => Test::Form(form::Forms::new(texts, fact)?),
            Self::Path(part) => Test::Path(path::Paths::new(texts, part, effect, view)?),
            Self::Extension => Test::Extension(extension::Extensions::new(texts, effect)),
            Self::Scheme => Test::Scheme(scheme::Schemes::new(texts, effect)),
            Self::Url => Test::Url(url::UrlPatterns::new(texts, effect)?),
            Self::AddressClass => Test::AddressClass(url::AddressClasses::new(texts, effect)),
            Self::Host => Test::Host(url::Hosts::new(texts, effect)?),
            Self::Expression => return Err("an expression was not compiled".to_owned()),
        })
    }

    /// Whether whatever `inner` matches is matched by `outer`, as far as their texts show.
    pub(super) fn covers(&self, outer: &str, inner: &str) -> bool {
        match self {
            Self::Name { fold } => name::covers(outer, inner, *fold),
            Self::Host => name::covers(outer, inner, true),
            Self::Path(_) => path::covers(outer, inner),
            Self::Exact
            | Self::Word(..)
            | Self::AnyOf(_)
            | Self::Form
            | Self::Extension
            | Self::Scheme
            | Self::Url
            | Self::AddressClass
            | Self::Expression => outer == inner,
        }
    }

    /// What is wrong with a member that loads and cannot mean what it seems to.
    pub(super) fn misspelt(&self, key: &str, text: &str) -> Option<Misspelt> {
        match self {
            Self::Name { .. } | Self::Host => name::misspelt(key, text),
            Self::Url => url::misspelt(key, text),
            Self::Path(_) => path::misspelt(key, text),
            Self::Exact => exact::misspelt(key, text),
            Self::AnyOf(None) => any_of::misspelt(key, text),
            Self::Extension => extension::misspelt(key, text),
            Self::Scheme => scheme::misspelt(key, text),
            Self::Word(..)
            | Self::AnyOf(Some(_))
            | Self::AddressClass
            | Self::Form
            | Self::Expression => None,
        }
    }
}

impl Test {
    /// Whether it holds. `effect` is that of its rule.
    pub fn holds(&self, seen: &Seen<'_>, effect: Effect) -> Tri {
        match self {
            Self::Name(names) => names.hold(seen),
            Self::Exact(texts) => texts.hold(seen),
            Self::AnyOf(members) => members.hold(seen),
            Self::Operations(operations) => operations.hold(seen, effect),
            Self::SideEffects(effects) => effects.hold(seen, effect),
            Self::Form(forms) => forms.hold(seen, effect),
            Self::Path(paths) => paths.hold(seen),
            Self::OtherPaths(others) => others.hold(seen.facts()),
            Self::Extension(extensions) => extensions.hold(seen.facts()),
            Self::Scheme(schemes) => schemes.hold(seen.facts()),
            Self::Url(patterns) => patterns.hold(seen.facts()),
            Self::AddressClass(classes) => classes.hold(seen.facts()),
            Self::Host(hosts) => hosts.hold(seen),
            Self::Expression(when) => when.holds(seen, effect),
        }
    }

    /// The patterns of a condition over names.
    pub fn names(&self) -> Option<&[Pattern]> {
        match self {
            Self::Name(names) => Some(&names.patterns),
            _ => None,
        }
    }

    /// The patterns of a condition over paths, and which paths.
    pub fn paths(&self) -> Option<(Part, &[Pattern])> {
        match self {
            Self::Path(paths) => Some((paths.part, &paths.patterns)),
            _ => None,
        }
    }
}

/// Whether a known value satisfies `test`; what is unknown may, and what is absent does not.
fn of_fact(seen: &Seen<'_>, id: FactId, test: impl FnOnce(&Value<'_>) -> bool) -> Tri {
    match seen.get(id) {
        crate::facts::Fact::Known(value) => test(&value).into(),
        crate::facts::Fact::Unknown => Tri::Unknown,
        crate::facts::Fact::Absent => Tri::No,
    }
}
