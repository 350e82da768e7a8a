//! The files that crates start at: where cargo looks by itself, and what a manifest names.

use super::super::tree::SourceTree;

/// Kind of target that is compiled from a root.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::tidy) enum RootTarget {
    /// A library or a program, which ships.
    Shipped,
    /// Tests, examples, benchmarks, build scripts, and what a manifest names.
    Other,
}

/// Returns every root of every package in the tree, those of other workspaces too.
pub(in crate::tidy) fn all(tree: &SourceTree) -> Vec<(&str, RootTarget)> {
    let mut roots: Vec<(&str, RootTarget)> = Vec::new();
    for (manifest, text) in tree.texts() {
        let Some(folder) = manifest.strip_suffix("Cargo.toml") else {
            continue;
        };
        let named: Vec<&str> = text.lines().filter_map(named_file).collect();
        for file in tree.rust_paths() {
            let Some(below) = file.strip_prefix(folder) else {
                continue;
            };
            let target = match below.split('/').collect::<Vec<_>>().as_slice() {
                ["src", "lib.rs" | "main.rs"]
                | ["src", "bin", _]
                | ["src", "bin", _, "main.rs"] => RootTarget::Shipped,
                ["build.rs"]
                | ["tests" | "examples" | "benches", _]
                | ["tests" | "examples" | "benches", _, "main.rs"] => RootTarget::Other,
                _ if named.contains(&below) => RootTarget::Other,
                _ => continue,
            };
            roots.push((file, target));
        }
    }
    roots
}

/// Returns the Rust file that a line of a manifest names: `path = "targets/scan.rs"`.
fn named_file(line: &str) -> Option<&str> {
    let (key, value) = line.split_once('=')?;
    let file = value.trim().strip_prefix('"')?.strip_suffix('"')?;
    (key.trim() == "path" && file.ends_with(".rs")).then_some(file)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn roots_are_found_where_cargo_finds_them() {
        let tree = SourceTree::of(&[
            (
                "a/Cargo.toml",
                "[[bin]]\nname = \"scan\"\npath = \"targets/scan.rs\"\n",
            ),
            ("a/src/lib.rs", ""),
            ("a/src/main.rs", ""),
            ("a/src/other.rs", ""),
            ("a/src/bin/more.rs", ""),
            ("a/build.rs", ""),
            ("a/targets/scan.rs", ""),
            ("a/targets/whole.rs", ""),
            ("a/tests/it/main.rs", ""),
            ("a/tests/it/cases.rs", ""),
            ("a/examples/show.rs", ""),
            ("a/tests/ui/main/deep.rs", ""),
            ("b/src/lib.rs", ""),
        ]);
        assert_eq!(
            all(&tree),
            [
                ("a/build.rs", RootTarget::Other),
                ("a/examples/show.rs", RootTarget::Other),
                ("a/src/bin/more.rs", RootTarget::Shipped),
                ("a/src/lib.rs", RootTarget::Shipped),
                ("a/src/main.rs", RootTarget::Shipped),
                ("a/targets/scan.rs", RootTarget::Other),
                ("a/tests/it/main.rs", RootTarget::Other),
            ]
        );
    }
}
