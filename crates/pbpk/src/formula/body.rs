//! A parsed formula: nodes in evaluation order, operands before their users, the root last.

use std::fmt;

use super::{BinaryOperation, UnaryOperation, parser, plan};

/// One node; operands are positions of earlier nodes in the same body.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Expr {
    /// A number in the text.
    Number(f64),
    /// The quantity behind the alias of this position.
    Argument(u32),
    /// A function of one operand.
    Unary(UnaryOperation, u32),
    /// A function or operator of two operands.
    Binary(BinaryOperation, u32, u32),
    /// Condition, value if it is exactly 1, value otherwise.
    Select(u32, u32, u32),
}

/// A parsed formula and the names of its arguments.
#[derive(Debug, Clone, PartialEq)]
pub struct FormulaBody {
    /// Operands before users; the last node is the value.
    pub nodes: Vec<Expr>,
    /// The aliases, by argument position.
    pub aliases: Vec<String>,
    /// The nodes with every product in the order of its evaluation.
    plan: Vec<Expr>,
    whole_product: Vec<bool>,
    /// Which arguments the nodes read.
    used: Vec<bool>,
}

/// Why a text is no formula.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FormulaError {
    /// Nothing, or an operand missing, or a sign in the wrong place.
    Unexpected {
        /// Unexpected text.
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
    /// An alias with the name of a constant, a function or a logical operator.
    ReservedAlias {
        /// The alias.
        name: String,
    },
    /// `RND` and `SRND`: a run must be repeatable.
    Random {
        /// Character position, from 1.
        column: usize,
    },
    /// More text, nodes or nesting than the bounds allow.
    TooLarge {
        /// Name of the bound.
        what: &'static str,
        /// The bound.
        limit: usize,
    },
}

impl FormulaError {
    /// Returns the same with another place.
    pub(super) fn at_column(mut self, column_of: impl Fn(usize) -> usize) -> Self {
        match &mut self {
            Self::Unexpected { column, .. }
            | Self::UnknownName { column, .. }
            | Self::UnknownFunction { column, .. }
            | Self::Operands { column, .. }
            | Self::Random { column } => *column = column_of(*column),
            Self::ReservedAlias { .. } | Self::TooLarge { .. } => {}
        }
        self
    }
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
            Self::ReservedAlias { name } => {
                write!(
                    f,
                    "the alias '{name}' is the name of a constant or function"
                )
            }
            Self::Random { column } => write!(
                f,
                "random functions are refused because a run must be repeatable, at column {column}"
            ),
            Self::TooLarge { what, limit } => write!(f, "more than {limit} {what}"),
        }
    }
}

impl std::error::Error for FormulaError {}

impl FormulaBody {
    /// Longest text accepted, in bytes.
    pub const TEXT_BYTES_MAX: usize = 1 << 20;
    /// Deepest nesting of brackets, conditionals and signs accepted.
    pub const DEPTH_MAX: usize = 128;

    /// Parses `text` with these aliases (compared exactly, after white space became `_`).
    ///
    /// # Errors
    /// [`FormulaError`] with the place in the text.
    pub fn parse(text: &str, aliases: &[String]) -> Result<Self, FormulaError> {
        Self::with_aliases(text, aliases.to_vec())
    }

    /// As [`FormulaBody::parse`], keeping the aliases.
    ///
    /// # Errors
    /// As [`FormulaBody::parse`].
    pub fn with_aliases(text: &str, aliases: Vec<String>) -> Result<Self, FormulaError> {
        parser::parse(text, aliases)
    }

    /// Returns a body of these nodes, operands before their users and each used once.
    pub(super) fn new(nodes: Vec<Expr>, aliases: Vec<String>) -> Self {
        let plan = plan::plan(&nodes);
        let whole_product = plan::whole_product(&plan);
        let mut used = vec![false; aliases.len()];
        for node in &nodes {
            if let Expr::Argument(i) = node
                && let Some(used) = used.get_mut(*i as usize)
            {
                *used = true;
            }
        }
        Self {
            used,
            nodes,
            aliases,
            plan,
            whole_product,
        }
    }

