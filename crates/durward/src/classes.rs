//! Classes of a server's tools: proposed, shown on one screen, accepted or changed by a person, and declared under
//! `servers.NAME.tools` in durward.yaml. `init`, `wrap` and `pins approve` write them there, and every `durward run` of
//! that name reads them.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use gate::effects::OperationSet;
use mcp::describe::{ArgumentRoles, proposed};
use mcp::descriptions::hidden::spelled_out;
use serde_json::{Map, Value, json};
use state::directory;

use crate::config;
use crate::install;
use crate::places::Places;
use admin::document::{Format, at};

/// Most answers that are read.
const ANSWERS_MAX: usize = 20;
/// Most tools of one server that are proposed: more make no screen that a person reads.
const TOOLS_MAX: usize = 1_000;
/// The word for a tool that stays undeclared.
const UNKNOWN: &str = "unknown";

/// The next line of the person; absent at the end of the input.
pub type Lines<'a> = dyn FnMut() -> Option<io::Result<String>> + 'a;

/// Proposed classes of the tools of one server that are not declared yet.
#[derive(Debug, PartialEq, Eq)]
pub struct ToolClasses {
    server: String,
    tools: Vec<ToolClass>,
}

/// How classes were declared.
#[derive(Debug, PartialEq, Eq)]
pub enum Declared {
    /// No class is known.
    Nothing,
    /// In the file, with this backup of it as it was.
    In(Option<PathBuf>),
}

impl Declared {
    /// Prints what was written.
    pub fn print(&self, file: &Path, server: &str, out: &mut dyn Write) -> io::Result<()> {
        let Self::In(backup) = self else {
            return Ok(());
        };
        let shown = file.display();
        writeln!(out, "{shown}: declared what the tools of {server} do")?;
        match backup {
            Some(backup) => writeln!(out, "{}: backup of the file as it was", backup.display()),
            None => Ok(()),
        }
    }
}

#[derive(Debug, PartialEq, Eq)]
struct ToolClass {
    name: String,
    /// `None` leaves the tool unknown.
    operations: Option<OperationSet>,
}

