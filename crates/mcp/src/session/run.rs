//! The loop, and the end.

use std::io;
use std::time::Duration;

use gate::Reason;
use gate::journal::{Record, System};
use tokio::signal::unix::{Signal, SignalKind, signal};
use wire::FrameEvent;

use crate::frames::{self, UpstreamFault};
use crate::upstream::{Arrival, Turn};

use super::{Ending, Flow, Session};

/// How often deadlines, notes and the journal's health are looked at, in milliseconds.
const TICK_MS: u64 = 250;
/// How long calls that arrive after the journal's failure are still refused by name, in milliseconds.
const LAST_REFUSALS_MS: u64 = 500;
/// How long what a gone server has left behind is read, in milliseconds.
const LEFT_BEHIND_MS: u64 = 1_000;

/// Most frames that are held back for each other.
const HELD_FRAMES_MAX: usize = 16;

/// Number of the signal for a file that grows beyond its limit (Linux; absent constant in tokio).
const SIGXFSZ: i32 = 25;

/// What woke the loop.
enum Event {
    Client(io::Result<bool>),
    Server(io::Result<bool>),
    ClientFlushed(io::Result<()>),
    ServerFlushed(io::Result<()>),
    Answered,
    Tick,
    Signal,
}

/// Signals that ask for the end.
struct Signals {
    terminate: Signal,
    interrupt: Signal,
    /// A file-size limit would end the process before it could say why; taking the signal makes the
    /// write fail instead.
    _file_size: Signal,
}

impl Signals {
    async fn any(&mut self) {
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
        }
    }
}

impl Session {
    /// Runs until either side or the journal ends it. The server is stopped and the session's last
    /// record written before this returns.
    ///
    /// # Errors
    /// Where signals cannot be listened to.
    pub async fn run(mut self) -> io::Result<Ending> {
        let mut signals = Signals {
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
            _file_size: signal(SignalKind::from_raw(SIGXFSZ))?,
        };
        let fault = self.definitions.fault();
        self.tell(fault.into_iter().collect());
        let mut tick = tokio::time::interval(Duration::from_millis(TICK_MS));
        tick.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        let mut ending: Option<Ending> = None;
        let mut drain_until_ns = u64::MAX;
        let mut stay_until_ns = 0;
        loop {
            if ending.is_none() && self.gate.has_failed() {
                ending = Some(Ending::JournalFailed);
                stay_until_ns = later(self.gate.mono_ns(), LAST_REFUSALS_MS);
            }
            if ending.is_some() && drain_until_ns == u64::MAX {
                self.gate.drain();
                let reason = match &ending {
                    Some(Ending::ClientClosed) => Reason::ApprovalWithdrawn,
                    _ => Reason::Draining,
                };
                // A client that no longer reads is noticed by the next read.
                let _ = self.refuse_waiting(reason);
                drain_until_ns = later(self.gate.mono_ns(), self.options.drain_ms);
            }
            if let Some(ending) = &ending {
                let now_ns = self.gate.mono_ns();
                let stays = now_ns < stay_until_ns && !self.client_reader.has_ended();
                if now_ns >= drain_until_ns || (!stays && self.is_done(ending)) {
                    break;
                }
            }
            let event = self.next_event(&mut tick, &mut signals).await;
            match self.on_event(event).await {
                None => {}
                Some(Ending::ServerEnded(how)) => {
                    ending = Some(Ending::ServerEnded(how));
                    break;
                }
                // Nobody is left to answer.
                Some(Ending::ClientClosed) if !self.client_reader.has_ended() => {
                    ending = Some(Ending::ClientClosed);
                    break;
                }
                Some(Ending::Signal) if ending.is_some() => break,
                Some(reached) => ending = ending.or(Some(reached)),
            }
        }
        Ok(self.end(ending.unwrap_or(Ending::ClientClosed)).await)
    }

    /// Whether nothing is left to wait for.
    fn is_done(&self, ending: &Ending) -> bool {
        self.client_writer.is_empty()
            && (self.table.is_empty() || matches!(ending, Ending::ServerEnded(_)))
    }

    async fn next_event(
        &mut self,
        tick: &mut tokio::time::Interval,
        signals: &mut Signals,
    ) -> Event {
        let client_congested = self.client_writer.is_congested();
        let waiting = !self.table.asking.is_empty();
        // A client that has closed its side is read to the end whatever is congested: what is left is
        // bounded by the descriptor's buffer, and its end must be seen.
        let congested = client_congested || self.upstream.is_congested();
        let client_paused = self.client_reader.has_ended() || (congested && !self.client_hung_up);
        // In no fixed order: a side that always has something to say must not silence the others.
        tokio::select! {
            turn = self.upstream.turn(!client_congested) => match turn {
                Turn::Read(read) => Event::Server(read),
                Turn::Flushed(flushed) => Event::ServerFlushed(flushed),
            },
            read = self.client_reader.fill(), if !client_paused => Event::Client(read),
            flushed = self.client_writer.flush(), if !self.client_writer.is_empty() => Event::ClientFlushed(flushed),
            () = self.bell.heard(), if waiting => Event::Answered,
            () = signals.any() => Event::Signal,
            _ = tick.tick() => Event::Tick,
        }
    }

