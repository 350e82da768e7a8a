//! The form of an endpoint that takes files: its text fields as a JSON object, and its bytes for the provider.
//!
//! A form is read strictly, so that no other reader finds another `model` in it: what could be read in two ways is
//! refused.

use std::fmt;
use std::ops::Range;

use wire::text::push_string;

/// Most parts of a form.
const PARTS_MAX: usize = 64;
/// Longest head of a part, in bytes.
const HEAD_BYTES_MAX: usize = 4 * 1024;
/// Longest text field, in bytes.
const FIELD_BYTES_MAX: usize = 256 * 1024;
/// Longest boundary, in bytes.
const BOUNDARY_BYTES_MAX: usize = 70;

/// A form as it came.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MultipartForm {
    bytes: Vec<u8>,
    kind: String,
    boundary: String,
    model: Range<usize>,
}

/// Why a form is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FormFault {
    /// Its boundary is missing, or none.
    Boundary,
    /// Its parts do not follow each other as they have to.
    Parts,
    /// There are too many parts.
    TooMany,
    /// A part has a head that can be read in two ways, no name, or a text in another encoding than UTF-8.
    Head,
    /// A field is too long, or is no text.
    Field,
    /// Two parts have one name.
    Twice,
    /// It has no field `model`.
    NoModel,
}

impl fmt::Display for FormFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Boundary => f.write_str("content-type names no boundary, or one that cannot be one"),
            Self::Parts => f.write_str("the form's parts do not follow each other, separated by its boundary"),
            Self::TooMany => write!(f, "the form has more than {PARTS_MAX} parts"),
            Self::Head => f.write_str("a part of the form has no content-disposition that every reader reads alike: form-data; name=\"NAME\"; filename=\"FILE\""),
            Self::Field => write!(
                f,
                "a field of the form is not text, or is longer than {FIELD_BYTES_MAX} bytes"
            ),
            Self::Twice => f.write_str("two parts of the form have one name"),
            Self::NoModel => f.write_str("the form has no field \"model\""),
        }
    }
}

impl std::error::Error for FormFault {}

/// Returns whether a body of this kind is a form.
#[must_use]
pub fn is_form(kind: &str) -> bool {
    let head = kind.split(';').next().unwrap_or_default();
    head.trim().eq_ignore_ascii_case("multipart/form-data")
}

/// One part.
struct FormPart<'b> {
    name: &'b str,
    file: Option<&'b str>,
    content: &'b [u8],
    at: usize,
}

impl MultipartForm {
    /// Reads a form: itself, and its fields as a JSON object, with the name and length of each file.
    ///
    /// # Errors
    /// [`FormFault`].
    pub fn read(kind: &str, bytes: &[u8]) -> Result<(Self, String), FormFault> {
        let boundary = boundary(kind).ok_or(FormFault::Boundary)?;
        let parts = parts(bytes, &boundary)?;
        let mut model = None;
        let mut fields: Vec<(&str, Vec<String>)> = Vec::new();
        for part in &parts {
            if part.name == "model" && part.file.is_none() {
                model = Some(part.at..part.at + part.content.len());
            }
            let value = value(part)?;
            let may_repeat = part.name.ends_with("[]");
            // Some readers take `model[]` for `model`.
            let own = part.name.trim_end_matches("[]");
            let mut known = fields.iter_mut();
            match known.find(|(name, _)| name.trim_end_matches("[]") == own) {
                Some((name, _)) if *name != part.name => return Err(FormFault::Twice),
                Some((_, values)) if may_repeat => values.push(value),
                Some(_) => return Err(FormFault::Twice),
                None => fields.push((part.name, vec![value])),
            }
        }
        let model = model.ok_or(FormFault::NoModel)?;
        let mut json = b"{".to_vec();
        for (at, (name, values)) in fields.iter().enumerate() {
            if at > 0 {
                json.push(b',');
            }
            push_string(&mut json, name);
            json.push(b':');
            let text = values.join(",");
            match name.ends_with("[]") {
                true => json.extend_from_slice(format!("[{text}]").as_bytes()),
                false => json.extend_from_slice(text.as_bytes()),
            }
        }
        json.push(b'}');
        let form = Self {
            bytes: bytes.to_vec(),
            kind: kind_of(&boundary),
            boundary,
            model,
        };
        Ok((form, String::from_utf8(json).map_err(|_| FormFault::Field)?))
    }

