//! The tools that move files and look into directories: what they take, and what they answer.

use serde_json::{Value, json};
use toolkit::schema::SchemaFault;
use toolkit::server::{Answer, Args, ToolDef, Unfit};

use super::definitions::{PATH_CHARS_MAX, object, session};
use crate::edits::{Edit, Edited};
use crate::transfers::Moved;
use crate::upstream::Entry;

/// Most entries of a directory in one answer.
const ENTRIES_MAX: u64 = 10_000;
/// Most texts that one call replaces, and the longest of them, in characters.
const EDITS_MAX: usize = 64;
const EDIT_CHARS_MAX: usize = 65_536;
/// Longest `FOLDER/FILE`.
const LOCAL_CHARS_MAX: usize = 300;

/// What a call of one of these is about.
pub(crate) struct Asked<'a> {
    /// At the host.
    pub path: &'a str,
    /// Here; empty for a directory.
    pub local: &'a str,
}

impl<'a> Asked<'a> {
    pub fn read(args: Args<'a>) -> Result<Self, Unfit> {
        let path = args.text("path")?;
        if !path.starts_with('/') || path.chars().any(char::is_control) {
            let wrong = "must be a whole path, beginning with /, without control characters";
            return Err(Unfit::member("path", wrong));
        }
        let local = args.get("local").and_then(Value::as_str).unwrap_or("");
        Ok(Self { path, local })
    }
}

/// Returns the mode that a sent file gets, if the call names one; the schema has checked its form.
pub(crate) fn mode(args: Args<'_>) -> Option<u32> {
    let text = args.get("mode").and_then(Value::as_str)?;
    u32::from_str_radix(text, 8).ok()
}

/// What a call changes in a file.
pub(crate) fn edits(args: Args<'_>) -> Vec<Edit> {
    let listed = args.get("edits").and_then(Value::as_array);
    let text = |edit: &Value, name: &str| edit.get(name)?.as_str().map(str::to_owned);
    let edits = listed.into_iter().flatten().filter_map(|edit| {
        let (old, new) = (text(edit, "old_text")?, text(edit, "new_text")?);
        Some(Edit { old, new })
    });
    edits.collect()
}

/// The answer for a file that was changed.
pub(crate) fn of_edit(place: &str, edited: &Edited, ms: f64) -> Answer {
    let [before, after] = &edited.sha256;
    Answer::data(json!({
        "path": place, "bytes": edited.bytes, "sha256_before": before, "sha256": after, "duration_ms": ms,
    }))
}

fn edit() -> Result<ToolDef, SchemaFault> {
    let path = json!({"type": "string", "minLength": 1, "maxLength": PATH_CHARS_MAX, "description": "The whole path at the host."});
    let text = |what: &str, least: u32| json!({"type": "string", "minLength": least, "maxLength": EDIT_CHARS_MAX, "description": what});
    let edit = json!({
        "type": "object",
        "properties": {
            "old_text": text("Text that is in the file exactly once; with line ends as they are there.", 1),
            "new_text": text("What takes its place.", 0)
        },
        "required": ["old_text", "new_text"], "additionalProperties": false
    });
    let tool = ToolDef::new(
        "ssh_edit_file",
        "Change a file",
        "Replaces texts in a text file of the host, all or none of them. Whoever is asked sees the change line by line.",
        object(
            json!({
                "session_id": session(), "path": path,
                "edits": {"type": "array", "minItems": 1, "maxItems": EDITS_MAX, "items": edit},
                "timeout_ms": {"type": "integer", "minimum": 1, "maximum": 86_400_000}
            }),
            &["session_id", "path", "edits"],
        ),
    )?
    .with_output(json!({
        "type": "object",
        "properties": {
            "path": {"type": "string"}, "bytes": {"type": "integer"},
            "sha256_before": {"type": "string"}, "sha256": {"type": "string"}, "duration_ms": {"type": "number"}
        },
        "required": ["path", "bytes", "sha256_before", "sha256"]
    }))?;
    Ok(ToolDef {
        operation: gate::facts::Operation::Write,
        side_effects: &["fs_read", "fs_write"],
        idempotent: false,
        open_world: true,
        ..tool
    })
}

