//! Models to flat code.
//!
//! [`Structure`] is everything that does not depend on numbers: names, dependency graph, sparsity, code. It is built
//! once and shared by all individuals. [`Instance`] is one individual: a vector of folded numbers. Code is rebuilt only
//! if a formula that varies is replaced; each such variant is kept with the structure.
//!
//! The code knows no file format and no solver beyond the interface of [`crate::solve::OdeSystem`].

mod algebra;
mod dependencies;
mod derivative;
mod engine;
mod fold;
mod graph;
mod groups;
mod instance;
mod lower;
mod program;
mod refold;
mod structure;
mod tangent;
mod variant;

pub(crate) use dependencies::own_formula;
pub use engine::ModelEngine;
pub(crate) use fold::{FormulaFolder, TableReading, table};
pub use instance::{Instance, QuantityChanges};
pub use structure::{CompileError, Structure};
pub(crate) use tangent::TangentState;
pub(crate) use variant::{CompiledVariant, FormulaReplacement, Key, QuantityClass, StopCause};
