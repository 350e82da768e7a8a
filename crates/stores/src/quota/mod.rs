//! Budgets by quota leases: a server grants each replica a part of every account, and calls reserve from that part.
//!
//! The claim of a replica on an account is one number, the use that it may reach within the window. The claims of all
//! replicas together never exceed the limit, and no replica exceeds its claim, so the limit holds without a message
//! per call. A claim is raised and lowered to absolute targets, and each message repeats it, so a server that has
//! lost its state learns it again.

mod counter;
mod report;
mod server;
mod table;

pub use counter::{LeaseClock, LeaseOptions, LeasedCounter, OnLoss, OpenError};
pub use server::{
    BeatOperation, BeatRequest, FleetState, QuotaAnswer, QuotaExpiry, QuotaOperation, QuotaReply,
    QuotaRequest, QuotaServer,
};