    /// Returns the content type that says how it was read. Parameters that were not read are not in it: Go's reader
    /// takes `boundary*=utf-8''other` (RFC 2231) for the boundary, and would find another form.
    #[must_use]
    pub fn kind(&self) -> &str {
        &self.kind
    }

    /// Its length, in bytes.
    #[must_use]
    pub fn length(&self) -> usize {
        self.bytes.len()
    }

    /// Returns the form with this `model`, and every other byte unchanged; `None` if the name has the boundary in it.
    #[must_use]
    pub fn with_model(&self, model: &str) -> Option<Vec<u8>> {
        if model.contains(&self.boundary) || model.contains(['\r', '\n']) {
            return None;
        }
        let mut out = self.bytes.get(..self.model.start)?.to_vec();
        out.extend_from_slice(model.as_bytes());
        out.extend_from_slice(self.bytes.get(self.model.end..)?);
        Some(out)
    }
}

fn value(part: &FormPart<'_>) -> Result<String, FormFault> {
    let mut out = Vec::new();
    if let Some(file) = part.file {
        out.extend_from_slice(b"{\"filename\":");
        push_string(&mut out, file);
        out.extend_from_slice(format!(",\"bytes\":{}}}", part.content.len()).as_bytes());
    } else {
        let text = std::str::from_utf8(part.content).ok();
        let text = text.filter(|text| text.len() <= FIELD_BYTES_MAX);
        match (part.name, text.ok_or(FormFault::Field)?) {
            // A form has texts alone.
            ("stream", text @ ("true" | "false")) => out.extend_from_slice(text.as_bytes()),
            (_, text) => push_string(&mut out, text),
        }
    }
    String::from_utf8(out).map_err(|_| FormFault::Field)
}

/// Returns a content type with this boundary, in quotes if it needs them.
fn kind_of(boundary: &str) -> String {
    let is_token = |b: u8| b.is_ascii_alphanumeric() || b"'+_-.".contains(&b);
    match boundary.bytes().all(is_token) {
        true => format!("multipart/form-data; boundary={boundary}"),
        false => format!("multipart/form-data; boundary=\"{boundary}\""),
    }
}

/// Returns the boundary that a content type names.
fn boundary(kind: &str) -> Option<String> {
    let mut found = None;
    for parameter in kind.split(';').skip(1) {
        let (name, value) = parameter.split_once('=')?;
        if name.trim().eq_ignore_ascii_case("boundary") {
            let value = value.trim();
            let quoted = value
                .strip_prefix('"')
                .and_then(|own| own.strip_suffix('"'));
            let value = quoted.unwrap_or(value);
            let fits = |b: u8| b.is_ascii_alphanumeric() || b"'()+_,-./:=?".contains(&b);
            let is_one = (1..=BOUNDARY_BYTES_MAX).contains(&value.len()) && value.bytes().all(fits);
            if !is_one || found.replace(value.to_owned()).is_some() {
                return None;
            }
        }
    }
    found
}

fn parts<'b>(bytes: &'b [u8], boundary: &str) -> Result<Vec<FormPart<'b>>, FormFault> {
    let mark = format!("\r\n--{boundary}");
    // The first one is at the beginning.
    let first = mark.get(2..).unwrap_or_default().as_bytes();
    let mut at = match bytes.strip_prefix(first) {
        Some(_) => first.len(),
        None => return Err(FormFault::Parts),
    };
    let mut parts = Vec::new();
    loop {
        let rest = bytes.get(at..).unwrap_or_default();
        match rest.strip_prefix(b"--") {
            Some(b"" | b"\r\n") => return Ok(parts),
            Some(_) => return Err(FormFault::Parts),
            None => {}
        }
        if parts.len() >= PARTS_MAX {
            return Err(FormFault::TooMany);
        }
        let rest = rest.strip_prefix(b"\r\n").ok_or(FormFault::Parts)?;
        let head_at = at + 2;
        let head_end = find(
            rest.get(..HEAD_BYTES_MAX.min(rest.len()))
                .unwrap_or_default(),
            b"\r\n\r\n",
        );
        let head_end = head_end.ok_or(FormFault::Head)?;
        let (head, body) = rest.split_at(head_end);
        let body = body.get(4..).unwrap_or_default();
        // At any position some reader takes the boundary for the end of the part.
        let dashes = find(body, first).ok_or(FormFault::Parts)?;
        let length = dashes.checked_sub(2).ok_or(FormFault::Parts)?;
        if !body.get(length..).unwrap_or_default().starts_with(b"\r\n") {
            return Err(FormFault::Parts);
        }
        let (name, file) = head_of(head).ok_or(FormFault::Head)?;
        let content_at = head_at + head_end + 4;
        parts.push(FormPart {
            name,
            file,
            content: body.get(..length).unwrap_or_default(),
            at: content_at,
        });
        at = content_at + length + mark.len();
    }
}

