//! Events: a condition and what it changes.

/// Tested at output and switch times, in file order; each event sees the changes of those before it.
#[derive(Debug, Clone, PartialEq)]
pub struct ModelEvent {
    /// Path or id, for messages.
    pub name: String,
    /// Position of the condition's formula; it fires if the value is exactly 1.
    pub condition: usize,
    /// Fires at most once in a run.
    pub one_time: bool,
    /// Its changes, in order.
    pub assignments: Vec<EventAssignment>,
}

/// One change of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EventAssignment {
    /// Position of the quantity changed.
    pub target: usize,
    /// Position of the new formula.
    pub formula: usize,
    /// Assign the value at that moment; otherwise the formula replaces the target's own.
    pub as_value: bool,
}
