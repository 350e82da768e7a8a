//! Coefficients of the fixed-leading-coefficient formula of order `q` on an uneven grid.
//!
//! Source: K. R. Jackson and R. Sacks-Davis, "An alternative implementation of variable step-size
//! multistep formulas for stiff ODEs", ACM TOMS 6 (1980); the test constants follow P. N. Brown,
//! G. D. Byrne and A. C. Hindmarsh, "VODE: a variable-coefficient ODE solver", SIAM J. Sci. Stat.
//! Comput. 10 (1989).
#![expect(
    clippy::indexing_slicing,
    reason = "numeric kernel on fixed arrays, orders are bounded by ORDER_MAX"
)]

use super::options::ORDER_MAX;

/// Coefficients of one step of order `q`.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct StepCoefficients {
    /// Weights with which the correction enters the history, `l[0] = 1`.
    pub(super) l: [f64; ORDER_MAX + 1],
    /// Correction norm times this is the local error estimate at order `q`.
    pub(super) error: f64,
    /// The same for order `q − 1`, applied to the last history column.
    pub(super) error_lower: f64,
    /// The same for order `q + 1`, applied to the scaled change of the correction.
    pub(super) error_higher: f64,
    /// Scale of the correction used to compare the corrections of two steps.
    pub(super) scale: f64,
}

impl StepCoefficients {
    /// Returns the leading coefficient: `γ = h / l₁`.
    pub(super) fn l1(&self) -> f64 {
        self.l[1]
    }
}

/// Computes the coefficients for order `q`, step `h` and the past steps `tau[1]`, `tau[2]`, …
///
/// The constants of the neighbouring orders are needed only when an order change is due (`neighbours`).
#[expect(clippy::cast_precision_loss, reason = "orders are at most five")]
pub(super) fn coefficients(
    q: usize,
    h: f64,
    tau: &[f64; ORDER_MAX + 2],
    neighbours: bool,
) -> StepCoefficients {
    let mut l = [0.0; ORDER_MAX + 1];
    l[0] = 1.0;
    l[1] = 1.0;
    // alpha: minus the harmonic sum; alpha_hat: its uneven-grid counterpart.
    let (mut alpha, mut alpha_hat) = (-1.0, -1.0);
    let (mut xi_inv, mut xi_star_inv) = (1.0, 1.0);
    let mut span = h;
    if q > 1 {
        for j in 2..q {
            span += tau[j - 1];
            xi_inv = h / span;
            alpha -= 1.0 / j as f64;
            multiply(&mut l, j, xi_inv);
        }
        alpha -= 1.0 / q as f64;
        xi_star_inv = -l[1] - alpha;
        span += tau[q - 1];
        xi_inv = h / span;
        alpha_hat = -l[1] - xi_inv;
        multiply(&mut l, q, xi_star_inv);
    }
    let order = q as f64;
    let a1 = 1.0 - alpha_hat + alpha;
    let a2 = 1.0 + order * a1;
    let mut c = StepCoefficients {
        l,
        error: (a1 / (alpha * a2)).abs(),
        error_lower: 1.0,
        error_higher: 0.0,
        scale: (a2 * xi_star_inv / (l[q] * xi_inv)).abs(),
    };
    if neighbours {
        if q > 1 {
            let a3 = alpha + 1.0 / order;
            let a4 = alpha_hat + xi_inv;
            c.error_lower = (xi_star_inv / l[q] * ((1.0 - a4 + a3) / a3)).abs();
        }
        span += tau[q];
        xi_inv = h / span;
        let a5 = alpha - 1.0 / (order + 1.0);
        let a6 = alpha_hat - xi_inv;
        c.error_higher = ((1.0 - a6 + a5) / a2 / (xi_inv * (order + 2.0) * a5)).abs();
    }
    c
}

/// Multiplies the polynomial `l` (degree below `degree`) by `1 + x·factor`.
fn multiply(l: &mut [f64; ORDER_MAX + 1], degree: usize, factor: f64) {
    for i in (1..=degree).rev() {
        l[i] += l[i - 1] * factor;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// On an even grid the formula is the classical one: l[1] is the harmonic number and the
    /// error constant 1 / ((q+1)·l[1]).
    #[test]
    fn even_grid_gives_classical_constants() {
        for q in 1..=ORDER_MAX {
            let harmonic: f64 = (1..=q).map(|j| 1.0 / j as f64).sum();
            let c = coefficients(q, 0.5, &[0.5; ORDER_MAX + 2], true);
            assert!((c.l[1] - harmonic).abs() < 1e-14, "order {q}");
            assert!(
                (c.error * (q as f64 + 1.0) * harmonic - 1.0).abs() < 1e-12,
                "order {q}: {}",
                c.error
            );
        }
    }
}
