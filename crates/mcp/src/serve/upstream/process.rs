//! A server that is a child of ours: one task reads what it says and writes what is queued for it.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use gate::Gate;
use net::outbound::{Child, describe};
use net::stdio::FrameWriter;
use tokio::sync::{Notify, OwnedSemaphorePermit};
use wire::FrameEvent;

use super::link::{Link, Way};
use crate::frames::UpstreamFault;
use crate::upstream::ServerCommand;

/// How often deadlines and notes are looked at, in milliseconds.
const TICK_MS: u64 = 250;
/// How long a request may wait for a server that does not read, in milliseconds.
const ROOM_WAIT_MS: u64 = 10_000;
/// How long what an ended server has left behind is read, in milliseconds.
const LEFT_BEHIND_MS: u64 = 1_000;

/// The way to a child.
pub(super) struct Process {
    writer: Mutex<Option<FrameWriter>>,
    /// For the driver: something is queued, or the end is wanted.
    wake: Notify,
    /// For senders: the queue has shrunk.
    room: Notify,
    stopping: AtomicBool,
}

impl Process {
    fn writer(&self) -> MutexGuard<'_, Option<FrameWriter>> {
        self.writer.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn stop(&self) {
        self.stopping.store(true, Ordering::Release);
        self.wake.notify_one();
    }

    pub async fn has_room(&self) -> Result<(), UpstreamFault> {
        if !self.is_congested() {
            return Ok(());
        }
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
    }

    fn is_congested(&self) -> bool {
        self.writer()
            .as_ref()
            .is_some_and(FrameWriter::is_congested)
    }

    pub fn write(&self, parts: &[&[u8]]) -> io::Result<()> {
        let mut writer = self.writer();
        let writer = writer.as_mut().ok_or(io::ErrorKind::BrokenPipe)?;
        let sent = writer.send_parts(parts);
        if !writer.is_empty() {
            self.wake.notify_one();
        }
        sent
    }

    async fn flush(&self) -> io::Result<()> {
        std::future::poll_fn(|cx| match self.writer().as_mut() {
            Some(writer) => writer.poll_flush(cx),
            None => std::task::Poll::Ready(Ok(())),
        })
        .await
    }
}

impl Link {
    /// Starts a server. `place` is given back when it has ended.
    ///
    /// # Errors
    /// Where the process cannot be started.
    pub fn start(
        command: &ServerCommand,
        name: &Arc<str>,
        gate: &Arc<Gate>,
        exclusive: bool,
        place: OwnedSemaphorePermit,
    ) -> io::Result<Arc<Self>> {
        let mut child = Child::spawn(command, name)?;
        let way = Way::Process(Process {
            writer: Mutex::new(child.take_writer()),
            wake: Notify::new(),
            room: Notify::new(),
            stopping: AtomicBool::new(false),
        });
        let link = Arc::new(Self::new(name, gate, exclusive, way));
        let driven = Arc::clone(&link);
        tokio::spawn(async move {
            if let Way::Process(process) = &driven.way {
                driven.drive(process, &mut child).await;
            }
            child.stop().await;
            driven.flush_notes();
            drop(place);
        });
        Ok(link)
    }

    /// Reads what the server says and writes what is queued, until either side ends it.
    async fn drive(&self, process: &Process, child: &mut Child) {
        let mut tick = tokio::time::interval(Duration::from_millis(TICK_MS));
        tick.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            let queued = process.writer().as_ref().is_some_and(|w| !w.is_empty());
            let reader = child.streams().0;
            tokio::select! {
                read = reader.fill() => {
                    self.drain(child);
                    if !matches!(read, Ok(true)) {
                        break;
                    }
                }
                flushed = process.flush(), if queued => {
                    if flushed.is_err() {
                        break;
                    }
                    process.room.notify_waiters();
                }
                () = process.wake.notified() => {
                    if process.stopping.load(Ordering::Acquire) {
                        break;
                    }
                }
                _ = tick.tick() => self.look_after(),
            }
        }
        if !process.stopping.load(Ordering::Acquire) {
            // What it had written before it ended still counts.
            let left_behind = async {
                while matches!(child.streams().0.fill().await, Ok(true)) {
                    self.drain(child);
                }
            };
            drop(tokio::time::timeout(Duration::from_millis(LEFT_BEHIND_MS), left_behind).await);
            self.note_end(child).await;
        }
        self.end();
        *process.writer() = None;
        process.room.notify_waiters();
    }

    fn drain(&self, child: &mut Child) {
        while let Some(event) = child.streams().0.next() {
            match event {
                FrameEvent::Frame(frame) => self.on_frame(frame.to_vec()),
                FrameEvent::TooLong(head) => {
                    self.note(
                        "server_frame_too_long",
                        "a frame of the server was longer than 16 MiB and was dropped",
                    );
                    self.fail_salvaged(&head, UpstreamFault::Oversize);
                }
            }
        }
    }

    async fn note_end(&self, child: &mut Child) {
        const WAIT_MS: u64 = 1_000;
        let how = match child.wait_at_most(WAIT_MS).await {
            Some(status) => describe(status),
            None => "its input or output was closed".into(),
        };
        self.note("server_ended", &format!("the server ended: {how}"));
    }
}
