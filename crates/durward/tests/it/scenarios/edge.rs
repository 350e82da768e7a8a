//! The two edges: a raw client and the `durward` that it speaks to, over stdio and over HTTP.

use std::time::Duration;

use super::cell::{Cell, Edge};
use super::row::Row;
use super::{http, stdio};
use crate::support::guarded::Place;

/// A client with the handshake done, and `durward` behind it.
pub(crate) trait Driver {
    /// Sends one frame.
    fn send(&mut self, frame: &str);
    /// The next frame that came, whichever way; none where nothing came in time.
    fn receive(&mut self, longest: Duration) -> Option<String>;
    /// Cancels a request, by its id as it was spelled.
    fn cancel(&mut self, id: &str);
    /// Ends like a client that was killed.
    fn vanish(&mut self);
    /// Ends in order and waits until `durward` has ended.
    fn finish(self: Box<Self>) -> Finish;
}

/// What is known only at the end.
#[derive(Debug, Default)]
pub(crate) struct Finish {
    /// Frames that nobody waited for.
    pub(crate) rest: Vec<String>,
    /// The statuses of the requests that [`Driver::send`] sent, in order; none over stdio.
    pub(crate) statuses: Vec<String>,
    /// The exit code, or `signal`.
    pub(crate) exit: String,
}

/// What `durward` is to stand before.
pub(crate) enum Behind<'a> {
    /// The words of a command.
    Command(&'a [String]),
    /// The URL of an endpoint.
    Url(&'a str),
    /// A configuration in which the server `peer` is built in.
    Configuration(&'a str),
}

/// Starts `durward` and does the handshake.
pub(crate) fn open(place: &Place, row: &Row, cell: Cell, behind: &Behind<'_>) -> Box<dyn Driver> {
    match cell.edge {
        Edge::Stdio => Box::new(stdio::Stdio::open(place, row, cell, behind)),
        Edge::Http => Box::new(http::Http::open(place, row, cell, behind)),
    }
}

/// The era as the raw clients name it.
pub(crate) fn era(row: &Row, cell: Cell) -> mcp::client::Era {
    match cell.era {
        super::cell::Era::Legacy => mcp::client::Era::Legacy(row.legacy),
        super::cell::Era::Modern => mcp::client::Era::Modern,
    }
}

/// The exit code as the table writes it.
pub(crate) fn exit(status: std::process::ExitStatus) -> String {
    status
        .code()
        .map_or("signal".to_owned(), |code| code.to_string())
}
