//! Arguments that a request over HTTP repeats in headers: which ones a tool's schema declares, and what
//! such a header must say (`x-mcp-header`, 2026-07-28, SEP-2243).

use std::collections::HashMap;

use http::{HeaderMap, HeaderName, HeaderValue};
use serde_json::Value;

/// Most arguments of one tool that go into headers.
pub const HEADERS_MAX: usize = 32;
/// Most tools whose declarations are kept.
pub const TOOLS_MAX: usize = 4_096;
/// Deepest property that is looked at.
const DEPTH_MAX: usize = 16;

/// An argument that goes into a header.
#[derive(Debug)]
pub struct Mirrored {
    name: String,
    path: Vec<String>,
}

impl Mirrored {
    /// The header's name.
    #[must_use]
    pub fn header(&self) -> String {
        format!("mcp-param-{}", self.name)
    }

    /// What the header says for these arguments, unencoded; `None` where it may not be there.
    #[must_use]
    pub fn value(&self, arguments: &Value) -> Option<String> {
        let value = self
            .path
            .iter()
            .try_fold(arguments, |value, name| value.get(name))?;
        match value {
            Value::String(text) => Some(text.clone()),
            Value::Bool(flag) => Some(flag.to_string()),
            Value::Number(number) if number.is_i64() || number.is_u64() => Some(number.to_string()),
            Value::Number(_) | Value::Null | Value::Array(_) | Value::Object(_) => None,
        }
    }

    /// Whether the headers repeat the argument: once where it is there, else not at all.
    fn check(&self, headers: &HeaderMap, arguments: &Value) -> Result<(), String> {
        let name = HeaderName::from_bytes(self.header().as_bytes())
            .map_err(|_| "the tool declares an invalid header".to_owned())?;
        let mut values = headers.get_all(&name).iter();
        let said = values.next();
        if values.next().is_some() {
            return Err(format!("the header {name} is given more than once"));
        }
        match (said, self.value(arguments)) {
            (None, None) => Ok(()),
            (None, Some(_)) => Err(format!(
                "the header {name} is missing; it repeats an argument"
            )),
            (Some(_), None) => Err(format!(
                "the header {name} repeats an argument that is not there"
            )),
            (Some(said), Some(value)) => match wire::header::decode(said.as_bytes()) {
                Ok(said) if said == value => Ok(()),
                Ok(_) => Err(format!("the header {name} differs from the argument")),
                Err(_) => Err(format!("the header {name} cannot be read")),
            },
        }
    }
}

/// What a tool's schema declares; `None` where a declaration breaks the rules.
#[must_use]
pub fn declared(input_schema: &Value) -> Option<Vec<Mirrored>> {
    let mut found = Vec::new();
    collect(input_schema, &mut Vec::new(), &mut found).then_some(found)
}

/// Collects the declarations below `properties`; `false` where one breaks the rules.
fn collect(schema: &Value, path: &mut Vec<String>, found: &mut Vec<Mirrored>) -> bool {
    if path.len() > DEPTH_MAX {
        return true;
    }
    if let Some(declared) = schema.get("x-mcp-header") {
        let primitive = matches!(
            schema.get("type").and_then(Value::as_str),
            Some("string" | "integer" | "boolean")
        );
        let Some(header) = declared.as_str().filter(|name| is_token(name)) else {
            return false;
        };
        let taken = found.iter().any(|m| m.name.eq_ignore_ascii_case(header));
        if !primitive || taken || path.is_empty() || found.len() >= HEADERS_MAX {
            return false;
        }
        found.push(Mirrored {
            name: header.to_owned(),
            path: path.clone(),
        });
    }
    let properties = schema.get("properties").and_then(Value::as_object);
    for (name, property) in properties.into_iter().flatten() {
        path.push(name.clone());
        let sound = collect(property, path, found);
        path.pop();
        if !sound {
            return false;
        }
    }
    true
}

/// RFC 9110 `token`.
fn is_token(name: &str) -> bool {
    !name.is_empty()
        && name
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&b))
}

/// What the tools of one server declare.
#[derive(Debug, Default)]
pub struct Declarations {
    by_tool: HashMap<String, Vec<Mirrored>>,
}

impl Declarations {
    /// Learns from a tool's schema; `false` where a declaration in it breaks the rules.
    pub fn learn(&mut self, tool: &str, input_schema: &Value) -> bool {
        let declared = declared(input_schema);
        let sound = declared.is_some();
        match declared.filter(|found| !found.is_empty()) {
            Some(found) if self.by_tool.len() < TOOLS_MAX || self.by_tool.contains_key(tool) => {
                self.by_tool.insert(tool.to_owned(), found);
            }
            Some(_) | None => {
                self.by_tool.remove(tool);
            }
        }
        sound
    }

