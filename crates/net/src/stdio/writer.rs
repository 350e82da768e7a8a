//! Writing frames: at once where the descriptor takes them, else from a queue.

use std::io;
use std::task::{Context, Poll, ready};

use super::stream::Sink;

/// From here on the other side's reader should pause, in bytes.
pub const QUEUE_BYTES_HIGH: usize = 4 * 1024 * 1024;

/// Writes newline-framed messages.
pub struct FrameWriter {
    sink: Sink,
    queue: Vec<u8>,
    /// How much of the queue has been written.
    done: usize,
}

impl FrameWriter {
    pub(super) fn new(sink: Sink) -> Self {
        Self {
            sink,
            queue: Vec::new(),
            done: 0,
        }
    }

    /// Sends a frame: with one system call where nothing is queued and the descriptor takes it,
    /// else the rest is queued for [`FrameWriter::flush`].
    ///
    /// # Errors
    /// What the descriptor says; a closed reader is `BrokenPipe`.
    pub fn send(&mut self, frame: &[u8]) -> io::Result<()> {
        self.send_slices(&[io::IoSlice::new(frame), io::IoSlice::new(b"\n")])
    }

    /// As [`FrameWriter::send`], for a frame in parts.
    ///
    /// # Errors
    /// What the descriptor says; a closed reader is `BrokenPipe`.
    pub fn send_parts(&mut self, parts: &[&[u8]]) -> io::Result<()> {
        let mut slices: Vec<io::IoSlice<'_>> = Vec::with_capacity(parts.len() + 1);
        slices.extend(parts.iter().map(|part| io::IoSlice::new(part)));
        slices.push(io::IoSlice::new(b"\n"));
        self.send_slices(&slices)
    }

    fn send_slices(&mut self, slices: &[io::IoSlice<'_>]) -> io::Result<()> {
        let mut written = 0;
        if self.is_empty() {
            match self.sink.try_write(slices) {
                Ok(count) => written = count,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => return Err(error),
            }
        }
        if written < slices.iter().map(|slice| slice.len()).sum() {
            self.forget_written();
            for slice in slices {
                let skip = written.min(slice.len());
                written -= skip;
                self.queue
                    .extend_from_slice(slice.get(skip..).unwrap_or_default());
            }
        }
        Ok(())
    }

    /// Writes what is queued, as [`FrameWriter::flush`] does, for a writer behind a lock that must
    /// not be held while waiting. For pipes and sockets.
    ///
    /// # Errors
    /// What the descriptor says.
    pub fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        while !self.is_empty() {
            let rest = self.queue.get(self.done..).unwrap_or_default();
            let count = ready!(self.sink.poll_write(cx, rest))?;
            if count == 0 {
                return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
            }
            self.done += count;
        }
        self.reset();
        Poll::Ready(Ok(()))
    }

    /// Writes until the queue is empty. Cancel-safe: what is written is not written again.
    ///
    /// # Errors
    /// What the descriptor says.
    pub async fn flush(&mut self) -> io::Result<()> {
        while !self.is_empty() {
            let count = self
                .sink
                .write(self.queue.get(self.done..).unwrap_or_default())
                .await?;
            if count == 0 {
                return Err(io::ErrorKind::WriteZero.into());
            }
            self.done += count;
        }
        self.reset();
        Ok(())
    }

    fn reset(&mut self) {
        self.queue.clear();
        self.queue.shrink_to(QUEUE_BYTES_HIGH);
        self.done = 0;
    }

    /// A queue that never runs empty must not keep what has been written: each byte is moved at most once.
    fn forget_written(&mut self) {
        if self.done > self.queue.len() / 2 {
            self.queue.drain(..self.done);
            self.done = 0;
        }
    }

    /// Whether all is written.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.done == self.queue.len()
    }

    /// Whether so much is queued that whoever fills it should pause.
    #[must_use]
    pub fn is_congested(&self) -> bool {
        self.queue.len() - self.done >= QUEUE_BYTES_HIGH
    }
}
