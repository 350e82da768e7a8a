//! The internal model: what both file formats reduce to.
//!
//! Everything refers to everything else by position in the lists of [`Model`]; names matter only to people.
//! It holds no state of a run and no number that depends on another number: those are computed elsewhere.

mod event;
mod formula;
mod grid;
mod quantity;
mod settings;
mod table;

pub use event::{EventAssignment, ModelEvent};
pub use formula::{AliasReference, BoundFormula, FormulaKind};
pub use grid::{OutputGrid, OutputInterval, START, TimePrecision};
pub use quantity::{Quantity, QuantityKind, RhsTerm, ValueSource};
pub use settings::SolverSettings;
pub use table::PointTable;

/// Which kind of file a model was read from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ModelFormat {
    /// Exchange file of PK-Sim and MoBi, with its version.
    Pkml {
        /// 3 to 19.
        version: u32,
    },
    /// Input of the genuine solver; no version means older than 4.
    SimModel {
        /// As written.
        version: Option<u32>,
    },
}

/// A simulation, complete and bound: quantities, formulas, events, output times, solver settings.
#[derive(Debug, Clone, PartialEq)]
pub struct Model {
    /// The simulation's name.
    pub name: String,
    /// Format of its file.
    pub format: ModelFormat,
    /// Between the elements of a path: `|` or `/`.
    pub delimiter: char,
    /// All quantities, in file order.
    pub quantities: Vec<Quantity>,
    /// All formulas; a formula shared in a pkml file appears once per user, with a shared body.
    pub formulas: Vec<BoundFormula>,
    /// Events, in file order: the order in which they are tested.
    pub events: Vec<ModelEvent>,
    /// Output times, in minutes.
    pub grid: OutputGrid,
    /// Solver settings of the file.
    pub solver: SolverSettings,
    /// Paths that the file selects for output; empty: no selection was made.
    pub selections: Vec<String>,
    /// Decisions and omissions of the reader.
    pub warnings: Vec<String>,
}

impl Model {
    /// Returns the position of the quantity with exactly this full path.
    #[must_use]
    pub fn position(&self, path: &str) -> Option<usize> {
        self.quantities.iter().position(|q| q.path == path)
    }

    /// Positions of the quantities that are states: those with a rate, and variables that an event assigns.
    #[must_use]
    pub fn states(&self) -> Vec<usize> {
        let mut assigned = vec![false; self.quantities.len()];
        for target in self
            .events
            .iter()
            .flat_map(|e| &e.assignments)
            .map(|a| a.target)
        {
            if let Some(flag) = assigned.get_mut(target) {
                *flag = true;
            }
        }
        let is_state = |(i, q): &(usize, &Quantity)| {
            !q.rhs.is_empty()
                || (q.kind == QuantityKind::Variable && assigned.get(*i).copied().unwrap_or(false))
        };
        self.quantities
            .iter()
            .enumerate()
            .filter(is_state)
            .map(|(i, _)| i)
            .collect()
    }

    /// Positions of the quantities that are outputs by default.
    ///
    /// A file that marks nothing persistable outputs all variables and observers.
    #[must_use]
    pub fn outputs(&self) -> Vec<usize> {
        (0..self.quantities.len())
            .filter(|&i| self.quantities.get(i).is_some_and(|q| q.persistable))
            .collect()
    }
}