    /// The headers that repeat what a tool declares, where its client could not send them. `arguments` as raw JSON.
    #[must_use]
    pub fn repeated(&self, tool: &str, arguments: Option<&str>) -> HeaderMap {
        let arguments = arguments
            .and_then(|raw| serde_json::from_str(raw).ok())
            .unwrap_or_default();
        let declared = self.by_tool.get(tool).into_iter().flatten();
        let headers = declared.filter_map(|mirrored| {
            let name = HeaderName::from_bytes(mirrored.header().as_bytes()).ok()?;
            let value = mirrored.value(&arguments)?;
            let value = HeaderValue::from_str(&wire::header::encode(&value)).ok()?;
            Some((name, value))
        });
        headers.collect()
    }

    /// Whether a call's headers repeat what its tool declares. `arguments` as raw JSON.
    ///
    /// # Errors
    /// A sentence about the first header that does not.
    pub fn check(
        &self,
        tool: &str,
        arguments: Option<&str>,
        headers: &HeaderMap,
    ) -> Result<(), String> {
        let Some(declared) = self.by_tool.get(tool) else {
            return Ok(());
        };
        let arguments = arguments
            .and_then(|raw| serde_json::from_str(raw).ok())
            .unwrap_or_default();
        declared
            .iter()
            .try_for_each(|mirrored| mirrored.check(headers, &arguments))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn checked(arguments: &Value, headers: &[(&'static str, &str)]) -> Result<(), String> {
        let schema = json!({"properties": {
            "region": {"type": "string", "x-mcp-header": "Region"},
            "n": {"type": "integer", "x-mcp-header": "N"}}});
        let mut declarations = Declarations::default();
        assert!(declarations.learn("t", &schema));
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            map.append(*name, HeaderValue::from_str(value).unwrap());
        }
        declarations.check("t", Some(&arguments.to_string()), &map)
    }

    #[test]
    fn headers_repeat_declared_arguments() {
        let both = json!({"region": "caf\u{e9}", "n": 7});
        let region = ("mcp-param-region", "=?base64?Y2Fmw6k=?=");
        let n = ("mcp-param-n", "7");
        assert_eq!(checked(&both, &[region, n]), Ok(()));
        assert_eq!(checked(&json!({}), &[]), Ok(()));
        assert_eq!(checked(&json!({"n": null}), &[]), Ok(()));
        assert_eq!(checked(&json!({}), &[("mcp-param-other", "x")]), Ok(()));
        let wrong: [&[(&str, &str)]; 6] = [
            &[region],
            &[n],
            &[region, n, n],
            &[region, ("mcp-param-n", "8")],
            &[n, ("mcp-param-region", "cafe")],
            &[n, ("mcp-param-region", "=?base64?Y2Fmw6k?=")],
        ];
        for headers in wrong {
            assert!(checked(&both, headers).is_err(), "{headers:?}");
        }
        assert!(checked(&json!({}), &[n]).is_err());
    }

    #[test]
    fn headers_that_are_worked_out_are_those_that_are_demanded() {
        let schema = json!({"properties": {
            "region": {"type": "string", "x-mcp-header": "Region"},
            "n": {"type": "integer", "x-mcp-header": "N"}}});
        let mut declarations = Declarations::default();
        assert!(declarations.learn("t", &schema));
        for arguments in [
            json!({"region": "caf\u{e9}", "n": 7}),
            json!({"n": -1}),
            json!({}),
        ] {
            let arguments = arguments.to_string();
            let headers = declarations.repeated("t", Some(&arguments));
            assert_eq!(declarations.check("t", Some(&arguments), &headers), Ok(()));
        }
        assert!(declarations.repeated("other", Some("{\"n\":1}")).is_empty());
    }

    #[test]
    fn declarations_are_bounded_and_replaced() {
        let mut declarations = Declarations::default();
        let schema = json!({"properties": {"a": {"type": "string", "x-mcp-header": "A"}}});
        for n in 0..TOOLS_MAX + 10 {
            declarations.learn(&format!("t{n}"), &schema);
        }
        assert_eq!(declarations.by_tool.len(), TOOLS_MAX);
        declarations.learn("t0", &json!({}));
        assert_eq!(declarations.by_tool.len(), TOOLS_MAX - 1);
        let bad = json!({"properties": {"a": {"type": "number", "x-mcp-header": "A"}}});
        assert!(!declarations.learn("t1", &bad));
        assert_eq!(declarations.by_tool.len(), TOOLS_MAX - 2);
    }
}
