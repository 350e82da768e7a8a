//! The tools and their schemas.

use gate::facts::{FactId, Operation};
use serde_json::{Value, json};
use toolkit::schema::SchemaFault;
use toolkit::server::ToolDef;

use super::context::with_context;
use crate::command::COMMAND_CHARS_MAX;

/// A tool, whatever name it is called by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tool {
    Connect,
    Disconnect,
    Run,
    Batch,
    Hostname,
    ListSessions,
    PoolStats,
    ReadOutput,
    CatFile,
    Interfaces,
    Routes,
    Firewall,
    Qdisc,
    Connectivity,
    Compare,
    Get,
    Put,
    ListDir,
    Edit,
    FanOut,
    JobStart,
    JobStatus,
    JobOutput,
    JobCancel,
    ForwardOpen,
    ForwardList,
    ForwardClose,
    TerminalOpen,
    TerminalSend,
    TerminalRead,
    TerminalClose,
}

/// Most commands of a batch.
pub(crate) const BATCH_MAX: usize = 5;

impl Tool {
    /// The tool of this name.
    pub fn named(name: &str) -> Option<Self> {
        Some(match name {
            "ssh_connect" => Self::Connect,
            "ssh_disconnect" => Self::Disconnect,
            "ssh_run_command" | "ssh_run" => Self::Run,
            "ssh_batch_commands" => Self::Batch,
            "ssh_hostname" => Self::Hostname,
            "ssh_list_sessions" => Self::ListSessions,
            "ssh_pool_stats" => Self::PoolStats,
            "ssh_read_output" => Self::ReadOutput,
            "ssh_cat_file" => Self::CatFile,
            "ssh_network_interfaces" => Self::Interfaces,
            "ssh_network_routes" => Self::Routes,
            "ssh_network_firewall" => Self::Firewall,
            "ssh_network_qdisc" => Self::Qdisc,
            "ssh_network_connectivity" => Self::Connectivity,
            "ssh_network_compare" => Self::Compare,
            "ssh_get" => Self::Get,
            "ssh_put" => Self::Put,
            "ssh_list_dir" => Self::ListDir,
            "ssh_edit_file" => Self::Edit,
            "ssh_fan_out" => Self::FanOut,
            "ssh_job_start" => Self::JobStart,
            "ssh_job_status" => Self::JobStatus,
            "ssh_job_output" => Self::JobOutput,
            "ssh_job_cancel" => Self::JobCancel,
            "ssh_forward_open" => Self::ForwardOpen,
            "ssh_forward_list" => Self::ForwardList,
            "ssh_forward_close" => Self::ForwardClose,
            "ssh_terminal_open" => Self::TerminalOpen,
            "ssh_terminal_send" => Self::TerminalSend,
            "ssh_terminal_read" => Self::TerminalRead,
            "ssh_terminal_close" => Self::TerminalClose,
            _ => return None,
        })
    }
}

pub(super) fn session() -> Value {
    json!({"type": "string", "maxLength": 64, "description": "What ssh_connect gave."})
}

pub(super) fn object(properties: Value, required: &[&str]) -> Value {
    json!({"type": "object", "properties": properties, "required": required, "additionalProperties": false})
}

/// What a command's result is.
fn ended() -> Value {
    let bytes = json!({"type": "integer", "minimum": 0});
    let stream = json!({"type": "string"});
    json!({
        "type": "object",
        "properties": {
            "exit_code": {"type": ["integer", "null"], "description": "Null where a signal ended it."},
            "signal": {"type": ["string", "null"]},
            "stdout": stream, "stderr": stream,
            "stdout_encoding": {"enum": ["text", "base64"]}, "stderr_encoding": {"enum": ["text", "base64"]},
            "stdout_bytes": bytes, "stderr_bytes": bytes,
            "truncated": {"type": "boolean"},
            "whole": {"type": ["object", "null"], "description": "Where all of it is, for ssh_read_output."},
            "opened": {"type": "object", "description": "Paths of the command that lead elsewhere, with the place that was used instead."},
            "output_incomplete": {"type": "boolean", "description": "True where the command wrote, or may still write, bytes that are neither here nor kept."},
            "output_incomplete_reason": {"type": ["string", "null"], "description": "timed_out, cancelled, connection_lost, over_bound, or streams_open: it has ended, and a process that it started still has its output open."},
            "duration_ms": {"type": "number"}
        },
        "required": ["exit_code", "signal", "stdout", "stderr", "stdout_bytes", "stderr_bytes", "truncated", "output_incomplete", "duration_ms"]
    })
}

/// What the words of a command say, and its session.
const COMMAND_FACTS: &[FactId] = &[
    FactId::Host,
    FactId::Program,
    FactId::Argv,
    FactId::Operands,
    FactId::Cwd,
    FactId::Env,
    FactId::EnvNames,
];

