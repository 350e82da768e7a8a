//! Which results and snapshots a caller has, by the names that the caller knows.

use std::path::Path;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use state::kv::{Durability, Entry, Kv, KvError, Table, View as _};

use super::place::{ListCursor, newest_first};

/// By caller and results id: [`StoredResult`].
const RESULTS: Table = Table("results");
/// By caller, time and results id, the newest first: the results id.
const RECENT: Table = Table("recent");
/// By caller, simulation and snapshot id: [`Snapshot`].
const SNAPSHOTS: Table = Table("snapshots");
/// Most snapshots of one caller: the oldest of the same simulation makes room, or the oldest of all.
const ENTRIES_MAX: usize = 1_000;
/// Most names that are forgotten, because their time is over, when one is kept.
const FORGOTTEN_MAX: usize = 16;

/// A result, and the handle of its numbers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StoredResult {
    /// Its name.
    pub results_id: String,
    /// Handles of the outputs with its numbers, in order.
    pub handles: Vec<String>,
    /// The job that made it.
    pub job_id: String,
    /// The simulation's id when it ran.
    pub simulation_id: String,
    /// When it was made, in milliseconds since 1970.
    pub generated_ms: i64,
    /// Metadata of the model.
    pub metadata: Value,
    /// Figures of a population; null for a single run.
    #[serde(default)]
    pub population: Value,
}

/// State of a simulation at one time.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Snapshot {
    /// Its name: the time.
    pub snapshot_id: String,
    /// Id of the simulation.
    pub simulation_id: String,
    /// When, in milliseconds since 1970.
    pub created_ms: i64,
    /// SHA-256 of `state` as compact JSON with sorted keys, in hex.
    pub hash: String,
    /// File and values.
    pub state: Value,
}

/// Results of a caller, the newest first.
#[derive(Debug, Clone, PartialEq)]
pub struct RecentResults {
    /// Some of them.
    pub results: Vec<StoredResult>,
    /// Cursor of the next ones, if there are more.
    pub next: Option<ListCursor>,
}

/// The database of names.
#[derive(Debug)]
pub struct ResultIndex {
    pub(super) kv: Kv,
    kept_ms: i64,
}

pub(super) fn key(caller: &str, parts: &[&str]) -> Vec<u8> {
    let mut key = blake3::hash(caller.as_bytes()).as_bytes().to_vec();
    for part in parts {
        key.extend_from_slice(blake3::hash(part.as_bytes()).as_bytes());
    }
    key
}

impl ResultIndex {
    /// Opens the names of this directory, which are kept for so long.
    ///
    /// # Errors
    /// [`KvError`].
    pub fn open(directory: &Path, kept_ms: u64) -> Result<Self, KvError> {
        let kv = Kv::open(&directory.join("index.redb"))?;
        let kept_ms = i64::try_from(kept_ms).unwrap_or(i64::MAX);
        Ok(Self { kv, kept_ms })
    }

    /// Keeps a result under its name, in place of an earlier one, and removes some expired ones.
    ///
    /// # Errors
    /// [`KvError`].
    pub fn store(&self, caller: &str, kept: &StoredResult) -> Result<(), KvError> {
        let at = key(caller, &[&kept.results_id]);
        let before = self.result(caller, &kept.results_id)?;
        let place = ListCursor::of(kept.generated_ms, &kept.results_id);
        let over = self.over(caller, kept.generated_ms)?;
        let bytes = serde_json::to_vec(kept).unwrap_or_default();
        self.kv.write(Durability::Synced, |t| {
            for (recent, name) in &over {
                t.remove(RECENT, recent)?;
                t.remove(RESULTS, &key(caller, &[&String::from_utf8_lossy(name)]))?;
            }
            if let Some(before) = before {
                let earlier = ListCursor::of(before.generated_ms, &before.results_id);
                t.remove(RECENT, &earlier.key(key(caller, &[])))?;
            }
            t.put(
                RECENT,
                &place.key(key(caller, &[])),
                kept.results_id.as_bytes(),
            )?;
            t.put(RESULTS, &at, &bytes)
        })
    }

    /// Returns the key behind which the results of a caller are too old, and the one behind the last.
    fn ends(&self, caller: &str, now_ms: i64) -> (Vec<u8>, Vec<u8>) {
        let oldest = now_ms.saturating_sub(self.kept_ms).max(0);
        let mut over = key(caller, &[]);
        over.extend_from_slice(&newest_first(oldest));
        let mut end = key(caller, &[]);
        end.extend_from_slice(&[u8::MAX; 41]);
        (over, end)
    }

