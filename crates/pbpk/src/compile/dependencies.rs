//! Which quantity needs which: the graph of one set of formulas, its order, and what a change touches.
#![expect(
    clippy::indexing_slicing,
    reason = "graph kernel: positions are quantities of one model"
)]

use super::variant::StopCause;
use crate::model::{AliasReference, Model, QuantityKind, ValueSource};
use crate::read::cycle;
use crate::watch::{Interrupt, Watch};

/// References of a formula that make a unit of work.
const REFERENCES_OF_A_UNIT: usize = 16;

/// Dependency graph over all quantities of a model.
#[derive(Debug, Clone, Default)]
pub(crate) struct DependencyGraph {
    /// Quantities with a formula, each after all it uses.
    pub(crate) order: Vec<u32>,
    /// Position of a quantity in the order of evaluation, for those with a formula.
    rank: Vec<u32>,
    user_start: Vec<u32>,
    users: Vec<u32>,
    used_start: Vec<u32>,
    used: Vec<u32>,
    /// Whether the formula reads the time itself.
    pub(crate) reads_time: Vec<bool>,
}

impl DependencyGraph {
    /// Returns the graph with `formula_of(q)` the formula that defines quantity q, if any.
    ///
    /// # Errors
    /// The quantities of a circle, or that of the watch.
    pub(crate) fn new(
        model: &Model,
        formula_of: impl Fn(usize) -> Option<usize>,
        watch: &Watch<'_>,
    ) -> Result<Self, StopCause> {
        let n = model.quantities.len();
        let mut reads_time = vec![false; n];
        let mut used_start = vec![0_u32; n + 1];
        let mut used = Vec::new();
        for q in 0..n {
            if let Some(formula) = formula_of(q).and_then(|f| model.formulas.get(f)) {
                for reference in formula.references() {
                    match reference {
                        AliasReference::Time => reads_time[q] = true,
                        AliasReference::Quantity(u) => used.push(u as u32),
                    }
                }
            }
            let references = used.len() - used_start[q] as usize;
            watch.work(1 + references / REFERENCES_OF_A_UNIT)?;
            used_start[q + 1] = used.len() as u32;
        }
        let of = |q: usize| &used[used_start[q] as usize..used_start[q + 1] as usize];
        let (user_start, users) = users(&used_start, &used, watch)?;
        // Repeatedly take what needs nothing more; in file order, so that the order is always the same.
        let mut open: Vec<u32> = (0..n).map(|q| of(q).len() as u32).collect();
        let mut ready: Vec<u32> = (0..n).filter(|&q| open[q] == 0).map(|q| q as u32).collect();
        let mut order = Vec::with_capacity(n);
        let mut at = 0;
        while let Some(&q) = ready.get(at) {
            at += 1;
            order.push(q);
            let own = user_start[q as usize]..user_start[q as usize + 1];
            watch.work(1 + own.len() / REFERENCES_OF_A_UNIT)?;
            for i in own {
                let user = users[i as usize] as usize;
                open[user] -= 1;
                if open[user] == 0 {
                    ready.push(user as u32);
                }
            }
        }
        if order.len() < n {
            let uses = |q: usize| of(q).iter().map(|u| *u as usize).collect();
            return Err(StopCause::Circle(cycle::of(n, uses, watch)?));
        }
        let mut rank = vec![0; n];
        for (r, &q) in order.iter().enumerate() {
            rank[q as usize] = r as u32;
        }
        order.retain(|&q| formula_of(q as usize).is_some());
        Ok(Self {
            order,
            rank,
            user_start,
            users,
            used_start,
            used,
            reads_time,
        })
    }

    /// Returns the quantities with a formula that uses q.
    pub(crate) fn users(&self, q: usize) -> &[u32] {
        &self.users[self.user_start[q] as usize..self.user_start[q + 1] as usize]
    }

    /// `roots` and all that they depend on.
    pub(crate) fn sources(&self, roots: &[usize]) -> Vec<usize> {
        let mut seen = vec![false; self.rank.len()];
        let mut found = Vec::new();
        let mut stack = roots.to_vec();
        while let Some(q) = stack.pop() {
            if std::mem::replace(&mut seen[q], true) {
                continue;
            }
            found.push(q);
            let used = self.used_start[q] as usize..self.used_start[q + 1] as usize;
            stack.extend(self.used[used].iter().map(|u| *u as usize));
        }
        found
    }

