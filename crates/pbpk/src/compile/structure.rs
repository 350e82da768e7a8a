//! What all individuals of a model share.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use super::dependencies::{self, DependencyGraph};
use super::variant::{CompiledVariant, Key, StopCause};
use crate::formula::Expr;
use crate::model::{AliasReference, BoundFormula, FormulaKind, Model, PointTable};
use crate::watch::{Interrupt, Watch};

/// Most variants kept; beyond it the oldest is forgotten and compiled again when needed.
const VARIANTS_MAX: usize = 64;

/// Why a model cannot be compiled.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CompileError {
    /// Quantities define each other.
    Cycle {
        /// Their paths.
        paths: Vec<String>,
    },
    /// An output position that the model does not have.
    NoSuchOutput {
        /// The position.
        position: usize,
    },
    /// The caller asked to stop.
    Interrupted {
        /// Who asked.
        cause: Interrupt,
    },
}

impl fmt::Display for CompileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Cycle { paths } => write!(f, "cyclic formulas: {}", paths.join(" -> ")),
            Self::Interrupted { cause } => write!(f, "{cause} while the model was compiled"),
            Self::NoSuchOutput { position } => write!(f, "no quantity at position {position}"),
        }
    }
}

impl std::error::Error for CompileError {}

/// Paths and base units of outputs.
#[derive(Debug, Clone)]
pub(crate) struct OutputTitles {
    pub(crate) paths: Arc<[String]>,
    pub(crate) units: Arc<[String]>,
}

/// A compiled model; shared, never changed.
#[derive(Debug)]
pub struct Structure {
    pub(crate) model: Arc<Model>,
    pub(crate) outputs: Vec<usize>,
    pub(crate) states: Vec<usize>,
    /// The graph of start values.
    pub(crate) start: DependencyGraph,
    pub(crate) base: Arc<CompiledVariant>,
    /// Quantities that depend on a state.
    pub(crate) on_state: Vec<bool>,
    /// Constants of the file.
    pub(crate) constants: Vec<bool>,
    /// Quantities that become code of their own when the user sets them: those with a formula that varies or that an
    /// event can make vary, and those on which logic in varying formulas depends.
    pub(crate) needs_code: Vec<bool>,
    /// Formulas of values, rates and assignments that compare the time with something: their values may jump there.
    pub(crate) time_comparisons: Vec<usize>,
    /// Addends of states before the comparison with 0: see `run::negative`.
    pub(crate) lifts: OnceLock<Vec<f64>>,
    /// Paths and base units of the outputs, which all results share.
    titles: OnceLock<OutputTitles>,
    variants: Mutex<HashMap<Key, Arc<CompiledVariant>>>,
}

impl Structure {
    /// Compiles a model for these output quantities.
    ///
    /// # Errors
    /// [`CompileError`].
    pub fn new(model: Arc<Model>, outputs: Vec<usize>) -> Result<Arc<Self>, CompileError> {
        Self::with_watch(model, outputs, &Watch::default())
    }

    /// As [`Structure::new`], asking `watch` now and then whether to go on.
    ///
    /// # Errors
    /// [`CompileError`].
    pub fn with_watch(
        model: Arc<Model>,
        outputs: Vec<usize>,
        watch: &Watch<'_>,
    ) -> Result<Arc<Self>, CompileError> {
        if let Some(&position) = outputs.iter().find(|q| **q >= model.quantities.len()) {
            return Err(CompileError::NoSuchOutput { position });
        }
        let states = model.states();
        let stopped = |stopped| match stopped {
            StopCause::Circle(circle) => CompileError::Cycle {
                paths: paths(&model, &circle),
            },
            StopCause::Interrupted(cause) => CompileError::Interrupted { cause },
        };
        let own = |q: usize| {
            model
                .quantities
                .get(q)
                .and_then(|q| dependencies::formula(q.source))
        };
        let start = DependencyGraph::new(&model, own, watch).map_err(stopped)?;
        let base = CompiledVariant::compile(&model, &states, &outputs, &Key::new(), watch);
        let base = Arc::new(base.map_err(stopped)?);
        let ask = || {
            watch
                .ask()
                .map_err(|cause| CompileError::Interrupted { cause })
        };
        ask()?;
        let targets = dependencies::targets(&model);
        let constants = dependencies::constants(&model, &start.order, &targets);
        ask()?;
        let needs_code = needs_code(&model, &start, &base, &targets);
        ask()?;
        let mut is_state = vec![false; model.quantities.len()];
        for &q in &states {
            if let Some(is_state) = is_state.get_mut(q) {
                *is_state = true;
            }
        }
        let state = |q: usize| is_state.get(q) == Some(&true);
        Ok(Arc::new(Self {
            on_state: base.dependencies.reach(is_state.len(), state),
            constants,
            needs_code,
            time_comparisons: time_comparisons(&model),
            model,
            outputs,
            states,
            start,
            base,
            lifts: OnceLock::new(),
            titles: OnceLock::new(),
            variants: Mutex::new(HashMap::new()),
        }))
    }

    /// Returns the model.
    #[must_use]
    pub fn model(&self) -> &Model {
        &self.model
    }

    /// Positions of the output quantities.
    #[must_use]
    pub fn outputs(&self) -> &[usize] {
        &self.outputs
    }

    /// Paths and base units of the outputs.
    pub(crate) fn titles(&self) -> &OutputTitles {
        self.titles.get_or_init(|| {
            let quantities = || {
                self.outputs
                    .iter()
                    .filter_map(|q| self.model.quantities.get(*q))
            };
            OutputTitles {
                paths: quantities().map(|q| q.path.clone()).collect(),
                units: quantities().map(|q| q.unit.clone()).collect(),
            }
        })
    }

