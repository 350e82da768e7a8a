//! The files that an `Include` names.

use std::path::{Component, Path, PathBuf};

use super::{FILES_MAX, Person};
use crate::trust::matches;

/// Files, in order. A file that is not there is none, as for OpenSSH.
///
/// # Errors
/// A pattern that is not read here, or too many files.
pub(super) fn found(pattern: &str, person: &Person) -> Result<Vec<PathBuf>, String> {
    if pattern.contains(['[', '{', '$']) {
        return Err(format!(
            "Include {pattern}: only * and ? are known in names of files"
        ));
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
                    if name.contains(['*', '?']) {
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
    let mut found = Vec::new();
    for entry in entries.flatten() {
        let name = entry.file_name();
        let Some(name) = name.to_str() else { continue };
        let is_hidden = name.starts_with('.') && !pattern.starts_with('.');
        if !is_hidden && matches(pattern.as_bytes(), name.as_bytes()) {
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
