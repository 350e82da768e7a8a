//! The event streams of one Legacy session: numbered events, kept a while, so that a client whose
//! connection broke may resume a stream where it lost it.
//!
//! An event's id is `STREAM-NUMBER`; stream 0 is the one that a client opens with GET, each other
//! one belongs to a request that was answered with a stream.

use std::collections::{HashMap, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use net::http::server::{ResponseBody, StreamSender, stream};
use tokio::sync::mpsc;

/// Most events that are kept for resuming, of all streams of a session together.
pub const EVENTS_KEPT_MAX: usize = 256;
/// Most bytes of events that are kept.
pub const EVENT_BYTES_KEPT_MAX: usize = 1024 * 1024;
/// Most streams that are open at once in a session.
pub const STREAMS_MAX: usize = 128;
/// Most events that wait for a client to read them.
const PARTS_MAX: usize = 64;

/// The stream that belongs to no request.
pub(super) const NEWS: u64 = 0;

/// The streams of a session.
#[derive(Debug, Default)]
pub(super) struct Streams {
    state: Mutex<State>,
    /// Of a client over standard streams: all goes there.
    lines: Option<mpsc::Sender<Vec<u8>>>,
}

#[derive(Debug, Default)]
struct State {
    next: u64,
    kept: VecDeque<Event>,
    kept_bytes: usize,
    open: HashMap<u64, Outlet>,
}

#[derive(Debug)]
struct Event {
    stream: u64,
    number: u64,
    text: Bytes,
}

#[derive(Debug, Default)]
struct Outlet {
    /// The last event's number.
    number: u64,
    /// The last one that was handed to a reader.
    handed: u64,
    reader: Option<StreamSender>,
}

/// Why a stream cannot be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum StreamFault {
    /// Another connection reads it.
    Taken,
    /// The event id is none of this session's.
    UnknownEvent,
    /// Too many streams are open.
    TooMany,
}

