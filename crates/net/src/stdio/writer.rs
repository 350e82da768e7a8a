//! Writing frames: at once where the descriptor takes them, else from a queue.

use std::io;
use std::task::{Context, Poll, ready};

use wire::frame::is_one_line;

use super::stream::Sink;

/// From here on the other side's reader should pause, in bytes.
pub const QUEUE_BYTES_HIGH: usize = 4 * 1024 * 1024;

/// A frame of up to so many bytes that is held back is copied behind the others, and they leave as one piece.
const GATHERED_FRAME_BYTES_MAX: usize = 4 * 1024;
/// What is kept of the room for these, in bytes.
const GATHERED_BYTES_KEPT: usize = 8 * 1024;

/// Writes newline-framed messages.
pub struct FrameWriter {
    sink: Sink,
    queue: Vec<u8>,
    /// How much of the queue the sink has taken.
    done: usize,
    /// Whether the sink may still keep some of it.
    unflushed: bool,
    /// Whatever is sent is only kept: short frames in `gathered`, newlines included, the first long one and what comes
    /// behind it in `waiting`.
    held: bool,
    gathered: Vec<u8>,
    waiting: Vec<Vec<u8>>,
    waiting_bytes: usize,
}

impl FrameWriter {
    pub(super) fn new(sink: Sink) -> Self {
        Self {
            sink,
            queue: Vec::new(),
            done: 0,
            unflushed: false,
            held: false,
            gathered: Vec::new(),
            waiting: Vec::new(),
            waiting_bytes: 0,
        }
    }

    /// From now on frames are only kept, until [`FrameWriter::release`] sends them with one system
    /// call: for frames that come one right after the other.
    pub fn hold(&mut self) {
        self.held = true;
    }

    /// Whether frames are only kept.
    #[must_use]
    pub fn is_held(&self) -> bool {
        self.held
    }

    /// Sends what was kept since [`FrameWriter::hold`], as far as the descriptor takes it at once.
    ///
    /// # Errors
    /// What the descriptor says; a closed reader is `BrokenPipe`.
    pub fn release(&mut self) -> io::Result<()> {
        self.held = false;
        if self.has_waiting() {
            let mut gathered = std::mem::take(&mut self.gathered);
            let waiting = std::mem::take(&mut self.waiting);
            self.waiting_bytes = 0;
            let sent = if waiting.is_empty() {
                self.send_slices(&[io::IoSlice::new(&gathered)])
            } else {
                let newline = &b"\n"[..];
                let long = waiting.iter().flat_map(|frame| [frame.as_slice(), newline]);
                let parts = std::iter::once(gathered.as_slice()).chain(long);
                self.send_slices(&parts.map(io::IoSlice::new).collect::<Vec<_>>())
            };
            gathered.clear();
            gathered.shrink_to(GATHERED_BYTES_KEPT);
            self.gathered = gathered;
            sent?;
        }
        self.write_at_once()
    }

    /// Writes of the queue what the descriptor takes at once.
    fn write_at_once(&mut self) -> io::Result<()> {
        if self.done == self.queue.len() {
            return Ok(());
        }
        let rest = self.queue.get(self.done..).unwrap_or_default();
        match self.sink.try_write(&[io::IoSlice::new(rest)]) {
            Ok(count) => self.done += count,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(error) => return Err(error),
        }
        if self.done == self.queue.len() {
            self.reset();
        }
        Ok(())
    }

    /// As [`FrameWriter::send`], without a copy where frames are held back.
    ///
    /// # Errors
    /// What the descriptor says; a closed reader is `BrokenPipe`, a frame of several lines `InvalidInput`.
    pub fn send_owned(&mut self, frame: Vec<u8>) -> io::Result<()> {
        if !self.held {
            return self.send(&frame);
        }
        if self.has_gathered(&[&frame])? {
            return Ok(());
        }
        self.waiting_bytes += frame.len() + 1;
        self.waiting.push(frame);
        Ok(())
    }

    /// Takes a frame that is held back, in parts, to those that leave as one piece; `false` where it is too long, or
    /// comes behind one that was.
    fn has_gathered(&mut self, parts: &[&[u8]]) -> io::Result<bool> {
        parts.iter().try_for_each(|part| one_line(part))?;
        let length: usize = parts.iter().map(|part| part.len()).sum();
        if length > GATHERED_FRAME_BYTES_MAX || !self.waiting.is_empty() {
            return Ok(false);
        }
        self.gathered.reserve(length + 1);
        for part in parts {
            self.gathered.extend_from_slice(part);
        }
        self.gathered.push(b'\n');
        Ok(true)
    }

