//! The facts by the names that an expression calls them.

use cel::Value;
use cel::common::types::CelString;
use cel::common::value::{CowVal, Val};
use cel::context::VariableResolver;

use super::super::compiled::{Seen, scheme_of};
use super::super::operation::Operation;
use super::super::rule::Effect;
use super::LIST_MAX;
use crate::facts::{Fact, ResourceType};
use crate::paths::canonical::extension;
use crate::paths::{PathArgument, Role};

/// The names, and what each stands for. What a call does not have is `null`.
pub const FACTS: [(&str, &str); 15] = [
    ("tool_name", "the tool's name; null where no tool is called"),
    ("backend_id", "the server's name"),
    ("mcp_method", "the protocol's method"),
    ("subject_id", "who calls"),
    (
        "resource_type",
        "tool, resource, prompt or server; null where it is none of them",
    ),
    (
        "direction",
        "to_server, or to_client where a server asks its client",
    ),
    (
        "operation",
        "read, write, delete or unknown, by the tool's name",
    ),
    (
        "side_effects",
        "list of the tool's side effects; null where they are not known",
    ),
    (
        "paths",
        "list of all places that the call's paths lead to; an allow rule sees none in contents",
    ),
    (
        "path",
        "the call's only path; unknown where there are several, or one that leads to several places: use paths",
    ),
    ("source_path", "the only source, likewise"),
    ("dest_path", "the only destination, likewise"),
    (
        "extension",
        "the extension of `path` with its dot, lower case",
    ),
    (
        "scheme",
        "the scheme of `uri`, else of the only path, lower case",
    ),
    ("uri", "the resource's URI"),
];

/// What is known of a call, stated when an expression asks for it. What is unknown is not stated:
/// asking for it fails, unless the rest of the expression decides.
pub(super) struct Known<'k, 'f> {
    pub seen: &'k Seen<'f>,
    pub effect: Effect,
}

impl VariableResolver for Known<'_, '_> {
    fn resolve<'b>(&'b self, name: &str) -> Option<CowVal<'b, 'b>> {
        let facts = self.seen.facts();
        match name {
            "tool_name" => of_fact(facts.tool_name.as_deref()),
            "backend_id" => text(&facts.backend_id),
            "mcp_method" => text(&facts.method),
            "subject_id" => text(&facts.subject_id),
            "resource_type" => maybe(facts.resource_type.map(ResourceType::label)),
            "direction" => text(facts.direction.label()),
            "operation" => text(self.seen.operation().unwrap_or(Operation::Unknown).label()),
            "side_effects" => match self.seen.effects() {
                Some(effects) => list(effects.iter().copied()),
                None => null(),
            },
            "paths" => self.paths(),
            "path" => self.only(|_| true).and_then(maybe),
            "source_path" => self.only(|a| a.role == Role::Source).and_then(maybe),
            "dest_path" => self.only(|a| a.role == Role::Destination).and_then(maybe),
            "extension" => match self.only(|_| true)?.and_then(extension) {
                Some(extension) => owned(Value::from(extension.as_ref())),
                None => null(),
            },
            "scheme" => self.scheme(),
            "uri" => of_fact(facts.uri.as_deref()),
            _ => None,
        }
    }
}

impl Known<'_, '_> {
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
            if argument.meaning.uncertain || argument.meaning.places.is_empty() {
                return None;
            }
            places.extend(argument.meaning.places.iter().map(String::as_str));
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
            [place] if !argument.meaning.uncertain && arguments.next().is_none() => {
                Some(Some(place))
            }
            _ => None,
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

fn of_fact<'b>(fact: Fact<&'b str>) -> Option<CowVal<'b, 'b>> {
    match fact {
        Fact::Known(known) => text(known),
        Fact::Absent => null(),
        Fact::Unknown => None,
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

impl Fact<String> {
    fn as_deref(&self) -> Fact<&str> {
        match self {
            Self::Known(known) => Fact::Known(known),
            Self::Unknown => Fact::Unknown,
            Self::Absent => Fact::Absent,
        }
    }
}