/// All tools, in the order in which they are listed.
pub(crate) fn all() -> Result<Vec<ToolDef>, SchemaFault> {
    let connect = ToolDef::new(
        "ssh_connect",
        "Connect to a host",
        "Opens a session on a host of the operator's list. Give its name; who logs in and how is the operator's to set.",
        object(json!({
            "host": {"type": "string", "minLength": 1, "maxLength": 253, "description": "The host's name in the operator's list."},
            "password": {"type": "string", "maxLength": 1024, "description": "Only where the host takes the caller's password."},
            "user": {"type": "string", "maxLength": 64, "description": "Only to be sure of the user: another one than the operator's is refused."},
            "port": {"type": "integer", "minimum": 1, "maximum": 65535, "description": "The port, where the operator lists several hosts with one address. Another one than the operator's is refused."},
            "insecure": {"type": "boolean", "default": false, "description": "Host keys are always checked: true is refused."},
            "timeout_ms": {"type": "integer", "minimum": 1, "maximum": 86_400_000, "description": "Longest wait for the connection; the operator's bound holds beside it."},
            "alone": {"type": "boolean", "default": false, "description": "Make a connection that only this session uses; it is closed with the session."}
        }), &["host"]),
    )?
    .with_output(json!({"type": "object", "properties": {"session_id": {"type": "string"}}, "required": ["session_id"]}))?;
    let disconnect = ToolDef::new(
        "ssh_disconnect",
        "End a session",
        "Ends a session.",
        object(json!({"session_id": session()}), &["session_id"]),
    )?;
    let list = ToolDef::new("ssh_list_sessions", "List sessions", "Lists this client's sessions.", object(json!({}), &[]))?
        .with_output(json!({"type": "object", "properties": {"sessions": {"type": "array"}, "count": {"type": "integer"}}, "required": ["sessions", "count"]}))?;
    let pool = ToolDef::new(
        "ssh_pool_stats",
        "Connections",
        "How many connections there are, and how often one was there when it was wanted.",
        object(json!({"host": {"type": "string", "maxLength": 253}}), &[]),
    )?
    .with_output(json!({"type": "object", "properties": {"stats": {"type": "object"}}, "required": ["stats"]}))?;
    let hostname = ToolDef::new("ssh_hostname", "Name of the host", "Asks a host for its name.", object(json!({"session_id": session()}), &["session_id"]))?
        .with_output(json!({"type": "object", "properties": {"hostname": {"type": "string"}}, "required": ["hostname"]}))?;
    let mut tools = vec![
        ToolDef {
            open_world: true,
            ..connect
        },
        disconnect,
        run("ssh_run_command", "Run a command")?,
        run("ssh_run", "Run a command (short name)")?,
        batch()?,
        super::fan_out::definition()?,
        cat_file()?,
        read_output()?,
        ToolDef {
            open_world: true,
            ..hostname
        },
        list,
        pool,
    ];
    tools.extend(super::network::definitions()?);
    tools.extend(super::transfer::definitions()?);
    tools.extend(super::jobs::definitions()?);
    tools.extend(super::forward::definitions()?);
    tools.extend(super::terminal::definitions()?);
    for tool in &mut tools {
        vary(tool);
    }
    Ok(tools)
}

/// What a call of it says by its arguments.
fn vary(tool: &mut ToolDef) {
    if !matches!(
        Tool::named(tool.name),
        Some(
            Tool::Disconnect
                | Tool::ReadOutput
                | Tool::ListSessions
                | Tool::PoolStats
                | Tool::ForwardOpen
                | Tool::TerminalSend
        )
    ) {
        tool.varies = COMMAND_FACTS;
    }
    // Commands say themselves what they do, and are no reads of which any may pass.
    if matches!(
        Tool::named(tool.name),
        Some(
            Tool::Get
                | Tool::Put
                | Tool::ListDir
                | Tool::Edit
                | Tool::JobStatus
                | Tool::JobOutput
                | Tool::JobCancel
                | Tool::ForwardList
                | Tool::ForwardClose
                | Tool::TerminalRead
                | Tool::TerminalClose
        )
    ) {
        tool.varies = &[FactId::Host];
    }
    if matches!(Tool::named(tool.name), Some(Tool::Connect)) {
        tool.varies = &[FactId::Host];
        tool.operation = Operation::Unknown;
        tool.side_effects = &["network_egress"];
    }
}

pub(super) fn command() -> Value {
    json!({
        "type": "string", "minLength": 1, "maxLength": COMMAND_CHARS_MAX,
        "description": "One program and its words; quotes are read as a shell reads them, and nothing else is: no pipe, no redirection, no expansion."
    })
}

pub(super) fn timeout() -> Value {
    json!({"type": "integer", "minimum": 1, "maximum": 86_400_000, "description": "The command is stopped after so many milliseconds."})
}

fn run(name: &'static str, title: &'static str) -> Result<ToolDef, SchemaFault> {
    let tool = ToolDef::new(
        name,
        title,
        "Runs one program on the host of a session, and gives its output, its errors and its exit code apart. There is no shell: one program and its words.",
        object(
            with_context(json!({
                "session_id": session(),
                "command": command(),
                "stdin": {"type": "string", "maxLength": 1_000_000, "description": "What the program reads."},
                "timeout_ms": timeout()
            })),
            &["session_id", "command"],
        ),
    )?
    .with_output(ended())?;
    Ok(runs(tool))
}

