//! A session with a server over HTTP. Whoever waits for an answer reads it from its connection: no
//! task stands between. Only what no call waits for has tasks, and their number is bounded.

use std::io;
use std::sync::{Arc, Mutex, PoisonError};

use gate::{Gate, PeerId, Spent};
use tokio::runtime::Handle;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};
use tokio::task::AbortHandle;
use wire::Era;

use super::exchange::{Incoming, Mailbox};
use super::link::{Link, Way, flush_notes, note};
use crate::frames::UpstreamFault;
use crate::notes::Notes;
use crate::serve::splice::Marks;
use crate::upstream::http::{self, HttpSession, HttpUpstream, lost};
use crate::upstream::{Frame, elsewhere};

/// Most notifications and answers of clients on their way at once, in one session.
pub const ASIDES_MAX: usize = 64;

/// The way to a session.
pub(super) struct Remote {
    session: Arc<HttpSession>,
    asides: Arc<Semaphore>,
    /// Given back when the session has ended.
    place: Mutex<Option<OwnedSemaphorePermit>>,
    /// Reads what belongs to no call.
    listener: Mutex<Option<AbortHandle>>,
}

impl Remote {
    /// Changes when the server opens the session again.
    pub fn epoch(&self) -> u64 {
        self.session.generation()
    }

    fn is_modern(&self) -> bool {
        self.session.era() == Some(Era::Modern)
    }

    pub fn exchange(
        &self,
        spent: Spent<Frame>,
        marks: &Marks,
        number: &str,
    ) -> Result<http::Exchange, Spent<Frame>> {
        let respell = |frame: &[u8]| marks.renamed(frame, number).concat();
        let mirrored = marks.mirrored.as_deref().cloned().unwrap_or_default();
        self.session.exchange_as(spent, respell, mirrored)
    }

    pub fn send(&self, spent: Spent<Frame>, notes: &Arc<Mutex<Notes>>) -> io::Result<()> {
        if self.is_modern() {
            // That era has neither answers nor cancellations of clients: a closed stream says it.
            return Ok(());
        }
        let handle = Handle::try_current().map_err(|_| io::ErrorKind::BrokenPipe)?;
        let place = Arc::clone(&self.asides).try_acquire_owned();
        let place = place.map_err(|_| io::ErrorKind::WouldBlock)?;
        let exchange = self.session.exchange(spent).map_err(elsewhere)?;
        let notes = Arc::clone(notes);
        handle.spawn(async move {
            carry(exchange, &notes).await;
            drop(place);
        });
        Ok(())
    }

    pub async fn deliver(&self, spent: Spent<Frame>, notes: &Mutex<Notes>) -> io::Result<()> {
        let exchange = self.session.exchange(spent).map_err(elsewhere)?;
        carry(exchange, notes).await;
        Ok(())
    }

    /// Reads the stream of what belongs to no call, for as long as the link is there.
    pub fn listen(&self, link: &Arc<Link>) {
        let mut listener = self.listener();
        if listener.is_some() {
            return;
        }
        let (session, link) = (Arc::clone(&self.session), Arc::downgrade(link));
        let (sink, mut frames) = mpsc::channel(1);
        let task = tokio::spawn(async move {
            let forward = async {
                while let Some(frame) = frames.recv().await {
                    match link.upgrade() {
                        Some(link) => link.on_frame(frame),
                        None => return,
                    }
                }
            };
            tokio::select! {
                () = session.listen(sink) => {}
                () = forward => {}
            }
        });
        *listener = Some(task.abort_handle());
    }

    fn listener(&self) -> std::sync::MutexGuard<'_, Option<AbortHandle>> {
        self.listener.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Ends the session at the server too.
    pub fn stop(&self, name: &Arc<str>, gate: &Arc<Gate>, notes: &Arc<Mutex<Notes>>) {
        if let Some(listener) = self.listener().take() {
            listener.abort();
        }
        let place = self
            .place
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        let (Some(place), Ok(handle)) = (place, Handle::try_current()) else {
            return;
        };
        let session = Arc::clone(&self.session);
        let (name, gate, notes) = (Arc::clone(name), Arc::clone(gate), Arc::clone(notes));
        handle.spawn(async move {
            session.close().await;
            flush_notes(&notes, &gate, &name);
            drop(place);
        });
    }
}

impl Drop for Remote {
    fn drop(&mut self) {
        if let Some(listener) = self.listener().take() {
            listener.abort();
        }
    }
}

/// Sends what has no answer.
async fn carry(mut exchange: http::Exchange, notes: &Mutex<Notes>) {
    while let Some(incoming) = exchange.next().await {
        match incoming {
            http::Incoming::Failed(failure) => note(notes, "client_message_lost", &lost(&failure)),
            http::Incoming::Odd(event, message) => note(notes, event, message),
            http::Incoming::Message(_) | http::Incoming::Response(_) => {}
        }
    }
}

impl Link {
    /// A session with a server over HTTP, which its first message opens. `place` is given back when
    /// it has ended.
    pub(super) fn reach(
        upstream: &Arc<HttpUpstream>,
        name: &Arc<str>,
        gate: &Arc<Gate>,
        exclusive: bool,
        place: OwnedSemaphorePermit,
    ) -> Arc<Self> {
        let session = HttpSession::new(
            PeerId::server(Arc::clone(name)),
            Arc::clone(upstream),
            Arc::clone(gate),
        );
        let way = Way::Http(Remote {
            session: Arc::new(session),
            asides: Arc::new(Semaphore::new(ASIDES_MAX)),
            place: Mutex::new(Some(place)),
            listener: Mutex::default(),
        });
        Arc::new(Self::new(name, gate, exclusive, way))
    }

    /// What comes next on an exchange over HTTP: from its connection, or from elsewhere about it.
    pub(super) async fn next_of(
        &self,
        number: u64,
        mailbox: &Mailbox,
        http: &mut http::Exchange,
    ) -> Incoming {
        loop {
            let came = tokio::select! {
                biased;
                incoming = mailbox.next() => return incoming,
                came = http.next() => came,
            };
            // Where it has ended otherwise before, the mailbox has that end.
            let incoming = match came {
                Some(http::Incoming::Message(frame)) => self.on_own_message(number, frame),
                Some(http::Incoming::Odd(event, message)) => {
                    self.note(event, message);
                    None
                }
                Some(http::Incoming::Response(reply)) => {
                    self.take(number).then_some(Incoming::Response(reply))
                }
                Some(http::Incoming::Failed(failure)) => {
                    self.take(number).then_some(Incoming::Fault(failure))
                }
                None => self
                    .take(number)
                    .then(|| Incoming::Fault(UpstreamFault::NoAnswer.into())),
            };
            if let Some(incoming) = incoming {
                return incoming;
            }
        }
    }
}
