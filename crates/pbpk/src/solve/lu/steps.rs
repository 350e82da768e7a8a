//! The steps of both substitutions, their places in as few bits as the dimension needs: with at most 256 states a place is
//! a byte, and vectors of 256 numbers need no look at their lengths.
#![expect(
    clippy::indexing_slicing,
    reason = "numeric kernel: every place is below the dimension, by which its type is chosen"
)]

use super::symbolic::Entry;
use crate::place::Place;
use std::ops::IndexMut;

/// Numbers that a byte tells apart.
const BYTE: usize = <u8 as Place>::COUNT;

/// Places of the steps.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Steps {
    Byte(Places<u8>),
    Short(Places<u16>),
    Wide(Places<u32>),
}

/// The factors of the steps.
#[derive(Debug, Clone, Copy)]
pub(super) struct Numbers<'a> {
    pub(super) forward: &'a [f64],
    /// Inverses of the pivots.
    pub(super) inverse: &'a [f64],
    pub(super) back: &'a [f64],
}

#[derive(Debug, Clone, PartialEq)]
pub(super) struct Places<P> {
    order: Vec<P>,
    lower: Side<P>,
    upper: Side<P>,
}

/// The steps of one substitution, row by row.
#[derive(Debug, Clone, PartialEq)]
struct Side<P> {
    runs: Vec<Run>,
    rows: Vec<P>,
    /// Column of each step.
    cols: Vec<P>,
}

/// Rows of the same number of steps, one after another.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Run {
    steps: usize,
    rows: usize,
}

impl Default for Steps {
    fn default() -> Self {
        Self::new(&[], &[], &[])
    }
}

impl Steps {
    /// The steps of these entries, for unknowns in this order.
    pub(super) fn new(order: &[u32], lower: &[Entry], upper: &[Entry]) -> Self {
        let n = order.len();
        if n <= BYTE {
            Self::Byte(Places::new(order, lower, upper))
        } else if n <= <u16 as Place>::COUNT {
            Self::Short(Places::new(order, lower, upper))
        } else {
            Self::Wide(Places::new(order, lower, upper))
        }
    }

    /// Length of the vector in which `n` unknowns are solved for.
    pub(super) fn room(&self, n: usize) -> usize {
        match self {
            // Unknowns, and the right-hand side.
            Self::Byte(_) => 2 * BYTE,
            Self::Short(_) | Self::Wide(_) => n,
        }
    }

    /// Replaces `b` by the solution: solves with `L`, the diagonal and the unit upper factor in turn, in `x`.
    pub(super) fn solve(&self, b: &mut [f64], x: &mut [f64], numbers: Numbers<'_>) {
        match self {
            Self::Byte(places) => match x.as_chunks_mut::<BYTE>() {
                ([x, own, ..], _) => {
                    own[..b.len()].copy_from_slice(b);
                    places.solve(own, x, numbers);
                    b.copy_from_slice(&own[..b.len()]);
                }
                _ => places.solve(b, x, numbers),
            },
            Self::Short(places) => places.solve(b, x, numbers),
            Self::Wide(places) => places.solve(b, x, numbers),
        }
    }
}

impl<P: Place> Places<P> {
    fn new(order: &[u32], lower: &[Entry], upper: &[Entry]) -> Self {
        Self {
            order: order.iter().map(|place| P::new(*place)).collect(),
            lower: Side::new(lower),
            upper: Side::new(upper),
        }
    }

    #[inline(always)]
    fn solve<B, X>(&self, b: &mut B, x: &mut X, numbers: Numbers<'_>)
    where
        B: IndexMut<usize, Output = f64> + ?Sized,
        X: IndexMut<usize, Output = f64> + AsMut<[f64]> + ?Sized,
    {
        for (x, &state) in x.as_mut().iter_mut().zip(&self.order) {
            *x = b[state.wide()];
        }
        self.lower.substitute(numbers.forward, x);
        for (x, inverse) in x.as_mut().iter_mut().zip(numbers.inverse) {
            *x *= inverse;
        }
        self.upper.substitute(numbers.back, x);
        for (x, &state) in x.as_mut().iter().zip(&self.order) {
            b[state.wide()] = *x;
        }
    }
}

impl<P: Place> Side<P> {
    fn new(entries: &[Entry]) -> Self {
        let (mut runs, mut rows): (Vec<Run>, Vec<P>) = (Vec::new(), Vec::new());
        for row in entries.chunk_by(|a, b| a.row == b.row) {
            rows.push(P::new(row[0].row));
            match runs.last_mut() {
                Some(run) if run.steps == row.len() => run.rows += 1,
                _ => runs.push(Run {
                    steps: row.len(),
                    rows: 1,
                }),
            }
        }
        Self {
            runs,
            rows,
            cols: entries.iter().map(|e| P::new(e.col)).collect(),
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
                        left(*row, cols, values, x);
                    }
                }
            }
        }
    }
}

/// Rows of `STEPS` steps each.
#[inline(always)]
fn gather<const STEPS: usize, P: Place, X>(rows: &[P], cols: &[P], values: &[f64], x: &mut X)
where
    X: IndexMut<usize, Output = f64> + ?Sized,
{
    let (cols, _) = cols.as_chunks::<STEPS>();
    let (values, _) = values.as_chunks::<STEPS>();
    for ((row, cols), values) in rows.iter().zip(cols).zip(values) {
        left(*row, cols, values, x);
    }
}

/// What the steps of a row leave of it.
#[inline(always)]
fn left<P: Place, X>(row: P, cols: &[P], values: &[f64], x: &mut X)
where
    X: IndexMut<usize, Output = f64> + ?Sized,
{
    let mut left = x[row.wide()];
    for (col, value) in cols.iter().zip(values) {
        left -= value * x[col.wide()];
    }
    x[row.wide()] = left;
}
