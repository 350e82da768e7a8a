//! `durward.yaml`: found, read, checked, and turned into [`Settings`].
//!
//! Flag, then environment, then file, then default. A value that came out of the environment is
//! never shown, neither in a message nor by `Debug`.

pub mod check;
mod expand;
mod fault;
mod file;
pub mod keys;
mod node;
mod read;
mod section;
pub mod server;
pub mod settings;
pub mod values;

use std::path::{Path, PathBuf};

pub use expand::Secret;
pub use file::NAME as FILE_NAME;
pub use settings::{Origin, Settings};

use crate::places::{self, Places};
use section::Reader;
use settings::{Setting, Warning};

/// Which file is meant.
#[derive(Debug, Clone)]
pub enum Source {
    /// The one in the configuration directory, where it is there.
    Default,
    /// This one.
    File(PathBuf),
    /// None.
    None,
}

/// Reads the configuration that a command is about.
///
/// # Errors
/// A message that names the file, and where the text is at fault line and column.
pub fn load(source: &Source, places: &Places) -> Result<Settings, String> {
    let file = match source {
        Source::None => None,
        Source::File(file) => Some(places.absolute(file)),
        Source::Default => file::default(&places.config),
    };
    match file {
        None => Ok(Settings::default()),
        Some(file) => load_file(&file, places),
    }
}

fn load_file(path: &Path, places: &Places) -> Result<Settings, String> {
    let shown = path.display();
    let opened = file::open(path).map_err(|why| format!("{shown}: {why}"))?;
    let reader = Reader {
        variable: &places::variable,
        base: path.parent().unwrap_or(Path::new("/")),
        home: places.home.as_deref(),
    };
    let mut settings =
        read::settings(&opened.text, &reader).map_err(|fault| format!("{shown}: {fault}"))?;
    settings.file = Some(path.to_path_buf());
    settings.checksum = Some(gate::policy::checksum(&opened.text));
    if opened.group_writable {
        settings.warnings.push(Warning {
            line: None,
            message: "your group may write to this file, and could have any program started; chmod g-w takes that away".into(),
        });
    }
    let mut reached = settings
        .servers
        .iter()
        .filter_map(|server| server.http.as_ref());
    if opened.world_readable && reached.any(|http| http.key_in_file) {
        settings.warnings.push(Warning {
            line: None,
            message: "everybody may read this file, and an api key stands in it".into(),
        });
    }
    Ok(settings)
}

impl Settings {
    /// The command line or the environment names another policy.
    pub fn set_policy(&mut self, file: Option<&Path>, origin: Origin) {
        if let Some(file) = file {
            self.policy = Setting {
                value: Some(file.to_path_buf()),
                origin,
            };
        }
    }
}

#[cfg(test)]
mod tests;
