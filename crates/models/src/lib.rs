//! The face of model APIs: OpenAI's and Anthropic's dialects in front, providers behind, the gate between.
//!
//! A request is read once, judged as a call to one target of the model that it names, and sent by a provider
//! that takes nothing but a spent pass. Where a target fails before the first byte of its reply, the same
//! request goes to the next one; each target is judged by the same rules before it is used.
//!
//! Invariants, as absences:
//! - nothing is sent without a pass: [`Provider::send`] takes a [`gate::Spent`], and only the gate makes one;
//! - no byte of a body changes but `model` and the stream options, where both sides speak one dialect;
//! - no stream ends as if it were whole where it is not;
//! - no prompt, completion or key is logged or recorded: there is no field for them;
//! - nothing here names `net::outbound` outside of [`upstream`].

pub mod accounts;
pub mod budget;
mod cache;
mod call;
pub mod catalogue;
pub mod door;
mod face;
mod inspect;
mod key;
pub mod mock;
pub mod prices;
mod provider;
mod request;
mod signatures;
mod tally;
pub mod upstream;

pub use accounts::{AccountOptions, Accounts};
pub use budget::{BudgetRule, Budgets, Most, Per};
pub use cache::{CacheOptions, CachePer};
pub use call::{RoutedRequest, settle_left};
pub use catalogue::{Alias, Catalogue, CatalogueFault, Rotation, Route, Target};
pub use face::{AccountsFace, Face, FaceOptions};
pub use prices::{Price, Prices};
pub use provider::{
    Address, Fault, FaultScope, Offer, Provider, Remedy, Reply, ReplyBody, RestingKey, Sent,
    Trouble,
};
pub use request::ModelRequest;
pub use tally::Counted;
