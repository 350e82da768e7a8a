//! A server that is a child of ours, over its standard streams. Its driver reads what it says and
//! writes what is queued for it: a task of its own behind shared links, else the one of the edge.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Poll;
use std::time::Duration;

use gate::{PeerId, Spent};
use net::outbound::{Child, NOT_FOUND, describe};
use net::stdio::FrameWriter;
use net::timers::kept;
use share::SharePermit;
use tokio::sync::Notify;
use wire::FrameEvent;

use super::{Going, Peer, Reading};
use crate::bell::Bell;
use crate::message::frames::{Failure, UpstreamFault};
use crate::message::splice::Marks;
use crate::notes::{Note, Notes};
use crate::upstream::{Frame, Link, ServerCommand, frame_at, message_bytes_max};

/// How often deadlines and notes are looked at, in milliseconds.
const TICK_MS: u64 = 250;
/// The same while nothing is under way: a call that begins then is given up so much later at most, in milliseconds.
const IDLE_TICK_MS: u64 = 1_000;
/// How long a request may wait for a server that does not read, in milliseconds.
const ROOM_WAIT_MS: u64 = 10_000;
/// How long what an ended server has left behind is read, in milliseconds.
const LEFT_BEHIND_MS: u64 = 1_000;
/// How long its own end is waited for once its streams have ended, in milliseconds.
const END_WAIT_MS: u64 = 1_000;

/// The way to a child.
pub struct Process {
    id: PeerId,
    /// What was started, for messages.
    program: String,
    writer: Mutex<Option<FrameWriter>>,
    /// For the driver: something is queued, or the end is wanted.
    wake: Bell,
    /// For senders: the queue has shrunk.
    room: Notify,
    stopping: AtomicBool,
    /// The server no longer reads.
    broken: AtomicBool,
    /// Many send, each from a task of its own: what they send before the driver's next turn leaves together.
    gathers: AtomicBool,
    /// Something was sent since the driver's last turn.
    has_sent: AtomicBool,
    /// The driver has let others come first that are ready.
    has_yielded: AtomicBool,
}

/// Starts a child.
///
/// # Errors
/// Where the process cannot be started.
pub(in crate::upstream) fn start(
    command: &ServerCommand,
    id: PeerId,
) -> io::Result<(Arc<Process>, Child)> {
    let mut child = Child::spawn(command, id.name())?;
    let process = Process {
        id,
        program: command.program.to_string_lossy().into_owned(),
        writer: Mutex::new(child.take_writer()),
        wake: Bell::default(),
        room: Notify::new(),
        stopping: AtomicBool::new(false),
        broken: AtomicBool::new(false),
        gathers: AtomicBool::new(false),
        has_sent: AtomicBool::new(false),
        has_yielded: AtomicBool::new(false),
    };
    Ok((Arc::new(process), child))
}

impl Process {
    fn writer(&self) -> MutexGuard<'_, Option<FrameWriter>> {
        self.writer.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self, write: impl FnOnce(&mut FrameWriter) -> io::Result<()>) -> io::Result<()> {
        let mut writer = self.writer();
        let writer = writer.as_mut().ok_or(io::ErrorKind::BrokenPipe)?;
        // Who holds frames back sends them, too.
        let was_held = writer.is_held();
        // Who is alone is not kept waiting.
        if self.gathers.load(Ordering::Relaxed) && self.has_sent.swap(true, Ordering::Relaxed) {
            writer.hold();
        }
        let sent = write(writer);
        if sent.is_err() {
            self.broken.store(true, Ordering::Release);
        }
        let is_held = was_held && writer.is_held();
        if sent.is_err() || !(is_held || writer.is_empty()) {
            self.wake.ring();
        }
        sent
    }

    async fn flush(&self) -> io::Result<()> {
        if self.is_gathering() && !self.has_yielded.swap(true, Ordering::Relaxed) {
            tokio::task::yield_now().await;
        }
        self.has_yielded.store(false, Ordering::Relaxed);
        std::future::poll_fn(|cx| match self.writer().as_mut() {
            Some(writer) => {
                if writer.is_held() {
                    writer.release()?;
                }
                writer.poll_flush(cx)
            }
            None => Poll::Ready(Ok(())),
        })
        .await
    }

    fn is_gathering(&self) -> bool {
        self.writer().as_ref().is_some_and(FrameWriter::is_held)
    }

    fn has_queued(&self) -> bool {
        self.writer().as_ref().is_some_and(|w| !w.is_empty())
    }
}

