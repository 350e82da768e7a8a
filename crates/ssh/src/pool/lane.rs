//! The connections of one user at one host.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use share::SharePermit;
use tokio::sync::Notify;
use tokio::time::Instant;

use super::channel_limit::ChannelLimit;
use super::place::{Place, Places};
use super::{Counts, LaneState, SlotFault};
use crate::hosts::{Host, Limits};
use crate::upstream::{Channel, ConnectFault, Connection, Ended, Led, OpenFault, Sftp, Way};

/// A connection with more places than these keeps a channel for asking about paths.
const KEPT_ASIDE: usize = 2;
/// How often a server is asked for one channel, and how long after the first no.
const OPENINGS_MAX: usize = 3;
const OPEN_AGAIN: Duration = Duration::from_millis(2);
/// How often it is looked whether a channel was opened ahead.
const SPARED_AGAIN: Duration = Duration::from_millis(2);
/// A connection that has given no channel, and no answer about paths, for so long is left for another one.
const STALLED_AFTER: Duration = Duration::from_secs(2);

/// Connections to one host as one user.
#[derive(Debug)]
pub(super) struct Lane {
    host: Arc<Host>,
    limits: Limits,
    counts: Arc<Counts>,
    links: Mutex<Vec<Arc<Link>>>,
    /// Connections that have stalled: what runs there goes on, and nothing new is begun.
    stalled: Mutex<Vec<Weak<Link>>>,
    /// Connections that are being made.
    opening: AtomicUsize,
    /// Calls that have no channel yet.
    asking: AtomicUsize,
    /// Shares of callers that have to leave room for others.
    limit: ChannelLimit,
    /// Channels of one connection, as far as the server has shown.
    channels_max: AtomicUsize,
    /// Told when a channel is free, or a connection is made or failed.
    changed: Notify,
    /// The last failure: who waited for that connection shares it.
    failed: Mutex<Option<(Instant, ConnectFault)>>,
}

/// A connection and its channels.
struct Link {
    connection: Connection,
    places: Places,
    /// A channel that was opened ahead, with its place.
    spare: Mutex<Option<(Channel, Place)>>,
    /// It is being opened.
    sparing: AtomicBool,
    /// The channel on which paths are asked about, where one is kept.
    sftp: tokio::sync::Mutex<Option<(Sftp, Place)>>,
    used: Mutex<Instant>,
}

impl std::fmt::Debug for Link {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Link")
            .field("free", &self.places.free())
            .finish_non_exhaustive()
    }
}

/// A channel, and the place that it takes.
pub(crate) struct Slot {
    channel: Option<Channel>,
    /// Kept until the server has closed the channel.
    place: Option<Place>,
    lane: Arc<Lane>,
    link: Arc<Link>,
    /// Counts for a caller that has to leave room for others.
    permit: Option<SharePermit>,
}

/// The place of a channel whose command is under way.
pub(crate) struct Taken {
    slot: Slot,
}

impl Slot {
    /// Where paths lead at the host, asked over the connection of this place. Where the host gives few
    /// channels, this one is used up for it: `None` then, else the place comes back.
    ///
    /// # Errors
    /// Where the host has no SFTP server, or the connection is lost.
    pub async fn lead(mut self, paths: &[&str]) -> std::io::Result<(Vec<Led>, Option<Self>)> {
        let link = Arc::clone(&self.link);
        let waiting = Waiting::begin(&self.lane, &link);
        let mut kept = link.sftp.lock().await;
        // One whose answer nobody has waited for is of no more use: it is put back once it has answered.
        if let Some((mut sftp, place)) = kept.take() {
            let led = sftp.lead(paths).await?;
            *kept = Some((sftp, place));
            waiting.end();
            return Ok((led, Some(self)));
        }
        let (Some(channel), Some(place)) = (self.channel.take(), self.place.take()) else {
            return Err(std::io::ErrorKind::BrokenPipe.into());
        };
        let mut sftp = Sftp::begin(channel).await?;
        let led = sftp.lead(paths).await?;
        waiting.end();
        if link.places.count() > KEPT_ASIDE {
            *kept = Some((sftp, place));
        }
        Ok((led, None))
    }

    /// Where one path leads, asked on this channel, which is closed then. A server that gives one channel alone is not
    /// asked: the channel is a command's.
    pub async fn lead_once(mut self, path: &str) -> std::io::Result<Option<Led>> {
        while self.link.sparing.load(Ordering::Acquire) {
            tokio::time::sleep(SPARED_AGAIN).await;
        }
        if lock(&self.link.spare).is_none() {
            return Ok(None);
        }
        let Some(channel) = self.channel.take() else {
            return Ok(None);
        };
        let mut sftp = Sftp::begin(channel).await?;
        Ok(sftp.lead(&[path]).await?.pop())
    }

