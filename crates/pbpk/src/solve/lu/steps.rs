//! The steps of both substitutions, their places in as few bits as the dimension needs: with at most 256 states a place is
//! a byte, and a vector of 256 numbers needs no look at its length.
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
    /// Row and column of each step.
    lower: Vec<[P; 2]>,
    upper: Vec<[P; 2]>,
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
            Self::Byte(_) => n.max(BYTE),
            Self::Short(_) | Self::Wide(_) => n,
        }
    }

    /// Replaces `b` by the solution: solves with `L`, the diagonal and the unit upper factor in turn, in `x`.
    pub(super) fn solve(&self, b: &mut [f64], x: &mut [f64], numbers: Numbers<'_>) {
        match self {
            Self::Byte(places) => match x.first_chunk_mut::<BYTE>() {
                Some(x) => places.solve(b, x, numbers),
                None => places.solve(b, x, numbers),
            },
            Self::Short(places) => places.solve(b, x, numbers),
            Self::Wide(places) => places.solve(b, x, numbers),
        }
    }
}

impl<P: Place> Places<P> {
    fn new(order: &[u32], lower: &[Entry], upper: &[Entry]) -> Self {
        let both = |e: &Entry| [P::new(e.row), P::new(e.col)];
        Self {
            order: order.iter().map(|place| P::new(*place)).collect(),
            lower: lower.iter().map(both).collect(),
            upper: upper.iter().map(both).collect(),
        }
    }

    #[inline(always)]
    fn solve<X>(&self, b: &mut [f64], x: &mut X, numbers: Numbers<'_>)
    where
        X: IndexMut<usize, Output = f64> + AsMut<[f64]> + ?Sized,
    {
        for (x, &state) in x.as_mut().iter_mut().zip(&self.order) {
            *x = b[state.wide()];
        }
        substitute(&self.lower, numbers.forward, x);
        for (x, inverse) in x.as_mut().iter_mut().zip(numbers.inverse) {
            *x *= inverse;
        }
        substitute(&self.upper, numbers.back, x);
        for (x, &state) in x.as_mut().iter().zip(&self.order) {
            b[state.wide()] = *x;
        }
    }
}

/// `x[row] -= value · x[col]`, step by step.
#[inline(always)]
fn substitute<P: Place, X>(places: &[[P; 2]], values: &[f64], x: &mut X)
where
    X: IndexMut<usize, Output = f64> + ?Sized,
{
    let (fours, rest) = places.as_chunks::<4>();
    let (four_values, rest_values) = values.as_chunks::<4>();
    for (places, values) in fours.iter().zip(four_values) {
        for ([row, col], value) in places.iter().zip(values) {
            x[row.wide()] -= value * x[col.wide()];
        }
    }
    for ([row, col], value) in rest.iter().zip(rest_values) {
        x[row.wide()] -= value * x[col.wide()];
    }
}
