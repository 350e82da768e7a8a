//! Loops over vectors, compiled also for processors with 256-bit registers; which is used is found out once, at run
//! time. Sums have fixed lanes and nothing is contracted, so that the numbers are the same on every processor.
#![expect(
    clippy::indexing_slicing,
    reason = "numeric kernel: blocks run below the length of all columns"
)]

use multiversion::multiversion;

/// Adds to each of the first `COLUMNS` columns its weight times `more`, to all of them for some states at a time.
#[multiversion(targets("x86_64+avx2"))]
pub(super) fn add_multiples<const COLUMNS: usize>(
    z: &mut [Vec<f64>; 6],
    weights: &[f64; 6],
    more: &[f64],
) {
    let length = more.len();
    let mut columns = z.each_mut().map(|column| &mut column[..length]);
    let (blocks, rest) = more.as_chunks::<BLOCK>();
    for (i, block) in blocks.iter().enumerate() {
        for (column, weight) in columns.iter_mut().zip(weights).take(COLUMNS) {
            let own = &mut column[i * BLOCK..][..BLOCK];
            own.iter_mut()
                .zip(block)
                .for_each(|(z, m)| *z += weight * m);
        }
    }
    for (column, weight) in columns.iter_mut().zip(weights).take(COLUMNS) {
        let own = &mut column[length - rest.len()..];
        own.iter_mut().zip(rest).for_each(|(z, m)| *z += weight * m);
    }
}

/// Multiplies by a factor.
#[multiversion(targets("x86_64+avx2"))]
pub(super) fn scale(v: &mut [f64], factor: f64) {
    let all = v.iter_mut();
    all.for_each(|x| *x *= factor);
}

/// Horner's scheme: the polynomial with these columns at `s`.
#[multiversion(targets("x86_64+avx2"))]
pub(super) fn horner<const COLUMNS: usize>(y: &mut [f64], s: f64, z: &[Vec<f64>; 6]) {
    let length = y.len();
    let columns = z.each_ref().map(|column| &column[..length]);
    let whole = length - length % BLOCK;
    let (blocks, rest) = y.as_chunks_mut::<BLOCK>();
    for (i, block) in blocks.iter_mut().enumerate() {
        let mut value = [0.0; BLOCK];
        value.copy_from_slice(&columns[COLUMNS - 1][i * BLOCK..][..BLOCK]);
        for column in columns.iter().take(COLUMNS - 1).rev() {
            let own = &column[i * BLOCK..][..BLOCK];
            value.iter_mut().zip(own).for_each(|(y, z)| *y = *y * s + z);
        }
        *block = value;
    }
    for (i, y) in (whole..).zip(rest) {
        let mut value = columns[COLUMNS - 1][i];
        for column in columns.iter().take(COLUMNS - 1).rev() {
            value = value * s + column[i];
        }
        *y = value;
    }
}

/// Computes the residual of the equation of a step: `γ·f − (slope/l₁ + e)`, with `inverse` = 1/l₁.
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

/// Damps the update, adds it to the correction and gives the state that follows; also the update's sum of squares, as
/// [`sum_of_squares`] computes it.
#[multiversion(targets("x86_64+avx2"))]
pub(super) fn correct(
    correction: &mut [f64],
    update: &[f64],
    damping: f64,
    y: &mut [f64],
    state: &[f64],
    weights: &[f64],
) -> f64 {
    let (es, e_rest) = correction.as_chunks_mut::<4>();
    let (ds, d_rest) = update.as_chunks::<4>();
    let (ys, y_rest) = y.as_chunks_mut::<4>();
    let (zs, z_rest) = state.as_chunks::<4>();
    let (ws, w_rest) = weights.as_chunks::<4>();
    let mut lanes = [0.0_f64; 4];
    for ((((e, d), y), z), w) in es.iter_mut().zip(ds).zip(ys).zip(zs).zip(ws) {
        for i in 0..4 {
            let update = d[i] * damping;
            e[i] += update;
            y[i] = z[i] + e[i];
            let p = update * w[i];
            lanes[i] += p * p;
        }
    }
    let mut rest = 0.0;
    let all = e_rest
        .iter_mut()
        .zip(d_rest)
        .zip(y_rest)
        .zip(z_rest)
        .zip(w_rest);
    all.for_each(|((((e, d), y), z), w)| {
        let update = d * damping;
        *e += update;
        *y = z + *e;
        let p = update * w;
        rest += p * p;
    });
    sum_of_lanes(lanes) + rest
}

/// `e − quotient · s`.
#[multiversion(targets("x86_64+avx2"))]
pub(super) fn difference(d: &mut [f64], e: &[f64], quotient: f64, s: &[f64]) {
    let all = d.iter_mut().zip(e).zip(s);
    all.for_each(|((d, e), s)| *d = e - quotient * s);
}

/// Writes `1 / (rtol·|y| + atol)` with one `atol` for all. Gives whether all of these are finite, as [`all_finite`]
/// sees it, and the sum of squares of `y` with them, as [`sum_of_squares`] computes it: the division leaves time for
/// both.
#[multiversion(targets("x86_64+avx2"))]
pub(super) fn weights(y: &[f64], rtol: f64, atol: f64, w: &mut [f64]) -> (bool, f64) {
    let (ws, w_rest) = w.as_chunks_mut::<4>();
    let (ys, y_rest) = y.as_chunks::<4>();
    let (mut lanes, mut zeros) = ([0.0_f64; 4], [0.0_f64; 4]);
    for (w, y) in ws.iter_mut().zip(ys) {
        for i in 0..4 {
            w[i] = 1.0 / (rtol * y[i].abs() + atol);
            zeros[i] += w[i] * 0.0;
            let p = y[i] * w[i];
            lanes[i] += p * p;
        }
    }
    let (mut rest, mut zero) = (0.0, zeros.iter().sum::<f64>());
    for (w, y) in w_rest.iter_mut().zip(y_rest) {
        *w = 1.0 / (rtol * y.abs() + atol);
        zero += *w * 0.0;
        let p = y * *w;
        rest += p * p;
    }
    (!zero.is_nan(), sum_of_lanes(lanes) + rest)
}

/// Returns the order in which lanes are added.
#[inline(always)]
fn sum_of_lanes([a, b, c, d]: [f64; 4]) -> f64 {
    (a + c) + (b + d)
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
    sum_of_lanes(lanes) + rest
}

/// Returns whether all are finite: a product with 0 is NaN for an infinite factor.
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
