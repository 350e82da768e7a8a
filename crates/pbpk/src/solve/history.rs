//! The scaled derivative history: column `j` holds `h^j / j! · y^(j)` of the interpolating polynomial.
//!
//! Order changes follow G. D. Byrne and A. C. Hindmarsh, "A polyalgorithm for the numerical solution
//! of ordinary differential equations", ACM TOMS 1 (1975).
#![expect(
    clippy::indexing_slicing,
    reason = "numeric kernel on fixed arrays, orders are bounded by ORDER_MAX"
)]

use super::kernel;
use super::options::ORDER_MAX;

/// Past of the solution, enough to predict the next point and to interpolate the last step.
#[derive(Debug, Clone)]
pub(super) struct SolutionHistory {
    /// Columns 0 to `order` are valid.
    pub(super) z: [Vec<f64>; ORDER_MAX + 1],
    /// Correction of the step before an order change is considered.
    pub(super) saved: Vec<f64>,
    /// Step sizes of the past, newest at 1.
    pub(super) tau: [f64; ORDER_MAX + 2],
    /// Order of the formula.
    pub(super) order: usize,
    /// Step by which the columns are scaled.
    pub(super) h: f64,
}

impl SolutionHistory {
    /// Returns an empty history for `n` states.
    pub(super) fn new(n: usize) -> Self {
        Self {
            z: std::array::from_fn(|_| vec![0.0; n]),
            saved: vec![0.0; n],
            tau: [0.0; ORDER_MAX + 2],
            order: 1,
            h: 0.0,
        }
    }

    /// Forgets everything but the state `y`; the derivative column is still to be filled.
    pub(super) fn restart(&mut self, y: &[f64]) {
        for column in &mut self.z {
            column.fill(0.0);
        }
        self.z[0].copy_from_slice(y);
        self.saved.fill(0.0);
        self.tau = [0.0; ORDER_MAX + 2];
        self.order = 1;
        self.h = 0.0;
    }

    /// Returns the newest (or predicted) state.
    pub(super) fn state(&self) -> &[f64] {
        &self.z[0]
    }

    /// Returns the newest (or predicted) derivative times `h`.
    pub(super) fn slope(&self) -> &[f64] {
        &self.z[1]
    }

    /// Returns the highest column in use.
    pub(super) fn last(&self) -> &[f64] {
        &self.z[self.order]
    }

    /// Sets the derivative, scaled by the present step.
    pub(super) fn set_slope(&mut self, dy: &[f64]) {
        for (z, d) in self.z[1].iter_mut().zip(dy) {
            *z = self.h * d;
        }
    }

    /// Advances every column by one step: multiplication by Pascal's triangle.
    pub(super) fn predict(&mut self) {
        match self.order {
            1 => kernel::advance::<2>(&mut self.z),
            2 => kernel::advance::<3>(&mut self.z),
            3 => kernel::advance::<4>(&mut self.z),
            4 => kernel::advance::<5>(&mut self.z),
            _ => kernel::advance::<6>(&mut self.z),
        }
    }

    /// Undoes [`SolutionHistory::predict`].
    pub(super) fn retract(&mut self) {
        match self.order {
            1 => kernel::retreat::<2>(&mut self.z),
            2 => kernel::retreat::<3>(&mut self.z),
            3 => kernel::retreat::<4>(&mut self.z),
            4 => kernel::retreat::<5>(&mut self.z),
            _ => kernel::retreat::<6>(&mut self.z),
        }
    }

    /// Adds the accepted correction with its weights and shifts the step sizes.
    pub(super) fn accept(&mut self, correction: &[f64], l: &[f64; ORDER_MAX + 1]) {
        match self.order {
            1 => kernel::add_multiples::<2>(&mut self.z, l, correction),
            2 => kernel::add_multiples::<3>(&mut self.z, l, correction),
            3 => kernel::add_multiples::<4>(&mut self.z, l, correction),
            4 => kernel::add_multiples::<5>(&mut self.z, l, correction),
            _ => kernel::add_multiples::<6>(&mut self.z, l, correction),
        }
        for i in (2..=self.order).rev() {
            self.tau[i] = self.tau[i - 1];
        }
        if self.order == 1 && self.tau[1] > 0.0 {
            self.tau[2] = self.tau[1];
        }
        self.tau[1] = self.h;
    }

