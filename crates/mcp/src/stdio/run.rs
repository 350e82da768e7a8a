//! The loop, and the end.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use gate::Reason;
use gate::journal::{Component, Level, Record, System, SystemEvent};

use wire::{WireError, WireErrorKind};

use crate::call::Why;
use crate::message::frames::UpstreamFault;
use crate::message::request;
use crate::upstream::Turn;

use super::seldom::{Seldom, Sources};
use super::{Ending, Stdio};

/// How often deadlines, notes and the journal's health are looked at, in milliseconds.
const TICK_MS: u64 = 250;
/// How long calls that arrive after the journal's failure are still refused by name, in milliseconds.
const LAST_REFUSALS_MS: u64 = 500;
/// How long what a gone server has left behind is read, in milliseconds.
const LEFT_BEHIND_MS: u64 = 1_000;
/// How long the client may take to read what is left at the end, in milliseconds.
const LAST_FLUSH_MS: u64 = 1_000;

/// Most frames that are held back for each other.
const HELD_FRAMES_MAX: usize = 64;

/// What woke the loop.
enum Event {
    Client(io::Result<bool>),
    /// What was read from the client can go on.
    Room,
    Server(Turn),
    Flushed(io::Result<()>),
    Woken,
    Seldom(Seldom),
}

/// How far the end has come.
#[derive(Default)]
struct Closing {
    ending: Option<Ending>,
    /// Calls under way may end until then, on the gate's monotonic clock.
    drain_until_ns: Option<u64>,
    /// Calls are still refused by name until then.
    stay_until_ns: u64,
}

impl Stdio {
    /// Runs until either side or the journal ends it. The server is stopped and the session's last
    /// record written before this returns.
    ///
    /// # Errors
    /// Where signals cannot be listened to.
    pub async fn run(mut self) -> io::Result<Ending> {
        let mut seldom = Sources::listen(Duration::from_millis(TICK_MS))?;
        let mut closing = Closing::default();
        loop {
            if closing.ending.is_none() && self.gate.has_failed() {
                closing.ending = Some(Ending::JournalFailed);
                closing.stay_until_ns = later(self.gate.mono_ns(), LAST_REFUSALS_MS);
            }
            if self.is_over(&mut closing) {
                break;
            }
            let event = self.next_event(&mut seldom).await;
            match self.on_event(event).await {
                None => {}
                Some(Ending::ServerEnded(how)) => {
                    closing.ending = Some(Ending::ServerEnded(how));
                    break;
                }
                // Nobody is left to answer.
                Some(Ending::ClientClosed) if self.client_gone => {
                    closing.ending = Some(Ending::ClientClosed);
                    break;
                }
                Some(Ending::Signal) if closing.ending.is_some() => break,
                Some(reached) => closing.ending = closing.ending.or(Some(reached)),
            }
        }
        let ending = closing.ending.unwrap_or(Ending::ClientClosed);
        Ok(self.end(ending).await)
    }

    /// Whether nothing is left to wait for, once an end was reached.
    fn is_over(&mut self, closing: &mut Closing) -> bool {
        let Some(ending) = &closing.ending else {
            return false;
        };
        let now_ns = self.gate.mono_ns();
        let until_ns = match closing.drain_until_ns {
            Some(until_ns) => until_ns,
            None => {
                self.gate.drain();
                self.stop_waiting(match ending {
                    Ending::ClientClosed => Reason::ApprovalWithdrawn,
                    _ => Reason::Draining,
                });
                *closing.drain_until_ns.insert(later(now_ns, self.drain_ms))
            }
        };
        let stays = now_ns < closing.stay_until_ns && !self.reader.has_ended();
        let is_done = self.writer.is_empty() && !self.speaker.under_way.has_ending();
        now_ns >= until_ns || (!stays && is_done)
    }

