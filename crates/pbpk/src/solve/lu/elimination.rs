//! The elimination as a list: every multiplication with its places, in waves that do not wait for each other.
//!
//! Rows of a few entries make the nested loops of a row-by-row elimination short, and the processor guesses their ends
//! wrong more often than not. A wave has all multipliers whose value is known by then, then all their products, then
//! all pivots that are known after these. The values lie in the order in which the substitutions need them, so that
//! they are where they are wanted when the elimination is done.
#![expect(
    clippy::indexing_slicing,
    reason = "numeric kernel: every index comes from the checked pattern"
)]

use super::symbolic::{SubstitutionEntry, narrow};
use crate::place::SlotIndex;

/// Beyond this many multiplications rows are long enough for loops, and the list would only cost memory.
const OPERATIONS_MAX: usize = 100_000;

/// The list, its places in as few bits as the factors need.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum EliminationList {
    Short(StepList<u16>),
    Wide(StepList<u32>),
}

/// What an elimination works on.
pub(super) struct EliminationWork<'a> {
    /// The entries below the diagonal and those above it, in the order of the substitutions, then the diagonal.
    pub(super) values: &'a mut [f64],
    /// Inverses of the pivots.
    pub(super) inverse: &'a mut [f64],
    /// Room for the diagonal of the matrix.
    pub(super) own: &'a mut [f64],
}

#[derive(Debug, Clone, PartialEq)]
pub(super) struct StepList<P> {
    /// Place of each entry of the Jacobian pattern.
    scatter: Vec<P>,
    multipliers: Vec<MultiplierStep<P>>,
    products: Vec<ProductStep<P>>,
    /// Rows with known pivots, wave by wave.
    pivots: Vec<P>,
    waves: Vec<WaveEnds>,
    /// How many entries lie below the diagonal.
    lower: usize,
    /// The row of each entry above it.
    upper: Vec<P>,
}

/// `values[place] *= inverse[pivot]`.
#[derive(Debug, Clone, Copy, PartialEq)]
struct MultiplierStep<P> {
    place: P,
    pivot: P,
}

/// `values[to] -= values[multiplier] · values[from]`.
#[derive(Debug, Clone, Copy, PartialEq)]
struct ProductStep<P> {
    to: P,
    multiplier: P,
    from: P,
}

/// Ends of the parts of a wave.
#[derive(Debug, Clone, Copy, PartialEq)]
struct WaveEnds {
    multipliers: usize,
    products: usize,
    pivots: usize,
}

/// Factors as they were analysed.
pub(super) struct FactorShape<'a> {
    /// Columns of each row, ascending, all in elimination order.
    pub(super) rows: &'a [Vec<usize>],
    pub(super) operations: usize,
    /// Offsets of the entries of each row, row by row.
    pub(super) row_ptr: &'a [u32],
    /// Place of each entry of the Jacobian pattern, likewise.
    pub(super) scatter: &'a [u32],
    /// Steps of the substitutions.
    pub(super) lower: &'a [SubstitutionEntry],
    pub(super) upper: &'a [SubstitutionEntry],
}

impl FactorShape<'_> {
    /// From the place of an entry in its row to that in the order of the substitutions.
    fn move_entries(&self, entries: usize) -> Vec<u32> {
        let mut moved = vec![0; entries];
        for (to, entry) in self.lower.iter().chain(self.upper).enumerate() {
            moved[entry.place as usize] = narrow(to);
        }
        let sides = self.lower.len() + self.upper.len();
        for (i, row) in self.rows.iter().enumerate() {
            let diagonal = self.row_ptr[i] as usize + row.partition_point(|&j| j < i);
            moved[diagonal] = narrow(sides + i);
        }
        moved
    }
}

impl EliminationList {
    /// Returns the list for these factors; nothing if it would be too long.
    pub(super) fn new(shape: &FactorShape<'_>) -> Option<Self> {
        if shape.operations > OPERATIONS_MAX {
            return None;
        }
        let entries = shape.row_ptr.last().map_or(0, |end| *end as usize);
        Some(if entries <= <u16 as SlotIndex>::COUNT {
            Self::Short(StepList::new(shape, entries))
        } else {
            Self::Wide(StepList::new(shape, entries))
        })
    }

    /// Puts `I − γJ` into the values.
    pub(super) fn scatter(&self, gamma: f64, jacobian: &[f64], values: &mut [f64]) {
        match self {
            Self::Short(list) => list.fill_values(gamma, jacobian, values),
            Self::Wide(list) => list.fill_values(gamma, jacobian, values),
        }
    }

    /// Eliminates in place and divides the rows of the upper factor by their pivots; false at the first pivot that is
    /// not `sound`, by its value and that of the matrix.
    pub(super) fn run(&self, work: EliminationWork<'_>, sound: impl Fn(f64, f64) -> bool) -> bool {
        match self {
            Self::Short(list) => list.run(work, sound),
            Self::Wide(list) => list.run(work, sound),
        }
    }

