//! What waits beside what was approved, field by field.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;

use gate::pins::{Definition, Tool};
use mcp::descriptions::hidden::spelled_out;
use mcp::descriptions::tree::Node;
use serde_json::{Value, json};

use super::{DIFFERS, DONE, DiffArgs, Failure, book, chosen, short};
use crate::places::Places;

/// One field that differs.
#[derive(Debug, PartialEq, Eq)]
struct Change {
    field: String,
    old: Option<String>,
    new: Option<String>,
}

pub(super) fn run(args: &DiffArgs, places: &Places, out: &mut dyn Write) -> Result<u8, Failure> {
    let mut told = Vec::new();
    for server in chosen(places, args.server.as_deref())? {
        let book = book(places, &server)?;
        if let Some(tool) = args.tool.as_ref().filter(|t| !book.tools.contains_key(*t)) {
            return Err(Failure::Said(format!(
                "{server} never listed a tool named \"{}\"; see durward pins list {server}",
                tool.escape_debug()
            )));
        }
        for (name, tool) in book.waiting() {
            if args.tool.as_ref().is_none_or(|wanted| wanted == name) {
                told.push((server.clone(), name.to_owned(), tool.clone()));
            }
        }
    }
    if args.json {
        let tools: Vec<Value> = told.iter().map(|(s, n, t)| object(s, n, t)).collect();
        writeln!(out, "{:#}", json!({ "waiting": tools }))?;
    } else if told.is_empty() {
        writeln!(out, "nothing waits")?;
    } else {
        for (at, (server, name, tool)) in told.iter().enumerate() {
            if at > 0 {
                writeln!(out)?;
            }
            print(server, name, tool, out)?;
        }
    }
    Ok(if told.is_empty() { DONE } else { DIFFERS })
}

fn print(server: &str, name: &str, tool: &Tool, out: &mut dyn Write) -> std::io::Result<()> {
    let name = spelled_out(name);
    let digest =
        |d: &Option<Definition>| d.as_ref().map_or("none", |d| short(&d.digest)).to_owned();
    writeln!(
        out,
        "--- {server}/{name}  approved {}",
        digest(&tool.approved)
    )?;
    writeln!(
        out,
        "+++ {server}/{name}  waiting  {}",
        digest(&tool.waiting)
    )?;
    for change in changes(tool) {
        writeln!(out, "@@ {} @@", change.field)?;
        for (mark, line) in lines(change.old.as_deref(), change.new.as_deref()) {
            writeln!(out, "{mark}{line}")?;
        }
    }
    Ok(())
}

fn object(server: &str, name: &str, tool: &Tool) -> Value {
    let changes: Vec<Value> = changes(tool)
        .into_iter()
        .map(|c| json!({"field": c.field, "old": c.old, "new": c.new}))
        .collect();
    let digest = |d: &Option<Definition>| d.as_ref().map(|d| d.digest.clone());
    json!({
        "server": server,
        "tool": name,
        "approved": digest(&tool.approved),
        "waiting": digest(&tool.waiting),
        "changes": changes,
    })
}

/// The fields that differ, by place.
fn changes(tool: &Tool) -> Vec<Change> {
    let fields = |definition: &Option<Definition>| {
        let mut out = BTreeMap::new();
        if let Some(node) = definition.as_ref().and_then(|d| Node::parse(&d.text)) {
            flatten(&node, String::new(), &mut out);
        }
        out
    };
    let (old, new) = (fields(&tool.approved), fields(&tool.waiting));
    let places: BTreeSet<&String> = old.keys().chain(new.keys()).collect();
    places
        .into_iter()
        .filter(|place| old.get(*place) != new.get(*place))
        .map(|place| Change {
            field: spelled_out(place),
            old: old.get(place).cloned(),
            new: new.get(place).cloned(),
        })
        .collect()
}

/// Every scalar by its place; empty objects and arrays too.
fn flatten(node: &Node<'_>, place: String, out: &mut BTreeMap<String, String>) {
    let below = |name: &str| {
        if place.is_empty() {
            name.to_owned()
        } else {
            format!("{place}.{name}")
        }
    };
    match node {
        Node::Object(members) if !members.is_empty() => {
            for (name, value) in members {
                flatten(value, below(name), out);
            }
        }
        Node::Array(elements) if !elements.is_empty() => {
            for (at, value) in elements.iter().enumerate() {
                flatten(value, format!("{place}[{at}]"), out);
            }
        }
        Node::Object(_) | Node::Array(_) | Node::Scalar(_) => {
            out.insert(place, node.canonical());
        }
        Node::String(text) => {
            out.insert(place, text.value().into_owned());
        }
    }
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
    use super::*;

    fn tool(approved: Option<&str>, waiting: &str) -> Tool {
        Tool {
            approved: approved.map(|text| Definition::new(text, 0)),
            waiting: Some(Definition::new(waiting, 0)),
        }
    }

    fn shown(approved: Option<&str>, waiting: &str) -> String {
        let mut out = Vec::new();
        print("s", "t", &tool(approved, waiting), &mut out).unwrap();
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
