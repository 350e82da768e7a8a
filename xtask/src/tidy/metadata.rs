//! The packages of the workspace, from `cargo metadata`.

use std::path::Path;

use serde::Deserialize;

use crate::command::{self, TaskError};

/// One package of the workspace.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Package {
    pub(crate) name: String,
    pub(crate) dependencies: Vec<Dependency>,
    /// Relative to the repository root once loaded.
    pub(crate) manifest_path: String,
    pub(crate) targets: Vec<BuildTarget>,
}

/// Something that cargo builds of a package.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct BuildTarget {
    pub(crate) kind: Vec<String>,
}

impl Package {
    /// Returns how many binaries its integration tests are linked into.
    pub(crate) fn test_binaries(&self) -> usize {
        let is_test = |target: &&BuildTarget| target.kind.iter().any(|kind| kind == "test");
        self.targets.iter().filter(is_test).count()
    }
}

/// One declared dependency.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Dependency {
    pub(crate) name: String,
    /// `None` for a normal dependency, else `dev` or `build`.
    pub(crate) kind: Option<String>,
}

impl Dependency {
    /// Returns whether the shipped crate is built with it: everything but a `dev` dependency.
    pub(crate) fn ships(&self) -> bool {
        self.kind.as_deref() != Some("dev")
    }
}

#[derive(Deserialize)]
struct Metadata {
    packages: Vec<Package>,
}

/// Asks cargo, offline and without resolving anything.
pub(crate) fn load(root: &Path) -> Result<Vec<Package>, TaskError> {
    let args = [
        "metadata",
        "--no-deps",
        "--offline",
        "--format-version",
        "1",
    ];
    let json = command::output(root, "cargo", &args)?;
    parse(&json, &root.to_string_lossy())
}

fn parse(json: &[u8], root: &str) -> Result<Vec<Package>, TaskError> {
    let metadata: Metadata =
        serde_json::from_slice(json).map_err(|error| TaskError::Malformed {
            what: "the output of `cargo metadata`".into(),
            why: error.to_string(),
        })?;
    let mut packages = metadata.packages;
    for package in &mut packages {
        if let Some(relative) = package.manifest_path.strip_prefix(root) {
            package.manifest_path = relative.trim_start_matches('/').to_owned();
        }
    }
    Ok(packages)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packages_and_kinds_are_read() {
        let json =
            br#"{"packages":[{"name":"gate","manifest_path":"/r/crates/gate/Cargo.toml","other":1,
            "targets":[{"kind":["lib"]},{"kind":["test"],"name":"it"}],
            "dependencies":[{"name":"state","kind":null},{"name":"proptest","kind":"dev"}]}]}"#;
        let packages = parse(json, "/r").unwrap();
        assert_eq!(packages[0].manifest_path, "crates/gate/Cargo.toml");
        assert_eq!(packages[0].test_binaries(), 1);
        let ships: Vec<bool> = packages[0]
            .dependencies
            .iter()
            .map(Dependency::ships)
            .collect();
        assert_eq!(ships, [true, false]);
    }

    #[test]
    fn what_is_not_metadata_is_an_error() {
        assert!(parse(b"{}", "/r").is_err());
    }
}
