//! Start tags: names and attributes.

use std::borrow::Cow;

use memchr::memchr;

use crate::error::LoadError;

/// A start tag.
pub(crate) struct XmlElement<'a> {
    /// The name as written.
    pub(super) name: &'a str,
    /// Text between the name and the closing bracket.
    pub(super) rest: &'a str,
    pub(crate) line: u64,
}

impl<'a> XmlElement<'a> {
    /// Returns the name without a prefix.
    pub(crate) fn name(&self) -> &'a str {
        local(self.name)
    }

    /// Calls `each` with every attribute's name and value.
    pub(crate) fn attributes(
        &self,
        mut each: impl FnMut(&str, Cow<'a, str>) -> Result<(), LoadError>,
    ) -> Result<(), LoadError> {
        let mut rest = self.rest;
        while let Some((name, value, after)) = self.attribute_in(rest)? {
            rest = after;
            each(local(name), self.plain(value)?)?;
        }
        Ok(())
    }

    /// Returns the first attribute in this text: name, value as written, and what follows.
    fn attribute_in(
        &self,
        text: &'a str,
    ) -> Result<Option<(&'a str, &'a str, &'a str)>, LoadError> {
        let text = text.trim_ascii_start();
        if text.is_empty() {
            return Ok(None);
        }
        let malformed = || LoadError::Xml {
            line: self.line,
            message: format!("an attribute of {} is not name=\"value\"", self.name),
        };
        let (name, after) = split_at(text, b'=').ok_or_else(malformed)?;
        let name = name.trim_ascii_end();
        let after = after.trim_ascii_start();
        let quote = after
            .as_bytes()
            .first()
            .filter(|c| matches!(c, b'"' | b'\''));
        let quoted = quote.and_then(|quote| split_at(after.get(1..)?, *quote));
        let (value, after) = quoted.ok_or_else(malformed)?;
        if name.is_empty() || name.bytes().any(|b| b.is_ascii_whitespace()) {
            return Err(malformed());
        }
        Ok(Some((name, value, after)))
    }

    fn plain(&self, raw: &'a str) -> Result<Cow<'a, str>, LoadError> {
        if memchr(b'&', raw.as_bytes()).is_none() {
            return Ok(Cow::Borrowed(raw));
        }
        let text = unescaped(raw).map_err(|message| LoadError::Xml {
            line: self.line,
            message,
        })?;
        Ok(Cow::Owned(text))
    }

    /// Returns the value of one attribute.
    pub(crate) fn attribute(&self, name: &str) -> Result<Option<String>, LoadError> {
        let mut found = None;
        self.attributes(|key, value| {
            if key == name {
                found = Some(value.into_owned());
            }
            Ok(())
        })?;
        Ok(found)
    }

    /// Returns the value of an attribute that must be there.
    pub(crate) fn required(&self, name: &str) -> Result<String, LoadError> {
        self.attribute(name)?
            .ok_or_else(|| self.invalid(format!("{} without attribute '{name}'", self.name())))
    }

    /// Returns the values of two attributes that must be there.
    pub(crate) fn pair(
        &self,
        first: &str,
        second: &str,
    ) -> Result<(Cow<'a, str>, Cow<'a, str>), LoadError> {
        let (mut a, mut b) = (None, None);
        self.attributes(|key, value| {
            if key == first {
                a = Some(value);
            } else if key == second {
                b = Some(value);
            }
            Ok(())
        })?;
        let missing =
            |name: &str| self.invalid(format!("{} without attribute '{name}'", self.name()));
        let a = a.ok_or_else(|| missing(first))?;
        Ok((a, b.ok_or_else(|| missing(second))?))
    }

    /// Returns an error at this tag.
    pub(crate) fn invalid(&self, message: String) -> LoadError {
        LoadError::Invalid {
            line: self.line,
            message,
        }
    }
}

/// Splits at the first of this (ASCII) byte.
fn split_at(text: &str, byte: u8) -> Option<(&str, &str)> {
    let at = memchr(byte, text.as_bytes())?;
    Some((text.get(..at)?, text.get(at + 1..)?))
}

/// Returns a name without its prefix.
fn local(name: &str) -> &str {
    split_at(name, b':').map_or(name, |(_, local)| local)
}

/// Returns a text with its references resolved.
pub(super) fn unescaped(raw: &str) -> Result<String, String> {
    let mut out = String::with_capacity(raw.len());
    let mut rest = raw;
    while let Some((before, after)) = rest.split_once('&') {
        out.push_str(before);
        let known = after
            .split_once(';')
            .and_then(|(reference, after)| Some((resolve(reference)?, after)));
        let (character, after) = known.ok_or(
            "an entity that is not one of lt, gt, amp, quot, apos or the number of a character",
        )?;
        out.push(character);
        rest = after;
    }
    out.push_str(rest);
    Ok(out)
}

fn resolve(reference: &str) -> Option<char> {
    Some(match reference {
        "lt" => '<',
        "gt" => '>',
        "amp" => '&',
        "quot" => '"',
        "apos" => '\'',
        _ => {
            let number = reference.strip_prefix('#')?;
            let code = match number.strip_prefix(['x', 'X']) {
                Some(hex) => u32::from_str_radix(hex, 16).ok()?,
                None => number.parse().ok()?,
            };
            char::from_u32(code)?
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attributes_are_taken_apart() {
        let list = |rest| {
            let element = XmlElement {
                name: "p:a",
                rest,
                line: 7,
            };
            let mut found = Vec::new();
            let done = element.attributes(|k, v| {
                found.push(format!("{k}|{v}"));
                Ok(())
            });
            done.map(|()| found.join(" "))
        };
        assert_eq!(list(""), Ok(String::new()));
        assert_eq!(
            list(" x:b = 'a\"b'\n c=\"&lt;&#x41;&#66;\" "),
            Ok("b|a\"b c|<AB".to_owned())
        );
        for bad in [
            " b", " b=c", " b=\"c", " ='x'", " b c='x'", " b='&x;'", " b='&lt'",
        ] {
            assert!(
                matches!(list(bad), Err(LoadError::Xml { line: 7, .. })),
                "{bad}"
            );
        }
    }
}
