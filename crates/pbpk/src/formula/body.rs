//! A parsed formula: nodes in evaluation order, operands before their users, the root last.

use std::fmt;

use super::{Binary, Unary, parser};

/// One node; operands are positions of earlier nodes in the same body.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Expr {
    /// A number in the text.
    Number(f64),
    /// The quantity behind the alias of this position.
    Argument(u32),
    /// A function of one operand.
    Unary(Unary, u32),
    /// A function or operator of two operands.
    Binary(Binary, u32, u32),
    /// Condition, value where it is exactly 1, value elsewhere.
    Select(u32, u32, u32),
}

/// A parsed formula and the names of its arguments.
#[derive(Debug, Clone, PartialEq)]
pub struct Body {
    /// Operands before users; the last node is the value.
    pub nodes: Vec<Expr>,
    /// The aliases, by argument position.
    pub aliases: Vec<String>,
}

/// Why a text is no formula.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FormulaError {
    /// Nothing, or an operand missing, or a sign in the wrong place.
    Unexpected {
        /// What was met.
        found: String,
        /// Character position, from 1.
        column: usize,
    },
    /// A name that is neither alias nor constant.
    UnknownName {
        /// The name.
        name: String,
        /// Character position, from 1.
        column: usize,
    },
    /// A call of something that is no function.
    UnknownFunction {
        /// The name.
        name: String,
        /// Character position, from 1.
        column: usize,
    },
    /// A function with too few or too many operands.
    Operands {
        /// The function.
        name: String,
        /// How many it takes.
        wanted: usize,
        /// Character position, from 1.
        column: usize,
    },
    /// `RND` and `SRND`: a run must be repeatable.
    Random {
        /// Character position, from 1.
        column: usize,
    },
    /// More text, nodes or nesting than the bounds allow.
    TooLarge {
        /// What was counted.
        what: &'static str,
        /// The bound.
        limit: usize,
    },
}

impl fmt::Display for FormulaError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unexpected { found, column } => {
                write!(f, "unexpected {found} at column {column}")
            }
            Self::UnknownName { name, column } => {
                write!(f, "unknown name '{name}' at column {column}")
            }
            Self::UnknownFunction { name, column } => {
                write!(f, "unknown function '{name}' at column {column}")
            }
            Self::Operands {
                name,
                wanted,
                column,
            } => write!(
                f,
                "function '{name}' takes {wanted} operands, at column {column}"
            ),
            Self::Random { column } => write!(
                f,
                "random functions are refused because a run must be repeatable, at column {column}"
            ),
            Self::TooLarge { what, limit } => write!(f, "more than {limit} {what}"),
        }
    }
}

impl std::error::Error for FormulaError {}

impl Body {
    /// Longest text accepted, in bytes.
    pub const TEXT_BYTES_MAX: usize = 1 << 20;
    /// Deepest nesting of brackets, conditionals and signs accepted.
    pub const DEPTH_MAX: usize = 128;

    /// Parses `text` with these aliases (compared exactly, after white space became `_`).
    ///
    /// # Errors
    /// [`FormulaError`] with the place in the text.
    pub fn parse(text: &str, aliases: &[String]) -> Result<Self, FormulaError> {
        parser::parse(text, aliases)
    }

    /// A body that is one number.
    #[must_use]
    pub fn number(value: f64) -> Self {
        Self {
            nodes: vec![Expr::Number(value)],
            aliases: Vec::new(),
        }
    }

    /// The number, if the body is nothing else.
    #[must_use]
    pub fn as_number(&self) -> Option<f64> {
        match self.nodes.as_slice() {
            [Expr::Number(value)] => Some(*value),
            _ => None,
        }
    }

    /// This body times one more argument, which gets the name `alias` and the last position.
    #[must_use]
    pub fn times_argument(&self, alias: &str) -> Self {
        let mut product = self.clone();
        let root = to_u32(product.nodes.len().saturating_sub(1));
        let argument = to_u32(product.aliases.len());
        product.aliases.push(alias.to_owned());
        product.nodes.push(Expr::Argument(argument));
        product
            .nodes
            .push(Expr::Binary(Binary::Multiply, root, root.saturating_add(1)));
        product
    }
}

/// Positions fit: texts are bounded to [`Body::TEXT_BYTES_MAX`] bytes.
pub(super) fn to_u32(n: usize) -> u32 {
    u32::try_from(n).unwrap_or(u32::MAX)
}
