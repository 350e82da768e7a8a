//! Variables of the environment in values: `${NAME}`.

use std::ffi::OsString;

/// A text of the file. What the environment put into it is never shown.
#[derive(Clone, PartialEq, Eq)]
pub struct Text {
    /// As it was written, with `${NAME}`.
    pub written: String,
    /// With the values put in.
    pub value: String,
}

impl std::fmt::Debug for Text {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:?}", self.written)
    }
}

impl std::fmt::Display for Text {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.written)
    }
}

impl Text {
    /// Whether a part of it came from the environment.
    pub fn is_expanded(&self) -> bool {
        self.written != self.value
    }
}

/// A value that nobody may read off a screen or a log.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    pub fn new(value: String) -> Self {
        Self(value)
    }

    /// The value, for the one place that has to use it.
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl std::fmt::Debug for Secret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("[secret]")
    }
}

/// Puts variables in. `$${` stands for `${`; a `$` alone stands for itself.
///
/// # Errors
/// A sentence that names the variable and never its value.
pub fn expand(
    written: &str,
    variable: &dyn Fn(&str) -> Option<OsString>,
) -> Result<String, String> {
    let mut value = String::with_capacity(written.len());
    let mut rest = written;
    while let Some(at) = rest.find("${") {
        let (before, after) = rest.split_at(at);
        let after = after.strip_prefix("${").unwrap_or_default();
        if let Some(before) = before.strip_suffix('$') {
            value.push_str(before);
            value.push_str("${");
            rest = after;
            continue;
        }
        value.push_str(before);
        let Some((name, behind)) = after.split_once('}') else {
            return Err("\"${\" has no \"}\" behind it; write ${NAME}, or $${ for the two characters themselves".into());
        };
        value.push_str(&look_up(name, variable)?);
        rest = behind;
    }
    value.push_str(rest);
    Ok(value)
}

fn look_up(name: &str, variable: &dyn Fn(&str) -> Option<OsString>) -> Result<String, String> {
    let first = name.bytes().next();
    let plain = first.is_some_and(|b| b.is_ascii_alphabetic() || b == b'_')
        && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
    if !plain {
        // What stands behind it may be a secret, as in `${NAME:-default}`.
        let is_of_name = |c: &char| c.is_ascii_alphanumeric() || *c == '_';
        let begin: String = name.chars().take(64).take_while(is_of_name).collect();
        let cut = if begin.len() < name.len() { "…" } else { "" };
        return Err(format!(
            "\"{begin}{cut}\" is not a variable name; names have letters, digits and _, and no default behind them"
        ));
    }
    variable(name)
        .ok_or_else(|| format!("the environment variable {name} is not set, or empty"))?
        .into_string()
        .map_err(|_| format!("the environment variable {name} is not UTF-8"))
}

#[cfg(test)]
mod tests;
