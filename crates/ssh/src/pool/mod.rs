//! Connections that are kept, and who may use them.
//!
//! A connection is shared by what has the same user, address, port, credential, way and trust, and by
//! nothing else. One of its channels is opened ahead, so that a command costs one round trip. A call waits
//! for a channel within bounds: how many wait, and how long.

mod channel_limit;
mod fault;
mod lane;
mod place;
mod shell;

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use std::time::Duration;

pub(crate) use fault::SlotFault;
use lane::Lane;
pub(crate) use lane::Slot;
use share::{ShareLimits, SharePermit, SharePool, Shortage};
use shell::Heard;
use toolkit::measure::{Measure, Measured};
use toolkit::server::Failure;

use crate::Environment;
use crate::hosts::{Host, Hosts, Place, Secret};
use crate::upstream::{Connection, Order, Way};

/// How often idle connections are looked for.
const TIDY_EVERY: Duration = Duration::from_secs(2);
/// How long a host may take to say where its login begins.
const HOME_WAIT: Duration = Duration::from_secs(2);

/// All connections.
#[derive(Debug)]
pub(crate) struct Pool {
    hosts: Arc<Hosts>,
    environment: Environment,
    lanes: Mutex<HashMap<Key, HeldLane>>,
    /// Permits of lanes that one session has alone, by host.
    own_lanes: Mutex<HashMap<Arc<Host>, SharePool>>,
    pub counts: Arc<Counts>,
    tidying: OnceLock<()>,
    shells: shell::Shells,
    /// Where logins begin, by the names of their hosts.
    homes: Mutex<HashMap<String, String>>,
}

/// Whose connections are the same.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Key {
    host: Arc<Host>,
    /// A session whose caller gave a password, or asked for it, has connections of its own.
    owner: Option<Arc<str>>,
}

/// A lane, and its permit if one session has it alone.
#[derive(Debug)]
struct HeldLane {
    lane: Arc<Lane>,
    _permit: Option<SharePermit>,
}