    async fn next_event(&mut self, seldom: &mut Sources) -> Event {
        let client_congested = self.writer.is_congested();
        self.outbox().set_slow(client_congested);
        // A client that has closed its side is read to the end whatever is congested: what is left is
        // bounded by the descriptor's buffer, and its end must be seen.
        let congested = client_congested || self.link.is_congested();
        let client_paused =
            self.reader.has_ended() || self.is_behind || (congested && !self.client_hung_up);
        let is_behind = self.is_behind;
        let link = Arc::clone(&self.link);
        let Self {
            reader,
            writer,
            driver,
            runs,
            ..
        } = self;
        let server = async {
            match driver {
                Some(driver) => driver.turn(!client_congested).await,
                None => std::future::pending().await,
            }
        };
        let queued = !writer.is_empty();
        // In no fixed order: a side that always has something to say must not silence the others.
        let event = tokio::select! {
            turn = server => Event::Server(turn),
            read = reader.fill(), if !client_paused => Event::Client(read),
            () = link.drained(), if is_behind => Event::Room,
            flushed = writer.flush(), if queued => Event::Flushed(flushed),
            () = runs.woken(), if !client_congested => Event::Woken,
            found = seldom.next() => Event::Seldom(found),
        };
        self.runs.attend();
        event
    }

    async fn on_event(&mut self, event: Event) -> Option<Ending> {
        let ending = match event {
            Event::Client(read) => {
                self.drain_client();
                if matches!(read, Ok(true)) {
                    None
                } else {
                    self.client_closed();
                    Some(Ending::ClientClosed)
                }
            }
            Event::Room => {
                self.drain_client();
                None
            }
            Event::Server(turn) => match turn {
                Turn::Read(more) => {
                    self.drain_server();
                    if more {
                        None
                    } else {
                        Some(self.server_ended().await)
                    }
                }
                Turn::Flushed => None,
                Turn::Over => Some(self.server_ended().await),
            },
            Event::Flushed(flushed) => {
                self.client_gone |= flushed.is_err();
                None
            }
            Event::Woken => {
                self.together(Self::pump);
                None
            }
            Event::Seldom(Seldom::Signal) => Some(Ending::Signal),
            Event::Seldom(Seldom::Tick) => {
                self.together(Self::on_tick);
                None
            }
        };
        match ending {
            None if self.client_gone => Some(Ending::ClientClosed),
            ending => ending,
        }
    }

    /// What it had written before it ended still counts. It may also live on and say nothing.
    async fn server_ended(&mut self) -> Ending {
        let left_behind = async {
            while self.has_left_behind().await {
                self.drain_server();
            }
        };
        drop(tokio::time::timeout(Duration::from_millis(LEFT_BEHIND_MS), left_behind).await);
        Ending::ServerEnded(match &mut self.driver {
            Some(driver) => driver.how_it_ended().await,
            None => "its input or output was closed".into(),
        })
    }

    async fn has_left_behind(&mut self) -> bool {
        match &mut self.driver {
            Some(driver) => driver.left_behind().await,
            None => false,
        }
    }

    fn client_closed(&mut self) {
        let rest = self.reader.remainder().trim_ascii().to_vec();
        if !rest.is_empty() {
            let message = "the stream ended in the middle of a frame";
            let fault = WireError::new(WireErrorKind::Syntax, rest.len(), message);
            self.complain(super::salvaged(&rest), &fault);
        }
    }

    /// What is made in one step leaves together: one system call, and the other side wakes once.
    fn together(&mut self, step: impl FnOnce(&mut Self)) {
        self.hold();
        step(self);
        self.release();
    }

    fn hold(&mut self) {
        self.writer.hold();
        if let Some(driver) = &self.driver {
            driver.hold();
        }
    }

    fn release(&mut self) {
        if let Some(driver) = &self.driver {
            driver.release();
        }
        self.client_gone |= self.writer.release().is_err();
        // Nobody waits for these any more.
        drop(self.outbox().over());
    }

