//! A client's configuration file as a document that is edited in place: whatever an edit is not about keeps
//! its bytes, comments included.
//!
//! Every edit is verified: the new text is parsed, and it has to hold the old values and the new one.

mod json;
mod toml;
mod yaml;

use std::fmt;

use serde_json::Value;

/// The syntax of a configuration file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// JSON; comments and trailing commas are accepted, and kept.
    Json,
    Toml,
    Yaml,
}

/// Why a configuration cannot be edited.
#[derive(Debug, PartialEq, Eq)]
pub enum EditError {
    /// The file is not in its format; the text says where.
    Malformed(Format, String),
    /// The value at this path has to be a table of named values.
    NotAnObject(String),
    /// A name is given twice, and nobody can say which the client reads.
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
    /// [`EditError::Malformed`], [`EditError::NotAnObject`] where it holds something else, [`EditError::Twice`].
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

/// The value at a path; none where there is none.
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
