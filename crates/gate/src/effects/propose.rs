//! What a person is proposed to declare of a tool. A proposal has no effect until a person accepts it.

use super::names::NameEffects;
use super::{Annotations, OperationSet};
use crate::words::words;

/// Words of names of tools that read.
const READS: [&str; 45] = [
    "read",
    "get",
    "list",
    "search",
    "find",
    "show",
    "view",
    "describe",
    "count",
    "stat",
    "status",
    "head",
    "tail",
    "cat",
    "grep",
    "glob",
    "lookup",
    "info",
    "inspect",
    "explain",
    "summarize",
    "diff",
    "peek",
    "retrieve",
    "query",
    "blame",
    "reflog",
    "log",
    "logs",
    "schema",
    "details",
    "geocode",
    "reader",
    "sample",
    "validate",
    "filter",
    "range",
    "zrange",
    "names",
    "rules",
    "instructions",
    "mapping",
    "mappings",
    "matrix",
    "isochrone",
];
/// Further words of names of tools that read, with `elevation` and the like: they answer and change nothing.
const ANSWERS: [&str; 3] = ["ping", "echo", "elevation"];

/// Returns the operations that a tool seems to have: by the shipped table, its annotations, its schema and its name.
/// `None` where they do not tell, so that the tool stays unknown.
#[must_use]
pub fn propose(
    tool: &str,
    annotations: Annotations,
    suspicious_schema: bool,
) -> Option<OperationSet> {
    let name = NameEffects::of(tool);
    let says_change = annotations.read_only == Some(false) || annotations.destructive == Some(true);
    if let Some(shipped) = name.shipped {
        let operations = shipped.operations?;
        if operations != OperationSet::READ || !(says_change || suspicious_schema) {
            return Some(operations);
        }
    }
    let reads = words(tool).iter().any(|word| {
        let word = word.as_str();
        READS.contains(&word) || ANSWERS.contains(&word)
    });
    let may_read = reads && !suspicious_schema && !name.is_guarded;
    // A noun may look like a verb that writes: `get_commit`.
    let only_writes = name.operations.without(OperationSet::WRITE).is_empty();
    if annotations.read_only == Some(true) && !says_change && may_read && only_writes {
        return Some(OperationSet::READ);
    }
    let mut operations = name.operations;
    if annotations.read_only == Some(false) {
        operations = operations.with(OperationSet::WRITE);
    }
    if annotations.destructive == Some(true) {
        operations = operations.with(OperationSet::DELETE);
    }
    match operations.is_empty() {
        false => Some(operations),
        true => may_read.then_some(OperationSet::READ),
    }
}
