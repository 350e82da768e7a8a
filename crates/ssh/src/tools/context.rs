//! Where a call's commands run, and which variables they get.

use serde_json::{Map, Value, json};
use toolkit::server::{Args, Unfit};

use super::definitions::PATH_CHARS_MAX;
use crate::command::{Context, VALUE_CHARS_MAX};

/// What a call says of it.
pub(crate) fn context(args: Args<'_>) -> Result<Context, Unfit> {
    let cwd = args.get("cwd").and_then(Value::as_str);
    let none = Map::new();
    let env = args.get("env").and_then(Value::as_object).unwrap_or(&none);
    let env = env
        .iter()
        .map(|(name, value)| (name.clone(), value.as_str().unwrap_or_default().to_owned()));
    let member = if cwd.is_some_and(|cwd| Context::of(Some(cwd), []).is_err()) {
        "cwd"
    } else {
        "env"
    };
    Context::of(cwd, env).map_err(|fault| Unfit::member(member, fault.wrong))
}

/// The same in a schema, beside the members of a tool that runs commands.
pub(super) fn with_context(mut members: Value) -> Value {
    if let Some(members) = members.as_object_mut() {
        members.insert("cwd".into(), json!({
            "type": "string", "minLength": 1, "maxLength": PATH_CHARS_MAX,
            "description": "The directory that it runs in, as a whole path; relative paths in the command lie below it."
        }));
        members.insert("env".into(), json!({
            "type": "object", "additionalProperties": {"type": "string", "maxLength": VALUE_CHARS_MAX},
            "description": "Variables that it gets; only those that the operator lets callers set at the host."
        }));
    }
    members
}
