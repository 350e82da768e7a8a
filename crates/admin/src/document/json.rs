//! JSON, with comments and trailing commas, edited on its concrete syntax tree.

use jsonc_parser::ParseOptions;
use jsonc_parser::cst::{CstArray, CstInputValue, CstObject, CstObjectProp, CstRootNode};
use serde_json::Value;

use super::{EditError, Format, ListEdit};

/// What editors accept in their settings: comments and trailing commas, and nothing else beyond JSON.
const SYNTAX: ParseOptions = ParseOptions {
    allow_comments: true,
    allow_loose_object_property_names: false,
    allow_trailing_commas: true,
    allow_missing_commas: false,
    allow_single_quoted_strings: false,
    allow_hexadecimal_numbers: false,
    allow_unary_plus_numbers: false,
    allow_bare_decimal_point_numbers: false,
    allow_non_finite_numbers: false,
    allow_extended_string_escapes: false,
};

fn root(text: &str) -> Result<CstRootNode, EditError> {
    CstRootNode::parse(text, &SYNTAX)
        .map_err(|error| EditError::Malformed(Format::Json, error.to_string()))
}

pub(super) fn parse(text: &str) -> Result<Value, EditError> {
    let root = root(text)?;
    match root.value() {
        Some(node) => node
            .to_serde_value()
            .ok_or_else(|| EditError::Malformed(Format::Json, "a value cannot be read".into())),
        None => Ok(Value::Null),
    }
}

pub(super) fn set(text: &str, path: &[&str], value: &Value) -> Result<String, EditError> {
    let text = if text.trim().is_empty() { "{}\n" } else { text };
    let root = root(text)?;
    let mut object = root
        .object_value()
        .ok_or_else(|| EditError::NotAnObject(String::new()))?;
    let Some((last, way)) = path.split_last() else {
        return Err(EditError::Unsafe);
    };
    for key in way {
        object = match member(&object, key)? {
            Some(found) => found
                .object_value()
                .ok_or_else(|| EditError::NotAnObject((*key).to_owned()))?,
            None => object
                .append(key, CstInputValue::Object(Vec::new()))
                .object_value_or_set(),
        };
    }
    merge(&object, last, value)?;
    Ok(root.to_string())
}

/// The one member of this name.
fn member(object: &CstObject, name: &str) -> Result<Option<CstObjectProp>, EditError> {
    let mut found = object
        .properties()
        .into_iter()
        .filter(|property| property.decoded_name().as_deref() == Some(name));
    match (found.next(), found.next()) {
        (_, Some(_)) => Err(EditError::Twice(name.to_owned())),
        (first, None) => Ok(first),
    }
}

fn merge(object: &CstObject, name: &str, new: &Value) -> Result<(), EditError> {
    let Some(property) = member(object, name)? else {
        object.append(name, input(new));
        return Ok(());
    };
    match (property.object_value(), property.array_value(), new) {
        (Some(old), _, Value::Object(members)) => {
            for property in old.properties() {
                let kept = property
                    .decoded_name()
                    .is_some_and(|name| members.contains_key(&name));
                if !kept {
                    property.remove();
                }
            }
            members
                .iter()
                .try_for_each(|(name, value)| merge(&old, name, value))?;
        }
        (_, Some(old), Value::Array(items)) => list(&property, &old, items),
        _ if property
            .value()
            .and_then(|old| old.to_serde_value())
            .as_ref()
            == Some(new) => {}
        _ => property.set_value(input(new)),
    }
    Ok(())
}

fn list(property: &CstObjectProp, old: &CstArray, new: &[Value]) {
    let values: Option<Vec<Value>> = old
        .elements()
        .iter()
        .map(jsonc_parser::cst::CstNode::to_serde_value)
        .collect();
    let edit = ListEdit::between(&values.unwrap_or_default(), new);
    // A list on one line is short and without comments: it is written anew, evenly spaced.
    let text = old.to_string();
    let is_spread = text.contains('\n') || text.contains("/*");
    match edit {
        ListEdit::Same => {}
        ListEdit::Prepend(_) | ListEdit::DropFirst(_) if !is_spread => {
            property.set_value(input(&Value::Array(new.to_vec())));
        }
        ListEdit::Prepend(items) => {
            for (at, item) in items.iter().enumerate() {
                old.insert(at, input(item));
            }
        }
        ListEdit::DropFirst(number) => {
            for element in old.elements().into_iter().take(number) {
                element.remove();
            }
        }
        ListEdit::Replace => property.set_value(input(&Value::Array(new.to_vec()))),
    }
}

fn input(value: &Value) -> CstInputValue {
    match value {
        Value::Null => CstInputValue::Null,
        Value::Bool(value) => CstInputValue::Bool(*value),
        Value::Number(number) => CstInputValue::Number(number.to_string()),
        Value::String(text) => CstInputValue::String(text.clone()),
        Value::Array(items) => CstInputValue::Array(items.iter().map(input).collect()),
        Value::Object(members) => CstInputValue::Object(
            members
                .iter()
                .map(|(name, value)| (name.clone(), input(value)))
                .collect(),
        ),
    }
}
