//! Frames over standard streams without a helper thread.
//!
//! `tokio::io::stdin` hands every read to another thread, which costs 10 to 20 µs a frame. Pipes
//! and sockets are used directly, non-blocking; only for files and terminals the slow way is taken.

mod reader;
mod stream;
mod writer;

pub use reader::FrameReader;
pub use writer::FrameWriter;

use std::io;
use std::os::fd::AsFd;

use stream::{Sink, Source};

/// Frames from our own standard input and to our own standard output.
///
/// # Errors
/// Where a descriptor is closed or cannot be made non-blocking. Must be called inside a runtime.
pub fn own() -> io::Result<(FrameReader, FrameWriter)> {
    let input = io::stdin().as_fd().try_clone_to_owned()?;
    let output = io::stdout().as_fd().try_clone_to_owned()?;
    Ok((
        FrameReader::new(Source::of(input)?),
        FrameWriter::new(Sink::of(output)?),
    ))
}

/// Frames from and to the two ends of pipes (a child's standard streams).
///
/// # Errors
/// Where a descriptor is neither pipe nor socket nor can be made non-blocking.
pub fn over(
    input: std::os::fd::OwnedFd,
    output: std::os::fd::OwnedFd,
) -> io::Result<(FrameReader, FrameWriter)> {
    Ok((
        FrameReader::new(Source::of(input)?),
        FrameWriter::new(Sink::of(output)?),
    ))
}
