//! YAML, edited line by line in block style. A file in another style is refused by the verification of
//! [`super::Format::set`], or because its keys are not found.

use serde_json::{Map, Value};

use super::{EditError, Format, ListEdit, MappingLine, RemovedEntry, at};

pub(super) fn parse(text: &str) -> Result<Value, EditError> {
    if text.trim().is_empty() {
        return Ok(Value::Null);
    }
    serde_saphyr::from_str(text).map_err(|error| {
        let sentence = error.to_string();
        let first = sentence.lines().next().unwrap_or_default().to_owned();
        EditError::Malformed(Format::Yaml, first)
    })
}

pub(super) fn set(text: &str, path: &[&str], value: &Value) -> Result<String, EditError> {
    let root = parse(text)?;
    let mut lines: Vec<String> = text.split_inclusive('\n').map(str::to_owned).collect();
    if let Some(last) = lines.last_mut().filter(|last| !last.ends_with('\n')) {
        last.push('\n');
    }
    let Some((last, way)) = path.split_last() else {
        return Err(EditError::Unsafe);
    };
    let mut block = Block {
        start: 0,
        end: lines.len(),
        indent: 0,
    };
    for (depth, key) in way.iter().enumerate() {
        let known = path.get(..=depth).and_then(|path| at(&root, path));
        if known.is_none_or(Value::is_null) {
            block.append(&mut lines, &format!("{key}:"));
        } else if !known.is_some_and(Value::is_object) {
            return Err(EditError::NotAnObject((*key).to_owned()));
        }
        let found = block.find(&lines, key).ok_or(EditError::Unsafe)?;
        block = found.inside(&lines);
    }
    match (at(&root, path), value) {
        (Some(Value::Object(old)), Value::Object(new)) => {
            let entry = block.find(&lines, last).ok_or(EditError::Unsafe)?;
            members(&mut lines, &entry, old, new)?;
        }
        (Some(old), _) => {
            let entry = block.find(&lines, last).ok_or(EditError::Unsafe)?;
            if list(&mut lines, &entry, old, value) {
                return Ok(lines.concat());
            }
            entry.replace(&mut lines, &to_line(last, value, entry.indent));
        }
        (None, Value::Object(new)) => {
            block.append(&mut lines, &format!("{}:", key(last)));
            let entry = block.find(&lines, last).ok_or(EditError::Unsafe)?;
            let mut inside = entry.inside(&lines);
            for (name, value) in new {
                inside.append(&mut lines, &to_line(name, value, 0));
            }
        }
        (None, _) => block.append(&mut lines, &to_line(last, value, 0)),
    }
    Ok(lines.concat())
}

/// Removes an entry of a mapping in block style.
pub(super) fn remove(text: &str, path: &[&str]) -> Result<(String, RemovedEntry), EditError> {
    let mut lines: Vec<String> = text.split_inclusive('\n').map(str::to_owned).collect();
    let (last, parents) = path.split_last().ok_or(EditError::Unsafe)?;
    let mut mapping = None;
    let mut block = Block {
        start: 0,
        end: lines.len(),
        indent: 0,
    };
    for key in parents {
        let found = block.find(&lines, key).ok_or(EditError::Unsafe)?;
        mapping = Some(found);
        block = found.inside(&lines);
    }
    let found = block.find(&lines, last).ok_or(EditError::Unsafe)?;
    let mut start = found.start;
    let blank = " ".repeat(found.indent);
    while start > block.start {
        let above = lines.get(start - 1).map_or("", String::as_str);
        match above
            .strip_prefix(&blank)
            .is_some_and(|text| text.starts_with('#'))
        {
            true => start -= 1,
            false => break,
        }
    }
    let removed: String = lines.drain(start..found.end).collect();
    let is_empty = !lines
        .get(block.start..(block.end + start).saturating_sub(found.end))
        .unwrap_or_default()
        .iter()
        .any(|line| indent(line).is_some());
    let mapping = mapping.filter(|_| is_empty).and_then(|found| {
        let line = lines.get_mut(found.start)?;
        let full = line.clone();
        let colon = full.find(':')?;
        let (key, rest) = full.split_at(colon + 1);
        *line = format!("{key} {{}}{rest}");
        Some(MappingLine {
            at: found.start,
            empty: line.clone(),
            full,
        })
    });
    let entry = RemovedEntry {
        lines: removed,
        at: start,
        mapping,
    };
    Ok((lines.concat(), entry))
}

