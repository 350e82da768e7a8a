//! A line that gets worse while it is used: it stalls, it trickles, and it gets well again.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::sync::watch;

/// Bytes that each end of the line may have on the way: few, so that a state is felt at once.
const BUFFER_BYTES: u32 = 32 * 1024;
/// Longest piece that is passed on as one, in bytes.
const PIECE_BYTES: usize = 8 * 1024;

/// How a line is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum LineState {
    /// It passes on everything at once.
    #[default]
    Clear,
    /// It passes on nothing, and says nothing: connections stay open, and new ones are accepted.
    Stalled,
    /// It rests for so long before every so many pieces.
    Trickling {
        /// Pieces of 8 KiB between two rests.
        pieces: u32,
        /// How long a rest is.
        rest: Duration,
    },
}

/// A line to a server, over an address of its own.
#[derive(Debug)]
pub struct BadLine {
    /// Address of its near end.
    pub address: SocketAddr,
    state: watch::Sender<LineState>,
}

impl BadLine {
    /// Lays a line to a server; it is there as long as its runtime is.
    ///
    /// # Errors
    /// If no port is free.
    pub async fn to(server: SocketAddr) -> io::Result<Self> {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
        let address = listener.local_addr()?;
        let (state, states) = watch::channel(LineState::Clear);
        tokio::spawn(accept(listener, server, states));
        Ok(Self { address, state })
    }

    /// Has the line be so from now on, connections that are open included.
    pub fn set(&self, state: LineState) {
        self.state.send_replace(state);
    }
}

async fn accept(listener: TcpListener, server: SocketAddr, states: watch::Receiver<LineState>) {
    while let Ok((client, _)) = listener.accept().await {
        let states = states.clone();
        tokio::spawn(async move {
            let _ = pass(client, server, states).await;
        });
    }
}

async fn pass(
    client: TcpStream,
    to: SocketAddr,
    mut states: watch::Receiver<LineState>,
) -> io::Result<()> {
    clear(&mut states).await;
    let socket = TcpSocket::new_v4()?;
    socket.set_recv_buffer_size(BUFFER_BYTES)?;
    let server = socket.connect(to).await?;
    client.set_nodelay(true)?;
    server.set_nodelay(true)?;
    let (client_reads, client_writes) = client.into_split();
    let (server_reads, server_writes) = server.into_split();
    let there = carry(client_reads, server_writes, states.clone());
    let back = carry(server_reads, client_writes, states);
    let (there, back) = tokio::join!(there, back);
    there.and(back)
}

async fn carry(
    mut from: impl AsyncRead + Unpin,
    mut to: impl AsyncWrite + Unpin,
    mut states: watch::Receiver<LineState>,
) -> io::Result<()> {
    let mut piece = vec![0; PIECE_BYTES];
    let mut count = 0_u32;
    loop {
        let length = from.read(&mut piece).await?;
        clear(&mut states).await;
        if length == 0 {
            return to.shutdown().await;
        }
        let state = *states.borrow();
        if let LineState::Trickling { pieces, rest } = state {
            count = count.wrapping_add(1);
            if count.is_multiple_of(pieces.max(1)) {
                tokio::time::sleep(rest).await;
            }
        }
        to.write_all(piece.get(..length).unwrap_or_default())
            .await?;
    }
}

/// Waits until the line is not stalled.
async fn clear(states: &mut watch::Receiver<LineState>) {
    // The task that stalls it may have ended; then the state remains until the runtime ends.
    if states
        .wait_for(|state| *state != LineState::Stalled)
        .await
        .is_err()
    {
        std::future::pending::<()>().await;
    }
}
