//! Where connections come from: an address, or a socket in the file system.

use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::os::unix::fs::{FileTypeExt as _, PermissionsExt as _};
use std::os::unix::net::UnixStream as StdUnixStream;
use std::path::{Path, PathBuf};

use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream, UnixListener, UnixStream};

/// Takes connections.
#[derive(Debug)]
pub enum Listener {
    /// At an address.
    Address(TcpListener),
    /// At a socket in the file system, which only its owner can connect to.
    Socket(UnixListener, Socket),
}

/// Who is at the other end of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Peer {
    /// Somebody at this address.
    Address(SocketAddr),
    /// Somebody on this machine who may open the socket.
    Local,
}

impl fmt::Display for Peer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Address(address) => address.fmt(f),
            Self::Local => f.write_str("local"),
        }
    }
}

/// A socket's file, removed when dropped.
#[derive(Debug)]
pub struct Socket(PathBuf);

impl Drop for Socket {
    fn drop(&mut self) {
        // Somebody may have removed it before.
        let _ = std::fs::remove_file(&self.0);
    }
}

impl From<TcpListener> for Listener {
    fn from(listener: TcpListener) -> Self {
        Self::Address(listener)
    }
}

/// A connection that was taken.
pub(super) enum Taken {
    Address(TcpStream, Peer),
    Socket(UnixStream, Peer),
}

impl Listener {
    /// Listens at an address.
    ///
    /// # Errors
    /// Why that cannot be.
    pub async fn at(address: SocketAddr) -> io::Result<Self> {
        TcpListener::bind(address).await.map(Self::Address)
    }

    /// Listens at a socket in the file system. One that is left behind and that nobody listens at is replaced.
    ///
    /// # Errors
    /// `AddrInUse` where somebody listens there or something else than a socket is there; else why it cannot be made.
    pub fn at_path(path: &Path) -> io::Result<Self> {
        match std::fs::symlink_metadata(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
            Ok(found) => {
                let is_dead =
                    found.file_type().is_socket() && StdUnixStream::connect(path).is_err();
                if !is_dead {
                    return Err(io::ErrorKind::AddrInUse.into());
                }
            }
        }
        // Under its own name only once nobody else can open it.
        let mut name = path.as_os_str().to_owned();
        name.push(format!(".{}", std::process::id()));
        let unready = Socket(name.into());
        let listener = UnixListener::bind(&unready.0)?;
        std::fs::set_permissions(&unready.0, std::fs::Permissions::from_mode(0o600))?;
        std::fs::rename(&unready.0, path)?;
        Ok(Self::Socket(listener, Socket(path.to_owned())))
    }

    /// The address that is listened at; none for a socket in the file system.
    #[must_use]
    pub fn address(&self) -> Option<SocketAddr> {
        match self {
            Self::Address(listener) => listener.local_addr().ok(),
            Self::Socket(..) => None,
        }
    }

    /// The next connection. Cancel-safe.
    pub(super) async fn accept(&self) -> io::Result<Taken> {
        match self {
            Self::Address(listener) => {
                let (stream, peer) = listener.accept().await?;
                Ok(Taken::Address(stream, Peer::Address(peer)))
            }
            Self::Socket(listener, _) => {
                let (stream, _) = listener.accept().await?;
                Ok(Taken::Socket(stream, Peer::Local))
            }
        }
    }
}

/// A connection's stream.
pub(super) trait Stream: AsyncRead + AsyncWrite + Unpin + Send + Sized + 'static {
    /// The stream without a runtime.
    type Loose: Send;

    /// Whether its next byte can be waited for without room for it.
    const CAN_REST: bool = false;

    /// To be called before its first use.
    fn prepare(&self) {}

    /// Waits for the first byte without taking it; `false` where none will come.
    fn has_begun(&self) -> impl Future<Output = bool> + Send {
        std::future::ready(true)
    }

    /// Takes it from the runtime that it belongs to.
    fn loosened(self) -> io::Result<Self::Loose>;

    /// Gives it to the present runtime.
    fn bound(loose: Self::Loose) -> io::Result<Self>;
}

impl Stream for TcpStream {
    fn prepare(&self) {
        // Only fails where the connection is gone already, which shows at its first use.
        let _ = self.set_nodelay(true);
    }

    async fn has_begun(&self) -> bool {
        // Being readable would not do: a new stream is taken for readable until it has been tried.
        matches!(self.peek(&mut [0]).await, Ok(1))
    }

    type Loose = std::net::TcpStream;

    const CAN_REST: bool = true;

    fn loosened(self) -> io::Result<Self::Loose> {
        self.into_std()
    }

    fn bound(loose: Self::Loose) -> io::Result<Self> {
        Self::from_std(loose)
    }
}

impl Stream for UnixStream {
    type Loose = StdUnixStream;

    fn loosened(self) -> io::Result<Self::Loose> {
        self.into_std()
    }

    fn bound(loose: Self::Loose) -> io::Result<Self> {
        Self::from_std(loose)
    }
}
