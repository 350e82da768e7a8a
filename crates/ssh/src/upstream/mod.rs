//! The way out: the only modules that name the SSH library and open connections.

mod begin;
mod connection;
mod exec;
mod fault;
mod forward;
mod identities;
mod issued;
mod login;
mod mark;
mod rsa;
mod sftp;
mod sign;
mod verify;

pub(crate) use begin::Begin;
pub(crate) use connection::{Channel, Connection, Way};
pub(crate) use exec::{Bounds, Ended, Inspect, Kept, OnStop, Order, run};
pub(crate) use fault::{ConnectFault, OpenFault};
pub(crate) use forward::open as open_forward;
pub(crate) use mark::{Left, Mark, Marked, clean_up};
pub(crate) use sftp::{Attributes, Entry, Handle, Led, Opening, Sftp, Sink};
