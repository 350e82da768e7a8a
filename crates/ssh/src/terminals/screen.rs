//! What a terminal has shown, within a bound, and waiting for more of it.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use regex::Regex;
use tokio::sync::Notify;
use toolkit::cancel::Cancel;

use super::plain;
use crate::end::{End, Missing};

/// What a terminal has shown.
#[derive(Debug)]
pub(crate) struct Screen {
    shown: Mutex<Shown>,
    changed: Notify,
    bytes_max: usize,
    /// The file with the recording.
    recording: Option<String>,
}

#[derive(Debug, Default)]
struct Shown {
    bytes: VecDeque<u8>,
    /// How many bytes there were before the first one that is kept.
    dropped: u64,
    end: Option<End>,
    /// Why output may be missing.
    missing: Option<Missing>,
    /// The last hash of the recording.
    hash: Option<String>,
}

/// A part of it.
#[derive(Debug)]
pub(crate) struct Part {
    /// Without control sequences.
    pub text: String,
    /// Where it begins in all that was shown, in bytes; later than asked for where that was dropped.
    pub at: u64,
    /// Where the next part begins.
    pub next: u64,
    /// What matched, where something was waited for and came.
    pub matched: Option<String>,
    /// How the program ended, where it has.
    pub end: Option<End>,
    /// Why output of it may be missing.
    pub missing: Option<Missing>,
    /// The file with the recording, and its last hash once it is whole.
    pub recording: Option<(String, Option<String>)>,
}

impl Screen {
    pub fn new(bytes_max: usize, recording: Option<String>) -> Self {
        Self {
            shown: Mutex::default(),
            changed: Notify::new(),
            bytes_max: bytes_max.max(1),
            recording,
        }
    }

    fn shown(&self) -> MutexGuard<'_, Shown> {
        self.shown.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds what the program wrote.
    pub fn push(&self, data: &[u8]) {
        let mut shown = self.shown();
        shown.bytes.extend(data);
        let over = shown.bytes.len().saturating_sub(self.bytes_max);
        shown.bytes.drain(..over);
        shown.dropped = shown.dropped.saturating_add(over as u64);
        drop(shown);
        self.changed.notify_waiters();
    }

    /// The program has ended, and its recording with this hash.
    pub fn end(&self, end: End, missing: Option<Missing>, hash: Option<String>) {
        let mut shown = self.shown();
        shown.missing = missing;
        shown.hash = hash;
        shown.end = Some(end);
        drop(shown);
        self.changed.notify_waiters();
    }

    pub fn is_over(&self) -> bool {
        self.shown().end.is_some()
    }

    /// How much was shown so far.
    pub fn length(&self) -> u64 {
        let shown = self.shown();
        shown.dropped.saturating_add(shown.bytes.len() as u64)
    }

    /// What was shown from a place on.
    fn since(&self, at: u64, wanted: Option<&Regex>) -> Part {
        let shown = self.shown();
        let wanted_at = at;
        let at = at.max(shown.dropped);
        let skip = usize::try_from(at - shown.dropped).unwrap_or(usize::MAX);
        let bytes: Vec<u8> = shown.bytes.iter().skip(skip).copied().collect();
        let text = plain(&bytes);
        let matched = wanted.and_then(|wanted| wanted.find(&text));
        Part {
            matched: matched.map(|found| found.as_str().to_owned()),
            at,
            next: at.saturating_add(bytes.len() as u64),
            end: shown.end.clone(),
            missing: shown
                .missing
                .or((at > wanted_at).then_some(Missing::OverBound)),
            recording: self
                .recording
                .clone()
                .map(|file| (file, shown.hash.clone())),
            text,
        }
    }

    /// What was shown from a place on, once it has this in it; as it is when the program ends, or after this time.
    /// Without anything to wait for, the first output is.
    pub async fn wait(
        &self,
        at: u64,
        wanted: Option<&Regex>,
        time: Duration,
        cancel: &Cancel,
    ) -> Part {
        let late = tokio::time::sleep(time);
        tokio::pin!(late);
        loop {
            let changed = self.changed.notified();
            tokio::pin!(changed);
            changed.as_mut().enable();
            let part = self.since(at, wanted);
            let is_there = match wanted {
                Some(_) => part.matched.is_some(),
                None => part.next > part.at,
            };
            if is_there || part.end.is_some() {
                return part;
            }
            tokio::select! {
                () = &mut changed => {}
                () = &mut late => return self.since(at, wanted),
                () = cancel.cancelled() => return self.since(at, wanted),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn output_is_waited_for_and_kept_within_its_bound() {
        let (screen, cancel) = (Screen::new(10, None), Cancel::default());
        screen.push(b"login: ");
        let wanted = Regex::new("ogin: $").unwrap();
        let minute = Duration::from_secs(60);
        let part = screen.wait(0, Some(&wanted), minute, &cancel).await;
        assert_eq!((part.matched.as_deref(), part.next), (Some("ogin: "), 7));
        let part = screen.wait(part.next, None, Duration::ZERO, &cancel).await;
        assert_eq!((part.text.as_str(), part.at, part.next), ("", 7, 7));
        screen.push(b"0123456789ab");
        let part = screen.wait(7, None, minute, &cancel).await;
        assert_eq!(
            (part.text.as_str(), part.at, part.next),
            ("23456789ab", 9, 19)
        );
        screen.end(End::Exited(3), None, None);
        let part = screen.wait(19, Some(&wanted), minute, &cancel).await;
        assert_eq!((part.matched, part.end), (None, Some(End::Exited(3))));
        let part = screen.wait(u64::MAX, None, minute, &cancel).await;
        assert_eq!(part.text, "");
    }
}