    /// Positions of the states, in the solver's order.
    #[must_use]
    pub fn states(&self) -> &[usize] {
        &self.states
    }

    /// Structural entries of the Jacobian.
    #[must_use]
    pub fn jacobian_entries(&self) -> usize {
        self.base.pattern.nnz()
    }

    /// Instructions of the rates, of the Jacobian, of the outputs and of what is computed once per individual.
    #[must_use]
    pub fn instructions(&self) -> [usize; 4] {
        [
            self.base.rhs.len(),
            self.base.jacobian.len(),
            self.base.outputs.len(),
            self.base.prologue.len(),
        ]
    }

    /// Returns the variant with these replacements, compiled if it is new.
    pub(crate) fn variant(
        &self,
        key: &Key,
        watch: &Watch<'_>,
    ) -> Result<Arc<CompiledVariant>, StopCause> {
        if key.is_empty() {
            return Ok(Arc::clone(&self.base));
        }
        if let Some(known) = self
            .variants
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .get(key)
        {
            return Ok(Arc::clone(known));
        }
        let fresh = Arc::new(CompiledVariant::compile(
            &self.model,
            &self.states,
            &self.outputs,
            key,
            watch,
        )?);
        let mut variants = self.variants.lock().unwrap_or_else(PoisonError::into_inner);
        if variants.len() >= VARIANTS_MAX {
            variants.clear();
        }
        variants.insert(key.clone(), Arc::clone(&fresh));
        Ok(fresh)
    }

    /// Returns whether the code may read this table during a run: it does so from the start, or an event may make it
    /// so.
    pub(crate) fn may_read(&self, table: &Arc<PointTable>) -> bool {
        let mut assignments = self.model.events.iter().flat_map(|e| &e.assignments);
        assignments.any(|a| !a.as_value) || self.base.tables.iter().any(|t| Arc::ptr_eq(t, table))
    }

    /// Returns for each quantity whether a run may read it: states, outputs, what rates, events and tables use, and all
    /// that these depend on, for all replacements.
    pub(crate) fn read_by_runs(&self) -> Vec<bool> {
        let model = &*self.model;
        let assignments = || model.events.iter().flat_map(|e| &e.assignments);
        let rates = model.quantities.iter().flat_map(|q| &q.rhs);
        let formulas = rates
            .map(|term| term.formula)
            .chain(model.events.iter().map(|e| e.condition))
            .chain(assignments().map(|a| a.formula))
            .chain(self.time_comparisons.iter().copied())
            .filter_map(|f| model.formulas.get(f));
        let reads_table = |f: &&BoundFormula| {
            let kind = &f.kind;
            matches!(
                kind,
                FormulaKind::TableWithOffset { .. } | FormulaKind::TableWithArgument { .. }
            )
        };
        let tables = model.formulas.iter().filter(reads_table);
        let used = formulas.chain(tables).flat_map(BoundFormula::references);
        let used = used.filter_map(|r| match r {
            AliasReference::Time => None,
            AliasReference::Quantity(q) => Some(q),
        });
        let mut roots = self.states.clone();
        roots.extend(&self.outputs);
        roots.extend(used);
        roots.extend(assignments().map(|a| a.target));
        let mut read = vec![false; model.quantities.len()];
        for q in self.start.sources(&roots) {
            if let Some(read) = read.get_mut(q) {
                *read = true;
            }
        }
        read
    }

    /// Paths of quantities, for messages.
    pub(crate) fn paths(&self, positions: &[usize]) -> Vec<String> {
        paths(&self.model, positions)
    }
}

/// See [`Structure::time_comparisons`].
fn time_comparisons(model: &Model) -> Vec<usize> {
    let compares = |formula: &BoundFormula| match &formula.kind {
        FormulaKind::Explicit { body, arguments } => {
            let is_time = |i: u32| match body.nodes.get(i as usize) {
                Some(Expr::Argument(a)) => {
                    arguments.get(*a as usize) == Some(&AliasReference::Time)
                }
                _ => false,
            };
            body.nodes.iter().any(|node| match *node {
                Expr::Binary(op, a, b) => op.is_comparison() && (is_time(a) || is_time(b)),
                _ => false,
            })
        }
        _ => false,
    };
    let sources = model.quantities.iter();
    let sources = sources.filter_map(|q| dependencies::formula(q.source));
    let rates = model.quantities.iter().flat_map(|q| &q.rhs);
    let assignments = model.events.iter().flat_map(|e| &e.assignments);
    let used = sources
        .chain(rates.map(|term| term.formula))
        .chain(assignments.map(|a| a.formula));
    let mut found: Vec<usize> = used
        .filter(|f| model.formulas.get(*f).is_some_and(compares))
        .collect();
    found.sort_unstable();
    found.dedup();
    found
}

/// See [`Structure::needs_code`].
fn needs_code(
    model: &Model,
    start: &DependencyGraph,
    base: &CompiledVariant,
    targets: &[bool],
) -> Vec<bool> {
    let n = targets.len();
    let moved = base
        .dependencies
        .reach(n, |q| targets.get(q).copied().unwrap_or(false));
    let mut needs: Vec<bool> = (0..n)
        .map(|q| {
            let varies = base.classes.get(q) == Some(&super::QuantityClass::Varying);
            varies || moved.get(q) == Some(&true) && dependencies::own_formula(model, q).is_some()
        })
        .collect();
    for q in start.sources(&base.in_logic) {
        if let Some(needs) = needs.get_mut(q) {
            *needs = true;
        }
    }
    needs
}

fn paths(model: &Model, positions: &[usize]) -> Vec<String> {
    positions
        .iter()
        .filter_map(|q| model.quantities.get(*q))
        .map(|q| q.path.clone())
        .collect()
}
