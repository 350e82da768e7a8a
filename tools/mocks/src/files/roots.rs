//! Which paths the tools may reach. A path is resolved the way the system would, link by link, and
//! only then compared with the roots.

use crate::MockError;
use std::{
    ffi::OsStr,
    fs, io,
    path::{Component, Path, PathBuf},
};

/// The reachable directories, in canonical form, and where relative paths start.
#[derive(Debug, Clone)]
pub(crate) struct FileRoots {
    /// Empty where everything is reachable.
    beneath: Vec<PathBuf>,
    default: PathBuf,
}

/// What to do with a link in the last place of a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LastLink {
    Follow,
    Keep,
}

impl FileRoots {
    /// Returns the whole file system.
    pub(crate) fn any() -> Result<Self, MockError> {
        Ok(Self {
            beneath: Vec::new(),
            default: canonical_directory(Path::new("."))?,
        })
    }

    /// These directories; the current one if none is given. Relative paths start at the first.
    pub(crate) fn beneath(given: &[PathBuf]) -> Result<Self, MockError> {
        let mut beneath = given
            .iter()
            .map(|root| canonical_directory(root))
            .collect::<Result<Vec<_>, _>>()?;
        if beneath.is_empty() {
            beneath.push(canonical_directory(Path::new("."))?);
        }
        let default = beneath.first().cloned().unwrap_or_default();
        Ok(Self { beneath, default })
    }

    /// Where relative paths start from now on; `directory` comes from [`FileRoots::resolve`].
    pub(crate) fn set_default(&mut self, directory: PathBuf) {
        self.default = directory;
    }

    pub(crate) fn is_root(&self, path: &Path) -> bool {
        path.parent().is_none() || self.beneath.iter().any(|root| root == path)
    }

    /// Returns the real place a path argument names, which need not exist.
    pub(crate) fn resolve(&self, path: &str, last: LastLink) -> Result<PathBuf, String> {
        if path.is_empty() {
            return Err("the path is empty".into());
        }
        if path.contains('\0') {
            return Err("the path holds a NUL byte".into());
        }
        let resolved =
            walk(&self.default.join(path), last).map_err(|error| format!("{path}: {error}"))?;
        if self.beneath.is_empty() || self.beneath.iter().any(|root| resolved.starts_with(root)) {
            return Ok(resolved);
        }
        Err(format!(
            "{path} lies outside the directories this server may reach"
        ))
    }
}

/// Resolves every link; `..` goes to the real parent, and is refused behind a name that does not exist.
fn walk(path: &Path, last: LastLink) -> io::Result<PathBuf> {
    let mut resolved = PathBuf::from("/");
    let mut missing = false;
    let mut components = path.components().peekable();
    while let Some(component) = components.next() {
        match component {
            Component::Prefix(_) | Component::RootDir | Component::CurDir => {}
            Component::ParentDir if missing => {
                return Err(io::Error::other("`..` follows a name that does not exist"));
            }
            Component::ParentDir => {
                resolved.pop();
            }
            Component::Normal(name) => {
                let follow = components.peek().is_some() || last == LastLink::Follow;
                missing |= !step(&mut resolved, name, follow)?;
            }
        }
    }
    Ok(resolved)
}

/// Goes one name down; false if it does not exist.
fn step(resolved: &mut PathBuf, name: &OsStr, follow: bool) -> io::Result<bool> {
    resolved.push(name);
    match fs::symlink_metadata(&*resolved) {
        Ok(metadata) if metadata.is_symlink() && follow => {
            *resolved = fs::canonicalize(&*resolved)?;
            Ok(true)
        }
        Ok(_) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

fn canonical_directory(path: &Path) -> Result<PathBuf, MockError> {
    let canonical = fs::canonicalize(path).and_then(|canonical| {
        let is_directory = fs::metadata(&canonical)?.is_dir();
        if is_directory {
            Ok(canonical)
        } else {
            Err(io::ErrorKind::NotADirectory.into())
        }
    });
    canonical.map_err(|source| MockError::Path {
        path: path.to_owned(),
        source,
    })
}