/// Adds the lines of an entry behind the other entries of its mapping.
pub(super) fn append_entry(
    text: &str,
    path: &[&str],
    entry: &RemovedEntry,
) -> Result<String, EditError> {
    let mut lines: Vec<String> = text.split_inclusive('\n').map(str::to_owned).collect();
    if let Some(last) = lines.last_mut().filter(|last| !last.ends_with('\n')) {
        last.push('\n');
    }
    let (_, parents) = path.split_last().ok_or(EditError::Unsafe)?;
    let mut block = Block {
        start: 0,
        end: lines.len(),
        indent: 0,
    };
    for key in parents {
        if block.find(&lines, key).is_none() {
            block.append(&mut lines, &format!("{key}:"));
        }
        let found = block.find(&lines, key).ok_or(EditError::Unsafe)?;
        if let Some(line) = lines.get_mut(found.start) {
            // A mapping that is written as empty begins to have lines.
            *line = line.replacen(": {}", ":", 1);
        }
        block = found.inside(&lines);
    }
    let mut added = entry.lines.clone();
    if !added.ends_with('\n') {
        added.push('\n');
    }
    let own = added.lines().find_map(indent).unwrap_or(block.indent);
    let is_first = !lines
        .get(block.start..block.end)
        .unwrap_or_default()
        .iter()
        .any(|line| indent(line).is_some());
    if own != block.indent && !is_first {
        added = reindent(&added, own, block.indent);
    }
    lines.insert(block.end.min(lines.len()), added);
    Ok(lines.concat())
}

/// Moves lines from one indentation to another.
fn reindent(text: &str, from: usize, to: usize) -> String {
    let (from, to) = (" ".repeat(from), " ".repeat(to));
    let lines = text.split_inclusive('\n');
    lines
        .map(|line| match line.strip_prefix(&from) {
            Some(rest) => format!("{to}{rest}"),
            None => line.to_owned(),
        })
        .collect()
}

/// Lines that belong together: those of a mapping, or of one of its keys.
#[derive(Clone, Copy)]
struct Block {
    /// The first line.
    start: usize,
    /// The line behind the last.
    end: usize,
    /// Column of its keys, or of the key.
    indent: usize,
}

impl Block {
    /// The lines of a key of this mapping: its own, and those below it.
    fn find(&self, lines: &[String], key: &str) -> Option<Self> {
        let start = (self.start..self.end).find(|number| {
            let line = lines.get(*number).map_or("", String::as_str);
            indent(line) == Some(self.indent) && is_key(line, key)
        })?;
        let mut end = start + 1;
        for number in start + 1..self.end {
            let line = lines.get(number).map_or("", String::as_str);
            match indent(line) {
                // Blank lines and comments belong to what follows, if that belongs here.
                None => {}
                // Items of a list may begin where their key begins.
                Some(at) if at > self.indent || (at == self.indent && is_item(line)) => {
                    end = number + 1;
                }
                Some(_) => break,
            }
        }
        Some(Self {
            start,
            end,
            indent: self.indent,
        })
    }

    /// The mapping below this key.
    fn inside(&self, lines: &[String]) -> Self {
        let below = lines
            .get(self.start + 1..self.end)
            .unwrap_or_default()
            .iter()
            .find_map(|line| indent(line));
        Self {
            start: self.start + 1,
            end: self.end,
            indent: below.unwrap_or(self.indent + 2),
        }
    }

    fn append(&mut self, lines: &mut Vec<String>, text: &str) {
        lines.insert(
            self.end.min(lines.len()),
            format!("{}{}\n", " ".repeat(self.indent), text),
        );
        self.end += 1;
    }

    fn replace(&self, lines: &mut Vec<String>, text: &str) {
        lines.splice(self.start..self.end, [format!("{text}\n")]);
    }
}

