//! A readable or writable descriptor of any kind.

use std::io;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::pin::Pin;
use std::task::{Context, Poll};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{FileType, OFlags, fcntl_getfl, fcntl_setfl, fstat};
use tokio::io::{AsyncReadExt as _, AsyncWrite};
use tokio::net::UnixStream;
use tokio::net::unix::pipe;

/// Where bytes come from.
pub(super) enum Source {
    Pipe(pipe::Receiver),
    Socket(UnixStream),
    /// Files and terminals, read on a helper thread.
    Slow(Pin<Box<dyn tokio::io::AsyncRead + Send>>),
}

/// Where bytes go.
pub(super) enum Sink {
    Pipe(pipe::Sender),
    Socket(UnixStream),
    /// Files and terminals, written on a helper thread.
    Slow(Pin<Box<dyn AsyncWrite + Send>>),
}

fn file_type(fd: &OwnedFd) -> io::Result<FileType> {
    Ok(FileType::from_raw_mode(fstat(fd)?.st_mode))
}

fn socket(fd: OwnedFd) -> io::Result<UnixStream> {
    fcntl_setfl(&fd, fcntl_getfl(&fd)? | OFlags::NONBLOCK)?;
    UnixStream::from_std(fd.into())
}

/// Asks the kernel without waiting.
fn hung_up(fd: BorrowedFd<'_>) -> bool {
    #[cfg(target_os = "linux")]
    let wanted = PollFlags::HUP | PollFlags::RDHUP;
    #[cfg(not(target_os = "linux"))]
    let wanted = PollFlags::HUP;
    let mut asked = [PollFd::from_borrowed_fd(fd, wanted)];
    let at_once = Timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    let gone = wanted | PollFlags::ERR;
    poll(&mut asked, Some(&at_once)).is_ok_and(|count| count > 0)
        && asked.iter().any(|fd| fd.revents().intersects(gone))
}

impl Source {
    pub(super) fn of(fd: OwnedFd) -> io::Result<Self> {
        match file_type(&fd)? {
            FileType::Fifo => Ok(Self::Pipe(pipe::Receiver::from_owned_fd(fd)?)),
            FileType::Socket => Ok(Self::Socket(socket(fd)?)),
            _ => Ok(Self::Slow(Box::pin(tokio::fs::File::from_std(
                std::fs::File::from(fd),
            )))),
        }
    }

    /// Whether the other side has closed its end, even if bytes that it wrote before are still unread.
    /// A file has no other side.
    pub(super) fn hung_up(&self) -> bool {
        match self {
            Self::Pipe(pipe) => hung_up(pipe.as_fd()),
            Self::Socket(socket) => hung_up(socket.as_fd()),
            Self::Slow(_) => false,
        }
    }

    /// Reads what there is, at least a byte unless the stream has ended. Cancel-safe.
    pub(super) async fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Pipe(pipe) => pipe.read(buffer).await,
            Self::Socket(socket) => socket.read(buffer).await,
            Self::Slow(file) => file.read(buffer).await,
        }
    }
}

impl Sink {
    pub(super) fn of(fd: OwnedFd) -> io::Result<Self> {
        match file_type(&fd)? {
            FileType::Fifo => Ok(Self::Pipe(pipe::Sender::from_owned_fd(fd)?)),
            FileType::Socket => Ok(Self::Socket(socket(fd)?)),
            _ => Ok(Self::Slow(Box::pin(tokio::fs::File::from_std(
                std::fs::File::from(fd),
            )))),
        }
    }

    /// Writes what can be written at once.
    pub(super) fn try_write(&self, parts: &[io::IoSlice<'_>]) -> io::Result<usize> {
        // The kernel takes one piece with less ado than a list of one.
        if let [part] = parts {
            return match self {
                Self::Pipe(pipe) => pipe.try_write(part),
                Self::Socket(socket) => socket.try_write(part),
                Self::Slow(_) => Err(io::ErrorKind::WouldBlock.into()),
            };
        }
        match self {
            Self::Pipe(pipe) => pipe.try_write_vectored(parts),
            Self::Socket(socket) => socket.try_write_vectored(parts),
            Self::Slow(_) => Err(io::ErrorKind::WouldBlock.into()),
        }
    }

    /// Takes some of `bytes` as soon as the descriptor takes any. What is taken counts as written: files and
    /// terminals may keep it until [`Sink::poll_flush`].
    pub(super) fn poll_write(
        &mut self,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        match self {
            Self::Pipe(pipe) => Pin::new(pipe).poll_write(cx, bytes),
            Self::Socket(socket) => Pin::new(socket).poll_write(cx, bytes),
            Self::Slow(file) => file.as_mut().poll_write(cx, bytes),
        }
    }

    /// Ready when everything that was taken has reached the descriptor.
    pub(super) fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self {
            // These keep nothing.
            Self::Pipe(_) | Self::Socket(_) => Poll::Ready(Ok(())),
            Self::Slow(file) => file.as_mut().poll_flush(cx),
        }
    }
}
