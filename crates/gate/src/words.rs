//! Names of tools and arguments as words. A leaf: it imports nothing of ours.

/// The words of a name: split at `_ - . / :` and blanks, and where lower case meets upper.
pub(crate) fn words(name: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word = String::new();
    let mut lower_before = false;
    for ch in name.chars() {
        let ends_word = !ch.is_alphanumeric() || (ch.is_uppercase() && lower_before);
        if ends_word && !word.is_empty() {
            words.push(std::mem::take(&mut word));
        }
        if ch.is_alphanumeric() {
            word.extend(ch.to_lowercase());
        }
        lower_before = ch.is_lowercase() || ch.is_numeric();
    }
    if !word.is_empty() {
        words.push(word);
    }
    words
}
