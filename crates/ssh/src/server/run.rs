//! One command on a channel of its host, and its end.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::task::JoinHandle;
use toolkit::cancel::Cancel;
use toolkit::server::{Args, Failure, SessionRef};

use super::Ssh;
use crate::end::End;
use crate::hosts::Host;
use crate::paths;
use crate::pool::{Own, Pool, Slot};
use crate::processes::{Aftermath, Whose};
use crate::sessions::Session;
use crate::sudo;
use crate::tools;
use crate::upstream::{self, Ended};

/// A host, and whoever has connections of their own there.
#[derive(Debug, Clone)]
pub(super) struct To {
    pub host: Arc<Host>,
    own: Option<Own>,
    /// The caller, who has to leave room for others there.
    sharer: Option<Arc<str>>,
}

impl To {
    /// A host whose credential the operator has, for this caller.
    pub fn of(host: &Arc<Host>, by: &SessionRef) -> Self {
        Self {
            host: Arc::clone(host),
            own: None,
            sharer: by.shares.then(|| Arc::clone(&by.caller)),
        }
    }

    async fn slot(&self, pool: &Arc<Pool>) -> Result<Slot, Failure> {
        let (own, sharer) = (self.own.as_ref(), self.sharer.as_ref());
        let slot = pool.slot(&self.host, own, sharer).await;
        slot.map_err(|fault| fault.of(&self.host))
    }

    async fn slot_to_run(&self, pool: &Arc<Pool>) -> Result<Slot, Failure> {
        let (own, sharer) = (self.own.as_ref(), self.sharer.as_ref());
        let slot = pool.slot_to_run(&self.host, own, sharer).await;
        slot.map_err(|fault| fault.of(&self.host))
    }
}

impl From<&Session> for To {
    fn from(session: &Session) -> Self {
        Self {
            own: session.own.clone(),
            ..Self::of(&session.host, session.owner())
        }
    }
}

impl Ssh {
    pub(super) async fn slot(&self, to: &To) -> Result<Slot, Failure> {
        to.slot(&self.pool).await
    }

    /// A host, to be asked where paths lead.
    pub(super) fn asking<'a>(
        &'a self,
        to: &'a To,
        args: Args<'_>,
    ) -> paths::Asking<'a, impl Future<Output = Result<Slot, Failure>>> {
        paths::Asking {
            host: &to.host,
            slots: [self.slot(to), self.slot(to)],
            wait: tools::time(args, self.limits()).min(self.limits().queue_wait()),
            further: false,
        }
    }

    /// Runs one command at the host of a session.
    pub(super) async fn run(
        &self,
        session: &Session,
        order: upstream::Order,
        cancel: &Cancel,
    ) -> Result<Ended, Failure> {
        self.run_at(&session.into(), order, cancel).await
    }

    /// The same at a host.
    pub(super) async fn run_at(
        &self,
        to: &To,
        mut order: upstream::Order,
        cancel: &Cancel,
    ) -> Result<Ended, Failure> {
        if !order.by_sudo {
            return self.sent(to, order, cancel).await;
        }
        order.secret = sudo::secret(&to.host, |place| self.pool.secret(place))?;
        let mut ended = self.sent(to, order, cancel).await?;
        sudo::heard(&mut ended, &to.host)?;
        Ok(ended)
    }

    /// Runs one command. What runs is stopped where this is dropped. The answer comes within the order's time and
    /// the grace of [`upstream::run`], whatever the line does.
    async fn sent(
        &self,
        to: &To,
        order: upstream::Order,
        cancel: &Cancel,
    ) -> Result<Ended, Failure> {
        let stop = Stop(Cancel::default());
        let running = self.begin(to, order, stop.0.clone(), cancel).await?;
        tokio::pin!(running);
        let ended = tokio::select! {
            ended = &mut running => ended,
            () = cancel.cancelled() => {
                stop.0.cancel();
                running.await
            }
        };
        ended.map_err(|_| Failure::new("internal", "the command's task failed"))
    }

    /// Begins one command, which runs until its end or until `told` is cancelled. Cancelled before there is a
    /// channel for it, it does not begin.
    pub(super) async fn begin(
        &self,
        to: &To,
        mut order: upstream::Order,
        told: Cancel,
        cancel: &Cancel,
    ) -> Result<JoinHandle<Ended>, Failure> {
        let asked = Instant::now();
        // A terminal's time is for its program; a command's is for all that its answer waits for.
        let wait = match order.terminal {
            Some(_) => self.limits().connect_wait(),
            None => order.bounds.time,
        };
        let slot = tokio::select! {
            slot = tokio::time::timeout(wait, to.slot_to_run(&self.pool)) => match slot {
                Ok(slot) => slot?,
                Err(_) => return Err(late(&to.host, wait)),
            },
            () = cancel.cancelled() => return Err(Failure::new("cancelled", "the command was cancelled before it was sent; it did not run")),
        };
        let Some((channel, taken)) = slot.take() else {
            return Err(Failure::new("connection_lost", "the channel is gone").retryable());
        };
        self.pool.fit(&to.host, &mut order);
        if order.terminal.is_none() {
            order.bounds.time = order.bounds.time.saturating_sub(asked.elapsed());
        }
        let again = Again {
            pool: Arc::clone(&self.pool),
            // However much its caller has there: what runs is stopped.
            to: To {
                sharer: None,
                ..to.clone()
            },
            mark: order.mark.as_ref().map(|marked| marked.mark.clone()),
            whose: order.whose,
        };
        again.follow(&mut order);
        // On a task of its own: a call that was given up does not wait until its command is dead.
        let (metrics, host) = (Arc::clone(&self.metrics), Arc::clone(&to.host));
        let pool = Arc::clone(&self.pool);
        Ok(tokio::spawn(async move {
            let mut ended = upstream::run(channel, order, told).await;
            metrics.command(&host.name, ended.end == End::Exited(0), ended.time);
            if ended.has_variable == Some(false) {
                // The next one gets it in another way.
                pool.takes_no_variables(&host);
            }
            taken.settle(&mut ended);
            ended
        }))
    }

    /// A connection to a host that is nobody else's.
    pub(super) async fn connection(
        &self,
        to: &To,
        takes_incoming: bool,
    ) -> Result<upstream::Connection, Failure> {
        let own = to.own.as_ref();
        self.pool.connection(&to.host, own, takes_incoming).await
    }
}

