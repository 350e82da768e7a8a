//! What the black-box tests share: the real binary in a world of its own, and the real components.

pub mod approver;
pub mod components;
pub mod decisions;
pub mod raised;
pub mod world;
