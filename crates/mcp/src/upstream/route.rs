//! Where each frame of a server belongs.

use wire::id::IdKey;
use wire::jsonrpc::{Kind, string};
use wire::{Canonical, Id};

use super::exchange::{Incoming, News};
use super::link::{Link, Naming};
use crate::message::frames::{self, UpstreamFault};
use crate::message::method::{self, PROGRESS};
use crate::message::reply::{IS_ERROR, Reply, place};
use crate::message::shapes;
use crate::message::splice::Tie;
use crate::notes::Note;

impl Link {
    /// Takes one frame of the server. `has_streams`: each call has a stream of its own, and this frame
    /// came on none of these.
    pub(super) fn on_frame(&self, frame: &[u8], has_streams: bool) {
        match read(frame) {
            Ok(Read::Message(frame, message)) => self.deliver(frame, message, has_streams),
            Ok(Read::Batch(_)) if !self.may_batch() => {
                self.garbage(frame, "the server sent a batch, and this revision has none");
            }
            Ok(Read::Batch(elements)) => {
                for element in elements {
                    // Batches do not nest: an element that is one fails as no message.
                    match read(&element) {
                        Ok(Read::Message(frame, message)) => {
                            self.deliver(frame, message, has_streams);
                        }
                        Ok(Read::Batch(_)) | Err(_) => {
                            self.garbage(&element, "an element of a batch is not a message");
                        }
                    }
                }
            }
            Err(message) => self.garbage(frame, message),
        }
    }

    /// What a message is to the exchange on whose own stream it came; `None` where it is for another,
    /// or for nobody.
    pub(super) fn on_own_message(&self, own: u64, frame: &[u8]) -> Option<Incoming> {
        match read(frame) {
            Ok(Read::Message(frame, Message::Notification { method, tie, about })) => {
                let mut news = self.news(frame, &method, about);
                match tie {
                    _ if self.naming() == Naming::AsSpelled => {}
                    None if self.is_for_subscribers(&news) => {
                        self.on_notification(news, &method, tie, true);
                        return None;
                    }
                    Some(tie) if tie.number == own => news.tie = Some((tie.at, tie.is_token)),
                    None if method != PROGRESS => {}
                    tie => {
                        self.on_notification(news, &method, tie, true);
                        return None;
                    }
                }
                return Some(Incoming::Notification(news));
            }
            Ok(Read::Message(frame, Message::Request { id, method })) => {
                return Some(Incoming::Request { id, method, frame });
            }
            Ok(Read::Message(_, Message::Foreign)) => {
                self.note(Note::ServerNotificationForeign.into());
            }
            Ok(Read::Message(_, Message::Response { .. } | Message::NoId) | Read::Batch(_)) => {
                self.note(
                    Note::ServerGarbage.with("what came on a call's stream does not belong there"),
                );
            }
            Err(message) => self.note(Note::ServerGarbage.with(message)),
        }
        None
    }

    fn garbage(&self, frame: &[u8], message: &str) {
        let said = Note::ServerGarbage.sentence();
        self.note(Note::ServerGarbage.with(format!("{said}: {message}")));
        self.fail_salvaged(frame, UpstreamFault::Garbage);
    }

    fn deliver(&self, frame: Vec<u8>, message: Message, has_streams: bool) {
        match message {
            Message::Response {
                id,
                payload,
                is_error,
                is_tool_error,
            } => self.on_response(Reply {
                frame,
                id,
                payload,
                is_error,
                is_tool_error,
            }),
            Message::NoId => self.note(Note::ServerErrorWithoutId.into()),
            Message::Foreign => self.note(Note::ServerNotificationForeign.into()),
            Message::Notification { method, tie, about } => {
                let news = self.news(frame, &method, about);
                self.on_notification(news, &method, tie, has_streams);
            }
            Message::Request { id, method } => self.on_request(frame, id, method, has_streams),
        }
    }

    /// A notification as it is heard: what it makes untrue is forgotten before anybody reads it.
    fn news(&self, frame: Vec<u8>, method: &str, about: Option<About>) -> News {
        let (cancels, updates) = match about {
            Some(About::Cancelled(key)) => (Some(key), None),
            Some(About::Updated(uri)) => (None, Some(uri)),
            None => (None, None),
        };
        self.kept.heard(method);
        News {
            frame,
            tie: None,
            is_droppable: method::is_droppable(method),
            cancels,
            changes_tools: method == method::TOOLS_CHANGED,
            updates,
        }
    }

    /// Whether news are for those of several clients who have subscribed to their resource, whoever has a call under way.
    fn is_for_subscribers(&self, news: &News) -> bool {
        news.updates.is_some() && !self.is_exclusive()
    }

