//! What all individuals of a model share.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use super::dependencies::{self, Dependencies};
use super::variant::{Key, Variant};
use crate::model::Model;

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
}

impl fmt::Display for CompileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Cycle { paths } => write!(f, "cyclic formulas: {}", paths.join(" -> ")),
            Self::NoSuchOutput { position } => write!(f, "no quantity at position {position}"),
        }
    }
}

impl std::error::Error for CompileError {}

/// A compiled model; shared, never changed.
#[derive(Debug)]
pub struct Structure {
    pub(crate) model: Arc<Model>,
    pub(crate) outputs: Vec<usize>,
    pub(crate) states: Vec<usize>,
    /// The graph of start values.
    pub(crate) start: Dependencies,
    pub(crate) base: Arc<Variant>,
    variants: Mutex<HashMap<Key, Arc<Variant>>>,
}

impl Structure {
    /// Compiles a model for these output quantities.
    ///
    /// # Errors
    /// [`CompileError`].
    pub fn new(model: Arc<Model>, outputs: Vec<usize>) -> Result<Arc<Self>, CompileError> {
        if let Some(&position) = outputs.iter().find(|q| **q >= model.quantities.len()) {
            return Err(CompileError::NoSuchOutput { position });
        }
        let states = model.states();
        let circle = |circle: Vec<usize>| CompileError::Cycle {
            paths: paths(&model, &circle),
        };
        let own = |q: usize| {
            model
                .quantities
                .get(q)
                .and_then(|q| dependencies::formula(q.source))
        };
        let start = Dependencies::new(&model, own).map_err(circle)?;
        let base =
            Arc::new(Variant::compile(&model, &states, &outputs, &Key::new()).map_err(circle)?);
        Ok(Arc::new(Self {
            model,
            outputs,
            states,
            start,
            base,
            variants: Mutex::new(HashMap::new()),
        }))
    }

    /// The model.
    #[must_use]
    pub fn model(&self) -> &Model {
        &self.model
    }

    /// Positions of the output quantities.
    #[must_use]
    pub fn outputs(&self) -> &[usize] {
        &self.outputs
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

    /// The variant with these replacements, compiled if it is new.
    pub(crate) fn variant(&self, key: &Key) -> Result<Arc<Variant>, Vec<usize>> {
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
        let fresh = Arc::new(Variant::compile(
            &self.model,
            &self.states,
            &self.outputs,
            key,
        )?);
        let mut variants = self.variants.lock().unwrap_or_else(PoisonError::into_inner);
        if variants.len() >= VARIANTS_MAX {
            variants.clear();
        }
        variants.insert(key.clone(), Arc::clone(&fresh));
        Ok(fresh)
    }

    /// Paths of quantities, for messages.
    pub(crate) fn paths(&self, positions: &[usize]) -> Vec<String> {
        paths(&self.model, positions)
    }
}

fn paths(model: &Model, positions: &[usize]) -> Vec<String> {
    positions
        .iter()
        .filter_map(|q| model.quantities.get(*q))
        .map(|q| q.path.clone())
        .collect()
}