    /// Sends a frame: with one system call where nothing is queued and the descriptor takes it,
    /// else the rest is queued for [`FrameWriter::flush`].
    ///
    /// # Errors
    /// What the descriptor says; a closed reader is `BrokenPipe`, a frame of several lines `InvalidInput`.
    pub fn send(&mut self, frame: &[u8]) -> io::Result<()> {
        if self.held {
            return self.send_parts(&[frame]);
        }
        one_line(frame)?;
        self.send_slices(&[io::IoSlice::new(frame), io::IoSlice::new(b"\n")])
    }

    /// As [`FrameWriter::send`], for a frame in parts.
    ///
    /// # Errors
    /// What the descriptor says; a closed reader is `BrokenPipe`, a frame of several lines `InvalidInput`.
    pub fn send_parts(&mut self, parts: &[&[u8]]) -> io::Result<()> {
        if self.held {
            return match self.has_gathered(parts)? {
                true => Ok(()),
                false => self.send_owned(parts.concat()),
            };
        }
        parts.iter().try_for_each(|part| one_line(part))?;
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
    /// not be held while waiting.
    ///
    /// # Errors
    /// What the descriptor says.
    pub fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        while self.done < self.queue.len() {
            let rest = self.queue.get(self.done..).unwrap_or_default();
            let count = ready!(self.sink.poll_write(cx, rest))?;
            if count == 0 {
                return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
            }
            // Counted before anything is waited for: who stops waiting here goes on behind these bytes.
            self.done += count;
            self.unflushed = true;
        }
        ready!(self.sink.poll_flush(cx))?;
        self.unflushed = false;
        self.reset();
        Poll::Ready(Ok(()))
    }

    /// Writes until the queue is empty. Cancel-safe: what is written is not written again.
    ///
    /// # Errors
    /// What the descriptor says.
    pub async fn flush(&mut self) -> io::Result<()> {
        std::future::poll_fn(|cx| self.poll_flush(cx)).await
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

    fn has_waiting(&self) -> bool {
        !(self.gathered.is_empty() && self.waiting.is_empty())
    }

    /// Whether all is written.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.done == self.queue.len() && !self.unflushed && !self.has_waiting()
    }

    /// Whether so much is queued that whoever fills it should pause.
    #[must_use]
    pub fn is_congested(&self) -> bool {
        self.queue.len() - self.done + self.gathered.len() + self.waiting_bytes >= QUEUE_BYTES_HIGH
    }
}

