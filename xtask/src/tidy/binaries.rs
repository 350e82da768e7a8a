//! How many binaries the integration tests are linked into: each costs a link and holds the others up.

use super::metadata::Package;
use crate::finding::Finding;

/// One for a crate, and a few more than there are crates.
const TEST_BINARIES_MAX: usize = 14;

/// More integration-test binaries than are allowed, over the whole workspace.
pub(super) fn check(packages: &[Package]) -> Vec<Finding> {
    let count: usize = packages.iter().map(Package::test_binaries).sum();
    if count <= TEST_BINARIES_MAX {
        return Vec::new();
    }
    // The faulty crates are those with more than one.
    packages
        .iter()
        .filter(|package| package.test_binaries() > 1)
        .map(|package| {
            let wrong = format!(
                "{} integration-test binaries here, {count} in all, and {TEST_BINARIES_MAX} are allowed",
                package.test_binaries()
            );
            let remedy = "make them modules of tests/it/main.rs";
            Finding::new(package.manifest_path.as_str(), 1, wrong, remedy)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::super::metadata::BuildTarget;
    use super::*;

    fn package(name: &str, tests: usize) -> Package {
        let target = |kind: &str| BuildTarget {
            kind: vec![kind.to_owned()],
        };
        let mut targets = vec![target("lib"), target("bin"), target("example")];
        targets.extend((0..tests).map(|_| target("test")));
        Package {
            name: name.to_owned(),
            dependencies: Vec::new(),
            manifest_path: format!("crates/{name}/Cargo.toml"),
            targets,
        }
    }

    #[test]
    fn one_too_many_is_found_where_there_is_more_than_one() {
        let one_each: Vec<Package> = (1..TEST_BINARIES_MAX)
            .map(|n| package(&n.to_string(), 1))
            .collect();
        let with = |tests| [one_each.clone(), vec![package("last", tests)]].concat();
        assert_eq!(check(&with(1)), []);
        let found: Vec<String> = check(&with(2)).iter().map(ToString::to_string).collect();
        assert_eq!(
            found,
            [
                "crates/last/Cargo.toml:1: 2 integration-test binaries here, 15 in all, and 14 are allowed; \
              make them modules of tests/it/main.rs"
            ]
        );
    }
}