    /// The channel, and what frees its place when it goes.
    pub fn take(mut self) -> Option<(Channel, Taken)> {
        let channel = self.channel.take()?;
        Some((channel, Taken { slot: self }))
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        let unused = self.channel.take();
        let place = self.place.take();
        *lock(&self.link.used) = Instant::now();
        match (unused, place) {
            // Nothing ran on it: it is as good as new.
            (Some(channel), Some(place)) => self.link.spare_again(channel, place),
            (_, place) => drop(place),
        }
        // Its caller's next call finds the place free.
        self.permit = None;
        self.lane.changed.notify_one();
        Lane::prepare(&self.lane, &self.link);
    }
}

impl Taken {
    /// Frees the place of a command that is over: at once, or once the server has closed its channel. A connection on
    /// which nothing was heard any more is left.
    pub fn settle(self, ended: &mut Ended) {
        if ended.is_silent {
            self.slot.lane.leave(&self.slot.link);
        }
        if let Some(left) = ended.open.take() {
            tokio::spawn(async move {
                left.closed().await;
                drop(self);
            });
        }
    }
}

/// A wait for something that a connection gives at once unless it has stalled. A wait that is given up after
/// [`STALLED_AFTER`] leaves the connection.
struct Waiting<'l> {
    lane: &'l Lane,
    link: &'l Arc<Link>,
    began: Instant,
    is_over: bool,
}

impl<'l> Waiting<'l> {
    fn begin(lane: &'l Lane, link: &'l Arc<Link>) -> Self {
        Self {
            lane,
            link,
            began: Instant::now(),
            is_over: false,
        }
    }

    /// It has come, or the connection has said no.
    fn end(mut self) {
        self.is_over = true;
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        if !self.is_over && self.began.elapsed() >= STALLED_AFTER {
            self.lane.leave(self.link);
        }
    }
}

/// What a look at the connections came to.
enum Look<'l> {
    Slot(Slot),
    Wait,
    Make(Opening<'l>),
    Refused(String),
}

impl Lane {
    pub fn new(host: Arc<Host>, limits: Limits, counts: Arc<Counts>) -> Self {
        Self {
            host,
            limits,
            counts,
            links: Mutex::default(),
            stalled: Mutex::default(),
            opening: AtomicUsize::new(0),
            asking: AtomicUsize::new(0),
            limit: ChannelLimit::new(
                limits.connections_max.max(1) * limits.channels_max.max(1),
                limits.queue_max,
            ),
            channels_max: AtomicUsize::new(limits.channels_max.max(1)),
            changed: Notify::new(),
            failed: Mutex::new(None),
        }
    }

    /// A channel, as soon as there is one, for a caller who has to leave room for others, or for nobody in particular.
    pub async fn slot(
        self: &Arc<Self>,
        way: &Way<'_>,
        sharer: Option<&Arc<str>>,
    ) -> Result<Slot, SlotFault> {
        let Some(caller) = sharer else {
            return self.any_slot(way).await;
        };
        let _call = self.limit.call_permit(caller)?;
        let wait = self.limits.queue_wait();
        let permit = self.limit.channel_permit(caller, wait).await?;
        let mut slot = self.any_slot(way).await?;
        slot.permit = Some(permit);
        Ok(slot)
    }

    async fn any_slot(self: &Arc<Self>, way: &Way<'_>) -> Result<Slot, SlotFault> {
        let asked = Instant::now();
        let _asking = Asking::begin(&self.asking, self.limits.queue_max)?;
        let mut waited = false;
        loop {
            let changed = self.changed.notified();
            tokio::pin!(changed);
            changed.as_mut().enable();
            match self.look().await {
                Look::Slot(slot) => {
                    let counted = if waited {
                        &self.counts.misses
                    } else {
                        &self.counts.hits
                    };
                    counted.fetch_add(1, Ordering::Relaxed);
                    return Ok(slot);
                }
                Look::Refused(why) => return Err(SlotFault::Refused(why)),
                Look::Make(opening) => {
                    waited = true;
                    self.make(way).await.map_err(SlotFault::Connect)?;
                    drop(opening);
                    continue;
                }
                Look::Wait => waited = true,
            }
            if let Some((at, fault)) = lock(&self.failed).clone()
                && at >= asked
            {
                return Err(SlotFault::Connect(fault));
            }
            let left = self.limits.queue_wait().saturating_sub(asked.elapsed());
            if tokio::time::timeout(left, changed).await.is_err() {
                // While a connection is made, its own bound holds.
                if self.opening.load(Ordering::Relaxed) == 0 || left.is_zero() {
                    return Err(SlotFault::QueueWait(asked.elapsed()));
                }
            }
        }
    }

