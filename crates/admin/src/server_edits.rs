//! Servers in the configuration file: added, archived and restored in place. Other lines keep their bytes.
//!
//! An archived server is a file in the directory `archive` of the state. It is written before the configuration is
//! changed and deleted after the server is back, so that a crash in between loses nothing.

use std::fs::{self, File};
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use gate::journal::format_utc;
use gate::policy::checksum;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use state::directory::{self, DirectoryLock};

use crate::atomic::{self, Existing};
use crate::document::{EditError, Format, RemovedEntry, at};
use crate::error::AdminError;
use crate::state_paths::StatePaths;

/// Longest configuration file, in bytes.
const FILE_BYTES_MAX: u64 = 16 << 20;
/// Most archived servers that are listed.
const ARCHIVED_MAX: usize = 10_000;

/// The configuration file, and the check that an edited text has to pass.
pub struct ConfigurationFile<'a> {
    /// The file.
    pub path: &'a Path,
    /// Returns a sentence if a configuration could not be used.
    pub validate: &'a dyn Fn(&str) -> Result<(), String>,
}

impl std::fmt::Debug for ConfigurationFile<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ConfigurationFile")
            .field("path", &self.path)
            .finish_non_exhaustive()
    }
}

/// A server that is archived.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct ArchivedServer {
    /// Name.
    pub name: String,
    /// The configuration file that it was in.
    pub file: PathBuf,
    /// When it was archived, UTC.
    pub time: String,
}

/// File of an archived server.
#[derive(Serialize, Deserialize)]
struct ArchiveFile {
    #[serde(flatten)]
    server: ArchivedServer,
    /// Its lines, comments included.
    entry: RemovedEntry,
    /// SHA-256 of the configuration before and after.
    before: String,
    after: String,
}

/// Result of a restoration.
#[derive(Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct RestoredServer {
    /// Name.
    pub name: String,
    /// Whether the configuration has the bytes that it had before the server was archived; else the server's lines are
    /// behind the others.
    pub exact: bool,
}

/// Adds a server to the configuration file, which is created if it does not exist.
///
/// # Errors
/// A name that the configuration has already, a configuration that could not be used, a file that cannot be edited.
pub fn add_server(
    file: &ConfigurationFile<'_>,
    paths: &StatePaths,
    name: &str,
    server: &Value,
) -> Result<(), AdminError> {
    let _lock = lock(paths)?;
    let before = file.read()?;
    let text = before.as_deref().unwrap_or_default();
    if configured(file, text, name)?.is_some() {
        return Err(AdminError::ServerExists(name.to_owned()));
    }
    let edited = Format::Yaml.set(text, &["servers", name], server);
    let edited = edited.map_err(|error| file.edit_error(&error))?;
    file.replace(before.as_deref(), &edited)
}

/// Moves the lines of a server out of the configuration file.
///
/// # Errors
/// A server that the configuration does not have, a configuration that could not be used, a file that cannot be edited.
pub fn archive_server(
    file: &ConfigurationFile<'_>,
    paths: &StatePaths,
    name: &str,
    now_ms: i64,
) -> Result<ArchivedServer, AdminError> {
    let _lock = lock(paths)?;
    let before = file.read()?.unwrap_or_default();
    if configured(file, &before, name)?.is_none() {
        return Err(AdminError::NoServer(name.to_owned()));
    }
    let removed = Format::Yaml.remove(&before, &["servers", name]);
    let (edited, entry) = removed.map_err(|error| file.edit_error(&error))?;
    let archive = ArchiveFile {
        server: ArchivedServer {
            name: name.to_owned(),
            file: file.path.to_path_buf(),
            time: format_utc(now_ms),
        },
        entry,
        before: checksum(&before),
        after: checksum(&edited),
    };
    file.check(&edited)?;
    let path = archive_file(paths, name);
    let failed = |error| AdminError::Write {
        path: path.clone(),
        error,
    };
    let text = serde_json::to_vec(&archive).map_err(|error| failed(error.into()))?;
    directory::replace_private(&path, &text, true)
        .map_err(|error| failed(io::Error::other(error)))?;
    file.replace(Some(&before), &edited)?;
    Ok(archive.server)
}

/// Puts the lines of an archived server back into the configuration file.
///
/// # Errors
/// A server that is not archived, a name that the configuration has, a configuration that could not be used, a file that
/// cannot be edited.
pub fn restore_server(
    file: &ConfigurationFile<'_>,
    paths: &StatePaths,
    name: &str,
) -> Result<RestoredServer, AdminError> {
    let _lock = lock(paths)?;
    let path = archive_file(paths, name);
    let archive = read_archive(&path)?.ok_or_else(|| AdminError::NotArchived(name.to_owned()))?;
    let before = file.read()?;
    let text = before.as_deref().unwrap_or_default();
    if configured(file, text, name)?.is_some() {
        return Err(AdminError::ServerExists(name.to_owned()));
    }
    let exact = archive.entry.insert_into(text);
    let exact = exact
        .filter(|edited| checksum(text) == archive.after && checksum(edited) == archive.before);
    let is_exact = exact.is_some();
    let edited = match exact {
        Some(edited) => edited,
        None => Format::Yaml
            .append_entry(text, &["servers", name], &archive.entry)
            .map_err(|error| file.edit_error(&error))?,
    };
    file.replace(before.as_deref(), &edited)?;
    fs::remove_file(&path).map_err(|error| AdminError::Write { path, error })?;
    Ok(RestoredServer {
        name: name.to_owned(),
        exact: is_exact,
    })
}

