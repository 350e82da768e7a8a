//! A server that lives in this process: no process, no socket, no second pass over what was read. What a
//! call asks for goes on while its answer is waited for, and ends with whoever waits.

use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use gate::{PeerId, Spent};
use share::SharePermit;
use toolkit::mcp::{
    Arrival, Builtin, BuiltinSession, Carries, Exchange, Message, Unsent, UnsentReason,
};
use toolkit::server::SessionRef;

use super::{Going, Peer, Reading};
use crate::message::frames::UpstreamFault;
use crate::message::reply::Reply;
use crate::message::splice::Marks;
use crate::notes::Notes;
use crate::upstream::exchange::{Incoming, Mailbox, News};
use crate::upstream::{Frame, Link, frame_at};

/// The way to a server in this process.
pub(in crate::upstream) struct Inside {
    builtin: Arc<Builtin>,
    session: BuiltinSession,
    /// Given back when the session has ended.
    permit: Mutex<Option<Arc<SharePermit>>>,
}

/// A request under way.
pub struct Under {
    exchange: Exchange,
    /// The session's permit is free when the last of its calls has been settled.
    _permit: Option<Arc<SharePermit>>,
}

impl Inside {
    /// A session of this caller.
    pub fn new(builtin: &Arc<Builtin>, of: SessionRef, permit: SharePermit) -> Self {
        Self {
            builtin: Arc::clone(builtin),
            session: builtin.session(of),
            permit: Mutex::new(Some(Arc::new(permit))),
        }
    }

    fn permit(&self) -> MutexGuard<'_, Option<Arc<SharePermit>>> {
        self.permit.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Carries for Frame {
    fn message(&self) -> Option<&Message> {
        self.read.as_deref()
    }

    fn frame(&self) -> &[u8] {
        &self.bytes
    }

    fn into_message(self) -> Option<Message> {
        self.read.map(|read| *read)
    }
}

impl Peer for Inside {
    fn id(&self) -> &PeerId {
        self.builtin.id()
    }

    /// Nothing is renamed: what is said about a request never leaves its exchange.
    fn request(&self, frame: Spent<Frame>, _: &Marks, _: Option<&str>) -> io::Result<Reading> {
        match self.session.request(frame) {
            Ok(exchange) => Ok(Reading::Inside(Box::new(Under {
                exchange,
                _permit: self.permit().clone(),
            }))),
            Err(Unsent { why, .. }) => Err(match why {
                UnsentReason::Busy => io::ErrorKind::WouldBlock,
                UnsentReason::Elsewhere => io::ErrorKind::InvalidInput,
            }
            .into()),
        }
    }

    /// Nothing but requests means anything to it: what is cancelled ends with its exchange, and it asks
    /// its client for nothing.
    fn send(&self, frame: Spent<Frame>, _: &Arc<Mutex<Notes>>) -> io::Result<()> {
        frame_at(self.id(), frame).map(drop)
    }

    fn initialized<'p>(
        &'p self,
        frame: Spent<Frame>,
        _: &'p Arc<Link>,
    ) -> Going<'p, io::Result<()>> {
        let told = frame_at(self.id(), frame).map(drop);
        Box::pin(std::future::ready(told))
    }

    fn is_congested(&self) -> bool {
        false
    }

    fn has_room(&self) -> Going<'_, Result<(), UpstreamFault>> {
        Box::pin(std::future::ready(Ok(())))
    }

    fn stop(&self, link: &Link) {
        link.end(&UpstreamFault::Died.into());
        self.session.close();
        let permit = self.permit().take();
        drop(permit);
        link.flush_notes();
    }
}

impl Link {
    /// What comes next on an exchange in this process: from the tool, or from elsewhere about it.
    pub(in crate::upstream) async fn next_inside(
        &self,
        number: u64,
        mailbox: &Mailbox,
        under: &mut Under,
    ) -> Incoming {
        let arrival = tokio::select! {
            biased;
            incoming = mailbox.next() => return incoming,
            arrival = under.exchange.next() => arrival,
        };
        let incoming = match arrival {
            Some(Arrival::News(frame)) => {
                return Incoming::Notification(News {
                    frame,
                    tie: None,
                    is_droppable: true,
                    cancels: None,
                    changes_tools: false,
                    updates: None,
                });
            }
            Some(Arrival::Found(found)) => return Incoming::Found(found),
            Some(Arrival::Reply(reply)) => Incoming::Response(Reply {
                frame: reply.bytes,
                id: reply.id,
                payload: reply.payload,
                is_error: reply.is_error,
                is_tool_error: reply.is_tool_error,
            }),
            None => Incoming::Fault(UpstreamFault::NoAnswer.into()),
        };
        if self.take(number) {
            return incoming;
        }
        // It has ended otherwise before: the mailbox has that end.
        mailbox.next().await
    }
}