impl Streams {
    /// Those of a client over standard streams.
    pub fn lines(lines: mpsc::Sender<Vec<u8>>) -> Self {
        Self {
            lines: Some(lines),
            ..Self::default()
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Opens the stream of a request. With `primed`, its first event is empty, so that the client
    /// has an id to resume from before anything happens.
    pub fn open(&self, primed: bool) -> Result<(u64, ResponseBody), StreamFault> {
        let (sender, body) = stream(PARTS_MAX);
        let mut state = self.state();
        if state.open.len() >= STREAMS_MAX {
            return Err(StreamFault::TooMany);
        }
        state.next += 1;
        let number = state.next;
        let outlet = Outlet {
            reader: Some(sender),
            ..Outlet::default()
        };
        state.open.insert(number, outlet);
        if primed {
            state.add(number, b"");
        }
        Ok((number, body))
    }

    /// Opens or resumes the stream that a client asks for. `after` is the last event that it has.
    pub fn read(&self, after: Option<&str>) -> Result<ResponseBody, StreamFault> {
        let after = after
            .map(|id| parse(id).ok_or(StreamFault::UnknownEvent))
            .transpose()?;
        let mut state = self.state();
        let (number, from) = match after {
            Some((number, seen)) if number <= state.next => (number, Some(seen)),
            Some(_) => return Err(StreamFault::UnknownEvent),
            None => (NEWS, None),
        };
        if number == NEWS {
            state.open.entry(NEWS).or_default();
        }
        let is_over = !state.open.contains_key(&number);
        if is_over && !state.kept.iter().any(|event| event.stream == number) {
            // Its answer is no longer there: an empty stream would let the client wait for it.
            return Err(StreamFault::UnknownEvent);
        }
        let taken = |outlet: &Outlet| outlet.reader.as_ref().is_some_and(|r| !r.is_closed());
        if from.is_none() && state.open.get(&NEWS).is_some_and(taken) {
            return Err(StreamFault::Taken);
        }
        let handed = state.open.get(&number).map_or(0, |outlet| outlet.handed);
        let from = from.unwrap_or(handed);
        let missed: Vec<Bytes> = state
            .kept
            .iter()
            .filter(|event| event.stream == number && event.number > from)
            .map(|event| event.text.clone())
            .collect();
        let (sender, body) = stream(missed.len() + PARTS_MAX);
        for text in missed {
            // There is room for all of them.
            let _ = sender.try_send(text);
        }
        // A stream that has ended gives what was missed and ends again.
        if let Some(outlet) = state.open.get_mut(&number) {
            outlet.handed = outlet.number;
            outlet.reader = Some(sender);
        }
        Ok(body)
    }

    /// Adds an event to a stream; waits for a reader that is slow, not for one that is gone.
    pub async fn emit(&self, stream: u64, frame: &[u8]) {
        if let Some(lines) = &self.lines {
            // A client that is gone hears nothing.
            let _ = lines.send(frame.to_vec()).await;
            return;
        }
        let waiting = self.state().add(stream, frame);
        if let Some((reader, text)) = waiting {
            // A reader that goes away meanwhile finds the event when it comes back.
            let _ = reader.send(text).await;
        }
    }

    /// Adds an event without waiting for its reader, who finds it among those that are kept.
    pub fn post(&self, stream: u64, frame: &[u8]) {
        if let Some(lines) = &self.lines {
            // One that reads nothing hears of it with its next list.
            let _ = lines.try_send(frame.to_vec());
            return;
        }
        drop(self.state().add(stream, frame));
    }

    /// Adds a stream's last event and ends it.
    pub async fn finish(&self, stream: u64, frame: Option<&[u8]>) {
        if let Some(frame) = frame {
            self.emit(stream, frame).await;
        }
        self.state().open.remove(&stream);
    }

    /// Whether somebody reads the stream that belongs to no request.
    pub fn is_read(&self) -> bool {
        if self.lines.is_some() {
            return true;
        }
        let state = self.state();
        let reader = state.open.get(&NEWS).and_then(|o| o.reader.as_ref());
        reader.is_some_and(|reader| !reader.is_closed())
    }

    /// Keeps silent connections open, and finds out which are gone.
    pub fn keep_alive(&self) {
        let mut comment = Vec::new();
        wire::sse::push_comment(&mut comment);
        let comment = Bytes::from(comment);
        for outlet in self.state().open.values_mut() {
            let gone = outlet
                .reader
                .as_ref()
                .is_some_and(|reader| reader.try_send(comment.clone()).is_err());
            if gone {
                outlet.reader = None;
            }
        }
    }

    /// Ends the stream that belongs to no request, for now.
    pub fn quiet(&self) {
        if let Some(outlet) = self.state().open.get_mut(&NEWS) {
            outlet.reader = None;
        }
    }

    /// Ends all streams.
    pub fn close(&self) {
        self.state().open.clear();
    }
}

impl State {
    /// Numbers and keeps an event, and hands it to the reader where there is room; else gives back
    /// what is still to be handed over.
    fn add(&mut self, stream: u64, frame: &[u8]) -> Option<(StreamSender, Bytes)> {
        let outlet = match stream {
            NEWS => self.open.entry(NEWS).or_default(),
            other => self.open.get_mut(&other)?,
        };
        outlet.number += 1;
        let number = outlet.number;
        let mut text = Vec::with_capacity(frame.len() + 32);
        let id = format!("{stream}-{number}");
        wire::sse::push_event(&mut text, Some(&id), frame);
        let text = Bytes::from(text);
        let mut waiting = None;
        if let Some(reader) = &outlet.reader {
            match reader.try_send(text.clone()) {
                Ok(true) => outlet.handed = number,
                Ok(false) => {
                    outlet.handed = number;
                    waiting = Some((reader.clone(), text.clone()));
                }
                Err(_) => outlet.reader = None,
            }
        }
        self.keep(Event {
            stream,
            number,
            text,
        });
        waiting
    }

    fn keep(&mut self, event: Event) {
        self.kept_bytes += event.text.len();
        self.kept.push_back(event);
        while self.kept.len() > EVENTS_KEPT_MAX || self.kept_bytes > EVENT_BYTES_KEPT_MAX {
            let Some(oldest) = self.kept.pop_front() else {
                return;
            };
            self.kept_bytes -= oldest.text.len();
        }
    }
}

fn parse(id: &str) -> Option<(u64, u64)> {
    let (stream, number) = id.split_once('-')?;
    Some((stream.parse().ok()?, number.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn what_is_kept_is_bounded_in_number_and_bytes() {
        let streams = Streams::default();
        for _ in 0..EVENTS_KEPT_MAX + 10 {
            streams.emit(NEWS, b"{}").await;
        }
        assert_eq!(streams.state().kept.len(), EVENTS_KEPT_MAX);
        let large = vec![b'x'; EVENT_BYTES_KEPT_MAX / 2];
        for _ in 0..3 {
            streams.emit(NEWS, &large).await;
        }
        assert!(streams.state().kept_bytes <= EVENT_BYTES_KEPT_MAX);
        assert_eq!(streams.state().kept.len(), 1);
    }

    #[tokio::test]
    async fn streams_are_told_apart_and_resumed_where_they_were_lost() {
        let streams = Streams::default();
        let (first, _body) = streams.open(true).unwrap();
        let (second, _other) = streams.open(false).unwrap();
        streams.emit(first, b"a").await;
        streams.emit(second, b"b").await;
        streams.emit(first, b"c").await;
        let of_first: Vec<(u64, Bytes)> = {
            let state = streams.state();
            let events = state.kept.iter().filter(|event| event.stream == first);
            events
                .map(|event| (event.number, event.text.clone()))
                .collect()
        };
        let numbers: Vec<_> = of_first.iter().map(|event| event.0).collect();
        assert_eq!(numbers, [1, 2, 3]);
        assert_eq!(of_first[1].1, "id: 1-2\ndata: a\n\n");
        streams.finish(second, None).await;
        for bad in ["", "1", "x-1", "1-x", "99-1", "-1-1"] {
            let fault = streams.read(Some(bad)).err();
            assert_eq!(fault, Some(StreamFault::UnknownEvent), "{bad}");
        }
        assert!(streams.read(Some("2-0")).is_ok());
        for _ in 0..EVENTS_KEPT_MAX {
            streams.emit(NEWS, b"{}").await;
        }
        // The one has ended and nothing of it is kept, the other may still bring its answer.
        let fault = streams.read(Some("2-0")).err();
        assert_eq!(fault, Some(StreamFault::UnknownEvent));
        assert!(streams.read(Some("1-3")).is_ok());
    }

    #[tokio::test]
    async fn one_connection_reads_the_news_and_streams_are_bounded() {
        let streams = Streams::default();
        let body = streams.read(None).unwrap();
        assert_eq!(streams.read(None).err(), Some(StreamFault::Taken));
        drop(body);
        assert!(streams.read(None).is_ok());
        let mut bodies = Vec::new();
        while let Ok(opened) = streams.open(false) {
            bodies.push(opened);
            assert!(bodies.len() <= STREAMS_MAX);
        }
        assert!(bodies.len() >= STREAMS_MAX - 1);
    }
}
