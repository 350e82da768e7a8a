//! The kinds of servers: how frames leave for each, and how what they say comes back.

pub(super) mod builtin;
pub(super) mod child;
pub mod http;

use std::fmt;
use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex};

use gate::{PeerId, Spent};

use super::kept::Heard;
use super::{Frame, Link};
use crate::message::announced::Announced;
use crate::message::frames::UpstreamFault;
use crate::message::splice::Marks;
use crate::notes::Notes;

pub(crate) use child::{Driver, Turn};

/// Something that goes on.
pub type Going<'g, T> = Pin<Box<dyn Future<Output = T> + Send + 'g>>;

/// Where the answer to a request comes from.
pub enum Reading {
    /// It arrives at the link.
    Link,
    /// Whoever waits for it reads it from its own connection.
    Own(Box<http::Exchange>),
    /// Whoever waits for it carries on with what makes it, in this process.
    Inside(Box<builtin::Under>),
}

impl fmt::Debug for Reading {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Link => "Link",
            Self::Own(_) => "Own",
            Self::Inside(_) => "Inside",
        })
    }
}

/// A server of whatever kind, as a link speaks to it. It takes what a pass became at its destination, and
/// nothing else.
pub trait Peer: Send + Sync {
    /// The name that passes for it are made out to.
    fn id(&self) -> &PeerId;

    /// Sends a request; `name` stands in the place of its own names where one is given.
    ///
    /// # Errors
    /// `WouldBlock` where too much is under way, and nothing of it has left; anything else where some of it
    /// may have left and the rest cannot, or it is for another peer.
    fn request(
        &self,
        frame: Spent<Frame>,
        marks: &Marks,
        name: Option<&str>,
    ) -> io::Result<Reading>;

    /// Sends what has no answer. What goes wrong later is noted.
    ///
    /// # Errors
    /// `BrokenPipe` where the server no longer reads, `WouldBlock` where too much is on its way.
    fn send(&self, frame: Spent<Frame>, notes: &Arc<Mutex<Notes>>) -> io::Result<()>;

    /// Tells the server that its client is ready; what it says by itself is listened to from then on.
    ///
    /// # Errors
    /// As [`Peer::send`].
    fn initialized<'p>(
        &'p self,
        frame: Spent<Frame>,
        link: &'p Arc<Link>,
    ) -> Going<'p, io::Result<()>>;

    /// Whether so much waits to be read by the server that whoever sends should pause.
    fn is_congested(&self) -> bool;

    /// Waits until that is over, within a bound.
    ///
    /// # Errors
    /// [`UpstreamFault::Busy`] where it is not.
    fn has_room(&self) -> Going<'_, Result<(), UpstreamFault>>;

    /// Changes when the server has forgotten what it has asked so far.
    fn epoch(&self) -> u64 {
        0
    }

    /// Ready when [`Peer::epoch`] is another than this one; gives it. Never where it does not change.
    fn reopened(&self, _since: u64) -> Going<'_, u64> {
        Box::pin(std::future::pending())
    }

    /// For how long everything is heard that the server says by itself: what changes with each gap; none where it
    /// is not heard.
    fn heard(&self) -> Option<Heard> {
        Some((0, 0))
    }

    /// What the server announces since it opened its session again; none where it has not.
    fn announced_again(&self) -> Option<Announced> {
        None
    }

    /// To be called now and then.
    fn tick(&self) {}

    /// Asks for the end.
    fn stop(&self, link: &Link);
}
