//! Pattern of the factors and the flat program that refills them.
#![expect(
    clippy::indexing_slicing,
    reason = "numeric kernel: every index comes from the checked pattern"
)]

use super::elimination::{EliminationList, FactorShape};
use super::order;
use super::steps::SubstitutionSteps;
use crate::solve::SparsityPattern;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::convert::Infallible;

/// The sparse elimination is worth while up to this part of the multiplications of a dense one, which runs through
/// memory in order.
const SPARSE_PART_MAX: usize = 5;
/// Below this dimension the elimination is always sparse.
const DENSE_STATES_MIN: usize = 64;

/// Everything about the factors that does not depend on numbers; can be shared by any number of
/// integrations of the same structure.
#[derive(Debug, Clone, PartialEq)]
pub struct SymbolicFactors {
    pub(super) n: usize,
    /// Whether the factors are so full that they are treated as a dense matrix: then only the places of the Jacobian
    /// are known here, in a matrix row by row.
    pub(super) dense: bool,
    /// `order[k]` = state eliminated as the `k`-th.
    pub(super) order: Vec<u32>,
    /// Row `i` of the factors is `row_ptr[i]..row_ptr[i + 1]`, columns ascending, all in elimination order.
    pub(super) row_ptr: Vec<u32>,
    /// Column of each entry.
    pub(super) cols: Vec<u32>,
    /// Place of the diagonal entry of each row.
    pub(super) diagonal: Vec<u32>,
    operations: usize,
    /// Place of each entry of the Jacobian pattern.
    pub(super) scatter: Vec<u32>,
    /// Forward substitution: entries below the diagonal, in an order that keeps dependent ones apart.
    pub(super) lower: Vec<SubstitutionEntry>,
    /// Back substitution: entries above the diagonal, likewise.
    pub(super) upper: Vec<SubstitutionEntry>,
    /// The places of these, in as few bits as they need.
    pub(super) steps: SubstitutionSteps,
    /// The elimination as a list, for short rows.
    pub(super) elimination: Option<EliminationList>,
}

/// One step of a substitution: `x[row] -= value · x[col]`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct SubstitutionEntry {
    pub(super) row: u32,
    pub(super) col: u32,
    /// Position of the value among the factors.
    pub(super) place: u32,
}

impl SymbolicFactors {
    /// Orders and analyses `I − γJ` for a Jacobian of the given (checked) pattern.
    #[must_use]
    pub fn analyse(pattern: &SparsityPattern) -> Self {
        let Ok(symbolic) = Self::analyse_asking(pattern, &mut || Ok::<(), Infallible>(()));
        symbolic
    }

    /// As [`SymbolicFactors::analyse`]; `ask` is called now and then.
    ///
    /// # Errors
    /// That of `ask`, which ends the work.
    pub fn analyse_asking<E>(
        pattern: &SparsityPattern,
        ask: &mut dyn FnMut() -> Result<(), E>,
    ) -> Result<Self, E> {
        let n = pattern.n();
        if n < DENSE_STATES_MIN {
            let order = order::minimum_markowitz(pattern);
            return Self::along(pattern, &order, ask);
        }
        let operations_max = dense_operations(n) / SPARSE_PART_MAX;
        let order = if pattern.nnz() > n * n / 4 {
            None
        } else {
            order::ordered(pattern, operations_max, ask)?
        };
        match order {
            Some(order) => Self::along(pattern, &order, ask),
            None => Ok(Self::full(pattern)),
        }
    }

    /// Returns a dense matrix in its own order.
    fn full(pattern: &SparsityPattern) -> Self {
        let n = pattern.n();
        let mut scatter = Vec::with_capacity(pattern.nnz());
        for (j, ends) in pattern.col_ptr.windows(2).enumerate() {
            let rows = &pattern.row_idx[ends[0]..ends[1]];
            scatter.extend(rows.iter().map(|&i| narrow(i * n + j)));
        }
        Self {
            n,
            dense: true,
            order: (0..n).map(narrow).collect(),
            row_ptr: Vec::new(),
            cols: Vec::new(),
            diagonal: (0..n).map(|i| narrow(i * n + i)).collect(),
            operations: dense_operations(n),
            scatter,
            lower: Vec::new(),
            upper: Vec::new(),
            steps: SubstitutionSteps::default(),
            elimination: None,
        }
    }

    /// Analyses along a given elimination order, a permutation of the states.
    #[must_use]
    pub fn with_order(pattern: &SparsityPattern, order: &[usize]) -> Self {
        let Ok(symbolic) = Self::along(pattern, order, &mut || Ok::<(), Infallible>(()));
        symbolic
    }