    /// Returns a body that is one number.
    #[must_use]
    pub fn number(value: f64) -> Self {
        Self::new(vec![Expr::Number(value)], Vec::new())
    }

    /// Returns the nodes as they are evaluated: like [`FormulaBody::nodes`], with every product in order.
    #[must_use]
    pub fn plan(&self) -> &[Expr] {
        &self.plan
    }

    /// Returns the number, if the body is nothing else.
    #[must_use]
    pub fn as_number(&self) -> Option<f64> {
        match self.nodes.as_slice() {
            [Expr::Number(value)] => Some(*value),
            _ => None,
        }
    }

    /// Returns whether a node of the plan is a product or quotient of a formula that is one product as a whole.
    #[must_use]
    pub fn is_whole_product(&self, node: usize) -> bool {
        self.whole_product.get(node) == Some(&true)
    }

    /// Returns whether the text uses the alias at this position.
    #[must_use]
    pub fn uses(&self, alias: usize) -> bool {
        self.used.get(alias) == Some(&true)
    }

    /// Returns whether the genuine parser takes this as a name: no sign of the language, no blank, no word of the
    /// language.
    #[must_use]
    pub fn is_plain_name(name: &str) -> bool {
        let forbidden = |c: char| c.is_whitespace() || "+-*\\/^.,<>=!()[]{}'\"?:&|;".contains(c);
        !name.is_empty() && !name.contains(forbidden) && !parser::is_reserved(name)
    }

    /// Returns this body compared with 1: true if the body is.
    #[must_use]
    pub fn equals_one(&self) -> Self {
        let mut nodes = self.nodes.clone();
        let root = to_u32(nodes.len().saturating_sub(1));
        nodes.push(Expr::Number(1.0));
        nodes.push(Expr::Binary(
            BinaryOperation::Equal,
            root,
            root.saturating_add(1),
        ));
        Self::new(nodes, self.aliases.clone())
    }

    /// This body with every comparison for which `wanted(left, right)` holds written as `left − right` against 0.
    #[must_use]
    pub fn with_differences(&self, wanted: impl Fn(&[Expr], u32, u32) -> bool) -> Self {
        let mut nodes: Vec<Expr> = Vec::with_capacity(self.nodes.len());
        let mut places: Vec<u32> = Vec::with_capacity(self.nodes.len());
        for node in &self.nodes {
            let at = |i: u32| places.get(i as usize).copied().unwrap_or_default();
            let moved = match *node {
                Expr::Number(_) | Expr::Argument(_) => *node,
                Expr::Unary(op, a) => Expr::Unary(op, at(a)),
                Expr::Binary(op, a, b) if op.is_comparison() && wanted(&self.nodes, a, b) => {
                    nodes.push(Expr::Binary(BinaryOperation::Subtract, at(a), at(b)));
                    nodes.push(Expr::Number(0.0));
                    let zero = to_u32(nodes.len() - 1);
                    Expr::Binary(op, zero.saturating_sub(1), zero)
                }
                Expr::Binary(op, a, b) => Expr::Binary(op, at(a), at(b)),
                Expr::Select(c, a, b) => Expr::Select(at(c), at(a), at(b)),
            };
            nodes.push(moved);
            places.push(to_u32(nodes.len() - 1));
        }
        Self::new(nodes, self.aliases.clone())
    }

    /// This body times one more argument, which gets the name `alias` and the last position.
    #[must_use]
    pub fn times_argument(&self, alias: &str) -> Self {
        let (mut nodes, mut aliases) = (self.nodes.clone(), self.aliases.clone());
        let root = to_u32(nodes.len().saturating_sub(1));
        let argument = to_u32(aliases.len());
        aliases.push(alias.to_owned());
        nodes.push(Expr::Argument(argument));
        nodes.push(Expr::Binary(
            BinaryOperation::Multiply,
            root,
            root.saturating_add(1),
        ));
        Self::new(nodes, aliases)
    }
}

/// Positions fit: texts are bounded to [`FormulaBody::TEXT_BYTES_MAX`] bytes.
pub(super) fn to_u32(n: usize) -> u32 {
    u32::try_from(n).unwrap_or(u32::MAX)
}
