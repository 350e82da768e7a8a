//! The URIs of results: `sim://results/NAME`, a part of it, and a query.

mod query;

use serde_json::{Map, Value};

use crate::percent::{decoded, encoded};
use query::members;

/// What every URI begins with.
const PREFIX: &str = "sim://results/";
/// Longest URI, in bytes.
const URI_BYTES_MAX: usize = 8 * 1024;

/// Part of a result that a URI names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum UriPart {
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
    pub part: UriPart,
    /// The query as arguments of the tool that gives the same.
    pub query: Map<String, Value>,
}

impl UriPart {
    /// Returns the members that a query of it may have.
    fn members(&self) -> &'static [&'static str] {
        match self {
            Self::Whole => &["outputs", "page", "limit"],
            Self::Parameters => &["outputPath"],
            Self::Plot => &["outputs"],
            Self::Chunk(_) => &["subjects", "outputs"],
        }
    }
}

/// Returns the URI of a result without any query.
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
            [name] => (name, UriPart::Whole),
            [name, "pk"] => (name, UriPart::Parameters),
            [name, "plot"] => (name, UriPart::Plot),
            [name, "chunks", chunk] if !chunk.is_empty() => (name, UriPart::Chunk(decoded(chunk))),
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
        let spelled = read.to_text();
        match spelled == text {
            true => Ok(read),
            false => Err(format!("the uri has another spelling; write {spelled}")),
        }
    }

    /// Returns the one spelling.
    pub fn to_text(&self) -> String {
        let mut text = of_result(&self.results_id);
        match &self.part {
            UriPart::Whole => {}
            UriPart::Parameters => text.push_str("/pk"),
            UriPart::Plot => text.push_str("/plot"),
            UriPart::Chunk(chunk) => text.push_str(&format!("/chunks/{}", encoded(chunk))),
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

#[cfg(test)]
mod tests;
