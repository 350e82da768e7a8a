//! The server behind: the one place of this crate where frames leave for it.

pub mod http;
mod stdio;

use std::borrow::Cow;
use std::io;
use std::process::ExitStatus;

use gate::approval::Shown;
use gate::{Pass, PeerId, Spent};
use net::outbound::ChildSpec;
use wire::jsonrpc::{Envelope, member};
use wire::{Bounds, FrameEvent, scan_request};

use crate::frames::Failure;
use http::Link;
use stdio::Stdio;

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

/// One MCP server for one client: a child of ours, or one that is reached over HTTP.
pub struct Upstream {
    id: PeerId,
    kind: Kind,
}

enum Kind {
    Stdio(Box<Stdio>),
    Http(Link),
}

/// What happened at the server's side.
#[derive(Debug)]
pub enum Turn {
    /// Something came, [`Upstream::next`] gives it; `false`: nothing more will come.
    Read(io::Result<bool>),
    /// What was queued for the server has been written.
    Flushed(io::Result<()>),
}

/// What comes from the server.
#[derive(Debug)]
pub enum Arrival<'a> {
    /// A frame.
    Frame(&'a [u8]),
    /// The beginning of a frame that was longer than the bound and was dropped.
    TooLong(Vec<u8>),
    /// The call with this id, as spelled, will have no answer.
    Failed(String, Failure),
    /// Something is to be noted: an event's name and a sentence.
    Odd(&'static str, String),
}

impl Upstream {
    /// Starts the server; its standard error goes to the log under `name`.
    ///
    /// # Errors
    /// Where the process cannot be started.
    pub fn start(command: &ServerCommand, name: &str) -> io::Result<Self> {
        Ok(Self {
            id: PeerId::server(name),
            kind: Kind::Stdio(Box::new(Stdio::start(command, name)?)),
        })
    }

    /// A server that is reached over HTTP.
    #[must_use]
    pub fn over_http(link: Link) -> Self {
        Self {
            id: link.id().clone(),
            kind: Kind::Http(link),
        }
    }

    /// The name that passes for it are made out to.
    #[must_use]
    pub fn id(&self) -> &PeerId {
        &self.id
    }

    /// Sends what was spent here, exactly that.
    ///
    /// # Errors
    /// `BrokenPipe` where the server no longer reads. Over HTTP what goes wrong arrives later, as
    /// [`Arrival::Failed`]. `InvalidInput` where it was spent at another peer; nothing is sent then.
    pub fn send(&mut self, spent: Spent<Frame>) -> io::Result<()> {
        let frame = spent.take(&self.id).map_err(elsewhere)?;
        match &mut self.kind {
            Kind::Stdio(stdio) => stdio.send(&frame.0),
            Kind::Http(link) => {
                link.send(frame);
                Ok(())
            }
        }
    }

    /// How the server is reached, as the journal names it.
    #[must_use]
    pub fn transport(&self) -> &'static str {
        match &self.kind {
            Kind::Stdio(_) => "stdio",
            Kind::Http(_) => "http",
        }
    }

    /// Spends a pass here and sends what it holds. What remains open is the caller's.
    ///
    /// # Errors
    /// As [`Upstream::send`]; what was open is settled then.
    pub fn send_pass<P: Pass<Request = Frame>>(&mut self, pass: P) -> io::Result<P::Open> {
        let (spent, open) = pass.spend(&self.id).map_err(elsewhere)?;
        self.send(spent)?;
        Ok(open)
    }

    /// What is sent from now on leaves together, with [`Upstream::release`].
    pub fn hold(&mut self) {
        match &mut self.kind {
            Kind::Stdio(stdio) => stdio.hold(),
            // Each message is a request of its own there.
            Kind::Http(_) => {}
        }
    }

    /// Sends what was held back.
    ///
    /// # Errors
    /// `BrokenPipe` where the server no longer reads.
    pub fn release(&mut self) -> io::Result<()> {
        match &mut self.kind {
            Kind::Stdio(stdio) => stdio.release(),
            Kind::Http(_) => Ok(()),
        }
    }

    /// Waits until something happens at the server's side. Cancel-safe.
    pub async fn turn(&mut self, may_read: bool) -> Turn {
        match &mut self.kind {
            Kind::Stdio(stdio) => stdio.turn(may_read).await,
            Kind::Http(_) if !may_read => std::future::pending().await,
            Kind::Http(link) => Turn::Read(link.fill().await),
        }
    }

    /// Reads once. Cancel-safe.
    ///
    /// # Errors
    /// What the stream says.
    pub async fn fill(&mut self) -> io::Result<bool> {
        match &mut self.kind {
            Kind::Stdio(stdio) => stdio.fill().await,
            Kind::Http(link) => link.fill().await,
        }
    }

    /// What has come and was not given out.
    #[expect(
        clippy::should_implement_trait,
        reason = "lends from self, which Iterator cannot"
    )]
    pub fn next(&mut self) -> Option<Arrival<'_>> {
        match &mut self.kind {
            Kind::Stdio(stdio) => stdio.next().map(|event| match event {
                FrameEvent::Frame(frame) => Arrival::Frame(frame),
                FrameEvent::TooLong(head) => Arrival::TooLong(head),
            }),
            Kind::Http(link) => link.next(),
        }
    }

    /// Whether so much waits to be sent that the client should pause.
    pub fn is_congested(&mut self) -> bool {
        match &mut self.kind {
            Kind::Stdio(stdio) => stdio.is_congested(),
            Kind::Http(link) => link.is_congested(),
        }
    }

    /// To be called now and then: closes what is not needed any more.
    pub fn tick(&mut self) {
        match &mut self.kind {
            Kind::Stdio(_) => {}
            Kind::Http(link) => link.tick(),
        }
    }

    /// Ends the server and everything that it started; over HTTP, the session with it.
    pub async fn stop(&mut self) -> Option<ExitStatus> {
        match &mut self.kind {
            Kind::Stdio(stdio) => stdio.stop().await,
            Kind::Http(link) => {
                link.stop().await;
                None
            }
        }
    }

    /// Waits for the server's own end.
    pub async fn wait_at_most(&mut self, wait_ms: u64) -> Option<ExitStatus> {
        match &mut self.kind {
            Kind::Stdio(stdio) => stdio.wait_at_most(wait_ms).await,
            Kind::Http(_) => None,
        }
    }
}

/// What a pass holds, taken out at its destination; nothing where it is made out to another.
pub(crate) fn taken<P: Pass>(pass: P, here: &PeerId) -> Option<(P::Request, P::Open)> {
    let (spent, open) = pass.spend(here).ok()?;
    Some((spent.take(here).ok()?, open))
}

/// A pass for another peer came this way. It is dropped, which settles its call as aborted.
pub(crate) fn elsewhere<P>(_unspent: P) -> io::Error {
    let message = "the pass is made out to another peer";
    io::Error::new(io::ErrorKind::InvalidInput, message)
}

/// How a server ended, in words.
#[must_use]
pub fn describe(status: ExitStatus) -> String {
    net::outbound::describe(status)
}
