//! A variant that is ready for calls, over any transport.

use super::concurrent::ConcurrentReply;
use super::flock::{AnsweredClient, ClientPool};
use super::served::ListeningServer;
use super::session::HttpSession;
use super::{
    CallAnswer, ProtocolRevision, RenderedRequest, TimedOperation, VariantConnection, nanoseconds,
    spawn,
};
use crate::error::LabError;
use crate::variant::{Variant, VariantTransport};

/// How a variant is spoken to.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LinkOptions<'a> {
    pub(crate) operation: &'a TimedOperation,
    pub(crate) protocol: ProtocolRevision,
    /// Calls under way at once: on one connection over stdio, on so many connections over HTTP.
    pub(crate) width: usize,
    pub(crate) timeout_ms: u64,
}

/// A variant, started and greeted.
#[derive(Debug)]
pub(crate) enum VariantLink {
    /// A child behind pipes.
    Stdio(Box<VariantConnection>),
    /// A server over HTTP.
    Http(Box<HttpLink>),
}

/// A server over HTTP and its clients.
#[derive(Debug)]
pub(crate) struct HttpLink {
    served: ListeningServer,
    session: HttpSession,
    /// The clients of a volley.
    flock: Option<ClientPool>,
}

impl VariantLink {
    /// Starts a variant and shakes hands; nanoseconds from the start to the answer to that.
    pub(crate) fn open(arm: &Variant, manner: LinkOptions<'_>) -> Result<(Self, u64), LabError> {
        match arm.transport() {
            VariantTransport::Stdio => {
                let mut connection = VariantConnection::new(spawn(arm, manner.timeout_ms)?);
                let start_ns = connection.open(manner.protocol)?;
                Ok((Self::Stdio(Box::new(connection)), start_ns))
            }
            VariantTransport::Http => {
                let (link, start_ns) = HttpLink::open(arm, manner)?;
                Ok((Self::Http(Box::new(link)), start_ns))
            }
        }
    }

    /// Its process, if it is our child.
    pub(crate) fn pid(&self) -> Option<u32> {
        match self {
            Self::Stdio(connection) => Some(connection.process().pid()),
            Self::Http(link) => link.served.pid(),
        }
    }

    /// Its address over HTTP.
    pub(crate) fn url(&self) -> Option<String> {
        match self {
            Self::Stdio(_) => None,
            Self::Http(link) => Some(link.served.url().to_string()),
        }
    }

    /// One timed call: nanoseconds from before the write of the request to after the read of its answer.
    pub(crate) fn ask(&mut self, question: &RenderedRequest) -> Result<u64, LabError> {
        match self {
            Self::Stdio(connection) => connection.ask(question),
            Self::Http(link) => match link.session.ask(question) {
                Ok(reply) => Ok(reply.elapsed_ns),
                Err((_, error)) => Err(link.served.fault(question.name(), &error)),
            },
        }
    }

    /// Has the last answer checked by `check`, unless it repeats one that was found good.
    pub(crate) fn check(
        &mut self,
        check: &mut dyn FnMut(&CallAnswer<'_>) -> Result<(), String>,
    ) -> Result<(), LabError> {
        match self {
            Self::Stdio(connection) if connection.is_known() => Ok(()),
            Self::Stdio(connection) => {
                check(&connection.answer()?).map_err(|what| connection.invalid(what))?;
                connection.confirm();
                Ok(())
            }
            Self::Http(link) if link.session.is_known() => Ok(()),
            Self::Http(link) => {
                let answer = link.session.answer();
                let checked = answer.and_then(|answer| check(&answer));
                checked.map_err(|what| link.served.invalid(what))?;
                link.session.confirm();
                Ok(())
            }
        }
    }

    /// Returns the id of the last call, and the size of its answer in bytes.
    pub(crate) fn last(&self) -> (u64, usize) {
        match self {
            Self::Stdio(connection) => connection.last(),
            Self::Http(link) => link.session.last(),
        }
    }

    /// Makes `calls` calls, `width` of them under way at any time, and hands every answer to `each`.
    pub(crate) fn volley(
        &mut self,
        question: &RenderedRequest,
        calls: u32,
        width: usize,
        each: &mut dyn FnMut(&ConcurrentReply<'_>) -> Result<(), String>,
    ) -> Result<(), LabError> {
        match self {
            Self::Stdio(connection) => connection.volley(question, calls, width, each),
            Self::Http(link) => link.volley(question, calls, each),
        }
    }

    /// Sends requests without a wait for their answers: an answer makes the next call fail.
    pub(crate) fn leave_open(
        &mut self,
        question: &RenderedRequest,
        calls: usize,
    ) -> Result<(), LabError> {
        match self {
            Self::Stdio(connection) => connection.leave_open(question, calls),
            Self::Http(link) => Err(link
                .served
                .invalid("calls are left open on one connection, over stdio only".into())),
        }
    }

    /// Ends the variant.
    pub(crate) fn close(self) {
        match self {
            Self::Stdio(connection) => connection.close(),
            Self::Http(link) => link.close(),
        }
    }
}

impl HttpLink {
    fn open(arm: &Variant, manner: LinkOptions<'_>) -> Result<(Self, u64), LabError> {
        let mut served = ListeningServer::start(arm, manner.timeout_ms)?;
        let connect = |served: &ListeningServer| {
            let LinkOptions {
                operation,
                protocol,
                timeout_ms,
                ..
            } = manner;
            HttpSession::open(served.url(), &[], operation, protocol, timeout_ms)
        };
        let session = connect(&served).map_err(|what| served.broken_error(what))?;
        let start_ns = nanoseconds(served.start_time());
        let flock = match manner.width {
            0 | 1 => None,
            width => {
                let sessions: Result<Vec<HttpSession>, String> =
                    (0..width).map(|_| connect(&served)).collect();
                let flock = sessions.and_then(|sessions| {
                    ClientPool::new(sessions, manner.timeout_ms).map_err(|error| error.to_string())
                });
                Some(flock.map_err(|what| served.broken_error(what))?)
            }
        };
        let link = Self {
            served,
            session,
            flock,
        };
        Ok((link, start_ns))
    }

    fn volley(
        &mut self,
        question: &RenderedRequest,
        calls: u32,
        each: &mut dyn FnMut(&ConcurrentReply<'_>) -> Result<(), String>,
    ) -> Result<(), LabError> {
        let Some(flock) = &mut self.flock else {
            return Err(self.served.invalid("it has one connection only".into()));
        };
        let mut sent = 0;
        let mut more = || {
            sent += 1;
            sent <= calls
        };
        let done = flock.drive(question, &mut more, &mut |landed: AnsweredClient<'_>| {
            let known = landed.session.is_known();
            let (id, bytes) = landed.session.last();
            each(&ConcurrentReply {
                id,
                begun: landed.begun,
                elapsed_ns: landed.reply.elapsed_ns,
                bytes,
                answer: match known {
                    true => None,
                    false => Some(landed.session.answer()?),
                },
            })?;
            if !known {
                landed.session.confirm();
            }
            Ok(())
        });
        done.map_err(|what| self.served.invalid(what))
    }

    fn close(self) {
        let Self {
            served,
            mut session,
            flock,
        } = self;
        if let Some(flock) = flock {
            flock.close();
        }
        session.close();
        served.close();
    }
}
