//! Configuration files, of Durward and of MCP clients, as documents that are edited in place: lines that an edit does not
//! concern keep their bytes, comments included.
//!
//! Every edit is verified: the new text is parsed, and it has to hold the old values and the new one.

mod json;
mod toml;
mod yaml;

use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The syntax of a configuration file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// JSON; comments and trailing commas are accepted, and kept.
    Json,
    /// TOML.
    Toml,
    /// YAML, in block style.
    Yaml,
}

/// Why a configuration cannot be edited.
#[derive(Debug, PartialEq, Eq)]
pub enum EditError {
    /// The file is not in its format; the text says where.
    Malformed(Format, String),
    /// The value at this path has to be a table of named values.
    NotAnObject(String),
    /// A name is given twice, so that it is unclear which the client reads.
    Twice(String),
    /// What would be written is not what was meant, so nothing is.
    Unsafe,
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Json => "JSON",
            Self::Toml => "TOML",
            Self::Yaml => "YAML",
        })
    }
}

impl fmt::Display for EditError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Malformed(format, at) => {
                write!(
                    f,
                    "not valid {format}: {at}; correct the file, then try again"
                )
            }
            Self::NotAnObject(what) if what.is_empty() => {
                f.write_str("the file does not hold an object")
            }
            Self::NotAnObject(what) => write!(f, "\"{what}\" is not an object"),
            Self::Twice(name) => write!(f, "\"{name}\" is given twice; keep one of the two"),
            Self::Unsafe => {
                f.write_str("the layout of this file is not supported; edit the entry by hand")
            }
        }
    }
}

impl std::error::Error for EditError {}

impl Format {
    /// All that a text says; an empty text is an empty object.
    ///
    /// # Errors
    /// [`EditError::Malformed`], [`EditError::NotAnObject`] if it holds something else, [`EditError::Twice`].
    pub fn parse(self, text: &str) -> Result<Value, EditError> {
        let value = match self {
            Self::Json => json::parse(text)?,
            Self::Toml => toml::parse(text)?,
            Self::Yaml => yaml::parse(text)?,
        };
        match value {
            Value::Null => Ok(Value::Object(serde_json::Map::new())),
            Value::Object(_) => Ok(value),
            _ => Err(EditError::NotAnObject(String::new())),
        }
    }

    /// The text in which the value at `path` is `value`; what is equal already is not touched, and missing
    /// objects on the way are added.
    ///
    /// # Errors
    /// [`EditError`]
    pub fn set(self, text: &str, path: &[&str], value: &Value) -> Result<String, EditError> {
        let mut meant = self.parse(text)?;
        put(&mut meant, path, value)?;
        let edited = match self {
            Self::Json => json::set(text, path, value),
            Self::Toml => toml::set(text, path, value),
            Self::Yaml => yaml::set(text, path, value),
        }?;
        match self.parse(&edited) {
            Ok(is) if is == meant => Ok(edited),
            _ => Err(EditError::Unsafe),
        }
    }
}

/// Lines of an entry that was removed from a text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RemovedEntry {
    /// The lines, with the comments directly above the key.
    pub lines: String,
    /// Number of the lines before them.
    pub at: usize,
    /// The line of the mapping that the entry was in, if it was the only entry, and the line that took its place.
    pub mapping: Option<MappingLine>,
}

/// The line of a mapping that became empty.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MappingLine {
    /// Number of the lines before it.
    pub at: usize,
    /// As it was.
    pub full: String,
    /// As it is without entries.
    pub empty: String,
}

impl RemovedEntry {
    /// Returns the text with the lines in their earlier position; `None` if the text has no such position.
    #[must_use]
    pub fn insert_into(&self, text: &str) -> Option<String> {
        let mut lines: Vec<&str> = text.split_inclusive('\n').collect();
        if let Some(mapping) = &self.mapping {
            let line = lines.get_mut(mapping.at)?;
            if *line != mapping.empty {
                return None;
            }
            *line = &mapping.full;
        }
        if self.at > lines.len() {
            return None;
        }
        lines.insert(self.at, &self.lines);
        Some(lines.concat())
    }
}