    /// Returns some expired entries of a caller.
    fn over(&self, caller: &str, now_ms: i64) -> Result<Vec<Entry>, KvError> {
        let (over, end) = self.ends(caller, now_ms);
        // The oldest moment itself is not over.
        let over = [over, vec![u8::MAX; 33]].concat();
        self.kv
            .read(|view| view.scan(RECENT, &over, Some(&end), FORGOTTEN_MAX))
    }

    /// At most so many of a caller's results, the newest first, behind this place.
    ///
    /// # Errors
    /// [`KvError`].
    pub fn recent(
        &self,
        caller: &str,
        after: Option<ListCursor>,
        now_ms: i64,
        most: usize,
    ) -> Result<RecentResults, KvError> {
        let from = match after {
            // Behind the place itself.
            Some(place) => [place.key(key(caller, &[])), vec![0]].concat(),
            None => key(caller, &[]),
        };
        let (over, _) = self.ends(caller, now_ms);
        let end = [over, vec![u8::MAX; 33]].concat();
        let found = self
            .kv
            .read(|view| view.scan(RECENT, &from, Some(&end), most + 1))?;
        let mut results = Vec::new();
        for (_, name) in found.iter().take(most) {
            let name = String::from_utf8_lossy(name);
            results.extend(self.result(caller, &name)?);
        }
        let last = results.last().filter(|_| found.len() > most);
        let next =
            last.map(|kept: &StoredResult| ListCursor::of(kept.generated_ms, &kept.results_id));
        Ok(RecentResults { results, next })
    }

    /// Returns a caller's result.
    ///
    /// # Errors
    /// [`KvError`].
    pub fn result(&self, caller: &str, results_id: &str) -> Result<Option<StoredResult>, KvError> {
        self.part_of_result(caller, results_id, |json| serde_json::from_slice(json).ok())
    }

    /// What `read` finds in a result, a [`StoredResult`] as JSON; of large populations a part is found sooner than all
    /// is read.
    ///
    /// # Errors
    /// [`KvError`].
    pub fn part_of_result<T>(
        &self,
        caller: &str,
        results_id: &str,
        read: impl FnOnce(&[u8]) -> Option<T>,
    ) -> Result<Option<T>, KvError> {
        let bytes = self
            .kv
            .read(|view| view.get(RESULTS, &key(caller, &[results_id])))?;
        Ok(bytes.and_then(|bytes| read(&bytes)))
    }

    /// Keeps a snapshot.
    ///
    /// # Errors
    /// [`KvError`].
    pub fn keep(&self, caller: &str, snapshot: &Snapshot) -> Result<(), KvError> {
        self.keep_within(ENTRIES_MAX, caller, snapshot)
    }

    fn keep_within(&self, most: usize, caller: &str, snapshot: &Snapshot) -> Result<(), KvError> {
        let own = key(caller, &[&snapshot.simulation_id]);
        let at = [&own[..], snapshot.snapshot_id.as_bytes()].concat();
        let bytes = serde_json::to_vec(snapshot).unwrap_or_default();
        self.kv.write(Durability::Synced, |t| {
            let held = t.scan_prefix(SNAPSHOTS, &key(caller, &[]), most)?;
            if held.len() >= most {
                let age = |(key, bytes): &&Entry| {
                    let kept = read::<Snapshot>(bytes).map_or(i64::MIN, |kept| kept.created_ms);
                    (!key.starts_with(&own), kept)
                };
                if let Some((oldest, _)) = held.iter().min_by_key(age) {
                    t.remove(SNAPSHOTS, oldest)?;
                }
            }
            t.put(SNAPSHOTS, &at, &bytes)
        })
    }

    /// Returns a caller's snapshots of a simulation, newest first.
    ///
    /// # Errors
    /// [`KvError`].
    pub fn snapshots(&self, caller: &str, simulation_id: &str) -> Result<Vec<Snapshot>, KvError> {
        let at = key(caller, &[simulation_id]);
        let held = self
            .kv
            .read(|view| view.scan_prefix(SNAPSHOTS, &at, ENTRIES_MAX))?;
        Ok(held
            .iter()
            .rev()
            .filter_map(|(_, bytes)| read(bytes))
            .collect())
    }
}

