//! One command on a channel of its host, and its end.

use std::sync::Arc;

use toolkit::cancel::Cancel;
use toolkit::server::Failure;

use super::Ssh;
use crate::hosts::{Host, Secret};
use crate::paths;
use crate::pool::{Pool, SlotFault};
use crate::sessions::Session;
use crate::upstream::{self, End, Ended};

impl Ssh {
    pub(super) async fn slot(&self, session: &Session) -> Result<crate::pool::Slot, Failure> {
        let given = session
            .password
            .as_ref()
            .map(|password| (&session.id, password));
        self.pool
            .slot(&session.host, given)
            .await
            .map_err(|fault| failure(&session.host, fault))
    }

    /// The host of a session, to be asked where paths lead.
    pub(super) fn asking<'a>(
        &'a self,
        session: &'a Session,
    ) -> paths::Asking<'a, impl Future<Output = Result<crate::pool::Slot, Failure>>> {
        paths::Asking {
            host: &session.host,
            slot: self.slot(session),
            wait: self.limits().queue_wait(),
        }
    }

    /// Runs one command. What runs is stopped where this is dropped.
    pub(super) async fn run(
        &self,
        session: &Session,
        order: upstream::Order,
        cancel: &Cancel,
    ) -> Result<Ended, Failure> {
        let slot = tokio::select! {
            slot = self.slot(session) => slot?,
            () = cancel.cancelled() => return Err(Failure::new("cancelled", "the command was cancelled before it was sent; it did not run")),
        };
        let Some((channel, taken)) = slot.take() else {
            return Err(Failure::new("connection_lost", "the channel is gone").retryable());
        };
        let stop = Stop(Cancel::default());
        let told = stop.0.clone();
        let again = Again::of(self, session, order.mark.clone());
        // On a task of its own: killing it takes longer than anybody waits for a call that was given up.
        let (metrics, host) = (Arc::clone(&self.metrics), Arc::clone(&session.host));
        let running = tokio::spawn(async move {
            let mut ended = upstream::run(channel, order, told).await;
            metrics.command(&host.name, ended.end == End::Exited(0), ended.time);
            again.kill(&mut ended.end).await;
            if let Some(left) = ended.open.take() {
                tokio::spawn(async move {
                    left.closed().await;
                    drop(taken);
                });
            }
            ended
        });
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
}

/// What it takes to kill a command over another channel.
struct Again {
    pool: Arc<Pool>,
    host: Arc<Host>,
    given: Option<(Arc<str>, Secret)>,
    mark: Option<upstream::Mark>,
}

impl Again {
    fn of(server: &Ssh, session: &Session, mark: Option<upstream::Mark>) -> Self {
        let password = session.password.clone();
        Self {
            pool: Arc::clone(&server.pool),
            host: Arc::clone(&session.host),
            given: password.map(|password| (Arc::clone(&session.id), password)),
            mark,
        }
    }

    /// Kills a command whose end was not seen, where it can be found.
    async fn kill(self, end: &mut End) {
        let (End::TimedOut { seen } | End::Cancelled { seen }, Some(mark)) = (end, self.mark)
        else {
            return;
        };
        if *seen {
            return;
        }
        let given = self
            .given
            .as_ref()
            .map(|(owner, password)| (owner, password));
        if let Ok(slot) = self.pool.slot(&self.host, given).await
            && let Some((channel, _taken)) = slot.take()
        {
            *seen = mark.kill(channel).await;
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

fn failure(host: &Host, fault: SlotFault) -> Failure {
    match fault {
        SlotFault::Connect(fault) => {
            let failure = Failure::new(fault.code, fault.wrong);
            if fault.retryable {
                failure.retryable()
            } else {
                failure
            }
        }
        SlotFault::QueueFull(most) => {
            let wrong = format!("{most} calls wait for {} already; try again", host.name);
            Failure::new("queue_full", wrong).retryable()
        }
        SlotFault::QueueWait(waited) => {
            let wrong = format!(
                "no channel to {} was free for {} ms; the command did not run",
                host.name,
                waited.as_millis()
            );
            Failure::new("queue_timed_out", wrong).retryable()
        }
        SlotFault::Refused(why) => {
            let wrong = format!("{} takes no commands on this login: {why}", host.name);
            Failure::new("refused_by_server", wrong)
        }
    }
}
