//! A first step when the caller names none.
//!
//! After E. Hairer, S. P. Nørsett and G. Wanner, "Solving Ordinary Differential Equations I", §II.4.

use super::OdeSystem;
use super::SolveError;
use super::bdf::BdfSolver;
use super::norm::wrms;

/// The first step may change no state by more than this part of itself, and cover no more than this
/// part of the way to the first output.
const SHARE_MAX: f64 = 0.1;

impl BdfSolver {
    /// Estimates a first step towards an output `distance` away; `self.dy` holds the derivative at
    /// the start. The second derivative is taken from one trial step of Euler's method.
    pub(super) fn estimate_step<S: OdeSystem + ?Sized>(
        &mut self,
        system: &mut S,
        distance: f64,
    ) -> Result<f64, SolveError> {
        let start = self.t;
        let mut upper = SHARE_MAX * distance;
        for ((y, f), w) in self.history.state().iter().zip(&self.dy).zip(&self.weights) {
            let room = SHARE_MAX * y.abs() + 1.0 / w;
            if f.abs() * upper > room {
                upper = room / f.abs();
            }
        }
        let lower = (100.0 * f64::EPSILON * start.abs().max(distance)).min(upper);
        let trial = (lower * upper).sqrt();
        self.delta.copy_from_slice(&self.dy);
        for ((y, z), f) in self.y.iter_mut().zip(self.history.state()).zip(&self.delta) {
            *y = z + trial * f;
        }
        self.t = start + trial;
        let finite = self.evaluate(system)?;
        self.t = start;
        if !finite {
            self.dy.copy_from_slice(&self.delta);
            return Ok(lower);
        }
        // Keep the slope of the start, turn the other into the second derivative.
        for (d, f) in self.delta.iter_mut().zip(&mut self.dy) {
            let slope = *d;
            *d = (*f - slope) / trial;
            *f = slope;
        }
        let curvature = wrms(&self.delta, &self.weights);
        let h = if curvature * upper * upper > 2.0 {
            (2.0 / curvature).sqrt()
        } else {
            (trial * upper).sqrt()
        };
        Ok((0.5 * h).clamp(lower, upper))
    }
}
