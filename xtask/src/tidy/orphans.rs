//! Files that nothing includes: they look like code and are compiled by nobody.

use std::collections::BTreeSet;

use super::modules::map::Map;
use super::modules::roots;
use super::tree::Tree;
use crate::finding::Finding;

/// The folder whose files `trybuild` compiles one by one.
const ALONE: &str = "/tests/ui/";

/// Rust files that no root of any package leads to.
pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    let mut included = BTreeSet::new();
    for (root, _) in roots::all(tree) {
        included.extend(Map::new(tree, root).files());
    }
    tree.rust_paths()
        .filter(|path| !included.contains(path) && !path.contains(ALONE))
        .map(|path| {
            Finding::new(
                path,
                1,
                "no crate includes this file",
                "declare it as a module, or remove it",
            )
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_nobody_declares_is_found() {
        let files = [
            ("a/Cargo.toml", "[package]\nname = \"a\"\n"),
            ("a/src/lib.rs", "mod used;"),
            ("a/src/used.rs", ""),
            ("a/src/left.rs", ""),
            ("a/tests/it/main.rs", "mod cases;"),
            ("a/tests/it/cases.rs", ""),
            ("a/tests/it/forgotten.rs", ""),
            ("a/tests/ui/fail_send.rs", ""),
        ];
        let found: Vec<String> = check(&Tree::of(&files))
            .iter()
            .map(ToString::to_string)
            .collect();
        assert_eq!(
            found,
            [
                "a/src/left.rs:1: no crate includes this file; declare it as a module, or remove it",
                "a/tests/it/forgotten.rs:1: no crate includes this file; declare it as a module, or remove it",
            ]
        );
    }
}
