//! The sparse factorisation against a plain dense elimination, on random patterns and numbers.

use pbpk::solve::SparsityPattern;
use pbpk::solve::lu::{FactorError, LuFactors, SymbolicFactors};
use proptest::prelude::*;
use std::sync::Arc;

/// A pattern and values from a list of (row, column, value) cells; the last of equal cells counts.
fn matrix(n: usize, cells: &[(usize, usize, f64)]) -> (SparsityPattern, Vec<f64>) {
    let mut sorted = std::collections::BTreeMap::new();
    for &(i, j, v) in cells {
        sorted.insert((j % n, i % n), v);
    }
    let mut pattern = SparsityPattern {
        col_ptr: vec![0; n + 1],
        row_idx: Vec::new(),
    };
    let mut values = Vec::new();
    for (&(j, i), &v) in &sorted {
        pattern.col_ptr[j + 1] += 1;
        pattern.row_idx.push(i);
        values.push(v);
    }
    for j in 0..n {
        pattern.col_ptr[j + 1] += pattern.col_ptr[j];
    }
    (pattern, values)
}

/// `I − γJ`, row by row.
fn dense(pattern: &SparsityPattern, values: &[f64], gamma: f64) -> Vec<Vec<f64>> {
    let n = pattern.n();
    let mut a = vec![vec![0.0; n]; n];
    for (i, row) in a.iter_mut().enumerate() {
        row[i] = 1.0;
    }
    for (j, ends) in pattern.col_ptr.windows(2).enumerate() {
        for p in ends[0]..ends[1] {
            a[pattern.row_idx[p]][j] -= gamma * values[p];
        }
    }
    a
}

fn residual(a: &[Vec<f64>], x: &[f64], b: &[f64]) -> f64 {
    let largest = x.iter().fold(1.0_f64, |m, v| m.max(v.abs()));
    a.iter()
        .zip(b)
        .map(|(row, b)| {
            let scale: f64 = row.iter().map(|v| v.abs()).sum::<f64>() * largest + b.abs();
            (row.iter().zip(x).map(|(a, x)| a * x).sum::<f64>() - b).abs() / scale
        })
        .fold(0.0, f64::max)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    /// Diagonally dominant matrices, as compartment models give them: no dense way out is taken.
    #[test]
    fn sparse_solution_satisfies_the_dense_equations(
        n in 1_usize..40,
        cells in prop::collection::vec((0_usize..40, 0_usize..40, 0.01_f64..5.0), 0..160),
        gamma in 0.001_f64..10.0,
        seed in prop::collection::vec(-10.0_f64..10.0, 40),
    ) {
        let mut cells: Vec<_> = cells.into_iter().map(|(i, j, v)| (i % n, j % n, v)).filter(|(i, j, _)| i != j).collect();
        cells.sort_by_key(|&(i, j, _)| (i, j));
        cells.dedup_by_key(|&mut (i, j, _)| (i, j));
        // What leaves a compartment is lost to it.
        let mut loss = vec![0.1; n];
        for &(_, j, v) in &cells {
            loss[j] += v;
        }
        cells.extend(loss.iter().enumerate().map(|(j, v)| (j, j, -v)));
        let (pattern, values) = matrix(n, &cells);
        prop_assert!(pattern.check(n).is_ok());
        let mut factors = LuFactors::new(Arc::new(SymbolicFactors::analyse(&pattern)));
        factors.refactor(gamma, &values).unwrap();
        prop_assert!(!factors.is_dense());
        let b = &seed[..n];
        let mut x = b.to_vec();
        factors.solve(&mut x);
        let a = dense(&pattern, &values, gamma);
        prop_assert!(residual(&a, &x, b) < 1e-12);
    }

    /// Any matrix at all: either solved or refused, and both ways agree after a second factorisation.
    #[test]
    fn arbitrary_matrices_are_solved_or_refused(
        n in 1_usize..16,
        cells in prop::collection::vec((0_usize..16, 0_usize..16, -3.0_f64..3.0), 0..100),
        gamma in prop::sample::select(vec![0.0, 0.25, 1.0, 2.0]),
        seed in prop::collection::vec(-10.0_f64..10.0, 16),
    ) {
        let (pattern, values) = matrix(n, &cells);
        let mut factors = LuFactors::new(Arc::new(SymbolicFactors::analyse(&pattern)));
        if factors.refactor(gamma, &values).is_ok() {
            let b = &seed[..n];
            let mut x = b.to_vec();
            factors.solve(&mut x);
            let a = dense(&pattern, &values, gamma);
            prop_assert!(residual(&a, &x, b) < 1e-6, "residual {}", residual(&a, &x, b));
            let mut again = b.to_vec();
            factors.refactor(gamma, &values).unwrap();
            factors.solve(&mut again);
            prop_assert_eq!(x, again);
        }
    }

    /// The order is a permutation and the program covers the pattern.
    #[test]
    fn order_is_a_permutation(n in 1_usize..60, cells in prop::collection::vec((0_usize..60, 0_usize..60), 0..300)) {
        let cells: Vec<_> = cells.into_iter().map(|(i, j)| (i, j, 1.0)).collect();
        let (pattern, _) = matrix(n, &cells);
        let symbolic = SymbolicFactors::analyse(&pattern);
        let mut order: Vec<usize> = symbolic.order().collect();
        order.sort_unstable();
        prop_assert_eq!(order, (0..n).collect::<Vec<_>>());
        prop_assert!(symbolic.nnz() >= n);
        prop_assert_eq!(SymbolicFactors::analyse(&pattern), symbolic);
    }
}