impl Format {
    /// Removes the entry at `path` of a YAML text with the comments directly above it; returns the text and the removed
    /// lines.
    ///
    /// # Errors
    /// [`EditError`]; also for other formats.
    pub fn remove(self, text: &str, path: &[&str]) -> Result<(String, RemovedEntry), EditError> {
        let mut meant = self.parse(text)?;
        take(&mut meant, path).ok_or(EditError::Unsafe)?;
        let (edited, entry) = match self {
            Self::Yaml => yaml::remove(text, path)?,
            Self::Json | Self::Toml => return Err(EditError::Unsafe),
        };
        match self.parse(&edited) {
            Ok(is) if is == meant => Ok((edited, entry)),
            _ => Err(EditError::Unsafe),
        }
    }

    /// Adds the lines of a removed entry behind the other entries of its mapping.
    ///
    /// # Errors
    /// [`EditError`]; also for other formats.
    pub fn append_entry(
        self,
        text: &str,
        path: &[&str],
        entry: &RemovedEntry,
    ) -> Result<String, EditError> {
        let mut before = self.parse(text)?;
        let edited = match self {
            Self::Yaml => yaml::append_entry(text, path, entry)?,
            Self::Json | Self::Toml => return Err(EditError::Unsafe),
        };
        let mut after = self.parse(&edited)?;
        let added = take(&mut after, path);
        // An empty mapping is as good as none.
        let parent = path.get(..path.len().saturating_sub(1)).unwrap_or_default();
        for root in [&mut before, &mut after] {
            let is_empty = at(root, parent).is_some_and(|own| {
                own.is_null() || own.as_object().is_some_and(serde_json::Map::is_empty)
            });
            if is_empty {
                take(root, parent);
            }
        }
        match added.is_some() && before == after {
            true => Ok(edited),
            false => Err(EditError::Unsafe),
        }
    }
}

/// Removes the value at a path.
fn take(root: &mut Value, path: &[&str]) -> Option<Value> {
    let (last, parents) = path.split_last()?;
    let mut value = root;
    for key in parents {
        value = value.get_mut(*key)?;
    }
    value.as_object_mut()?.remove(*last)
}

/// Returns the value at a path.
pub fn at<'v>(value: &'v Value, path: &[&str]) -> Option<&'v Value> {
    path.iter().try_fold(value, |value, key| value.get(*key))
}

fn put(root: &mut Value, path: &[&str], value: &Value) -> Result<(), EditError> {
    let Some((key, rest)) = path.split_first() else {
        *root = value.clone();
        return Ok(());
    };
    if root.is_null() {
        *root = Value::Object(serde_json::Map::new());
    }
    let members = root
        .as_object_mut()
        .ok_or_else(|| EditError::NotAnObject((*key).to_owned()))?;
    let slot = members
        .entry((*key).to_owned())
        .or_insert_with(|| match rest.is_empty() {
            true => Value::Null,
            false => Value::Object(serde_json::Map::new()),
        });
    if !rest.is_empty() && !slot.is_object() {
        return Err(EditError::NotAnObject((*key).to_owned()));
    }
    put(slot, rest, value)
}

/// How one list becomes another with the fewest changes.
enum ListEdit<'v> {
    Same,
    /// These go in front of what is there.
    Prepend(&'v [Value]),
    /// So many of the first are taken away.
    DropFirst(usize),
    Replace,
}

impl<'v> ListEdit<'v> {
    fn between(old: &[Value], new: &'v [Value]) -> Self {
        if old == new {
            return Self::Same;
        }
        if !old.is_empty() && new.ends_with(old) {
            return Self::Prepend(new.get(..new.len() - old.len()).unwrap_or_default());
        }
        if !new.is_empty() && old.ends_with(new) {
            return Self::DropFirst(old.len() - new.len());
        }
        Self::Replace
    }
}

#[cfg(test)]
mod tests;
