//! What running instances tell of the calls that wait: one reading thread for each, all into one bounded queue.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::mpsc::SyncSender;

use serde_json::Value;

use crate::control::Request;
use crate::control::client::{self, Instance};
use crate::places::Places;

/// How often new instances are looked for, in milliseconds.
pub(super) const LOOK_MS: u64 = 500;
/// Most events that wait to be taken; whoever sends more waits.
pub(super) const EVENTS_MAX: usize = 256;

/// What a reading thread tells.
pub(super) enum News {
    /// A call began or ended to wait.
    Of(PathBuf, Value),
    /// The instance ended.
    Gone(PathBuf),
}

/// The instances that are read.
pub(super) struct Feed<'p> {
    places: &'p Places,
    read: HashSet<PathBuf>,
    warned: HashSet<String>,
}

impl<'p> Feed<'p> {
    pub fn new(places: &'p Places) -> Self {
        Self {
            places,
            read: HashSet::new(),
            warned: HashSet::new(),
        }
    }

    /// Begins to read instances that are new; gives what could not be looked at and was not said before.
    pub fn look<E: From<News> + Send + 'static>(&mut self, events: &SyncSender<E>) -> Vec<String> {
        let found = client::instances(self.places);
        for instance in found.instances {
            if self.read.insert(instance.socket.clone()) {
                let events = events.clone();
                std::thread::spawn(move || read(instance, &events));
            }
        }
        let mut warnings = found.warnings;
        warnings.retain(|warning| self.warned.insert(warning.clone()));
        warnings
    }

    /// An instance is no longer read.
    pub fn forget(&mut self, socket: &Path) {
        self.read.remove(socket);
    }
}

fn read<E: From<News>>(mut instance: Instance, events: &SyncSender<E>) {
    let socket = instance.socket.clone();
    let begun = instance
        .send(&Request::WatchApprovals)
        .and_then(|()| instance.wait_without_end());
    if begun.is_ok() {
        while let Ok(Some(mut line)) = instance.next() {
            let Some(item) = line.get_mut("item").map(Value::take) else {
                break;
            };
            if events.send(News::Of(socket.clone(), item).into()).is_err() {
                return;
            }
        }
    }
    let _ = events.send(News::Gone(socket).into());
}
