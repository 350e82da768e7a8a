//! `when`: a condition in CEL over the facts of a call.
//!
//! Checked at load: its length, its nesting, every name and function in it, and how much work one
//! evaluation can be. What touches an unknown fact, fails, or does not give a truth value is unknown,
//! which counts against the call.

mod check;
mod facts;
#[cfg(test)]
mod tests;

use std::sync::{Arc, LazyLock};

use cel::{Context, Env, Program, Value};

use super::seen::Seen;
use super::tri::Tri;
use crate::effect::Effect;

/// Longest expression, in bytes.
pub const WHEN_BYTES_MAX: usize = 1_024;
/// Most opening brackets in one: the parser calls itself for each that is open.
pub const BRACKETS_MAX: usize = 64;
/// Most choices (`? :`) in one.
pub const CHOICES_MAX: usize = 16;
/// Most signs (`!` or `-`) one behind the other.
pub const SIGNS_MAX: usize = 8;
/// Most steps that the loops of one evaluation take, all together.
pub const STEPS_MAX: u64 = 8_192;
/// Most elements of a list of facts; of a call that has more, the list is unknown.
pub const LIST_MAX: usize = 64;
/// Longest pattern of `matches`, in bytes, and most of them in one expression: each is compiled when
/// it is used.
pub const PATTERN_BYTES_MAX: usize = 128;
/// See [`PATTERN_BYTES_MAX`].
pub const PATTERNS_MAX: usize = 4;

/// The functions that an expression may call.
pub const FUNCTIONS: [&str; 11] = [
    "contains",
    "startsWith",
    "endsWith",
    "matches",
    "size",
    "string",
    "int",
    "uint",
    "double",
    "bool",
    "type",
];

/// The functions that loop over a list. They are part of the language.
pub const MACROS: [&str; 5] = ["all", "exists", "exists_one", "filter", "map"];

static LANGUAGE: LazyLock<Arc<Env>> =
    LazyLock::new(|| Arc::new(Env::default().with_optional_support(false).with_stdlib()));
static PARSER: LazyLock<Env> = LazyLock::new(|| Env::stdlib().with_optional_support(false));

/// An expression, ready to be evaluated.
#[derive(Debug)]
pub struct When {
    text: String,
    program: Program,
}

/// An expression that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct WhenError {
    /// Where, in characters from its beginning.
    pub at: usize,
    /// Lowercase sentence.
    pub message: String,
    /// What to do about it.
    pub hint: Option<String>,
}

impl WhenError {
    fn new(at: usize, message: impl Into<String>, hint: Option<String>) -> Self {
        Self {
            at,
            message: message.into(),
            hint,
        }
    }
}

impl When {
    /// Compiles an expression.
    pub(super) fn compile(text: &str) -> Result<Self, WhenError> {
        check::text(text)?;
        let program = PARSER.compile(text).map_err(|errors| {
            let first = errors.errors.first();
            let at = first.map_or(0, |error| offset(text, error.pos));
            let said = first.map_or("it cannot be read", |error| error.msg.as_str());
            let said: String = said
                .lines()
                .next()
                .unwrap_or_default()
                .chars()
                .take(160)
                .collect();
            let hint =
                "it is written in CEL, as in: path.startsWith(\"/tmp/\") && operation == \"read\"";
            WhenError::new(at, format!("bad when: {said}"), Some(hint.into()))
        })?;
        check::program(&program)?;
        Ok(Self {
            text: text.to_owned(),
            program,
        })
    }

    /// The expression as written.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Whether it holds. `effect` is that of its rule: an allow rule does not look into contents.
    pub(super) fn holds(&self, seen: &Seen<'_>, effect: Effect) -> Tri {
        let known = facts::Stated { seen, effect };
        let mut context = Context::with_env(Arc::clone(&LANGUAGE));
        context.set_variable_resolver(&known);
        match self.program.execute(&context) {
            Ok(Value::Bool(holds)) => holds.into(),
            Ok(_) | Err(_) => Tri::Unknown,
        }
    }
}

/// Characters before a place that is given as a line from 1 and a column from 1.
fn offset(text: &str, (line, column): (isize, isize)) -> usize {
    let lines = usize::try_from(line).unwrap_or(1).max(1) - 1;
    let before: usize = text
        .split_inclusive('\n')
        .take(lines)
        .map(|line| line.chars().count())
        .sum();
    let column = usize::try_from(column).unwrap_or(1).max(1) - 1;
    (before + column).min(text.chars().count())
}
