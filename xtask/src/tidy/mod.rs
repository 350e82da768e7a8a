//! The rules of the house that the compiler does not check.
//!
//! Each rule is a function from the tree to findings; a rule keeps no state and reads no file of its own.

use std::io::Write;
use std::path::Path;

use crate::command::TaskError;
use crate::docs;
use crate::finding::Finding;

mod arrows;
mod attributes;
mod binaries;
mod circles;
mod headers;
mod metadata;
mod modules;
mod named;
mod orphans;
mod outbound;
mod panics;
pub(crate) mod sizes;
mod steps;
mod survey;
mod tree;
mod vocabulary;
mod wording;
mod words;

/// Checks everything, prints every finding in order and returns whether there was none.
pub(crate) fn run(root: &Path, out: &mut impl Write) -> Result<bool, TaskError> {
    let tree = tree::SourceTree::load(root)?;
    let packages = metadata::load(root)?;
    let mut findings = check(&tree, &packages);
    findings.extend(docs::check(root)?);
    findings.sort();
    findings.dedup();
    for finding in &findings {
        writeln!(out, "{finding}")?;
    }
    let verdict = match findings.len() {
        0 => "tidy".to_owned(),
        1 => "1 finding".to_owned(),
        n => format!("{n} findings"),
    };
    writeln!(out, "tidy: {verdict}")?;
    Ok(findings.is_empty())
}

/// Returns what breaks a rule in one tree.
fn check(tree: &tree::SourceTree, packages: &[metadata::Package]) -> Vec<Finding> {
    let mut findings = arrows::check(tree, packages);
    findings.extend(attributes::check(tree));
    findings.extend(binaries::check(packages));
    findings.extend(circles::check(tree));
    findings.extend(headers::check(tree));
    findings.extend(named::check(tree));
    findings.extend(orphans::check(tree));
    findings.extend(outbound::check(tree));
    findings.extend(panics::check(tree));
    findings.extend(steps::check(tree));
    findings.extend(wording::check(tree));
    findings.extend(words::check(tree));
    findings.extend(vocabulary::check(tree));
    findings.extend(tree.unparsed());
    findings
}
