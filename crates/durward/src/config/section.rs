//! Reading one map of the file: its known names, each of its kind, with faults that say where.

use std::ffi::OsString;
use std::fmt::Display;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use gate::policy::document::nearest;

use super::expand::{self, Secret, Text};
use super::fault::{Fault, Position};
use super::keys;
use super::node::{Member, Node, Value};
use super::settings::{Origin, Setting};
use super::values::{self, Choice, digits};
use crate::builtin;

/// Most elements of one list, and most members of one map.
pub const ELEMENTS_MAX: usize = 1_024;

/// A server's map, in the catalogue of keys.
const SERVER: &str = "servers.*";

/// What values are read against.
pub struct Reader<'a> {
    /// A variable of the environment; absent where it is not set or empty.
    pub variable: &'a dyn Fn(&str) -> Option<OsString>,
    /// The directory of the file.
    pub base: &'a Path,
    /// The user's home.
    pub home: Option<&'a Path>,
}

/// A map of the file.
pub struct Section<'r> {
    reader: &'r Reader<'r>,
    /// How messages name it: `limits.per_tool`; empty for the top.
    path: String,
    members: &'r [Member],
    /// Where the map stands.
    pub at: Position,
}

impl<'r> Section<'r> {
    /// Opens a map. `pattern` is its path in the catalogue of keys, `path` its name in messages.
    pub fn open(
        reader: &'r Reader<'r>,
        node: &'r Node,
        pattern: &str,
        path: String,
    ) -> Result<Self, Fault> {
        let section = Self::unchecked(reader, node, path)?;
        section.refuse_unknown(pattern, &keys::names(pattern))?;
        Ok(section)
    }

    fn unchecked(reader: &'r Reader<'r>, node: &'r Node, path: String) -> Result<Self, Fault> {
        let members = match &node.value {
            Value::Map(members) => members.as_slice(),
            Value::Nothing => &[],
            other => {
                let what = if path.is_empty() { "the file" } else { &path };
                return Err(Fault::new(
                    node.at,
                    format!("{what} is {}; it must be a map", other.kind()),
                ));
            }
        };
        Ok(Self {
            reader,
            path,
            members,
            at: node.at,
        })
    }

    fn refuse_unknown(&self, pattern: &str, known: &[&str]) -> Result<(), Fault> {
        for member in self.members {
            let name = member.name.as_str();
            if known.contains(&name) || (pattern.is_empty() && name == keys::SERVERS_ALIAS) {
                continue;
            }
            let place = if self.path.is_empty() {
                String::new()
            } else {
                format!(" in {}", self.path)
            };
            let shown: String = name.chars().take(64).collect();
            let hint = match builtin::takers(name).next() {
                Some(taker) if pattern == SERVER => format!("it is for builtin: {taker}"),
                _ => nearest(name, known).map_or_else(
                    || format!("known here: {}", known.join(", ")),
                    |near| format!("did you mean \"{near}\"?"),
                ),
            };
            return Err(Fault::new(
                member.at,
                format!("unknown key \"{}\"{place}", shown.escape_debug()),
            )
            .hint(hint));
        }
        Ok(())
    }