    async fn on_event(&mut self, event: Event) -> Option<Ending> {
        let flow = match event {
            Event::Client(read) => {
                let flow = self.drain_client().await;
                match read {
                    Ok(true) => flow,
                    Ok(false) | Err(_) if flow == Flow::Go => return self.client_closed(),
                    Ok(false) | Err(_) => flow,
                }
            }
            Event::Server(read) => {
                let flow = self.drain_server().await;
                if matches!(read, Ok(true)) {
                    flow
                } else {
                    flow.or(Flow::UpstreamGone)
                }
            }
            Event::ClientFlushed(flushed) => {
                if flushed.is_ok() {
                    Flow::Go
                } else {
                    Flow::ClientGone
                }
            }
            Event::ServerFlushed(flushed) => {
                if flushed.is_ok() {
                    Flow::Go
                } else {
                    Flow::UpstreamGone
                }
            }
            Event::Answered => self.on_bell(),
            Event::Signal => return Some(Ending::Signal),
            Event::Tick => self.on_tick(),
        };
        match flow {
            Flow::Go => None,
            Flow::ClientGone => Some(Ending::ClientClosed),
            Flow::UpstreamGone => {
                // What it had written before it ended still counts. It may also live on and say nothing.
                let left_behind = async {
                    while matches!(self.upstream.fill().await, Ok(true)) {
                        let _ = self.drain_server().await;
                    }
                };
                drop(
                    tokio::time::timeout(Duration::from_millis(LEFT_BEHIND_MS), left_behind).await,
                );
                Some(Ending::ServerEnded(self.how_the_server_ended().await))
            }
        }
    }

    fn client_closed(&mut self) -> Option<Ending> {
        let rest = self.client_reader.remainder().trim_ascii().to_vec();
        if !rest.is_empty() {
            let fault = wire::WireError {
                kind: wire::WireErrorKind::Syntax,
                at: rest.len(),
                message: "the stream ended in the middle of a frame",
            };
            let _ = self.complain(&rest, &fault);
        }
        Some(Ending::ClientClosed)
    }

    /// What was read together leaves together: one system call, and the other side wakes once.
    fn hold_back(&mut self) {
        self.upstream.hold();
        self.client_writer.hold();
    }

    fn release(&mut self) -> Flow {
        let (server, client) = (self.upstream.release(), self.client_writer.release());
        match (server, client) {
            (Err(_), _) => Flow::UpstreamGone,
            (Ok(()), Err(_)) => Flow::ClientGone,
            (Ok(()), Ok(())) => Flow::Go,
        }
    }

    /// Counts a frame; where many were held back, they leave now.
    fn pass_on_at_times(&mut self, held: &mut usize) -> Flow {
        *held += 1;
        if !held.is_multiple_of(HELD_FRAMES_MAX) {
            return Flow::Go;
        }
        let flow = self.release();
        self.hold_back();
        flow
    }

    async fn drain_client(&mut self) -> Flow {
        self.hold_back();
        let flow = self.drain_client_held().await;
        flow.or(self.release())
    }

    async fn drain_client_held(&mut self) -> Flow {
        let received_ns = self.gate.mono_ns();
        let mut held = 0;
        loop {
            let flow = self.pass_on_at_times(&mut held);
            if flow != Flow::Go {
                return flow;
            }
            let frame = match self.client_reader.next() {
                None => return Flow::Go,
                Some(FrameEvent::Frame(frame)) => frame.to_vec(),
                Some(FrameEvent::TooLong(head)) => {
                    let fault = wire::WireError {
                        kind: wire::WireErrorKind::TooLong,
                        at: wire::frame::FRAME_BYTES_MAX,
                        message: "the frame is longer than 16 MiB",
                    };
                    let flow = self.complain(&head, &fault);
                    if flow != Flow::Go {
                        return flow;
                    }
                    continue;
                }
            };
            let flow = self.on_client_frame(frame, received_ns).await;
            if flow != Flow::Go {
                return flow;
            }
        }
    }

    async fn drain_server(&mut self) -> Flow {
        self.hold_back();
        let flow = self.drain_server_held().await;
        flow.or(self.release())
    }

