//! The URIs of results: `sim://results/NAME`, a part of it, and a query.

use serde_json::{Map, Value};

use crate::percent::{decoded, encoded};

/// What every URI begins with.
const PREFIX: &str = "sim://results/";
/// Longest URI, in bytes.
const URI_BYTES_MAX: usize = 8 * 1024;

/// Members of a query that are whole numbers.
const NUMBERS: [&str; 3] = ["page", "limit", "subjects"];
/// Members that may stand more than once.
const LISTS: [&str; 2] = ["outputs", "subjects"];

/// What a URI names of a result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Part {
    /// The result itself.
    Whole,
    /// Its pharmacokinetic parameters.
    Parameters,
    /// A picture of its curves.
    Plot,
    /// A chunk of a population.
    Chunk(String),
}

/// A URI, read.
#[derive(Debug, Clone, PartialEq)]
pub struct ResultUri {
    /// The result's name.
    pub results_id: String,
    /// What of it.
    pub part: Part,
    /// The query as arguments of the tool that gives the same.
    pub query: Map<String, Value>,
}

impl Part {
    /// The members that a query of it may have.
    fn members(&self) -> &'static [&'static str] {
        match self {
            Self::Whole => &["outputs", "page", "limit"],
            Self::Parameters => &["outputPath"],
            Self::Plot => &["outputs"],
            Self::Chunk(_) => &["subjects", "outputs"],
        }
    }
}

/// The URI of a result without any query.
pub fn of_result(results_id: &str) -> String {
    format!("{PREFIX}{}", encoded(results_id))
}

impl ResultUri {
    /// Reads a URI. There is one spelling of each, so that a rule that names it cannot be walked around.
    ///
    /// # Errors
    /// What is wrong, and how it is written.
    pub fn read(text: &str) -> Result<Self, String> {
        const FORMS: &str =
            "write sim://results/RESULT, and behind it /pk, /plot or /chunks/CHUNK, and a query";
        if text.len() > URI_BYTES_MAX {
            return Err(format!("the uri is longer than {URI_BYTES_MAX} bytes"));
        }
        let rest = text
            .strip_prefix(PREFIX)
            .ok_or_else(|| format!("the uri names no result; {FORMS}"))?;
        let (path, query) = match rest.split_once('?') {
            Some((path, query)) => (path, Some(query)),
            None => (rest, None),
        };
        let parts: Vec<&str> = path.split('/').collect();
        let (name, part) = match parts.as_slice() {
            [name] => (name, Part::Whole),
            [name, "pk"] => (name, Part::Parameters),
            [name, "plot"] => (name, Part::Plot),
            [name, "chunks", chunk] if !chunk.is_empty() => (name, Part::Chunk(decoded(chunk))),
            _ => return Err(format!("there is no such part of a result; {FORMS}")),
        };
        if name.is_empty() {
            return Err(format!("the uri names no result; {FORMS}"));
        }
        let read = Self {
            results_id: decoded(name),
            query: members(query.unwrap_or_default(), &part)?,
            part,
        };
        let spelled = read.written();
        match spelled == text {
            true => Ok(read),
            false => Err(format!("the uri has another spelling; write {spelled}")),
        }
    }

    /// The one spelling.
    pub fn written(&self) -> String {
        let mut text = of_result(&self.results_id);
        match &self.part {
            Part::Whole => {}
            Part::Parameters => text.push_str("/pk"),
            Part::Plot => text.push_str("/plot"),
            Part::Chunk(chunk) => text.push_str(&format!("/chunks/{}", encoded(chunk))),
        }
        let mut mark = '?';
        let mut add = |name: &str, value: &Value| {
            let plain = value.as_str().map(encoded);
            let value = plain.unwrap_or_else(|| value.to_string());
            text.push_str(&format!("{mark}{name}={value}"));
            mark = '&';
        };
        let known = self.part.members().iter();
        for (name, value) in known.filter_map(|name| Some((name, self.query.get(*name)?))) {
            match value.as_array() {
                Some(all) => all.iter().for_each(|one| add(name, one)),
                None => add(name, value),
            }
        }
        text
    }
}

/// The members of a query.
fn members(query: &str, part: &Part) -> Result<Map<String, Value>, String> {
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
            return Err(format!("{name} stands twice in the query"));
        }
    }
    Ok(members)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_uri_is_read_in_its_one_spelling() {
        for (text, name, part, query) in [
            ("sim://results/run-1", "run-1", Part::Whole, json!({})),
            (
                "sim://results/a%20b?outputs=A%7CB&outputs=C&page=2&limit=5",
                "a b",
                Part::Whole,
                json!({"outputs": ["A|B", "C"], "page": 2, "limit": 5}),
            ),
            (
                "sim://results/x/pk?outputPath=A",
                "x",
                Part::Parameters,
                json!({"outputPath": "A"}),
            ),
            ("sim://results/x/plot", "x", Part::Plot, json!({})),
            (
                "sim://results/x/chunks/x-1?subjects=0&subjects=7",
                "x",
                Part::Chunk("x-1".into()),
                json!({"subjects": [0, 7]}),
            ),
        ] {
            let read = ResultUri::read(text).unwrap();
            assert_eq!((read.results_id.as_str(), &read.part), (name, &part));
            assert_eq!(Value::Object(read.query.clone()), query);
            assert_eq!(read.written(), text);
        }
    }

    #[test]
    fn any_other_text_is_refused_with_what_to_write() {
        for (text, said) in [
            ("", "names no result"),
            ("file:///etc/passwd", "names no result"),
            ("SIM://results/x", "names no result"),
            ("sim://results/", "names no result"),
            ("sim://results//pk", "names no result"),
            ("sim://results/x/", "no such part"),
            ("sim://results/x/../y", "no such part"),
            ("sim://results/x/chunks/", "no such part"),
            ("sim://results/%78", "write sim://results/x"),
            ("sim://results/a%2fb", "write sim://results/a%2Fb"),
            ("sim://results/a+b", "write sim://results/a%20b"),
            ("sim://results/x?", "write sim://results/x"),
            ("sim://results/x#y", "write sim://results/x%23y"),
            (
                "sim://results/x?limit=5&page=2",
                "write sim://results/x?page=2&limit=5",
            ),
            ("sim://results/x?page=one", "whole number"),
            ("sim://results/x?page=1&page=2", "twice"),
            ("sim://results/x?size=1", "may have outputs, page, limit"),
            ("sim://results/x/pk?page=1", "may have outputPath"),
        ] {
            let wrong = ResultUri::read(text).unwrap_err();
            assert!(wrong.contains(said), "{text}: {wrong}");
        }
        let long = format!("sim://results/{}", "x".repeat(URI_BYTES_MAX));
        assert!(ResultUri::read(&long).unwrap_err().contains("longer"));
    }
}
