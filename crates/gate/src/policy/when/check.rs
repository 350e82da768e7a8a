//! What is refused at load: names that nobody states, functions that are not there, and expressions
//! that could cost too much.

use cel::Program;
use cel::common::ast::{EntryExpr, Expr, IdedExpr as Node, LiteralValue};

use super::super::document::nearest;
use super::{
    BRACKETS_MAX, CHOICES_MAX, FUNCTIONS, LIST_MAX, MACROS, PATTERN_BYTES_MAX, PATTERNS_MAX,
    SIGNS_MAX, STEPS_MAX, WHEN_BYTES_MAX, WhenError,
};
use crate::facts::{FACTS, FactId, Kind};

/// Largest compiled pattern of `matches`, in bytes.
const PATTERN_COMPILED_BYTES_MAX: usize = 64 * 1024;

/// Looks at the text before the parser does, which calls itself for what is nested.
pub(super) fn text(text: &str) -> Result<(), WhenError> {
    let simpler = || Some("split it into several rules".to_owned());
    if text.trim().is_empty() {
        let hint = Some("write an expression, or leave when out".to_owned());
        return Err(WhenError::new(0, "when is blank", hint));
    }
    if text.len() > WHEN_BYTES_MAX {
        let message = format!("when is longer than {WHEN_BYTES_MAX} bytes");
        return Err(WhenError::new(0, message, simpler()));
    }
    // Counted wherever they stand, also in texts: a rule that nothing can fool.
    let nth = |most: usize, which: &dyn Fn(char) -> bool| {
        text.chars()
            .enumerate()
            .filter(|(_, c)| which(*c))
            .nth(most)
            .map(|(at, _)| at)
    };
    if let Some(at) = nth(BRACKETS_MAX, &|c| matches!(c, '(' | '[' | '{')) {
        let message = format!("when has more than {BRACKETS_MAX} brackets");
        return Err(WhenError::new(at, message, simpler()));
    }
    if let Some(at) = nth(CHOICES_MAX, &|c| c == '?') {
        let message = format!("when has more than {CHOICES_MAX} question marks");
        return Err(WhenError::new(at, message, simpler()));
    }
    let mut run = 0;
    for (at, c) in text.chars().enumerate() {
        run = match c {
            '!' | '-' => run + 1,
            c if c.is_whitespace() => run,
            _ => 0,
        };
        if run > SIGNS_MAX {
            let message = format!("when has more than {SIGNS_MAX} signs one behind the other");
            return Err(WhenError::new(at, message, None));
        }
    }
    Ok(())
}

/// Walks the expression.
pub(super) fn program(program: &Program) -> Result<(), WhenError> {
    let mut walk = Walk {
        program,
        loops: Vec::new(),
        steps: 0,
        patterns: 0,
    };
    walk.node(program.expression(), 1)
}

struct Walk<'p> {
    program: &'p Program,
    /// Names that loops bind.
    loops: Vec<String>,
    steps: u64,
    patterns: usize,
}