pub(super) fn read<T: DeserializeOwned>(bytes: &[u8]) -> Option<T> {
    serde_json::from_slice(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::PathBuf;

    struct TestFolder(PathBuf);

    impl Drop for TestFolder {
        fn drop(&mut self) {
            drop(std::fs::remove_dir_all(&self.0));
        }
    }

    fn index(name: &str) -> (TestFolder, ResultIndex) {
        let folder = std::env::temp_dir().join(format!("index-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let index = ResultIndex::open(&folder, 1_000).unwrap();
        (TestFolder(folder), index)
    }

    fn make_result(results_id: &str, generated_ms: i64) -> StoredResult {
        StoredResult {
            results_id: results_id.to_owned(),
            handles: Vec::new(),
            job_id: "job".to_owned(),
            simulation_id: "sim".to_owned(),
            generated_ms,
            metadata: Value::Null,
            population: Value::Null,
        }
    }

    fn names(recent: &RecentResults) -> Vec<&str> {
        recent
            .results
            .iter()
            .map(|kept| kept.results_id.as_str())
            .collect()
    }

    #[test]
    fn results_are_listed_newest_first_and_page_by_page() {
        let (_folder, index) = index("pages");
        for (name, at) in [("a", 10), ("b", 30), ("c", 20), ("d", 20), ("a", 40)] {
            index.store("ada", &make_result(name, at)).unwrap();
        }
        index.store("bob", &make_result("other", 35)).unwrap();
        let mut seen = Vec::new();
        let mut after = None;
        loop {
            let page = index.recent("ada", after, 50, 1).unwrap();
            seen.extend(names(&page).iter().map(|name| (*name).to_owned()));
            let Some(next) = page.next else { break };
            after = Some(ListCursor::read(&next.to_text()).unwrap());
        }
        // Two of one moment are in any order, each once; the second run named a replaced the first.
        seen[2..].sort();
        assert_eq!(seen, ["a", "b", "c", "d"]);
        assert_eq!(names(&index.recent("bob", None, 50, 9).unwrap()), ["other"]);
        let from_ada = Some(ListCursor::of(40, "a"));
        assert_eq!(
            names(&index.recent("bob", from_ada, 50, 9).unwrap()),
            ["other"]
        );
        assert_eq!(names(&index.recent("eve", None, 50, 9).unwrap()), [""; 0]);
    }

    #[test]
    fn snapshots_of_one_caller_are_bounded_whatever_their_simulations_are_called() {
        let (_folder, index) = index("snapshots");
        let keep = |caller: &str, simulation: &str, at: i64| {
            let snapshot = Snapshot {
                snapshot_id: format!("{at:06}"),
                simulation_id: simulation.to_owned(),
                created_ms: at,
                hash: String::new(),
                state: Value::Null,
            };
            index.keep_within(6, caller, &snapshot).unwrap();
        };
        let held = |caller: &str, simulation: &str| {
            let kept = index.snapshots(caller, simulation).unwrap();
            kept.iter().map(|one| one.created_ms).collect::<Vec<_>>()
        };
        keep("bob", "a", 0);
        for at in 1..=6 {
            keep("ada", &format!("sim-{}", at % 3), at);
        }
        // One of the same simulation makes room, if there is one, else the oldest of all.
        keep("ada", "sim-2", 7);
        assert_eq!(held("ada", "sim-2"), [7, 5]);
        keep("ada", "new", 8);
        assert_eq!(held("ada", "new"), [8]);
        assert_eq!((held("ada", "sim-1"), held("bob", "a")), (vec![4], vec![0]));
        assert_eq!(held("ada", "sim-0"), [6, 3]);
    }

    #[test]
    fn what_is_too_old_is_not_listed_and_then_forgotten() {
        let (_folder, index) = index("old");
        index.store("ada", &make_result("old", 100)).unwrap();
        index.store("ada", &make_result("young", 900)).unwrap();
        let at = |now| index.recent("ada", None, now, 9).unwrap();
        assert_eq!(names(&at(1_100)), ["young", "old"], "its last moment");
        assert_eq!(names(&at(1_101)), ["young"]);
        assert!(index.result("ada", "old").unwrap().is_some());
        index.store("ada", &make_result("new", 1_500)).unwrap();
        assert_eq!(index.result("ada", "old").unwrap(), None);
        assert!(index.result("ada", "young").unwrap().is_some());
    }
}
