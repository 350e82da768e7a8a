//! Draws calls whose arguments are strings that a server makes lists and maps of.

use std::fmt::Write as _;
use std::path::Path;

use mocks::ambiguous::{AmbiguousFrame, SeededRandom};

/// The tools of all servers; each server has some of them.
const TOOLS: [&str; 10] = [
    "take_list",
    "take_texts",
    "take_map",
    "take_union",
    "take_model",
    "take_json",
    "take_yaml",
    "take_literal",
    "take_coerced",
    "take_lenient",
];
/// Characters that some parser ignores at the ends of a text.
const MARGINS: [&str; 12] = [
    "", "", "", " ", "\t", "\n", "\r\n", "\u{feff}", "\u{a0}", "\u{2028}", " \t ", "\u{c}",
];
/// Values that a strict reader of JSON refuses or reads otherwise; none names a path.
const ODD: [&str; 14] = [
    "NaN",
    "Infinity",
    "-Infinity",
    "1e999",
    "-0",
    "1E400",
    "123456789012345678901234567890",
    "0.1e-9999",
    "\"\\ud800\"",
    "\"\\udc00\\ud800\"",
    "\"\\u0000\"",
    "null",
    "true",
    "1.0",
];
/// Deepest nesting that is drawn; it is beyond the depth of most readers of JSON.
const DEPTH: usize = 200;

/// The folders that paths of the calls lead to.
pub struct Folders<'f> {
    /// What the policy allows.
    pub open: &'f Path,
    /// What it refuses: a folder, or a file that is protected.
    pub secret: &'f Path,
    /// Whether the refused place is one file.
    pub is_file: bool,
    /// The working directory of the server.
    pub cwd: &'f Path,
}

/// The syntax of a string.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Syntax {
    Json,
    Python,
    Yaml,
}

/// A value that a server makes of a string.
enum Part {
    Text(String),
    Raw(&'static str),
    List(Vec<Part>),
    Map(Vec<(String, Part)>),
}

/// An endless stream of calls; the same seed draws the same ones.
pub struct Coercions<'f> {
    random: SeededRandom,
    number: u64,
    folders: Folders<'f>,
    prefix: String,
}

impl<'f> Coercions<'f> {
    pub fn new(seed: u64, first: u64, folders: Folders<'f>) -> Self {
        Self {
            random: SeededRandom::new(seed),
            number: first,
            folders,
            prefix: String::new(),
        }
    }

    /// The same calls at the URL of several servers.
    pub fn of_server(self, name: &str) -> Self {
        let prefix = format!("{name}__");
        Self { prefix, ..self }
    }

    fn open(&mut self) -> String {
        let path = self.folders.open.join(format!("{}.txt", self.number));
        self.spelled(&path)
    }

    fn secret(&mut self) -> String {
        let path = match self.folders.is_file {
            true => self.folders.secret.to_owned(),
            false => self.folders.secret.join(format!("{}.txt", self.number)),
        };
        self.spelled(&path)
    }

    /// A path as it is, or relative to the server's directory.
    fn spelled(&mut self, path: &Path) -> String {
        let text = path.display().to_string();
        match self.random.below(8) {
            0 => {
                let up = "../".repeat(self.folders.cwd.components().count() - 1);
                format!("{up}{}", text.trim_start_matches('/'))
            }
            1 => text.replacen('/', "//", 1),
            2 => {
                let (folder, name) = text.rsplit_once('/').unwrap_or_default();
                format!("{folder}/x/../{name}")
            }
            _ => text,
        }
    }

    fn value(&mut self, tool: &str, depth: usize, is_plain: bool) -> Part {
        let is_secret = self.random.below(2) == 0;
        let mut texts = vec![Part::Text(self.open())];
        if is_secret {
            texts.push(Part::Text(self.secret()));
        }
        if self.random.coin() {
            texts.reverse();
        }
        if self.random.below(3) == 0 && tool != "take_texts" && !is_plain {
            let odd = self.random.of(&ODD);
            texts.push(Part::Raw(odd));
        }
        let inner = match depth {
            0 => self.shape(tool, texts),
            _ => (0..depth).fold(Part::List(texts), |inner, _| Part::List(vec![inner])),
        };
        match tool {
            "take_map" | "take_model" if matches!(inner, Part::List(_)) => {
                Part::Map(vec![("more".into(), inner)])
            }
            _ => inner,
        }
    }

