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
    /// The suite's usual values.
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
