//! Words that may not stay in the tree: reminders without an owner, and paths of one machine.

use super::tree::SourceTree;
use crate::finding::Finding;

/// Put together here so that this file does not find itself.
const REMINDERS: [&str; 4] = [
    concat!("TO", "DO"),
    concat!("FIX", "ME"),
    concat!("X", "XX"),
    concat!("HA", "CK"),
];
const MACHINE_PATHS: [&str; 3] = [
    concat!("/", "work/"),
    concat!("/", "root/"),
    concat!("/", "farm/"),
];

/// Reminders in what people write, machine paths in every text file.
pub(super) fn check(tree: &SourceTree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (path, text) in tree.texts() {
        for (index, line) in text.lines().enumerate() {
            if is_written_by_hand(path)
                && let Some(word) = REMINDERS.iter().find(|word| has_word(line, word))
            {
                findings.push(Finding::new(
                    path,
                    index + 1,
                    format!("`{word}`"),
                    "do it, or say in an issue why not",
                ));
            }
            if let Some(place) = MACHINE_PATHS.iter().find(|place| has_path(line, place)) {
                let wrong = format!("`{place}` is a path of one machine");
                findings.push(Finding::new(
                    path,
                    index + 1,
                    wrong,
                    "use a path relative to the repository or a parameter",
                ));
            }
        }
    }
    findings
}

/// Code, prose and scripts; lock files and data are full of letters that mean nothing.
fn is_written_by_hand(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path);
    match name.rsplit_once('.') {
        Some((_, extension)) => matches!(
            extension,
            "rs" | "md" | "toml" | "py" | "sh" | "yml" | "yaml" | "js" | "css" | "html"
        ),
        None => true,
    }
}

fn has_word(line: &str, word: &str) -> bool {
    let part_of_word = |c: char| c.is_alphanumeric() || c == '_';
    line.match_indices(word).any(|(at, _)| {
        let before = line.get(..at).and_then(|s| s.chars().next_back());
        let after = line.get(at + word.len()..).and_then(|s| s.chars().next());
        !before.is_some_and(part_of_word) && !after.is_some_and(part_of_word)
    })
}

/// Returns whether an absolute path starts with `place`; `../work/` and `a/work/` do not.
fn has_path(line: &str, place: &str) -> bool {
    line.match_indices(place).any(|(at, _)| {
        let before = line.get(..at).and_then(|s| s.chars().next_back());
        !before.is_some_and(|c| {
            c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | '}' | ')' | '~' | '*' | '%')
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn count_findings(path: &str, text: &str) -> usize {
        check(&SourceTree::of(&[(path, text)])).len()
    }

    #[test]
    fn reminders_are_found_as_whole_words_where_people_write() {
        for word in REMINDERS {
            for path in [
                "crates/a/src/lib.rs",
                "README.md",
                "Makefile",
                ".ci/run",
                "scripts/setup-tests",
                "a.py",
            ] {
                assert_eq!(
                    count_findings(path, &format!("one\n# {word}: later\n")),
                    1,
                    "{path} {word}"
                );
            }
            assert_eq!(
                count_findings("README.md", &format!("{word}S and a{word}\n")),
                0,
                "{word}"
            );
            assert_eq!(
                count_findings("package-lock.json", &format!("\"{word}\"\n")),
                0,
                "{word}"
            );
        }
        assert_eq!(count_findings("scripts/x", "mktemp -d /tmp/a.XXXXXX\n"), 0);
    }

    #[test]
    fn machine_paths_are_found_in_every_text_file() {
        for place in MACHINE_PATHS {
            for path in [
                "crates/a/src/lib.rs",
                "Cargo.lock",
                "tests/decisions/a.json",
                "scripts/run",
            ] {
                assert_eq!(
                    count_findings(path, &format!("x\n\"{place}main\"\n")),
                    1,
                    "{path} {place}"
                );
            }
            assert_eq!(
                count_findings("a.md", &format!("..{place}a b{place}c ${{HOME}}{place}d\n")),
                0,
                "{place}"
            );
        }
    }
}
