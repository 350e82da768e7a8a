//! Setting one member in a JSON file that a person keeps: every other byte stays as it was.

use std::fmt;

use serde::Deserialize;
use serde::de::{Deserializer, MapAccess, Visitor};
use serde_json::Value;
use serde_json::value::RawValue;

/// Why a configuration cannot be edited.
#[derive(Debug, PartialEq, Eq)]
pub enum EditError {
    /// It is not JSON; the sentence says where.
    Malformed(String),
    /// A value that has to be an object is something else.
    NotAnObject(&'static str),
    /// A name stands there twice, and nobody can say which the client reads.
    Twice(String),
    /// An entry of this name is there, and it is another.
    Taken(String),
    /// What would be written is not what was meant; nothing is.
    Unsafe,
}

impl fmt::Display for EditError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Malformed(at) => write!(
                f,
                "not JSON: {at}; mend it, or take comments out, then try again"
            ),
            Self::NotAnObject(what) => write!(f, "{what} is not a JSON object"),
            Self::Twice(name) => write!(f, "\"{name}\" is given twice; keep one of the two"),
            Self::Taken(name) => write!(
                f,
                "a server \"{name}\" is there already, with another command; choose another --name, or replace it with --force"
            ),
            Self::Unsafe => f.write_str("its layout is not understood; add the entry by hand"),
        }
    }
}

impl std::error::Error for EditError {}

/// What an edit comes to.
#[derive(Debug, PartialEq, Eq)]
pub enum Edit {
    /// The same entry is there already.
    Nothing,
    /// The new text of the file, with a further entry.
    Added(String),
    /// The new text of the file, with another entry in the place of the old one.
    Replaced(String),
}

/// Sets `section.name` to `value` in the text of a configuration; an empty text is an empty one.
///
/// # Errors
/// [`EditError`]; with `force` an entry of that name is replaced rather than [`EditError::Taken`].
pub fn set(
    text: &str,
    section: &'static str,
    name: &str,
    value: &Value,
    force: bool,
) -> Result<Edit, EditError> {
    let text = if text.trim().is_empty() { "{}\n" } else { text };
    let root = members(text, "the file")?;
    let layout = Layout::of(text);
    let mut replaces = false;
    let edited = match find(&root, section)? {
        None => {
            let servers = layout.object(name, value, 1);
            layout.insert(text, text.trim(), &root, section, &servers, 0)
        }
        Some(servers) => {
            let inside = members(servers.get(), section)?;
            match find(&inside, name)? {
                Some(there) => {
                    let same =
                        serde_json::from_str::<Value>(there.get()).ok().as_ref() == Some(value);
                    if same {
                        return Ok(Edit::Nothing);
                    }
                    if !force {
                        return Err(EditError::Taken(name.to_owned()));
                    }
                    replaces = true;
                    splice(
                        text,
                        there.get(),
                        there.get().len(),
                        &layout.value(value, 2),
                    )
                }
                None => {
                    let value = layout.value(value, 2);
                    layout.insert(text, servers.get(), &inside, name, &value, 1)
                }
            }
        }
    };
    let edited = edited.ok_or(EditError::Unsafe)?;
    if is_meant(text, &edited, section, name, value) {
        Ok(match replaces {
            true => Edit::Replaced(edited),
            false => Edit::Added(edited),
        })
    } else {
        Err(EditError::Unsafe)
    }
}

/// Whether `edited` says all that `text` says, in its order, and the new entry, and nothing else.
fn is_meant(text: &str, edited: &str, section: &'static str, name: &str, value: &Value) -> bool {
    let check = || -> Result<bool, EditError> {
        let (before, after) = (members(text, section)?, members(edited, section)?);
        let Some(servers) = find(&after, section)? else {
            return Ok(false);
        };
        let old_servers = find(&before, section)?.map_or("{}", RawValue::get);
        let (old, new) = (
            members(old_servers, section)?,
            members(servers.get(), section)?,
        );
        let set = find(&new, name)?.and_then(|raw| serde_json::from_str::<Value>(raw.get()).ok());
        Ok(others(&before, section) == others(&after, section)
            && others(&old, name) == others(&new, name)
            && set.as_ref() == Some(value))
    };
    check().unwrap_or(false)
}

