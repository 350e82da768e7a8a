//! The elimination as a list: every multiplication with its places, in waves that do not wait for each other.
//!
//! Rows of a few entries make the nested loops of a row-by-row elimination short, and the processor guesses their ends
//! wrong more often than not. A wave holds all multipliers whose value is known by then, then all their products, then
//! all pivots that are known after these.
#![expect(
    clippy::indexing_slicing,
    reason = "numeric kernel: every index comes from the checked pattern"
)]

use super::symbolic::narrow;

/// Beyond this many multiplications rows are long enough for loops, and the list would only cost memory.
const OPERATIONS_MAX: usize = 100_000;

/// The list.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Elimination {
    multipliers: Vec<Multiplier>,
    products: Vec<Product>,
    pivots: Vec<Pivot>,
    waves: Vec<Wave>,
}

/// `values[place] *= inverse[pivot]`.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Multiplier {
    place: u32,
    pivot: u32,
}

/// `values[to] -= values[multiplier] · values[from]`.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Product {
    to: u32,
    multiplier: u32,
    from: u32,
}

/// `inverse[row] = 1 / values[place]`.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Pivot {
    row: u32,
    place: u32,
}

/// Ends of the parts of a wave.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Wave {
    multipliers: usize,
    products: usize,
    pivots: usize,
}

impl Elimination {
    /// The list for factors with these rows (columns ascending, all in elimination order), whose entries lie from
    /// `row_ptr` on; nothing where it would be too long.
    pub(super) fn new(rows: &[Vec<usize>], operations: usize, row_ptr: &[u32]) -> Option<Self> {
        if operations > OPERATIONS_MAX {
            return None;
        }
        let n = rows.len();
        let place = |row: usize, within: usize| row_ptr[row] + narrow(within);
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
                multipliers.push((
                    wave,
                    Multiplier {
                        place: multiplier,
                        pivot: narrow(k),
                    },
                ));
                let above = rows[k].iter().enumerate();
                for (of, &j) in above.skip_while(|(_, j)| **j <= k) {
                    let (at, last) = &mut entry[j];
                    *last = wave.max(*last);
                    let product = Product {
                        to: place(i, *at),
                        multiplier,
                        from: place(k, of),
                    };
                    products.push((wave, product));
                }
            }
            let pivot = Pivot {
                row: narrow(i),
                place: place(i, entry[i].0),
            };
            pivots.push((done[i], pivot));
        }
        // Stable: within a wave the rows stay in their order.
        multipliers.sort_by_key(|m| m.0);
        products.sort_by_key(|p| p.0);
        pivots.sort_by_key(|p| p.0);
        let last = pivots.last().map_or(0, |p| p.0);
        let waves = (0..=last).map(|wave| Wave {
            multipliers: multipliers.partition_point(|m| m.0 <= wave),
            products: products.partition_point(|p| p.0 <= wave),
            pivots: pivots.partition_point(|p| p.0 <= wave),
        });
        Some(Self {
            waves: waves.collect(),
            multipliers: multipliers.into_iter().map(|m| m.1).collect(),
            products: products.into_iter().map(|p| p.1).collect(),
            pivots: pivots.into_iter().map(|p| p.1).collect(),
        })
    }

    /// Eliminates in place; false at the first pivot that is not `sound`, by its row and value.
    pub(super) fn run(
        &self,
        values: &mut [f64],
        inverse: &mut [f64],
        sound: impl Fn(usize, f64) -> bool,
    ) -> bool {
        let (mut m, mut p, mut d) = (0, 0, 0);
        for wave in &self.waves {
            for item in &self.multipliers[m..wave.multipliers] {
                values[item.place as usize] *= inverse[item.pivot as usize];
            }
            for item in &self.products[p..wave.products] {
                let product = values[item.multiplier as usize] * values[item.from as usize];
                values[item.to as usize] -= product;
            }
            for item in &self.pivots[d..wave.pivots] {
                let pivot = values[item.place as usize];
                if !sound(item.row as usize, pivot) {
                    return false;
                }
                inverse[item.row as usize] = 1.0 / pivot;
            }
            (m, p, d) = (wave.multipliers, wave.products, wave.pivots);
        }
        true
    }
}
