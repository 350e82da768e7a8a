//! A bare byte relay, to measure the cost of a process in the middle that does nothing. One thread that never blocks,
//! no framing.

use crate::MockError;
use rustix::fs::{FileType, fstat};
use std::{
    ffi::OsString,
    fs::File,
    io::{self, Read, Write},
    os::{
        fd::{AsFd, OwnedFd},
        unix::process::ExitStatusExt,
    },
    pin::Pin,
    process::{Command, ExitStatus, Stdio},
    task::{Context, Poll},
};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, ReadBuf};
use tokio::net::{UnixStream, unix::pipe};

/// How much one read moves, in bytes.
const PIECE_BYTES: usize = 64 * 1024;

type Reader = Box<dyn AsyncRead + Unpin>;
type Writer = Box<dyn AsyncWrite + Unpin>;

/// A file or a terminal, which no poll helps: its calls block.
struct BlockingFile(File);

/// Relays between this process's stdio and a child's until the child's output ends; returns the
/// child's exit code, or 128 and its signal.
pub(crate) fn run(command: &[OsString]) -> Result<u8, MockError> {
    let (program, args) = command
        .split_first()
        .ok_or_else(|| MockError::Usage("name a command to run after --".into()))?;
    let failed = |source| MockError::Spawn {
        program: program.to_string_lossy().into_owned(),
        source,
    };
    let mut child = Command::new(program)
        .args(args)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .map_err(failed)?;
    let (Some(input), Some(output)) = (child.stdin.take(), child.stdout.take()) else {
        return Err(failed(io::ErrorKind::BrokenPipe.into()));
    };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_io()
        .build()
        .map_err(MockError::Runtime)?;
    let relayed = runtime.block_on(relay(input.into(), output.into()));
    // A caller that hung up ends the relay, and a child that ignores the end of its input ends with it.
    if relayed.is_err() {
        let _ = child.kill();
    }
    let status = child.wait().map_err(MockError::Stdio)?;
    match relayed {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(MockError::Stdio(error)),
        _ => Ok(exit_code(status)),
    }
}

fn exit_code(status: ExitStatus) -> u8 {
    let code = status
        .code()
        .or_else(|| status.signal().map(|signal| 128 + signal));
    code.and_then(|code| u8::try_from(code).ok()).unwrap_or(1)
}

async fn relay(child_input: OwnedFd, child_output: OwnedFd) -> io::Result<()> {
    let mut own_input = reader(io::stdin().as_fd().try_clone_to_owned()?)?;
    let mut own_output = writer(io::stdout().as_fd().try_clone_to_owned()?)?;
    let (mut child_input, mut child_output) = (writer(child_input)?, reader(child_output)?);
    let up = async move {
        // A child that closed its input early is seen when its output ends.
        let _ = pump(&mut own_input, &mut child_input).await;
        drop(child_input);
        std::future::pending::<io::Result<()>>().await
    };
    tokio::select! {
        biased;
        done = pump(&mut child_output, &mut own_output) => done,
        done = up => done,
    }
}

async fn pump(from: &mut Reader, to: &mut Writer) -> io::Result<()> {
    let mut piece = vec![0; PIECE_BYTES];
    loop {
        let read = from.read(&mut piece).await?;
        if read == 0 {
            return Ok(());
        }
        to.write_all(piece.get(..read).unwrap_or_default()).await?;
    }
}

/// Returns a pipe, the socket that some callers give instead, or a plain file.
fn reader(fd: OwnedFd) -> io::Result<Reader> {
    Ok(match FileType::from_raw_mode(fstat(&fd)?.st_mode) {
        FileType::Fifo => Box::new(pipe::Receiver::from_owned_fd(fd)?),
        FileType::Socket => Box::new(socket(fd)?),
        _ => Box::new(BlockingFile(fd.into())),
    })
}

fn writer(fd: OwnedFd) -> io::Result<Writer> {
    Ok(match FileType::from_raw_mode(fstat(&fd)?.st_mode) {
        FileType::Fifo => Box::new(pipe::Sender::from_owned_fd(fd)?),
        FileType::Socket => Box::new(socket(fd)?),
        _ => Box::new(BlockingFile(fd.into())),
    })
}

fn socket(fd: OwnedFd) -> io::Result<UnixStream> {
    let stream = std::os::unix::net::UnixStream::from(fd);
    stream.set_nonblocking(true)?;
    UnixStream::from_std(stream)
}

impl AsyncRead for BlockingFile {
    fn poll_read(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let read = self.0.read(into.initialize_unfilled())?;
        into.advance(read);
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for BlockingFile {
    fn poll_write(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Poll::Ready(self.0.write(bytes))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}
