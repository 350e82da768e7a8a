//! The arguments of a call: read once, held against the tool's schema, and then taken by name.

use std::fmt;

use serde::de::{Deserialize, IntoDeserializer as _};
use serde_json::{Map, Value};

use crate::schema::{Fault, Schema};

/// Arguments that fit the input schema of their tool, its defaults filled in.
#[derive(Debug, Clone, Copy)]
pub struct Args<'a> {
    members: &'a Map<String, Value>,
}

/// Arguments that do not fit, each fault with its member.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unfit {
    /// What is wrong; at least one.
    pub faults: Vec<Fault>,
}

impl Unfit {
    /// One fault of one member.
    #[must_use]
    pub fn member(member: &str, wrong: impl Into<String>) -> Self {
        Self {
            faults: vec![Fault {
                member: member.to_owned(),
                wrong: wrong.into(),
            }],
        }
    }
}

impl fmt::Display for Unfit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("arguments do not fit: ")?;
        for (number, fault) in self.faults.iter().enumerate() {
            if number > 0 {
                f.write_str("; ")?;
            }
            fault.fmt(f)?;
        }
        Ok(())
    }
}

impl std::error::Error for Unfit {}

/// Reads the raw arguments of a call (`{}` where it has none) against a schema, and fills in defaults.
///
/// # Errors
/// [`Unfit`] with every fault, up to a bound.
pub fn read(raw: Option<&str>, schema: &Schema) -> Result<Map<String, Value>, Unfit> {
    let mut value = match raw {
        None => Value::Object(Map::new()),
        Some(raw) => serde_json::from_str(raw)
            .map_err(|error| Unfit::member("", format!("cannot be read: {error}")))?,
    };
    schema.check(&value).map_err(|faults| Unfit { faults })?;
    schema.fill(&mut value);
    match value {
        Value::Object(members) => Ok(members),
        _ => Err(Unfit::member("", "must be an object")),
    }
}

impl<'a> Args<'a> {
    /// Arguments that [`read`] gave.
    #[must_use]
    pub fn new(members: &'a Map<String, Value>) -> Self {
        Self { members }
    }

    /// All members.
    #[must_use]
    pub fn members(self) -> &'a Map<String, Value> {
        self.members
    }

    /// A member, where it is there and not null.
    #[must_use]
    pub fn get(self, name: &str) -> Option<&'a Value> {
        self.members.get(name).filter(|value| !value.is_null())
    }

    /// A member that is a string.
    ///
    /// # Errors
    /// [`Unfit`] where it is absent or something else.
    pub fn text(self, name: &str) -> Result<&'a str, Unfit> {
        self.wanted(name, "must be a string", Value::as_str)
    }

    /// A member that is a number.
    ///
    /// # Errors
    /// [`Unfit`] where it is absent or something else.
    pub fn number(self, name: &str) -> Result<f64, Unfit> {
        self.wanted(name, "must be a number", Value::as_f64)
    }

    /// A member that is an integer of 0 or more; `2.0` is one.
    ///
    /// # Errors
    /// [`Unfit`] where it is absent or something else.
    pub fn count(self, name: &str) -> Result<u64, Unfit> {
        self.wanted(name, "must be an integer of 0 or more", |value| {
            value.as_u64().or_else(|| whole(value.as_f64()?))
        })
    }

    /// Whether a member is `true`; an absent one is not.
    #[must_use]
    pub fn is_set(self, name: &str) -> bool {
        self.get(name) == Some(&Value::Bool(true))
    }

    /// All members as a type of the server's.
    ///
    /// # Errors
    /// [`Unfit`] where they do not make one; a schema that is as strict as the type leaves nothing to fail.
    pub fn into_type<T: Deserialize<'a>>(self) -> Result<T, Unfit> {
        let read = T::deserialize(self.members.into_deserializer());
        read.map_err(|error: serde_json::Error| Unfit::member("", error.to_string()))
    }

    fn wanted<T>(
        self,
        name: &str,
        wrong: &str,
        read: impl Fn(&'a Value) -> Option<T>,
    ) -> Result<T, Unfit> {
        match self.get(name) {
            None => Err(Unfit::member(name, "is required")),
            Some(value) => read(value).ok_or_else(|| Unfit::member(name, wrong)),
        }
    }
}

/// The integer that a float is, below 2^53.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "whole, not negative and below 2^53"
)]
fn whole(number: f64) -> Option<u64> {
    const EXACT_MAX: f64 = 9_007_199_254_740_992.0;
    ((0.0..EXACT_MAX).contains(&number) && number.fract() == 0.0).then_some(number as u64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn schema() -> Schema {
        Schema::new(json!({
            "type": "object",
            "properties": {
                "text": {"type": "string"},
                "ms": {"type": "integer", "default": 5},
                "loud": {"type": "boolean"}
            },
            "required": ["text"],
            "additionalProperties": false
        }))
        .unwrap()
    }

    #[test]
    fn arguments_are_read_once_and_taken_by_name() {
        let members = read(Some(r#"{"text":"a","loud":true}"#), &schema()).unwrap();
        let args = Args::new(&members);
        assert_eq!(args.text("text"), Ok("a"));
        assert_eq!(args.count("ms"), Ok(5), "the default");
        assert!(args.is_set("loud"));
        let wrong = args.text("ms").unwrap_err();
        assert_eq!(
            wrong.to_string(),
            "arguments do not fit: \"ms\" must be a string"
        );
        assert_eq!(
            args.number("none").unwrap_err().to_string(),
            "arguments do not fit: \"none\" is required"
        );
        #[derive(serde::Deserialize, PartialEq, Debug)]
        struct Own<'a> {
            text: &'a str,
            ms: u8,
            loud: bool,
        }
        let own: Own<'_> = args.into_type().unwrap();
        assert_eq!(
            own,
            Own {
                text: "a",
                ms: 5,
                loud: true
            }
        );
    }

    #[test]
    fn arguments_that_do_not_fit_are_told_by_member() {
        let cases = [
            (None, "\"text\" is required"),
            (Some("[]"), "must be an object"),
            (
                Some(r#"{"text":1,"tex":2}"#),
                "\"tex\" is not known; did you mean \"text\"?; \"text\" must be a string",
            ),
            (
                Some(r#"{"text":"a","ms":1e999}"#),
                "cannot be read: number out of range at line 1 column 22",
            ),
        ];
        for (raw, expect) in cases {
            let unfit = read(raw, &schema()).unwrap_err().to_string();
            assert_eq!(unfit, format!("arguments do not fit: {expect}"));
        }
    }

    #[test]
    fn counts_are_exact() {
        let members = json!({"a": 3.0, "b": 3.5, "c": -1, "d": 1e300, "e": u64::MAX});
        let members = members.as_object().unwrap();
        let args = Args::new(members);
        assert_eq!(args.count("a"), Ok(3));
        assert_eq!(args.count("e"), Ok(u64::MAX));
        for name in ["b", "c", "d"] {
            assert!(args.count(name).is_err(), "{name}");
        }
    }
}
