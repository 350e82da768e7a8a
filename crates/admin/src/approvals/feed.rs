//! Events of running instances: one reading thread for each, all into one bounded queue.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::mpsc::SyncSender;

use serde_json::Value;

use super::question::InstanceEvent;
use crate::control::Request;
use crate::control::client::{self, Instance};

/// How often new instances are to be searched, in milliseconds.
pub const SEARCH_MS: u64 = 500;
/// Most events of a queue; a reading thread waits while it is full.
pub const EVENTS_MAX: usize = 256;

/// Item that a reading thread sends.
#[derive(Debug)]
pub enum FeedItem {
    /// An instance reports an event.
    Event(Box<InstanceEvent>),
    /// The instance at this socket ended.
    Ended(PathBuf),
}

/// The instances that are read.
#[derive(Debug)]
pub struct ApprovalFeed<'p> {
    runtime: &'p [PathBuf],
    read: HashSet<PathBuf>,
    warned: HashSet<String>,
}

impl<'p> ApprovalFeed<'p> {
    /// Creates the feed of the instances in these runtime directories.
    #[must_use]
    pub fn new(runtime: &'p [PathBuf]) -> Self {
        Self {
            runtime,
            read: HashSet::new(),
            warned: HashSet::new(),
        }
    }

    /// Starts to read new instances; returns sentences about what cannot be read, each once.
    pub fn search<E: From<FeedItem> + Send + 'static>(
        &mut self,
        events: &SyncSender<E>,
    ) -> Vec<String> {
        let found = client::instances(self.runtime);
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

    /// Forgets an instance that is no longer read.
    pub fn forget(&mut self, socket: &Path) {
        self.read.remove(socket);
    }
}

fn read<E: From<FeedItem>>(mut instance: Instance, events: &SyncSender<E>) {
    let socket = instance.socket.clone();
    let begun = instance
        .send(&Request::WatchApprovals)
        .and_then(|()| instance.wait_without_end());
    if begun.is_ok() {
        while let Ok(Some(mut line)) = instance.next_line() {
            let item = line.get_mut("item").map(Value::take);
            let Some(Ok(event)) = item.map(serde_json::from_value) else {
                break;
            };
            let event = Box::new(InstanceEvent {
                socket: socket.clone(),
                event,
            });
            if events.send(FeedItem::Event(event).into()).is_err() {
                return;
            }
        }
    }
    let _ = events.send(FeedItem::Ended(socket).into());
}
