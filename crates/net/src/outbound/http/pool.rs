//! Kept connections, and how many there may be.

use std::fmt;
use std::sync::atomic::{AtomicUsize, Ordering};
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
    waiting: AtomicUsize,
    waiting_max: usize,
    wait_time: Duration,
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
            waiting: AtomicUsize::new(0),
            waiting_max: options.waiting_max,
            wait_time: Duration::from_millis(options.wait_ms_max),
            asides: Arc::new(Semaphore::new(options.asides_max)),
            idle_time: Duration::from_millis(options.idle_ms_max),
            connect_time: Duration::from_millis(options.connect_ms_max),
            head_bytes_max: options.head_bytes_max,
        }
    }

    pub(super) fn target(&self) -> &Target {
        &self.target
    }

    /// Waits for a place in the lane, within the bounds of that wait and the caller's deadline.
    pub(super) async fn permit(
        &self,
        lane: Lane,
        until: tokio::time::Instant,
    ) -> Result<Option<OwnedSemaphorePermit>, HttpFault> {
        let places = match lane {
            Lane::Call => &self.calls,
            Lane::Aside => &self.asides,
            Lane::Own => return Ok(None),
        };
        if let Ok(permit) = Arc::clone(places).try_acquire_owned() {
            return Ok(Some(permit));
        }
        // Whoever sends asides bounds their number.
        let mut until = until;
        let mut _waiting = None;
        if lane == Lane::Call {
            _waiting = Some(Waiting::begin(&self.waiting, self.waiting_max)?);
            until = until.min(tokio::time::Instant::now() + self.wait_time);
        }
        match tokio::time::timeout_at(until, Arc::clone(places).acquire_owned()).await {
            Ok(Ok(permit)) => Ok(Some(permit)),
            Ok(Err(_)) | Err(_) => Err(HttpFault::Busy),
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

/// One who waits for a place.
struct Waiting<'w>(&'w AtomicUsize);

impl<'w> Waiting<'w> {
    fn begin(count: &'w AtomicUsize, most: usize) -> Result<Self, HttpFault> {
        let waiting = Self(count);
        if count.fetch_add(1, Ordering::AcqRel) >= most {
            return Err(HttpFault::Busy);
        }
        Ok(waiting)
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }
}

impl fmt::Debug for Pool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pool")
            .field("target", &self.target)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pool(options: &HttpOptions) -> Pool {
        let target = Target::parse("http://127.0.0.1:1/", false).unwrap();
        Pool::new(target, None, options)
    }

    fn later() -> tokio::time::Instant {
        tokio::time::Instant::now() + Duration::from_secs(3_600)
    }

    #[tokio::test]
    async fn calls_wait_for_a_connection_in_a_bounded_queue() {
        let pool = Arc::new(pool(&HttpOptions {
            connections_max: 1,
            waiting_max: 1,
            ..HttpOptions::default()
        }));
        let held = pool.permit(Lane::Call, later()).await.unwrap();
        let waits = {
            let pool = Arc::clone(&pool);
            tokio::spawn(async move { pool.permit(Lane::Call, later()).await })
        };
        while pool.waiting.load(Ordering::Acquire) == 0 {
            tokio::task::yield_now().await;
        }
        let one_more = pool.permit(Lane::Call, later()).await;
        assert!(matches!(one_more, Err(HttpFault::Busy)), "{one_more:?}");
        assert!(pool.permit(Lane::Aside, later()).await.is_ok());
        drop(held);
        assert!(waits.await.unwrap().is_ok());
        assert_eq!(pool.waiting.load(Ordering::Acquire), 0);
    }

    #[tokio::test]
    async fn the_wait_for_a_connection_ends() {
        let pool = pool(&HttpOptions {
            connections_max: 1,
            wait_ms_max: 1,
            ..HttpOptions::default()
        });
        let _held = pool.permit(Lane::Call, later()).await.unwrap();
        let waited = pool.permit(Lane::Call, later()).await;
        assert!(matches!(waited, Err(HttpFault::Busy)), "{waited:?}");
    }
}