impl Peer for Process {
    fn id(&self) -> &PeerId {
        &self.id
    }

    fn request(
        &self,
        frame: Spent<Frame>,
        marks: &Marks,
        name: Option<&str>,
    ) -> io::Result<Reading> {
        let frame = frame_at(&self.id, frame)?;
        match name {
            Some(name) => self.write(|w| w.send_parts(&marks.renamed(&frame.bytes, name)))?,
            None => self.write(|w| w.send_owned(frame.bytes))?,
        }
        Ok(Reading::Link)
    }

    fn send(&self, frame: Spent<Frame>, _: &Arc<Mutex<Notes>>) -> io::Result<()> {
        let frame = frame_at(&self.id, frame)?;
        self.write(|w| w.send_owned(frame.bytes))
    }

    fn initialized<'p>(
        &'p self,
        frame: Spent<Frame>,
        _: &'p Arc<Link>,
    ) -> Going<'p, io::Result<()>> {
        let frame = frame_at(&self.id, frame);
        let sent = frame.and_then(|frame| self.write(|w| w.send_owned(frame.bytes)));
        Box::pin(std::future::ready(sent))
    }

    fn is_congested(&self) -> bool {
        self.writer()
            .as_ref()
            .is_some_and(FrameWriter::is_congested)
    }

    fn has_room(&self) -> Going<'_, Result<(), UpstreamFault>> {
        Box::pin(async move {
            let wait = async {
                loop {
                    let notified = self.room.notified();
                    if !self.is_congested() {
                        return;
                    }
                    notified.await;
                }
            };
            tokio::time::timeout(Duration::from_millis(ROOM_WAIT_MS), wait)
                .await
                .map_err(|_| UpstreamFault::Busy)
        })
    }

    fn stop(&self, _: &Link) {
        self.stopping.store(true, Ordering::Release);
        self.wake.ring();
    }
}

/// What happened at a child's side.
#[derive(Debug)]
pub(crate) enum Turn {
    /// Something came, [`Driver::route`] takes it; `false`: nothing more will come.
    Read(bool),
    /// What was queued has been written.
    Flushed,
    /// It no longer reads, or its end is wanted.
    Over,
}

/// Drives one child.
pub(crate) struct Driver {
    process: Arc<Process>,
    child: Child,
    link: Arc<Link>,
    /// Given back when the child has ended.
    _permit: SharePermit,
}

impl Driver {
    pub(in crate::upstream) fn new(
        process: Arc<Process>,
        child: Child,
        link: Arc<Link>,
        permit: SharePermit,
    ) -> Self {
        Self {
            process,
            child,
            link,
            _permit: permit,
        }
    }