/// Returns the archived servers by name, without those that the configuration has again.
///
/// # Errors
/// An archive that cannot be read.
pub fn list_archived(
    paths: &StatePaths,
    is_configured: &dyn Fn(&str) -> bool,
) -> Result<Vec<ArchivedServer>, AdminError> {
    let archive = archive_directory(paths);
    let failed = |error| AdminError::Directory {
        path: archive.clone(),
        error,
    };
    let entries = match fs::read_dir(&archive) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        other => other.map_err(failed)?,
    };
    let mut servers = Vec::new();
    for entry in entries.take(ARCHIVED_MAX) {
        let path = entry.map_err(failed)?.path();
        if path.extension().is_some_and(|end| end == "json")
            && let Some(archive) = read_archive(&path)?
            && !is_configured(&archive.server.name)
        {
            servers.push(archive.server);
        }
    }
    servers.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(servers)
}

impl ConfigurationFile<'_> {
    /// Returns the text; `None` if there is no file.
    fn read(&self) -> Result<Option<String>, AdminError> {
        let failed = |error| AdminError::Directory {
            path: self.path.to_path_buf(),
            error,
        };
        let file = match File::open(self.path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            other => other.map_err(failed)?,
        };
        let mut text = String::new();
        file.take(FILE_BYTES_MAX + 1)
            .read_to_string(&mut text)
            .map_err(failed)?;
        match text.len() as u64 > FILE_BYTES_MAX {
            true => Err(failed(io::Error::other("the file is longer than 16 MiB"))),
            false => Ok(Some(text)),
        }
    }

    fn check(&self, edited: &str) -> Result<(), AdminError> {
        let checked = (self.validate)(edited);
        checked.map_err(|why| AdminError::Configuration {
            file: self.path.to_path_buf(),
            why,
        })
    }

    /// Writes a valid text, unless the file is no longer what was read.
    fn replace(&self, before: Option<&str>, edited: &str) -> Result<(), AdminError> {
        self.check(edited)?;
        if self.read()?.as_deref() != before {
            return Err(AdminError::InUse(format!(
                "{} was changed by another program; try again",
                self.path.display()
            )));
        }
        let existing = match before {
            Some(_) => Existing::Replace,
            None => Existing::Keep,
        };
        atomic::write(self.path, edited.as_bytes(), existing).map_err(|error| AdminError::Write {
            path: self.path.to_path_buf(),
            error,
        })
    }

    fn edit_error(&self, error: &EditError) -> AdminError {
        AdminError::Configuration {
            file: self.path.to_path_buf(),
            why: error.to_string(),
        }
    }
}

/// Returns the entry of a server in the configuration.
fn configured(
    file: &ConfigurationFile<'_>,
    text: &str,
    name: &str,
) -> Result<Option<Value>, AdminError> {
    let root = Format::Yaml.parse(text);
    let root = root.map_err(|error| file.edit_error(&error))?;
    Ok(at(&root, &["servers", name]).cloned())
}

fn archive_directory(paths: &StatePaths) -> PathBuf {
    paths.state.join("archive")
}

fn archive_file(paths: &StatePaths, name: &str) -> PathBuf {
    archive_directory(paths).join(format!("{name}.json"))
}

/// Keeps two edits apart.
fn lock(paths: &StatePaths) -> Result<DirectoryLock, AdminError> {
    let archive = archive_directory(paths);
    let failed = |error: state::DirectoryError| AdminError::Write {
        path: archive.clone(),
        error: io::Error::other(error),
    };
    directory::create_private(&paths.state).map_err(failed)?;
    directory::create_private(&archive).map_err(failed)?;
    DirectoryLock::acquire(&archive).map_err(failed)
}

fn read_archive(path: &Path) -> Result<Option<ArchiveFile>, AdminError> {
    let failed = |error| AdminError::Directory {
        path: path.to_path_buf(),
        error,
    };
    let file = match File::open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        other => other.map_err(failed)?,
    };
    let mut text = String::new();
    file.take(2 * FILE_BYTES_MAX)
        .read_to_string(&mut text)
        .map_err(failed)?;
    let archive = serde_json::from_str(&text);
    archive
        .map(Some)
        .map_err(|error| AdminError::Configuration {
            file: path.to_path_buf(),
            why: error.to_string(),
        })
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use serde_json::json;

    use super::*;

    const TEXT: &str = "\
# The machine of the team.
policy: policy.json