    /// Scales the columns to a step `eta` times as long.
    pub(super) fn rescale(&mut self, eta: f64) {
        let mut factor = eta;
        for column in self.z.iter_mut().take(self.order + 1).skip(1) {
            kernel::scale(column, factor);
            factor *= eta;
        }
        self.h *= eta;
    }

    /// Raises the order by one, using the last correction to form the new column.
    #[expect(clippy::cast_precision_loss, reason = "orders are at most five")]
    pub(super) fn raise(&mut self, correction: &[f64]) {
        let q = self.order;
        let mut l = [0.0; ORDER_MAX + 2];
        l[2] = 1.0;
        let (mut alpha0, mut alpha1, mut product, mut xi_old) = (-1.0, 1.0, 1.0, 1.0);
        let mut span = self.h;
        for j in 1..q {
            span += self.tau[j + 1];
            let xi = span / self.h;
            product *= xi;
            alpha0 -= 1.0 / (j + 1) as f64;
            alpha1 += 1.0 / xi;
            for i in (2..=j + 2).rev() {
                l[i] = l[i] * xi_old + l[i - 1];
            }
            xi_old = xi;
        }
        let a = (-alpha0 - alpha1) / product;
        let (low, high) = self.z.split_at_mut(q + 1);
        for (z, c) in high[0].iter_mut().zip(correction) {
            *z = a * c;
        }
        for (column, weight) in low.iter_mut().zip(&l).skip(2) {
            for (z, c) in column.iter_mut().zip(&high[0]) {
                *z += weight * c;
            }
        }
        self.order = q + 1;
    }

    /// Lowers the order by one: takes the last column out of the others.
    pub(super) fn lower(&mut self) {
        let q = self.order;
        let mut l = [0.0; ORDER_MAX + 1];
        l[2] = 1.0;
        let mut span = 0.0;
        for j in 1..q.saturating_sub(1) {
            span += self.tau[j];
            let xi = span / self.h;
            for i in (2..=j + 2).rev() {
                l[i] = l[i] * xi + l[i - 1];
            }
        }
        let (low, high) = self.z.split_at_mut(q);
        for (column, weight) in low.iter_mut().zip(&l).skip(2) {
            for (z, c) in column.iter_mut().zip(&high[0]) {
                *z -= weight * c;
            }
        }
        self.order = q - 1;
    }

    /// Evaluates the polynomial `s` steps away from the newest point.
    pub(super) fn interpolate(&self, s: f64, y: &mut [f64]) {
        match self.order {
            1 => kernel::horner::<2>(y, s, &self.z),
            2 => kernel::horner::<3>(y, s, &self.z),
            3 => kernel::horner::<4>(y, s, &self.z),
            4 => kernel::horner::<5>(y, s, &self.z),
            _ => kernel::horner::<6>(y, s, &self.z),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cubic() -> SolutionHistory {
        // y = 1 + 2t + 3t² + 4t³ at t = 0 with h = 1.
        let mut h = SolutionHistory::new(1);
        h.order = 3;
        h.h = 1.0;
        h.tau = [1.0; ORDER_MAX + 2];
        for (column, value) in h.z.iter_mut().zip([1.0, 2.0, 3.0, 4.0]) {
            column[0] = value;
        }
        h
    }

    #[test]
    fn prediction_is_exact_on_polynomials_and_can_be_undone() {
        let mut h = cubic();
        h.predict();
        let found: Vec<f64> = h.z.iter().take(4).map(|c| c[0]).collect();
        assert_eq!(found, [10.0, 20.0, 15.0, 4.0]);
        h.retract();
        let found: Vec<f64> = h.z.iter().take(4).map(|c| c[0]).collect();
        assert_eq!(found, [1.0, 2.0, 3.0, 4.0]);
    }

    #[test]
    fn rescaling_keeps_the_polynomial() {
        let mut h = cubic();
        let (mut a, mut b) = ([0.0], [0.0]);
        h.interpolate(-0.5, &mut a);
        h.rescale(0.25);
        h.interpolate(-2.0, &mut b);
        assert_eq!(a, b);
    }

    #[test]
    fn lowering_keeps_the_value_the_slope_and_the_past_points() {
        let mut h = cubic();
        let past = |h: &SolutionHistory, s: f64| {
            let mut y = [0.0];
            h.interpolate(s, &mut y);
            y[0]
        };
        let before = (past(&h, 0.0), h.z[1][0], past(&h, -1.0));
        h.lower();
        assert_eq!(h.order, 2);
        assert_eq!((past(&h, 0.0), h.z[1][0], past(&h, -1.0)), before);
    }
}
