//! Versions of policies: a snapshot of each text that was in force. Versions go on over restarts.
//!
//! The directory `history` of the state holds an index, a line for each version, and each text once, named by its digest.
//! A text is on the disk before its line, so that a crash leaves no version without its text.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::PathBuf;

use gate::journal::format_utc;
use gate::policy::checksum;
use serde::{Deserialize, Serialize};
use state::directory::{self, DirectoryLock};

use crate::error::AdminError;
use crate::state_paths::StatePaths;

/// File of the versions.
const INDEX_FILE: &str = "policy.jsonl";
/// Most versions that are kept; beyond, the oldest are removed.
const VERSIONS_MAX: usize = 10_000;
/// Versions that are removed at once.
const REMOVED_AT_ONCE: usize = 1_000;
/// Longest index, in bytes.
const INDEX_BYTES_MAX: u64 = 64 << 20;
/// Longest text, in bytes.
const TEXT_BYTES_MAX: u64 = 8 << 20;

/// Origin of a version.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub enum VersionChange {
    /// The policy was read for the first time.
    Created,
    /// The file was changed while no instance ran.
    ManualChange,
    /// A running instance has reloaded it.
    Reloaded,
    /// `durward policy rollback` has written an earlier version.
    RolledBack,
}

impl VersionChange {
    /// Returns the words for people.
    #[must_use]
    pub fn label(self) -> &'static str {
        match self {
            Self::Created => "created",
            Self::ManualChange => "changed while stopped",
            Self::Reloaded => "reloaded",
            Self::RolledBack => "rolled back",
        }
    }
}

/// A version of a policy.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct PolicyVersion {
    /// File, or name of a shipped policy.
    pub source: String,
    /// Number, from 1 for each source.
    pub version: u64,
    /// When it was recorded, UTC.
    pub time: String,
    /// Its origin.
    pub change: VersionChange,
    /// SHA-256 of the text.
    pub digest: String,
}

/// Request to record a version.
#[derive(Debug, Clone, Copy)]
pub struct VersionRequest<'a> {
    /// File, or name of a shipped policy.
    pub source: &'a str,
    /// SHA-256 of the text.
    pub digest: &'a str,
    /// Its origin, if the source has earlier versions.
    pub change: VersionChange,
    /// Records a version although the latest one has the same text.
    pub always: bool,
    /// Least number of a new version: an instance whose versions could not be recorded counts on.
    pub at_least: u64,
    /// Milliseconds since 1970.
    pub now_ms: i64,
}

/// A recorded version.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordedVersion {
    /// The version.
    pub version: PolicyVersion,
    /// The version before it, if this one is new.
    pub before: Option<PolicyVersion>,
}

/// The history of policies in a state directory.
#[derive(Debug, Clone)]
pub struct PolicyHistory {
    directory: PathBuf,
}

impl PolicyHistory {
    /// Returns the history of an installation; nothing is read or created yet.
    #[must_use]
    pub fn new(paths: &StatePaths) -> Self {
        Self {
            directory: paths.state.join("history"),
        }
    }

    /// Returns the versions of a source, oldest first.
    ///
    /// # Errors
    /// A history that cannot be read.
    pub fn list(&self, source: &str) -> Result<Vec<PolicyVersion>, AdminError> {
        let mut versions = self.read_index()?;
        versions.retain(|version| version.source == source);
        Ok(versions)
    }

    /// Returns a version of a source.
    ///
    /// # Errors
    /// [`AdminError::NoVersion`], a history that cannot be read.
    pub fn find(&self, source: &str, number: u64) -> Result<PolicyVersion, AdminError> {
        let versions = self.list(source)?;
        let latest = versions.last().map_or(0, |version| version.version);
        let mut found = versions.into_iter();
        found
            .find(|version| version.version == number)
            .ok_or(AdminError::NoVersion { number, latest })
    }

    /// Returns the text of a version.
    ///
    /// # Errors
    /// A text that is missing, or that is not the one that was recorded.
    pub fn text(&self, version: &PolicyVersion) -> Result<String, AdminError> {
        let path = self.text_file(&version.digest);
        let failed = |error| AdminError::Directory {
            path: path.clone(),
            error,
        };
        let mut text = String::new();
        let file = File::open(&path).map_err(failed)?;
        file.take(TEXT_BYTES_MAX + 1)
            .read_to_string(&mut text)
            .map_err(failed)?;
        match checksum(&text) == version.digest {
            true => Ok(text),
            false => Err(AdminError::Snapshot(path)),
        }
    }

