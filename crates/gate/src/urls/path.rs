//! Paths of URLs, in the spellings that servers may see.

use std::borrow::Cow;

use percent_encoding::percent_decode_str;

/// Most layers of percent-encoding that are taken off a path.
const DECODINGS_MAX: usize = 3;

/// Returns the readings of a path, and whether servers may resolve it to different places.
pub(super) fn readings(raw: &str) -> (Vec<String>, bool) {
    let mut out = Vec::new();
    let mut ambiguous = false;
    let mut layer = Cow::Borrowed(raw);
    for round in 0..=DECODINGS_MAX {
        ambiguous |= add(&layer, &mut out);
        if !layer.contains('%') {
            break;
        }
        let next = percent_decode_str(&layer).decode_utf8_lossy().into_owned();
        if next == *layer {
            break;
        }
        ambiguous |= round == DECODINGS_MAX;
        layer = Cow::Owned(next);
    }
    (out, ambiguous)
}

/// Adds a path as it stands and with its dot segments resolved; returns whether it has any.
fn add(text: &str, out: &mut Vec<String>) -> bool {
    let normal = unreserved(text);
    let slashes = normal.replace('\\', "/");
    let has_dots = slashes.split('/').any(|part| matches!(part, "." | ".."));
    let tidy = without_dots(&slashes);
    for path in [normal.into_owned(), slashes, tidy] {
        let path = match path.starts_with('/') {
            true => path,
            false => format!("/{path}"),
        };
        if !out.contains(&path) {
            out.push(path);
        }
    }
    has_dots
}

/// Returns a path with its dot segments resolved and its doubled slashes made one.
fn without_dots(path: &str) -> String {
    let mut kept: Vec<&str> = Vec::new();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                kept.pop();
            }
            part => kept.push(part),
        }
    }
    let ends_in_directory = matches!(path.rsplit('/').next(), Some("" | "." | ".."));
    let end = match ends_in_directory && !kept.is_empty() {
        true => "/",
        false => "",
    };
    format!("/{}{end}", kept.join("/"))
}

/// Decodes letters, digits and marks that mean the same encoded and plain.
fn unreserved(text: &str) -> Cow<'_, str> {
    if !text.contains('%') {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, behind)) = rest.split_once('%') {
        out.push_str(before);
        let code = behind
            .get(..2)
            .and_then(|hex| u8::from_str_radix(hex, 16).ok());
        let plain = code.map(char::from);
        match plain.filter(|c| c.is_ascii_alphanumeric() || "-._~".contains(*c)) {
            Some(c) => {
                out.push(c);
                rest = behind.get(2..).unwrap_or_default();
            }
            None => {
                out.push('%');
                rest = behind;
            }
        }
    }
    out.push_str(rest);
    Cow::Owned(out)
}

/// Returns the spellings of a pattern's path: as it is written, and decoded.
pub(crate) fn spellings(pattern: &str) -> Vec<String> {
    let mut out = vec![unreserved(pattern).into_owned()];
    if pattern.contains('%')
        && let Ok(decoded) = percent_decode_str(pattern).decode_utf8()
        && !out.iter().any(|known| *known == decoded)
    {
        out.push(decoded.into_owned());
    }
    out
}
