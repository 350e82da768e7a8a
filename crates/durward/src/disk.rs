//! How much room the journal's disk has left: a full disk ends the journal, and with it every call.

use std::path::{Path, PathBuf};
use std::time::Duration;

use net::timers::kept;

use crate::config::values::Size;
use crate::places::Places;

/// How often it is looked at, in milliseconds.
const LOOK_MS: u64 = 10_000;

/// How many bytes this user may still write on the disk that holds `directory`, or will hold it. `None` where the system
/// does not say.
pub fn free_bytes(directory: &Path) -> Option<u64> {
    let found = directory
        .ancestors()
        .find_map(|at| rustix::fs::statvfs(at).ok())?;
    found.f_bavail.checked_mul(found.f_frsize)
}

/// A size as people read it.
pub fn rough(bytes: u64) -> String {
    match bytes {
        0..1_024 => format!("{bytes} bytes"),
        1_024..1_048_576 => format!("{} KiB", bytes / 1_024),
        1_048_576..10_737_418_240 => format!("{} MiB", bytes / 1_048_576),
        _ => format!("{} GiB", bytes / 1_073_741_824),
    }
}

/// What is said of a disk that is nearly full.
pub fn sentence(free: u64, places: &Places) -> String {
    format!(
        "the disk of the journal ({}) has {} left, less than {} (journal.warn_below); once it is full, every call is refused; journal.retain bounds the journal",
        places.journal().display(),
        rough(free),
        Size(places.warn_below)
    )
}

/// Tells in the log when the room gets low, each time that it has halved since, and when there is enough again. Runs until it is
/// dropped.
pub async fn watch(places: Places) {
    let mut room = Room::new(places.warn_below);
    let mut look = kept(|| tokio::time::interval(Duration::from_millis(LOOK_MS)));
    look.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    let journal: PathBuf = places.journal();
    loop {
        look.tick().await;
        let Some(free) = free_bytes(&journal) else {
            continue;
        };
        match room.look(free) {
            Some(News::Low) => tracing::warn!("{}", sentence(free, &places)),
            Some(News::Enough) => {
                tracing::info!("the disk of the journal has {} left again", rough(free));
            }
            None => {}
        }
    }
}

/// What is worth telling.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum News {
    Low,
    Enough,
}

/// What was told last.
#[derive(Debug)]
struct Room {
    warn_below: u64,
    told: Option<u64>,
}

impl Room {
    fn new(warn_below: u64) -> Self {
        Self {
            warn_below,
            told: None,
        }
    }

    /// What to tell of this much room. Where it goes up and down around the bound, that is told once.
    fn look(&mut self, free: u64) -> Option<News> {
        if free >= self.warn_below {
            let enough = free >= self.warn_below.saturating_add(self.warn_below / 8);
            return self.told.take_if(|_| enough).map(|_| News::Enough);
        }
        let is_news = self.told.is_none_or(|told| free < told / 2);
        is_news.then(|| {
            self.told = Some(free);
            News::Low
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn low_room_is_told_once_then_at_each_half_and_when_there_is_enough_again() {
        let mut room = Room::new(1_000);
        let told: Vec<_> = [
            5_000, 1_000, 999, 990, 1_001, 998, 500, 499, 250, 249, 100, 0, 0, 1_124, 1_125, 999,
        ]
        .into_iter()
        .map(|free| room.look(free))
        .collect();
        let (low, enough) = (Some(News::Low), Some(News::Enough));
        let none = None;
        let news = [
            none, none, low, none, none, none, none, none, low, none, low, low, none, none, enough,
            low,
        ];
        assert_eq!(told, news);
        assert_eq!(Room::new(0).look(0), None);
    }

    #[test]
    fn a_directory_that_is_not_there_yet_has_the_room_of_the_one_above() {
        let above = std::env::temp_dir();
        assert!(free_bytes(&above.join("durward-none/journal")).is_some());
    }
}
