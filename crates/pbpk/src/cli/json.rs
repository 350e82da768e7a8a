//! JSON text, as much as the reports need.

use std::fmt::Write;

/// Writes one JSON value after another; commas are set by itself.
#[derive(Default)]
pub(super) struct JsonWriter {
    text: String,
    fresh: bool,
}

impl JsonWriter {
    pub(super) fn object(build: impl FnOnce(&mut Self)) -> String {
        let mut json = Self {
            text: String::new(),
            fresh: true,
        };
        json.braces('{', '}', build);
        json.text.push('\n');
        json.text
    }

    fn braces(&mut self, open: char, close: char, build: impl FnOnce(&mut Self)) {
        self.text.push(open);
        self.fresh = true;
        build(self);
        self.text.push(close);
        self.fresh = false;
    }

    fn comma(&mut self) {
        if !self.fresh {
            self.text.push(',');
        }
        self.fresh = false;
    }

    fn key(&mut self, key: &str) {
        self.comma();
        self.write_quoted(key);
        self.text.push(':');
    }

    fn write_quoted(&mut self, text: &str) {
        self.text.push('"');
        for c in text.chars() {
            match c {
                '"' => self.text.push_str("\\\""),
                '\\' => self.text.push_str("\\\\"),
                c if u32::from(c) < 0x20 => {
                    // Writing to a string cannot fail.
                    let _ = write!(self.text, "\\u{:04x}", u32::from(c));
                }
                c => self.text.push(c),
            }
        }
        self.text.push('"');
    }

    pub(super) fn string(&mut self, key: &str, value: &str) {
        self.key(key);
        self.write_quoted(value);
    }

    /// A number; what JSON cannot say is null.
    pub(super) fn number(&mut self, key: &str, value: f64) {
        self.key(key);
        if value.is_finite() {
            let _ = write!(self.text, "{value:?}");
        } else {
            self.text.push_str("null");
        }
    }

    pub(super) fn count(&mut self, key: &str, value: usize) {
        self.key(key);
        let _ = write!(self.text, "{value}");
    }

    pub(super) fn flag(&mut self, key: &str, value: bool) {
        self.key(key);
        self.text.push_str(if value { "true" } else { "false" });
    }

    pub(super) fn strings(&mut self, key: &str, values: &[String]) {
        self.key(key);
        self.braces('[', ']', |json| {
            for value in values {
                json.comma();
                json.write_quoted(value);
            }
        });
    }

    pub(super) fn nested(&mut self, key: &str, build: impl FnOnce(&mut Self)) {
        self.key(key);
        self.braces('{', '}', build);
    }

    /// A list of objects, one per item.
    pub(super) fn list<T>(
        &mut self,
        key: &str,
        items: impl Iterator<Item = T>,
        mut build: impl FnMut(&mut Self, T),
    ) {
        self.key(key);
        self.braces('[', ']', |json| {
            for item in items {
                json.comma();
                json.braces('{', '}', |json| build(json, item));
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use super::JsonWriter;

    #[test]
    fn values_are_escaped_and_separated() {
        let text = JsonWriter::object(|j| {
            j.string("a\"", "x\ny\\");
            j.number("b", f64::NAN);
            j.list("c", [1, 2].into_iter(), |j, n| j.count("n", n));
            j.nested("d", |j| j.flag("e", true));
            j.strings("f", &["p".to_owned(), "q".to_owned()]);
        });
        assert_eq!(
            text,
            "{\"a\\\"\":\"x\\u000ay\\\\\",\"b\":null,\"c\":[{\"n\":1},{\"n\":2}],\"d\":{\"e\":true},\"f\":[\"p\",\"q\"]}\n"
        );
    }
}
