//! A `.pkml` file with other numbers: the text as it is, but for the values of some entities.
//!
//! Everything that we do not read stays too: building blocks, display units, tags. A changed entity keeps its formula
//! and gets `value` and `isFixedValue="1"`, as the suite marks a value that a person set.

use std::collections::HashMap;

use memchr::{memchr, memmem};

use super::{ExportError, count_text};
use crate::watch::{Interrupt, Watch};

/// Returns the text with these values, by entity id. Only entities of the model itself are changed, those of building
/// blocks are left alone.
///
/// # Errors
/// [`ExportError::Unsupported`] if the text has no entity with an id, or two.
pub fn pkml_with_values(text: &str, values: &HashMap<&str, f64>) -> Result<String, ExportError> {
    pkml_with_values_watched(text, values, &Watch::default())
}

/// As [`pkml_with_values`], asking `watch` now and then whether to go on.
///
/// # Errors
/// As [`pkml_with_values`], and [`ExportError::Interrupted`].
pub fn pkml_with_values_watched(
    text: &str,
    values: &HashMap<&str, f64>,
    watch: &Watch<'_>,
) -> Result<String, ExportError> {
    watch.ask()?;
    let model = model_part(text, watch)?;
    let model = model.ok_or_else(|| refusal("the file", "it has no model".to_owned()))?;
    let mut written = String::with_capacity(text.len() + 64 * values.len());
    let (mut copied, mut at) = (0, model.start);
    let mut met = HashMap::with_capacity(values.len());
    while let Some(tag) = next_tag(text, at).filter(|t| t.start < model.end) {
        count_text(tag.end - at, watch)?;
        at = tag.end;
        let body = text.get(tag.clone()).unwrap_or_default();
        let Some((id, value)) = attribute(body, "id").and_then(|id| values.get_key_value(id))
        else {
            continue;
        };
        if met.insert(*id, ()).is_some() {
            return Err(refusal(
                id,
                "two entities of the file have this id".to_owned(),
            ));
        }
        written.push_str(text.get(copied..tag.start).unwrap_or_default());
        push_fixed(&mut written, body, *value);
        copied = tag.end;
    }
    if let Some(id) = values.keys().find(|id| !met.contains_key(*id)) {
        return Err(refusal(
            id,
            "the file has no entity with this id".to_owned(),
        ));
    }
    written.push_str(text.get(copied..).unwrap_or_default());
    Ok(written)
}

fn refusal(object: &str, what: String) -> ExportError {
    ExportError::unsupported("pkml", object, what)
}

/// Returns the range of the element `Model`.
fn model_part(text: &str, watch: &Watch<'_>) -> Result<Option<std::ops::Range<usize>>, Interrupt> {
    let mut at = 0;
    while let Some(tag) = next_tag(text, at) {
        count_text(tag.end - at, watch)?;
        at = tag.end;
        let body = text.get(tag.clone()).unwrap_or_default();
        if name(body) == "Model" && !body.ends_with("/>") {
            let rest = text.as_bytes().get(at..).unwrap_or_default();
            let end = memmem::find(rest, b"</Model>");
            return Ok(end.map(|end| tag.start..at + end));
        }
    }
    Ok(None)
}

/// Returns the next start tag from a byte on, comments, sections of plain text and instructions left out.
fn next_tag(text: &str, from: usize) -> Option<std::ops::Range<usize>> {
    let bytes = text.as_bytes();
    let mut at = from;
    loop {
        let start = at + memchr(b'<', bytes.get(at..)?)?;
        let rest = bytes.get(start..)?;
        let past = |end: &[u8]| memmem::find(rest, end).map(|found| start + found + end.len());
        at = if rest.starts_with(b"<!--") {
            past(b"-->")?
        } else if rest.starts_with(b"<![CDATA[") {
            past(b"]]>")?
        } else if rest.starts_with(b"</") || rest.starts_with(b"<?") || rest.starts_with(b"<!") {
            past(b">")?
        } else {
            return Some(start..start + tag_length(rest)?);
        };
    }
}

