//! Why there is no channel.

use std::time::Duration;

use toolkit::server::Failure;

use crate::hosts::Host;
use crate::upstream::ConnectFault;

/// Why there is no channel.
#[derive(Debug, Clone)]
pub(crate) enum SlotFault {
    Connect(ConnectFault),
    /// Too many wait already.
    QueueFull(usize),
    /// So many sessions have a connection of their own already.
    ConnectionsMax(usize),
    /// It waited too long.
    QueueWait(Duration),
    /// The server takes no command at all.
    Refused(String),
}

impl SlotFault {
    /// As a tool tells it.
    pub fn of(self, host: &Host) -> Failure {
        match self {
            Self::Connect(fault) => {
                let failure = Failure::new(fault.code, fault.wrong);
                if fault.retryable {
                    failure.retryable()
                } else {
                    failure
                }
            }
            Self::QueueFull(most) => {
                let wrong = format!("{most} calls wait for {} already; try again", host.name);
                Failure::new("queue_full", wrong).retryable()
            }
            Self::ConnectionsMax(most) => {
                let wrong = format!(
                    "{most} sessions have a connection of their own to {} already; disconnect one, or leave out alone",
                    host.name
                );
                Failure::new("too_many_connections", wrong).retryable()
            }
            Self::QueueWait(waited) => {
                let wrong = format!(
                    "no channel to {} was free for {} ms; the command did not run",
                    host.name,
                    waited.as_millis()
                );
                Failure::new("queue_timed_out", wrong).retryable()
            }
            Self::Refused(why) => {
                let wrong = format!("{} takes no commands on this login: {why}", host.name);
                Failure::new("refused_by_server", wrong)
            }
        }
    }
}
