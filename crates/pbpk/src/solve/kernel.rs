//! Loops over vectors, compiled also for processors with 256-bit registers; which is used is found out once, at run time.
//! Sums have fixed lanes and nothing is contracted, so that the numbers are the same on every processor.
#![expect(
    clippy::indexing_slicing,
    reason = "numeric kernel: blocks run below the length of all columns"
)]

use multiversion::multiversion;

/// Adds `weight · more` to `sum`.
#[multiversion(targets("x86_64+avx2"))]
pub(super) fn add_multiple(sum: &mut [f64], weight: f64, more: &[f64]) {
    let pairs = sum.iter_mut().zip(more);
    pairs.for_each(|(s, m)| *s += weight * m);
}

/// Multiplies by a factor.
#[multiversion(targets("x86_64+avx2"))]
pub(super) fn scale(v: &mut [f64], factor: f64) {
    let all = v.iter_mut();
    all.for_each(|x| *x *= factor);
}

/// One step of Horner's scheme: `y = y · s + z`.
#[multiversion(targets("x86_64+avx2"))]
pub(super) fn horner(y: &mut [f64], s: f64, z: &[f64]) {
    let pairs = y.iter_mut().zip(z);
    pairs.for_each(|(y, z)| *y = *y * s + z);
}

/// What is left of the equation of a step: `γ·f − (slope/l₁ + e)`, with `inverse` = 1/l₁.
#[multiversion(targets("x86_64+avx2"))]
pub(super) fn residual(
    left: &mut [f64],
    gamma: f64,
    rates: &[f64],
    inverse: f64,
    slopes: &[f64],
    correction: &[f64],
) {
    let all = left.iter_mut().zip(rates).zip(slopes).zip(correction);
    all.for_each(|(((d, f), z), e)| *d = gamma * f - (inverse * z + e));
}

/// Adds the update to the correction and gives the state that follows.
#[multiversion(targets("x86_64+avx2"))]
pub(super) fn correct(correction: &mut [f64], update: &[f64], y: &mut [f64], state: &[f64]) {
    let all = correction.iter_mut().zip(update).zip(y).zip(state);
    all.for_each(|(((e, d), y), z)| {
        *e += d;
        *y = z + *e;
    });
}

/// `e − quotient · s`.
#[multiversion(targets("x86_64+avx2"))]
pub(super) fn difference(d: &mut [f64], e: &[f64], quotient: f64, s: &[f64]) {
    let all = d.iter_mut().zip(e).zip(s);
    all.for_each(|((d, e), s)| *d = e - quotient * s);
}

/// `1 / (rtol·|y| + atol)` with one `atol` for all.
#[multiversion(targets("x86_64+avx2"))]
pub(super) fn weights(y: &[f64], rtol: f64, atol: f64, w: &mut [f64]) {
    let pairs = w.iter_mut().zip(y);
    pairs.for_each(|(w, y)| *w = 1.0 / (rtol * y.abs() + atol));
}

/// Sum of squares of `v·w` in four lanes.
#[multiversion(targets("x86_64+avx2"))]
pub(super) fn sum_of_squares(v: &[f64], w: &[f64]) -> f64 {
    let (vs, v_rest) = v.as_chunks::<4>();
    let (ws, w_rest) = w.as_chunks::<4>();
    let mut lanes = [0.0_f64; 4];
    for (a, b) in vs.iter().zip(ws) {
        for ((lane, x), y) in lanes.iter_mut().zip(a).zip(b) {
            let p = x * y;
            *lane += p * p;
        }
    }
    let mut rest = 0.0;
    for (x, y) in v_rest.iter().zip(w_rest) {
        let p = x * y;
        rest += p * p;
    }
    let [a, b, c, d] = lanes;
    ((a + c) + (b + d)) + rest
}

/// Whether all are finite: a product with 0 is no number where a factor is not finite.
#[multiversion(targets("x86_64+avx2"))]
pub(super) fn all_finite(v: &[f64]) -> bool {
    let (chunks, rest) = v.as_chunks::<8>();
    let mut lanes = [0.0_f64; 8];
    for chunk in chunks {
        for (lane, x) in lanes.iter_mut().zip(chunk) {
            *lane += x * 0.0;
        }
    }
    let rest = rest.iter().fold(0.0, |sum, x| sum + x * 0.0);
    !(lanes.iter().sum::<f64>() + rest).is_nan()
}

/// Adds to each column those behind it, in the pattern of Pascal's triangle: the polynomial one step on.
#[multiversion(targets("x86_64+avx2"))]
pub(super) fn advance<const COLUMNS: usize>(z: &mut [Vec<f64>; 6]) {
    let step = |low: &mut f64, high: f64| *low += high;
    triangle::<COLUMNS>(z, step);
}

/// Undoes [`advance`].
#[multiversion(targets("x86_64+avx2"))]
pub(super) fn retreat<const COLUMNS: usize>(z: &mut [Vec<f64>; 6]) {
    let step = |low: &mut f64, high: f64| *low -= high;
    triangle::<COLUMNS>(z, step);
}

/// States that are taken through the triangle at once.
const BLOCK: usize = 4;

/// Combines the first `COLUMNS` columns, all of them for some states at a time.
#[inline(always)]
fn triangle<const COLUMNS: usize>(z: &mut [Vec<f64>; 6], combine: impl Fn(&mut f64, f64)) {
    let length = z[0].len();
    let whole = length - length % BLOCK;
    let mut columns = z.each_mut().map(|column| &mut column[..length]);
    for i in (0..whole).step_by(BLOCK) {
        let mut all = [[0.0; BLOCK]; COLUMNS];
        for (block, column) in all.iter_mut().zip(&columns) {
            block.copy_from_slice(&column[i..i + BLOCK]);
        }
        pascal(&mut all, &combine);
        for (block, column) in all.iter().zip(&mut columns).take(COLUMNS - 1) {
            column[i..i + BLOCK].copy_from_slice(block);
        }
    }
    for i in whole..length {
        let mut all = [[0.0]; COLUMNS];
        for (block, column) in all.iter_mut().zip(&columns) {
            block[0] = column[i];
        }
        pascal(&mut all, &combine);
        for (block, column) in all.iter().zip(&mut columns).take(COLUMNS - 1) {
            column[i] = block[0];
        }
    }
}

#[inline(always)]
fn pascal<const COLUMNS: usize, const STATES: usize>(
    all: &mut [[f64; STATES]; COLUMNS],
    combine: &impl Fn(&mut f64, f64),
) {
    for k in 1..COLUMNS {
        for j in (k..COLUMNS).rev() {
            let high = all[j];
            for (low, high) in all[j - 1].iter_mut().zip(high) {
                combine(low, high);
            }
        }
    }
}
