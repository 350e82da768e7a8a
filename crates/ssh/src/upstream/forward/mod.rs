//! Port forwards, each over a connection of its own, which goes with it.

mod socks;

use std::io;
use std::sync::Arc;
use std::time::Duration;

use russh::client::Msg;
use tokio::io::{AsyncRead, AsyncWrite, copy_bidirectional};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::Instant;
use toolkit::cancel::Cancel;

use super::connection::Connection;
use crate::forwards::{Asked, Bounds, Forward, Kind, State, Target};

/// How often a forward is looked at: whether it is idle, or its connection is gone.
const LOOK_EVERY: Duration = Duration::from_millis(500);
/// How long a client has to say where it wants to go.
const HANDSHAKE: Duration = Duration::from_secs(10);
/// Connections that wait to be taken in, of a port at the host.
pub(super) const INCOMING_MAX: usize = 16;

type Stream = russh::ChannelStream<Msg>;

/// Where connections come from.
enum Source {
    Here(TcpListener),
    There(mpsc::Receiver<russh::Channel<Msg>>),
}

enum Incoming {
    Socket(TcpStream),
    Channel(Stream),
}

impl Source {
    /// The next connection; none where there will be no more.
    async fn next(&mut self) -> Option<Incoming> {
        match self {
            Self::Here(listener) => match listener.accept().await {
                Ok((socket, _)) => Some(Incoming::Socket(socket)),
                Err(error) => {
                    tracing::warn!(%error, "a forward takes no connections");
                    None
                }
            },
            Self::There(channels) => {
                let channel = channels.recv().await?;
                Some(Incoming::Channel(channel.into_stream()))
            }
        }
    }
}

/// Opens a forward over this connection.
///
/// # Errors
/// Where it cannot listen; the connection is closed then.
pub(crate) async fn open(
    connection: Connection,
    asked: Asked,
    bounds: Bounds,
) -> Result<Forward, String> {
    let connection = Arc::new(connection);
    let listening = listen(&connection, &asked).await;
    let (source, listening) = match listening {
        Ok(listening) => listening,
        Err(wrong) => {
            connection.close().await;
            return Err(wrong);
        }
    };
    let (state, stop) = (State::default(), Cancel::default());
    let serving = Serving {
        connection,
        kind: asked.kind,
        targets: asked.targets.clone().into(),
        bounds,
        state: state.clone(),
    };
    tokio::spawn(serving.serve(source, stop.clone()));
    Ok(Forward::new(asked, listening, state, stop))
}

async fn listen(connection: &Connection, asked: &Asked) -> Result<(Source, String), String> {
    let at = asked.listen();
    if asked.kind == Kind::Remote {
        let port = connection.listen(asked.address, asked.port).await;
        let port = port.map_err(|wrong| format!("the host does not listen at {at}: {wrong}"))?;
        let incoming = connection
            .incoming()
            .ok_or("the connection has no incoming channels")?;
        let at = std::net::SocketAddr::new(asked.address, port);
        return Ok((Source::There(incoming), at.to_string()));
    }
    let wrong = |error: io::Error| format!("{at} cannot be listened at: {error}");
    let bound = TcpListener::bind((asked.address, asked.port)).await;
    let listener = bound.map_err(wrong)?;
    let at = listener.local_addr().map_err(wrong)?.to_string();
    Ok((Source::Here(listener), at))
}

/// A forward that is served.
struct Serving {
    connection: Arc<Connection>,
    kind: Kind,
    targets: Arc<[Target]>,
    bounds: Bounds,
    state: State,
}

impl Serving {
    async fn serve(self, mut source: Source, stop: Cancel) {
        let mut under_way = JoinSet::new();
        let mut idle_since = Instant::now();
        let why = loop {
            tokio::select! {
                () = stop.cancelled() => break "closed",
                incoming = source.next() => match incoming {
                    Some(incoming) => {
                        idle_since = Instant::now();
                        if under_way.len() >= self.bounds.connections_max {
                            self.state.told().turned_away += 1;
                            continue;
                        }
                        under_way.spawn(self.one(incoming));
                    }
                    None => break "the port is gone",
                },
                Some(_) = under_way.join_next() => idle_since = Instant::now(),
                () = tokio::time::sleep(LOOK_EVERY) => {
                    if self.connection.is_closed() {
                        break "the connection was lost";
                    }
                    if under_way.is_empty() && idle_since.elapsed() >= self.bounds.idle {
                        break "it was idle";
                    }
                }
            }
        };
        drop(source);
        under_way.shutdown().await;
        self.connection.close().await;
        let mut told = self.state.told();
        told.open = 0;
        told.ended = Some(why);
    }

    /// One connection, from its beginning to its end.
    fn one(&self, incoming: Incoming) -> impl Future<Output = ()> + Send + 'static {
        let (connection, state) = (Arc::clone(&self.connection), self.state.clone());
        let (targets, kind, wait) = (Arc::clone(&self.targets), self.kind, self.bounds.connect);
        async move {
            let _open = Open::begin(state.clone());
            let sent = match incoming {
                Incoming::Channel(channel) => to_here(channel, &targets, wait).await,
                Incoming::Socket(socket) => {
                    let _ = socket.set_nodelay(true);
                    to_there(socket, &connection, kind, &targets, wait).await
                }
            };
            let mut told = state.told();
            match sent {
                Ok((out, back)) => {
                    told.bytes[0] += out;
                    told.bytes[1] += back;
                }
                Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                    told.turned_away += 1;
                }
                Err(_) => {}
            }
        }
    }
}

/// A connection that is counted as open.
struct Open(State);

impl Open {
    fn begin(state: State) -> Self {
        let mut told = state.told();
        told.open += 1;
        told.taken += 1;
        drop(told);
        Self(state)
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        let mut told = self.0.told();
        told.open = told.open.saturating_sub(1);
    }
}

async fn to_there(
    mut socket: TcpStream,
    connection: &Connection,
    kind: Kind,
    targets: &[Target],
    wait: Duration,
) -> io::Result<(u64, u64)> {
    let late = || io::Error::from(io::ErrorKind::TimedOut);
    let target = if kind == Kind::Dynamic {
        let asked = tokio::time::timeout(HANDSHAKE, socks::asked(&mut socket, targets));
        asked.await.map_err(|_| late())??
    } else {
        targets.first().ok_or_else(late)?.clone()
    };
    let opened = tokio::time::timeout(wait, connection.direct(&target));
    let opened = opened.await.unwrap_or_else(|_| Err(late()));
    if kind == Kind::Dynamic {
        socks::answer(&mut socket, opened.is_ok()).await?;
    }
    between(socket, opened?).await
}

async fn to_here(channel: Stream, targets: &[Target], wait: Duration) -> io::Result<(u64, u64)> {
    let none = || io::Error::from(io::ErrorKind::NotFound);
    let target = targets.first().ok_or_else(none)?;
    let socket = net::outbound::tcp::connect(&target.host, target.port, wait).await?;
    between(channel, socket).await
}

async fn between<A, B>(mut from: A, mut to: B) -> io::Result<(u64, u64)>
where
    A: AsyncRead + AsyncWrite + Unpin,
    B: AsyncRead + AsyncWrite + Unpin,
{
    copy_bidirectional(&mut from, &mut to).await
}
