//! Solver settings of a file.

/// Tolerances and bounds for the integration; times in minutes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SolverSettings {
    /// Absolute tolerance on the scaled state.
    pub abs_tol: f64,
    /// Relative tolerance.
    pub rel_tol: f64,
    /// First step; 0: the solver chooses.
    pub h0: f64,
    /// Smallest step; 0: no bound.
    pub h_min: f64,
    /// Largest step; 0: no bound.
    pub h_max: f64,
    /// Internal steps per output interval.
    pub max_steps: u64,
    /// Whether the file asks for the analytic Jacobian (ours is always analytic).
    pub use_jacobian: bool,
    /// Whether negative values of states that forbid them end the run.
    pub check_negative: bool,
}

impl Default for SolverSettings {
    /// Returns the suite's usual values.
    fn default() -> Self {
        Self {
            abs_tol: 1e-10,
            rel_tol: 1e-5,
            h0: 1e-10,
            h_min: 0.0,
            h_max: 60.0,
            max_steps: 100_000,
            use_jacobian: true,
            check_negative: true,
        }
    }
}

impl SolverSettings {
    /// Most internal steps per output interval that are accepted.
    pub const STEPS_MAX: u64 = 1_000_000_000;

    /// Sets the setting of this name (as in either file format, any case, spaces ignored); unknown names are passed
    /// over.
    ///
    /// # Errors
    /// A text, if the value is no usable number for that setting.
    pub fn set(&mut self, name: &str, value: f64) -> Result<(), String> {
        let folded: String = name
            .chars()
            .filter(|c| !c.is_whitespace())
            .collect::<String>()
            .to_ascii_lowercase();
        let positive = || {
            if value.is_finite() && value > 0.0 {
                Ok(value)
            } else {
                Err(format!(
                    "solver setting {name} must be positive, found {value}"
                ))
            }
        };
        let not_negative = || {
            if value.is_finite() && value >= 0.0 {
                Ok(value)
            } else {
                Err(format!(
                    "solver setting {name} must not be negative, found {value}"
                ))
            }
        };
        match folded.as_str() {
            "abstol" | "absolutetolerance" => self.abs_tol = positive()?,
            "reltol" | "relativetolerance" => self.rel_tol = positive()?,
            "h0" => self.h0 = not_negative()?,
            "hmin" => self.h_min = not_negative()?,
            "hmax" => self.h_max = not_negative()?,
            "mxstep" => self.max_steps = not_negative()?.min(Self::STEPS_MAX as f64) as u64,
            "usejacobian" => self.use_jacobian = value != 0.0,
            "checkfornegativevalues" => self.check_negative = value != 0.0,
            _ => {}
        }
        Ok(())
    }
}
