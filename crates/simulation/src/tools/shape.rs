//! A short notation for the shapes of results, from which their schemas are made.
//!
//! `s` string, `i` integer, `f` number, `b` boolean, `o` object of any content, `{name s, other f?}` an object with
//! exactly these members, `{*: f}` an object of any names, `[s]` a list. `?` after a type: it may be null. `~`
//! before a name: the member may be left out.

use serde_json::{Map, Value, json};

/// Returns the schema of a shape.
///
/// # Errors
/// The place in the text that is not a shape.
pub fn schema(text: &str) -> Result<Value, String> {
    let mut reader = ShapeReader { text, at: 0 };
    let schema = reader.shape()?;
    reader.blanks();
    let is_whole = reader.peek().is_none();
    is_whole
        .then_some(schema)
        .ok_or_else(|| reader.wrong("nothing more"))
}

struct ShapeReader<'t> {
    text: &'t str,
    at: usize,
}

impl ShapeReader<'_> {
    fn rest(&self) -> &str {
        self.text.get(self.at..).unwrap_or_default()
    }

    fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    fn wrong(&self, wanted: &str) -> String {
        format!("expected {wanted} at \"{}\"", self.rest())
    }

    fn blanks(&mut self) {
        self.at += self.rest().len() - self.rest().trim_start().len();
    }

    fn takes(&mut self, mark: char) -> bool {
        self.blanks();
        let takes = self.peek() == Some(mark);
        if takes {
            self.at += mark.len_utf8();
        }
        takes
    }

    fn name(&mut self) -> Result<String, String> {
        self.blanks();
        let fits = |c: char| c.is_ascii_alphanumeric() || c == '_';
        let end = self.rest().find(|c| !fits(c)).unwrap_or(self.rest().len());
        let name = self.rest().get(..end).unwrap_or_default().to_owned();
        self.at += end;
        if name.is_empty() {
            return Err(self.wrong("a name"));
        }
        Ok(name)
    }

    fn shape(&mut self) -> Result<Value, String> {
        let mut schema = if self.takes('{') {
            self.members()?
        } else if self.takes('[') {
            let items = self.shape()?;
            if !self.takes(']') {
                return Err(self.wrong("]"));
            }
            json!({"type": "array", "items": items})
        } else {
            let kind = match self.name()?.as_str() {
                "s" => "string",
                "i" => "integer",
                "f" => "number",
                "b" => "boolean",
                "o" => "object",
                _ => return Err(self.wrong("a type before this")),
            };
            json!({"type": kind})
        };
        if self.takes('?')
            && let Some(kind) = schema.get_mut("type")
        {
            *kind = json!([kind.clone(), "null"]);
        }
        Ok(schema)
    }

    fn members(&mut self) -> Result<Value, String> {
        if self.takes('*') {
            if !self.takes(':') {
                return Err(self.wrong(":"));
            }
            let each = self.shape()?;
            if !self.takes('}') {
                return Err(self.wrong("}"));
            }
            return Ok(json!({"type": "object", "additionalProperties": each}));
        }
        let (mut properties, mut required) = (Map::new(), Vec::new());
        while !self.takes('}') {
            let optional = self.takes('~');
            let name = self.name()?;
            properties.insert(name.clone(), self.shape()?);
            if !optional {
                required.push(name);
            }
            if !self.takes(',') && self.peek() != Some('}') {
                return Err(self.wrong(", or }"));
            }
        }
        Ok(json!({
            "type": "object", "properties": properties, "required": required,
            "additionalProperties": false
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shapes_become_schemas() {
        let made = schema("{id s, at f?, ~more [{x i}], all {*: f}}").unwrap();
        assert_eq!(
            made,
            json!({
                "type": "object",
                "properties": {
                    "id": {"type": "string"},
                    "at": {"type": ["number", "null"]},
                    "more": {"type": "array", "items": {
                        "type": "object", "properties": {"x": {"type": "integer"}},
                        "required": ["x"], "additionalProperties": false
                    }},
                    "all": {"type": "object", "additionalProperties": {"type": "number"}}
                },
                "required": ["id", "at", "all"],
                "additionalProperties": false
            })
        );
        for wrong in ["{id}", "{id q}", "[s", "s s", "{*f}"] {
            assert!(schema(wrong).is_err(), "{wrong}");
        }
    }
}
