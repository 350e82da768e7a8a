//! Writing JSON, member by member.

use wire::text::push_string;

/// An object under way.
#[derive(Debug)]
pub(super) struct ObjectWriter(Vec<u8>);

impl ObjectWriter {
    pub fn new() -> Self {
        Self(b"{".to_vec())
    }

    /// Adds a member with a value in JSON.
    pub fn raw(mut self, name: &str, value: impl AsRef<[u8]>) -> Self {
        if self.0.len() > 1 {
            self.0.push(b',');
        }
        push_string(&mut self.0, name);
        self.0.push(b':');
        self.0.extend_from_slice(value.as_ref());
        self
    }

    /// Adds a member that is a string.
    pub fn text(self, name: &str, value: &str) -> Self {
        let quoted = quote(value);
        self.raw(name, quoted)
    }

    /// Adds a member with a value in JSON, if there is one.
    pub fn raw_if(self, name: &str, value: Option<impl AsRef<[u8]>>) -> Self {
        match value {
            Some(value) => self.raw(name, value),
            None => self,
        }
    }

    /// Returns the whole object.
    pub fn end(mut self) -> Vec<u8> {
        self.0.push(b'}');
        self.0
    }
}

/// Returns a list of values that are JSON already.
pub(super) fn list(items: impl IntoIterator<Item = impl AsRef<[u8]>>) -> Vec<u8> {
    let mut out = b"[".to_vec();
    for item in items {
        if out.len() > 1 {
            out.push(b',');
        }
        out.extend_from_slice(item.as_ref());
    }
    out.push(b']');
    out
}

/// Returns a string in JSON.
pub(super) fn quote(text: &str) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len() + 2);
    push_string(&mut out, text);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_and_items_are_parted_by_commas() {
        let empty: [&str; 0] = [];
        let object = ObjectWriter::new()
            .raw("a", list(["1", "2"]))
            .text("b\"", "x\n")
            .raw_if("c", None::<&str>)
            .raw_if("d", Some("null"))
            .raw("e", list(empty))
            .end();
        let text = String::from_utf8(object).unwrap();
        assert_eq!(text, r#"{"a":[1,2],"b\"":"x\n","d":null,"e":[]}"#);
        assert_eq!(ObjectWriter::new().end(), b"{}");
    }
}
