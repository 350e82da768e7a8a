//! Waiting definitions beside the approved ones, field by field.

use std::io::Write;

use admin::pins::{self, DefinitionChange};
use mcp::descriptions::hidden::spelled_out;

use super::{DIFFERS, DONE, DiffArgs, Failure, short};
use crate::layout;
use crate::places::Places;

pub(super) fn run(args: &DiffArgs, places: &Places, out: &mut dyn Write) -> Result<u8, Failure> {
    let changed = pins::diff(&places.pins(), args.server.as_deref(), args.tool.as_deref())?;
    if args.json {
        layout::json(&changed, out)?;
    } else if changed.waiting.is_empty() {
        writeln!(out, "nothing waits")?;
    } else {
        for (at, change) in changed.waiting.iter().enumerate() {
            if at > 0 {
                writeln!(out)?;
            }
            print(change, out)?;
        }
    }
    Ok(match changed.waiting.is_empty() {
        true => DONE,
        false => DIFFERS,
    })
}

fn print(change: &DefinitionChange, out: &mut dyn Write) -> std::io::Result<()> {
    let (server, name) = (&change.server, spelled_out(&change.tool));
    let digest = |own: &Option<String>| own.as_deref().map_or("none", short).to_owned();
    let (approved, waiting) = (digest(&change.approved), digest(&change.waiting));
    writeln!(out, "--- {server}/{name}  approved {approved}")?;
    writeln!(out, "+++ {server}/{name}  waiting  {waiting}")?;
    for field in &change.changes {
        writeln!(out, "@@ {} @@", field.field)?;
        for (mark, line) in lines(field.old.as_deref(), field.new.as_deref()) {
            writeln!(out, "{mark}{line}")?;
        }
    }
    Ok(())
}

/// Lines with their mark: what is equal at both ends, what went, what came.
fn lines(old: Option<&str>, new: Option<&str>) -> Vec<(char, String)> {
    let split = |text: Option<&str>| -> Vec<String> {
        text.map(|t| t.split('\n').map(spelled_out).collect())
            .unwrap_or_default()
    };
    let (old, new) = (split(old), split(new));
    let head = old.iter().zip(&new).take_while(|(a, b)| a == b).count();
    let most = old.len().min(new.len()) - head;
    let tail = old
        .iter()
        .rev()
        .zip(new.iter().rev())
        .take(most)
        .take_while(|(a, b)| a == b)
        .count();
    let marked = |mark: char, lines: &[String], from: usize, to: usize| -> Vec<(char, String)> {
        let part = lines.get(from..to).unwrap_or_default();
        part.iter().map(|line| (mark, line.clone())).collect()
    };
    let mut out = marked(' ', &old, 0, head);
    out.extend(marked('-', &old, head, old.len() - tail));
    out.extend(marked('+', &new, head, new.len() - tail));
    out.extend(marked(' ', &old, old.len() - tail, old.len()));
    out
}

#[cfg(test)]
mod tests {
    use gate::pins::{Definition, Tool};

    use super::*;

    fn tool(approved: Option<&str>, waiting: &str) -> Tool {
        Tool {
            approved: approved.map(|text| Definition::new(text, 0)),
            waiting: Some(Definition::new(waiting, 0)),
        }
    }

    fn shown(approved: Option<&str>, waiting: &str) -> String {
        let mut out = Vec::new();
        let change = DefinitionChange::new("s", "t", &tool(approved, waiting));
        print(&change, &mut out).unwrap();
        let text = String::from_utf8(out).unwrap();
        text.lines().skip(2).collect::<Vec<_>>().join("\n")
    }

    #[test]
    fn differences_are_told_field_by_field() {
        let old = r#"{"description":"one\ntwo\nthree","inputSchema":{"enum":["a"]},"n":1}"#;
        let cases = [
            (
                r#"{"description":"one\n2\nthree","inputSchema":{"enum":["a"]},"n":1}"#,
                "@@ description @@\n one\n-two\n+2\n three",
            ),
            (
                r#"{"description":"one\ntwo\nthree","inputSchema":{"enum":["a","b"]},"n":1.0}"#,
                "@@ inputSchema.enum[1] @@\n+b\n@@ n @@\n-1\n+1.0",
            ),
            (
                r#"{"description":"one\ntwo\nth\u200bree","inputSchema":{},"n":1}"#,
                "@@ description @@\n one\n two\n-three\n+th\\u{200b}ree\n@@ inputSchema @@\n+{}\n@@ inputSchema.enum[0] @@\n-a",
            ),
        ];
        for (new, expect) in cases {
            assert_eq!(shown(Some(old), new), expect);
        }
        assert_eq!(
            shown(None, r#"{"name":"x\u001b[1m"}"#),
            "@@ name @@\n+x\\u{1b}[1m"
        );
    }

    #[test]
    fn equal_lines_at_both_ends_are_not_counted_twice() {
        let marks: String = lines(Some("a\na"), Some("a\na\na"))
            .iter()
            .map(|(m, _)| m)
            .collect();
        assert_eq!(marks, "  +");
        let marks: String = lines(Some("a"), None).iter().map(|(m, _)| m).collect();
        assert_eq!(marks, "-");
    }
}