    fn shape(&mut self, tool: &str, texts: Vec<Part>) -> Part {
        if tool == "take_texts" || tool == "take_coerced" {
            return Part::List(texts);
        }
        let is_map = match tool {
            "take_map" | "take_model" => true,
            "take_list" => false,
            _ => self.random.coin(),
        };
        match (is_map, self.random.below(3)) {
            (false, 0) => Part::List(vec![Part::List(texts)]),
            (false, 1) => Part::List(vec![Part::Map(vec![("x".into(), Part::List(texts))])]),
            (false, _) => Part::List(texts),
            (true, 0) if tool != "take_model" => {
                let name = |part: Part| match part {
                    Part::Text(text) => (text, Part::Raw("1")),
                    other => ("y".into(), other),
                };
                Part::Map(texts.into_iter().map(name).collect())
            }
            (true, 1) => {
                let names = ["path", "target", "content", "q"];
                let mut names = names.iter();
                let named = texts.into_iter().map(|part| {
                    let name = names.next().copied().unwrap_or("z");
                    (name.to_owned(), part)
                });
                Part::Map(vec![("below".into(), Part::Map(named.collect()))])
            }
            (true, _) => Part::Map(vec![("more".into(), Part::List(texts))]),
        }
    }

    /// Writes a value as some parser takes it.
    fn write(&mut self, part: &Part, syntax: Syntax, out: &mut String) {
        let space = |random: &mut SeededRandom, out: &mut String| match random.below(6) {
            0 => out.push(' '),
            1 if syntax != Syntax::Yaml => out.push_str("\n\t"),
            _ => {}
        };
        match part {
            Part::Text(text) => self.quoted(text, syntax, out),
            Part::Raw(raw) => out.push_str(match (syntax, *raw) {
                (Syntax::Json, raw) => raw,
                (_, "null") => "None",
                (_, "true") => "True",
                (_, "NaN" | "Infinity" | "-Infinity") => "1e999",
                (_, raw) => raw,
            }),
            Part::List(parts) => {
                let is_tuple = syntax == Syntax::Python && self.random.below(4) == 0;
                out.push(if is_tuple { '(' } else { '[' });
                for (at, part) in parts.iter().enumerate() {
                    if at > 0 {
                        out.push_str(if syntax == Syntax::Yaml { ", " } else { "," });
                    }
                    space(&mut self.random, out);
                    self.write(part, syntax, out);
                    space(&mut self.random, out);
                }
                if is_tuple {
                    out.push(',');
                }
                out.push(if is_tuple { ')' } else { ']' });
            }
            Part::Map(members) => {
                out.push('{');
                for (at, (name, part)) in members.iter().enumerate() {
                    if at > 0 {
                        out.push_str(", ");
                    }
                    space(&mut self.random, out);
                    self.quoted(name, syntax, out);
                    out.push_str(": ");
                    self.write(part, syntax, out);
                }
                space(&mut self.random, out);
                out.push('}');
            }
        }
    }

