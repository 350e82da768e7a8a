//! Reading frames.

use std::io;

use wire::{FrameEvent, LineFramer};

use super::stream::Source;

/// How much is asked for at once, in bytes.
const READ_BYTES: usize = 64 * 1024;

/// Reads newline-framed messages.
pub struct FrameReader {
    source: Source,
    framer: LineFramer,
    buffer: Vec<u8>,
    ended: bool,
}

impl FrameReader {
    pub(super) fn new(source: Source) -> Self {
        Self {
            source,
            framer: LineFramer::default(),
            buffer: vec![0; READ_BYTES],
            ended: false,
        }
    }

    /// Reads once; afterwards [`FrameReader::next`] gives the frames that are whole. `false` when
    /// the stream has ended. Cancel-safe.
    ///
    /// # Errors
    /// What the descriptor says.
    pub async fn fill(&mut self) -> io::Result<bool> {
        let count = self.source.read(&mut self.buffer).await?;
        self.framer
            .push(self.buffer.get(..count).unwrap_or_default());
        self.ended = count == 0;
        Ok(!self.ended)
    }

    /// The next whole frame that has been read.
    #[expect(
        clippy::should_implement_trait,
        reason = "lends from self, which Iterator cannot"
    )]
    pub fn next(&mut self) -> Option<FrameEvent<'_>> {
        self.framer.next()
    }

    /// Bytes after the last newline: at the end of the stream, a truncated frame.
    #[must_use]
    pub fn remainder(&self) -> &[u8] {
        self.framer.remainder()
    }

    /// Whether the stream has ended.
    #[must_use]
    pub fn has_ended(&self) -> bool {
        self.ended
    }
}