/// 1 − γJ is exactly zero on the diagonal: only a row exchange helps.
#[test]
fn a_zero_pivot_goes_to_the_dense_way_out() {
    let (pattern, values) = matrix(2, &[(0, 0, 1.0), (0, 1, 2.0), (1, 0, 3.0), (1, 1, 1.0)]);
    let mut factors = LuFactors::new(Arc::new(SymbolicFactors::analyse(&pattern)));
    factors.refactor(1.0, &values).unwrap();
    assert!(factors.is_dense());
    let mut x = [4.0, 9.0];
    factors.solve(&mut x);
    assert_eq!(x, [-3.0, -2.0]);
    // With a smaller γ the sparse program is back.
    factors.refactor(0.01, &values).unwrap();
    assert!(!factors.is_dense());
}

/// Dense throughout, below and above the dimensions that places of a byte reach.
#[test]
fn dense_matrices_of_any_dimension_are_solved() {
    for n in [63, 64, 200, 256, 257, 513, 600] {
        let pattern = SparsityPattern::dense(n);
        let values: Vec<f64> = (0..n * n)
            .map(|i| ((i * 7919) % 101) as f64 / 1e4 - 0.005)
            .collect();
        let mut factors = LuFactors::new(Arc::new(SymbolicFactors::analyse(&pattern)));
        factors.refactor(0.5, &values).unwrap();
        let b: Vec<f64> = (0..n).map(|i| (i % 17) as f64 - 8.0).collect();
        let mut x = b.clone();
        factors.solve(&mut x);
        let left = residual(&dense(&pattern, &values, 0.5), &x, &b);
        assert!(left < 1e-12, "{n}: {left}");
    }
}

#[test]
fn a_singular_matrix_is_refused() {
    let (pattern, values) = matrix(2, &[(0, 0, 1.0), (1, 1, 0.5)]);
    let mut factors = LuFactors::new(Arc::new(SymbolicFactors::analyse(&pattern)));
    assert_eq!(factors.refactor(1.0, &values), Err(FactorError::Singular));
    assert_eq!(
        factors.refactor(f64::NAN, &values),
        Err(FactorError::Singular)
    );
}

/// In the dense way out, too, an unknown without source stays exactly zero.
#[test]
fn the_dense_way_out_keeps_structural_zeros() {
    let cells = [
        (0, 0, 1.0),
        (0, 1, 2.0),
        (1, 0, 3.0),
        (1, 1, 1.0),
        (0, 2, 5.0),
        (2, 2, -40.0),
        (1, 2, 0.3),
    ];
    let (pattern, values) = matrix(3, &cells);
    let mut factors = LuFactors::new(Arc::new(SymbolicFactors::analyse(&pattern)));
    factors.refactor(1.0, &values).unwrap();
    assert!(factors.is_dense());
    let mut x = [4.0, 9.0, 0.0];
    factors.solve(&mut x);
    assert_eq!(x, [-3.0, -2.0, 0.0]);
}

/// A tridiagonal chain needs no fill at all.
#[test]
fn a_chain_is_factored_without_fill() {
    let n = 50_usize;
    let cells: Vec<_> = (0..n)
        .flat_map(|i| {
            [
                (i, i, -2.0),
                (i, (i + 1).min(n - 1), 1.0),
                (i, i.saturating_sub(1), 1.0),
            ]
        })
        .collect();
    let (pattern, _) = matrix(n, &cells);
    assert_eq!(SymbolicFactors::analyse(&pattern).nnz(), pattern.nnz());
}
