//! Fill-reducing elimination order with diagonal pivots.
//!
//! Source: H. M. Markowitz, "The elimination form of the inverse", Management Science 3 (1957).

use crate::solve::Pattern;
use std::collections::BTreeSet;

/// Chooses, one pivot after another, the diagonal entry with the least `(row − 1)·(column − 1)` of
/// the remaining matrix; ties go to the lower number, so the order never depends on anything else.
///
/// Returns `order[k]` = the state eliminated as the `k`-th.
#[must_use]
#[expect(
    clippy::indexing_slicing,
    reason = "row numbers were checked against the dimension by the caller"
)]
pub fn minimum_markowitz(pattern: &Pattern) -> Vec<usize> {
    let n = pattern.n();
    let mut rows: Vec<BTreeSet<usize>> = (0..n).map(|i| BTreeSet::from([i])).collect();
    let mut cols: Vec<BTreeSet<usize>> = (0..n).map(|i| BTreeSet::from([i])).collect();
    for (j, ends) in pattern.col_ptr.windows(2).enumerate() {
        for &i in &pattern.row_idx[ends[0]..ends[1]] {
            rows[i].insert(j);
            cols[j].insert(i);
        }
    }
    let mut left: BTreeSet<usize> = (0..n).collect();
    let mut order = Vec::with_capacity(n);
    while let Some(pivot) = left
        .iter()
        .copied()
        .min_by_key(|&k| ((rows[k].len() - 1) * (cols[k].len() - 1), k))
    {
        left.remove(&pivot);
        order.push(pivot);
        let row = std::mem::take(&mut rows[pivot]);
        let col = std::mem::take(&mut cols[pivot]);
        for &j in row.iter().filter(|&&j| j != pivot) {
            cols[j].remove(&pivot);
        }
        for &i in col.iter().filter(|&&i| i != pivot) {
            rows[i].remove(&pivot);
            for &j in row.iter().filter(|&&j| j != pivot) {
                if rows[i].insert(j) {
                    cols[j].insert(i);
                }
            }
        }
    }
    order
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
        let order = minimum_markowitz(&Pattern { col_ptr, row_idx });
        let tip = order.iter().position(|&k| k == 0);
        assert!(tip >= Some(n - 2), "{order:?}");
    }
}
