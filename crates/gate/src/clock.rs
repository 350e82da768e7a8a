//! Time, passed in: the gate itself never looks at a clock.

/// What tells the time.
pub trait Clock: Send + Sync {
    /// Milliseconds since 1970-01-01 UTC. May be set back by the operator.
    fn wall_ms(&self) -> i64;
    /// Nanoseconds since some fixed moment. Never goes back.
    fn mono_ns(&self) -> u64;
    /// As [`Self::mono_ns`], at most a few milliseconds ago, where that is cheaper to know.
    fn about_ns(&self) -> u64 {
        self.mono_ns()
    }
}