    async fn drain_server_held(&mut self) -> Flow {
        let mut held = 0;
        loop {
            let flow = self.pass_on_at_times(&mut held);
            if flow != Flow::Go {
                return flow;
            }
            let flow = match self.upstream.next() {
                None => return Flow::Go,
                Some(Arrival::Frame(frame)) => {
                    let frame = frame.to_vec();
                    self.on_server_frame(frame).await
                }
                Some(Arrival::TooLong(head)) => {
                    self.note(
                        "server_frame_too_long",
                        "a frame of the server was longer than 16 MiB and was dropped",
                    );
                    self.fail_salvaged(&head, UpstreamFault::Oversize)
                }
                Some(Arrival::Failed(id, failure)) => self.on_server_failure(&id, &failure),
                Some(Arrival::Odd(event, message)) => {
                    self.note(event, &message);
                    Flow::Go
                }
            };
            if flow != Flow::Go {
                return flow;
            }
        }
    }

    fn on_tick(&mut self) -> Flow {
        self.client_hung_up = self.client_hung_up || self.client_reader.has_hung_up();
        self.notes
            .flush(&self.gate, &self.session_id, &self.options.backend_id);
        // A journal that fails here fails the gate as well, at its next record.
        if let Err(error) = self.gate.tick() {
            tracing::error!(reason = error.label(), "{error}");
        }
        self.upstream.tick();
        self.sweep_parked();
        let overdue = self.table.take_overdue(self.gate.mono_ns());
        let mut flow = self.tell_of_changed_lists().or(self.tell_progress());
        for open in overdue {
            let cancel = frames::cancel(open.sent_id.as_ref().unwrap_or(&open.id), "timeout");
            let frame = crate::upstream::Frame(cancel);
            let kind = gate::ControlKind::Cancel;
            let pass = self.gate.control(kind, self.upstream.id(), frame);
            let sent = self.upstream.send_pass(pass);
            flow = flow
                .or(self.fail(open, &UpstreamFault::Timeout.into()))
                .or(super::sent(sent));
        }
        flow
    }

    async fn how_the_server_ended(&mut self) -> String {
        const WAIT_MS: u64 = 1_000;
        match self.upstream.wait_at_most(WAIT_MS).await {
            Some(status) => crate::upstream::describe(status),
            None => "its input or output was closed".into(),
        }
    }

    /// Answers what is open, stops the server, writes the session's last record.
    async fn end(mut self, ending: Ending) -> Ending {
        /// How long the client may take to read what is left, in milliseconds.
        const LAST_FLUSH_MS: u64 = 1_000;
        let _ = self.refuse_waiting(Reason::Draining);
        for open in self.table.take_all() {
            match ending {
                Ending::ServerEnded(_) => {
                    let _ = self.fail(open, &UpstreamFault::Died.into());
                }
                Ending::Signal | Ending::JournalFailed if self.options.drain_ms > 0 => {
                    let _ = self.fail(open, &UpstreamFault::Timeout.into());
                }
                // Nobody is left to read an answer: dropping it settles the call as cancelled.
                Ending::ClientClosed | Ending::Signal | Ending::JournalFailed => drop(open),
            }
        }
        self.table.server_requests.clear();
        let _ = tokio::time::timeout(
            Duration::from_millis(LAST_FLUSH_MS),
            self.client_writer.flush(),
        )
        .await;
        self.upstream.stop().await;
        self.definitions.close();
        self.notes
            .flush(&self.gate, &self.session_id, &self.options.backend_id);
        // A journal that fails here fails the gate, which is looked at below.
        drop(self.gate.flush());
        let mut message = match &ending {
            Ending::ServerEnded(how) => format!("the server ended: {how}; control:"),
            _ => "control:".to_owned(),
        };
        for (kind, count) in self.gate.control_counts() {
            message.push_str(&format!(" {kind}={count}"));
        }
        if self.dropped_notifications > 0 {
            message.push_str(&format!(
                "; notifications dropped: {}",
                self.dropped_notifications
            ));
        }
        let record = System {
            event: "session_ended",
            level: Some("info"),
            component: Some("mcp"),
            message: Some(&message),
            reason: Some(ending.label()),
            session_id: Some(&self.session_id),
            backend_id: Some(&self.options.backend_id),
            ..System::default()
        };
        drop(self.gate.record(&Record::System(&record)));
        if self.gate.has_failed() {
            Ending::JournalFailed
        } else {
            ending
        }
    }
}

fn later(now_ns: u64, wait_ms: u64) -> u64 {
    now_ns.saturating_add(wait_ms.saturating_mul(1_000_000))
}
