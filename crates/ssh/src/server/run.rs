//! One command on a channel of its host, and its end.

use std::sync::Arc;

use tokio::task::JoinHandle;
use toolkit::cancel::Cancel;
use toolkit::server::{Failure, SessionRef};

use super::Ssh;
use crate::end::End;
use crate::hosts::Host;
use crate::paths;
use crate::pool::{Own, Pool, Slot};
use crate::sessions::Session;
use crate::sudo;
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
    ) -> paths::Asking<'a, impl Future<Output = Result<Slot, Failure>>> {
        paths::Asking {
            host: &to.host,
            slots: [self.slot(to), self.slot(to)],
            wait: self.limits().queue_wait(),
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

    /// Runs one command. What runs is stopped where this is dropped.
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
        let slot = tokio::select! {
            slot = to.slot_to_run(&self.pool) => slot?,
            () = cancel.cancelled() => return Err(Failure::new("cancelled", "the command was cancelled before it was sent; it did not run")),
        };
        let Some((channel, taken)) = slot.take() else {
            return Err(Failure::new("connection_lost", "the channel is gone").retryable());
        };
        self.pool.fit(&to.host, &mut order);
        let mut again = Again {
            pool: Arc::clone(&self.pool),
            // However much its caller has there: what runs is stopped.
            to: To {
                sharer: None,
                ..to.clone()
            },
            mark: order.mark.as_ref().map(|marked| marked.mark.clone()),
        };
        // On a task of its own: killing it takes longer than anybody waits for a call that was given up.
        let (metrics, host) = (Arc::clone(&self.metrics), Arc::clone(&to.host));
        Ok(tokio::spawn(async move {
            let mut ended = upstream::run(channel, order, told).await;
            metrics.command(&host.name, ended.end == End::Exited(0), ended.time);
            if ended.has_variable == Some(false) {
                // It cannot be found by a variable that it has not; the next one gets it in another way.
                again.mark = None;
                again.pool.takes_no_variables(&again.to.host);
            }
            again.kill(&mut ended.end).await;
            if let Some(left) = ended.open.take() {
                tokio::spawn(async move {
                    left.closed().await;
                    drop(taken);
                });
            }
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

/// What it takes to kill a command over another channel.
struct Again {
    pool: Arc<Pool>,
    to: To,
    mark: Option<upstream::Mark>,
}

impl Again {
    /// Kills a command whose end was not seen, where it can be found.
    async fn kill(self, end: &mut End) {
        let (End::TimedOut { seen } | End::Cancelled { seen }, Some(mark)) = (end, self.mark)
        else {
            return;
        };
        if *seen {
            return;
        }
        if let Ok(slot) = self.to.slot(&self.pool).await
            && let Some((channel, _taken)) = slot.take()
        {
            let fit = |order: &mut upstream::Order| self.pool.fit(&self.to.host, order);
            *seen = mark.kill(channel, fit).await;
        }
    }
}

/// Stops what runs when nobody waits for it any more.
struct Stop(Cancel);

impl Drop for Stop {
    fn drop(&mut self) {
        self.0.cancel();
    }
}