    fn on_response(&self, reply: Reply) {
        let id = reply.frame.get(reply.id.clone()).unwrap_or_default();
        let known = self.number_of(&String::from_utf8_lossy(id));
        if let Ok(number) = known {
            self.close(number, Incoming::Response(reply));
        } else if known == Err(true) {
            self.note(Note::ServerAnsweredAgain.into());
        } else {
            self.note(Note::ServerAnswerUnknown.into());
        }
    }

    fn on_notification(&self, mut news: News, method: &str, tie: Option<Tie>, has_streams: bool) {
        let spelled = self.naming() == Naming::AsSpelled;
        let tied = tie.filter(|_| !spelled);
        let tied = tied.and_then(|tie| Some((self.mailbox(tie.number)?, tie)));
        let mailbox = match tied {
            Some((mailbox, tie)) => {
                news.tie = Some((tie.at, tie.is_token));
                Some(mailbox)
            }
            // News of a call that has ended, or of none.
            None if method == PROGRESS && !spelled => return,
            None if self.is_for_subscribers(&news) => None,
            None => self.likely_mailbox(has_streams),
        };
        let is_droppable = news.is_droppable;
        let incoming = Incoming::Notification(news);
        let taken = match mailbox {
            Some(mailbox) => mailbox.put(incoming),
            None if !self.is_exclusive() && is_droppable => false,
            None => self.unsolicited.put(incoming),
        };
        if !taken {
            self.note(Note::ServerNotificationDropped.into());
        }
    }

    fn on_request(&self, frame: Vec<u8>, id: String, method: String, has_streams: bool) {
        let mailbox = self.likely_mailbox(has_streams);
        let refused = frames::error(
            &id,
            -32603,
            "nobody can answer this request: no call is under way that it could belong to",
            None,
        );
        let incoming = Incoming::Request { id, method, frame };
        let taken = match mailbox {
            Some(mailbox) => mailbox.put(incoming),
            None => self.is_exclusive() && self.unsolicited.put(incoming),
        };
        if !taken {
            self.note(Note::ServerRequestUnplaced.into());
            self.refuse(refused);
        }
    }
}

enum Read {
    /// One message, written anew.
    Message(Vec<u8>, Message),
    Batch(Vec<Vec<u8>>),
}

/// A message without its frame.
enum Message {
    Response {
        id: std::ops::Range<usize>,
        payload: std::ops::Range<usize>,
        is_error: bool,
        is_tool_error: bool,
    },
    NoId,
    Notification {
        method: String,
        tie: Option<Tie>,
        about: Option<About>,
    },
    Request {
        id: String,
        method: String,
    },
    /// A request without an id: it would reach the client unjudged.
    Foreign,
}

/// What a notification is about.
enum About {
    /// A request of the server's own that it takes back.
    Cancelled(IdKey),
    /// A resource that has changed.
    Updated(Box<str>),
}

fn read(frame: &[u8]) -> Result<Read, &'static str> {
    let canonical = shapes::of_server(frame).map_err(|fault| fault.message)?;
    if let Some(elements) = canonical.batch() {
        let elements = elements.map(|e| e.as_bytes().to_vec());
        return Ok(Read::Batch(elements.collect()));
    }
    let message = message(&canonical)?;
    Ok(Read::Message(canonical.into_bytes(), message))
}

fn message(canonical: &Canonical) -> Result<Message, &'static str> {
    let envelope = canonical.envelope().map_err(|fault| fault.message)?;
    let frame = canonical.text().as_bytes();
    let range = |part: &str| place(frame, part).unwrap_or_default();
    Ok(match envelope.kind {
        Kind::Response {
            id: Some(id),
            is_error,
        } => Message::Response {
            id: range(id.raw()),
            payload: envelope.payload.map(range).unwrap_or_default(),
            is_error,
            is_tool_error: !is_error && canonical.reply_member(IS_ERROR) == Some("true"),
        },
        Kind::Response { id: None, .. } => Message::NoId,
        Kind::Notification { method } if !method.starts_with(method::NEWS) => Message::Foreign,
        Kind::Notification { method } => Message::Notification {
            tie: Tie::of(frame, &method, &canonical.scan()),
            about: match &*method {
                method::CANCELLED => {
                    let id = canonical.param("requestId").and_then(Id::from_raw);
                    id.map(|id| About::Cancelled(id.key()))
                }
                method::UPDATED => {
                    // One that names none is for nobody.
                    let uri = canonical.param("uri").and_then(string).unwrap_or_default();
                    Some(About::Updated(uri.into()))
                }
                _ => None,
            },
            method: method.into_owned(),
        },
        Kind::Request { id, method } => Message::Request {
            id: Id::raw(id).to_owned(),
            method: method.into_owned(),
        },
    })
}
