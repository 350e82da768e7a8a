//! What requests of OpenAI's two dialects have in common.

use super::ask::{Choice, Text};
use super::fields::{Fields, NO_COUNTERPART, Read, wrong};

/// Hints for the provider's own housekeeping.
pub(super) const HINTS: &[&str] = &[
    "prompt_cache_key",
    "prompt_cache_options",
    "prompt_cache_retention",
];

/// Reads which tool is to be called; `name` finds the name of a function in the object that asks for it.
pub(super) fn choice<'a>(
    own: &mut Fields<'a>,
    name: impl FnOnce(&mut Fields<'a>) -> Read<Text<'a>>,
) -> Read<Option<Choice<'a>>> {
    let Some(raw) = own.take("tool_choice") else {
        return Ok(None);
    };
    match raw {
        "\"auto\"" => return Ok(Some(Choice::Auto)),
        "\"required\"" => return Ok(Some(Choice::Any)),
        "\"none\"" => return Ok(Some(Choice::None)),
        _ => {}
    }
    let mut named = Fields::of("tool_choice", raw)?;
    if named.need("type")? != "function" {
        return wrong("tool_choice.type", NO_COUNTERPART);
    }
    let name = name(&mut named)?;
    named.end()?;
    Ok(Some(Choice::Tool(name)))
}
