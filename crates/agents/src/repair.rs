//! Reads a tool call that a model wrote, and repairs usual mistakes once.
//!
//! A repair changes spelling only: words around the object, code fences, trailing commas, Python literals, line breaks
//! in strings, arguments as JSON text. It never adds a name or a value, and it never chooses between two readings: a
//! name that is given twice, or two objects, is a fault.

use std::borrow::Cow;

use wire::scan::{Bounds, Member, scan_request};

/// Deepest nesting of arguments.
const DEPTH_MAX: usize = 64;
/// Most members of a call.
const MEMBERS_MAX: usize = 4_096;

/// A call as it is judged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ParsedCall {
    /// Name of the tool, as the model wrote it.
    pub tool: String,
    /// Arguments: the text of one JSON object.
    pub arguments: String,
    /// The text was repaired.
    pub is_repaired: bool,
}

/// Why a text is not a call. Each is one sentence for the model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CallFault {
    /// Not JSON, also after repair.
    Syntax,
    /// A name is given twice in one object.
    DuplicateMember,
    /// No tool name, or two.
    NoTool,
    /// Arguments are not an object.
    Arguments,
    /// A member besides name and arguments.
    UnknownMember,
    /// The action has no end, or is too long.
    Incomplete,
}

impl CallFault {
    /// Returns what the model is to correct.
    #[must_use]
    pub fn advice(self) -> &'static str {
        match self {
            Self::Syntax => {
                "the call is not valid JSON; write one object {\"tool_name\": …, \"arguments\": {…}} and nothing else"
            }
            Self::DuplicateMember => "a member is given twice in one object; give each once",
            Self::NoTool => "the call needs exactly one \"tool_name\", a string",
            Self::Arguments => "\"arguments\" must be a JSON object",
            Self::UnknownMember => "a call has the members \"tool_name\" and \"arguments\" only",
            Self::Incomplete => "the call was cut off; write a shorter one",
        }
    }
}

/// Reads the body of an action.
///
/// # Errors
/// The fault that remains after repair.
pub fn parse_call(body: &str) -> Result<ParsedCall, CallFault> {
    let body = body.trim();
    match read_object(body) {
        Ok(members) => call_of(&members, false),
        Err(CallFault::Syntax) => {
            let repaired = repair_object(body).ok_or(CallFault::Syntax)?;
            call_of(&read_object(&repaired)?, true)
        }
        Err(fault) => Err(fault),
    }
}

/// Reads the arguments of a native call, and returns whether they were repaired. Empty text is an empty object.
///
/// # Errors
/// The fault that remains after repair.
pub fn parse_arguments(text: &str) -> Result<(String, bool), CallFault> {
    let text = text.trim();
    if text.is_empty() || text == "null" {
        return Ok(("{}".to_owned(), false));
    }
    match read_object(text) {
        Ok(_) => Ok((text.to_owned(), false)),
        Err(CallFault::Syntax) => {
            let repaired = repair_object(text).ok_or(CallFault::Syntax)?;
            read_object(&repaired)?;
            Ok((repaired, true))
        }
        Err(fault) => Err(fault),
    }
}

/// Reads one JSON object strictly: no name twice at any depth.
fn read_object(text: &str) -> Result<Vec<Member<'_>>, CallFault> {
    let bounds = Bounds {
        depth_max: DEPTH_MAX,
        members_max: MEMBERS_MAX,
    };
    if !text.starts_with('{') {
        return Err(CallFault::Syntax);
    }
    match scan_request(text.as_bytes(), &bounds) {
        Ok(scan) if scan.batch.is_none() => Ok(scan.members),
        Ok(_) => Err(CallFault::Syntax),
        Err(error) if error.kind == wire::WireErrorKind::DuplicateKey => {
            Err(CallFault::DuplicateMember)
        }
        Err(_) => Err(CallFault::Syntax),
    }
}

