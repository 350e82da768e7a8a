//! The steps of both substitutions, their places in as few bits as the dimension needs: with at most 256 states a place
//! is a byte, and vectors of 256 numbers need no look at their lengths. Places are those of the states, so that nothing
//! has to be put into the order of elimination and back.
#![expect(
    clippy::indexing_slicing,
    reason = "numeric kernel: every place is below the dimension, by which its type is chosen"
)]

use super::symbolic::SubstitutionEntry;
use crate::place::SlotIndex;
use multiversion::multiversion;
use std::ops::IndexMut;

/// Numbers that a byte distinguishes.
const BYTE: usize = <u8 as SlotIndex>::COUNT;

/// Places of the steps.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum SubstitutionSteps {
    Byte(StepPlaces<u8>),
    Short(StepPlaces<u16>),
    Wide(StepPlaces<u32>),
}

/// The factors of the steps.
#[derive(Debug, Clone, Copy)]
pub(super) struct FactorNumbers<'a> {
    pub(super) forward: &'a [f64],
    /// Inverses of the pivots, by state.
    pub(super) inverse: &'a [f64],
    pub(super) back: &'a [f64],
}

#[derive(Debug, Clone, PartialEq)]
pub(super) struct StepPlaces<P> {
    lower: SubstitutionSide<P>,
    upper: SubstitutionSide<P>,
}

/// The steps of one substitution, row by row.
#[derive(Debug, Clone, PartialEq)]
struct SubstitutionSide<P> {
    runs: Vec<RowRun>,
    rows: Vec<P>,
    /// Column of each step.
    cols: Vec<P>,
}

/// Rows of the same number of steps, one after another.
#[derive(Debug, Clone, Copy, PartialEq)]
struct RowRun {
    steps: usize,
    rows: usize,
}

impl Default for SubstitutionSteps {
    fn default() -> Self {
        Self::new(&[], &[], &[])
    }
}

impl SubstitutionSteps {
    /// Returns the steps of these entries, for unknowns in this order.
    pub(super) fn new(
        order: &[u32],
        lower: &[SubstitutionEntry],
        upper: &[SubstitutionEntry],
    ) -> Self {
        let n = order.len();
        if n <= BYTE {
            Self::Byte(StepPlaces::new(order, lower, upper))
        } else if n <= <u16 as SlotIndex>::COUNT {
            Self::Short(StepPlaces::new(order, lower, upper))
        } else {
            Self::Wide(StepPlaces::new(order, lower, upper))
        }
    }

    /// Length of the vector in which `n` unknowns are solved for.
    pub(super) fn room(&self, n: usize) -> usize {
        match self {
            // A matrix that is dense throughout has no steps, in any dimension.
            Self::Byte(_) => n.max(BYTE),
            Self::Short(_) | Self::Wide(_) => n,
        }
    }

    /// Replaces `b` by the solution: solves with `L`, the diagonal and the unit upper factor in turn. `x` is room.
    pub(super) fn solve(&self, b: &mut [f64], x: &mut [f64], numbers: FactorNumbers<'_>) {
        solve(self, b, x, numbers.forward, numbers.inverse, numbers.back);
    }
}

/// As [`SubstitutionSteps::solve`].
#[multiversion(targets("x86_64+avx2"))]
fn solve(
    steps: &SubstitutionSteps,
    b: &mut [f64],
    x: &mut [f64],
    forward: &[f64],
    inverse: &[f64],
    back: &[f64],
) {
    let numbers = FactorNumbers {
        forward,
        inverse,
        back,
    };
    match steps {
        SubstitutionSteps::Byte(places) => match x.first_chunk_mut::<BYTE>() {
            Some(x) => {
                let n = b.len();
                x[..n].copy_from_slice(b);
                places.solve(x, numbers);
                b.copy_from_slice(&x[..n]);
            }
            None => places.solve(b, numbers),
        },
        SubstitutionSteps::Short(places) => places.solve(b, numbers),
        SubstitutionSteps::Wide(places) => places.solve(b, numbers),
    }
}

