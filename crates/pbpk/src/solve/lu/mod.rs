//! Sparse LU of `I − γJ`: ordered once, analysed once, refactored along a fixed flat program.
//!
//! Pivots stay on the diagonal. That is safe while `γ` is small enough for Newton's iteration to
//! converge; if it is not, the tiny pivot is seen and the matrix goes to a dense factorisation
//! with row exchanges instead.

mod dense;
mod elimination;
mod factors;
mod order;
mod steps;
mod symbolic;

pub use factors::{FactorError, LuFactors};
pub use order::minimum_markowitz;
pub use symbolic::SymbolicFactors;