    /// Returns the entries below the diagonal and those above it, in the order of the substitutions.
    pub(super) fn sides<'a>(&self, values: &'a [f64]) -> (&'a [f64], &'a [f64]) {
        let (lower, upper) = match self {
            Self::Short(list) => (list.lower, list.upper.len()),
            Self::Wide(list) => (list.lower, list.upper.len()),
        };
        let (forward, rest) = values.split_at(lower);
        (forward, &rest[..upper])
    }
}

impl<P: SlotIndex> StepList<P> {
    fn new(shape: &FactorShape<'_>, entries: usize) -> Self {
        let rows = shape.rows;
        let n = rows.len();
        let moved = shape.move_entries(entries);
        let place = |row: usize, within: usize| {
            P::new(moved[(shape.row_ptr[row] + narrow(within)) as usize])
        };
        // Each item with the wave in which it comes.
        let (mut multipliers, mut products, mut pivots) = (Vec::new(), Vec::new(), Vec::new());
        // The wave after which a row is done, and place and last wave of the entries of the present row.
        let mut done = vec![0; n];
        let mut entry = vec![(0, 0); n];
        for (i, row) in rows.iter().enumerate() {
            for (within, &j) in row.iter().enumerate() {
                entry[j] = (within, 0);
            }
            for (within, &k) in row.iter().enumerate().take_while(|(_, k)| **k < i) {
                let wave = done[k].max(entry[k].1) + 1;
                done[i] = wave.max(done[i]);
                let multiplier = place(i, within);
                let pivot = P::new(narrow(k));
                multipliers.push((
                    wave,
                    MultiplierStep {
                        place: multiplier,
                        pivot,
                    },
                ));
                let above = rows[k].iter().enumerate();
                for (of, &j) in above.skip_while(|(_, j)| **j <= k) {
                    let (at, last) = &mut entry[j];
                    *last = wave.max(*last);
                    let product = ProductStep {
                        to: place(i, *at),
                        multiplier,
                        from: place(k, of),
                    };
                    products.push((wave, product));
                }
            }
            pivots.push((done[i], P::new(narrow(i))));
        }
        // Stable: within a wave the rows stay in their order.
        multipliers.sort_by_key(|m| m.0);
        products.sort_by_key(|p| p.0);
        pivots.sort_by_key(|p| p.0);
        let last = pivots.last().map_or(0, |p| p.0);
        let waves = (0..=last).map(|wave| WaveEnds {
            multipliers: multipliers.partition_point(|m| m.0 <= wave),
            products: products.partition_point(|p| p.0 <= wave),
            pivots: pivots.partition_point(|p| p.0 <= wave),
        });
        let scatter = shape.scatter.iter();
        Self {
            scatter: scatter.map(|p| P::new(moved[*p as usize])).collect(),
            waves: waves.collect(),
            multipliers: multipliers.into_iter().map(|m| m.1).collect(),
            products: products.into_iter().map(|p| p.1).collect(),
            pivots: pivots.into_iter().map(|p| p.1).collect(),
            lower: shape.lower.len(),
            upper: shape.upper.iter().map(|e| P::new(e.row)).collect(),
        }
    }

    fn fill_values(&self, gamma: f64, jacobian: &[f64], values: &mut [f64]) {
        let (sides, diagonal) = values.split_at_mut(self.lower + self.upper.len());
        sides.fill(0.0);
        diagonal.fill(1.0);
        for (place, j) in self.scatter.iter().zip(jacobian) {
            values[place.wide()] -= gamma * j;
        }
    }

    fn run(&self, work: EliminationWork<'_>, sound: impl Fn(f64, f64) -> bool) -> bool {
        let EliminationWork {
            values,
            inverse,
            own,
        } = work;
        let diagonal = self.lower + self.upper.len();
        own.copy_from_slice(&values[diagonal..]);
        let (mut m, mut p, mut d) = (0, 0, 0);
        for wave in &self.waves {
            for item in &self.multipliers[m..wave.multipliers] {
                values[item.place.wide()] *= inverse[item.pivot.wide()];
            }
            for item in &self.products[p..wave.products] {
                let product = values[item.multiplier.wide()] * values[item.from.wide()];
                values[item.to.wide()] -= product;
            }
            for row in &self.pivots[d..wave.pivots] {
                let row = row.wide();
                let pivot = values[diagonal + row];
                if !sound(pivot, own[row]) {
                    return false;
                }
                inverse[row] = 1.0 / pivot;
            }
            (m, p, d) = (wave.multipliers, wave.products, wave.pivots);
        }
        for (value, row) in values[self.lower..diagonal].iter_mut().zip(&self.upper) {
            *value *= inverse[row.wide()];
        }
        true
    }
}