fn call_of(members: &[Member<'_>], is_repaired: bool) -> Result<ParsedCall, CallFault> {
    let mut tool: Option<String> = None;
    let mut arguments: Option<(String, bool)> = None;
    for (name, value) in members {
        match name.as_ref() {
            "tool_name" | "name" => {
                let text = string_of(value).filter(|text| !text.is_empty());
                let text = text.ok_or(CallFault::NoTool)?;
                if tool.replace(text.into_owned()).is_some() {
                    return Err(CallFault::NoTool);
                }
            }
            "arguments" => arguments = Some(arguments_of(value)?),
            _ => return Err(CallFault::UnknownMember),
        }
    }
    let (arguments, was_text) = arguments.unwrap_or_else(|| ("{}".to_owned(), false));
    Ok(ParsedCall {
        tool: tool.ok_or(CallFault::NoTool)?,
        arguments,
        is_repaired: is_repaired || was_text,
    })
}

fn arguments_of(value: &str) -> Result<(String, bool), CallFault> {
    if value.starts_with('{') {
        return Ok((value.to_owned(), false));
    }
    let text = string_of(value).ok_or(CallFault::Arguments)?;
    let text = text.trim();
    match read_object(text) {
        Ok(_) => Ok((text.to_owned(), true)),
        Err(CallFault::DuplicateMember) => Err(CallFault::DuplicateMember),
        Err(_) => Err(CallFault::Arguments),
    }
}

/// Returns the text of a JSON string.
fn string_of(value: &str) -> Option<Cow<'_, str>> {
    let inner = value.strip_prefix('"')?.strip_suffix('"')?;
    wire::text::unescape(inner)
}

/// Returns the only object of a text, rewritten as strict JSON. `None` for no object, two, or an open one.
fn repair_object(text: &str) -> Option<String> {
    let start = text.find('{')?;
    let (object, rest) = rewrite_object(text.get(start..)?)?;
    // A second object would be a choice.
    (!rest.contains('{')).then_some(object)
}

/// Rewrites the object at the begin of a text. Returns it and the text after it.
fn rewrite_object(text: &str) -> Option<(String, &str)> {
    let mut out = String::with_capacity(text.len() + 16);
    let mut open: Vec<char> = Vec::new();
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        match c {
            '"' | '\'' => {
                rest = rewrite_string(rest, c, &mut out)?;
                continue;
            }
            '{' | '[' => {
                if open.len() >= DEPTH_MAX {
                    return None;
                }
                open.push(c);
                out.push(c);
            }
            '}' | ']' => {
                let expected = if c == '}' { '{' } else { '[' };
                if open.pop() != Some(expected) {
                    return None;
                }
                drop_trailing_comma(&mut out);
                out.push(c);
                if open.is_empty() {
                    return Some((out, rest.get(1..).unwrap_or_default()));
                }
            }
            c if c.is_ascii_alphabetic() => {
                let end = rest
                    .find(|c: char| !c.is_ascii_alphanumeric() && c != '_')
                    .unwrap_or(rest.len());
                let (word, after) = rest.split_at_checked(end)?;
                out.push_str(match word {
                    "True" => "true",
                    "False" => "false",
                    "None" => "null",
                    word => word,
                });
                rest = after;
                continue;
            }
            c => out.push(c),
        }
        rest = rest.get(c.len_utf8()..)?;
    }
    None
}

fn drop_trailing_comma(out: &mut String) {
    let kept = out.trim_end();
    if let Some(before) = kept.strip_suffix(',') {
        out.truncate(before.len());
    }
}