    fn along<E>(
        pattern: &SparsityPattern,
        order: &[usize],
        ask: &mut dyn FnMut() -> Result<(), E>,
    ) -> Result<Self, E> {
        let n = pattern.n();
        let mut place = vec![0; n];
        for (k, &state) in order.iter().enumerate() {
            place[state] = k;
        }
        let mut rows: Vec<Vec<usize>> = (0..n).map(|i| vec![i]).collect();
        for (j, ends) in pattern.col_ptr.windows(2).enumerate() {
            ask()?;
            for &i in &pattern.row_idx[ends[0]..ends[1]] {
                rows[place[i]].push(place[j]);
            }
        }
        let rows = fill(rows, ask)?;
        let mut symbolic = Self {
            n,
            dense: false,
            order: order.iter().map(|&k| narrow(k)).collect(),
            row_ptr: vec![0],
            cols: Vec::new(),
            diagonal: Vec::with_capacity(n),
            operations: 0,
            scatter: Vec::with_capacity(pattern.nnz()),
            lower: Vec::new(),
            upper: Vec::new(),
            steps: SubstitutionSteps::default(),
            elimination: None,
        };
        for (i, row) in rows.iter().enumerate() {
            let before = row.partition_point(|&j| j < i);
            symbolic.diagonal.push(narrow(symbolic.cols.len() + before));
            symbolic.cols.extend(row.iter().map(|&j| narrow(j)));
            symbolic.row_ptr.push(narrow(symbolic.cols.len()));
        }
        for (j, ends) in pattern.col_ptr.windows(2).enumerate() {
            ask()?;
            for &i in &pattern.row_idx[ends[0]..ends[1]] {
                let row = place[i];
                let within = rows[row].partition_point(|&c| c < place[j]);
                symbolic
                    .scatter
                    .push(symbolic.row_ptr[row] + narrow(within));
            }
        }
        symbolic.operations = operations(&rows);
        symbolic.substitutions(&rows, ask)?;
        symbolic.steps = SubstitutionSteps::new(&symbolic.order, &symbolic.lower, &symbolic.upper);
        symbolic.elimination = EliminationList::new(&FactorShape {
            rows: &rows,
            operations: symbolic.operations,
            row_ptr: &symbolic.row_ptr,
            scatter: &symbolic.scatter,
            lower: &symbolic.lower,
            upper: &symbolic.upper,
        });
        Ok(symbolic)
    }

    /// Lists the steps of both substitutions row by row, those of a row by the depth at which their source is known.
    /// Rows of as many steps are adjacent: short inner loops with hard-to-guess ends are avoided.
    fn substitutions<E>(
        &mut self,
        rows: &[Vec<usize>],
        ask: &mut dyn FnMut() -> Result<(), E>,
    ) -> Result<(), E> {
        let n = self.n;
        let mut depth = vec![0_usize; n];
        let mut lower = Vec::new();
        for (i, row) in rows.iter().enumerate() {
            ask()?;
            for (within, &j) in row.iter().enumerate().take_while(|(_, j)| **j < i) {
                depth[i] = depth[i].max(depth[j] + 1);
                lower.push((depth[j], j, i, within));
            }
        }
        depth.fill(0);
        let mut upper = Vec::new();
        for (i, row) in rows.iter().enumerate().rev() {
            ask()?;
            for (within, &j) in row.iter().enumerate().rev().take_while(|(_, j)| **j > i) {
                depth[i] = depth[i].max(depth[j] + 1);
                upper.push((depth[j], n - j, i, within));
            }
        }
        let entry = |row: usize, col: usize, within: usize, row_ptr: &[u32]| SubstitutionEntry {
            row: narrow(row),
            col: narrow(col),
            place: row_ptr[row] + narrow(within),
        };
        lower.sort_unstable();
        upper.sort_unstable();
        let lower = by_rows(&lower, |&(_, j, i, _)| (i, j), n, ask)?;
        let upper = by_rows(&upper, |&(_, j, i, _)| (i, n - j), n, ask)?;
        self.lower = lower
            .iter()
            .map(|&(_, j, i, w)| entry(i, j, w, &self.row_ptr))
            .collect();
        self.upper = upper
            .iter()
            .map(|&(_, j, i, w)| entry(i, n - j, w, &self.row_ptr))
            .collect();
        Ok(())
    }

