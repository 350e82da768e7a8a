//! Kept connections, and how many there may be.

use std::fmt;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rustls::pki_types::ServerName;
use tokio::net::TcpStream;
use tokio::runtime::Id;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_rustls::TlsConnector;

use super::HttpOptions;
use super::connection::{Connection, End, here};
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

/// A connection, boxed: taking one out from between others moves a pointer.
pub(super) type Kept = Box<Connection>;

pub(super) struct Pool {
    target: Target,
    tls: Option<(TlsConnector, ServerName<'static>)>,
    idle: Mutex<Vec<Kept>>,
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

    /// Waits for a place in the lane, within the bounds of that wait and the caller's own.
    pub(super) async fn permit(
        &self,
        lane: Lane,
        end: End,
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
        let mut wait_time = end.left();
        let mut _waiting = None;
        if lane == Lane::Call {
            _waiting = Some(Waiting::begin(&self.waiting, self.waiting_max)?);
            wait_time = wait_time.min(self.wait_time);
        }
        match tokio::time::timeout(wait_time, Arc::clone(places).acquire_owned()).await {
            Ok(Ok(permit)) => Ok(Some(permit)),
            Ok(Err(_)) | Err(_) => Err(HttpFault::Busy),
        }
    }

    /// The connection that was used last, if it still holds: one of this runtime's, which nobody else has to be woken for.
    /// Another runtime's is moved here where this is the only call, since then there need not be a second connection; or where
    /// there are as many as may be.
    ///
    /// Whether its server has closed it meanwhile, whoever sends finds out before anything is sent.
    pub(super) async fn take_idle(&self) -> Option<Kept> {
        let here = here();
        loop {
            let connection = self.pop_idle(here)?;
            if connection.is_stale(self.idle_time) {
                continue;
            }
            if connection.is_at(here) {
                return Some(connection);
            }
            if let Some(moved) = connection.moved(self.head_bytes_max).await {
                return Some(Box::new(moved));
            }
        }
    }

    fn pop_idle(&self, here: Option<Id>) -> Option<Kept> {
        let mut idle = self.idle();
        if let Some(own) = idle.iter().rposition(|connection| connection.is_at(here)) {
            return Some(idle.remove(own));
        }
        let in_use = self.idle_max.saturating_sub(self.calls.available_permits());
        let is_moved = in_use <= 1 || in_use + idle.len() >= self.idle_max;
        is_moved.then(|| idle.pop()).flatten()
    }

    pub(super) fn give_back(&self, mut connection: Kept) {
        if !connection.is_ready() {
            return;
        }
        connection.rests();
        let mut idle = self.idle();
        if idle.len() < self.idle_max {
            idle.push(connection);
        }
    }

    pub(super) fn reap(&self) {
        // Closed outside of the lock.
        let stale: Vec<Kept> = self
            .idle()
            .extract_if(.., |connection| connection.is_stale(self.idle_time))
            .collect();
        drop(stale);
    }

    pub(super) async fn connect(&self) -> Result<Kept, HttpFault> {
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
        let connection = Connection::open(stream, self.head_bytes_max).await;
        connection.map(Box::new)
    }

    fn idle(&self) -> MutexGuard<'_, Vec<Kept>> {
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

    fn later() -> End {
        End::after_ms(3_600_000)
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

    /// A pool before a listener that takes connections and says nothing, and how many it has taken.
    fn listening() -> (std::net::TcpListener, Pool) {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/", listener.local_addr().unwrap());
        let options = HttpOptions {
            connections_max: 4,
            ..HttpOptions::default()
        };
        let target = Target::parse(&url, false).unwrap();
        (listener, Pool::new(target, None, &options))
    }

    fn runtime() -> tokio::runtime::Runtime {
        let mut builder = tokio::runtime::Builder::new_current_thread();
        builder.enable_all().build().unwrap()
    }

    #[test]
    fn a_kept_connection_is_used_where_it_is_known() {
        let (_listener, pool) = listening();
        let (one, other) = (runtime(), runtime());
        let connect = |at: &tokio::runtime::Runtime| {
            let connection = at.block_on(pool.connect()).unwrap();
            pool.give_back(connection);
        };
        let take = |at: &tokio::runtime::Runtime| {
            at.block_on(async {
                let taken = pool.take_idle().await?;
                Some((taken.is_at(here()), taken))
            })
        };
        let busy =
            |at: &tokio::runtime::Runtime| at.block_on(pool.permit(Lane::Call, later())).unwrap();
        connect(&one);
        let under_way = (busy(&one), busy(&other));
        assert!(take(&other).is_none(), "a second one rather than a wake");
        connect(&other);
        assert!(take(&one).unwrap().0 && take(&other).unwrap().0);
        assert!(pool.idle().is_empty());
        connect(&one);
        connect(&one);
        // As many as may be: two are used, one more is kept than there is room for.
        let (is_here, moved) = take(&other).unwrap();
        assert!(is_here, "moved");
        pool.give_back(moved);
        drop(under_way);
        // A call that is alone gets by with what there is, wherever that was.
        for runtime in [&one, &other, &one, &other] {
            let alone = busy(runtime);
            while let Some((is_here, connection)) = take(runtime) {
                assert!(is_here);
                drop(connection);
            }
            drop(alone);
            connect(&one);
        }
        assert_eq!(pool.idle().len(), 1);
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
