//! The files that an `Include` names.

use std::path::{Component, Path, PathBuf};

use regex::Regex;

use super::{FILES_MAX, Person};

/// Files, in order. A file that is not there is none, as for OpenSSH.
///
/// # Errors
/// A pattern that is not read here, or too many files.
pub(super) fn found(pattern: &str, person: &Person) -> Result<Vec<PathBuf>, String> {
    if pattern.contains('$') {
        return Err(format!("Include {pattern}: variables are not read here"));
    }
    let path = match pattern.strip_prefix("~/") {
        Some(rest) => person.home.join(rest),
        None if pattern.starts_with('~') => {
            return Err(format!(
                "Include {pattern}: other users' homes are not known"
            ));
        }
        // Relative to the user's own files, wherever the file that includes it is.
        None => person.home.join(".ssh").join(pattern),
    };
    let mut places = vec![PathBuf::new()];
    for part in path.components() {
        let mut next = Vec::new();
        for place in &places {
            match part {
                Component::Normal(name) => {
                    let name = name.to_string_lossy();
                    if name.contains(['*', '?', '[', '\\']) {
                        next.extend(below(place, &name)?);
                    } else {
                        next.push(place.join(&*name));
                    }
                }
                other => next.push(place.join(other)),
            }
        }
        places = next;
    }
    places.retain(|place| place.exists());
    Ok(places)
}

/// What in a directory fits a pattern, by name.
fn below(directory: &Path, pattern: &str) -> Result<Vec<PathBuf>, String> {
    let Ok(entries) = std::fs::read_dir(directory) else {
        return Ok(Vec::new());
    };
    let fits = glob(pattern)?;
    let mut found = Vec::new();
    for entry in entries.flatten() {
        let name = entry.file_name();
        let Some(name) = name.to_str() else { continue };
        let is_hidden = name.starts_with('.') && !pattern.starts_with('.');
        if !is_hidden && fits.is_match(name) {
            found.push(directory.join(name));
        }
        if found.len() > FILES_MAX {
            return Err(format!(
                "Include: more than {FILES_MAX} files fit {pattern}"
            ));
        }
    }
    found.sort();
    Ok(found)
}

/// Returns a pattern of glob(3) for one name as a regular expression: `*`, `?`, `[a-z]`, `[!a]`, `[[:alpha:]]` and `\`.
fn glob(pattern: &str) -> Result<Regex, String> {
    let mut expression = String::from("(?s)^");
    let mut rest = pattern;
    let mut letter = [0; 4];
    while let Some(first) = rest.chars().next() {
        rest = rest.get(first.len_utf8()..).unwrap_or_default();
        match first {
            '*' => expression.push_str(".*"),
            '?' => expression.push('.'),
            '[' => match set(rest) {
                Some((set, behind)) => {
                    expression.push_str(&set);
                    rest = behind;
                }
                None => expression.push_str(r"\["),
            },
            '\\' => {
                let next = rest.chars().next().unwrap_or('\\');
                rest = rest.get(next.len_utf8()..).unwrap_or_default();
                expression.push_str(&regex::escape(next.encode_utf8(&mut letter)));
            }
            other => expression.push_str(&regex::escape(other.encode_utf8(&mut letter))),
        }
    }
    expression.push('$');
    Regex::new(&expression).map_err(|_| format!("Include {pattern}: the pattern is not read here"))
}

/// Returns the set that begins behind `[`, and what follows its `]`; `None` if there is no `]`.
fn set(text: &str) -> Option<(String, &str)> {
    let mut set = String::from("[");
    let mut rest = text;
    if let Some(behind) = rest.strip_prefix(['!', '^']) {
        set.push('^');
        rest = behind;
    }
    let mut is_first = true;
    loop {
        if let Some(behind) = rest.strip_prefix("[:") {
            let (class, behind) = behind.split_once(":]")?;
            set.push_str(&format!("[:{class}:]"));
            rest = behind;
        } else {
            let next = rest.chars().next()?;
            rest = rest.get(next.len_utf8()..)?;
            match next {
                ']' if !is_first => {
                    set.push(']');
                    return Some((set, rest));
                }
                '-' => set.push('-'),
                next if next.is_alphanumeric() || next == '_' => set.push(next),
                next => {
                    set.push('\\');
                    set.push(next);
                }
            }
        }
        is_first = false;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_are_those_of_glob() {
        for (pattern, name, fits) in [
            ("[a-z]*", "web", true),
            ("[a-z]*", "Web", false),
            ("[!a-z]*", "10-web", true),
            ("[^a-z]*", "web", false),
            ("[[:digit:]_]?", "1x", true),
            ("[]x]", "]", true),
            ("[x-]", "-", true),
            ("[.]conf", ".conf", true),
            ("a[", "a[", true),
            (r"a\*", "a*", true),
            (r"a\*", "ab", false),
            ("a.b", "axb", false),
            ("a{b,c}", "ab", false),
        ] {
            assert_eq!(
                glob(pattern).unwrap().is_match(name),
                fits,
                "{pattern} {name}"
            );
        }
        assert!(glob("[z-a]").is_err());
    }
}
