//! A line that delays, as a relay without rights: the bytes of one direction wait before they go on.
//!
//! What is lost on the way is sent again by TCP, which a relay cannot show; it holds up what follows for as long
//! as TCP waits before it does so.

use std::io;
use std::net::SocketAddr;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep_until};

use sshd::{LineQuality, SENT_AGAIN};

/// Longest piece that is delayed as one, in bytes: about a packet.
const PIECE_BYTES: usize = 1_400;
/// Pieces on the way; more wait to be read.
const PIECES_MAX: usize = 4_096;

/// Which way is delayed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DelayDirection {
    /// Only towards the server, so that a round trip is delayed once.
    There,
    /// Both.
    Both,
}

/// Takes connections and passes them on over the line, for ever.
pub async fn run(listener: TcpListener, to: SocketAddr, line: LineQuality, ways: DelayDirection) {
    loop {
        let Ok((client, _)) = listener.accept().await else {
            // A connection that was gone before it was taken; nothing else is left to wait for.
            tokio::time::sleep(Duration::from_millis(10)).await;
            continue;
        };
        tokio::spawn(async move {
            // The client sees a closed connection.
            let _ = pass(client, to, line, ways).await;
        });
    }
}

async fn pass(
    client: TcpStream,
    to: SocketAddr,
    line: LineQuality,
    ways: DelayDirection,
) -> io::Result<()> {
    let server = TcpStream::connect(to).await?;
    client.set_nodelay(true)?;
    server.set_nodelay(true)?;
    let (client_reads, client_writes) = client.into_split();
    let (server_reads, server_writes) = server.into_split();
    let back = (ways == DelayDirection::Both).then_some(line);
    let there = delayed(client_reads, server_writes, Some(line));
    let back = delayed(server_reads, client_writes, back);
    // The end of one direction is the end of the connection once what is on the way has arrived.
    tokio::select! {
        done = there => done,
        done = back => done,
    }
}

async fn delayed(
    mut from: impl AsyncRead + Unpin,
    mut to: impl AsyncWrite + Unpin,
    line: Option<LineQuality>,
) -> io::Result<()> {
    let (sender, mut pieces) = mpsc::channel::<(Instant, Vec<u8>)>(PIECES_MAX);
    let mut chance = DelayRandom::new();
    let reading = async move {
        let mut before = Instant::now();
        loop {
            let mut piece = vec![0; PIECE_BYTES];
            let length = from.read(&mut piece).await?;
            if length == 0 {
                return io::Result::Ok(());
            }
            piece.truncate(length);
            let late = line.map_or(Duration::ZERO, |line| chance.delay(line));
            // Bytes stay in their order.
            before = before.max(Instant::now() + late);
            if sender.send((before, piece)).await.is_err() {
                return Ok(());
            }
        }
    };
    let writing = async move {
        while let Some((at, piece)) = pieces.recv().await {
            sleep_until(at).await;
            to.write_all(&piece).await?;
        }
        to.shutdown().await
    };
    let (read, wrote) = tokio::join!(reading, writing);
    read.and(wrote)
}

/// Chance enough for delays: a xorshift.
struct DelayRandom(u64);

impl DelayRandom {
    fn new() -> Self {
        let since = SystemTime::now().duration_since(UNIX_EPOCH);
        let seed = since.map_or(1, |since| u64::from(since.subsec_nanos()));
        Self(seed | 1)
    }

    /// Returns a number below this one.
    fn below(&mut self, most: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % most.max(1)
    }

    fn delay(&mut self, line: LineQuality) -> Duration {
        let jitter = u64::try_from(line.jitter.as_micros()).unwrap_or(u64::MAX / 4);
        let off = Duration::from_micros(self.below(jitter * 2 + 1));
        let lost = self.below(100) < u64::from(line.loss_percent);
        let again = if lost { SENT_AGAIN } else { Duration::ZERO };
        (line.delay + off + again).saturating_sub(line.jitter)
    }
}