/// A session with connections of its own.
#[derive(Debug, Clone)]
pub(crate) struct Own {
    /// The session.
    pub owner: Arc<str>,
    /// The password that its caller gave.
    pub password: Option<Secret>,
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

/// State of a lane.
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
            own_lanes: Mutex::default(),
            counts: Arc::default(),
            tidying: OnceLock::new(),
            shells: shell::Shells::default(),
            homes: Mutex::default(),
        }
    }

    /// A channel to a host; over connections of this owner's alone, where there is one. For a caller who has to leave room
    /// for others, or for nobody in particular.
    pub async fn slot(
        self: &Arc<Self>,
        host: &Arc<Host>,
        own: Option<&Own>,
        sharer: Option<&Arc<str>>,
    ) -> Result<Slot, SlotFault> {
        self.tidying.get_or_init(|| {
            tokio::spawn(tidy(Arc::downgrade(self)));
        });
        let lane = self.lane(host, own, sharer)?;
        lane.slot(&self.way(own), sharer).await
    }

    /// The same for a command: the host's login shell is known to give a program its words.
    pub async fn slot_to_run(
        self: &Arc<Self>,
        host: &Arc<Host>,
        own: Option<&Own>,
        sharer: Option<&Arc<str>>,
    ) -> Result<Slot, SlotFault> {
        let slot = self.slot(host, own, sharer).await?;
        let shell = self.shells.of(host);
        if shell.initialized() {
            return Ok(slot);
        }
        // Whoever waits for what is heard keeps no channel from the one who asks.
        drop(slot);
        let asking = async {
            let mut last = shell::lost(host);
            for way in shell::WAYS {
                let slot = self.slot(host, own, sharer).await?;
                let heard = shell::ask(slot, host, way).await;
                match heard.map_err(SlotFault::Connect)? {
                    Heard::Login(login) => return Ok(login),
                    Heard::Other(fault) => last = fault,
                }
            }
            Err(SlotFault::Connect(last))
        };
        // One call asks; the others wait for what it hears.
        shell.get_or_try_init(|| asking).await?;
        self.slot(host, own, sharer).await
    }

    /// Where a host's login begins, as far as it has said.
    pub fn home(&self, host: &Host) -> Option<String> {
        let homes = self.homes.lock().unwrap_or_else(PoisonError::into_inner);
        homes.get(&host.name).cloned()
    }

    /// Asks a host once where its login begins. Without an answer, relative paths stay unknown to rules.
    pub async fn find_home(&self, host: &Host, slot: Slot) {
        if self.home(host).is_some() {
            return;
        }
        let asked = tokio::time::timeout(HOME_WAIT, slot.lead_once(".")).await;
        if let Ok(Ok(Some(Ok(home)))) = asked
            && home.starts_with('/')
        {
            let mut homes = self.homes.lock().unwrap_or_else(PoisonError::into_inner);
            homes.insert(host.name.clone(), home);
        }
    }

    /// Writes an order as the login of its host takes it, as far as that is known.
    pub fn fit(&self, host: &Host, order: &mut Order) {
        if let Some(login) = self.shells.of(host).get() {
            login.fit(order);
        }
    }

    /// A host's sshd has not set a variable that it was asked to set.
    pub fn takes_no_variables(&self, host: &Host) {
        if let Some(login) = self.shells.of(host).get() {
            login.takes_variables.store(false, Ordering::Relaxed);
        }
    }

    fn way<'p>(&'p self, own: Option<&'p Own>) -> Way<'p> {
        Way {
            known_hosts: &self.hosts.known_hosts,
            environment: &self.environment,
            password: own.and_then(|own| own.password.as_ref()),
            limits: &self.hosts.limits,
            takes_incoming: false,
        }
    }

    /// A connection beside the pool's, whose channels are its holder's.
    pub async fn connection(
        &self,
        host: &Arc<Host>,
        own: Option<&Own>,
        takes_incoming: bool,
    ) -> Result<Connection, Failure> {
        let way = Way {
            takes_incoming,
            ..self.way(own)
        };
        let opened = Connection::open(host, &way).await;
        opened.map_err(|fault| SlotFault::Connect(fault).of(host))
    }

    /// Closes the connections of an owner that is gone.
    pub async fn close(&self, host: &Arc<Host>, owner: &Arc<str>) {
        let key = Key {
            host: Arc::clone(host),
            owner: Some(Arc::clone(owner)),
        };
        let held = self.lanes().remove(&key);
        if let Some(held) = held {
            held.lane.close().await;
        }
    }

    /// The secret of this place.
    pub fn secret(&self, place: &Place) -> Result<Secret, String> {
        place.read(&self.environment)
    }

    fn lane(
        &self,
        host: &Arc<Host>,
        own: Option<&Own>,
        sharer: Option<&Arc<str>>,
    ) -> Result<Arc<Lane>, SlotFault> {
        let key = Key {
            host: Arc::clone(host),
            owner: own.map(|own| Arc::clone(&own.owner)),
        };
        let mut lanes = self.lanes();
        if let Some(held) = lanes.get(&key) {
            return Ok(Arc::clone(&held.lane));
        }
        let mut limits = self.hosts.limits;
        let permit = match own {
            Some(_) => {
                let permit = self.own_lane_permit(host, limits.connections_max.max(1), sharer)?;
                limits.connections_max = 1;
                Some(permit)
            }
            None => None,
        };
        let lane = Lane::new(Arc::clone(host), limits, Arc::clone(&self.counts));
        let lane = Arc::new(lane);
        let held = HeldLane {
            lane: Arc::clone(&lane),
            _permit: permit,
        };
        lanes.insert(key, held);
        Ok(lane)
    }

    /// Returns a permit for a lane that one session has alone. Such lanes have one connection each, and are as many as may be shared;
    /// a caller that has to leave room for others has half of them.
    fn own_lane_permit(
        &self,
        host: &Arc<Host>,
        most: usize,
        sharer: Option<&Arc<str>>,
    ) -> Result<SharePermit, SlotFault> {
        let of_caller = (most / 2).max(1);
        let permits = {
            let mut all = self
                .own_lanes
                .lock()
                .unwrap_or_else(PoisonError::into_inner);
            let limits = ShareLimits::of_caller(of_caller, most);
            let of_host = all.entry(Arc::clone(host));
            of_host.or_insert_with(|| SharePool::new(limits)).clone()
        };
        permits.try_acquire(sharer, 1).map_err(|shortage| {
            SlotFault::ConnectionsMax(match shortage {
                Shortage::Caller => of_caller,
                _ => most,
            })
        })
    }

    /// Returns the state of every lane.
    pub fn states(&self) -> Vec<LaneState> {
        let mut states: Vec<LaneState> = self
            .lanes()
            .values()
            .map(|held| held.lane.state())
            .collect();
        states.sort_by(|a, b| a.key.cmp(&b.key));
        states
    }

    fn lanes(&self) -> MutexGuard<'_, HashMap<Key, HeldLane>> {
        self.lanes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn tidy(&self) {
        let lanes: Vec<Arc<Lane>> = {
            let held = self.lanes();
            held.values().map(|held| Arc::clone(&held.lane)).collect()
        };
        for lane in lanes {
            lane.tidy().await;
        }
        self.lanes().retain(|_, held| !held.lane.is_unused());
        let mut own = self
            .own_lanes
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        own.retain(|_, permits| permits.held() > 0);
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