fn batch() -> Result<ToolDef, SchemaFault> {
    let tool = ToolDef::new(
        "ssh_batch_commands",
        "Run several commands",
        "Runs up to five commands. All are read and judged before the first one runs; without stop_on_error they run at the same time.",
        object(
            with_context(json!({
                "session_id": session(),
                "commands": {"type": "array", "minItems": 1, "maxItems": BATCH_MAX, "items": command()},
                "stop_on_error": {"type": "boolean", "default": false, "description": "Run one after the other, and stop at the first that fails."},
                "timeout_ms": timeout()
            })),
            &["session_id", "commands"],
        ),
    )?
    .with_output(json!({
        "type": "object",
        "properties": {
            "results": {"type": "array"}, "total": {"type": "integer"}, "executed": {"type": "integer"},
            "all_success": {"type": "integer", "enum": [0, 1]}
        },
        "required": ["results", "total", "executed", "all_success"]
    }))?;
    Ok(runs(tool))
}

/// What is true of every tool whose call says what is run.
pub(super) fn runs(tool: ToolDef) -> ToolDef {
    ToolDef {
        operation: Operation::Unknown,
        side_effects: &["code_exec", "process_spawn"],
        idempotent: false,
        open_world: true,
        ..tool
    }
}

/// Longest path, in characters.
pub(super) const PATH_CHARS_MAX: usize = 512;
/// Most bytes of a file in one answer.
pub(super) const FILE_BYTES_MAX: u64 = 4 * 1024 * 1024;

fn cat_file() -> Result<ToolDef, SchemaFault> {
    let tool = ToolDef::new(
        "ssh_cat_file",
        "Read a file",
        "Reads the beginning of a file of the host; anything that is not text comes in base64.",
        object(
            json!({
                "session_id": session(),
                "path": {"type": "string", "minLength": 1, "maxLength": PATH_CHARS_MAX, "description": "The whole path."},
                "encoding": {"enum": ["auto", "text", "base64"], "default": "auto"},
                "max_size": {"type": "integer", "minimum": 1, "maximum": FILE_BYTES_MAX, "default": 1024 * 1024, "description": "Most bytes that are read."}
            }),
            &["session_id", "path"],
        ),
    )?
    .with_output(json!({
        "type": "object",
        "properties": {
            "encoding": {"enum": ["text", "base64"]}, "content": {"type": "string"},
            "bytes": {"type": "integer"}, "path": {"type": "string"}, "truncated": {"type": "boolean"},
            "output_incomplete": {"type": "boolean", "description": "True where the file is longer than what has come, beside max_size."},
            "output_incomplete_reason": {"type": ["string", "null"]}
        },
        "required": ["encoding", "content", "bytes", "path", "truncated"]
    }))?;
    Ok(ToolDef {
        operation: Operation::Read,
        side_effects: &["fs_read"],
        open_world: true,
        ..tool
    })
}

/// What says which part of an output is read, beside `name`, which says of which output.
pub(super) fn part_of(name: &str, named: Value) -> Value {
    let mut members = json!({
        "stream": {"enum": ["stdout", "stderr"], "default": "stdout"},
        "at": {"type": "integer", "minimum": 0, "default": 0, "description": "Where to begin, in bytes."},
        "bytes": {"type": "integer", "minimum": 4, "maximum": 1_048_576, "default": 65_536, "description": "Most bytes of a part."},
        "grep": {"type": "string", "minLength": 1, "maxLength": 1024, "description": "A regular expression; without one, a part is read."},
        "context": {"type": "integer", "minimum": 0, "maximum": 20, "default": 0, "description": "Lines around each match."},
        "line": {"type": "integer", "minimum": 1, "default": 1, "description": "The number of the line that begins at `at`."}
    });
    if let Some(members) = members.as_object_mut() {
        members.insert(name.to_owned(), named);
    }
    object(members, &[name])
}

/// What a part of an output is.
pub(super) fn part() -> Value {
    json!({
        "type": "object",
        "properties": {
            "at": {"type": "integer"}, "bytes": {"type": "integer"}, "length": {"type": "integer"}, "next": {},
            "encoding": {"enum": ["text", "base64"]}, "content": {"type": "string"}, "lines": {"type": "array"}
        }
    })
}

fn read_output() -> Result<ToolDef, SchemaFault> {
    let named = json!({"type": "string", "minLength": 1, "maxLength": 4096, "description": "What the command's answer named."});
    let tool = ToolDef::new(
        "ssh_read_output",
        "Read a long output",
        "Reads a part of an output that was too long for its answer, or the lines of it that match a regular expression.",
        part_of("output", named),
    )?
    .with_output(part())?;
    Ok(ToolDef {
        roles: &[("grep", toolkit::server::Role::Content)],
        ..tool
    })
}
