//! One request and everything that its server says about it.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Poll, Waker};

use super::kept::{Asking, KeptAs};
use super::link::Link;
use super::verdict;
use super::way::Reading;
use toolkit::breaker::BreakerPass;
use toolkit::server::Found;
use wire::id::IdKey;

use crate::message::frames::Failure;
use crate::message::reply::Reply;

/// Most messages that wait for the one who asked; further notifications are dropped and counted.
pub const WAITING_MAX: usize = 256;

/// A notification of a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct News {
    /// The frame.
    pub frame: Vec<u8>,
    /// Where the exchange's number stands in it, and whether as a progress token.
    pub tie: Option<(Range<usize>, bool)>,
    /// Whether a client that reads slowly may miss it.
    pub is_droppable: bool,
    /// The request of the server's own that it takes back.
    pub cancels: Option<IdKey>,
    /// The server's tools are others than those that it has listed.
    pub changes_tools: bool,
    /// The resource that has changed.
    pub updates: Option<Box<str>>,
}

/// What comes from a server about an exchange.
#[derive(Debug, PartialEq, Eq)]
pub enum Incoming {
    /// The answer: nothing follows.
    Response(Reply),
    /// A notification.
    Notification(News),
    /// A request of the server to its client.
    Request {
        /// Its id as spelled.
        id: String,
        /// Its method.
        method: String,
        /// The frame.
        frame: Vec<u8>,
    },
    /// A server in this process found out what its call is about, and waits until that is judged.
    Found(Found),
    /// There will be no answer: nothing follows.
    Fault(Failure),
    /// The client has cancelled it: nothing follows.
    Cancelled,
}

impl Incoming {
    /// Whether nothing follows.
    fn is_end(&self) -> bool {
        match self {
            Self::Response(_) | Self::Fault(_) | Self::Cancelled => true,
            Self::Notification(_) | Self::Request { .. } | Self::Found(_) => false,
        }
    }
}

/// Where a link leaves what it has for one reader.
#[derive(Debug, Default)]
pub(super) struct Mailbox(Mutex<Letters>);

#[derive(Debug, Default)]
struct Letters {
    /// The first that waits: mostly the only one that ever comes, the answer.
    first: Option<Incoming>,
    others: VecDeque<Incoming>,
    reader: Option<Waker>,
    closed: bool,
}

impl Mailbox {
    fn letters(&self) -> std::sync::MutexGuard<'_, Letters> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Leaves something; `false` where there is no room for it. What ends an exchange always has room.
    pub fn put(&self, incoming: Incoming) -> bool {
        let mut letters = self.letters();
        let ends = incoming.is_end();
        let waiting = usize::from(letters.first.is_some()) + letters.others.len();
        if letters.closed || (!ends && waiting >= WAITING_MAX) {
            return false;
        }
        letters.closed = ends;
        match letters.first {
            None => letters.first = Some(incoming),
            Some(_) => letters.others.push_back(incoming),
        }
        let reader = letters.reader.take();
        drop(letters);
        if let Some(reader) = reader {
            reader.wake();
        }
        true
    }

    /// The next thing, in order.
    pub async fn next(&self) -> Incoming {
        std::future::poll_fn(|cx| {
            let mut letters = self.letters();
            if let Some(incoming) = letters.first.take() {
                letters.first = letters.others.pop_front();
                return Poll::Ready(incoming);
            }
            letters.reader = Some(cx.waker().clone());
            Poll::Pending
        })
        .await
    }
}

/// A request under way. Dropped before its end, it is cancelled at the server.
#[derive(Debug)]
pub struct Exchange {
    link: Arc<Link>,
    number: u64,
    mailbox: Arc<Mailbox>,
    reading: Reading,
    /// Its server's breaker hears how it ends; dropped before, it was given up.
    leave: Option<BreakerPass>,
    /// Its answer is a page of a list that may be kept.
    asking: Option<Asking>,
    /// As which its answer is kept.
    kept_as: Option<KeptAs>,
    ended: bool,
}

impl Exchange {
    pub(super) fn new(
        link: Arc<Link>,
        number: u64,
        mailbox: Arc<Mailbox>,
        reading: Reading,
        leave: BreakerPass,
    ) -> Self {
        Self {
            link,
            number,
            mailbox,
            reading,
            leave: Some(leave),
            asking: None,
            kept_as: None,
            ended: false,
        }
    }

    /// One whose answer is known. Its server has nothing to do with it: it has no number there.
    pub(super) fn recalled(link: &Arc<Link>, reply: Reply, kept_as: KeptAs) -> Self {
        let mailbox = Arc::new(Mailbox::default());
        mailbox.put(Incoming::Response(reply));
        Self {
            link: Arc::clone(link),
            number: 0,
            mailbox,
            reading: Reading::Link,
            leave: None,
            asking: None,
            kept_as: Some(kept_as),
            ended: false,
        }
    }

    /// Its answer is to be kept, where it was asked of this link.
    pub(crate) fn keeps(&mut self, asking: Asking) {
        self.asking = Some(asking).filter(|asking| asking.is_of(&self.link));
    }

    /// What comes next. After [`Incoming::Response`], [`Incoming::Fault`] or [`Incoming::Cancelled`]
    /// nothing does.
    pub async fn next(&mut self) -> Incoming {
        let incoming = match &mut self.reading {
            Reading::Link => self.mailbox.next().await,
            Reading::Own(http) => self.link.next_of(self.number, &self.mailbox, http).await,
            Reading::Inside(inside) => {
                let (number, mailbox) = (self.number, &self.mailbox);
                self.link.next_inside(number, mailbox, inside).await
            }
        };
        self.ended = incoming.is_end();
        if let Incoming::Response(reply) = &incoming
            && let Some(asking) = self.asking.take()
        {
            self.kept_as = self.link.kept.keep(asking, self.link.heard(), reply);
        }
        if let Some(verdict) = verdict::of(&incoming)
            && let Some(leave) = self.leave.take()
        {
            leave.settle(verdict, self.link.gate().about_ns());
        }
        if self.ended
            && matches!(self.reading, Reading::Own(_))
            && let Reading::Own(http) = std::mem::replace(&mut self.reading, Reading::Link)
            && matches!(incoming, Incoming::Response(_))
        {
            http.finish_aside();
        }
        incoming
    }

    /// As which its answer is kept, once it has come and where it is.
    pub(crate) fn take_kept_as(&mut self) -> Option<KeptAs> {
        self.kept_as.take()
    }

    /// The request's number at its server.
    #[must_use]
    pub fn number(&self) -> u64 {
        self.number
    }

    /// The server that was asked.
    #[must_use]
    pub fn link(&self) -> &Arc<Link> {
        &self.link
    }
}

impl Drop for Exchange {
    fn drop(&mut self) {
        if !self.ended {
            self.link.cancel(self.number, "the client went away");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::frames::UpstreamFault;

    #[test]
    fn a_mailbox_is_bounded_but_always_takes_the_end() {
        let mailbox = Mailbox::default();
        let news = || {
            Incoming::Notification(News {
                frame: Vec::new(),
                tie: None,
                is_droppable: false,
                cancels: None,
                changes_tools: false,
                updates: None,
            })
        };
        for _ in 0..WAITING_MAX {
            assert!(mailbox.put(news()));
        }
        assert!(!mailbox.put(news()));
        assert!(mailbox.put(Incoming::Fault(UpstreamFault::Died.into())));
        assert!(!mailbox.put(Incoming::Fault(UpstreamFault::Died.into())));
    }
}