/// What is cut at a line end within would be two messages to its reader: whoever writes one has made a mistake, and
/// nothing of it is sent.
fn one_line(frame: &[u8]) -> io::Result<()> {
    if is_one_line(frame) {
        return Ok(());
    }
    let message = "the message has a line end within";
    Err(io::Error::new(io::ErrorKind::InvalidInput, message))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read as _;

    /// A pipe that is known to take something.
    async fn pipe() -> (io::PipeReader, FrameWriter) {
        let (mut reader, writer) = io::pipe().unwrap();
        let mut writer = FrameWriter::new(Sink::of(writer.into()).unwrap());
        writer.send(b"0").unwrap();
        writer.flush().await.unwrap();
        let mut first = [0; 2];
        reader.read_exact(&mut first).unwrap();
        (reader, writer)
    }

    #[tokio::test]
    async fn what_is_held_leaves_together_and_in_order() {
        let (mut reader, mut writer) = pipe().await;
        writer.send(b"1").unwrap();
        writer.hold();
        writer.send(b"2").unwrap();
        writer.send_parts(&[b"3", b"4"]).unwrap();
        let mut seen = [0; 64];
        assert_eq!(
            reader.read(&mut seen).unwrap(),
            2,
            "only the first has left"
        );
        writer.release().unwrap();
        assert!(writer.is_empty());
        assert_eq!(reader.read(&mut seen).unwrap(), 5);
        assert_eq!(&seen[..5], b"2\n34\n");
        writer.release().unwrap();
        writer.send(b"5").unwrap();
        assert_eq!(reader.read(&mut seen).unwrap(), 2, "no longer held");
    }

    #[tokio::test]
    async fn short_and_long_frames_that_are_held_keep_their_order() {
        let (mut reader, mut writer) = pipe().await;
        let lengths = [3, 4_096, 4_097, 2, 9_000, 1];
        let frames: Vec<Vec<u8>> = (b'a'..).zip(lengths).map(|(c, n)| vec![c; n]).collect();
        for round in 0..2 {
            writer.hold();
            for frame in &frames {
                assert!(!writer.is_empty() || frame == &frames[0], "{round}");
                writer.send(frame).unwrap();
            }
            writer.release().unwrap();
            writer.flush().await.unwrap();
        }
        drop(writer);
        let mut seen = Vec::new();
        reader.read_to_end(&mut seen).unwrap();
        let once: Vec<u8> = frames
            .iter()
            .flat_map(|f| [f, &b"\n"[..]].concat())
            .collect();
        assert!(seen == once.repeat(2));
    }

    #[tokio::test]
    async fn a_frame_is_one_line_or_is_not_sent() {
        let (mut reader, mut writer) = pipe().await;
        for held in [false, true] {
            if held {
                writer.hold();
            }
            for frame in [&b"{\n}"[..], b"{\r}", b"\n", b"1\n"] {
                let refused = [
                    writer.send(frame),
                    writer.send_owned(frame.to_vec()),
                    writer.send_parts(&[b"1", frame]),
                ];
                for refused in refused {
                    assert_eq!(refused.unwrap_err().kind(), io::ErrorKind::InvalidInput);
                }
            }
            writer.send(b"whole").unwrap();
        }
        writer.release().unwrap();
        drop(writer);
        let mut seen = String::new();
        reader.read_to_string(&mut seen).unwrap();
        assert_eq!(seen, "whole\nwhole\n");
    }

    #[tokio::test]
    async fn what_the_pipe_does_not_take_stays_queued() {
        let (mut reader, mut writer) = pipe().await;
        let frames: Vec<Vec<u8>> = (0..8_u8).map(|n| vec![b'a' + n; 40_000]).collect();
        writer.hold();
        for frame in &frames {
            writer.send(frame).unwrap();
        }
        writer.release().unwrap();
        assert!(!writer.is_empty(), "a pipe takes less");
        let reading = std::thread::spawn(move || {
            let mut all = Vec::new();
            reader.read_to_end(&mut all).map(|_| all).unwrap()
        });
        writer.flush().await.unwrap();
        drop(writer);
        let expect: Vec<u8> = frames.join(&b'\n').into_iter().chain([b'\n']).collect();
        assert_eq!(reading.join().unwrap(), expect);
    }

    #[tokio::test]
    async fn a_reader_that_is_gone_is_told_at_the_release() {
        let (reader, mut writer) = pipe().await;
        drop(reader);
        writer.hold();
        writer.send(b"1").unwrap();
        let gone = writer.release().unwrap_err();
        assert_eq!(gone.kind(), io::ErrorKind::BrokenPipe);
    }

    /// Stdout redirected to a file, by an edge that stops waiting whenever something else happens.
    #[tokio::test]
    async fn a_file_gets_each_frame_once_whenever_the_wait_is_given_up() {
        const FRAMES: usize = 2_000;
        let path = std::env::temp_dir().join(format!("frames-{}", std::process::id()));
        let file = std::fs::File::create(&path).unwrap();
        let mut writer = FrameWriter::new(Sink::of(file.into()).unwrap());
        let mut expect = Vec::new();
        // A linear congruential generator: the same waits are given up in each run.
        let mut seed = 7_u64;
        let mut random = move |below: u64| {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (seed >> 33) % below
        };
        let mut given_up = 0;
        for number in 0..FRAMES {
            let frame = format!("{number} {}", "x".repeat(random(4_000) as usize));
            expect.extend_from_slice(frame.as_bytes());
            expect.push(b'\n');
            writer.send(frame.as_bytes()).unwrap();
            // Polled this often, with the helper thread sometimes done in between and sometimes not.
            for _ in 0..random(4) {
                let polled = polled_once(&mut writer);
                given_up += usize::from(polled.is_pending());
                if random(2) == 0 {
                    tokio::task::yield_now().await;
                }
            }
        }
        assert!(given_up > FRAMES / 10, "{given_up}");
        writer.flush().await.unwrap();
        assert!(writer.is_empty());
        let found = std::fs::read(&path).unwrap();
        std::fs::remove_file(&path).unwrap();
        assert!(found == expect, "{} of {} bytes", found.len(), expect.len());
    }

    /// A wait that is begun and given up at once.
    fn polled_once(writer: &mut FrameWriter) -> Poll<io::Result<()>> {
        let mut flush = std::pin::pin!(writer.flush());
        flush
            .as_mut()
            .poll(&mut Context::from_waker(std::task::Waker::noop()))
    }
}