    /// Takes what was read from the client. Where the server takes no more meanwhile, the rest waits;
    /// a client that has closed its side is taken to the end.
    fn drain_client(&mut self) {
        let received_ns = self.gate.mono_ns();
        let mut more = true;
        self.is_behind = false;
        while more && !self.client_gone {
            if self.link.is_congested() && !self.client_hung_up {
                self.is_behind = true;
                return;
            }
            self.hold();
            for _ in 0..HELD_FRAMES_MAX {
                more = self.on_next_client_frame(received_ns);
                if !more || self.link.is_congested() {
                    break;
                }
            }
            self.pump();
            self.release();
        }
    }

    fn drain_server(&mut self) {
        let mut more = true;
        while more && !self.client_gone {
            self.hold();
            for _ in 0..HELD_FRAMES_MAX {
                more = self
                    .driver
                    .as_mut()
                    .is_some_and(crate::upstream::Driver::route);
                self.pump();
                if !more {
                    break;
                }
            }
            self.release();
        }
    }

    fn on_tick(&mut self) {
        if !self.client_hung_up && self.reader.has_hung_up() {
            self.client_hung_up = true;
            self.drain_client();
        }
        let speaker = &self.speaker;
        let server = &speaker.server.name;
        speaker
            .outbox
            .flush_notes(&self.gate, &speaker.session_id, server);
        // A journal that fails here fails the gate as well, at its next record.
        if let Err(error) = self.gate.tick() {
            tracing::error!(reason = error.label(), "{error}");
        }
        self.reader.take_at_most(request::bytes_max(&self.gate));
        speaker.lot.sweep(self.gate.mono_ns());
        for frame in speaker.asker().changed_lists() {
            crate::call::Client::post(&*speaker.outbox, frame);
        }
        self.link.look_after();
        self.pump();
    }

    /// Refuses everything that waits for a person.
    fn stop_waiting(&mut self, reason: Reason) {
        self.speaker.under_way.stop_waiting(Why::Refused(reason));
        self.speaker.lot.decline_all(reason);
        self.together(Self::pump);
    }

    /// Answers what is open, stops the server, writes the session's last record.
    async fn end(mut self, ending: Ending) -> Ending {
        self.stop_waiting(Reason::Draining);
        let fault = match ending {
            Ending::ServerEnded(ref how) => Some(match &self.driver {
                Some(driver) => driver.died(how),
                None => UpstreamFault::Died.into(),
            }),
            Ending::Signal | Ending::JournalFailed if self.drain_ms > 0 => {
                Some(UpstreamFault::Timeout.into())
            }
            // Nobody is left to read an answer: the calls are settled as cancelled.
            Ending::ClientClosed | Ending::Signal | Ending::JournalFailed => None,
        };
        self.link.close_all(fault.as_ref());
        self.together(Self::pump);
        self.runs.clear();
        self.speaker.under_way.end();
        let wait = Duration::from_millis(LAST_FLUSH_MS);
        // A client that does not read what is left in time does not get it.
        drop(tokio::time::timeout(wait, self.writer.flush()).await);
        self.speaker.slot.end();
        if let Some(driver) = self.driver.take() {
            driver.stop().await;
        }
        self.speaker.server.pool.close().await;
        self.speaker.shown.close();
        self.speaker.server.close();
        self.last_record(ending)
    }

    fn last_record(&self, ending: Ending) -> Ending {
        let speaker = &self.speaker;
        let server = &speaker.server.name;
        speaker
            .outbox
            .flush_notes(&self.gate, &speaker.session_id, server);
        // A journal that fails here fails the gate, which is looked at below.
        drop(self.gate.flush());
        let mut message = match &ending {
            Ending::ServerEnded(how) => format!("the server ended: {how}; control:"),
            _ => "control:".to_owned(),
        };
        for (kind, count) in self.gate.control_counts() {
            message.push_str(&format!(" {kind}={count}"));
        }
        let missed = speaker.outbox.missed();
        if missed > 0 {
            message.push_str(&format!("; notifications dropped: {missed}"));
        }
        let record = System {
            level: Some(Level::Info),
            component: Some(Component::Mcp),
            message: Some(&message),
            reason: Some(ending.why().into()),
            session_id: Some(&speaker.session_id),
            backend_id: Some(server),
            ..System::of(SystemEvent::SessionEnded)
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
