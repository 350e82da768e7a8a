//! The tools and their schemas.

use serde_json::json;
use toolkit::schema::SchemaFault;
use toolkit::server::{Role, ToolDef};

pub(crate) const ECHO: &str = "echo";
pub(crate) const ADD: &str = "add";
const WAIT: &str = "wait";

/// Longest text that is said back, in characters.
const TEXT_CHARS_MAX: u32 = 1_000_000;
/// Longest wait, in milliseconds.
pub const WAIT_MS_MAX: u32 = 600_000;

/// Returns all tools, in the order in which they are listed.
pub(crate) fn all() -> Result<Vec<ToolDef>, SchemaFault> {
    let number = json!({"type": "number"});
    let echo = ToolDef::new(
        ECHO,
        "Echo",
        "Says the text back.",
        json!({
            "type": "object",
            "properties": {
                "text": {"type": "string", "maxLength": TEXT_CHARS_MAX, "description": "What is said back."}
            },
            "required": ["text"],
            "additionalProperties": false
        }),
    )?
    .with_output(json!({
        "type": "object",
        "properties": {"text": {"type": "string"}},
        "required": ["text"]
    }))?;
    let add = ToolDef::new(
        ADD,
        "Add",
        "Adds two numbers.",
        json!({
            "type": "object",
            "properties": {"a": number, "b": number},
            "required": ["a", "b"],
            "additionalProperties": false
        }),
    )?
    .with_output(json!({
        "type": "object",
        "properties": {"sum": number},
        "required": ["sum"]
    }))?;
    let wait = ToolDef::new(
        WAIT,
        "Wait",
        "Waits, and tells once a second how far it is. Can be cancelled.",
        json!({
            "type": "object",
            "properties": {
                "ms": {"type": "integer", "minimum": 0, "maximum": WAIT_MS_MAX, "default": 1000,
                       "description": "How long, in milliseconds."}
            },
            "additionalProperties": false
        }),
    )?
    .with_output(json!({
        "type": "object",
        "properties": {"waited_ms": {"type": "integer"}},
        "required": ["waited_ms"]
    }))?;
    Ok(vec![
        ToolDef {
            roles: &[("text", Role::Content)],
            ..echo
        },
        add,
        wait,
    ])
}