impl ToolClasses {
    /// Proposes a class for each tool, given by name and definition, that is not declared for `server` yet.
    pub fn propose<'t>(
        server: &str,
        declared: Option<&ArgumentRoles>,
        tools: impl Iterator<Item = (&'t str, std::borrow::Cow<'t, str>)>,
    ) -> Self {
        let is_declared = |name: &str| declared.is_some_and(|own| own.declared(name).is_some());
        let tools = tools.filter(|(name, _)| !is_declared(name));
        let tools = tools.take(TOOLS_MAX).map(|(name, definition)| ToolClass {
            name: name.to_owned(),
            operations: proposed(name, &definition),
        });
        Self {
            server: server.to_owned(),
            tools: tools.collect(),
        }
    }

    /// Returns whether nothing is left to declare.
    pub fn is_empty(&self) -> bool {
        self.tools.is_empty()
    }

    /// Returns the classes as JSON, by tool; null for a tool that stays unknown.
    pub fn to_json(&self) -> Value {
        let classes = self.tools.iter().map(|tool| {
            let words = tool.operations.map(OperationSet::words);
            (tool.name.clone(), json!(words))
        });
        Value::Object(classes.collect::<Map<_, _>>())
    }

    /// Shows all classes and reads the person's answer. Returns whether they are accepted, with the changes that the
    /// answer made.
    ///
    /// # Errors
    /// A message if nothing can be read or written, or if no answer could be used.
    pub fn review(&mut self, lines: &mut Lines<'_>, out: &mut dyn Write) -> Result<bool, String> {
        self.print(out)
            .map_err(|error| format!("cannot write: {error}"))?;
        for _ in 0..ANSWERS_MAX {
            let asked = write!(
                out,
                "Declare these? [y/N], or with changes, as in \"2=write 5=read,send 7=unknown\": "
            );
            asked
                .and_then(|()| out.flush())
                .map_err(|error| format!("cannot write: {error}"))?;
            let line = match lines() {
                None => return Ok(false),
                Some(line) => line.map_err(|error| format!("cannot read the answer: {error}"))?,
            };
            match line.trim().to_ascii_lowercase().as_str() {
                "y" | "yes" => return Ok(true),
                "" | "n" | "no" => return Ok(false),
                changes => match self.change(changes) {
                    Ok(()) => return Ok(true),
                    Err(why) => {
                        writeln!(out, "  {why}")
                            .map_err(|error| format!("cannot write: {error}"))?;
                    }
                },
            }
        }
        Err("no valid answer was given; no class was declared".into())
    }

    fn print(&self, out: &mut dyn Write) -> io::Result<()> {
        writeln!(
            out,
            "\nWhat the tools of {} do, proposed by names, schemas and annotations:",
            self.server
        )?;
        let name = |tool: &ToolClass| spelled_out(&tool.name);
        let width = self.tools.iter().map(|tool| name(tool).chars().count());
        let width = width.max().unwrap_or_default();
        for (number, tool) in (1..).zip(&self.tools) {
            let words = tool.operations.map(OperationSet::words);
            let words = words.unwrap_or_else(|| format!("{UNKNOWN}: each call asks"));
            writeln!(out, "  {number:>3}  {:<width$}  {words}", name(tool))?;
        }
        Ok(())
    }

    /// Applies changes such as `2=write 5=read,send`: all of them, or none.
    fn change(&mut self, changes: &str) -> Result<(), String> {
        let mut parsed = Vec::new();
        for change in changes.split_whitespace() {
            let (number, class) = change
                .split_once('=')
                .ok_or_else(|| format!("\"{}\" is not NUMBER=CLASS", change.escape_debug()))?;
            let number: usize = number.parse().unwrap_or_default();
            let index = number.checked_sub(1).filter(|at| *at < self.tools.len());
            let index = index
                .ok_or_else(|| format!("{change}: numbers go from 1 to {}", self.tools.len()))?;
            let operations = match class {
                UNKNOWN => None,
                words => Some(OperationSet::parse(words).ok_or_else(|| {
                    let words = OperationSet::WORDS.join(", ");
                    format!(
                        "{}: a class is {UNKNOWN}, or one or several of {words} with commas between them",
                        change.escape_debug()
                    )
                })?),
            };
            parsed.push((index, operations));
        }
        for (index, operations) in parsed {
            if let Some(tool) = self.tools.get_mut(index) {
                tool.operations = operations;
            }
        }
        Ok(())
    }

    /// Writes the known classes into the configuration, keeping its comments. Makes the file if there is none.
    ///
    /// # Errors
    /// A message if the file cannot be edited; it is then unchanged.
    pub fn declare(&self, file: &Path, places: &Places) -> Result<Declared, String> {
        let shown = file.display();
        let wrong = |error: String| format!("{shown}: {error}");
        let before = install::read(file).map_err(|error| wrong(error.to_string()))?;
        let edited = self.edit(before.as_deref().unwrap_or_default());
        let edited = edited.map_err(wrong)?;
        if before.as_ref().is_none_or(|before| *before == edited) && self.is_unknown() {
            return Ok(Declared::Nothing);
        }
        config::check_text(&edited, file, places).map_err(wrong)?;
        if let (None, Some(folder)) = (&before, file.parent()) {
            directory::create_private(folder).map_err(|error| wrong(error.to_string()))?;
        }
        let backup = install::replace(file, before.as_deref(), &edited)?;
        Ok(Declared::In(backup))
    }

    /// Returns whether no tool has a class that can be declared.
    fn is_unknown(&self) -> bool {
        self.tools.iter().all(|tool| tool.operations.is_none())
    }

    /// Returns the text of a configuration with the known classes added.
    fn edit(&self, text: &str) -> Result<String, String> {
        let root = Format::Yaml
            .parse(text)
            .map_err(|error| error.to_string())?;
        let section = match root.get(config::SERVERS_ALIAS) {
            Some(_) => config::SERVERS_ALIAS,
            None => "servers",
        };
        let path = [section, self.server.as_str(), "tools"];
        let existing = at(&root, &path).and_then(Value::as_object).cloned();
        let mut classes = existing.unwrap_or_default();
        let declared = classes.len();
        for tool in &self.tools {
            if let Some(operations) = tool.operations {
                let words = json!(operations.words());
                classes.entry(tool.name.clone()).or_insert(words);
            }
        }
        if classes.len() == declared {
            return Ok(text.to_owned());
        }
        let edited = Format::Yaml.set(text, &path, &Value::Object(classes));
        edited.map_err(|error| error.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn classes(tools: &[(&str, Option<&str>)]) -> ToolClasses {
        ToolClasses {
            server: "files".into(),
            tools: tools
                .iter()
                .map(|(name, operations)| ToolClass {
                    name: (*name).into(),
                    operations: operations.map(|words| OperationSet::parse(words).unwrap()),
                })
                .collect(),
        }
    }

    fn review(classes: &mut ToolClasses, answers: &[&str]) -> (Result<bool, String>, String) {
        let mut answers = answers.iter().map(|answer| Ok((*answer).to_owned()));
        let mut out = Vec::new();
        let accepted = classes.review(&mut || answers.next(), &mut out);
        (accepted, String::from_utf8(out).unwrap())
    }

    #[test]
    fn a_person_accepts_changes_or_declines_on_one_screen() {
        let proposal = [("look", Some("read")), ("zap\u{1b}[2J", None)];
        let (accepted, screen) = review(&mut classes(&proposal), &["y"]);
        assert_eq!(accepted, Ok(true));
        assert!(screen.contains("    1  look"), "{screen}");
        assert!(screen.contains("unknown: each call asks"), "{screen}");
        assert!(!screen.contains('\u{1b}'), "{screen}");
        for answers in [&["n"][..], &[""], &[]] {
            assert_eq!(review(&mut classes(&proposal), answers).0, Ok(false));
        }
        let mut changed = classes(&proposal);
        let answers = ["2=wrote", "3=read", "0=read", "2", "1=unknown 2=write,send"];
        let (accepted, screen) = review(&mut changed, &answers);
        assert_eq!(accepted, Ok(true));
        assert_eq!(screen.matches("Declare these?").count(), answers.len());
        let expected = classes(&[("look", None), ("zap\u{1b}[2J", Some("write,send"))]);
        assert_eq!(changed, expected);
        let useless = vec!["x"; ANSWERS_MAX];
        assert!(review(&mut classes(&proposal), &useless).0.is_err());
    }

    #[test]
    fn comments_and_earlier_declarations_are_kept() {
        let text = "# mine\nservers:\n  files: # the files\n    command: cat\n    tools:\n      old: delete # sure\n  other: { command: cat }\n";
        let proposal = classes(&[
            ("look", Some("read")),
            ("old", Some("read")),
            ("zap", None),
            ("a: b", Some("write,send")),
        ]);
        let edited = proposal.edit(text).unwrap();
        for kept in ["# mine\n", "# the files", "other: { command: cat }"] {
            assert!(edited.contains(kept), "{edited}");
        }
        let root = Format::Yaml.parse(&edited).unwrap();
        let tools = at(&root, &["servers", "files", "tools"]).unwrap();
        assert_eq!(
            *tools,
            json!({"old": "delete", "look": "read", "a: b": "send, write"})
        );
        assert_eq!(classes(&[("zap", None)]).edit(text).unwrap(), text);
    }
}
