//! Who may call: by key where there are keys, else the local user.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use gate::Gate;
use gate::identity::{Entry, KeyFault, KeyRing};
use gate::journal::{Auth, Record};
use http::HeaderMap;
use http::header::AUTHORIZATION;
use mcp::serve::Caller;
use net::http::server::single;

use crate::failure::Failure;
use crate::local;
use crate::places::Places;

/// The keys, and what has been refused since it was last written down.
pub struct Guests {
    ring: RwLock<KeyRing>,
    /// Nobody is answered without a key. Never taken back: whoever removes the last key wants a caller
    /// out, not everybody in.
    required: AtomicBool,
    local: Caller,
    refused: Mutex<[u64; KeyFault::ALL.len()]>,
    /// The keys that were good when they were last looked at, by name.
    good: Mutex<BTreeMap<String, Entry>>,
}

impl Guests {
    /// Reads the keys.
    pub fn open(places: &Places, required: bool) -> Result<Self, Failure> {
        let mut broken = None;
        let mut random = |bytes: &mut [u8]| {
            if let Err(error) = local::random(bytes) {
                broken = Some(error);
            }
        };
        let ring = KeyRing::open(&places.keys(), &mut random)
            .map_err(|error| Failure::configuration(error.to_string()))?;
        if let Some(error) = broken {
            return Err(Failure::other(format!("no randomness: {error}")));
        }
        let good = good(&ring);
        Ok(Self {
            required: AtomicBool::new(required || ring.has_keys()),
            ring: RwLock::new(ring),
            good: Mutex::new(good),
            local: Caller {
                subject_id: places.user.as_str().into(),
            },
            refused: Mutex::default(),
        })
    }

    /// Whether nobody is answered without a key.
    pub fn need_keys(&self) -> bool {
        self.required.load(Ordering::Acquire)
    }

    fn ring(&self) -> std::sync::RwLockReadGuard<'_, KeyRing> {
        self.ring.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// Who sends these headers, to the server of this name if it is for one.
    pub fn caller(&self, headers: &HeaderMap, server: Option<&str>) -> Result<Caller, KeyFault> {
        let found = self.find(headers, server);
        if let Err(fault) = &found {
            let mut refused = self.refused.lock().unwrap_or_else(PoisonError::into_inner);
            for (known, count) in KeyFault::ALL.iter().zip(refused.iter_mut()) {
                *count += u64::from(known == fault);
            }
        }
        found
    }

    fn find(&self, headers: &HeaderMap, server: Option<&str>) -> Result<Caller, KeyFault> {
        let ring = self.ring();
        let given = single(headers, &AUTHORIZATION).map_err(|_| KeyFault::Unknown)?;
        if !self.need_keys() {
            return Ok(self.local.clone());
        }
        let given = given.ok_or(KeyFault::Missing)?;
        let (scheme, text) = given.split_once(' ').ok_or(KeyFault::Unknown)?;
        if !scheme.eq_ignore_ascii_case("bearer") {
            return Err(KeyFault::Unknown);
        }
        let entry = ring.check(text.trim(), local::now_ms())?;
        if let Some(server) = server {
            entry.good_for(server)?;
        }
        Ok(Caller {
            subject_id: Arc::from(subject_of(entry)),
        })
    }

    /// Reads the keys again where they have changed, and writes down what was refused. Gives the callers
    /// whose key was good before and is good no longer.
    pub fn tick(&self, gate: &Gate) -> Vec<String> {
        let mut gone = Vec::new();
        if !self.ring().is_current() {
            let mut ring = self.ring.write().unwrap_or_else(PoisonError::into_inner);
            match ring.reload() {
                Ok(()) => {
                    let first = ring.has_keys() && !self.required.swap(true, Ordering::AcqRel);
                    if first {
                        // Whoever came in without a key comes in no more.
                        gone.push(self.local.subject_id.to_string());
                    }
                    tracing::info!("the keys were read again");
                }
                Err(error) => tracing::error!("the keys that were known stay: {error}"),
            }
        }
        self.write_refused(gate);
        gone.extend(self.gone());
        gone
    }

    /// The callers whose key is good no longer. A key that another has the place of is no longer good,
    /// unless the two overlap.
    fn gone(&self) -> Vec<String> {
        let now = good(&self.ring());
        let mut before = self.good.lock().unwrap_or_else(PoisonError::into_inner);
        let goes_on = |entry: &Entry| now.get(&entry.name).is_some_and(|n| entry.goes_on_as(n));
        let gone = before.values().filter(|entry| !goes_on(entry));
        let gone = gone.map(subject_of).collect();
        *before = now;
        gone
    }

    fn write_refused(&self, gate: &Gate) {
        let refused =
            std::mem::take(&mut *self.refused.lock().unwrap_or_else(PoisonError::into_inner));
        for (fault, count) in KeyFault::ALL.iter().zip(refused) {
            if count == 0 {
                continue;
            }
            let record = Auth {
                event: "key_refused",
                status: Some("Failure"),
                reason: Some(fault.label()),
                coalesced: Some(count),
                ..Auth::default()
            };
            // A journal that fails here fails the gate as well.
            drop(gate.record(&Record::Auth(&record)));
        }
    }
}

/// What a key's caller is called in rules and records.
fn subject_of(entry: &Entry) -> String {
    format!("key:{}", entry.name)
}

/// The keys that are good now, by name.
fn good(ring: &KeyRing) -> BTreeMap<String, Entry> {
    let now_ms = local::now_ms();
    let good = ring.entries().iter().filter(|e| e.good_at(now_ms).is_ok());
    good.map(|entry| (entry.name.clone(), entry.clone()))
        .collect()
}