    /// Returns the names of all members.
    pub fn names(&self) -> impl Iterator<Item = &'r str> {
        self.members.iter().map(|member| member.name.as_str())
    }

    /// The full name of a member, for messages.
    fn name(&self, member: &str) -> String {
        if self.path.is_empty() {
            member.to_owned()
        } else {
            format!("{}.{member}", self.path)
        }
    }

    /// The variables of the environment.
    pub fn variable(&self) -> &'r dyn Fn(&str) -> Option<OsString> {
        self.reader.variable
    }

    /// The user's home.
    pub fn home(&self) -> Option<&'r Path> {
        self.reader.home
    }

    /// A member, where it is given.
    pub fn member(&self, name: &str) -> Option<&'r Member> {
        self.members.iter().find(|member| member.name == name)
    }

    /// A map below this one; an absent one is empty.
    pub fn section(&self, name: &str) -> Result<Section<'r>, Fault> {
        self.section_as(name, &self.name(name))
    }

    /// As [`Section::section`], where the catalogue of keys has it under another path.
    pub fn section_as(&self, name: &str, pattern: &str) -> Result<Section<'r>, Fault> {
        match self.member(name) {
            Some(member) => Section::open(self.reader, &member.node, pattern, self.name(name)),
            None => Ok(Section {
                reader: self.reader,
                path: self.name(name),
                members: &[],
                at: self.at,
            }),
        }
    }

    /// The maps of a map, by name; `pattern` is the path of each in the catalogue of keys.
    pub fn each(&self, name: &str, pattern: &str) -> Result<Vec<(&'r Member, Self)>, Fault> {
        let Some(member) = self.member(name) else {
            return Ok(Vec::new());
        };
        let full = self.name(name);
        let members = match &member.node.value {
            Value::Map(members) => members,
            Value::Nothing => return Ok(Vec::new()),
            other => {
                let kind = other.kind();
                let message = format!("{full} is {kind}; it must be a map by name");
                return Err(Fault::new(member.node.at, message));
            }
        };
        bounded(members.len(), member.node.at, &full)?;
        let open = |inner: &'r Member| {
            let path = format!("{full}.{}", inner.name);
            let section = Section::open(self.reader, &inner.node, pattern, path)?;
            Ok((inner, section))
        };
        members.iter().map(open).collect()
    }

    /// A list whose elements are single values or lists of them; a single value is a list of one.
    pub fn lists(&self, name: &str) -> Result<Vec<Vec<Text>>, Fault> {
        let Some(member) = self.member(name) else {
            return Ok(Vec::new());
        };
        let full = self.name(name);
        let Value::List(items) = &member.node.value else {
            let kind = member.node.value.kind();
            let message = format!("{full} is {kind}; it must be a list");
            let hint = format!("write {name}: [one, [two, three]]");
            return Err(Fault::new(member.node.at, message).hint(hint));
        };
        bounded(items.len(), member.node.at, &full)?;
        let one = |(at, item): (usize, &Node)| {
            let own = format!("{full}[{at}]");
            match &item.value {
                Value::List(inner) => {
                    bounded(inner.len(), item.at, &own)?;
                    inner.iter().map(|item| self.text_of(item, &own)).collect()
                }
                _ => Ok(vec![self.text_of(item, &own)?]),
            }
        };
        items.iter().enumerate().map(one).collect()
    }

    /// Maps of a list; `pattern` is the path of each in the catalogue of keys.
    pub fn items(&self, name: &str, pattern: &str) -> Result<Vec<Self>, Fault> {
        let Some(member) = self.member(name) else {
            return Ok(Vec::new());
        };
        let full = self.name(name);
        let Value::List(items) = &member.node.value else {
            let kind = member.node.value.kind();
            let message = format!("{full} is {kind}; it must be a list of maps");
            return Err(Fault::new(member.node.at, message));
        };
        bounded(items.len(), member.node.at, &full)?;
        let open = |(at, item): (usize, &'r Node)| {
            Section::open(self.reader, item, pattern, format!("{full}[{at}]"))
        };
        items.iter().enumerate().map(open).collect()
    }

    /// A server's map.
    pub fn server(&self, member: &'r Member) -> Result<Section<'r>, Fault> {
        let path = format!("servers.{}", member.name);
        let section = Section::unchecked(self.reader, &member.node, path)?;
        let mut known = keys::names(SERVER);
        if let Some(wired) = section
            .text("builtin")?
            .and_then(|name| builtin::named(&name.value.value))
        {
            known.extend(wired.options.iter().map(|option| option.name));
        }
        section.refuse_unknown(SERVER, &known)?;
        Ok(section)
    }

    /// A map whose names nobody has checked.
    #[cfg(test)]
    pub fn map_of(reader: &'r Reader<'r>, node: &'r Node, path: &str) -> Self {
        match Self::unchecked(reader, node, path.to_owned()) {
            Ok(section) => section,
            Err(fault) => panic!("{fault}"),
        }
    }

    /// A single value with its variables put in.
    pub fn text(&self, name: &str) -> Result<Option<Setting<Text>>, Fault> {
        let Some(member) = self.member(name) else {
            return Ok(None);
        };
        let value = self.text_of(&member.node, &self.name(name))?;
        Ok(Some(Setting::in_file(value, member.node.at)))
    }

    fn text_of(&self, node: &Node, name: &str) -> Result<Text, Fault> {
        let Value::Scalar(written) = &node.value else {
            return Err(Fault::new(
                node.at,
                format!("{name} is {}; it must be a single value", node.value.kind()),
            ));
        };
        let value = expand::expand(written, self.reader.variable)
            .map_err(|message| Fault::new(node.at, format!("{name}: {message}")))?;
        if value.contains('\0') {
            return Err(Fault::new(
                node.at,
                format!("{name} holds a character that is not text"),
            ));
        }
        Ok(Text {
            written: written.clone(),
            value,
        })
    }

    /// A value that nobody may read.
    pub fn secret(&self, name: &str) -> Result<Option<(Secret, Position, bool)>, Fault> {
        let Some(text) = self.text(name)? else {
            return Ok(None);
        };
        let Some(member) = self.member(name) else {
            return Ok(None);
        };
        if text.value.value.is_empty() {
            return Err(Fault::new(
                member.node.at,
                format!("{} is empty", self.name(name)),
            ));
        }
        let literal = !text.value.is_expanded();
        Ok(Some((
            Secret::new(text.value.value),
            member.node.at,
            literal,
        )))
    }

    /// A value that can be read from its words. Its own words appear in a fault only as written.
    pub fn parsed<T: FromStr<Err = String>>(
        &self,
        name: &str,
    ) -> Result<Option<Setting<T>>, Fault> {
        self.read(name, |text| text.parse())
    }

    /// A value that `read` understands.
    pub fn read<T>(
        &self,
        name: &str,
        read: impl Fn(&str) -> Result<T, String>,
    ) -> Result<Option<Setting<T>>, Fault> {
        let Some(text) = self.text(name)? else {
            return Ok(None);
        };
        let at = self.member(name).map_or(self.at, |member| member.node.at);
        let value = read(&text.value.value).map_err(|why| {
            let shown: String = text.value.written.chars().take(64).collect();
            Fault::new(
                at,
                format!("{}: \"{}\" {why}", self.name(name), shown.escape_debug()),
            )
        })?;
        Ok(Some(Setting::in_file(value, at)))
    }

    /// A value within bounds.
    pub fn within<T: FromStr<Err = String> + PartialOrd + Display>(
        &self,
        name: &str,
        range: RangeInclusive<T>,
    ) -> Result<Option<Setting<T>>, Fault> {
        self.read(name, |text| {
            let value: T = text.parse()?;
            if range.contains(&value) {
                Ok(value)
            } else {
                Err(format!(
                    "is outside of {} to {}",
                    range.start(),
                    range.end()
                ))
            }
        })
    }

    /// A whole number within bounds.
    pub fn number(
        &self,
        name: &str,
        range: RangeInclusive<u64>,
    ) -> Result<Option<Setting<u64>>, Fault> {
        self.read(name, |text| {
            let value = digits(text).ok_or("is not a whole number")?;
            if range.contains(&value) {
                Ok(value)
            } else {
                Err(format!(
                    "is outside of {} to {}",
                    range.start(),
                    range.end()
                ))
            }
        })
    }

    /// An amount of dollars, in millionths of one.
    pub fn dollars(&self, name: &str) -> Result<Option<Setting<u64>>, Fault> {
        self.read(name, |text| {
            micros(text).ok_or(
                "is not an amount of dollars such as 1.25, with at most six decimals".to_owned(),
            )
        })
    }

    /// One word of a closed set.
    pub fn choice<T: Choice>(&self, name: &str) -> Result<Option<Setting<T>>, Fault> {
        let words: Vec<&'static str> = T::WORDS.iter().map(|(word, _)| *word).collect();
        self.read(name, |text| {
            values::of_word(text).ok_or_else(|| match nearest(text, &words) {
                Some(near) => {
                    format!(
                        "is not one of {}; did you mean \"{near}\"?",
                        words.join(", ")
                    )
                }
                None => format!("is not one of {}", words.join(", ")),
            })
        })
    }

    /// A path: relative to the file's directory, `~/` below the home.
    pub fn path(&self, name: &str) -> Result<Option<Setting<PathBuf>>, Fault> {
        self.read(name, |text| self.resolve(text))
    }

    /// A list of paths, each as [`Section::path`] reads it.
    pub fn paths(&self, name: &str) -> Result<Vec<PathBuf>, Fault> {
        let listed = self.list(name)?.map_or_else(Vec::new, |list| list.value);
        let read = |text: Text| {
            let path = self.resolve(&text.value);
            path.map_err(|why| self.fault(name, why))
        };
        listed.into_iter().map(read).collect()
    }

    /// A path where an address may come to stand: until then it is refused by name.
    pub fn file(&self, name: &str, what: &str) -> Result<Option<Setting<PathBuf>>, Fault> {
        self.read(name, |text| {
            if text.contains("://") || text == "syslog" {
                return Err(format!(
                    "names no file; {what} over HTTP or syslog is not built yet"
                ));
            }
            self.resolve(text)
        })
    }

    fn resolve(&self, text: &str) -> Result<PathBuf, String> {
        if text.is_empty() {
            return Err("names no file".into());
        }
        match text.strip_prefix("~/") {
            Some(below) => self
                .reader
                .home
                .map(|home| home.join(below))
                .ok_or_else(|| "is below the home, and there is none".into()),
            None if text == "~" || text.starts_with('~') => {
                Err("begins with ~, and only ~/ is read; write the whole path".into())
            }
            None => Ok(self.reader.base.join(text)),
        }
    }

    /// A program: as a path where it names one, else as it is, to be found in `PATH`.
    pub fn program(&self, name: &str) -> Result<Option<Setting<Text>>, Fault> {
        let Some(mut program) = self.text(name)? else {
            return Ok(None);
        };
        let at = self.member(name).map_or(self.at, |member| member.node.at);
        let value = program.value.value.clone();
        if value.trim().is_empty() {
            return Err(Fault::new(at, format!("{} is empty", self.name(name))));
        }
        if value.contains('/') {
            let path = self
                .resolve(&value)
                .map_err(|why| Fault::new(at, format!("{} {why}", self.name(name))))?;
            program.value.value = path.into_os_string().into_string().map_err(|_| {
                Fault::new(
                    at,
                    format!(
                        "{} leads through a directory whose name is not UTF-8",
                        self.name(name)
                    ),
                )
            })?;
        }
        Ok(Some(program))
    }

    /// A list of single values.
    pub fn list(&self, name: &str) -> Result<Option<Setting<Vec<Text>>>, Fault> {
        let Some(member) = self.member(name) else {
            return Ok(None);
        };
        let full = self.name(name);
        let Value::List(items) = &member.node.value else {
            return Err(Fault::new(
                member.node.at,
                format!("{full} is {}; it must be a list", member.node.value.kind()),
            )
            .hint(format!("write {name}: [one, two]")));
        };
        bounded(items.len(), member.node.at, &full)?;
        let texts = items
            .iter()
            .enumerate()
            .map(|(at, item)| self.text_of(item, &format!("{full}[{at}]")))
            .collect::<Result<_, _>>()?;
        Ok(Some(Setting::in_file(texts, member.node.at)))
    }

    /// A map of single values by name, with where each stands.
    pub fn map(&self, name: &str) -> Result<Vec<(String, Text, Position)>, Fault> {
        let Some(member) = self.member(name) else {
            return Ok(Vec::new());
        };
        let full = self.name(name);
        let Value::Map(members) = &member.node.value else {
            return Err(Fault::new(
                member.node.at,
                format!("{full} is {}; it must be a map", member.node.value.kind()),
            )
            .hint(format!("write {name}: {{ NAME: value }}")));
        };
        bounded(members.len(), member.node.at, &full)?;
        members
            .iter()
            .map(|inner| {
                let text = self.text_of(&inner.node, &format!("{full}.{}", inner.name))?;
                Ok((inner.name.clone(), text, inner.at))
            })
            .collect()
    }

    /// A fault at a member of this section, or at the section itself.
    pub fn fault(&self, name: &str, message: impl Display) -> Fault {
        let at = self.member(name).map_or(self.at, |member| member.node.at);
        Fault::new(at, format!("{} {message}", self.name(name)))
    }

    /// The directory of the file.
    pub fn base(&self) -> &Path {
        self.reader.base
    }

    /// A fault about the section.
    pub fn own_fault(&self, message: impl Display) -> Fault {
        Fault::new(self.at, format!("{} {message}", self.path))
    }
}

fn bounded(found: usize, at: Position, name: &str) -> Result<(), Fault> {
    if found <= ELEMENTS_MAX {
        return Ok(());
    }
    Err(Fault::new(
        at,
        format!("{name} has {found} elements, and may have {ELEMENTS_MAX}"),
    ))
}

impl<T> Setting<T> {
    /// A value that stands in the file.
    pub fn in_file(value: T, at: Position) -> Self {
        Self {
            value,
            origin: Origin::File(at),
        }
    }
}

/// Largest amount that is read, in millionths of a dollar.
const MICROS_MAX: u64 = 1_000_000_000_000_000;

/// An amount of dollars, in millionths of one.
fn micros(text: &str) -> Option<u64> {
    let (whole, part) = text.split_once('.').unwrap_or((text, "0"));
    let is_digits = |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit());
    if !is_digits(whole) || !is_digits(part) || part.len() > 6 {
        return None;
    }
    let part: u64 = format!("{part:0<6}").parse().ok()?;
    let micros = whole.parse::<u64>().ok()?.checked_mul(1_000_000)?;
    micros
        .checked_add(part)
        .filter(|micros| *micros <= MICROS_MAX)
}