servers:
  # Files of the project.
  files:
    command: npx   # from npm
    args: [\"-y\", files]

  # Pages of the web.
  fetch:
    url: https://example.org/mcp
limits:
  rate: 10/s # enough
";

    /// A configuration in a directory; removed when dropped.
    struct Configuration {
        directory: PathBuf,
        paths: StatePaths,
    }

    impl Configuration {
        fn new(name: &str, text: &str) -> Self {
            let name = format!("admin-servers-{name}-{}", std::process::id());
            let directory = std::env::temp_dir().join(name);
            let _ = fs::remove_dir_all(&directory);
            fs::create_dir_all(&directory).unwrap();
            let paths = StatePaths {
                state: directory.join("state"),
                ..StatePaths::default()
            };
            let configuration = Self { directory, paths };
            fs::write(configuration.path(), text).unwrap();
            configuration
        }

        fn path(&self) -> PathBuf {
            self.directory.join("durward.yaml")
        }

        fn text(&self) -> String {
            fs::read_to_string(self.path()).unwrap()
        }

        fn with<T>(&self, work: impl FnOnce(&ConfigurationFile<'_>, &StatePaths) -> T) -> T {
            let path = self.path();
            let file = ConfigurationFile {
                path: &path,
                validate: &|text| match text.contains("broken") {
                    true => Err("line 1: broken".into()),
                    false => Ok(()),
                },
            };
            work(&file, &self.paths)
        }
    }

    impl Drop for Configuration {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.directory);
        }
    }

    #[test]
    fn an_archived_server_comes_back_byte_by_byte() {
        for name in ["files", "fetch"] {
            let own = Configuration::new(name, TEXT);
            let archived = own
                .with(|file, paths| archive_server(file, paths, name, 0))
                .unwrap();
            assert_eq!(archived.name, name);
            let text = own.text();
            assert!(!text.contains(&format!("{name}:")), "{text}");
            assert!(text.contains("rate: 10/s # enough"), "{text}");
            let listed = list_archived(&own.paths, &|_| false).unwrap();
            assert_eq!(listed, [archived]);
            let restored = own
                .with(|file, paths| restore_server(file, paths, name))
                .unwrap();
            assert!(restored.exact);
            assert_eq!(own.text(), TEXT);
            assert!(list_archived(&own.paths, &|_| false).unwrap().is_empty());
        }
    }

    #[test]
    fn the_only_server_can_be_archived_and_restored() {
        let text = "servers:\n  one:\n    command: a # b\n";
        let own = Configuration::new("only", text);
        own.with(|file, paths| archive_server(file, paths, "one", 0))
            .unwrap();
        assert_eq!(own.text(), "servers: {}\n");
        own.with(|file, paths| restore_server(file, paths, "one"))
            .unwrap();
        assert_eq!(own.text(), text);
    }

    #[test]
    fn after_another_change_the_lines_go_behind_the_others() {
        let own = Configuration::new("changed", TEXT);
        own.with(|file, paths| archive_server(file, paths, "files", 0))
            .unwrap();
        own.with(|file, paths| add_server(file, paths, "new", &json!({ "command": "x" })))
            .unwrap();
        let restored = own
            .with(|file, paths| restore_server(file, paths, "files"))
            .unwrap();
        assert!(!restored.exact);
        let text = own.text();
        let lines = "  # Files of the project.\n  files:\n    command: npx   # from npm\n    args: [\"-y\", files]\n";
        assert!(text.contains(lines), "{text}");
        let root = Format::Yaml.parse(&text).unwrap();
        let names: Vec<&String> = root["servers"].as_object().unwrap().keys().collect();
        assert_eq!(names, ["fetch", "files", "new"]);
    }

    #[test]
    fn a_configuration_that_could_not_be_used_is_not_written() {
        let own = Configuration::new("invalid", TEXT);
        let server = json!({ "command": "broken" });
        let error = own
            .with(|file, paths| add_server(file, paths, "new", &server))
            .unwrap_err();
        assert_eq!(error.kind(), crate::ErrorKind::Malformed);
        let error = own
            .with(|file, paths| add_server(file, paths, "files", &json!({ "command": "a" })))
            .unwrap_err();
        assert_eq!(error.kind(), crate::ErrorKind::Refused);
        let error = own
            .with(|file, paths| archive_server(file, paths, "none", 0))
            .unwrap_err();
        assert_eq!(error.kind(), crate::ErrorKind::NotFound);
        let error = own
            .with(|file, paths| restore_server(file, paths, "none"))
            .unwrap_err();
        assert_eq!(error.kind(), crate::ErrorKind::NotFound);
        assert_eq!(own.text(), TEXT);
    }

    #[test]
    fn the_mode_of_the_file_is_kept() {
        let own = Configuration::new("mode", TEXT);
        fs::set_permissions(own.path(), fs::Permissions::from_mode(0o640)).unwrap();
        own.with(|file, paths| archive_server(file, paths, "files", 0))
            .unwrap();
        let mode = fs::metadata(own.path()).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o640);
    }
}
