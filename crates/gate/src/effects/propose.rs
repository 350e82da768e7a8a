//! What a person is proposed to declare of a tool. A proposal has no effect until a person accepts it.

use super::names::NameEffects;
use super::{Annotations, OperationSet, SchemaSigns};
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
const ANSWERS: [&str; 14] = [
    "ping",
    "echo",
    "elevation",
    "docs",
    "documentation",
    "metadata",
    "analyze",
    "compare",
    "calculate",
    "estimate",
    "observe",
    "directions",
    "examples",
    "changelog",
];

/// Returns the operations that a tool seems to have: by the shipped table, its annotations, its schema and its name.
/// `None` if none of them shows it, so that the tool stays unknown.
#[must_use]
pub fn propose(tool: &str, annotations: Annotations, schema: SchemaSigns) -> Option<OperationSet> {
    let name = NameEffects::of(tool);
    let says_change = annotations.read_only == Some(false) || annotations.destructive == Some(true);
    if let Some(shipped) = name.shipped {
        let operations = shipped.operations?;
        if operations != OperationSet::READ || !(says_change || schema.is_suspicious()) {
            return Some(operations);
        }
    }
    let says_read = annotations.read_only == Some(true) && !says_change;
    let has_word = words(tool).iter().any(|word| {
        let word = word.as_str();
        READS.contains(&word) || ANSWERS.contains(&word)
    });
    // What is searched may be the web.
    let is_vague = name.is_bare_search && !schema.store && annotations.open_world != Some(false);
    let may_read = !schema.is_suspicious() && !schema.address && !is_vague;
    let reads_by_name = !says_change && name.is_reading_phrase;
    // A noun may look like a verb that writes: `get_commit`.
    let only_writes = name.operations.without(OperationSet::WRITE).is_empty();
    let reads_by_hint = says_read
        && !name.is_guarded
        && match has_word {
            true => only_writes,
            false => name.operations.is_empty(),
        };
    if may_read && (reads_by_hint || reads_by_name) {
        return Some(OperationSet::READ);
    }
    let mut operations = name.operations;
    if annotations.read_only == Some(false) {
        operations = operations.with(OperationSet::WRITE);
    }
    if annotations.destructive == Some(true) {
        operations = operations.with(OperationSet::DELETE);
    }
    if schema.address {
        operations = operations.with(OperationSet::SEND);
    }
    match operations.is_empty() {
        false => Some(operations),
        true => (has_word && may_read && !name.is_guarded).then_some(OperationSet::READ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn proposal(tool: &str, arguments: &[&str]) -> Option<OperationSet> {
        let mut schema = SchemaSigns::default();
        arguments.iter().for_each(|name| schema.add(name));
        propose(tool, Annotations::default(), schema)
    }

    #[test]
    fn a_verb_that_reads_decides_only_before_a_noun() {
        for tool in [
            "get_build_failure_logs",
            "list_console_messages",
            "n8n_list_script_deployments",
            "list_files_in_vault",
            "get_screen_size",
        ] {
            assert_eq!(proposal(tool, &["id"]), Some(OperationSet::READ), "{tool}");
        }
        for tool in [
            "get_and_delete_item",
            "list_then_purge_logs",
            "get_shell",
            "get_shell_output",
            "get_secret_value",
            "list_in_shell",
            "get_build",
            "run_get_status",
            "export_list_items",
            "find_exec",
            "read_line_to_file_delete",
        ] {
            assert_ne!(proposal(tool, &["id"]), Some(OperationSet::READ), "{tool}");
        }
    }

    #[test]
    fn addresses_pipelines_and_searches_of_nothing_named_are_no_reads() {
        let read = Some(OperationSet::READ);
        assert_eq!(
            proposal("get_page_text", &["url"]),
            Some(OperationSet::SEND)
        );
        assert_eq!(proposal("search", &["query", "region"]), None);
        assert_eq!(proposal("search", &["query", "index"]), read);
        assert_ne!(proposal("get_counts", &["pipeline"]), read);
        assert_ne!(proposal("get_counts", &["path", "isUrl"]), read);
        assert_eq!(proposal("get_directions", &["origin", "destination"]), read);
        assert_ne!(proposal("get_item", &["destination"]), read);
    }
}
