//! The cursor of a list of several servers: the cursor of each that has more.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

/// Begins every cursor of ours.
const MARK: &str = "durward.";

/// Which servers have more, and where they go on.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Cursor(pub BTreeMap<String, String>);

impl Cursor {
    /// Reads one of ours; none where it is not.
    pub fn read(text: &str) -> Option<Self> {
        let bytes = URL_SAFE_NO_PAD.decode(text.strip_prefix(MARK)?).ok()?;
        let all: BTreeMap<String, String> = serde_json::from_slice(&bytes).ok()?;
        (!all.is_empty()).then_some(Self(all))
    }

    /// As a text that means nothing to clients; none where no server has more.
    pub fn text(&self) -> Option<String> {
        if self.0.is_empty() {
            return None;
        }
        let json = serde_json::to_vec(&self.0).ok()?;
        Some(format!("{MARK}{}", URL_SAFE_NO_PAD.encode(json)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_comes_back_as_it_was_given_and_no_other_is_taken() {
        let all = [("a", "2"), ("b", "{\"x\":\"é\"}")];
        let cursor = Cursor(all.map(|(s, c)| (s.into(), c.into())).into());
        assert_eq!(Cursor::read(&cursor.text().unwrap()), Some(cursor));
        assert_eq!(Cursor::default().text(), None);
        for stray in [
            "",
            "2",
            "durward.",
            "durward.e30",
            "durward.!!",
            "durward.WzFd",
        ] {
            assert_eq!(Cursor::read(stray), None, "{stray}");
        }
    }
}
