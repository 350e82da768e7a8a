//! What requests of OpenAI's two dialects have in common.

use super::ask::{Text, ToolChoice};
use super::fields::{NO_COUNTERPART, ObjectFields, Read, wrong};

/// Hints for the provider's own housekeeping.
pub(super) const HINTS: &[&str] = &[
    "prompt_cache_key",
    "prompt_cache_options",
    "prompt_cache_retention",
];

/// Reads which tool is to be called; `name` finds the name of a function in the object that asks for it.
pub(super) fn choice<'a>(
    own: &mut ObjectFields<'a>,
    name: impl FnOnce(&mut ObjectFields<'a>) -> Read<Text<'a>>,
) -> Read<Option<ToolChoice<'a>>> {
    let Some(raw) = own.take("tool_choice") else {
        return Ok(None);
    };
    match raw {
        "\"auto\"" => return Ok(Some(ToolChoice::Auto)),
        "\"required\"" => return Ok(Some(ToolChoice::Any)),
        "\"none\"" => return Ok(Some(ToolChoice::None)),
        _ => {}
    }
    let mut named = ObjectFields::of("tool_choice", raw)?;
    if named.need("type")? != "function" {
        return wrong("tool_choice.type", NO_COUNTERPART);
    }
    let name = name(&mut named)?;
    named.end()?;
    Ok(Some(ToolChoice::Tool(name)))
}