    async fn look(self: &Arc<Self>) -> Look<'_> {
        let links = self.live();
        for link in &links {
            match self.of(link).await {
                Ok(Some(slot)) => return Look::Slot(slot),
                Ok(None) => {}
                Err(why) => return Look::Refused(why),
            }
        }
        self.room().map_or(Look::Wait, Look::Make)
    }

    /// Room for another connection, where one is wanted.
    fn room(&self) -> Option<Opening<'_>> {
        // Counted under the lock under which connections are added, so that there are never too many.
        let links = self.links();
        let opening = self.opening.load(Ordering::Acquire);
        let coming = opening * self.channels_max.load(Ordering::Relaxed);
        let is_wanted = self.asking.load(Ordering::Relaxed) > coming;
        let has_room = links.len() + opening < self.limits.connections_max.max(1);
        (is_wanted && has_room).then(|| {
            self.opening.fetch_add(1, Ordering::AcqRel);
            Opening(self)
        })
    }

    /// A channel of this connection, where it has one.
    async fn of(self: &Arc<Self>, link: &Arc<Link>) -> Result<Option<Slot>, String> {
        let ready = lock(&link.spare).take();
        let (channel, place) = match ready {
            Some(ready) => ready,
            None => {
                let Some(mut place) = link.places.take() else {
                    return Ok(None);
                };
                let waiting = Waiting::begin(self, link);
                // Given up here, the connection is left, and the next one is asked.
                let Ok(opened) = tokio::time::timeout(STALLED_AFTER, link.open()).await else {
                    return Ok(None);
                };
                waiting.end();
                match opened {
                    Ok(channel) => {
                        place.was_given();
                        (channel, place)
                    }
                    Err(OpenFault::Full) => {
                        self.learn(link, place);
                        return Ok(None);
                    }
                    Err(OpenFault::Lost) => return Ok(None),
                    Err(OpenFault::Refused(why)) => return Err(why),
                }
            }
        };
        let slot = Slot {
            channel: Some(channel),
            place: Some(place),
            lane: Arc::clone(self),
            link: Arc::clone(link),
            permit: None,
        };
        Self::prepare(self, link);
        Ok(Some(slot))
    }

    /// The server gave no channel for this place: it takes fewer than was thought.
    fn learn(&self, link: &Link, place: Place) {
        if let Some(places) = link.places.give_up(place) {
            let before = self.channels_max.fetch_min(places, Ordering::Relaxed);
            let channels = before.min(places);
            self.limit
                .set_channels(self.limits.connections_max.max(1) * channels);
        }
    }

    /// Opens a channel ahead, where there is a place for one.
    fn prepare(lane: &Arc<Self>, link: &Arc<Link>) {
        if link.connection.is_closed()
            || lock(&link.spare).is_some()
            || link.sparing.swap(true, Ordering::AcqRel)
        {
            return;
        }
        let Some(mut place) = link.places.take() else {
            link.sparing.store(false, Ordering::Release);
            return;
        };
        let (Ok(runtime), lane, link) = (
            tokio::runtime::Handle::try_current(),
            Arc::clone(lane),
            Arc::clone(link),
        ) else {
            return;
        };
        runtime.spawn(async move {
            match link.open().await {
                Ok(channel) => {
                    place.was_given();
                    link.spare_again(channel, place);
                }
                Err(OpenFault::Full) => lane.learn(&link, place),
                Err(OpenFault::Lost | OpenFault::Refused(_)) => drop(place),
            }
            link.sparing.store(false, Ordering::Release);
            lane.changed.notify_one();
        });
    }

    async fn make(self: &Arc<Self>, way: &Way<'_>) -> Result<(), ConnectFault> {
        self.counts.creates.fetch_add(1, Ordering::Relaxed);
        match Connection::open(&self.host, way).await {
            Ok(connection) => {
                let places = self.channels_max.load(Ordering::Relaxed);
                self.links().push(Arc::new(Link {
                    connection,
                    places: Places::new(places),
                    spare: Mutex::new(None),
                    sftp: tokio::sync::Mutex::new(None),
                    sparing: AtomicBool::new(false),
                    used: Mutex::new(Instant::now()),
                }));
                Ok(())
            }
            Err(fault) => {
                *lock(&self.failed) = Some((Instant::now(), fault.clone()));
                Err(fault)
            }
        }
    }

    /// Begins nothing more on a connection that has stalled. As many are left so as there may be connections.
    fn leave(&self, link: &Arc<Link>) {
        let mut stalled = lock(&self.stalled);
        stalled.retain(|link| link.strong_count() > 0);
        if stalled.len() >= self.limits.connections_max.max(1) {
            return;
        }
        let mut links = self.links();
        let before = links.len();
        links.retain(|of| !Arc::ptr_eq(of, link));
        if links.len() < before {
            stalled.push(Arc::downgrade(link));
            self.counts.health_fails.fetch_add(1, Ordering::Relaxed);
            tracing::warn!(
                host = self.host.name,
                "a connection has stalled; another one is opened"
            );
        }
        drop(links);
        self.changed.notify_waiters();
    }

    fn live(&self) -> Vec<Arc<Link>> {
        let mut links = self.links();
        links.retain(|link| !link.connection.is_closed());
        links.clone()
    }

    fn links(&self) -> MutexGuard<'_, Vec<Arc<Link>>> {
        lock(&self.links)
    }

    pub fn state(&self) -> LaneState {
        let links = self.live();
        LaneState {
            key: format!("{}@{}", self.host.credential.user, self.host.name),
            host: self.host.name.clone(),
            total: links.len(),
            idle: links.iter().filter(|link| link.is_idle()).count(),
            channels_max: self.channels_max.load(Ordering::Relaxed),
            waiting: self.asking.load(Ordering::Relaxed),
        }
    }

    /// Closes connections that nothing has used for long.
    pub async fn tidy(&self) {
        let idle_max = Duration::from_millis(self.limits.idle_ms_max);
        let lost = {
            let mut links = self.links();
            let before = links.len();
            links.retain(|link| !link.connection.is_closed());
            before - links.len()
        };
        self.counts
            .health_fails
            .fetch_add(lost as u64, Ordering::Relaxed);
        let old: Vec<Arc<Link>> = self
            .links()
            .extract_if(.., |link| {
                link.is_idle() && lock(&link.used).elapsed() >= idle_max
            })
            .collect();
        for link in old {
            self.counts.expires.fetch_add(1, Ordering::Relaxed);
            link.connection.close().await;
        }
    }

    /// Closes its connections, whatever runs on them.
    pub async fn close(&self) {
        let links = std::mem::take(&mut *self.links());
        for link in links {
            link.connection.close().await;
        }
    }

    pub fn is_unused(&self) -> bool {
        self.links().is_empty()
            && self.opening.load(Ordering::Relaxed) == 0
            && self.asking.load(Ordering::Relaxed) == 0
    }
}

