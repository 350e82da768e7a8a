//! Lints are answered with `#[expect(…, reason = …)]`, and nothing is unsafe but the allocator.

use super::tree::SourceTree;
use crate::finding::Finding;

/// The one file that may have `unsafe` in it: the interface of an allocator cannot be implemented without.
const UNSAFE_FILE: &str = "crates/allocator/src/lib.rs";

/// `#[allow]`, `#[expect]` without a reason and `unsafe`; in a file that ships, the part that is test code may allow.
pub(super) fn check(tree: &SourceTree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in tree.rust() {
        let at = |line: &usize, wrong, remedy| Finding::new(file.path, *line, wrong, remedy);
        let allow = |line| at(line, "`#[allow]`", "use `#[expect(…, reason = \"…\")]`");
        let bare = |line| at(line, "`#[expect]` without a reason", "add `reason = \"…\"`");
        findings.extend(file.survey.allows.iter().map(allow));
        findings.extend(file.survey.bare_expects.iter().map(bare));
    }
    for file in tree.rust().filter(|file| file.path != UNSAFE_FILE) {
        let unsafe_here = |line: &usize| {
            Finding::new(
                file.path,
                *line,
                "`unsafe`",
                "use a safe interface, such as `rustix`",
            )
        };
        findings.extend(file.survey.unsafes.iter().map(unsafe_here));
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    fn findings_of(path: &str, text: &str) -> Vec<String> {
        check(&SourceTree::of(&[(path, text)]))
            .iter()
            .map(ToString::to_string)
            .collect()
    }

    #[test]
    fn allow_is_found_in_tests_too() {
        for text in [
            "#![allow(missing_docs)]\n",
            "#[allow(dead_code)]\nfn f() {}",
            "#[cfg_attr(unix, allow(dead_code))]\nfn f() {}",
            "fn f() {\n    #[allow(unused)]\n    let x = 1;\n}",
            "struct S {\n    #[allow(dead_code)]\n    x: u8,\n}",
        ] {
            assert_eq!(findings_of("crates/a/src/lib.rs", text).len(), 1, "{text}");
            assert_eq!(
                findings_of("crates/a/tests/it/run.rs", text).len(),
                1,
                "{text}"
            );
        }
        assert_eq!(
            findings_of(
                "crates/a/src/lib.rs",
                "#[cfg(test)]\nmod tests {\n    #![allow(missing_docs)]\n}"
            )
            .len(),
            0
        );
    }

    #[test]
    fn expect_needs_a_reason() {
        assert_eq!(
            findings_of("crates/a/src/lib.rs", "#[expect(dead_code)]\nfn f() {}").len(),
            1
        );
        assert_eq!(
            findings_of(
                "crates/a/src/lib.rs",
                "#[expect(dead_code, reason = \"soon\")]\nfn f() {}"
            )
            .len(),
            0
        );
    }

    #[test]
    fn unsafe_is_found_everywhere_but_in_the_allocator() {
        let text = "fn f() {\n    unsafe { g() }\n}";
        assert!(findings_of(UNSAFE_FILE, text).is_empty());
        assert_eq!(findings_of("crates/allocator/src/other.rs", text).len(), 1);
        for text in [
            "fn f() {\n    unsafe { g() }\n}",
            "unsafe fn f() {}",
            "m! { unsafe { g() } }",
        ] {
            for path in [
                "crates/a/src/lib.rs",
                "crates/a/tests/run.rs",
                "crates/a/fuzz/frame.rs",
            ] {
                assert_eq!(findings_of(path, text).len(), 1, "{path}: {text}");
            }
        }
        assert_eq!(
            findings_of(
                "crates/a/src/lib.rs",
                "#![forbid(unsafe_code)]\n// unsafe\n"
            )
            .len(),
            0
        );
    }
}
