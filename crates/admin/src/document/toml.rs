//! TOML, edited with its layout and comments.

use serde_json::{Map, Value};
use toml_edit::{Array, DocumentMut, InlineTable, Item, Table, TableLike};

use super::{EditError, Format, ListEdit};

fn document(text: &str) -> Result<DocumentMut, EditError> {
    text.parse::<DocumentMut>().map_err(|error| {
        let sentence = error.message().lines().collect::<Vec<_>>().join(", ");
        let line = error
            .span()
            .and_then(|span| text.get(..span.start))
            .map(|before| before.matches('\n').count() + 1);
        let at = line.map_or(sentence.clone(), |line| format!("line {line}: {sentence}"));
        EditError::Malformed(Format::Toml, at)
    })
}

pub(super) fn parse(text: &str) -> Result<Value, EditError> {
    Ok(of_table(document(text)?.as_table()))
}

fn of_table(table: &dyn TableLike) -> Value {
    let members = table
        .iter()
        .filter_map(|(name, item)| Some((name.to_owned(), of_item(item)?)));
    Value::Object(members.collect())
}

fn of_item(item: &Item) -> Option<Value> {
    match item {
        Item::None => None,
        Item::Table(table) => Some(of_table(table)),
        Item::ArrayOfTables(tables) => Some(tables.iter().map(|table| of_table(table)).collect()),
        Item::Value(value) => Some(of_value(value)),
    }
}

fn of_value(value: &toml_edit::Value) -> Value {
    match value {
        toml_edit::Value::String(text) => Value::from(text.value().as_str()),
        toml_edit::Value::Integer(number) => Value::from(*number.value()),
        toml_edit::Value::Float(number) => Value::from(*number.value()),
        toml_edit::Value::Boolean(value) => Value::from(*value.value()),
        // JSON has no dates; none of them is edited.
        toml_edit::Value::Datetime(time) => Value::from(time.value().to_string()),
        toml_edit::Value::Array(items) => items.iter().map(of_value).collect(),
        toml_edit::Value::InlineTable(table) => of_table(table),
    }
}

pub(super) fn set(text: &str, path: &[&str], value: &Value) -> Result<String, EditError> {
    let mut document = document(text)?;
    let Some((last, way)) = path.split_last() else {
        return Err(EditError::Unsafe);
    };
    let mut table: &mut dyn TableLike = document.as_table_mut();
    for key in way {
        let item = table.entry(key).or_insert_with(|| {
            let mut below = Table::new();
            below.set_implicit(true);
            Item::Table(below)
        });
        table = item
            .as_table_like_mut()
            .ok_or_else(|| EditError::NotAnObject((*key).to_owned()))?;
    }
    match (table.get_mut(last), value) {
        (Some(item), _) => merge(item, value),
        // A table of its own, as people write a server.
        (None, Value::Object(members)) => {
            let mut below = Table::new();
            for (name, value) in members {
                below.insert(name, Item::Value(input(value)));
            }
            table.insert(last, Item::Table(below));
        }
        (None, _) => {
            table.insert(last, Item::Value(input(value)));
        }
    }
    Ok(document.to_string())
}

fn merge(item: &mut Item, new: &Value) {
    if of_item(item).as_ref() == Some(new) {
        return;
    }
    if let (Some(table), Value::Object(members)) = (item.as_table_like_mut(), new) {
        members_of(table, members);
        return;
    }
    if let (Some(old), Value::Array(items)) = (item.as_array_mut(), new)
        && list(old, items)
    {
        return;
    }
    *item = Item::Value(input(new));
}

fn members_of(table: &mut dyn TableLike, new: &Map<String, Value>) {
    let gone: Vec<String> = table
        .iter()
        .map(|(name, _)| name.to_owned())
        .filter(|name| !new.contains_key(name))
        .collect();
    for name in gone {
        table.remove(&name);
    }
    for (name, value) in new {
        match table.get_mut(name) {
            Some(item) => merge(item, value),
            None => {
                table.insert(name, Item::Value(input(value)));
            }
        }
    }
}

/// Whether the list could be changed without being written anew.
fn list(old: &mut Array, new: &[Value]) -> bool {
    let values: Vec<Value> = old.iter().map(of_value).collect();
    match ListEdit::between(&values, new) {
        ListEdit::Same => {}
        ListEdit::Prepend(items) => {
            // Where each item is on a line of its own, the new ones are too.
            let decor = old.get(0).map(|first| first.decor().clone());
            let spaced = old.get(1).map(|second| second.decor().clone());
            for (at, item) in items.iter().enumerate() {
                let mut item = input(item);
                if let Some(decor) = decor.as_ref().filter(|_| at == 0).or(spaced.as_ref()) {
                    *item.decor_mut() = decor.clone();
                }
                old.insert_formatted(at, item);
            }
            if let (Some(first), Some(spaced)) = (old.get_mut(items.len()), spaced) {
                *first.decor_mut() = spaced;
            }
        }
        ListEdit::DropFirst(number) => {
            let decor = old.get(0).map(|first| first.decor().clone());
            for _ in 0..number {
                old.remove(0);
            }
            if let (Some(first), Some(decor)) = (old.get_mut(0), decor) {
                *first.decor_mut() = decor;
            }
        }
        ListEdit::Replace => return false,
    }
    true
}

fn input(value: &Value) -> toml_edit::Value {
    match value {
        // TOML has no null; the edit is refused when it is verified.
        Value::Null => toml_edit::Value::from(""),
        Value::Bool(value) => toml_edit::Value::from(*value),
        Value::Number(number) => match number.as_i64() {
            Some(whole) => toml_edit::Value::from(whole),
            None => toml_edit::Value::from(number.as_f64().unwrap_or_default()),
        },
        Value::String(text) => toml_edit::Value::from(text.as_str()),
        Value::Array(items) => toml_edit::Value::Array(items.iter().map(input).collect()),
        Value::Object(members) => {
            let mut table = InlineTable::new();
            for (name, value) in members {
                table.insert(name, input(value));
            }
            toml_edit::Value::InlineTable(table)
        }
    }
}
