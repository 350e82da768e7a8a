//! `%h` and its like.

/// What tokens stand for.
#[derive(Debug, Clone, Copy)]
pub struct Tokens<'t> {
    /// `%h`: where is connected to.
    pub host: &'t str,
    /// `%n`: the name that was asked for.
    pub name: &'t str,
    /// `%p`.
    pub port: u16,
    /// `%r`: the user there.
    pub user: &'t str,
    /// `%u`: the user here.
    pub local_user: &'t str,
    /// `%d`: the home here.
    pub home: &'t str,
}

/// The tokens of files.
pub const OF_FILES: &str = "hnprud";
/// Those of machines on the way.
pub const OF_JUMPS: &str = "hnpr";

/// A text with its tokens replaced; `allowed` has their letters.
///
/// # Errors
/// A token that is not known here, by name.
pub fn expanded(text: &str, allowed: &str, tokens: &Tokens<'_>) -> Result<String, String> {
    if text.contains("${") {
        return Err(format!(
            "{text}: variables are not read here; write the path itself"
        ));
    }
    let mut out = String::new();
    let mut letters = text.chars();
    while let Some(letter) = letters.next() {
        if letter != '%' {
            out.push(letter);
            continue;
        }
        match letters.next() {
            Some('%') => out.push('%'),
            Some(other) if !allowed.contains(other) => {
                return Err(format!("{text}: %{other} is not known here"));
            }
            Some('h') => out.push_str(tokens.host),
            Some('n') => out.push_str(tokens.name),
            Some('p') => out.push_str(&tokens.port.to_string()),
            Some('r') => out.push_str(tokens.user),
            Some('u') => out.push_str(tokens.local_user),
            Some('d') => out.push_str(tokens.home),
            Some(other) => return Err(format!("{text}: %{other} is not known here")),
            None => return Err(format!("{text}: the text ends in %; write %%")),
        }
    }
    Ok(out)
}
