//! Where each frame of a server belongs.

use wire::jsonrpc::{Envelope, Kind};
use wire::scan::Scan;
use wire::{Bounds, Id, scan_reply, scan_request};

use super::exchange::Incoming;
use super::link::Link;
use crate::frames::{self, UpstreamFault};
use crate::method;
use crate::reply::{Reply, place};
use crate::serve::splice::{Tie, number_of};

impl Link {
    /// Takes one frame of the server.
    pub(super) fn on_frame(&self, frame: Vec<u8>) {
        let incoming = match read(&frame) {
            Ok(Read::Message(read)) => read,
            Ok(Read::Batch(elements)) => {
                for element in elements {
                    // Batches do not nest: an element that is one fails as no message.
                    match read(&element) {
                        Ok(Read::Message(read)) => self.deliver(element, read),
                        Ok(Read::Batch(_)) | Err(_) => {
                            self.garbage(&element, "an element of a batch is not a message");
                        }
                    }
                }
                return;
            }
            Err(message) => return self.garbage(&frame, message),
        };
        self.deliver(frame, incoming);
    }

    /// What a message is to the exchange on whose own stream it came; `None` where it is for another,
    /// or for nobody.
    pub(super) fn on_own_message(&self, own: u64, frame: Vec<u8>) -> Option<Incoming> {
        match read(&frame) {
            Ok(Read::Message(Message::Notification { method, tie })) => match tie {
                Some(tie) if tie.number == own => {
                    let tie = Some((tie.at, tie.is_token));
                    return Some(Incoming::Notification { frame, tie });
                }
                None if method != PROGRESS => {
                    return Some(Incoming::Notification { frame, tie: None });
                }
                tie => self.on_notification(frame, &method, tie),
            },
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

    fn deliver(&self, frame: Vec<u8>, message: Message) {
        match message {
            Message::Response {
                number,
                id,
                payload,
                is_error,
            } => self.on_response(
                number,
                Reply {
                    frame,
                    id,
                    payload,
                    is_error,
                },
            ),
            Message::NoId => self.note(
                "server_error_without_id",
                "an error without an id was not passed on",
            ),
            Message::Notification { method, tie } => self.on_notification(frame, &method, tie),
            Message::Request { id, method } => self.on_request(frame, id, method),
        }
    }

    fn on_response(&self, number: Option<u64>, reply: Reply) {
        let known = number.filter(|number| self.was_given(*number));
        if known.is_some_and(|number| self.close(number, Incoming::Response(reply))) {
            return;
        }
        if known.is_some() {
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

    fn on_notification(&self, frame: Vec<u8>, method: &str, tie: Option<Tie>) {
        let tied = tie.and_then(|tie| Some((self.mailbox(tie.number)?, tie)));
        let (mailbox, tie) = match tied {
            Some((mailbox, tie)) => (Some(mailbox), Some((tie.at, tie.is_token))),
            // News of a call that has ended, or of none.
            None if method == PROGRESS => return,
            None => (self.likely_mailbox(), None),
        };
        let incoming = Incoming::Notification { frame, tie };
        let taken = match mailbox {
            Some(mailbox) => mailbox.put(incoming),
            None if !self.exclusive && method::is_droppable(method) => false,
            None => self.unsolicited.put(incoming),
        };
        if !taken {
            self.note(
                "server_notification_dropped",
                "a notification of the server had no reader and was dropped",
            );
        }
    }

    fn on_request(&self, frame: Vec<u8>, id: String, method: String) {
        if let Err(fault) = scan_request(&frame, &Bounds::default()) {
            return self.garbage(&frame, fault.message);
        }
        let mailbox = self.likely_mailbox();
        let refused = frames::error(
            &id,
            -32603,
            "nobody can answer this request: no call is under way that it could belong to",
            None,
        );
        let incoming = Incoming::Request { id, method, frame };
        let taken = match mailbox {
            Some(mailbox) => mailbox.put(incoming),
            None => self.exclusive && self.unsolicited.put(incoming),
        };
        if !taken {
            self.note(
                "server_request_unplaced",
                "a request of the server had no reader and was refused",
            );
            // A server that is gone needs no answer.
            let _ = self.refuse(refused);
        }
    }
}

const PROGRESS: &str = "notifications/progress";

enum Read {
    Message(Message),
    Batch(Vec<Vec<u8>>),
}

/// A message without its frame.
enum Message {
    Response {
        number: Option<u64>,
        id: std::ops::Range<usize>,
        payload: std::ops::Range<usize>,
        is_error: bool,
    },
    NoId,
    Notification {
        method: String,
        tie: Option<Tie>,
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
            number: number_of(id),
            id: range(id.raw()),
            payload: envelope.payload.map(range).unwrap_or_default(),
            is_error,
        },
        Kind::Response { id: None, .. } => Message::NoId,
        Kind::Notification { method } => Message::Notification {
            tie: Tie::of(frame, &method, scan),
            method: method.into_owned(),
        },
        Kind::Request { id, method } => Message::Request {
            id: Id::raw(id).to_owned(),
            method: method.into_owned(),
        },
    })
}
