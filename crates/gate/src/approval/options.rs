//! How long a question waits, how long a yes is remembered, and how many questions there may be.

/// Shortest time that a person is given, in seconds.
pub const TIMEOUT_S_MIN: u64 = 5;
/// Longest time that a person is given, in seconds.
pub const TIMEOUT_S_MAX: u64 = 300;
/// Longest time that a yes is remembered, in seconds.
pub const REMEMBER_S_MAX: u64 = 3_600;
/// Most questions that may be configured to wait at once.
pub const PENDING_LIMIT: usize = 100_000;

/// The bounds of approval.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Options {
    /// How long a question waits before it counts as a no, in milliseconds.
    pub timeout_ms: u64,
    /// How long *allow* is remembered, in milliseconds; 0: never.
    pub remember_ms: u64,
    /// Most questions that wait at once.
    pub pending_max: usize,
    /// Most questions of one caller that wait at once, so that nobody wears the approver out.
    pub waiting_per_caller_max: usize,
    /// Most questions that one caller may raise within a minute.
    pub asked_per_minute_max: usize,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            timeout_ms: 50_000,
            remember_ms: 600_000,
            pending_max: 1_000,
            waiting_per_caller_max: 20,
            asked_per_minute_max: 60,
        }
    }
}
