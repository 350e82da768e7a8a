//! Where each frame of a server belongs.

use wire::id::IdKey;
use wire::jsonrpc::{Envelope, Kind, member};
use wire::scan::Scan;
use wire::{Bounds, Id, scan_reply, scan_request};

use super::exchange::{Incoming, News};
use super::link::{Link, Naming};
use crate::message::frames::{self, UpstreamFault};
use crate::message::method::{self, PROGRESS};
use crate::message::reply::{Reply, place};
use crate::message::splice::Tie;

impl Link {
    /// Takes one frame of the server. `has_streams`: each call has a stream of its own, and this frame
    /// came on none of these.
    pub(super) fn on_frame(&self, frame: Vec<u8>, has_streams: bool) {
        let incoming = match read(&frame) {
            Ok(Read::Message(read)) => read,
            Ok(Read::Batch(elements)) => {
                for element in elements {
                    // Batches do not nest: an element that is one fails as no message.
                    match read(&element) {
                        Ok(Read::Message(read)) => self.deliver(element, read, has_streams),
                        Ok(Read::Batch(_)) | Err(_) => {
                            self.garbage(&element, "an element of a batch is not a message");
                        }
                    }
                }
                return;
            }
            Err(message) => return self.garbage(&frame, message),
        };
        self.deliver(frame, incoming, has_streams);
    }

    /// What a message is to the exchange on whose own stream it came; `None` where it is for another,
    /// or for nobody.
    pub(super) fn on_own_message(&self, own: u64, frame: Vec<u8>) -> Option<Incoming> {
        match read(&frame) {
            Ok(Read::Message(Message::Notification {
                method,
                tie,
                cancels,
            })) => {
                let mut news = News {
                    frame,
                    tie: None,
                    is_droppable: method::is_droppable(&method),
                    cancels,
                };
                match tie {
                    _ if self.naming() == Naming::AsSpelled => {}
                    Some(tie) if tie.number == own => news.tie = Some((tie.at, tie.is_token)),
                    None if method != PROGRESS => {}
                    tie => {
                        self.on_notification(news, &method, tie, true);
                        return None;
                    }
                }
                return Some(Incoming::Notification(news));
            }
            Ok(Read::Message(Message::Request { id, method })) => {
                match scan_request(&frame, &Bounds::default()) {
                    Ok(_) => return Some(Incoming::Request { id, method, frame }),
                    Err(fault) => self.note("server_garbage", fault.message),
                }
            }
            Ok(Read::Message(Message::Response { .. } | Message::NoId) | Read::Batch(_)) => {
                self.note(
                    "server_garbage",
                    "what came on a call's stream does not belong there",
                );
            }
            Err(message) => self.note("server_garbage", message),
        }
        None
    }

    fn garbage(&self, frame: &[u8], message: &str) {
        self.note("server_garbage", message);
        self.fail_salvaged(frame, UpstreamFault::Garbage);
    }

    fn deliver(&self, frame: Vec<u8>, message: Message, has_streams: bool) {
        match message {
            Message::Response {
                id,
                payload,
                is_error,
            } => self.on_response(Reply {
                frame,
                id,
                payload,
                is_error,
            }),
            Message::NoId => self.note(
                "server_error_without_id",
                "an error without an id was not passed on",
            ),
            Message::Notification {
                method,
                tie,
                cancels,
            } => {
                let news = News {
                    frame,
                    tie: None,
                    is_droppable: method::is_droppable(&method),
                    cancels,
                };
                self.on_notification(news, &method, tie, has_streams);
            }
            Message::Request { id, method } => self.on_request(frame, id, method, has_streams),
        }
    }

    fn on_response(&self, reply: Reply) {
        let id = reply.frame.get(reply.id.clone()).unwrap_or_default();
        let known = self.number_of(&String::from_utf8_lossy(id));
        if let Ok(number) = known {
            self.close(number, Incoming::Response(reply));
        } else if known == Err(true) {
            self.note(
                "server_answered_again",
                "a second or late answer to a call was dropped",
            );
        } else {
            self.note(
                "server_answer_unknown",
                "an answer to no call under way was dropped",
            );
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
            self.note(
                "server_notification_dropped",
                "a notification of the server had no reader and was dropped",
            );
        }
    }

    fn on_request(&self, frame: Vec<u8>, id: String, method: String, has_streams: bool) {
        if let Err(fault) = scan_request(&frame, &Bounds::default()) {
            return self.garbage(&frame, fault.message);
        }
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
            self.note(
                "server_request_unplaced",
                "a request of the server had no reader and was refused",
            );
            self.refuse(refused);
        }
    }
}

enum Read {
    Message(Message),
    Batch(Vec<Vec<u8>>),
}

/// A message without its frame.
enum Message {
    Response {
        id: std::ops::Range<usize>,
        payload: std::ops::Range<usize>,
        is_error: bool,
    },
    NoId,
    Notification {
        method: String,
        tie: Option<Tie>,
        cancels: Option<IdKey>,
    },
    Request {
        id: String,
        method: String,
    },
}

fn read(frame: &[u8]) -> Result<Read, &'static str> {
    let scan = scan_reply(frame, &Bounds::default()).map_err(|fault| fault.message)?;
    if let Some(elements) = &scan.batch {
        return Ok(Read::Batch(
            elements.iter().map(|e| e.as_bytes().to_vec()).collect(),
        ));
    }
    message(frame, &scan).map(Read::Message)
}

fn message(frame: &[u8], scan: &Scan<'_>) -> Result<Message, &'static str> {
    let envelope = Envelope::of(scan).map_err(|fault| fault.message)?;
    let range = |part: &str| place(frame, part).unwrap_or_default();
    Ok(match envelope.kind {
        Kind::Response {
            id: Some(id),
            is_error,
        } => Message::Response {
            id: range(id.raw()),
            payload: envelope.payload.map(range).unwrap_or_default(),
            is_error,
        },
        Kind::Response { id: None, .. } => Message::NoId,
        Kind::Notification { method } => Message::Notification {
            tie: Tie::of(frame, &method, scan),
            cancels: (method == method::CANCELLED)
                .then(|| Id::from_raw(member(&scan.params, "requestId")?).map(Id::key))
                .flatten(),
            method: method.into_owned(),
        },
        Kind::Request { id, method } => Message::Request {
            id: Id::raw(id).to_owned(),
            method: method.into_owned(),
        },
    })
}