/// The failure of a call that has waited for a channel for so long.
pub(super) fn late(host: &Host, wait: Duration) -> Failure {
    let wrong = format!(
        "{} gave no channel within {} ms; the command did not run",
        host.name,
        wait.as_millis()
    );
    let failure = Failure::new("timed_out", wrong).retryable();
    failure.with("may_have_run", false)
}

/// What it takes to kill a command over another channel, and to find out what is left of it.
#[derive(Clone)]
struct Again {
    pool: Arc<Pool>,
    to: To,
    mark: Option<upstream::Mark>,
    whose: Whose,
}

impl Again {
    /// Has all that the command has started killed when it is stopped, where it can be found, and has what is left
    /// found out. The killing goes on when the answer is given.
    fn follow(self, order: &mut upstream::Order) {
        if self.mark.is_some() {
            let again = self.clone();
            order.on_stop = Some(upstream::OnStop(Box::new(move |has_variable| {
                // It cannot be found by a variable that it has not.
                if has_variable != Some(false) {
                    tokio::spawn(again.clean_up(Instant::now()));
                }
            })));
        }
        order.inspect = Some(upstream::Inspect(Box::new(move |stopped| {
            Box::pin(async move {
                if !stopped.has_ended {
                    return Aftermath::unknown("its own process was not seen to end");
                }
                let cleaning = tokio::spawn(self.clean_up(stopped.began.into_std()));
                let left = tokio::time::timeout_at(stopped.until, cleaning).await;
                let late = || Aftermath::unknown("the host could not be asked in time");
                let left = left.ok().and_then(Result::ok).flatten();
                left.map_or_else(late, |left| left.aftermath)
            })
        })));
    }

    /// Does that for a command that was sent then; none where there is no channel for it.
    async fn clean_up(self, began: Instant) -> Option<upstream::Left> {
        let slot = self.to.slot(&self.pool).await.ok()?;
        let (channel, taken) = slot.take()?;
        let fit = |order: &mut upstream::Order| self.pool.fit(&self.to.host, order);
        let asked = (|| began.elapsed(), self.whose);
        let left = upstream::clean_up(channel, self.mark.as_ref(), fit, asked).await;
        drop(taken);
        Some(left)
    }
}

/// Stops what runs when nobody waits for it any more.
struct Stop(Cancel);

impl Drop for Stop {
    fn drop(&mut self) {
        self.0.cancel();
    }
}
