//! What names look like.

/// The name as a hasty reader sees it: case is folded, and `-`, `_`, `.`, `/` and blanks count for
/// nothing. Two names whose looks or whose [`skeleton`]s are the same can be taken for each other.
///
/// ```
/// assert_eq!(gate::names::look("Read-File"), gate::names::look("re\u{430}d_file"));
/// assert_ne!(gate::names::look("read_file"), gate::names::look("write_file"));
/// ```
#[must_use]
pub fn look(name: &str) -> String {
    let folded: String = name
        .to_lowercase()
        .chars()
        .filter(|c| !matches!(c, '-' | '_' | '.' | '/' | ' '))
        .collect();
    skeleton(&folded)
}

/// The skeleton of a text (Unicode TS 39): confusable characters replaced by what they resemble.
#[must_use]
pub fn skeleton(text: &str) -> String {
    unicode_security::skeleton(text).collect()
}
