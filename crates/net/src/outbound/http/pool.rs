//! Kept connections, and how many there may be.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rustls::pki_types::ServerName;
use tokio::net::TcpStream;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_rustls::TlsConnector;

use super::HttpOptions;
use super::connection::Connection;
use super::fault::HttpFault;
use super::stream::Stream;
use super::target::Target;

/// Which connections a request may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lane {
    /// Those for calls, which may last.
    Call,
    /// Those for short messages, which calls may be waiting for.
    Aside,
    /// One of its own, uncounted: for streams that the caller bounds.
    Own,
}

pub(super) struct Pool {
    target: Target,
    tls: Option<(TlsConnector, ServerName<'static>)>,
    idle: Mutex<Vec<Connection>>,
    idle_max: usize,
    calls: Arc<Semaphore>,
    asides: Arc<Semaphore>,
    idle_time: Duration,
    connect_time: Duration,
    head_bytes_max: usize,
}

impl Pool {
    pub(super) fn new(target: Target, tls: Option<TlsConnector>, options: &HttpOptions) -> Self {
        let tls = tls.zip(target.server_name.clone());
        Self {
            target,
            tls,
            idle: Mutex::new(Vec::new()),
            idle_max: options.connections_max,
            calls: Arc::new(Semaphore::new(options.connections_max)),
            asides: Arc::new(Semaphore::new(options.asides_max)),
            idle_time: Duration::from_millis(options.idle_ms_max),
            connect_time: Duration::from_millis(options.connect_ms_max),
            head_bytes_max: options.head_bytes_max,
        }
    }

    pub(super) fn target(&self) -> &Target {
        &self.target
    }

    /// Waits for a place in the lane; the caller's deadline ends the wait.
    pub(super) async fn permit(
        &self,
        lane: Lane,
    ) -> Result<Option<OwnedSemaphorePermit>, HttpFault> {
        let lane = match lane {
            Lane::Call => &self.calls,
            Lane::Aside => &self.asides,
            Lane::Own => return Ok(None),
        };
        match Arc::clone(lane).acquire_owned().await {
            Ok(permit) => Ok(Some(permit)),
            Err(_) => Err(HttpFault::Busy),
        }
    }

    /// The connection that was used last, if it still holds.
    pub(super) fn take_idle(&self) -> Option<Connection> {
        loop {
            let mut connection = self.idle().pop()?;
            if connection.idle_since.elapsed() < self.idle_time && connection.is_ready() {
                return Some(connection);
            }
        }
    }

    pub(super) fn give_back(&self, mut connection: Connection) {
        if !connection.is_ready() {
            return;
        }
        connection.idle_since = Instant::now();
        let mut idle = self.idle();
        if idle.len() < self.idle_max {
            idle.push(connection);
        }
    }

    pub(super) fn reap(&self) {
        // Closed outside of the lock.
        let stale: Vec<Connection> = self
            .idle()
            .extract_if(.., |connection| {
                connection.idle_since.elapsed() >= self.idle_time
            })
            .collect();
        drop(stale);
    }

    pub(super) async fn connect(&self) -> Result<Connection, HttpFault> {
        let connecting = async {
            let place = (self.target.host.as_str(), self.target.port);
            let socket = TcpStream::connect(place).await?;
            socket.set_nodelay(true)?;
            Ok(match &self.tls {
                None => Stream::Plain(socket),
                Some((connector, name)) => {
                    Stream::Secure(Box::new(connector.connect(name.clone(), socket).await?))
                }
            })
        };
        let stream = tokio::time::timeout(self.connect_time, connecting)
            .await
            .map_err(|_| HttpFault::ConnectTimeout)?
            .map_err(HttpFault::of_connecting)?;
        Connection::open(stream, self.head_bytes_max).await
    }

    fn idle(&self) -> MutexGuard<'_, Vec<Connection>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Pool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pool")
            .field("target", &self.target)
            .finish_non_exhaustive()
    }
}