/// Rewrites a string between quotes of either kind as a JSON string. Returns the text after it.
fn rewrite_string<'a>(text: &'a str, quote: char, out: &mut String) -> Option<&'a str> {
    let mut chars = text.char_indices().skip(1);
    out.push('"');
    while let Some((at, c)) = chars.next() {
        match c {
            '\\' => match chars.next()?.1 {
                '\'' => out.push('\''),
                escaped => {
                    out.push('\\');
                    out.push(escaped);
                }
            },
            c if c == quote => {
                out.push('"');
                return text.get(at + 1..);
            }
            '"' => out.push_str("\\\""),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            c => out.push(c),
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(body: &str) -> Result<(String, String, bool), CallFault> {
        parse_call(body).map(|call| (call.tool, call.arguments, call.is_repaired))
    }

    fn repaired(arguments: &str) -> Result<(String, String, bool), CallFault> {
        Ok(("a".to_owned(), arguments.to_owned(), true))
    }

    #[test]
    fn valid_arguments_stay_as_they_are_byte_for_byte() {
        let body = r#" {"tool_name":"a","arguments":{ "x" : "<b>\u003c&lt;</b>", "n":1e400 }} "#;
        let arguments = r#"{ "x" : "<b>\u003c&lt;</b>", "n":1e400 }"#;
        assert_eq!(call(body), Ok(("a".into(), arguments.into(), false)));
        assert_eq!(
            call(r#"{"name":"a"}"#),
            Ok(("a".into(), "{}".into(), false))
        );
    }

    #[test]
    fn usual_mistakes_are_repaired() {
        for (body, arguments) in [
            (
                "Here: ```json\n{\"tool_name\":\"a\",\"arguments\":{}}\n```",
                "{}",
            ),
            (
                "{\"tool_name\":\"a\",\"arguments\":{\"x\":[1,2,],},}",
                "{\"x\":[1,2]}",
            ),
            (
                "{'tool_name':'a','arguments':{'x':True,'y':None,'z':'say \"hi\"'}}",
                "{\"x\":true,\"y\":null,\"z\":\"say \\\"hi\\\"\"}",
            ),
            (
                "<tool_call>{\"name\":\"a\",\"arguments\":{}}</tool_call>",
                "{}",
            ),
            (
                "{\"name\":\"a\",\"arguments\":\"{\\\"x\\\":1}\"}",
                "{\"x\":1}",
            ),
            (
                "{\"name\":\"a\",\"arguments\":{\"x\":\"one\ntwo\"}}",
                "{\"x\":\"one\\ntwo\"}",
            ),
            (
                "It's this one: {\"name\":\"a\",\"arguments\":{\"x\":\"it's\"}}",
                "{\"x\":\"it's\"}",
            ),
        ] {
            assert_eq!(call(body), repaired(arguments), "{body}");
        }
    }

    #[test]
    fn a_repair_never_chooses() {
        for (body, fault) in [
            (
                r#"{"tool_name":"a","tool_name":"b","arguments":{}}"#,
                CallFault::DuplicateMember,
            ),
            (
                r#"{"tool_name":"a","arguments":{"x":1,"x":2}}"#,
                CallFault::DuplicateMember,
            ),
            (
                r#"Here {"tool_name":"a","tool_name":"b"}"#,
                CallFault::DuplicateMember,
            ),
            (r#"{"name":"a"} {"name":"b"}"#, CallFault::Syntax),
            (r#"{"name":"a","tool_name":"a"}"#, CallFault::NoTool),
            (r#"{"arguments":{}}"#, CallFault::NoTool),
            (r#"{"name":"","arguments":{}}"#, CallFault::NoTool),
            (r#"{"name":7}"#, CallFault::NoTool),
            (r#"{"name":"a","arguments":[1]}"#, CallFault::Arguments),
            (r#"{"name":"a","arguments":"text"}"#, CallFault::Arguments),
            (r#"{"name":"a","path":"x"}"#, CallFault::UnknownMember),
            (r#"{"name":"a","arguments":{"x":"open}}"#, CallFault::Syntax),
            (r#"{"name":"a""#, CallFault::Syntax),
            ("{name:\"a\"}", CallFault::Syntax),
            ("[{\"name\":\"a\"]", CallFault::Syntax),
            ("", CallFault::Syntax),
            ("none", CallFault::Syntax),
        ] {
            assert_eq!(call(body), Err(fault), "{body}");
        }
        let deep = format!(
            "{{\"name\":\"a\",\"arguments\":{}1{}}}",
            "{\"x\":".repeat(200),
            "}".repeat(200)
        );
        assert_eq!(call(&deep), Err(CallFault::Syntax));
    }

    #[test]
    fn arguments_of_native_calls_are_read_alike() {
        assert_eq!(parse_arguments(""), Ok(("{}".into(), false)));
        assert_eq!(
            parse_arguments("{\"x\": 1}"),
            Ok(("{\"x\": 1}".into(), false))
        );
        assert_eq!(
            parse_arguments("{\"x\": 1,}"),
            Ok(("{\"x\": 1}".into(), true))
        );
        assert_eq!(
            parse_arguments("{\"a\":1}{\"b\":2}"),
            Err(CallFault::Syntax)
        );
        assert_eq!(parse_arguments("[1]"), Err(CallFault::Syntax));
    }
}
