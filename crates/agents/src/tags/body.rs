//! Body of an action: tracks JSON strings, so that a closing tag in a string does not close.

use super::{ACTION_BYTES_MAX, ActionBody};

/// Collects a body. Quotes count from the first brace on, so that an apostrophe in words before it opens nothing.
#[derive(Debug, Default)]
pub(super) struct BodyScanner {
    text: String,
    is_too_long: bool,
    depth: u32,
    in_string: bool,
    after_backslash: bool,
    /// Position of a closing tag inside of an open string, for replies in which that string never ends.
    closed_at: Option<usize>,
    /// Position of the last `<`.
    bracket_at: Option<usize>,
}

impl BodyScanner {
    /// Returns whether the next character is inside of a JSON string.
    pub(super) fn in_string(&self) -> bool {
        self.in_string
    }

    pub(super) fn len(&self) -> usize {
        self.text.len()
    }

    pub(super) fn push(&mut self, c: char) {
        if self.in_string {
            if self.after_backslash {
                self.after_backslash = false;
            } else if c == '\\' {
                self.after_backslash = true;
            } else if c == '"' {
                self.in_string = false;
            }
        } else {
            match c {
                '{' | '[' => self.depth = self.depth.saturating_add(1),
                '}' | ']' => self.depth = self.depth.saturating_sub(1),
                '"' => self.in_string = self.depth > 0,
                _ => {}
            }
        }
        if self.text.len() + c.len_utf8() > ACTION_BYTES_MAX {
            self.is_too_long = true;
            self.text = String::new();
        }
        if self.is_too_long {
            return;
        }
        if c == '<' {
            self.bracket_at = Some(self.text.len());
        }
        self.text.push(c);
        if c == '>' && self.in_string && self.closed_at.is_none() {
            self.closed_at = self
                .bracket_at
                .take()
                .filter(|at| self.text.get(*at..).is_some_and(is_closing_tag));
        }
    }

    pub(super) fn into_closed(self) -> ActionBody {
        if self.is_too_long {
            ActionBody::TooLong
        } else {
            ActionBody::Closed(self.text)
        }
    }

    /// Returns the body at the end of a reply. In an open string, text from a closing tag on is not part of it.
    pub(super) fn into_unclosed(mut self) -> ActionBody {
        if self.is_too_long {
            return ActionBody::TooLong;
        }
        if self.in_string
            && let Some(end) = self.closed_at
        {
            self.text.truncate(end);
            return ActionBody::Closed(self.text);
        }
        ActionBody::Unclosed(self.text)
    }
}

/// Returns whether a text is the closing tag of an action.
fn is_closing_tag(text: &str) -> bool {
    let name = text
        .strip_prefix("</")
        .and_then(|rest| rest.strip_suffix('>'));
    name.is_some_and(|name| name.trim_end().eq_ignore_ascii_case("ACTION"))
}