impl Link {
    /// Opens a channel. A server that gives none is asked again: it may not have put away one that was
    /// closed just before.
    async fn open(&self) -> Result<Channel, OpenFault> {
        let mut wait = OPEN_AGAIN;
        for _ in 1..OPENINGS_MAX {
            match self.connection.channel().await {
                Err(OpenFault::Full) => tokio::time::sleep(wait).await,
                other => return other,
            }
            wait *= 4;
        }
        self.connection.channel().await
    }

    /// Whether nothing runs on it.
    fn is_idle(&self) -> bool {
        let aside = usize::from(self.sftp.try_lock().is_ok_and(|kept| kept.is_some()));
        let spare = aside
            + usize::from(lock(&self.spare).is_some() || self.sparing.load(Ordering::Relaxed));
        self.places.free() + spare >= self.places.count()
    }

    fn spare_again(&self, channel: Channel, place: Place) {
        let mut spare = lock(&self.spare);
        if spare.is_none() {
            *spare = Some((channel, place));
        }
    }
}

/// A connection that is being made.
struct Opening<'l>(&'l Lane);

impl Drop for Opening<'_> {
    fn drop(&mut self) {
        self.0.opening.fetch_sub(1, Ordering::AcqRel);
        self.0.changed.notify_waiters();
    }
}

/// A call that has no channel yet.
struct Asking<'l>(&'l AtomicUsize);

impl<'l> Asking<'l> {
    fn begin(asking: &'l AtomicUsize, most: usize) -> Result<Self, SlotFault> {
        if asking.fetch_add(1, Ordering::AcqRel) >= most {
            asking.fetch_sub(1, Ordering::AcqRel);
            return Err(SlotFault::QueueFull(most));
        }
        Ok(Self(asking))
    }
}

impl Drop for Asking<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
