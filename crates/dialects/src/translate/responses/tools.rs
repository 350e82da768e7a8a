//! The tools of a request.

use super::super::ask::{OfferedTool, ToolChoice};
use super::super::fields::{LeftOut, NO_COUNTERPART, ObjectFields, Read, wrong};
use super::super::openai;

/// Reads a tool: those that the provider runs itself are known to no other dialect.
pub(super) fn read<'a>(at: String, raw: &'a str, left_out: &mut LeftOut) -> Read<OfferedTool<'a>> {
    let mut own = ObjectFields::of(at, raw)?;
    if own.need("type")? != "function" {
        return wrong(own.at("type"), NO_COUNTERPART);
    }
    own.neutral(&[("defer_loading", &["false"])])?;
    let tool = OfferedTool {
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
pub(super) fn choice<'a>(own: &mut ObjectFields<'a>) -> Read<Option<ToolChoice<'a>>> {
    openai::choice(own, |named| named.need("name"))
}
