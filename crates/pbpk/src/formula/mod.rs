//! The formula language: text to a flat tree, the tree to a value or back to text.
//!
//! A [`FormulaBody`] is parsed once and shared by every object that uses the formula; what its aliases mean is
//! bound per user, elsewhere. It knows no model, no path and no unit.

mod body;
mod evaluate;
mod gradient;
mod lexer;
mod operation;
mod parser;
mod plan;
mod print;
mod regime;

pub use body::{Expr, FormulaBody, FormulaError};
pub use evaluate::{
    KnownExtent, OperationRule, apply_binary, apply_select, apply_unary, divide, multiply,
};
pub use gradient::{slope, slopes};
pub use operation::{BinaryOperation, UnaryOperation};
pub use regime::FormulaRegime;
