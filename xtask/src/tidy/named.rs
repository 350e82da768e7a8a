//! Checks that tests, targets and scripts that `docs/tests` and `docs/parity.toml` name exist.

use super::tree::SourceTree;
use crate::finding::Finding;
use crate::parity::table::{self, DATA};
use crate::test_index::{self, INDEXES};

/// Returns names of the data that do not exist.
pub(super) fn check(tree: &SourceTree) -> Vec<Finding> {
    let files = INDEXES.into_iter().map(|(data, _)| data);
    let mut findings: Vec<Finding> = files.flat_map(|file| missing_tests(tree, file)).collect();
    findings.extend(parity_faults(tree));
    findings
}

fn parity_faults(tree: &SourceTree) -> Vec<Finding> {
    let Some(text) = tree.text(DATA) else {
        return Vec::new();
    };
    let makefile = tree.text("Makefile").unwrap_or_default();
    let has_target = |target: &str| {
        let head = format!("{target}:");
        makefile.lines().any(|line| line.starts_with(&head))
    };
    let faults = match table::parse(text) {
        Ok(table) => table.faults(
            has_target,
            |file| tree.text(file).is_some(),
            |test| exists(tree, test),
        ),
        Err(error) => vec![error.to_string()],
    };
    let finding = |wrong| Finding::new(DATA, 1, wrong, "correct the data");
    faults.into_iter().map(finding).collect()
}

fn missing_tests(tree: &SourceTree, file: &'static str) -> Vec<Finding> {
    let Some(text) = tree.text(file) else {
        return Vec::new();
    };
    let index = match test_index::parse(file, text) {
        Ok(index) => index,
        Err(error) => {
            let remedy = "correct the data";
            return vec![Finding::new(file, 1, error.to_string(), remedy)];
        }
    };
    let missing = index.tests().filter(|name| !exists(tree, name));
    missing
        .map(|name| {
            let quoted = format!("\"{name}\"");
            let line = tree.line_of(file, |line| line.contains(&quoted));
            let wrong = format!("there is no test {name}");
            Finding::new(file, line, wrong, "name one that exists")
        })
        .collect()
}

/// Returns whether the tree has a test `module::…::test`, or a file of that path.
fn exists(tree: &SourceTree, name: &str) -> bool {
    let Some((modules, test)) = name.rsplit_once("::") else {
        return tree.text(name).is_some();
    };
    let file = modules.replace("::", "/");
    // Module `tests` may be inline.
    let outer = file.strip_suffix("/tests");
    let suffixes: Vec<String> = [Some(file.as_str()), outer]
        .into_iter()
        .flatten()
        .flat_map(|file| [".rs", "/mod.rs", "/main.rs"].map(|end| format!("/{file}{end}")))
        .collect();
    let declared = format!("fn {test}(");
    tree.rust().any(|rust| {
        rust.text.contains(&declared) && suffixes.iter().any(|suffix| rust.path.ends_with(suffix))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_test_that_does_not_exist_is_named() {
        let data = |tests: &str| {
            format!(
                "title = \"T\"\nabout = \"A\"\n[[section]]\ntitle = \"S\"\n[[section.case]]\ncase = \"c\"\ntests = [\n{tests}]\n"
            )
        };
        let security = data(
            "\"pins::held\",\n\"pins::gone\",\n\"other::held\",\n\"deep::pins::held\",\n\"a::tests::inline\",\n\"scripts/a\",\n\"scripts/b\",\n",
        );
        let tree = SourceTree::of(&[
            (INDEXES[0].0, security.as_str()),
            (INDEXES[1].0, "title = 1\n"),
            ("crates/a/tests/it/pins.rs", "#[test]\nfn held() {}\n"),
            ("crates/a/src/a.rs", "mod tests { fn inline() {} }\n"),
            ("scripts/a", ""),
        ]);
        let found: Vec<String> = check(&tree).iter().map(ToString::to_string).collect();
        let of_first = |name: &str| {
            found.iter().any(|finding| {
                finding.starts_with("docs/tests/security.toml:") && finding.contains(name)
            })
        };
        assert_eq!(found.len(), 5, "{found:?}");
        assert!(of_first(":9: there is no test pins::gone"), "{found:?}");
        assert!(of_first("other::held") && of_first("deep::pins::held") && of_first("scripts/b"));
        assert!(
            found
                .iter()
                .any(|f| f.starts_with("docs/tests/models.toml:1: "))
        );
    }
}