/// Length of a tag, its closing bracket included; one between quotes does not count.
fn tag_length(rest: &[u8]) -> Option<usize> {
    let mut quote = None;
    for (i, &byte) in rest.iter().enumerate() {
        match quote {
            Some(q) if q == byte => quote = None,
            Some(_) => {}
            None if byte == b'"' || byte == b'\'' => quote = Some(byte),
            None if byte == b'>' => return Some(i + 1),
            None => {}
        }
    }
    None
}

fn name(tag: &str) -> &str {
    let inner = tag.trim_start_matches('<');
    let end = inner.find(|c: char| c.is_whitespace() || c == '>' || c == '/');
    inner.get(..end.unwrap_or(inner.len())).unwrap_or_default()
}

/// Name, value and whole text of each attribute of a tag.
fn attributes(tag: &str) -> impl Iterator<Item = (&str, &str, &str)> {
    let mut rest = tag.get(1 + name(tag).len()..).unwrap_or_default();
    std::iter::from_fn(move || {
        let text = rest.trim_start();
        let equals = text.find('=')?;
        let (key, after) = text.split_at_checked(equals)?;
        let quoted = after.get(1..)?.trim_start();
        let quote = quoted.chars().next().filter(|c| matches!(c, '"' | '\''))?;
        let inner = quoted.get(1..)?;
        let end = inner.find(quote)?;
        rest = inner.get(end + 1..)?;
        let whole = text.get(..text.len() - rest.len())?;
        Some((key.trim_end(), inner.get(..end)?, whole))
    })
}

fn attribute<'a>(tag: &'a str, wanted: &str) -> Option<&'a str> {
    attributes(tag)
        .find(|(key, ..)| *key == wanted)
        .map(|a| a.1)
}

/// The tag with a fixed value in place of the one that it has.
fn push_fixed(text: &mut String, tag: &str, value: f64) {
    text.push('<');
    text.push_str(name(tag));
    for (key, _, whole) in attributes(tag) {
        if key != "value" && key != "isFixedValue" {
            text.push(' ');
            text.push_str(whole);
        }
    }
    text.push_str(" isFixedValue=\"1\" value=\"");
    text.push_str(&super::xml::number(value));
    text.push_str(if tag.ends_with("/>") { "\" />" } else { "\">" });
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "<S><B><P id=\"a\" value=\"9\"/></B>\n<Model id='m'><!-- <P id=\"a\"/> --><P id=\"a\" name='x > y' \
        value=\"1\" isFixedValue=\"0\" formula=\"f\" />\n<P id=\"b\"><Info id=\"c\"/></P></Model><P id=\"b\"/></S>";

    fn write_values(values: &[(&'static str, f64)]) -> Result<String, String> {
        let values = values.iter().copied().collect();
        pkml_with_values(TEXT, &values).map_err(|e| e.to_string())
    }

    #[test]
    fn nothing_but_the_values_of_the_model_changes() {
        assert_eq!(write_values(&[]), Ok(TEXT.to_owned()));
        let changed = write_values(&[("a", 0.1), ("b", 2.0)]).unwrap_or_default();
        let expected = TEXT
            .replace(
                "name='x > y' value=\"1\" isFixedValue=\"0\" formula=\"f\" />",
                "name='x > y' formula=\"f\" isFixedValue=\"1\" value=\"0.1\" />",
            )
            .replace(
                "<P id=\"b\"><",
                "<P id=\"b\" isFixedValue=\"1\" value=\"2.0\"><",
            );
        assert_eq!(changed, expected);
    }

    #[test]
    fn an_id_that_is_missing_or_not_one_entitys_is_named() {
        assert!(write_values(&[("z", 1.0)]).is_err_and(|e| e.contains("'z'")));
        let twice = TEXT.replace("id=\"b\"><", "id=\"a\"><");
        let values = HashMap::from([("a", 1.0)]);
        assert!(pkml_with_values(&twice, &values).is_err_and(|e| e.to_string().contains("two")));
        assert!(pkml_with_values("<S/>", &values).is_err());
        assert!(pkml_with_values("<Model id=\"m\"><P id=\"a", &values).is_err());
    }
}
