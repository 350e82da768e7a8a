//! Connections that are kept, and who may use them.
//!
//! A connection is shared by what has the same user, address, port, credential, way and trust, and by
//! nothing else. One of its channels is opened ahead, so that a command costs one round trip. A call waits
//! for a channel within bounds: how many wait, and how long.

mod fault;
mod lane;

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use std::time::Duration;

pub(crate) use fault::SlotFault;
use lane::Lane;
pub(crate) use lane::Slot;
use toolkit::measure::{Measure, Measured};

use crate::Environment;
use crate::hosts::{Host, Hosts, Place, Secret};

/// How often idle connections are looked for.
const TIDY_EVERY: Duration = Duration::from_secs(2);

/// All connections.
#[derive(Debug)]
pub(crate) struct Pool {
    hosts: Arc<Hosts>,
    environment: Environment,
    lanes: Mutex<HashMap<Key, Arc<Lane>>>,
    pub counts: Arc<Counts>,
    tidying: OnceLock<()>,
}

/// Whose connections are the same.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Key {
    host: Arc<Host>,
    /// A caller who gave a password has connections of its own.
    owner: Option<Arc<str>>,
}

/// What happened so far.
#[derive(Debug, Default)]
pub(crate) struct Counts {
    pub hits: AtomicU64,
    pub misses: AtomicU64,
    pub creates: AtomicU64,
    pub expires: AtomicU64,
    pub health_fails: AtomicU64,
}

impl Counts {
    /// All of them, for a scrape.
    pub fn measures(&self) -> impl Iterator<Item = Measure> {
        let all = [
            (
                "mcp_pool_hits",
                "Channels that were there at once",
                &self.hits,
            ),
            (
                "mcp_pool_misses",
                "Channels that were waited for",
                &self.misses,
            ),
            (
                "mcp_pool_creates",
                "Connections that were begun",
                &self.creates,
            ),
            (
                "mcp_pool_expires",
                "Connections that were closed unused",
                &self.expires,
            ),
            (
                "mcp_pool_health_fails",
                "Connections that were found lost",
                &self.health_fails,
            ),
        ];
        let all = all.map(|(name, about, count)| {
            let count = count.load(Ordering::Relaxed);
            Measure::new(name, about, &[], Measured::Count(count))
        });
        all.into_iter()
    }
}

/// How a lane stands.
#[derive(Debug, Clone)]
pub(crate) struct LaneState {
    pub key: String,
    pub host: String,
    pub total: usize,
    pub idle: usize,
    pub channels_max: usize,
    pub waiting: usize,
}

impl Pool {
    pub fn new(hosts: Arc<Hosts>, environment: Environment) -> Self {
        Self {
            hosts,
            environment,
            lanes: Mutex::default(),
            counts: Arc::default(),
            tidying: OnceLock::new(),
        }
    }

    /// A channel to a host; `given` is the password of this owner.
    pub async fn slot(
        self: &Arc<Self>,
        host: &Arc<Host>,
        given: Option<(&Arc<str>, &Secret)>,
    ) -> Result<Slot, SlotFault> {
        self.tidying.get_or_init(|| {
            tokio::spawn(tidy(Arc::downgrade(self)));
        });
        let lane = self.lane(host, given.map(|(owner, _)| owner));
        let way = crate::upstream::Way {
            known_hosts: &self.hosts.known_hosts,
            environment: &self.environment,
            password: given.map(|(_, password)| password),
            limits: &self.hosts.limits,
        };
        lane.slot(&way).await
    }

    /// The secret of this place.
    pub fn secret(&self, place: &Place) -> Result<Secret, String> {
        place.read(&self.environment)
    }

    fn lane(&self, host: &Arc<Host>, owner: Option<&Arc<str>>) -> Arc<Lane> {
        let key = Key {
            host: Arc::clone(host),
            owner: owner.cloned(),
        };
        let mut lanes = self.lanes();
        let lane = lanes.entry(key).or_insert_with(|| {
            Arc::new(Lane::new(
                Arc::clone(host),
                self.hosts.limits,
                Arc::clone(&self.counts),
            ))
        });
        Arc::clone(lane)
    }

    /// How every lane stands.
    pub fn states(&self) -> Vec<LaneState> {
        let mut states: Vec<LaneState> = self.lanes().values().map(|lane| lane.state()).collect();
        states.sort_by(|a, b| a.key.cmp(&b.key));
        states
    }

    fn lanes(&self) -> MutexGuard<'_, HashMap<Key, Arc<Lane>>> {
        self.lanes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn tidy(&self) {
        let lanes: Vec<Arc<Lane>> = self.lanes().values().cloned().collect();
        for lane in lanes {
            lane.tidy().await;
        }
        self.lanes().retain(|_, lane| !lane.is_unused());
    }
}

async fn tidy(pool: Weak<Pool>) {
    loop {
        tokio::time::sleep(TIDY_EVERY).await;
        match pool.upgrade() {
            Some(pool) => pool.tidy().await,
            None => return,
        }
    }
}