fn others<'a>(members: &'a Members<'a>, name: &str) -> Vec<(&'a str, &'a str)> {
    members
        .0
        .iter()
        .filter(|(other, _)| other != name)
        .map(|(other, value)| (other.as_str(), value.get()))
        .collect()
}

/// How a file is laid out.
struct Layout {
    /// One level of indentation; absent where the file is one line.
    unit: Option<String>,
}

impl Layout {
    /// The first indented line tells.
    fn of(text: &str) -> Self {
        let body = text.trim();
        let indented = body.lines().skip(1).find_map(|line| {
            let blank = line.len() - line.trim_start().len();
            line.get(..blank).filter(|blank| !blank.is_empty())
        });
        let one_line = !body.contains('\n') && body != "{}";
        Self {
            unit: (!one_line).then(|| indented.unwrap_or("  ").to_owned()),
        }
    }

    fn line(&self, level: usize) -> String {
        self.unit
            .as_ref()
            .map(|unit| format!("\n{}", unit.repeat(level)))
            .unwrap_or_default()
    }

    fn colon(&self) -> &'static str {
        if self.unit.is_some() { ": " } else { ":" }
    }

    /// A value whose first line stands at `level`.
    fn value(&self, value: &Value, level: usize) -> String {
        let Some(unit) = &self.unit else {
            return value.to_string();
        };
        // The pretty form indents by two blanks, and no string of JSON holds a line break.
        format!("{value:#}")
            .lines()
            .map(|line| {
                let depth = (line.len() - line.trim_start_matches(' ').len()) / 2;
                format!("{}{}", unit.repeat(depth), line.trim_start_matches(' '))
            })
            .collect::<Vec<_>>()
            .join(&self.line(level))
    }

    /// An object at `level` with one member.
    fn object(&self, name: &str, value: &Value, level: usize) -> String {
        format!(
            "{{{}{}{}{}{}}}",
            self.line(level + 1),
            Value::from(name),
            self.colon(),
            self.value(value, level + 1),
            self.line(level)
        )
    }

    /// Adds a member behind the last of `object`, a slice of `text` that stands at `level`.
    fn insert(
        &self,
        text: &str,
        object: &str,
        members: &Members<'_>,
        name: &str,
        value: &str,
        level: usize,
    ) -> Option<String> {
        let member = format!(
            "{}{}{}{value}",
            self.line(level + 1),
            Value::from(name),
            self.colon()
        );
        match members.0.last() {
            Some((_, last)) => {
                let end = last.get().get(last.get().len()..)?;
                splice(text, end, 0, &format!(",{member}"))
            }
            None => {
                let all = format!("{{{member}{}}}", self.line(level));
                splice(text, object, object.len(), &all)
            }
        }
    }
}

/// Replaces `length` bytes of `text` from where its slice `at` begins.
fn splice(text: &str, at: &str, length: usize, with: &str) -> Option<String> {
    let start = (at.as_ptr() as usize).checked_sub(text.as_ptr() as usize)?;
    let before = text.get(..start)?;
    let after = text.get(start.checked_add(length)?..)?;
    Some(format!("{before}{with}{after}"))
}

/// The members of an object, in their order.
struct Members<'a>(Vec<(String, &'a RawValue)>);

fn members<'a>(text: &'a str, what: &'static str) -> Result<Members<'a>, EditError> {
    if let Err(error) = serde_json::from_str::<serde::de::IgnoredAny>(text) {
        return Err(EditError::Malformed(error.to_string()));
    }
    serde_json::from_str(text).map_err(|_| EditError::NotAnObject(what))
}

