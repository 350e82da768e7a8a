//! The tools of a request.

use super::super::ask::{Choice, Tool};
use super::super::fields::{Fields, LeftOut, NO_COUNTERPART, Read, wrong};
use super::super::openai;

/// Reads a tool: those that the provider runs itself are known to no other dialect.
pub(super) fn read<'a>(at: String, raw: &'a str, left_out: &mut LeftOut) -> Read<Tool<'a>> {
    let mut own = Fields::of(at, raw)?;
    if own.need("type")? != "function" {
        return wrong(own.at("type"), NO_COUNTERPART);
    }
    own.neutral(&[("defer_loading", &["false"])])?;
    let tool = Tool {
        name: own.need("name")?,
        description: own.text("description")?,
        schema: own.take("parameters"),
        strict: own.flag("strict")?,
        cache_mark: None,
    };
    own.finish(left_out)?;
    Ok(tool)
}

/// Reads which tool is to be called.
pub(super) fn choice<'a>(own: &mut Fields<'a>) -> Read<Option<Choice<'a>>> {
    openai::choice(own, |named| named.need("name"))
}