/// Returns the first position of these bytes.
fn find(bytes: &[u8], mark: &[u8]) -> Option<usize> {
    let first = mark.first()?;
    let mut at = 0;
    loop {
        let rest = bytes.get(at..)?;
        at += rest.iter().position(|byte| byte == first)?;
        if bytes.get(at..)?.starts_with(mark) {
            return Some(at);
        }
        at += 1;
    }
}

/// Returns the name of a part, and that of its file if it is one.
fn head_of(head: &[u8]) -> Option<(&str, Option<&str>)> {
    let head = std::str::from_utf8(head).ok()?;
    let mut found = None;
    let mut kind = None;
    for line in head.split("\r\n") {
        let (name, value) = line.split_once(':')?;
        if value.chars().any(char::is_control) {
            return None;
        }
        if name.eq_ignore_ascii_case("content-disposition") {
            if found.replace(disposition(value.trim())?).is_some() {
                return None;
            }
        } else if name.eq_ignore_ascii_case("content-type") {
            if kind.replace(value.to_ascii_lowercase()).is_some() {
                return None;
            }
        } else if !name.eq_ignore_ascii_case("content-length") {
            return None;
        }
    }
    // A reader that knows the encoding would read another text.
    let is_other = |kind: String| {
        let mut parameters = kind.split(';').skip(1);
        kind.contains("charset") && !parameters.all(|own| own.trim() == "charset=utf-8")
    };
    let (name, file) = found?;
    let is_text = file.is_some() || !kind.is_some_and(is_other);
    (is_text && name != "_charset_").then_some((name, file))
}

/// `form-data; name="x"; filename="y"`, and nothing that another reader may read otherwise.
fn disposition(text: &str) -> Option<(&str, Option<&str>)> {
    let mut rest = text.strip_prefix("form-data")?;
    let (mut name, mut file) = (None, None);
    while !rest.is_empty() {
        let parameter = rest.strip_prefix(';')?.trim_start();
        let (key, value) = parameter.split_once("=\"")?;
        let (value, after) = value.split_once('"')?;
        // Escapes are read by some and not by others; a file's name decides nothing, and browsers write `%22` in it.
        if value.contains('\\') || (key == "name" && value.contains('%')) {
            return None;
        }
        let slot = match key {
            "name" => &mut name,
            "filename" => &mut file,
            _ => return None,
        };
        if slot.replace(value).is_some() {
            return None;
        }
        rest = after.trim_start();
    }
    Some((name.filter(|own| !own.is_empty())?, file))
}

#[cfg(test)]
mod tests {
    use super::*;

    const KIND: &str = "multipart/form-data; boundary=xx-1";

    fn part(head: &str, content: &str) -> String {
        format!("--xx-1\r\n{head}\r\n\r\n{content}\r\n")
    }

    fn field(name: &str, content: &str) -> String {
        part(
            &format!("Content-Disposition: form-data; name=\"{name}\""),
            content,
        )
    }

    fn read(parts: &[String]) -> Result<(MultipartForm, String), FormFault> {
        let text = format!("{}--xx-1--\r\n", parts.concat());
        MultipartForm::read(KIND, text.as_bytes())
    }

    #[test]
    fn fields_are_told_and_every_byte_but_the_model_stays() {
        let file = part(
            "Content-Disposition: form-data; name=\"file\"; filename=\"a \u{e9}.wav\"\r\nContent-Type: audio/wav",
            "RIFF\r\n--xx-\r\n\r\nmodel",
        );
        let parts = [
            field("prompt", "say \"hi\"\n"),
            file,
            field("model", "smart"),
            field("stream", "false"),
            field("include[]", "a"),
            field("include[]", "b"),
        ];
        let (form, json) = read(&parts).unwrap();
        let value: serde_json::Value = serde_json::from_str(&json).unwrap();
        assert_eq!(
            value,
            serde_json::json!({ "prompt": "say \"hi\"\n", "file": { "filename": "a é.wav", "bytes": 20 },
                "model": "smart", "stream": false, "include[]": ["a", "b"] })
        );
        let sent = String::from_utf8(form.with_model("whisper").unwrap()).unwrap();
        let before = format!("{}--xx-1--\r\n", parts.concat());
        assert_eq!(sent, before.replace("smart", "whisper"));
        assert_eq!(form.with_model("a\r\n--xx-1--"), None);
        assert_eq!(form.kind(), KIND);
    }

