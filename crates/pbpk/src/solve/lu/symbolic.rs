//! Pattern of the factors and the flat program that refills them.
#![expect(
    clippy::indexing_slicing,
    reason = "numeric kernel: every index comes from the checked pattern"
)]

use super::order::minimum_markowitz;
use crate::solve::Pattern;

/// Multiplications of one factorisation beyond which no flat program is made and the dense
/// factorisation is used throughout.
const PROGRAM_OPS_MAX: usize = 8_000_000;

/// Everything about the factors that does not depend on numbers; can be shared by any number of
/// integrations of the same structure.
#[derive(Debug, Clone, PartialEq)]
pub struct Symbolic {
    pub(super) n: usize,
    /// Whether the factors are too full for a flat program.
    pub(super) dense: bool,
    /// `order[k]` = state eliminated as the `k`-th.
    pub(super) order: Vec<u32>,
    /// Row `i` of the factors is `row_ptr[i]..row_ptr[i + 1]`, columns ascending, all in elimination order.
    pub(super) row_ptr: Vec<u32>,
    /// Column of each entry.
    pub(super) cols: Vec<u32>,
    /// Place of the diagonal entry of each row.
    pub(super) diagonal: Vec<u32>,
    /// For each multiplier in turn, the places (within its row) its pivot row is subtracted from.
    pub(super) targets: Vec<u32>,
    /// Place of each entry of the Jacobian pattern.
    pub(super) scatter: Vec<u32>,
    /// Forward substitution: entries below the diagonal, in an order that keeps dependent ones apart.
    pub(super) lower: Vec<Entry>,
    /// Back substitution: entries above the diagonal, likewise.
    pub(super) upper: Vec<Entry>,
}

/// One step of a substitution: `x[row] -= value · x[col]`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Entry {
    pub(super) row: u32,
    pub(super) col: u32,
    /// Where the value lies among the factors.
    pub(super) place: u32,
}

impl Symbolic {
    /// Orders and analyses `I − γJ` for a Jacobian of the given (checked) pattern.
    #[must_use]
    pub fn analyse(pattern: &Pattern) -> Self {
        let order = minimum_markowitz(pattern);
        Self::with_order(pattern, &order)
    }

    /// Analyses along a given elimination order, a permutation of the states.
    #[must_use]
    pub fn with_order(pattern: &Pattern, order: &[usize]) -> Self {
        let n = pattern.n();
        let mut place = vec![0; n];
        for (k, &state) in order.iter().enumerate() {
            place[state] = k;
        }
        let mut rows: Vec<Vec<usize>> = (0..n).map(|i| vec![i]).collect();
        for (j, ends) in pattern.col_ptr.windows(2).enumerate() {
            for &i in &pattern.row_idx[ends[0]..ends[1]] {
                rows[place[i]].push(place[j]);
            }
        }
        let rows = fill(rows);
        let mut symbolic = Self {
            n,
            dense: false,
            order: order.iter().map(|&k| narrow(k)).collect(),
            row_ptr: vec![0],
            cols: Vec::new(),
            diagonal: Vec::with_capacity(n),
            targets: Vec::new(),
            scatter: Vec::with_capacity(pattern.nnz()),
            lower: Vec::new(),
            upper: Vec::new(),
        };
        for (i, row) in rows.iter().enumerate() {
            let before = row.partition_point(|&j| j < i);
            symbolic.diagonal.push(narrow(symbolic.cols.len() + before));
            symbolic.cols.extend(row.iter().map(|&j| narrow(j)));
            symbolic.row_ptr.push(narrow(symbolic.cols.len()));
        }
        for (j, ends) in pattern.col_ptr.windows(2).enumerate() {
            for &i in &pattern.row_idx[ends[0]..ends[1]] {
                let row = place[i];
                let within = rows[row].partition_point(|&c| c < place[j]);
                symbolic
                    .scatter
                    .push(symbolic.row_ptr[row] + narrow(within));
            }
        }
        symbolic.dense = !symbolic.program(&rows);
        symbolic.substitutions(&rows);
        symbolic
    }