    /// Returns all quantities that depend on any of `changed`, without these, in order of evaluation.
    /// `passes(q)` says whether a change goes through q at all.
    pub(crate) fn dependents_of(
        &self,
        changed: &[usize],
        passes: impl Fn(usize) -> bool,
    ) -> Vec<u32> {
        let mut seen = vec![false; self.rank.len()];
        let mut touched = Vec::new();
        let mut stack: Vec<u32> = changed.iter().map(|q| *q as u32).collect();
        while let Some(q) = stack.pop() {
            for &user in self.users(q as usize) {
                if !seen[user as usize] && passes(user as usize) {
                    seen[user as usize] = true;
                    touched.push(user);
                    stack.push(user);
                }
            }
        }
        touched.sort_unstable_by_key(|q| self.rank[*q as usize]);
        touched
    }

    /// Marks every quantity that depends, directly or not, on one for which `seed` holds, seeds included.
    pub(crate) fn reach(&self, n: usize, seed: impl Fn(usize) -> bool) -> Vec<bool> {
        let mut reached: Vec<bool> = (0..n).map(seed).collect();
        let mut stack: Vec<u32> = (0..n).filter(|&q| reached[q]).map(|q| q as u32).collect();
        while let Some(q) = stack.pop() {
            for &user in self.users(q as usize) {
                if !reached[user as usize] {
                    reached[user as usize] = true;
                    stack.push(user);
                }
            }
        }
        reached
    }
}

/// Returns the users of each quantity, from the uses of each: offsets, and their list.
fn users(
    used_start: &[u32],
    used: &[u32],
    watch: &Watch<'_>,
) -> Result<(Vec<u32>, Vec<u32>), Interrupt> {
    let mut user_start = vec![0_u32; used_start.len()];
    for &u in used {
        user_start[u as usize + 1] += 1;
    }
    for i in 1..user_start.len() {
        user_start[i] += user_start[i - 1];
    }
    let mut fill = user_start.clone();
    let mut users = vec![0_u32; used.len()];
    for (q, ends) in used_start.windows(2).enumerate() {
        let own = &used[ends[0] as usize..ends[1] as usize];
        watch.work(1 + own.len() / REFERENCES_OF_A_UNIT)?;
        for &u in own {
            users[fill[u as usize] as usize] = q as u32;
            fill[u as usize] += 1;
        }
    }
    Ok((user_start, users))
}

/// Returns the formula that the file gives a quantity.
pub(crate) fn own_formula(model: &Model, q: usize) -> Option<usize> {
    model.quantities.get(q).and_then(|q| formula(q.source))
}

/// Which quantities are constants of the file: parameters and observers with a number or a formula of such alone,
/// unless `changed`. `order` holds those with a formula, each after what it uses.
pub(crate) fn constants(model: &Model, order: &[u32], changed: &[bool]) -> Vec<bool> {
    let may_be = |q: usize| {
        let quantity = &model.quantities[q];
        quantity.kind != QuantityKind::Variable && quantity.rhs.is_empty() && !changed[q]
    };
    let mut constant: Vec<bool> = (0..changed.len())
        .map(|q| may_be(q) && own_formula(model, q).is_none())
        .collect();
    for &q in order {
        let q = q as usize;
        if let Some(f) = own_formula(model, q) {
            constant[q] = may_be(q) && uses_only(model, f, &constant);
        }
    }
    constant
}

/// Returns whether a formula uses nothing but constants.
pub(crate) fn uses_only(model: &Model, f: usize, constant: &[bool]) -> bool {
    model.formulas[f].references().all(|r| match r {
        AliasReference::Time => false,
        AliasReference::Quantity(q) => constant[q],
    })
}

/// Which quantities an event changes.
pub(crate) fn targets(model: &Model) -> Vec<bool> {
    let mut target = vec![false; model.quantities.len()];
    for assignment in model.events.iter().flat_map(|e| &e.assignments) {
        target[assignment.target] = true;
    }
    target
}

/// Returns the formula of a source.
pub(crate) fn formula(source: ValueSource) -> Option<usize> {
    match source {
        ValueSource::Formula(f) => Some(f),
        ValueSource::Constant(_) => None,
    }
}