pub(super) fn definitions() -> Result<[ToolDef; 4], SchemaFault> {
    let path = |what: &str| json!({"type": "string", "minLength": 1, "maxLength": PATH_CHARS_MAX, "description": what});
    let local = json!({"type": "string", "minLength": 3, "maxLength": LOCAL_CHARS_MAX, "description": "FOLDER/FILE: a file of one of the operator's local folders."});
    let flag = |what: &str| json!({"type": "boolean", "default": false, "description": what});
    let timeout = json!({"type": "integer", "minimum": 1, "maximum": 86_400_000});
    let moved = json!({
        "type": "object",
        "properties": {
            "path": {"type": "string"}, "local": {"type": "string"}, "bytes": {"type": "integer"},
            "resumed_from": {"type": "integer"}, "sha256": {"type": "string"}, "duration_ms": {"type": "number"}
        },
        "required": ["path", "local", "bytes", "resumed_from", "sha256"]
    });
    let input = |resume: &str, mode: Option<Value>| {
        let mut properties = json!({
            "session_id": session(), "path": path("The whole path at the host."), "local": local,
            "overwrite": flag("Replace what is there."), "resume": flag(resume), "timeout_ms": timeout
        });
        if let (Some(properties), Some(mode)) = (properties.as_object_mut(), mode) {
            properties.insert("mode".into(), mode);
        }
        object(properties, &["session_id", "path", "local"])
    };
    let mode = json!({
        "type": "string", "pattern": "^0?[0-7]{3}$",
        "description": "The file's mode at the host, such as 0600. Without it, the mode of the file that is replaced; of a new file, the mode of the local one."
    });
    let get = ToolDef::new(
        "ssh_get",
        "Fetch a file",
        "Copies a file of the host into one of the operator's local folders, and gives its SHA-256.",
        input("Go on where an earlier transfer of this file was cut off.", None),
    )?
    .with_output(moved.clone())?;
    let put = ToolDef::new(
        "ssh_put",
        "Send a file",
        "Copies a file of one of the operator's local folders to the host, and gives the SHA-256 of what was sent.",
        input("Go on behind what is there, if that is the beginning of the file.", Some(mode)),
    )?
    .with_output(moved)?;
    let moves = |tool: ToolDef, operation| ToolDef {
        operation,
        side_effects: &["fs_read", "fs_write"],
        open_world: true,
        ..tool
    };
    Ok([
        moves(get, gate::facts::Operation::Read),
        ToolDef {
            idempotent: false,
            ..moves(put, gate::facts::Operation::Write)
        },
        list()?,
        edit()?,
    ])
}

fn list() -> Result<ToolDef, SchemaFault> {
    let path = json!({"type": "string", "minLength": 1, "maxLength": PATH_CHARS_MAX, "description": "The whole path at the host."});
    let list = ToolDef::new(
        "ssh_list_dir",
        "List a directory",
        "Lists a directory of the host: names, kinds, sizes, modes and times.",
        object(
            json!({
                "session_id": session(), "path": path,
                "limit": {"type": "integer", "minimum": 1, "maximum": ENTRIES_MAX, "default": 1000, "description": "Most entries."}
            }),
            &["session_id", "path"],
        ),
    )?
    .with_output(json!({
        "type": "object",
        "properties": {"path": {"type": "string"}, "entries": {"type": "array"}, "count": {"type": "integer"}, "truncated": {"type": "boolean"}},
        "required": ["path", "entries", "count", "truncated"]
    }))?;
    Ok(ToolDef {
        side_effects: &["fs_read"],
        open_world: true,
        ..list
    })
}

/// The answer for a transfer.
pub(crate) fn of_transfer(asked: &Asked<'_>, place: &str, moved: &Moved, ms: f64) -> Answer {
    Answer::data(json!({
        "path": place, "local": asked.local, "bytes": moved.bytes, "resumed_from": moved.resumed,
        "sha256": moved.sha256, "duration_ms": ms,
    }))
}

/// The answer for a directory.
pub(crate) fn of_directory(place: &str, mut entries: Vec<Entry>, is_all: bool) -> Answer {
    entries.sort_by(|a, b| a.name.cmp(&b.name));
    let entries: Vec<Value> = entries
        .iter()
        .map(|entry| {
            let told = entry.attributes;
            let mode = told.mode.map(|mode| format!("{:04o}", mode & 0o7777));
            json!({"name": entry.name, "kind": told.kind(), "bytes": told.bytes, "mode": mode, "modified": told.modified})
        })
        .collect();
    Answer::data(json!({
        "path": place, "count": entries.len(), "entries": entries, "truncated": !is_all,
    }))
}
