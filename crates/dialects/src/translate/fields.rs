//! Reading an object member by member, so that none is passed over.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::fmt;

use super::super::json;
use super::UnsupportedMembers;
use super::ask::Text;
use wire::scan::Member;

/// Part of a request that cannot be translated, or cannot be understood.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Inexpressible {
    /// The place in the request, such as `messages[2].name`.
    pub at: String,
    /// The reason.
    pub why: Cow<'static, str>,
}

impl fmt::Display for Inexpressible {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.at.escape_debug(), self.why)
    }
}

impl std::error::Error for Inexpressible {}

pub(crate) type Read<T> = Result<T, Inexpressible>;

/// The sentence about a member that the other dialect has no word for.
pub(crate) const NO_COUNTERPART: &str =
    "cannot be expressed in the dialect of this model's provider";

pub(crate) fn wrong<T>(at: impl Into<String>, why: impl Into<Cow<'static, str>>) -> Read<T> {
    Err(Inexpressible {
        at: at.into(),
        why: why.into(),
    })
}

/// Most names of what was left out of one message.
const LEFT_OUT_MAX: usize = 64;
/// Longest of these names, in bytes.
const NAME_BYTES_MAX: usize = 64;

/// Names of what was left out of a request or a reply.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(crate) struct LeftOut {
    names: BTreeSet<Cow<'static, str>>,
    /// Members without a counterpart are left out too, instead of refused.
    drops: bool,
}

impl LeftOut {
    pub fn new() -> Self {
        Self::default()
    }

    /// Names of a request to a provider that is configured so.
    pub fn of(unsupported: UnsupportedMembers) -> Self {
        Self {
            drops: unsupported == UnsupportedMembers::Drop,
            ..Self::default()
        }
    }

    /// Leaves out a member without a counterpart, or refuses it if the provider is configured so. `at` is its place.
    pub fn drop_or_refuse(&mut self, at: &str) -> Read<()> {
        if !self.drops {
            return wrong(at, NO_COUNTERPART);
        }
        self.insert(place_name(at));
        Ok(())
    }

    /// Adds a name; returns whether it is new.
    pub fn insert(&mut self, name: impl Into<Cow<'static, str>>) -> bool {
        self.names.len() < LEFT_OUT_MAX && self.names.insert(name.into())
    }
}

impl<N: Into<Cow<'static, str>>> Extend<N> for LeftOut {
    fn extend<I: IntoIterator<Item = N>>(&mut self, names: I) {
        for name in names {
            self.insert(name);
        }
    }
}

impl<N: Into<Cow<'static, str>>> FromIterator<N> for LeftOut {
    fn from_iter<I: IntoIterator<Item = N>>(names: I) -> Self {
        let mut all = Self::new();
        all.extend(names);
        all
    }
}

impl IntoIterator for LeftOut {
    type Item = Cow<'static, str>;
    type IntoIter = std::collections::btree_set::IntoIter<Cow<'static, str>>;

    fn into_iter(self) -> Self::IntoIter {
        self.names.into_iter()
    }
}

/// Returns the name under which something unknown is left out: its place, and its sender's name for it, as far as a
/// header may have that.
pub(crate) fn unknown(at: &'static str, name: &str) -> Cow<'static, str> {
    let fits = |c: &char| c.is_ascii_alphanumeric() || "_-/:".contains(*c);
    let name: String = name.chars().filter(fits).take(NAME_BYTES_MAX).collect();
    match name.as_str() {
        "" => at.into(),
        name => format!("{at}.{name}").into(),
    }
}

/// Returns whether a member changes nothing with this value.
fn is_neutral(raw: &str, values: &[&str]) -> bool {
    let is_zero = || raw.parse::<f64>().is_ok_and(|number| number == 0.0);
    let plain: String = raw.split_ascii_whitespace().collect();
    values.contains(&plain.as_str()) || values.contains(&"0") && is_zero()
}

/// Returns the name of a place, such as `messages.name` for `messages[2].name`, as far as a header may have that.
fn place_name(at: &str) -> String {
    let mut name = String::new();
    let mut is_index = false;
    for c in at.chars() {
        match c {
            '[' => is_index = true,
            ']' => is_index = false,
            c if !is_index && (c.is_ascii_alphanumeric() || "_-.".contains(c)) => name.push(c),
            _ => {}
        }
        if name.len() >= NAME_BYTES_MAX {
            break;
        }
    }
    name
}

/// The members of one object, each of which has to be taken.
#[derive(Debug)]
pub(crate) struct ObjectFields<'a> {
    path: String,
    members: Vec<Member<'a>>,
}

