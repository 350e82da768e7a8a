//! Words that readers of help, errors and pages would stumble over: plain engineer's English stays plain.
//!
//! Pages under `docs/reference` are printed from help, keys and reasons, so those are checked there; messages are
//! string literals of the sources.

use super::tree::SourceTree;
use crate::finding::Finding;

/// A word or phrase, and what to write in its place.
const BANNED: [(&str, &str); 27] = [
    ("whence", "write \"where from\", or name the cause"),
    ("hither", "write \"here\""),
    ("thither", "write \"there\""),
    ("thereof", "write \"of it\""),
    ("therein", "write \"in it\""),
    ("hitherto", "write \"so far\""),
    ("borne", "write \"allowed\" or \"listed\""),
    ("guests", "write \"callers\""),
    ("is well", "write \"is valid\" or \"is right\""),
    ("hold against", "write \"compare with\""),
    ("held against", "write \"compared with\""),
    ("holds against", "write \"compares with\""),
    ("protocol eras", "write \"protocol revisions\""),
    ("modern era", "name the protocol revision"),
    ("legacy era", "name the protocol revisions"),
    ("stands in", "write \"is in\""),
    ("stands at", "write \"is at\""),
    ("stands behind", "write \"follows\""),
    ("stands before", "write \"comes before\""),
    ("stands beside", "write \"is beside\""),
    ("stands twice", "write \"is given twice\""),
    ("mend", "write \"correct\" or \"fix\""),
    ("anew", "write \"again\", or name what is done"),
    ("is none of", "write \"is not one of\""),
    ("in the place of", "write \"instead of\""),
    ("good no longer", "write \"no longer valid\""),
    ("nobody sees", "write \"invisible\""),
];

/// Pages and messages.
pub(super) fn check(tree: &SourceTree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (path, text) in tree.texts() {
        if !is_page(path) && !is_source(path) {
            continue;
        }
        for (index, line) in text.lines().enumerate() {
            // Tests are at the end of a file, and users never read them.
            if is_source(path) && line.trim() == "#[cfg(test)]" {
                break;
            }
            let read = match is_page(path) {
                true => line.to_ascii_lowercase(),
                false => literals(line).to_ascii_lowercase(),
            };
            for (word, instead) in BANNED.iter().filter(|(word, _)| has_phrase(&read, word)) {
                let wrong = format!("\"{word}\" is not a word of our pages and messages");
                findings.push(Finding::new(path, index + 1, wrong, *instead));
            }
            if says_is_no(&read) {
                let wrong = "\"is no ...\" reads as translated".to_owned();
                let instead = "write \"is not a ...\"";
                findings.push(Finding::new(path, index + 1, wrong, instead));
            }
        }
    }
    findings
}

fn is_page(path: &str) -> bool {
    let is_top = ["README.md", "CONTRIBUTING.md", "ARCHITECTURE.md"].contains(&path);
    is_top || (path.starts_with("docs/") && path.ends_with(".md"))
}

fn is_source(path: &str) -> bool {
    (path.starts_with("crates/") || path.starts_with("tools/"))
        && path.contains("/src/")
        && path.ends_with(".rs")
}

/// Returns the text between quotes on a line of code that is not a comment.
fn literals(line: &str) -> String {
    if line.trim_start().starts_with("//") {
        return String::new();
    }
    // A literal without a blank is a name: of a member, a label or a flag.
    let parts = line.split('"').skip(1).step_by(2);
    parts
        .filter(|part| part.contains(' '))
        .collect::<Vec<_>>()
        .join("\n")
}

/// Returns whether a line says that something *is no* such thing; "there is no" and "is no longer" are English.
fn says_is_no(line: &str) -> bool {
    line.match_indices("is no ").any(|(at, found)| {
        let before = line.get(..at).unwrap_or_default();
        let after = line.get(at + found.len()..).unwrap_or_default();
        let is_word = before.is_empty() || before.ends_with([' ', '\n']);
        let is_there = before.trim_end().ends_with("there");
        is_word && !is_there && !after.starts_with("longer") && !after.starts_with("more")
    })
}

fn has_phrase(line: &str, phrase: &str) -> bool {
    // `{arm}` in a message is a value.
    let is_letter = |c: char| c.is_alphanumeric() || ['_', '{', '}'].contains(&c);
    line.match_indices(phrase).any(|(at, _)| {
        let before = line.get(..at).and_then(|s| s.chars().next_back());
        let after = line.get(at + phrase.len()..).and_then(|s| s.chars().next());
        !before.is_some_and(is_letter) && !after.is_some_and(is_letter)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn count_findings(path: &str, text: &str) -> usize {
        check(&SourceTree::of(&[(path, text)])).len()
    }

    #[test]
    fn p17_banned_words_are_found_where_people_read() {
        for (word, _) in BANNED {
            let page = format!("one {word} two\n");
            assert_eq!(count_findings("docs/a.md", &page), 1, "{word}");
            assert_eq!(
                count_findings("docs/reference/commands.md", &page),
                1,
                "{word}"
            );
            assert_eq!(count_findings("notes/a.md", &page), 0, "{word}");
            let message = format!("let said = \"one {word} two\";\n");
            assert_eq!(count_findings("crates/a/src/b.rs", &message), 1, "{word}");
            let comment = format!("// \"{word}\"\nlet {}x = 1;\n", word.replace(' ', "_"));
            assert_eq!(count_findings("crates/a/src/b.rs", &comment), 0, "{word}");
            let name = format!("let key = \"{}\";\n", word.replace(' ', "_"));
            assert_eq!(count_findings("crates/a/src/b.rs", &name), 0, "{word}");
            let test = format!("#[cfg(test)]\nlet said = \"{word}\";\n");
            assert_eq!(count_findings("crates/a/src/b.rs", &test), 0, "{word}");
        }
        assert_eq!(
            count_findings("docs/a.md", "recommend, amend and well\n"),
            0
        );
        for (line, expect) in [
            ("it is no port\n", 1),
            ("There is no port, and it is no longer needed\n", 0),
            ("this noise\n", 0),
        ] {
            assert_eq!(count_findings("docs/a.md", line), expect, "{line}");
        }
    }
}