    /// Entries of both factors together, the diagonal once.
    #[must_use]
    pub fn nnz(&self) -> usize {
        if self.dense {
            self.n * self.n
        } else {
            self.cols.len()
        }
    }

    /// Multiplications of one refactorisation, divisions aside.
    #[must_use]
    pub fn operations(&self) -> usize {
        self.operations
    }

    /// Elimination order: the `k`-th state eliminated.
    pub fn order(&self) -> impl Iterator<Item = usize> {
        self.order.iter().map(|&k| k as usize)
    }
}

/// Rows with more steps are in one group, of any length.
const STEPS_MAX: usize = 8;

/// Puts the steps of a row side by side, in the order in which they come, and the rows into groups of as many steps: of
/// the rows with known sources, always the most of one length, and those of it that become ready meanwhile. `place`
/// gives row and column of a step.
fn by_rows<T: Copy, E>(
    steps: &[T],
    place: impl Fn(&T) -> (usize, usize),
    n: usize,
    ask: &mut dyn FnMut() -> Result<(), E>,
) -> Result<Vec<T>, E> {
    let mut rows: Vec<Vec<T>> = vec![Vec::new(); n];
    let mut users: Vec<Vec<usize>> = vec![Vec::new(); n];
    for step in steps {
        let (row, col) = place(step);
        rows[row].push(*step);
        users[col].push(row);
    }
    let mut open: Vec<usize> = rows.iter().map(Vec::len).collect();
    let mut ready: [VecDeque<usize>; STEPS_MAX + 2] = Default::default();
    for (row, steps) in rows.iter().enumerate() {
        if steps.is_empty() {
            ready[0].push_back(row);
        }
    }
    let mut listed = Vec::with_capacity(steps.len());
    while let Some(kind) = (0..ready.len()).max_by_key(|k| ready[*k].len()) {
        if ready[kind].is_empty() {
            break;
        }
        while let Some(row) = ready[kind].pop_front() {
            ask()?;
            listed.extend_from_slice(&rows[row]);
            for &user in &users[row] {
                open[user] -= 1;
                if open[user] == 0 {
                    ready[rows[user].len().min(STEPS_MAX + 1)].push_back(user);
                }
            }
        }
    }
    Ok(listed)
}

/// Multiplications of a dense factorisation.
fn dense_operations(n: usize) -> usize {
    n.saturating_mul(n).saturating_mul(n) / 3
}

/// Multiplications along these rows of the factors.
fn operations(rows: &[Vec<usize>]) -> usize {
    let above: Vec<usize> = rows
        .iter()
        .enumerate()
        .map(|(i, row)| row.len() - row.partition_point(|&j| j <= i))
        .collect();
    let of_row = |(i, row): (usize, &Vec<usize>)| {
        let multipliers = row.iter().take_while(|&&j| j < i);
        multipliers.map(|&j| above[j]).sum::<usize>()
    };
    rows.iter().enumerate().map(of_row).sum()
}

/// Adds the fill-in: a row takes over the upper part of every pivot row it has a multiplier for.
fn fill<E>(
    rows: Vec<Vec<usize>>,
    ask: &mut dyn FnMut() -> Result<(), E>,
) -> Result<Vec<Vec<usize>>, E> {
    let mut done: Vec<Vec<usize>> = Vec::with_capacity(rows.len());
    let mut member = vec![usize::MAX; rows.len()];
    // Multipliers still to be followed, least column first.
    let mut open: BinaryHeap<Reverse<usize>> = BinaryHeap::new();
    for (i, row) in rows.into_iter().enumerate() {
        ask()?;
        let mut all = Vec::new();
        let mut add = |j: usize, open: &mut BinaryHeap<Reverse<usize>>| {
            if std::mem::replace(&mut member[j], i) != i {
                all.push(j);
                if j < i {
                    open.push(Reverse(j));
                }
            }
        };
        for j in row {
            add(j, &mut open);
        }
        while let Some(Reverse(k)) = open.pop() {
            let pivot: &[usize] = &done[k];
            for &j in &pivot[pivot.partition_point(|&j| j <= k)..] {
                add(j, &mut open);
            }
        }
        all.sort_unstable();
        done.push(all);
    }
    Ok(done)
}

/// Indices are kept in 32 bits: half the memory traffic of the solve loops.
#[expect(
    clippy::cast_possible_truncation,
    reason = "a factor with 2^32 entries would not fit in memory"
)]
pub(super) fn narrow(index: usize) -> u32 {
    index as u32
}