impl<'a> ObjectFields<'a> {
    /// Reads an object at this place.
    pub fn of(path: impl Into<String>, raw: &'a str) -> Read<Self> {
        let path = path.into();
        if !raw.trim_start().starts_with('{') {
            return wrong(path, "has to be an object");
        }
        Ok(Self {
            members: json::members(raw),
            path,
        })
    }

    /// Returns the place of a member.
    pub fn at(&self, name: &str) -> String {
        if self.path.is_empty() {
            name.to_owned()
        } else {
            format!("{}.{name}", self.path)
        }
    }

    /// Returns the raw value of a member, which counts as read; `null` is as good as none.
    pub fn take(&mut self, name: &str) -> Option<&'a str> {
        let at = self.members.iter().position(|(own, _)| own == name)?;
        let (_, raw) = self.members.swap_remove(at);
        (raw != "null").then_some(raw)
    }

    pub fn text(&mut self, name: &str) -> Read<Option<Text<'a>>> {
        let Some(raw) = self.take(name) else {
            return Ok(None);
        };
        match json::text(raw) {
            Some(text) => Ok(Some(text)),
            None => wrong(self.at(name), "has to be a text"),
        }
    }

    /// Returns a text without which nothing can be made of the object.
    pub fn need(&mut self, name: &str) -> Read<Text<'a>> {
        match self.text(name)? {
            Some(text) => Ok(text),
            None => wrong(self.at(name), "is missing"),
        }
    }

    pub fn number(&mut self, name: &str) -> Read<Option<&'a str>> {
        match self.take(name) {
            Some(raw) if raw.trim().parse::<f64>().is_err() => {
                wrong(self.at(name), "has to be a number")
            }
            taken => Ok(taken),
        }
    }

    pub fn flag(&mut self, name: &str) -> Read<Option<bool>> {
        match self.take(name) {
            None => Ok(None),
            Some("true") => Ok(Some(true)),
            Some("false") => Ok(Some(false)),
            Some(_) => wrong(self.at(name), "has to be true or false"),
        }
    }

    /// Returns the elements of a list, each with its place.
    pub fn list(&mut self, name: &str) -> Read<Vec<(String, &'a str)>> {
        let Some(raw) = self.take(name) else {
            return Ok(Vec::new());
        };
        let at = self.at(name);
        if !raw.trim_start().starts_with('[') {
            return wrong(at, "has to be a list");
        }
        let elements = json::elements(raw).into_iter().enumerate();
        Ok(elements
            .map(|(number, raw)| (format!("{at}[{number}]"), raw))
            .collect())
    }

    /// Returns the object of a member.
    pub fn object(&mut self, name: &str) -> Read<Option<ObjectFields<'a>>> {
        match self.take(name) {
            Some(raw) => ObjectFields::of(self.at(name), raw).map(Some),
            None => Ok(None),
        }
    }

    /// Takes members that change nothing if they have one of these values.
    pub fn neutral(&mut self, members: &[(&str, &[&str])]) -> Read<()> {
        for (name, values) in members {
            if let Some(raw) = self.take(name)
                && !is_neutral(raw, values)
            {
                return wrong(self.at(name), NO_COUNTERPART);
            }
        }
        Ok(())
    }

    /// Returns the same; those that do change something are left out, or refused if the provider is configured so.
    pub fn optional(&mut self, members: &[(&str, &[&str])], left_out: &mut LeftOut) -> Read<()> {
        for (name, values) in members {
            if let Some(raw) = self.take(name)
                && !is_neutral(raw, values)
            {
                left_out.drop_or_refuse(&self.at(name))?;
            }
        }
        Ok(())
    }

    /// Takes members that are hints.
    pub fn hints(&mut self, names: &[&'static str], left_out: &mut LeftOut) {
        for name in names {
            if self.take(name).is_some() {
                left_out.insert(*name);
            }
        }
    }

    /// Ends the object: members that are not known are left out, or refused if the provider is configured so.
    pub fn finish(self, left_out: &mut LeftOut) -> Read<()> {
        for (name, raw) in &self.members {
            if *raw != "null" {
                left_out.drop_or_refuse(&self.at(name))?;
            }
        }
        Ok(())
    }

    /// Nothing may be left.
    pub fn end(mut self) -> Read<()> {
        self.members.retain(|(_, raw)| *raw != "null");
        match self.members.first() {
            Some((name, _)) => wrong(self.at(name), NO_COUNTERPART),
            None => Ok(()),
        }
    }
}
