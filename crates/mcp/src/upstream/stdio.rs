//! A server that is a child of ours, over its standard streams.

use std::io;
use std::process::ExitStatus;

use net::outbound::{Child, ChildSpec};
use net::stdio::FrameWriter;
use wire::FrameEvent;

use super::Turn;

pub(super) struct Stdio {
    child: Child,
}

impl Stdio {
    pub(super) fn start(command: &ChildSpec, name: &str) -> io::Result<Self> {
        Ok(Self {
            child: Child::spawn(command, name)?,
        })
    }

    pub(super) fn send(&mut self, frame: &[u8]) -> io::Result<()> {
        let (_, writer) = self.child.streams();
        writer.ok_or(io::ErrorKind::BrokenPipe)?.send(frame)
    }

    pub(super) fn hold(&mut self) {
        if let (_, Some(writer)) = self.child.streams() {
            writer.hold();
        }
    }

    pub(super) fn release(&mut self) -> io::Result<()> {
        match self.child.streams() {
            (_, Some(writer)) => writer.release(),
            (_, None) => Ok(()),
        }
    }

    /// Cancel-safe.
    pub(super) async fn turn(&mut self, may_read: bool) -> Turn {
        let (reader, mut writer) = self.child.streams();
        let queued = writer.as_ref().is_some_and(|w| !w.is_empty());
        if !queued && may_read {
            return Turn::Read(reader.fill().await);
        }
        tokio::select! {
            read = reader.fill(), if may_read => Turn::Read(read),
            flushed = flush(&mut writer), if queued => Turn::Flushed(flushed),
            else => std::future::pending().await,
        }
    }

    pub(super) async fn fill(&mut self) -> io::Result<bool> {
        self.child.streams().0.fill().await
    }

    pub(super) fn next(&mut self) -> Option<FrameEvent<'_>> {
        self.child.streams().0.next()
    }

    pub(super) fn is_congested(&mut self) -> bool {
        let (_, writer) = self.child.streams();
        writer.is_some_and(|w| w.is_congested())
    }

    pub(super) async fn stop(&mut self) -> Option<ExitStatus> {
        self.child.stop().await
    }

    pub(super) async fn wait_at_most(&mut self, wait_ms: u64) -> Option<ExitStatus> {
        self.child.wait_at_most(wait_ms).await
    }
}

async fn flush(writer: &mut Option<&mut FrameWriter>) -> io::Result<()> {
    match writer {
        Some(writer) => writer.flush().await,
        None => Ok(()),
    }
}