    #[test]
    fn the_content_type_names_the_boundary_that_was_read_and_no_other() {
        let text = format!("{}--xx-1--\r\n", field("model", "m"));
        for kind in [
            "multipart/form-data; boundary=xx-1; boundary*=utf-8''yy",
            "multipart/form-data; boundary*0=yy; boundary=xx-1",
            "Multipart/Form-Data;BOUNDARY=\"xx-1\"; charset=utf-16",
        ] {
            let (form, _) = MultipartForm::read(kind, text.as_bytes()).unwrap();
            assert_eq!(form.kind(), KIND, "{kind}");
        }
        let text = text.replace("xx-1", "a=b:c");
        let (form, _) =
            MultipartForm::read("multipart/form-data; boundary=\"a=b:c\"", text.as_bytes())
                .unwrap();
        assert_eq!(form.kind(), "multipart/form-data; boundary=\"a=b:c\"");
    }

    #[test]
    fn what_two_readers_may_read_in_two_ways_is_refused() {
        let model = field("model", "m");
        let odd = |head: &str| read(&[model.clone(), part(head, "x")]).unwrap_err();
        for head in [
            "Content-Disposition: form-data",
            "Content-Disposition: form-data; name=model",
            "Content-Disposition: form-data; name=\"a\"; name=\"b\"",
            "Content-Disposition: form-data; name*=\"a\"",
            "Content-Disposition: form-data; name=\"a%22\"",
            "Content-Disposition: form-data; name=\"a\\\"\"",
            "Content-Disposition: form-data; filename=\"a\\\"; name=\"model\"; x=\"\"",
            "Content-Disposition: form-data; name=\"a\"\r\nContent-Type: text/plain; charset=utf-7",
            "Content-Disposition: form-data; name=\"a\"\r\nContent-Type: text/plain; charset=utf-7; x=utf-8",
            "Content-Disposition: form-data; name=\"a\"\r\nContent-Type: x\ny: z",
            "Content-Disposition: form-data; name=\"_charset_\"",
            "Content-Disposition: attachment; name=\"a\"",
            "Content-Disposition: form-data; name=\"a\"\r\nContent-Disposition: form-data; name=\"b\"",
            "Content-Disposition: form-data; name=\"a\"\r\nContent-Transfer-Encoding: base64",
            " folded",
            "",
        ] {
            assert_eq!(odd(head), FormFault::Head, "{head:?}");
        }
        assert_eq!(
            read(&[model.clone(), model.clone()]).unwrap_err(),
            FormFault::Twice
        );
        let list = field("model[]", "other");
        assert_eq!(read(&[model.clone(), list]).unwrap_err(), FormFault::Twice);
        let inner = field("x", "a\n--xx-1\r\n");
        assert_eq!(read(&[model.clone(), inner]).unwrap_err(), FormFault::Parts);
        let long = field("x", &"y".repeat(FIELD_BYTES_MAX + 1));
        assert_eq!(read(&[model.clone(), long]).unwrap_err(), FormFault::Field);
        let file = field("model\"; filename=\"m", "m");
        assert_eq!(read(&[file]).unwrap_err(), FormFault::NoModel);
        assert_eq!(read(&[field("x", "y")]).unwrap_err(), FormFault::NoModel);
        let many: Vec<String> = (0..=PARTS_MAX)
            .map(|at| field(&format!("f{at}"), ""))
            .collect();
        assert_eq!(read(&many).unwrap_err(), FormFault::TooMany);
        let text = format!("{model}--xx-1--\r\n");
        for (kind, text, fault) in [
            ("multipart/form-data", text.as_str(), FormFault::Boundary),
            ("multipart/form-data; boundary=", &text, FormFault::Boundary),
            (
                "multipart/form-data; boundary=a; boundary=b",
                &text,
                FormFault::Boundary,
            ),
            (KIND, "", FormFault::Parts),
            (KIND, "preamble\r\n--xx-1--", FormFault::Parts),
            (KIND, &format!("{text}more"), FormFault::Parts),
            (KIND, model.as_str(), FormFault::Parts),
        ] {
            assert_eq!(
                MultipartForm::read(kind, text.as_bytes()).unwrap_err(),
                fault,
                "{text:?}"
            );
        }
        assert!(is_form("Multipart/Form-Data; boundary=x") && !is_form("application/json"));
    }
}