fn find<'a>(members: &Members<'a>, name: &str) -> Result<Option<&'a RawValue>, EditError> {
    let mut found = members.0.iter().filter(|(other, _)| other == name);
    match (found.next(), found.next()) {
        (_, Some(_)) => Err(EditError::Twice(name.to_owned())),
        (first, None) => Ok(first.map(|(_, value)| *value)),
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Members<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Reader;
        impl<'de> Visitor<'de> for Reader {
            type Value = Vec<(String, &'de RawValue)>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut members = Vec::new();
                while let Some(member) = map.next_entry()? {
                    members.push(member);
                }
                Ok(members)
            }
        }
        deserializer.deserialize_map(Reader).map(Members)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn edit(text: &str) -> Result<Edit, EditError> {
        let value = json!({ "command": "d", "args": ["run"] });
        set(text, "mcpServers", "new", &value, false)
    }

    fn after(text: &str) -> String {
        match edit(text).unwrap() {
            Edit::Added(text) | Edit::Replaced(text) => text,
            Edit::Nothing => panic!("nothing was edited"),
        }
    }

    #[test]
    fn empty_files_get_the_entry_alone() {
        let expect = "{\n  \"mcpServers\": {\n    \"new\": {\n      \"args\": [\n        \"run\"\n      ],\n      \"command\": \"d\"\n    }\n  }\n}";
        for text in ["", " \n", "{}", "{}\n", "{\n}"] {
            assert_eq!(after(text).trim(), expect, "{text:?}");
        }
    }

    #[test]
    fn every_other_byte_stays() {
        let text = "{\n\t\"z\": 1,\n\t\"mcpServers\": {\n\t\t\"b\": {\"command\":  \"x\"},\n\t\t\"a\": {}\n\t},\n\t\"y\": [1,\n2]\n}\n";
        let is = after(text);
        let entry = ",\n\t\t\"new\": {\n\t\t\t\"args\": [\n\t\t\t\t\"run\"\n\t\t\t],\n\t\t\t\"command\": \"d\"\n\t\t}";
        assert_eq!(is.replace(entry, ""), text);
        assert!(is.contains(entry), "{is}");
        assert_eq!(
            after(r#"{"a":{"b":1}}"#),
            r#"{"a":{"b":1},"mcpServers":{"new":{"args":["run"],"command":"d"}}}"#
        );
        assert_eq!(
            after(r#"{"mcpServers":{}}"#),
            r#"{"mcpServers":{"new":{"args":["run"],"command":"d"}}}"#
        );
    }

    #[test]
    fn an_entry_of_that_name_is_kept_unless_forced() {
        let there = r#"{"mcpServers":{"a":1,"new":{"command":"other"},"b":2}}"#;
        assert_eq!(edit(there), Err(EditError::Taken("new".into())));
        let forced = set(there, "mcpServers", "new", &json!(7), true).unwrap();
        let expect = r#"{"mcpServers":{"a":1,"new":7,"b":2}}"#;
        assert_eq!(forced, Edit::Replaced(expect.into()));
        let same = r#"{"mcpServers":{"new":{"args":["run"],"command":"d"}}}"#;
        assert_eq!(edit(same), Ok(Edit::Nothing));
    }

    #[test]
    fn what_cannot_be_edited_is_refused() {
        for (text, part) in [
            ("{\n  \"a\": 1,\n}", "line 3 column 1"),
            ("// comment\n{}", "line 1 column 1"),
            ("{\"mcpServers\": {\"a\": }}", "line 1 column"),
            ("{} x", "trailing characters"),
            ("[]", "the file is not a JSON object"),
            ("{\"mcpServers\": []}", "mcpServers is not a JSON object"),
            ("{\"mcpServers\": {}, \"mcpServers\": {}}", "given twice"),
            ("{\"mcpServers\": {\"new\": 1, \"new\": 2}}", "given twice"),
            (&"[".repeat(1_000), "EOF while parsing"),
        ] {
            let said = edit(text).unwrap_err().to_string();
            assert!(said.contains(part), "{text}: {said}");
        }
    }
}
