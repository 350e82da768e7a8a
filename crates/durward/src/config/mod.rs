//! `durward.yaml`: found, read, checked, and turned into [`Settings`].
//!
//! Flag, then environment, then file, then default. A value that came out of the environment is
//! never shown, neither in a message nor by `Debug`.

pub mod agents;
mod expand;
mod fault;
mod file;
mod guarded;
pub mod identity;
pub mod inspect;
pub mod keys;
mod model_cache;
pub mod model_clouds;
pub mod models;
mod node;
pub mod notify;
mod options;
pub mod otel;
mod read;
pub mod rows;
mod section;
pub mod server;
pub mod settings;
pub mod state_store;
mod unpriced;
pub mod values;

use std::path::{Path, PathBuf};

pub use expand::Secret;
pub use file::NAME as FILE_NAME;
pub use keys::SERVERS_ALIAS;
pub use settings::{Origin, Settings};
pub use toolkit::files::is_ours;

use crate::places::{self, Places};
use gate::policy::document::nearest;
use section::Reader;
use server::Server;
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

/// Returns the configuration file that a source names, whether it exists or not; `None` if no configuration is to be read.
pub fn file_of(source: &Source, places: &Places) -> Option<PathBuf> {
    match source {
        Source::None => None,
        Source::File(file) => Some(places.absolute(file)),
        Source::Default => {
            let found = file::default(&places.config);
            Some(found.unwrap_or_else(|| places.config.join(FILE_NAME)))
        }
    }
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
    let mut settings = match file {
        None => Settings::default(),
        Some(file) => load_file(&file, places)?,
    };
    settings.writable = match source {
        Source::None => None,
        Source::File(file) => Some(places.absolute(file)),
        Source::Default => Some(places.config.join(FILE_NAME)),
    };
    let insecure = settings.insecure_http.value;
    let Settings { otel, warnings, .. } = &mut settings;
    otel.overlay(&places::variable, insecure, warnings);
    Ok(settings)
}

/// Whether a text would be taken as the configuration in this file.
///
/// # Errors
/// What is wrong with it.
pub fn check_text(text: &str, file: &Path, places: &Places) -> Result<(), String> {
    let read = read::settings(text, &reader(file, places));
    read.map(drop).map_err(|fault| fault.to_string())
}

fn reader<'a>(file: &'a Path, places: &'a Places) -> Reader<'a> {
    Reader {
        variable: &places::variable,
        base: file.parent().unwrap_or(Path::new("/")),
        home: places.home.as_deref(),
    }
}

fn load_file(path: &Path, places: &Places) -> Result<Settings, String> {
    let shown = path.display();
    let opened = file::open(path, &places.directories).map_err(|why| format!("{shown}: {why}"))?;
    let mut settings = read::settings(&opened.text, &reader(path, places))
        .map_err(|fault| format!("{shown}: {fault}"))?;
    settings.file = Some(path.to_path_buf());
    settings.checksum = Some(gate::policy::checksum(&opened.text));
    if opened.group_writable {
        settings.warnings.push(Warning {
            line: None,
            message: "your group may write to this file, and could make it start any program; run chmod g-w on it".into(),
        });
    }
    let mut reached = settings
        .servers
        .iter()
        .filter_map(|server| server.http.as_ref());
    if opened.world_readable && reached.any(|http| http.key_in_file) {
        settings.warnings.push(Warning {
            line: None,
            message: "this file contains an API key, and everybody can read it".into(),
        });
    }
    Ok(settings)
}

impl Settings {
    /// The server of this name.
    ///
    /// # Errors
    /// A message with the nearest name, or with where a configuration would be looked for.
    pub fn named(&self, name: &str, places: &Places) -> Result<&Server, String> {
        if let Some(server) = self.server(name) {
            return Ok(server);
        }
        let shown = name.escape_debug();
        let Some(file) = &self.file else {
            let looked = places.config.join(FILE_NAME);
            return Err(format!(
                "there is no server \"{shown}\": no configuration was read; {} does not exist\n  hint: `durward init` writes one, --config names another",
                looked.display()
            ));
        };
        let names: Vec<&str> = self.servers.iter().map(|s| s.name.as_str()).collect();
        let hint = match nearest(name, &names) {
            Some(near) => format!("did you mean \"{near}\"?"),
            None if names.is_empty() => "it has no servers yet; add one under servers:, or give a command: durward run -- CMD".into(),
            None => format!("it has {}", names.join(", ")),
        };
        Err(format!(
            "{}: no server is called \"{shown}\"\n  hint: {hint}",
            file.display()
        ))
    }

    /// Tells places what the configuration says about them; a flag or a variable outranks it.
    pub fn lay_out(&self, places: &mut Places, state_dir: Origin) {
        if let (Some(state), Origin::Default | Origin::File(_)) = (&self.state_dir, state_dir) {
            places.keep_state_in(&state.value);
        }
        places.confine = self.confine.value;
        places.witness = self.witness.as_ref().map(|file| file.value.clone());
        places.verify = self.verify.value;
        places.warn_below = self.warn_below.value.0;
        places.retain = self.retain.as_ref().map(|size| size.value.0);
        self.protect(places);
    }

    /// Keeps calls and servers off the files that the configuration is made of, names or runs. Files of an earlier
    /// configuration stay guarded until the end: a server that was started then may still use them.
    pub fn protect(&self, places: &mut Places) {
        let files = self.guarded(places);
        places.guarded.merge(files);
    }

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
