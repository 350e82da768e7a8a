//! The life of a call, once: read, judged, asked about, sent, answered, settled. The edges bring
//! clients, `upstream` brings servers; nothing here knows how either is spoken to.
//!
//! Invariants, as absences: no request is sent twice once any of it has left; nothing a server asks
//! of its client, in a request or inside a result, reaches the client unjudged; no task is spawned
//! here, an edge runs what is handed to it.

mod answer;
mod basis;
mod begin;
mod checked;
mod client;
pub mod form;
pub mod input_required;
mod inspected;
mod listens;
mod lists;
mod long_reading;
mod notify;
mod order;
mod questions;
mod read;
mod refused;
mod run;
mod server;
mod suspended;
mod under_way;
mod unlisted;
mod wait;

pub use questions::INPUTS_MAX;
pub use server::ServerOptions;
pub use suspended::PARKED_MAX;
pub use under_way::SERVER_REQUESTS_MAX;

pub(crate) use basis::{Basis, ToList};
pub(crate) use begin::Begun;
pub(crate) use client::{Asker, CallStep, Client, Work};
pub(crate) use inspected::withheld;
pub(crate) use lists::{ENTRIES_MAX, Lists};
pub(crate) use order::Order;
pub(crate) use questions::Question;
pub(crate) use read::{Asked, IncomingRequest};
pub(crate) use run::{Run, Said};
pub(crate) use server::{Server, Shown};
pub(crate) use suspended::Lot;
pub(crate) use under_way::{CallGuard, Cancelled, UnderWay, Why};
