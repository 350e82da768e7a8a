//! The query of a URI.

use serde_json::{Map, Value};

use super::UriPart;
use crate::percent::decoded;

/// Members of a query that are whole numbers.
const NUMBERS: [&str; 3] = ["page", "limit", "subjects"];
/// Members that may be repeated.
const LISTS: [&str; 2] = ["outputs", "subjects"];

/// Returns the members of a query.
///
/// # Errors
/// What is wrong with it.
pub(super) fn members(query: &str, part: &UriPart) -> Result<Map<String, Value>, String> {
    let mut members = Map::new();
    for pair in query.split('&').filter(|pair| !pair.is_empty()) {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        if !part.members().contains(&name) {
            let known = part.members().join(", ");
            let name = name.escape_debug();
            return Err(format!(
                "{name} is not known in the query of this uri; it may have {known}"
            ));
        }
        let value = match NUMBERS.contains(&name) {
            true => value
                .parse::<i64>()
                .map(Value::from)
                .map_err(|_| format!("{name} has to be a whole number"))?,
            false => Value::from(decoded(value)),
        };
        if LISTS.contains(&name) {
            let list = members
                .entry(name)
                .or_insert_with(|| Value::Array(Vec::new()));
            if let Some(all) = list.as_array_mut() {
                all.push(value);
            }
        } else if members.insert(name.to_owned(), value).is_some() {
            return Err(format!("{name} is given twice in the query"));
        }
    }
    Ok(members)
}
