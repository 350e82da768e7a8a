//! Which results and snapshots a caller has, by the names that the caller knows.

use std::path::Path;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use state::kv::{Durability, Kv, KvError, Table, View as _};

/// By caller and results id: [`Kept`].
const RESULTS: Table = Table("results");
/// By caller, simulation and snapshot id: [`Snapshot`].
const SNAPSHOTS: Table = Table("snapshots");
/// Most results or snapshots of one caller; the oldest of the same simulation makes room for a snapshot.
const ENTRIES_MAX: usize = 1_000;

/// A result, and where its numbers are.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Kept {
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
    /// What was told of the model.
    pub metadata: Value,
    /// What was computed of a population; null for a single run.
    #[serde(default)]
    pub population: Value,
}

/// What a simulation was changed to at one time.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Snapshot {
    /// Its name: the time.
    pub snapshot_id: String,
    /// Whose.
    pub simulation_id: String,
    /// When, in milliseconds since 1970.
    pub created_ms: i64,
    /// SHA-256 of `state` as compact JSON with sorted keys, in hex.
    pub hash: String,
    /// File and values.
    pub state: Value,
}

/// The database of names.
#[derive(Debug)]
pub struct Index {
    kv: Kv,
}

fn key(caller: &str, parts: &[&str]) -> Vec<u8> {
    let mut key = blake3::hash(caller.as_bytes()).as_bytes().to_vec();
    for part in parts {
        key.extend_from_slice(blake3::hash(part.as_bytes()).as_bytes());
    }
    key
}

impl Index {
    /// Opens the names of this directory.
    ///
    /// # Errors
    /// [`KvError`].
    pub fn open(directory: &Path) -> Result<Self, KvError> {
        let kv = Kv::open(&directory.join("index.redb"))?;
        Ok(Self { kv })
    }

    /// Keeps a result under its name, in place of an earlier one.
    ///
    /// # Errors
    /// [`KvError`].
    pub fn put(&self, caller: &str, kept: &Kept) -> Result<(), KvError> {
        self.store(RESULTS, &key(caller, &[&kept.results_id]), kept)
    }

    /// A caller's result.
    ///
    /// # Errors
    /// [`KvError`].
    pub fn result(&self, caller: &str, results_id: &str) -> Result<Option<Kept>, KvError> {
        self.kv.read(|view| {
            let bytes = view.get(RESULTS, &key(caller, &[results_id]))?;
            Ok(bytes.and_then(|bytes| serde_json::from_slice(&bytes).ok()))
        })
    }

    /// Keeps a snapshot.
    ///
    /// # Errors
    /// [`KvError`].
    pub fn keep(&self, caller: &str, snapshot: &Snapshot) -> Result<(), KvError> {
        let mut at = key(caller, &[&snapshot.simulation_id]);
        let held = self
            .kv
            .read(|view| view.scan_prefix(SNAPSHOTS, &at, ENTRIES_MAX))?;
        at.extend_from_slice(snapshot.snapshot_id.as_bytes());
        let bytes = serde_json::to_vec(snapshot).unwrap_or_default();
        self.kv.write(Durability::Synced, |t| {
            if let (true, Some((oldest, _))) = (held.len() >= ENTRIES_MAX, held.first()) {
                t.remove(SNAPSHOTS, oldest)?;
            }
            t.put(SNAPSHOTS, &at, &bytes)
        })
    }

    /// A caller's snapshots of a simulation, newest first.
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

    fn store(&self, table: Table, key: &[u8], value: &impl Serialize) -> Result<(), KvError> {
        let bytes = serde_json::to_vec(value).unwrap_or_default();
        self.kv
            .write(Durability::Synced, |t| t.put(table, key, &bytes))
    }
}

fn read<T: DeserializeOwned>(bytes: &[u8]) -> Option<T> {
    serde_json::from_slice(bytes).ok()
}