    /// Records a version, unless the latest one has the same text. `text` is read only if it is new.
    ///
    /// # Errors
    /// A history that cannot be read or written, an error of `text`.
    pub fn record(
        &self,
        request: VersionRequest<'_>,
        text: &dyn Fn() -> Result<String, AdminError>,
    ) -> Result<RecordedVersion, AdminError> {
        let recorded = |latest: Option<PolicyVersion>| {
            let same = latest.filter(|own| {
                !request.always && own.digest == request.digest && own.version >= request.at_least
            });
            same.map(|version| RecordedVersion {
                version,
                before: None,
            })
        };
        // The usual start changes nothing and takes no lock.
        if let Some(recorded) = recorded(self.list(request.source)?.pop()) {
            return Ok(recorded);
        }
        self.create()?;
        let _lock =
            DirectoryLock::acquire(&self.directory).map_err(|error| self.to_error(error))?;
        let mut index = self.read_index()?;
        let of_source = |version: &&PolicyVersion| version.source == request.source;
        let latest = index.iter().rev().find(of_source).cloned();
        if let Some(recorded) = recorded(latest.clone()) {
            return Ok(recorded);
        }
        let version = PolicyVersion {
            source: request.source.to_owned(),
            version: latest
                .as_ref()
                .map_or(1, |latest| latest.version + 1)
                .max(request.at_least),
            time: format_utc(request.now_ms),
            change: match latest {
                Some(_) => request.change,
                None => VersionChange::Created,
            },
            digest: request.digest.to_owned(),
        };
        let file = self.text_file(request.digest);
        if !file.is_file() {
            let text = text()?;
            if checksum(&text) != request.digest {
                // The file was changed a moment ago; its reload is recorded next.
                return Err(AdminError::InUse(format!(
                    "{} is being changed",
                    request.source
                )));
            }
            directory::write_private(&file, text.as_bytes())
                .map_err(|error| self.to_error(error))?;
        }
        if index.len() >= VERSIONS_MAX {
            self.remove_oldest(&mut index)?;
        }
        self.append(&version)?;
        Ok(RecordedVersion {
            version,
            before: latest,
        })
    }

    fn create(&self) -> Result<(), AdminError> {
        directory::create_private(&self.directory).map_err(|error| self.to_error(error))
    }

    fn text_file(&self, digest: &str) -> PathBuf {
        // A digest of an index that someone else wrote names no other directory.
        let plain: String = digest.chars().filter(char::is_ascii_hexdigit).collect();
        self.directory.join(format!("{plain}.json"))
    }

