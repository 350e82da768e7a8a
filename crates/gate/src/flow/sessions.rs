//! The labels of sessions, and which call gave them.

use std::collections::HashMap;
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::labels::{Label, Labels};

/// Most sessions whose labels are known apart. Where there are more, the labels of the rest count for
/// every session that is not among them.
pub const SESSIONS_MAX: usize = 10_000;
/// How long labels hold after the session's last call, in milliseconds: a day. Who goes on after that has
/// long lost what it read, or reads it again.
pub const HOLD_MS: u64 = 86_400_000;

/// The call whose result gave a label.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cause {
    /// The server that said it.
    pub server: Arc<str>,
    /// The tool, where one was called.
    pub tool: Option<Arc<str>>,
    /// The call, where it belongs to one.
    pub op: Option<Arc<str>>,
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.tool {
            Some(tool) => write!(f, "{tool} on {}", self.server)?,
            None => write!(f, "{}", self.server)?,
        }
        match &self.op {
            Some(op) => write!(f, ", op {op}"),
            None => Ok(()),
        }
    }
}

/// The labels that a session has.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Held {
    /// For each label, in their order, the first call that gave it.
    causes: [Option<Cause>; Label::ALL.len()],
    /// Given by sessions that found no room.
    others: Labels,
}

impl Held {
    /// All of them.
    #[must_use]
    pub fn labels(&self) -> Labels {
        let own = Label::ALL.into_iter().zip(&self.causes);
        let own = own.filter(|(_, cause)| cause.is_some());
        own.map(|(label, _)| label)
            .collect::<Labels>()
            .with(self.others)
    }

    /// The values of the fact `session_labels`.
    #[must_use]
    pub fn words(&self) -> Vec<Arc<str>> {
        let labels = self.labels();
        let mut words: Vec<Arc<str>> = labels.iter().map(|label| label.word().into()).collect();
        if words.len() == Label::ALL.len() {
            words.push(Label::BOTH.into());
        }
        words
    }

    /// The values of the fact `labelled_by`.
    #[must_use]
    pub fn told(&self) -> Vec<Arc<str>> {
        let own = Label::ALL.into_iter().zip(&self.causes);
        let own = own.filter_map(|(label, cause)| {
            let cause = cause.as_ref()?;
            Some(Arc::from(format!("{} by {cause}", label.word())))
        });
        let others = self.others.iter().map(|label| {
            Arc::from(format!(
                "{} by another session: there are too many",
                label.word()
            ))
        });
        own.chain(others).collect()
    }
}

#[derive(Debug, Default)]
struct Session {
    held: Held,
    used_ns: u64,
}

#[derive(Debug, Default)]
struct Inner {
    sessions: HashMap<Arc<str>, Session>,
    others: Labels,
}

/// The labels of all sessions of a process.
#[derive(Debug, Default)]
pub struct Sessions {
    /// Whether any session has a label: without, nothing is looked up.
    any: AtomicBool,
    inner: Mutex<Inner>,
}

impl Sessions {
    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether no session has ever had a label.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        !self.any.load(Ordering::Acquire)
    }

    /// Gives a caller's session labels. Each keeps the first call that gave it.
    pub fn label(&self, caller: &Arc<str>, labels: Labels, cause: &Cause, now_ns: u64) {
        if labels.is_empty() {
            return;
        }
        let mut inner = self.inner();
        if !inner.sessions.contains_key(caller) && inner.sessions.len() >= SESSIONS_MAX {
            inner
                .sessions
                .retain(|_, session| !is_over(session, now_ns));
            if inner.sessions.len() >= SESSIONS_MAX {
                // There are others, so it is known already that there are any.
                inner.others = inner.others.with(labels);
                return;
            }
        }
        let session = inner.sessions.entry(Arc::clone(caller)).or_default();
        if is_over(session, now_ns) {
            session.held = Held::default();
        }
        session.used_ns = now_ns;
        for (label, kept) in Label::ALL.into_iter().zip(&mut session.held.causes) {
            if labels.has(label) {
                kept.get_or_insert_with(|| cause.clone());
            }
        }
        drop(inner);
        self.any.store(true, Ordering::Release);
    }

    /// The labels of a caller's session, which makes a call now; none where it has none.
    #[must_use]
    pub fn of(&self, caller: &str, now_ns: u64) -> Option<Held> {
        if self.is_empty() {
            return None;
        }
        let mut inner = self.inner();
        let others = inner.others;
        let held = match inner.sessions.get_mut(caller) {
            Some(session) if is_over(session, now_ns) => {
                inner.sessions.remove(caller);
                Held::default()
            }
            Some(session) => {
                session.used_ns = now_ns;
                return Some(session.held.clone());
            }
            None => Held::default(),
        };
        (!others.is_empty()).then_some(Held { others, ..held })
    }
}

fn is_over(session: &Session, now_ns: u64) -> bool {
    now_ns.saturating_sub(session.used_ns) > HOLD_MS.saturating_mul(1_000_000)
}

#[cfg(test)]
mod tests;
