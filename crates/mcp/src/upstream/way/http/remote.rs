//! A session with a server over HTTP. Whoever waits for an answer reads it from its connection: no
//! task stands between. Only what no call waits for has tasks, and their number is bounded.

use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use gate::{Gate, PeerId, Spent};
use share::SharePermit;
use tokio::runtime::Handle;
use tokio::sync::{Semaphore, mpsc, oneshot};
use tokio::task::AbortHandle;
use wire::Era;

use super::{Exchange, HttpSession, HttpUpstream, Incoming as Came};
use crate::message::announced::Announced;
use crate::message::frames::{Failure, UpstreamFault};
use crate::message::splice::Marks;
use crate::notes::{Note, Noted, Notes};
use crate::upstream::exchange::{Incoming, Mailbox};
use crate::upstream::kept::Heard;
use crate::upstream::link::{Link, note};
use crate::upstream::way::{Going, Peer, Reading};
use crate::upstream::{Frame, frame_at};

/// Most notifications and answers of clients on their way at once, in one session.
pub const ASIDES_MAX: usize = 1_024;
/// From so few free places on, whoever sends should pause: one frame may hold a batch.
const ASIDES_LOW: u32 = 256;
/// How long is waited for some of them to arrive, in milliseconds.
const ROOM_WAIT_MS: u64 = 10_000;
/// How long is waited for the last of them before the session is closed, in milliseconds.
const LAST_ASIDES_MS_MAX: u64 = 2_000;
/// How long the server's own stream may take to open before its server is told that the client is
/// ready, in milliseconds.
const LISTEN_WAIT_MS_MAX: u64 = 1_000;

/// The way to a session.
pub struct Remote {
    session: Arc<HttpSession>,
    asides: Arc<Semaphore>,
    /// Given back when the session has ended.
    permit: Mutex<Option<SharePermit>>,
    /// Reads what belongs to no call.
    listener: Mutex<Option<AbortHandle>>,
}

impl Remote {
    /// A session with a server over HTTP, which its first message opens. `permit` is returned when
    /// it has ended.
    pub(crate) fn new(
        id: PeerId,
        upstream: &Arc<HttpUpstream>,
        gate: &Arc<Gate>,
        permit: SharePermit,
    ) -> Self {
        let session = HttpSession::new(id, Arc::clone(upstream), Arc::clone(gate));
        Self {
            session: Arc::new(session),
            asides: Arc::new(Semaphore::new(ASIDES_MAX)),
            permit: Mutex::new(Some(permit)),
            listener: Mutex::default(),
        }
    }

    fn is_modern(&self) -> bool {
        self.session.era() == Some(Era::Modern)
    }

    /// Reads the stream of what belongs to no call, for as long as the link is there; ready when it is
    /// open or will not be.
    async fn listen(&self, link: &Arc<Link>) {
        let opened = {
            let mut listener = self.listener();
            if listener.is_some() {
                return;
            }
            let (session, link) = (Arc::clone(&self.session), Arc::downgrade(link));
            let (sink, mut frames) = mpsc::channel::<Vec<u8>>(1);
            let (sender, opened) = oneshot::channel();
            let task = tokio::spawn(async move {
                let forward = async {
                    while let Some(frame) = frames.recv().await {
                        match link.upgrade() {
                            Some(link) => link.on_frame(&frame, true),
                            None => return,
                        }
                    }
                };
                tokio::select! {
                    () = session.listen(sink, sender) => {}
                    () = forward => {}
                }
            });
            *listener = Some(task.abort_handle());
            opened
        };
        let wait = Duration::from_millis(LISTEN_WAIT_MS_MAX);
        // A server that is slow to open it is told all the same.
        drop(tokio::time::timeout(wait, opened).await);
    }

