//! Many HTTP clients driven by one thread: each has a call under way at any time, and the thread waits for all
//! of them at once, so that the generator costs little beside what it measures.

use super::http::HttpReply;
use super::session::HttpSession;
use super::{RenderedRequest, nanoseconds};
use rustix::event::{Timespec, epoll};

use std::io;
use std::time::{Duration, Instant};

/// Most events of one poll.
const EVENTS_MAX: usize = 64;
/// How long one look may take before the time is looked at.
const LOOK: Timespec = Timespec {
    tv_sec: 0,
    tv_nsec: 100_000_000,
};

/// Several clients of one server.
#[derive(Debug)]
pub(crate) struct ClientPool {
    sessions: Vec<HttpSession>,
    ready: rustix::fd::OwnedFd,
    timeout: Duration,
}

/// A client with an answered call.
#[derive(Debug)]
pub(crate) struct AnsweredClient<'a> {
    /// When the call's write began.
    pub(crate) begun: Instant,
    pub(crate) reply: HttpReply,
    pub(crate) session: &'a mut HttpSession,
}

impl ClientPool {
    /// Returns a flock of clients that are ready.
    pub(crate) fn new(sessions: Vec<HttpSession>, timeout_ms: u64) -> io::Result<Self> {
        let ready = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        for (number, session) in (0..).zip(&sessions) {
            let stream = session.connection.stream();
            epoll::add(
                &ready,
                stream,
                epoll::EventData::new_u64(number),
                epoll::EventFlags::IN,
            )?;
        }
        Ok(Self {
            sessions,
            ready,
            timeout: Duration::from_millis(timeout_ms),
        })
    }

    /// Lets every client call again as soon as it was answered, while `more` says so; then waits for what is under way.
    /// Every answer is handed to `each`; an objection of it ends the run.
    pub(crate) fn drive(
        &mut self,
        question: &RenderedRequest,
        more: &mut dyn FnMut() -> bool,
        each: &mut dyn FnMut(AnsweredClient<'_>) -> Result<(), String>,
    ) -> Result<(), String> {
        let mut under_way = 0;
        for session in &mut self.sessions {
            if more() {
                session
                    .launch(question)
                    .map_err(|error| error.to_string())?;
                under_way += 1;
            }
        }
        let mut told = Vec::with_capacity(EVENTS_MAX);
        let mut heard = Instant::now();
        while under_way > 0 {
            told.clear();
            match epoll::wait(
                &self.ready,
                rustix::buffer::spare_capacity(&mut told),
                Some(&LOOK),
            ) {
                Ok(0) if heard.elapsed() > self.timeout => {
                    let waited = nanoseconds(heard) / 1_000_000;
                    return Err(format!("no answer at all within {waited} ms"));
                }
                Ok(0) | Err(rustix::io::Errno::INTR) => continue,
                Ok(_) => heard = Instant::now(),
                Err(error) => return Err(io::Error::from(error).to_string()),
            }
            for event in &told {
                let number = usize::try_from(event.data.u64()).unwrap_or(usize::MAX);
                let Some(session) = self.sessions.get_mut(number) else {
                    continue;
                };
                let begun = session.connection.exchange_start();
                let Some(reply) = session.land().map_err(|error| error.to_string())? else {
                    continue;
                };
                under_way -= 1;
                if session.connection.is_closed() {
                    return Err("the server closes a connection that should be kept".into());
                }
                each(AnsweredClient {
                    begun,
                    reply,
                    session,
                })?;
                if more() {
                    session
                        .launch(question)
                        .map_err(|error| error.to_string())?;
                    under_way += 1;
                }
            }
        }
        Ok(())
    }

    /// Ends all sessions.
    pub(crate) fn close(mut self) {
        self.sessions.iter_mut().for_each(HttpSession::close);
    }
}
