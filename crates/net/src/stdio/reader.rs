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

    /// From now on frames of at most this many bytes are taken.
    pub fn take_at_most(&mut self, frame_bytes_max: usize) {
        self.framer.take_at_most(frame_bytes_max);
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

    /// Whether the other side has closed its end. What it wrote before may still be unread; that is
    /// at most what the descriptor's buffer holds.
    #[must_use]
    pub fn has_hung_up(&self) -> bool {
        self.ended || self.source.hung_up()
    }

    /// Whether the stream has ended.
    #[must_use]
    pub fn has_ended(&self) -> bool {
        self.ended
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write as _;

    #[tokio::test]
    async fn a_hang_up_is_seen_before_what_was_written_is_read() {
        let (reader, mut writer) = io::pipe().unwrap();
        let mut frames = FrameReader::new(Source::of(reader.into()).unwrap());
        writer.write_all(b"unread\n").unwrap();
        assert!(!frames.has_hung_up());
        drop(writer);
        assert!(frames.has_hung_up());
        assert!(frames.fill().await.unwrap());
        assert!(matches!(frames.next(), Some(FrameEvent::Frame(b"unread"))));
    }

    #[tokio::test]
    async fn a_closed_socket_has_hung_up() {
        let (ours, mut theirs) = std::os::unix::net::UnixStream::pair().unwrap();
        let frames = FrameReader::new(Source::of(ours.into()).unwrap());
        theirs.write_all(b"unread\n").unwrap();
        assert!(!frames.has_hung_up());
        theirs.shutdown(std::net::Shutdown::Write).unwrap();
        assert!(frames.has_hung_up());
    }
}