    /// Lists the steps of both substitutions by the depth at which their source is known. Steps of one
    /// depth do not wait for each other, and short inner loops with hard-to-guess ends are avoided.
    fn substitutions(&mut self, rows: &[Vec<usize>]) {
        let mut depth = vec![0_usize; self.n];
        let mut lower = Vec::new();
        for (i, row) in rows.iter().enumerate() {
            for (within, &j) in row.iter().enumerate().take_while(|(_, j)| **j < i) {
                depth[i] = depth[i].max(depth[j] + 1);
                lower.push((depth[j], j, i, within));
            }
        }
        depth.fill(0);
        let mut upper = Vec::new();
        for (i, row) in rows.iter().enumerate().rev() {
            for (within, &j) in row.iter().enumerate().rev().take_while(|(_, j)| **j > i) {
                depth[i] = depth[i].max(depth[j] + 1);
                upper.push((depth[j], self.n - j, i, within));
            }
        }
        let n = self.n;
        let entry = |row: usize, col: usize, within: usize, row_ptr: &[u32]| Entry {
            row: narrow(row),
            col: narrow(col),
            place: row_ptr[row] + narrow(within),
        };
        lower.sort_unstable();
        upper.sort_unstable();
        self.lower = lower
            .iter()
            .map(|&(_, j, i, w)| entry(i, j, w, &self.row_ptr))
            .collect();
        self.upper = upper
            .iter()
            .map(|&(_, j, i, w)| entry(i, n - j, w, &self.row_ptr))
            .collect();
    }

    /// Writes the elimination program; false when it would be too long.
    fn program(&mut self, rows: &[Vec<usize>]) -> bool {
        let mut within = vec![0_u32; self.n];
        for (i, row) in rows.iter().enumerate() {
            for (place, &j) in row.iter().enumerate() {
                within[j] = narrow(place);
            }
            for &k in row.iter().take_while(|&&k| k < i) {
                let upper = &rows[k][rows[k].partition_point(|&j| j <= k)..];
                self.targets.extend(upper.iter().map(|&j| within[j]));
            }
            if self.targets.len() > PROGRAM_OPS_MAX {
                self.targets = Vec::new();
                return false;
            }
        }
        true
    }

    /// Entries of both factors together, the diagonal once.
    #[must_use]
    pub fn nnz(&self) -> usize {
        self.cols.len()
    }

    /// Multiplications of one refactorisation, divisions aside.
    #[must_use]
    pub fn operations(&self) -> usize {
        self.targets.len()
    }

    /// Elimination order: the `k`-th state eliminated.
    pub fn order(&self) -> impl Iterator<Item = usize> {
        self.order.iter().map(|&k| k as usize)
    }
}

/// Adds the fill-in: a row takes over the upper part of every pivot row it has a multiplier for.
fn fill(rows: Vec<Vec<usize>>) -> Vec<Vec<usize>> {
    let mut done: Vec<Vec<usize>> = Vec::with_capacity(rows.len());
    let mut member = vec![usize::MAX; rows.len()];
    for (i, row) in rows.into_iter().enumerate() {
        let mut all = Vec::new();
        // Multipliers still to be followed, least column last.
        let mut open: std::collections::BTreeSet<usize> = std::collections::BTreeSet::new();
        for j in row {
            if std::mem::replace(&mut member[j], i) != i {
                all.push(j);
                if j < i {
                    open.insert(j);
                }
            }
        }
        while let Some(k) = open.pop_first() {
            let pivot: &[usize] = &done[k];
            for &j in &pivot[pivot.partition_point(|&j| j <= k)..] {
                if std::mem::replace(&mut member[j], i) != i {
                    all.push(j);
                    if j < i {
                        open.insert(j);
                    }
                }
            }
        }
        all.sort_unstable();
        done.push(all);
    }
    done
}

/// Indices are kept in 32 bits: half the memory traffic of the solve loops.
#[expect(
    clippy::cast_possible_truncation,
    reason = "a factor with 2^32 entries would not fit in memory"
)]
fn narrow(index: usize) -> u32 {
    index as u32
}
