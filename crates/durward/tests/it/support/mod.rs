//! What these tests share: the real binary in a world of its own, and the real components.

pub(crate) mod approver;
pub(crate) mod authority;
pub(crate) mod chromium;
pub(crate) mod components;
pub(crate) mod decisions;
pub(crate) mod guarded;
pub(crate) mod inspecting;
pub(crate) mod program;
pub(crate) mod raised;
pub(crate) mod refusals;
pub(crate) mod served;
pub(crate) mod serving;
pub(crate) mod web;
pub(crate) mod world;
