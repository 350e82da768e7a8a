//! Aliases with white space: `_` takes its place, in the alias and in the text.

use std::borrow::Cow;

/// Returns the text and the aliases without white space inside aliases.
pub(super) fn without_spaces(text: &str, aliases: Vec<String>) -> (Cow<'_, str>, Vec<String>) {
    if !aliases
        .iter()
        .any(|alias| alias.contains(char::is_whitespace))
    {
        return (Cow::Borrowed(text), aliases);
    }
    // Longest first, so that one alias inside another is not cut.
    let mut order: Vec<&String> = aliases
        .iter()
        .filter(|alias| alias.contains(char::is_whitespace))
        .collect();
    order.sort_by_key(|alias| std::cmp::Reverse(alias.len()));
    let mut text = text.to_owned();
    for alias in order {
        text = text.replace(alias.as_str(), &underscored(alias));
    }
    let aliases = aliases.iter().map(|alias| underscored(alias)).collect();
    (Cow::Owned(text), aliases)
}

fn underscored(alias: &str) -> String {
    alias
        .chars()
        .map(|c| if c.is_whitespace() { '_' } else { c })
        .collect()
}
