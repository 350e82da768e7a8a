//! What a call's arguments say of a text that is written.

use serde_json::{Map, Value};

use crate::words::words;

/// Names of arguments that hold a whole text.
const WHOLE: [&str; 5] = ["content", "contents", "text", "file_text", "new_content"];
/// Names of arguments that hold what is replaced and what takes its place.
const PAIRS: [(&str, &str); 4] = [
    ("oldText", "newText"),
    ("old_text", "new_text"),
    ("old_string", "new_string"),
    ("old_str", "new_str"),
];
/// Most replacements of one call that are looked at.
const EDITS_MAX: usize = 256;

/// A text that is written.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Write {
    /// All of the file.
    Whole(String),
    /// At its end.
    Appended(String),
    /// In the place of others, one after the other.
    Replaced(Vec<(String, String)>),
}

impl Write {
    /// Reads it from the arguments of a tool; none where they say nothing of the kind.
    pub fn of(tool: &str, arguments: &str) -> Option<Self> {
        let Value::Object(members) = serde_json::from_str(arguments).ok()? else {
            return None;
        };
        let listed = members.get("edits").and_then(Value::as_array);
        let edits: Option<Vec<_>> = match listed {
            Some(list) if list.len() > EDITS_MAX => return None,
            Some(list) => list.iter().map(|edit| pair(edit.as_object()?)).collect(),
            None => pair(&members).map(|edit| vec![edit]),
        };
        if let Some(edits) = edits.filter(|edits| !edits.is_empty()) {
            return Some(Self::Replaced(edits));
        }
        let text = WHOLE.iter().find_map(|name| members.get(*name)?.as_str())?;
        let says = |wanted: &[&str]| {
            words(tool)
                .iter()
                .any(|word| wanted.contains(&word.as_str()))
        };
        if says(&["append"]) {
            Some(Self::Appended(text.to_owned()))
        } else if says(&["write", "create", "save", "overwrite", "put", "update"]) {
            Some(Self::Whole(text.to_owned()))
        } else {
            None
        }
    }

    /// The file's text afterwards; none where it cannot be told.
    pub fn applied(&self, old: &str) -> Option<String> {
        match self {
            Self::Whole(text) => Some(text.clone()),
            Self::Appended(text) => Some(format!("{old}{text}")),
            Self::Replaced(edits) => edits.iter().try_fold(old.to_owned(), |text, (from, to)| {
                let is_there = !from.is_empty() && text.contains(from.as_str());
                is_there.then(|| text.replacen(from.as_str(), to, 1))
            }),
        }
    }
}

fn pair(members: &Map<String, Value>) -> Option<(String, String)> {
    let text = |name: &str| members.get(name)?.as_str().map(str::to_owned);
    let mut pairs = PAIRS.iter();
    pairs.find_map(|(old, new)| text(old).zip(text(new)))
}