    fn listener(&self) -> MutexGuard<'_, Option<AbortHandle>> {
        self.listener.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Peer for Remote {
    fn id(&self) -> &PeerId {
        self.session.id()
    }

    fn request(
        &self,
        frame: Spent<Frame>,
        marks: &Marks,
        name: Option<&str>,
    ) -> io::Result<Reading> {
        let frame = frame_at(self.id(), frame)?;
        let frame = match name {
            Some(name) => Frame::from(marks.renamed(&frame.bytes, name).concat()),
            None => frame,
        };
        if let (Some(number), Some(tool), false) = (name, &marks.tool, self.is_modern()) {
            let call = (number, tool.as_ref());
            let exchange = self.session.carry_call(frame, call, marks.trace.clone());
            return Ok(Reading::Own(Box::new(exchange)));
        }
        // A client that speaks HTTP has said them itself.
        let mirrored = name.map(|_| marks.mirrored.as_deref().cloned().unwrap_or_default());
        let exchange = self
            .session
            .carry_with(frame, mirrored, marks.trace.clone());
        Ok(Reading::Own(Box::new(exchange)))
    }

    fn send(&self, frame: Spent<Frame>, notes: &Arc<Mutex<Notes>>) -> io::Result<()> {
        let frame = frame_at(self.id(), frame)?;
        if self.is_modern() {
            // That era has neither answers nor cancellations of clients: a closed stream says it.
            return Ok(());
        }
        let handle = Handle::try_current().map_err(|_| io::ErrorKind::BrokenPipe)?;
        let permit = Arc::clone(&self.asides).try_acquire_owned();
        let permit = permit.map_err(|_| io::ErrorKind::WouldBlock)?;
        let exchange = self.session.carry(frame);
        let notes = Arc::clone(notes);
        handle.spawn(async move {
            carry(exchange, |noted| note(&notes, noted)).await;
            drop(permit);
        });
        Ok(())
    }

    fn initialized<'p>(
        &'p self,
        frame: Spent<Frame>,
        link: &'p Arc<Link>,
    ) -> Going<'p, io::Result<()>> {
        // A call that overtook it would be refused.
        self.session.hold_back(true);
        Box::pin(async move {
            let frame = frame_at(self.id(), frame)?;
            // What the server says as soon as it hears of its client has a reader by then.
            self.listen(link).await;
            let exchange = self.session.carry(frame);
            carry(exchange, |noted| link.note(noted)).await;
            self.session.hold_back(false);
            Ok(())
        })
    }

    fn is_congested(&self) -> bool {
        self.asides.available_permits() < ASIDES_LOW as usize
    }

    fn has_room(&self) -> Going<'_, Result<(), UpstreamFault>> {
        // Calls wait for a connection each for itself; only what has no answer is counted here.
        Box::pin(async move {
            let wait = Duration::from_millis(ROOM_WAIT_MS);
            let room = tokio::time::timeout(wait, self.asides.acquire_many(ASIDES_LOW)).await;
            room.map(drop).map_err(|_| UpstreamFault::Busy)
        })
    }

    /// Changes when the server opens the session again.
    fn epoch(&self) -> u64 {
        self.session.generation()
    }

    fn reopened(&self, since: u64) -> Going<'_, u64> {
        let mut openings = self.session.openings();
        Box::pin(async move {
            match openings.wait_for(|count| *count != since).await {
                Ok(count) => *count,
                // The session holds the sender for as long as we are there.
                Err(_) => since,
            }
        })
    }

    fn heard(&self) -> Option<Heard> {
        self.session.heard()
    }

    fn announced_again(&self) -> Option<Announced> {
        self.session.announced_again()
    }

    fn tick(&self) {
        self.session.upstream.reap();
    }

    /// Ends the session at the server too.
    fn stop(&self, link: &Link) {
        link.end(&UpstreamFault::Died.into());
        if let Some(listener) = self.listener().take() {
            listener.abort();
        }
        let permit = self
            .permit
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        link.flush_notes();
        let (Some(permit), Ok(handle)) = (permit, Handle::try_current()) else {
            return;
        };
        let session = Arc::clone(&self.session);
        let asides = Arc::clone(&self.asides);
        handle.spawn(async move {
            // Cancellations among them: a session that is over takes none.
            let all = u32::try_from(ASIDES_MAX).unwrap_or(u32::MAX);
            let wait = Duration::from_millis(LAST_ASIDES_MS_MAX);
            drop(tokio::time::timeout(wait, asides.acquire_many(all)).await);
            session.close().await;
            drop(permit);
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
async fn carry(mut exchange: Exchange, note: impl Fn(Noted<'_>)) {
    while let Some(incoming) = exchange.next().await {
        match incoming {
            Came::Failed(failure) => note(Note::ClientMessageLost.with(lost(&failure))),
            Came::Odd(odd, message) => note(odd.with(message)),
            Came::Message(_) | Came::Response(_) => {}
        }
    }
}

/// What is said of a notification or answer that the server did not take.
fn lost(failure: &Failure) -> String {
    let mut text = format!(
        "a message without an id did not reach the server: {}",
        failure.fault.sentence()
    );
    if let Some(detail) = &failure.detail {
        text.push_str(": ");
        text.push_str(detail);
    }
    text
}

impl Link {
    /// What comes next on an exchange over HTTP: from its connection, or from elsewhere about it.
    pub(in crate::upstream) async fn next_of(
        &self,
        number: u64,
        mailbox: &Mailbox,
        http: &mut Exchange,
    ) -> Incoming {
        loop {
            let came = tokio::select! {
                biased;
                incoming = mailbox.next() => return incoming,
                came = http.next() => came,
            };
            // Where it has ended otherwise before, the mailbox has that end.
            let incoming = match came {
                Some(Came::Message(frame)) => self.on_own_message(number, &frame),
                Some(Came::Odd(odd, message)) => {
                    self.note(odd.with(message));
                    None
                }
                Some(Came::Response(reply)) => {
                    self.take(number).then_some(Incoming::Response(reply))
                }
                Some(Came::Failed(failure)) if failure.fault == UpstreamFault::Timeout => {
                    // It may still be worked on.
                    self.give_up(number, Incoming::Fault(failure), "timeout");
                    None
                }
                Some(Came::Failed(failure)) => self.take(number).then(|| {
                    if failure.fault == UpstreamFault::EraMismatch {
                        let detail = failure.detail.as_deref();
                        let fault = failure.fault;
                        self.note(Noted::of(fault, detail.unwrap_or(fault.sentence())));
                    }
                    Incoming::Fault(failure)
                }),
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