impl<P: SlotIndex> StepPlaces<P> {
    fn new(order: &[u32], lower: &[SubstitutionEntry], upper: &[SubstitutionEntry]) -> Self {
        Self {
            lower: SubstitutionSide::new(order, lower),
            upper: SubstitutionSide::new(order, upper),
        }
    }

    #[inline(always)]
    fn solve<X>(&self, x: &mut X, numbers: FactorNumbers<'_>)
    where
        X: IndexMut<usize, Output = f64> + AsMut<[f64]> + ?Sized,
    {
        self.lower.substitute(numbers.forward, x);
        for (x, inverse) in x.as_mut().iter_mut().zip(numbers.inverse) {
            *x *= inverse;
        }
        self.upper.substitute(numbers.back, x);
    }
}

impl<P: SlotIndex> SubstitutionSide<P> {
    fn new(order: &[u32], entries: &[SubstitutionEntry]) -> Self {
        let state = |k: u32| P::new(order[k as usize]);
        let (mut runs, mut rows): (Vec<RowRun>, Vec<P>) = (Vec::new(), Vec::new());
        for row in entries.chunk_by(|a, b| a.row == b.row) {
            rows.push(state(row[0].row));
            match runs.last_mut() {
                Some(run) if run.steps == row.len() => run.rows += 1,
                _ => runs.push(RowRun {
                    steps: row.len(),
                    rows: 1,
                }),
            }
        }
        Self {
            runs,
            rows,
            cols: entries.iter().map(|e| state(e.col)).collect(),
        }
    }

    /// `x[row] -= value · x[col]`, step by step; a row stays in a register until it is done.
    #[inline(always)]
    fn substitute<X>(&self, values: &[f64], x: &mut X)
    where
        X: IndexMut<usize, Output = f64> + ?Sized,
    {
        let (mut row, mut step) = (0, 0);
        for run in &self.runs {
            let (row_end, step_end) = (row + run.rows, step + run.rows * run.steps);
            let own_rows = &self.rows[row..row_end];
            let own_cols = &self.cols[step..step_end];
            let own_values = &values[step..step_end];
            (row, step) = (row_end, step_end);
            match run.steps {
                1 => gather::<1, P, X>(own_rows, own_cols, own_values, x),
                2 => gather::<2, P, X>(own_rows, own_cols, own_values, x),
                3 => gather::<3, P, X>(own_rows, own_cols, own_values, x),
                4 => gather::<4, P, X>(own_rows, own_cols, own_values, x),
                5 => gather::<5, P, X>(own_rows, own_cols, own_values, x),
                6 => gather::<6, P, X>(own_rows, own_cols, own_values, x),
                7 => gather::<7, P, X>(own_rows, own_cols, own_values, x),
                8 => gather::<8, P, X>(own_rows, own_cols, own_values, x),
                n => {
                    let steps = own_cols.chunks_exact(n).zip(own_values.chunks_exact(n));
                    for (row, (cols, values)) in own_rows.iter().zip(steps) {
                        subtract_steps(*row, cols, values, x);
                    }
                }
            }
        }
    }
}

/// Rows of `STEPS` steps each.
#[inline(always)]
fn gather<const STEPS: usize, P: SlotIndex, X>(rows: &[P], cols: &[P], values: &[f64], x: &mut X)
where
    X: IndexMut<usize, Output = f64> + ?Sized,
{
    let (cols, _) = cols.as_chunks::<STEPS>();
    let (values, _) = values.as_chunks::<STEPS>();
    for ((row, cols), values) in rows.iter().zip(cols).zip(values) {
        subtract_steps(*row, cols, values, x);
    }
}

/// Subtracts the steps of a row from it.
#[inline(always)]
fn subtract_steps<P: SlotIndex, X>(row: P, cols: &[P], values: &[f64], x: &mut X)
where
    X: IndexMut<usize, Output = f64> + ?Sized,
{
    let mut left = x[row.wide()];
    for (col, value) in cols.iter().zip(values) {
        left -= value * x[col.wide()];
    }
    x[row.wide()] = left;
}