    fn to_error(&self, error: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> AdminError {
        AdminError::Write {
            path: self.directory.clone(),
            error: io::Error::other(error),
        }
    }

    /// Returns every version. A line that a crash has cut is passed over.
    fn read_index(&self) -> Result<Vec<PolicyVersion>, AdminError> {
        let path = self.directory.join(INDEX_FILE);
        let failed = |error| AdminError::Directory {
            path: path.clone(),
            error,
        };
        let file = match File::open(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            other => other.map_err(failed)?,
        };
        let mut text = String::new();
        file.take(INDEX_BYTES_MAX)
            .read_to_string(&mut text)
            .map_err(failed)?;
        let lines = text.lines();
        Ok(lines
            .filter_map(|line| serde_json::from_str(line).ok())
            .collect())
    }

    /// Adds a line to the index, behind a line feed if a crash has cut the one before.
    fn append(&self, version: &PolicyVersion) -> Result<(), AdminError> {
        let path = self.directory.join(INDEX_FILE);
        let mut line = serde_json::to_string(version).map_err(|error| self.to_error(error))?;
        line.push('\n');
        let is_cut = fs::read(&path).is_ok_and(|text| text.last().is_some_and(|end| *end != b'\n'));
        if is_cut {
            line.insert(0, '\n');
        }
        let mut options = OpenOptions::new();
        let opened = options.append(true).create(true).mode(0o600).open(&path);
        opened
            .and_then(|mut file| {
                file.write_all(line.as_bytes())
                    .and_then(|()| file.sync_all())
            })
            .map_err(|error| AdminError::Write { path, error })
    }

    /// Removes the oldest versions, and the texts that no other has.
    fn remove_oldest(&self, index: &mut Vec<PolicyVersion>) -> Result<(), AdminError> {
        let removed: Vec<PolicyVersion> = index.drain(..REMOVED_AT_ONCE.min(index.len())).collect();
        let mut text = String::new();
        for version in index.iter() {
            let line = serde_json::to_string(version).map_err(|error| self.to_error(error))?;
            text.push_str(&line);
            text.push('\n');
        }
        let path = self.directory.join(INDEX_FILE);
        directory::replace_private(&path, text.as_bytes(), true)
            .map_err(|error| self.to_error(error))?;
        for version in removed {
            if !index.iter().any(|kept| kept.digest == version.digest) {
                // A text without a version does no harm.
                let _ = fs::remove_file(self.text_file(&version.digest));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A history in an empty state directory; removed when dropped.
    struct State(StatePaths);

    impl State {
        fn new(name: &str) -> Self {
            let name = format!("admin-history-{name}-{}", std::process::id());
            let state = std::env::temp_dir().join(name);
            let _ = fs::remove_dir_all(&state);
            Self(StatePaths {
                state,
                ..StatePaths::default()
            })
        }

        fn record(&self, source: &str, text: &str, always: bool) -> u64 {
            let digest = checksum(text);
            let request = VersionRequest {
                source,
                digest: &digest,
                change: VersionChange::ManualChange,
                always,
                at_least: 1,
                now_ms: 0,
            };
            let history = PolicyHistory::new(&self.0);
            let recorded = history.record(request, &|| Ok(text.to_owned()));
            recorded.unwrap().version.version
        }
    }

    impl Drop for State {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0.state);
        }
    }

    #[test]
    fn versions_go_on_and_a_text_is_one_version_until_it_changes() {
        let state = State::new("versions");
        assert_eq!(state.record("a.json", "one", false), 1);
        assert_eq!(state.record("a.json", "one", false), 1);
        assert_eq!(state.record("b.json", "one", false), 1);
        assert_eq!(state.record("a.json", "two", false), 2);
        assert_eq!(state.record("a.json", "one", false), 3);
        assert_eq!(state.record("a.json", "one", true), 4);
        let history = PolicyHistory::new(&state.0);
        let versions = history.list("a.json").unwrap();
        let changes: Vec<VersionChange> = versions.iter().map(|own| own.change).collect();
        assert_eq!(
            changes[..2],
            [VersionChange::Created, VersionChange::ManualChange]
        );
        let second = history.find("a.json", 2).unwrap();
        assert_eq!(history.text(&second).unwrap(), "two");
        let error = history.find("a.json", 5).unwrap_err();
        assert!(error.to_string().contains("the latest is v4"), "{error}");
    }

    #[test]
    fn a_cut_line_and_a_changed_text_are_no_versions() {
        let state = State::new("cut");
        state.record("a.json", "one", false);
        let history = PolicyHistory::new(&state.0);
        let index = history.directory.join(INDEX_FILE);
        let mut text = fs::read_to_string(&index).unwrap();
        text.push_str("{\"source\":\"a.json\",\"ver");
        fs::write(&index, text).unwrap();
        assert_eq!(state.record("a.json", "two", false), 2);
        assert_eq!(history.list("a.json").unwrap().len(), 2);
        let second = history.find("a.json", 2).unwrap();
        fs::write(history.text_file(&second.digest), "forged").unwrap();
        assert!(matches!(
            history.text(&second),
            Err(AdminError::Snapshot(_))
        ));
    }

    #[test]
    fn the_oldest_versions_are_removed_with_their_texts() {
        let state = State::new("oldest");
        let history = PolicyHistory::new(&state.0);
        history.create().unwrap();
        let mut text = String::new();
        for number in 1..=VERSIONS_MAX as u64 {
            let version = PolicyVersion {
                source: "a.json".into(),
                version: number,
                time: String::new(),
                change: VersionChange::Reloaded,
                digest: format!("{number:064x}"),
            };
            text.push_str(&serde_json::to_string(&version).unwrap());
            text.push('\n');
        }
        fs::write(history.directory.join(INDEX_FILE), text).unwrap();
        fs::write(history.text_file(&format!("{:064x}", 1)), "old").unwrap();
        assert_eq!(
            state.record("a.json", "new", false),
            VERSIONS_MAX as u64 + 1
        );
        let versions = history.list("a.json").unwrap();
        assert_eq!(versions.len(), VERSIONS_MAX - REMOVED_AT_ONCE + 1);
        assert!(!history.text_file(&format!("{:064x}", 1)).exists());
    }
}
