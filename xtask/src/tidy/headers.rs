//! What each crate opens with: its purpose in `lib.rs`, the house's lints in its manifest.

use super::tree::SourceTree;
use crate::finding::Finding;

/// The crate that has `unsafe` in it repeats the lints of the workspace, which forbids it to all that take them from
/// there.
const OWN_LINTS: &str = "crates/allocator/Cargo.toml";

/// Checks every crate for a `//!` header on the first line, and `[lints] workspace = true`.
pub(super) fn check(tree: &SourceTree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (path, text) in tree.texts() {
        // A workspace of its own has lints of its own.
        if !is_member_manifest(path) || text.lines().any(|line| line == "[workspace]") {
            continue;
        }
        if path != OWN_LINTS && !has_workspace_lints(text) {
            let remedy = "add `[lints]` with `workspace = true`";
            findings.push(Finding::new(
                path,
                1,
                "the crate leaves the lints of the workspace",
                remedy,
            ));
        }
        let source = path.trim_end_matches("Cargo.toml");
        for root in ["src/lib.rs", "src/main.rs"] {
            let root = format!("{source}{root}");
            if tree
                .text(&root)
                .is_some_and(|text| !text.starts_with("//!"))
            {
                let remedy = "open with `//!`: what it is for, and its invariants as absences";
                findings.push(Finding::new(
                    root,
                    1,
                    "the crate does not say what it is for",
                    remedy,
                ));
            }
        }
    }
    findings
}

fn is_member_manifest(path: &str) -> bool {
    let parts: Vec<&str> = path.split('/').collect();
    matches!(
        parts.as_slice(),
        ["crates" | "tools", _, "Cargo.toml"] | ["xtask", "Cargo.toml"]
    )
}

fn has_workspace_lints(manifest: &str) -> bool {
    let mut table = "";
    for line in manifest.lines().map(str::trim) {
        if line.starts_with('[') {
            table = line;
        }
        let key: String = line.split_whitespace().collect();
        if (table == "[lints]" && key == "workspace=true")
            || (table.is_empty() && key == "lints.workspace=true")
        {
            return true;
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = "[package]\nname = \"a\"\n\n[lints]\nworkspace = true\n";

    fn findings_of(files: &[(&str, &str)]) -> Vec<String> {
        check(&SourceTree::of(files))
            .iter()
            .map(ToString::to_string)
            .collect()
    }

    #[test]
    fn a_crate_with_header_and_lints_passes() {
        assert_eq!(
            findings_of(&[
                ("crates/a/Cargo.toml", GOOD),
                ("crates/a/src/lib.rs", "//! A.\n")
            ]),
            [""; 0]
        );
        assert_eq!(
            findings_of(&[("crates/a/Cargo.toml", "lints.workspace = true\n[package]\n")]),
            [""; 0]
        );
    }

    #[test]
    fn a_crate_without_a_header_is_found() {
        for root in ["crates/a/src/lib.rs", "crates/a/src/main.rs"] {
            let found = findings_of(&[("crates/a/Cargo.toml", GOOD), (root, "// A.\n//! Late.\n")]);
            assert_eq!(found.len(), 1, "{root}");
            assert!(found[0].starts_with(&format!("{root}:1: ")), "{found:?}");
        }
    }

    #[test]
    fn a_crate_outside_the_lints_is_found() {
        for manifest in [
            "[package]\nname = \"a\"\n",
            "[package]\nversion.workspace = true\n[lints]\n",
            "[lints]\nworkspace = false\n",
            "[lints.rust]\nworkspace = true\n",
        ] {
            assert_eq!(
                findings_of(&[("crates/a/Cargo.toml", manifest)]).len(),
                1,
                "{manifest}"
            );
        }
        assert_eq!(findings_of(&[("xtask/Cargo.toml", "[package]\n")]).len(), 1);
        assert_eq!(findings_of(&[("Cargo.toml", "[workspace]\n")]).len(), 0);
    }
}