    fn quoted(&mut self, text: &str, syntax: Syntax, out: &mut String) {
        let quote = match syntax {
            Syntax::Json => '"',
            Syntax::Python if self.random.coin() => '"',
            Syntax::Python => '\'',
            Syntax::Yaml => match self.random.below(3) {
                0 if !text.is_empty() => return out.push_str(text),
                1 => {
                    // Single quotes of YAML have no escapes.
                    let _ = write!(out, "'{text}'");
                    return;
                }
                _ => '"',
            },
        };
        let escape_all = self.random.below(3) == 0;
        if syntax == Syntax::Python && self.random.below(6) == 0 {
            out.push_str(self.random.of(&["u", "U", ""]));
        }
        out.push(quote);
        for (at, c) in text.chars().enumerate() {
            if syntax == Syntax::Python && at > 0 && self.random.below(16) == 0 {
                // Strings beside one another are one.
                let _ = write!(out, "{quote} {quote}");
            }
            if syntax == Syntax::Yaml && at > 0 && self.random.below(24) == 0 {
                out.push_str("\\\n  ");
            }
            let code = u32::from(c);
            let is_escaped = c.is_ascii() && (c == '/' && escape_all || self.random.below(8) == 0);
            match (is_escaped, syntax, self.random.below(3)) {
                (false, ..) => out.push(c),
                (true, Syntax::Json, 0) if c == '/' => out.push_str("\\/"),
                (true, Syntax::Json, 1) => {
                    let _ = write!(out, "\\u{code:04X}");
                }
                (true, Syntax::Python, 0) => {
                    let _ = write!(out, "\\{code:03o}");
                }
                (true, Syntax::Python | Syntax::Yaml, 1) => {
                    let _ = write!(out, "\\x{code:02x}");
                }
                (true, ..) => {
                    let _ = write!(out, "\\u{code:04x}");
                }
            }
        }
        out.push(quote);
    }

    /// A YAML list or map of lines.
    fn block(&mut self, part: &Part, indent: usize, out: &mut String) {
        let pad = " ".repeat(indent);
        match part {
            Part::List(parts) => {
                for part in parts {
                    let _ = write!(out, "{pad}- ");
                    self.line(part, indent, out);
                }
            }
            Part::Map(members) => {
                for (name, part) in members {
                    out.push_str(&pad);
                    self.quoted(name, Syntax::Python, out);
                    out.push_str(": ");
                    self.line(part, indent, out);
                }
            }
            other => self.line(other, indent, out),
        }
    }

    fn line(&mut self, part: &Part, indent: usize, out: &mut String) {
        match part {
            Part::Text(text) if self.random.below(4) == 0 => {
                let style = self.random.of(&["|-", ">-", "|", ">"]);
                let _ = writeln!(out, "{style}\n{}  {text}", " ".repeat(indent));
            }
            Part::List(_) | Part::Map(_) if self.random.coin() => {
                out.push('\n');
                self.block(part, indent + 2, out);
            }
            part => {
                self.write(part, Syntax::Yaml, out);
                out.push('\n');
            }
        }
    }

    /// The string of an argument.
    fn text(&mut self, tool: &str) -> String {
        let depth = match self.random.below(12) {
            0 => DEPTH,
            1 => 12,
            _ => 0,
        };
        let value = self.value(tool, depth, false);
        let mut out = String::new();
        out.push_str(self.random.of(&MARGINS));
        match tool {
            "take_yaml" if self.random.coin() && depth == 0 => self.block(&value, 0, &mut out),
            "take_yaml" => self.write(&value, Syntax::Yaml, &mut out),
            "take_literal" => self.write(&value, Syntax::Python, &mut out),
            _ if self.random.below(10) == 0 => self.write(&value, Syntax::Python, &mut out),
            _ => self.write(&value, Syntax::Json, &mut out),
        }
        out.push_str(self.random.of(&MARGINS));
        out
    }
}

impl Iterator for Coercions<'_> {
    type Item = AmbiguousFrame;

    fn next(&mut self) -> Option<AmbiguousFrame> {
        let tool = TOOLS.get(usize::try_from(self.number).ok()? % TOOLS.len())?;
        let argument = self.random.of(&["paths", "items"]);
        // Some bring the value itself, which is what an allow rule takes.
        let text = match self.random.below(4) {
            0 => {
                let value = self.value(tool, 0, true);
                let mut plain = String::new();
                self.write(&value, Syntax::Json, &mut plain);
                // A frame is one line.
                plain.replace('\n', " ")
            }
            _ => serde_json::Value::from(self.text(tool)).to_string(),
        };
        let (number, prefix) = (self.number, &self.prefix);
        let frame = format!(
            r#"{{"jsonrpc":"2.0","id":{number},"method":"tools/call","params":{{"name":"{prefix}{tool}","arguments":{{"{argument}":{text}}}}}}}"#
        );
        self.number += 1;
        Some(AmbiguousFrame {
            number,
            form: tool,
            bytes: frame.into_bytes(),
        })
    }
}
