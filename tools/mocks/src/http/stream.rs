//! One stream of frames to a client: what waits to be sent, and what was sent, should it be asked for again.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;
use tokio::sync::Notify;

/// How many frames wait on one stream at most; the oldest make room.
const WAITING_MAX: usize = 1 << 20;
/// How many sent frames of one stream are kept.
const KEPT_MAX: usize = 256;

/// Something to send.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum StreamItem {
    /// One frame; `answers` is true for the response of the stream's request.
    Frame { bytes: Vec<u8>, answers: bool },
    /// Bytes without any framing.
    Raw(Vec<u8>),
    /// The end of the connection, but not of the stream.
    HangUp,
}

/// An item with its place on the stream, from 1.
#[derive(Debug)]
pub(super) struct NumberedItem {
    pub(super) number: u64,
    pub(super) item: StreamItem,
}

#[derive(Debug)]
pub(super) struct EventStream {
    /// Which of its session's streams it is. 0 is the one that belongs to no request.
    pub(super) number: u64,
    /// The request it belongs to, raw JSON; empty if there is none.
    pub(super) request: String,
    state: Mutex<StreamState>,
    wake: Notify,
}

#[derive(Debug, Default)]
struct StreamState {
    waiting: VecDeque<(Instant, StreamItem)>,
    sent: VecDeque<(u64, Vec<u8>)>,
    /// How many items were handed out.
    count: u64,
    answered: bool,
    closed: bool,
    /// Which reader may go on; an older one gets the end of the stream.
    reader: u64,
}

impl EventStream {
    pub(super) fn new(number: u64, request: &str) -> Self {
        Self {
            number,
            request: request.to_owned(),
            state: Mutex::default(),
            wake: Notify::new(),
        }
    }

    fn state(&self) -> MutexGuard<'_, StreamState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds an item that may be sent from `due` on, behind those that are due before or with it.
    pub(super) fn push(&self, due: Instant, item: StreamItem) {
        let mut state = self.state();
        if state.waiting.len() >= WAITING_MAX {
            state.waiting.pop_front();
        }
        if matches!(item, StreamItem::Frame { answers: true, .. }) {
            state.answered = true;
        }
        let place = state.waiting.partition_point(|(other, _)| *other <= due);
        state.waiting.insert(place, (due, item));
        drop(state);
        self.wake.notify_one();
    }

    /// Ends the stream without more.
    pub(super) fn close(&self) {
        let mut state = self.state();
        state.closed = true;
        state.waiting.clear();
        drop(state);
        self.wake.notify_one();
    }

    /// Returns whether the answer is there or never will be.
    pub(super) fn is_settled(&self) -> bool {
        let state = self.state();
        state.answered || state.closed
    }

    /// Returns whether a further item waits, due or not.
    pub(super) fn has_more(&self) -> bool {
        !self.state().waiting.is_empty()
    }

    /// Becomes the stream's only reader; an older one ends.
    pub(super) fn take_over(&self) -> u64 {
        let mut state = self.state();
        state.reader += 1;
        let reader = state.reader;
        drop(state);
        // One permit for the reader that ends, and it passes one on.
        self.wake.notify_one();
        reader
    }

    /// Returns the frames sent after `number`, as far as they are kept.
    pub(super) fn sent_after(&self, number: u64) -> Vec<(u64, Vec<u8>)> {
        let state = self.state();
        let after = state.sent.iter().filter(|(sent, _)| *sent > number);
        after.cloned().collect()
    }

    /// The next item once it is due; none if the stream has ended or another reader took over.
    pub(super) async fn next(&self, reader: u64) -> Option<NumberedItem> {
        loop {
            let due = match self.look(reader) {
                StreamPoll::Item(item) => return Some(item),
                StreamPoll::End => return None,
                StreamPoll::Usurped => {
                    self.wake.notify_one();
                    return None;
                }
                StreamPoll::Wait(due) => due,
            };
            match due {
                None => self.wake.notified().await,
                Some(due) => {
                    let _ = tokio::time::timeout_at(due.into(), self.wake.notified()).await;
                }
            }
        }
    }

    fn look(&self, reader: u64) -> StreamPoll {
        let mut state = self.state();
        if state.reader != reader {
            return StreamPoll::Usurped;
        }
        match state.waiting.front() {
            None if state.closed || state.answered => StreamPoll::End,
            None => StreamPoll::Wait(None),
            Some((due, _)) if *due > Instant::now() => StreamPoll::Wait(Some(*due)),
            Some(_) => {
                let Some((_, item)) = state.waiting.pop_front() else {
                    return StreamPoll::Wait(None);
                };
                state.count += 1;
                let number = state.count;
                if let StreamItem::Frame { bytes, .. } = &item {
                    if state.sent.len() >= KEPT_MAX {
                        state.sent.pop_front();
                    }
                    let bytes = bytes.clone();
                    state.sent.push_back((number, bytes));
                }
                StreamPoll::Item(NumberedItem { number, item })
            }
        }
    }
}

enum StreamPoll {
    Item(NumberedItem),
    Wait(Option<Instant>),
    End,
    Usurped,
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn frame(text: &str, answers: bool) -> StreamItem {
        let bytes = text.as_bytes().to_vec();
        StreamItem::Frame { bytes, answers }
    }

    fn run<T>(future: impl Future<Output = T>) -> T {
        tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .build()
            .unwrap()
            .block_on(future)
    }

    #[test]
    fn items_come_when_due_and_the_answer_ends_the_stream() {
        run(async {
            let (stream, now) = (EventStream::new(1, "7"), Instant::now());
            stream.push(now + Duration::from_millis(20), frame("answer", true));
            stream.push(now, frame("first", false));
            stream.push(now + Duration::from_millis(10), frame("second", false));
            let mut seen = Vec::new();
            while let Some(numbered) = stream.next(0).await {
                seen.push((numbered.number, numbered.item));
            }
            assert_eq!(
                seen,
                [
                    (1, frame("first", false)),
                    (2, frame("second", false)),
                    (3, frame("answer", true))
                ]
            );
            assert_eq!(stream.sent_after(1).len(), 2);
        });
    }

    #[test]
    fn a_reader_that_is_replaced_ends_and_the_new_one_goes_on() {
        run(async {
            let stream = EventStream::new(1, "7");
            let second = async {
                tokio::task::yield_now().await;
                let reader = stream.take_over();
                stream.push(Instant::now(), frame("answer", true));
                stream.next(reader).await
            };
            let (first, second) = tokio::join!(stream.next(0), second);
            assert!(first.is_none());
            assert_eq!(second.unwrap().item, frame("answer", true));
        });
    }

    #[test]
    fn what_was_sent_is_kept_up_to_a_bound() {
        run(async {
            let stream = EventStream::new(0, "");
            for number in 0..KEPT_MAX + 5 {
                stream.push(Instant::now(), frame(&number.to_string(), false));
                stream.next(0).await.unwrap();
            }
            assert_eq!(stream.sent_after(0).len(), KEPT_MAX);
        });
    }
}