impl Walk<'_> {
    fn at(&self, node: &Node) -> usize {
        let source = self.program.source_info();
        let start = source.offset_for(node.id).map_or(0, |(start, _)| start);
        // The parser counts bytes.
        let before = usize::try_from(start)
            .ok()
            .and_then(|start| source.source.get(..start));
        before.map_or(0, |before| before.chars().count())
    }

    fn error(&self, node: &Node, message: impl Into<String>, hint: Option<String>) -> WhenError {
        WhenError::new(self.at(node), message, hint)
    }

    /// Checks a part that is evaluated `times` times.
    fn node(&mut self, node: &Node, times: u64) -> Result<(), WhenError> {
        match &node.expr {
            Expr::Unspecified | Expr::Literal(_) => Ok(()),
            Expr::Ident(name) => self.ident(node, name),
            Expr::Select(select) => self.node(&select.operand, times),
            Expr::Call(call) => {
                self.call(node, &call.func_name)?;
                if call.func_name == "matches" {
                    self.pattern(node, call.args.last(), times)?;
                }
                let parts = call.target.iter().map(AsRef::as_ref).chain(&call.args);
                self.nodes(parts, times)
            }
            Expr::List(list) => self.nodes(&list.elements, times),
            Expr::Map(map) => {
                for entry in &map.entries {
                    if let EntryExpr::MapEntry(entry) = &entry.expr {
                        self.node(&entry.key, times)?;
                        self.node(&entry.value, times)?;
                    }
                }
                Ok(())
            }
            Expr::Struct(made) => {
                let message = format!("unknown type \"{}\" in when", made.type_name);
                Err(self.error(node, message, None))
            }
            Expr::Comprehension(inner) => {
                self.node(&inner.iter_range, times)?;
                let Some(rounds) = length(&inner.iter_range) else {
                    let hint = format!(
                        "loop over a list that is written out, or over {}",
                        lists().join(" or ")
                    );
                    return Err(self.error(
                        node,
                        "nobody knows how long this loop in when is",
                        Some(hint),
                    ));
                };
                let times = times.saturating_mul(rounds.max(1));
                self.steps = self.steps.saturating_add(times);
                if self.steps > STEPS_MAX {
                    let message =
                        format!("the loops in when could take more than {STEPS_MAX} steps");
                    return Err(self.error(
                        node,
                        message,
                        Some("split it into several rules".into()),
                    ));
                }
                self.node(&inner.accu_init, times)?;
                let bound = self.loops.len();
                self.loops.push(inner.iter_var.clone());
                self.loops.extend(inner.iter_var2.clone());
                self.loops.push(inner.accu_var.clone());
                self.nodes([&inner.loop_cond, &inner.loop_step, &inner.result], times)?;
                self.loops.truncate(bound);
                Ok(())
            }
        }
    }

    fn nodes<'n>(
        &mut self,
        nodes: impl IntoIterator<Item = &'n Node>,
        times: u64,
    ) -> Result<(), WhenError> {
        nodes
            .into_iter()
            .try_for_each(|node| self.node(node, times))
    }

    fn ident(&self, node: &Node, name: &str) -> Result<(), WhenError> {
        if FactId::named(name).is_some() || self.loops.iter().any(|l| l == name) {
            return Ok(());
        }
        let known: Vec<&str> = FACTS.iter().map(|row| row.name).collect();
        Err(self.error(
            node,
            format!("unknown fact \"{name}\" in when"),
            Some(suggest(name, &known)),
        ))
    }

    fn call(&self, node: &Node, name: &str) -> Result<(), WhenError> {
        let operator = !name.starts_with(|c: char| c.is_ascii_alphabetic());
        if operator || FUNCTIONS.contains(&name) {
            return Ok(());
        }
        let known: Vec<&str> = FUNCTIONS.into_iter().chain(MACROS).collect();
        Err(self.error(
            node,
            format!("unknown function \"{name}\" in when"),
            Some(suggest(name, &known)),
        ))
    }

    /// A pattern is compiled each time it is used: it is written out, short, and outside of loops.
    fn pattern(
        &mut self,
        node: &Node,
        pattern: Option<&Node>,
        times: u64,
    ) -> Result<(), WhenError> {
        self.patterns += 1;
        let plainer = || Some("use startsWith, endsWith, contains or path_pattern".to_owned());
        let Some(Expr::Literal(LiteralValue::String(text))) = pattern.map(|p| &p.expr) else {
            return Err(self.error(
                node,
                "the pattern of matches has to be written out",
                plainer(),
            ));
        };
        if self.patterns > PATTERNS_MAX || times > LIST_MAX as u64 {
            let message = format!(
                "when uses matches more than {PATTERNS_MAX} times, or in a loop within a loop"
            );
            return Err(self.error(node, message, plainer()));
        }
        if text.len() > PATTERN_BYTES_MAX {
            let message =
                format!("the pattern of matches is longer than {PATTERN_BYTES_MAX} bytes");
            return Err(self.error(node, message, plainer()));
        }
        regex::RegexBuilder::new(text)
            .size_limit(PATTERN_COMPILED_BYTES_MAX)
            .build()
            .map(drop)
            .map_err(|error| {
                let said = error.to_string();
                let said = said.lines().last().unwrap_or_default().to_lowercase();
                self.error(node, format!("bad pattern of matches: {said}"), None)
            })
    }
}

/// Facts that are lists.
fn lists() -> Vec<&'static str> {
    let lists = FACTS.iter().filter(|row| row.kind == Kind::Texts);
    lists.map(|row| row.name).collect()
}

/// How many elements a loop's list has at most; `None` where nobody knows.
fn length(list: &Node) -> Option<u64> {
    match &list.expr {
        Expr::List(list) => u64::try_from(list.elements.len()).ok(),
        Expr::Ident(name) if lists().contains(&name.as_str()) => u64::try_from(LIST_MAX).ok(),
        Expr::Call(call) if call.func_name == "_+_" => {
            call.args.iter().map(length).sum::<Option<u64>>()
        }
        // `filter` and `map` give a list that is no longer than theirs.
        Expr::Comprehension(inner) if matches!(inner.accu_init.expr, Expr::List(_)) => {
            length(&inner.iter_range)
        }
        _ => None,
    }
}

fn suggest(word: &str, known: &[&str]) -> String {
    nearest(word, known).map_or_else(
        || format!("known are: {}", known.join(", ")),
        |near| format!("did you mean \"{near}\"?"),
    )
}
