//! The server behind: the one place of this crate where frames leave for it.

use std::borrow::Cow;
use std::io;
use std::process::ExitStatus;

use gate::Pass;
use gate::approval::Shown;
use net::outbound::{Child, ChildSpec};
use net::stdio::{FrameReader, FrameWriter};
use wire::jsonrpc::{Envelope, member};
use wire::{Bounds, scan_request};

/// A frame on its way, as bytes without their newline.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Frame(pub Vec<u8>);

impl Shown for Frame {
    /// The arguments of a tool or prompt; else all that the method is given.
    fn arguments(&self) -> Option<Cow<'_, str>> {
        let scan = scan_request(&self.0, &Bounds::default()).ok()?;
        let all = || Envelope::of(&scan).ok()?.payload;
        member(&scan.params, "arguments")
            .or_else(all)
            .map(Cow::Borrowed)
    }
}

/// What to start as the server. Built by the binary, spent here.
pub type ServerCommand = ChildSpec;

/// An MCP server over its standard streams.
pub struct Upstream {
    child: Child,
}

impl Upstream {
    /// Starts the server; its standard error goes to the log under `name`.
    ///
    /// # Errors
    /// Where the process cannot be started.
    pub fn start(command: &ServerCommand, name: &str) -> io::Result<Self> {
        Ok(Self {
            child: Child::spawn(command, name)?,
        })
    }

    /// Sends what the pass holds, exactly that, once. What remains open is the caller's.
    ///
    /// # Errors
    /// `BrokenPipe` where the server no longer reads; the pass is spent all the same, and what was
    /// open is settled as cancelled.
    pub fn send<P: Pass<Request = Frame>>(&mut self, pass: P) -> io::Result<P::Open> {
        let (frame, open) = pass.spend();
        let (_, writer) = self.child.streams();
        writer.ok_or(io::ErrorKind::BrokenPipe)?.send(&frame.0)?;
        Ok(open)
    }

    /// What comes from the server, and what still waits to be written to it.
    pub fn streams(&mut self) -> (&mut FrameReader, Option<&mut FrameWriter>) {
        self.child.streams()
    }

    /// Ends the server and everything that it started.
    pub async fn stop(&mut self) -> Option<ExitStatus> {
        self.child.stop().await
    }

    /// Waits for the server's own end.
    pub async fn wait_at_most(&mut self, wait_ms: u64) -> Option<ExitStatus> {
        self.child.wait_at_most(wait_ms).await
    }
}

/// How a server ended, in words.
#[must_use]
pub fn describe(status: ExitStatus) -> String {
    net::outbound::describe(status)
}
