//! The tests that pages name as `file::test`: each is there.

use super::tree::Tree;
use crate::finding::Finding;

/// The pages that say what is tested.
const PAGES: [&str; 4] = [
    "docs/security.md",
    "docs/models-tests.md",
    "docs/pbpk-tests.md",
    "docs/ssh-tests.md",
];

/// A claim of a page is worth what its test is.
pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    PAGES.into_iter().flat_map(|page| of(tree, page)).collect()
}

fn of(tree: &Tree, page: &'static str) -> Vec<Finding> {
    let Some(text) = tree.text(page) else {
        return Vec::new();
    };
    let mut findings = Vec::new();
    for (line, text) in (1..).zip(text.lines()) {
        for name in text.split('`').skip(1).step_by(2) {
            let Some((file, test)) = test_of(name) else {
                continue;
            };
            if !is_there(tree, file, test) {
                let remedy = "name one that is, or say that there is none";
                let wrong = format!("there is no test {name}");
                findings.push(Finding::new(page, line, wrong, remedy));
            }
        }
    }
    findings
}

/// The file and the test of `file::test`; nothing where a text is no such name.
fn test_of(name: &str) -> Option<(&str, &str)> {
    let is_word = |part: &str| {
        !part.is_empty() && part.chars().all(|c| c == '_' || c.is_ascii_alphanumeric())
    };
    let (file, test) = name.split_once("::")?;
    (is_word(file) && is_word(test)).then_some((file, test))
}

fn is_there(tree: &Tree, file: &str, test: &str) -> bool {
    let is_of = |path: &str| {
        path.ends_with(&format!("/{file}.rs"))
            || path.ends_with(&format!("/{file}/main.rs"))
            || path.ends_with(&format!("/{file}/mod.rs"))
    };
    let declared = format!("fn {test}(");
    tree.rust()
        .any(|rust| is_of(rust.path) && rust.text.contains(&declared))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_test_that_is_not_there_is_named() {
        let tree = Tree::of(&[
            (
                PAGES[0],
                "`pins::held` is there\n`pins::gone` is not, nor is `other::held`; `durward serve` is none\n",
            ),
            (PAGES[1], "`pins::held`, and `pins::other`\n"),
            ("crates/a/tests/it/pins.rs", "#[test]\nfn held() {}\n"),
        ]);
        let found: Vec<String> = check(&tree).iter().map(ToString::to_string).collect();
        assert_eq!(found.len(), 3, "{found:?}");
        let of_second = |f: &&String| f.starts_with("docs/security.md:2");
        assert_eq!(found.iter().filter(of_second).count(), 2, "{found:?}");
        assert!(found.iter().any(|f| f.contains("pins::other")));
        assert!(found.iter().any(|f| f.contains("pins::gone")));
        assert!(found.iter().any(|f| f.contains("other::held")));
    }
}