    /// Drives the child until either side ends it.
    pub(in crate::upstream) async fn run(mut self) {
        self.process.gathers.store(true, Ordering::Relaxed);
        let mut tick = kept(|| tokio::time::interval(Duration::from_millis(TICK_MS)));
        tick.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            let turn = tokio::select! {
                turn = self.turn(true) => turn,
                _ = tick.tick() => {
                    self.link.look_after();
                    if self.link.is_idle() {
                        tick.reset_after(Duration::from_millis(IDLE_TICK_MS));
                    }
                    continue;
                }
            };
            match turn {
                Turn::Read(more) => {
                    while self.route() {}
                    if !more {
                        break;
                    }
                }
                Turn::Flushed => self.process.room.notify_waiters(),
                Turn::Over => break,
            }
        }
        if !self.process.stopping.load(Ordering::Acquire) {
            let left_behind = async {
                while self.left_behind().await {
                    while self.route() {}
                }
            };
            drop(tokio::time::timeout(Duration::from_millis(LEFT_BEHIND_MS), left_behind).await);
            let how = self.how_it_ended().await;
            self.link
                .note(Note::ServerEnded.with(format!("the server ended: {how}")));
            self.link.end(&self.died(&how));
        } else {
            self.link.end(&UpstreamFault::Died.into());
        }
        self.stop().await;
    }

    /// Waits until something happens at the child's side. Cancel-safe.
    pub async fn turn(&mut self, may_read: bool) -> Turn {
        let process = &self.process;
        let reader = self.child.streams().0;
        reader.take_at_most(message_bytes_max(self.link.gate()));
        loop {
            if process.stopping.load(Ordering::Acquire) || process.broken.load(Ordering::Acquire) {
                return Turn::Over;
            }
            process.has_sent.store(false, Ordering::Relaxed);
            let queued = process.has_queued();
            tokio::select! {
                read = reader.fill(), if may_read => return Turn::Read(matches!(read, Ok(true))),
                flushed = process.flush(), if queued => {
                    return if flushed.is_ok() { Turn::Flushed } else { Turn::Over };
                }
                () = process.wake.heard() => {}
            }
        }
    }

    /// Reads what a server that has ended, or no longer reads, had written before: it still counts.
    /// `false` when there is no more of it.
    pub async fn left_behind(&mut self) -> bool {
        matches!(self.child.streams().0.fill().await, Ok(true))
    }

    /// Passes on the next frame that was read; `false` where there is none.
    pub fn route(&mut self) -> bool {
        match self.child.streams().0.next() {
            None => false,
            Some(FrameEvent::Frame(frame)) => {
                self.link.on_frame(frame, false);
                true
            }
            Some(FrameEvent::TooLong(head)) => {
                self.link.note(Note::ServerFrameTooLong.into());
                self.link.fail_salvaged(&head, UpstreamFault::Oversize);
                true
            }
        }
    }

    /// What is sent from now on leaves together, with [`Driver::release`].
    pub fn hold(&self) {
        if let Some(writer) = self.process.writer().as_mut() {
            writer.hold();
        }
    }

    /// Sends what was held back.
    pub fn release(&self) {
        // A server that no longer reads shows at the next turn.
        let _ = self.process.write(FrameWriter::release);
    }

    /// How the child ended, in words.
    pub async fn how_it_ended(&mut self) -> String {
        match self.child.wait_at_most(END_WAIT_MS).await {
            Some(status) => describe(status),
            None => "its input or output was closed".into(),
        }
    }

    /// What its callers are told where it ended so: a command that is not there is named.
    pub fn died(&self, how: &str) -> Failure {
        if how == NOT_FOUND {
            let program = &self.process.program;
            UpstreamFault::Died.because(format!(
                "there is no command {program:?}; check its spelling"
            ))
        } else {
            UpstreamFault::Died.into()
        }
    }

    /// Ends the child and everything that it started.
    pub async fn stop(mut self) {
        if self.process.is_gathering() {
            // What was sent last: it may be told that a call is cancelled.
            self.release();
        }
        *self.process.writer() = None;
        self.process.room.notify_waiters();
        self.child.stop().await;
        self.link.flush_notes();
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;

    use super::*;

    /// A server that reads what it is sent when the test does.
    fn process() -> (io::PipeReader, Process) {
        let (never_read, _) = io::pipe().unwrap();
        let (reader, writer) = io::pipe().unwrap();
        let (_, writer) = net::stdio::over(never_read.into(), writer.into()).unwrap();
        let process = Process {
            id: PeerId::server("p"),
            program: String::new(),
            writer: Mutex::new(Some(writer)),
            wake: Bell::default(),
            room: Notify::new(),
            stopping: AtomicBool::new(false),
            broken: AtomicBool::new(false),
            gathers: AtomicBool::new(true),
            has_sent: AtomicBool::new(false),
            has_yielded: AtomicBool::new(false),
        };
        (reader, process)
    }

    #[tokio::test]
    async fn what_several_send_before_the_drivers_turn_leaves_together() {
        let (mut reader, process) = process();
        // The pipe is known to take something from here on.
        process.write(|w| w.send(b"0")).unwrap();
        process.flush().await.unwrap();
        let mut seen = [0; 64];
        assert_eq!(reader.read(&mut seen).unwrap(), 2);
        process.has_sent.store(false, Ordering::Relaxed);
        process.write(|w| w.send(b"1")).unwrap();
        process.write(|w| w.send(b"2")).unwrap();
        process.write(|w| w.send_parts(&[b"3", b"4"])).unwrap();
        assert_eq!(reader.read(&mut seen).unwrap(), 2, "the first is at once");
        assert!(process.has_queued());
        process.wake.heard().await;
        // Whoever stops waiting for a flush keeps nothing from leaving with the next.
        {
            let mut flush = std::pin::pin!(process.flush());
            let first = std::future::poll_fn(|cx| Poll::Ready(flush.as_mut().poll(cx))).await;
            assert!(first.is_pending(), "others that are ready come first");
        }
        process.write(|w| w.send(b"5")).unwrap();
        process.flush().await.unwrap();
        assert_eq!(reader.read(&mut seen).unwrap(), 7);
        assert_eq!(&seen[..7], b"2\n34\n5\n");
        assert!(!process.has_queued() && !process.is_gathering());
    }
}