/// Changes an entry's mapping from `old` to `new`.
fn members(
    lines: &mut Vec<String>,
    entry: &Block,
    old: &Map<String, Value>,
    new: &Map<String, Value>,
) -> Result<(), EditError> {
    let mut inside = entry.inside(lines);
    let resized = |inside: &mut Block, before: usize, after: usize| {
        inside.end = (inside.end + after).saturating_sub(before);
    };
    for name in old.keys().filter(|name| !new.contains_key(*name)) {
        let found = inside.find(lines, name).ok_or(EditError::Unsafe)?;
        let before = lines.len();
        lines.drain(found.start..found.end);
        resized(&mut inside, before, lines.len());
    }
    for (name, value) in new {
        match old.get(name) {
            Some(is) if is == value => {}
            Some(is) => {
                let found = inside.find(lines, name).ok_or(EditError::Unsafe)?;
                let before = lines.len();
                if !list(lines, &found, is, value) {
                    found.replace(lines, &to_line(name, value, found.indent));
                }
                resized(&mut inside, before, lines.len());
            }
            None => inside.append(lines, &to_line(name, value, 0)),
        }
    }
    Ok(())
}

/// Whether a list could be changed without being written anew: where each of its items is one line.
fn list(lines: &mut Vec<String>, found: &Block, old: &Value, new: &Value) -> bool {
    let (Value::Array(old), Value::Array(new)) = (old, new) else {
        return false;
    };
    let items: Vec<usize> = (found.start + 1..found.end)
        .filter(|number| lines.get(*number).is_some_and(|line| is_item(line)))
        .collect();
    if items.len() != old.len() {
        return false;
    }
    let Some(first) = items.first().copied() else {
        return false;
    };
    match ListEdit::between(old, new) {
        ListEdit::Same => true,
        ListEdit::Prepend(values) => {
            let line = lines.get(first).map_or("", String::as_str);
            let blank = " ".repeat(indent(line).unwrap_or_default());
            let added: Vec<String> = values
                .iter()
                .map(|value| format!("{blank}- {value}\n"))
                .collect();
            lines.splice(first..first, added);
            true
        }
        ListEdit::DropFirst(number) => {
            let Some(until) = items.get(number).copied() else {
                return false;
            };
            lines.drain(first..until);
            true
        }
        ListEdit::Replace => false,
    }
}

/// A key with its value on one line; JSON is YAML.
fn to_line(name: &str, value: &Value, indent: usize) -> String {
    let blank = " ".repeat(indent);
    match value.as_str().filter(|text| is_plain(text)) {
        Some(text) => format!("{blank}{}: {text}", key(name)),
        None => format!("{blank}{}: {value}", key(name)),
    }
}

/// Whether a text needs no quotes.
fn is_plain(text: &str) -> bool {
    const WORDS: [&str; 9] = ["true", "false", "null", "yes", "no", "on", "off", "y", "n"];
    text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '/')
        && text
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || "_-./".contains(c))
        && !WORDS.contains(&text.to_ascii_lowercase().as_str())
}

fn key(name: &str) -> String {
    let plain = !name.is_empty()
        && name
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || "_-".contains(c))
        && name.starts_with(|c: char| c.is_ascii_alphabetic());
    match plain {
        true => name.to_owned(),
        false => Value::from(name).to_string(),
    }
}

/// How far a line is indented; none for blank lines and comments.
fn indent(line: &str) -> Option<usize> {
    let text = line.trim_start_matches(' ');
    let is_text = !text.trim().is_empty() && !text.starts_with('#');
    is_text.then(|| line.len() - text.len())
}

fn is_item(line: &str) -> bool {
    let text = line.trim();
    text == "-" || text.starts_with("- ")
}

fn is_key(line: &str, key: &str) -> bool {
    let text = line.trim_start_matches(' ');
    let quoted = [format!("\"{key}\""), format!("'{key}'"), key.to_owned()];
    quoted.iter().any(|spelled| {
        text.strip_prefix(spelled.as_str())
            .and_then(|rest| rest.trim_start_matches(' ').strip_prefix(':'))
            .is_some_and(|rest| rest.is_empty() || rest.starts_with([' ', '\n', '\r']))
    })
}
