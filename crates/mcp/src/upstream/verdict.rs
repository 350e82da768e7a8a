//! What the end of an exchange says about its server's health.

use toolkit::breaker::{Rejected, Verdict};

use super::Incoming;
use crate::message::frames::{Failure, UpstreamFault};

/// What an end says; nothing where more follows.
pub(super) fn of(incoming: &Incoming) -> Option<Verdict> {
    match incoming {
        // A server that says no has done its part.
        Incoming::Response(_) => Some(Verdict::Success),
        Incoming::Cancelled => Some(Verdict::Cancelled),
        Incoming::Fault(failure) => Some(of_failure(failure)),
        Incoming::Notification(_) | Incoming::Request { .. } | Incoming::Found(_) => None,
    }
}

fn of_failure(failure: &Failure) -> Verdict {
    let failed = Verdict::Failure {
        retry_after_ms: None,
    };
    match failure.fault {
        UpstreamFault::Died
        | UpstreamFault::Timeout
        | UpstreamFault::Garbage
        | UpstreamFault::Unreachable
        | UpstreamFault::Tls
        | UpstreamFault::Broken
        | UpstreamFault::Overloaded
        | UpstreamFault::UnfitReply
        | UpstreamFault::NoAnswer
        | UpstreamFault::SessionLost => failed,
        // A request that it cannot take says nothing about the next one.
        UpstreamFault::HttpStatus if failure.status.is_some_and(|status| status >= 500) => failed,
        UpstreamFault::HttpStatus
        // It was asked for more than is taken, or is set up in another way than it is used.
        | UpstreamFault::Oversize
        | UpstreamFault::TooLarge
        | UpstreamFault::Unauthorized
        | UpstreamFault::Redirected
        | UpstreamFault::EraMismatch => Verdict::ClientFault,
        // It has not been asked.
        UpstreamFault::Busy
        | UpstreamFault::NoPlace
        | UpstreamFault::CircuitOpen
        | UpstreamFault::Stopping => Verdict::Cancelled,
    }
}

/// What a call comes to that is not sent because its server is spared.
pub(crate) fn spared(rejected: Rejected) -> Failure {
    UpstreamFault::CircuitOpen.because(format!("try again in {} ms", rejected.retry_after_ms))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_the_server_failed_to_do_counts() {
        let verdict = |fault: UpstreamFault, status: Option<u16>| {
            of_failure(&Failure {
                status,
                ..Failure::from(fault)
            })
        };
        let counts = |verdict| matches!(verdict, Verdict::Failure { .. });
        assert!(counts(verdict(UpstreamFault::Unreachable, None)));
        assert!(counts(verdict(UpstreamFault::HttpStatus, Some(502))));
        assert!(!counts(verdict(UpstreamFault::HttpStatus, Some(404))));
        assert!(!counts(verdict(UpstreamFault::Unauthorized, Some(401))));
        assert!(!counts(verdict(UpstreamFault::Stopping, None)));
        assert_eq!(of(&Incoming::Cancelled), Some(Verdict::Cancelled));
    }
}
