//! Fill-reducing elimination order with diagonal pivots.
//!
//! Source: H. M. Markowitz, "The elimination form of the inverse", Management Science 3 (1957).
#![expect(
    clippy::indexing_slicing,
    reason = "row numbers were checked against the dimension by the caller"
)]

use crate::solve::SparsityPattern;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::convert::Infallible;

/// Chooses, one pivot after another, the diagonal entry with the least `(row − 1)·(column − 1)` of
/// the remaining matrix; ties go to the lower number, so the order never depends on anything else.
///
/// Returns `order[k]` = the state eliminated as the `k`-th.
#[must_use]
pub fn minimum_markowitz(pattern: &SparsityPattern) -> Vec<usize> {
    let Ok(order) = ordered(pattern, usize::MAX, &mut || Ok::<(), Infallible>(()));
    order.unwrap_or_default()
}

/// As [`minimum_markowitz`]; nothing if the elimination takes more than `operations_max` multiplications. `ask` is
/// called before every pivot and ends the work with its error.
pub(super) fn ordered<E>(
    pattern: &SparsityPattern,
    operations_max: usize,
    ask: &mut dyn FnMut() -> Result<(), E>,
) -> Result<Option<Vec<usize>>, E> {
    let n = pattern.n();
    let mut remaining = RemainingMatrix::new(pattern);
    let mut queue: BinaryHeap<Reverse<(usize, usize)>> =
        (0..n).map(|k| Reverse((remaining.cost(k), k))).collect();
    let mut order = Vec::with_capacity(n);
    let mut operations = 0_usize;
    while let Some(Reverse((cost, pivot))) = queue.pop() {
        // Entries with a cost that changed since are stale; a newer one is in the queue.
        if remaining.done[pivot] || remaining.cost(pivot) != cost {
            continue;
        }
        ask()?;
        operations = operations.saturating_add(cost);
        if operations > operations_max {
            return Ok(None);
        }
        order.push(pivot);
        for changed in remaining.eliminate(pivot) {
            queue.push(Reverse((remaining.cost(changed), changed)));
        }
    }
    Ok(Some(order))
}

/// The matrix that is still to be eliminated, with its fill-in.
struct RemainingMatrix {
    /// Columns of each row, ascending; eliminated ones are taken out.
    rows: Vec<Vec<u32>>,
    /// Rows of each column in no order; eliminated ones stay and are passed over.
    columns: Vec<Vec<u32>>,
    /// Rows of each column that are left.
    column_lengths: Vec<usize>,
    done: Vec<bool>,
    /// Room for the union of two rows.
    union: Vec<u32>,
}

impl RemainingMatrix {
    fn new(pattern: &SparsityPattern) -> Self {
        let n = pattern.n();
        let mut rows: Vec<Vec<u32>> = vec![Vec::new(); n];
        let mut columns: Vec<Vec<u32>> = vec![Vec::new(); n];
        for (j, ends) in pattern.col_ptr.windows(2).enumerate() {
            let of_column = &pattern.row_idx[ends[0]..ends[1]];
            // The diagonal is always there; rows are met in ascending order of columns.
            let place = of_column.partition_point(|&i| i < j);
            let missing = of_column.get(place) != Some(&j);
            let (above, below) = of_column.split_at(place);
            let diagonal = missing.then_some(&j);
            for &i in above.iter().chain(diagonal).chain(below) {
                rows[i].push(j as u32);
                columns[j].push(i as u32);
            }
        }
        Self {
            column_lengths: columns.iter().map(Vec::len).collect(),
            rows,
            columns,
            done: vec![false; n],
            union: Vec::new(),
        }
    }

    fn cost(&self, k: usize) -> usize {
        self.rows[k].len().saturating_sub(1) * self.column_lengths[k].saturating_sub(1)
    }

    /// Takes a pivot out, adds the fill-in, and returns those with a cost that may have changed.
    fn eliminate(&mut self, pivot: usize) -> Vec<usize> {
        self.done[pivot] = true;
        let row = std::mem::take(&mut self.rows[pivot]);
        let column = std::mem::take(&mut self.columns[pivot]);
        let mut changed: Vec<usize> = Vec::with_capacity(row.len() + column.len());
        for &j in &row {
            self.column_lengths[j as usize] -= 1;
            if j as usize != pivot {
                changed.push(j as usize);
            }
        }
        for &i in &column {
            if self.done[i as usize] {
                continue;
            }
            self.unite(i, pivot as u32, &row);
            changed.push(i as usize);
        }
        changed.sort_unstable();
        changed.dedup();
        changed
    }

    /// Row i takes over the columns of the pivot row and loses the pivot.
    fn unite(&mut self, i: u32, pivot: u32, row: &[u32]) {
        let own = &mut self.rows[i as usize];
        self.union.clear();
        let mut rest = own.as_slice();
        for &j in row {
            let before = rest.iter().take_while(|&&o| o < j).count();
            self.union.extend_from_slice(&rest[..before]);
            rest = &rest[before..];
            if rest.first() == Some(&j) {
                rest = &rest[1..];
            } else {
                self.columns[j as usize].push(i);
                self.column_lengths[j as usize] += 1;
            }
            if j != pivot {
                self.union.push(j);
            }
        }
        self.union.extend_from_slice(rest);
        std::mem::swap(own, &mut self.union);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An arrow pointing the wrong way fills completely unless its tip is eliminated last.
    #[test]
    fn arrow_is_turned_round() {
        let n = 6;
        let mut col_ptr = vec![0];
        let mut row_idx: Vec<usize> = (0..n).collect();
        col_ptr.push(n);
        for j in 1..n {
            row_idx.extend([0, j]);
            col_ptr.push(row_idx.len());
        }
        let order = minimum_markowitz(&SparsityPattern { col_ptr, row_idx });
        let tip = order.iter().position(|&k| k == 0);
        assert!(tip >= Some(n - 2), "{order:?}");
    }

    /// The definition, word for word: rows and columns as sets, the least product each time.
    #[test]
    fn is_the_least_product_each_time() {
        let n = 40;
        let mut seed = 7_u64;
        let mut col_ptr = vec![0];
        let mut row_idx = Vec::new();
        let mut entries = std::collections::BTreeSet::new();
        for j in 0..n {
            for i in 0..n {
                seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                if (seed >> 33).is_multiple_of(9) {
                    row_idx.push(i);
                    entries.insert((i, j));
                }
            }
            col_ptr.push(row_idx.len());
            entries.insert((j, j));
        }
        let mut left: Vec<usize> = (0..n).collect();
        let mut expected = Vec::new();
        while !left.is_empty() {
            let row = |k: usize| entries.iter().filter(|e| e.0 == k).count() - 1;
            let column = |k: usize| entries.iter().filter(|e| e.1 == k).count() - 1;
            let pivot = *left
                .iter()
                .min_by_key(|&&k| (row(k) * column(k), k))
                .unwrap();
            let (mut fill, mut kept) = (Vec::new(), entries.clone());
            for a in entries.iter().filter(|e| e.1 == pivot) {
                for b in entries.iter().filter(|e| e.0 == pivot) {
                    fill.push((a.0, b.1));
                }
            }
            kept.extend(fill);
            kept.retain(|e| e.0 != pivot && e.1 != pivot);
            entries = kept;
            left.retain(|&k| k != pivot);
            expected.push(pivot);
        }
        assert_eq!(
            minimum_markowitz(&SparsityPattern { col_ptr, row_idx }),
            expected
        );
    }
}
