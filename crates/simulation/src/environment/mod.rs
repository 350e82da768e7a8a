//! The names of the bridge's variables, as other names of this server's keys.
//!
//! They are read if the configuration asks for it (`environment: bridge`). A variable that has no meaning here is
//! refused with the reason, so that it is not mistaken for active. No message has a value: some of them are secrets.

mod variables;

use std::ffi::OsString;
use std::ops::RangeInclusive;

use toolkit::options::{OptionKind, OptionValue, Options};

use crate::options::OPTIONS;
use variables::{Number, Only, Paths, Refused, Seconds, Text, VARIABLES, VariableUse, Word};

/// Returns the options that the variables give; what the configuration itself says outranks them.
///
/// # Errors
/// A sentence that names the variable and never its value.
pub fn from_environment(variable: &dyn Fn(&str) -> Option<OsString>) -> Result<Options, String> {
    let mut options = Options::default();
    let mut given: Vec<(&str, &str, OptionValue)> = Vec::new();
    for (name, what) in VARIABLES {
        let Some(text) = variable(name) else { continue };
        let text = text
            .into_string()
            .map_err(|_| format!("the environment variable {name} is not utf-8"))?;
        let Some((key, value)) = read(name, *what, text.trim())? else {
            continue;
        };
        let other = given.iter().find(|(of, _, _)| *of == key);
        if let Some((_, earlier, before)) = other
            && *before != value
        {
            return Err(format!(
                "the environment variables {earlier} and {name} both give {key}, and differ"
            ));
        }
        given.push((key, name, value.clone()));
        options.set(key, value);
    }
    Ok(options)
}

/// Reads the value of a variable.
fn read(
    name: &str,
    what: VariableUse,
    text: &str,
) -> Result<Option<(&'static str, OptionValue)>, String> {
    let wrong = |why: &str| Err(format!("the environment variable {name}: {why}"));
    let lower = text.to_ascii_lowercase();
    match what {
        Refused(reason) => wrong(&format!("{reason}; unset it")),
        Only(words, _) if words.contains(&lower.as_str()) => Ok(None),
        Only(words, reason) => wrong(&format!(
            "{reason}; unset it, or write {}",
            words.join(" or ")
        )),
        Word(key) => Ok(Some((key, OptionValue::Text(lower)))),
        Text(_) if text.is_empty() => wrong("nothing is named"),
        Text(key) => Ok(Some((key, OptionValue::Text(text.to_owned())))),
        Paths(key) => {
            let folders = text.split(':').filter(|folder| !folder.is_empty());
            let folders: Vec<std::path::PathBuf> = folders.map(Into::into).collect();
            match folders.iter().find(|folder| folder.is_relative()) {
                Some(_) => wrong("a folder has to be a whole path, from /"),
                None if folders.is_empty() => wrong("no folder is named"),
                None => Ok(Some((key, OptionValue::Paths(folders)))),
            }
        }
        Number(key) | Seconds(key) => {
            let (scale, unit) = match what {
                Seconds(_) => (1_000.0, " seconds"),
                _ => (1.0, ""),
            };
            let bounds = bounds(key);
            let least = number(*bounds.start()) / scale;
            let most = number(*bounds.end()) / scale;
            match text.parse::<f64>() {
                Ok(value)
                    if (least..=most).contains(&value)
                        && (unit.is_empty() <= (value.fract() == 0.0)) =>
                {
                    Ok(Some((key, OptionValue::Number(whole(value * scale)))))
                }
                _ => wrong(&format!("has to be a number of {least} to {most}{unit}")),
            }
        }
    }
}

/// Returns the bounds of a key that is a number or a span.
fn bounds(key: &str) -> RangeInclusive<u64> {
    let known = OPTIONS.iter().find(|option| option.name == key);
    match known.map(|option| &option.kind) {
        Some(OptionKind::Number(bounds) | OptionKind::SpanMs(bounds)) => bounds.clone(),
        _ => 0..=0,
    }
}

#[expect(clippy::cast_precision_loss, reason = "bounds are far below 2^53")]
fn number(bound: u64) -> f64 {
    bound as f64
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "within bounds; a cast from float to integer saturates"
)]
fn whole(value: f64) -> u64 {
    value.round() as u64
}

#[cfg(test)]
mod tests;
