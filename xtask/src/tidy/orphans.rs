//! Files that nothing includes: they look like code and are never compiled.

use std::collections::BTreeSet;

use super::modules::map::ModuleMap;
use super::modules::roots;
use super::tree::SourceTree;
use crate::finding::Finding;

/// Files that `trybuild` tries to compile one by one, and that must not compile.
const ALONE: &str = "/tests/ui/fail_";

/// Rust files that no root of any package leads to.
pub(super) fn check(tree: &SourceTree) -> Vec<Finding> {
    let mut included = BTreeSet::new();
    for (root, _) in roots::all(tree) {
        included.extend(ModuleMap::new(tree, root).files());
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
            ("a/tests/ui/twin_send.rs", ""),
        ];
        let found: Vec<String> = check(&SourceTree::of(&files))
            .iter()
            .map(ToString::to_string)
            .collect();
        assert_eq!(
            found,
            [
                "a/src/left.rs:1: no crate includes this file; declare it as a module, or remove it",
                "a/tests/it/forgotten.rs:1: no crate includes this file; declare it as a module, or remove it",
                "a/tests/ui/twin_send.rs:1: no crate includes this file; declare it as a module, or remove it",
            ]
        );
    }
}
