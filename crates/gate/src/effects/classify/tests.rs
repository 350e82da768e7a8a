use super::*;
use crate::effects::{Annotations, ArgumentSigns};

const NOTHING: Stated = Stated {
    operation: None,
    side_effects: None,
};

fn with(evidence: Evidence, tool: &str) -> CallEffects {
    classify(tool, NOTHING, &evidence)
}

fn annotated(read_only: Option<bool>, destructive: Option<bool>, approved: bool) -> Evidence {
    Evidence {
        annotations: Annotations {
            read_only,
            destructive,
            open_world: None,
            approved,
        },
        ..Evidence::default()
    }
}

/// Names that mislead: most begin with a verb that reads.
const MISLEADING: &str = include_str!("../../../tests/it/misleading_names.txt");

#[test]
fn a_name_alone_makes_no_call_a_read() {
    for tool in MISLEADING.lines().chain([""]) {
        for evidence in [
            Evidence::default(),
            annotated(Some(true), None, false),
            annotated(Some(true), Some(false), false),
            annotated(Some(false), Some(true), false),
        ] {
            let effects = with(evidence, tool);
            assert!(
                effects.is_open && !effects.reads_only(),
                "{tool} {evidence:?}"
            );
            assert_ne!(effects.operation(), Some(Operation::Read), "{tool}");
            assert!(effects.may_move, "{tool}");
        }
    }
}

#[test]
fn a_verb_in_a_name_counts_against_the_call() {
    for (tool, operation) in [
        ("read_note", None),
        ("write_note", Some(Operation::Write)),
        ("find_and_purge", Some(Operation::Delete)),
        ("fetch_and_execute", Some(Operation::Execute)),
        ("read_and_forward", Some(Operation::Send)),
        ("readWriteFile", Some(Operation::Write)),
        ("list_then_delete_all", Some(Operation::Delete)),
        ("run_and_delete", Some(Operation::Execute)),
        ("reader", None),
    ] {
        assert_eq!(of_name(tool).operation(), operation, "{tool}");
    }
}

#[test]
fn exact_names_of_the_shipped_table_count_until_something_contradicts() {
    for tool in [
        "read_file",
        "Read-File",
        "git_log",
        "directory_tree",
        "list_tables",
    ] {
        assert!(of_name(tool).reads_only(), "{tool}");
        assert!(with(annotated(Some(true), None, false), tool).reads_only());
        for evidence in [
            annotated(Some(false), None, false),
            annotated(None, Some(true), false),
            Evidence {
                suspicious_schema: true,
                ..Evidence::default()
            },
        ] {
            let effects = with(evidence, tool);
            assert!(
                effects.is_open && !effects.reads_only(),
                "{tool} {evidence:?}"
            );
        }
    }
    for tool in ["read_files_", "read_file2", "xread_file", "git_log_all"] {
        assert!(!of_name(tool).reads_only(), "{tool}");
    }
    for (tool, operations) in [
        ("write_file", OperationSet::WRITE),
        ("delete_file", OperationSet::DELETE),
        ("fetch", OperationSet::SEND),
        ("bash", OperationSet::EXECUTE),
    ] {
        let effects = of_name(tool);
        assert_eq!((effects.operations, effects.is_open), (operations, false));
    }
    // Reads, and not of files or the like.
    for tool in ["list_issues", "slack_get_users"] {
        let effects = of_name(tool);
        assert_eq!(effects.operation(), Some(Operation::Read), "{tool}");
        assert!(!effects.reads_only(), "{tool}");
        assert_eq!(effects.sends_outward, Some(true), "{tool}");
    }
}

#[test]
fn annotations_speak_for_a_tool_once_a_person_approved_them() {
    let approved = annotated(Some(true), None, true);
    assert!(with(approved, "sized").reads_only());
    assert!(!with(annotated(Some(true), None, false), "sized").reads_only());
    for tool in [
        "delete_all",
        "get_secret",
        "search_and_replace",
        "web_search",
        "run_report",
    ] {
        assert!(!with(approved, tool).reads_only(), "{tool}");
    }
    assert!(!with(annotated(Some(true), Some(true), true), "sized").reads_only());
    let writes = with(annotated(Some(false), None, false), "sized");
    assert_eq!(writes.operation(), Some(Operation::Write));
    let destroys = with(annotated(Some(false), Some(true), false), "sized");
    assert_eq!(destroys.operation(), Some(Operation::Delete));
    let reach = |open_world, approved| {
        let annotations = Annotations {
            open_world: Some(open_world),
            approved,
            ..Annotations::default()
        };
        let evidence = Evidence {
            annotations,
            ..Evidence::default()
        };
        with(evidence, "sized").sends_outward
    };
    assert_eq!(reach(true, false), Some(true));
    assert_eq!(reach(false, false), None);
    assert_eq!(reach(false, true), Some(false));
}

#[test]
fn a_declaration_outranks_every_other_source() {
    let declared = |operations| Evidence {
        declared: Some(operations),
        ..annotated(Some(false), Some(true), false)
    };
    let read = with(declared(OperationSet::READ), "search_and_destroy");
    assert!(read.reads_only() && !read.may_move);
    assert_eq!(read.sends_outward, Some(false));
    let writes = with(declared(OperationSet::WRITE), "read_file");
    assert_eq!(writes.operation(), Some(Operation::Write));
    assert!(!writes.is_open && !writes.reads_only());
    let sends = with(declared(OperationSet::READ.with(OperationSet::SEND)), "zap");
    assert_eq!(sends.sends_outward, Some(true));
    assert!(!sends.reads_only());
}

#[test]
fn a_built_in_server_states_what_its_tools_do() {
    let stated = |operation, side_effects| Stated {
        operation: Some(operation),
        side_effects: Some(side_effects),
    };
    let evidence = Evidence::default();
    let reads = classify("run_x", stated(Operation::Read, &["fs_read"]), &evidence);
    assert!(reads.reads_only());
    let sends = classify("x", stated(Operation::Read, &["network_egress"]), &evidence);
    assert!(!sends.reads_only());
    let unknown = classify("x", stated(Operation::Unknown, &["code_exec"]), &evidence);
    assert!(unknown.may_do_anything() && unknown.is_open);
}

#[test]
fn arguments_make_a_read_more_than_a_read() {
    let shows = |arguments| Evidence {
        arguments,
        ..Evidence::default()
    };
    let signs = ArgumentSigns::default();
    for arguments in [
        ArgumentSigns {
            output: true,
            ..signs
        },
        ArgumentSigns {
            option: true,
            ..signs
        },
    ] {
        let effects = with(shows(arguments), "git_log");
        assert!(effects.is_open && !effects.reads_only() && effects.may_move);
        let declared = Evidence {
            declared: Some(OperationSet::READ),
            ..shows(arguments)
        };
        assert!(!with(declared, "x").reads_only());
    }
    let address = ArgumentSigns {
        address: true,
        ..signs
    };
    assert!(!with(shows(address), "read_file").reads_only());
    let declared = Evidence {
        declared: Some(OperationSet::READ),
        ..shows(address)
    };
    assert!(with(declared, "get_page").reads_only());
}
