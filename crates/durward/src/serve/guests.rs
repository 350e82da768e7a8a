//! Who may call: by key where there are keys, else the local user.

use std::sync::{Arc, Mutex, PoisonError, RwLock};

use gate::Gate;
use gate::identity::{KeyFault, KeyRing};
use gate::journal::{Auth, Record};
use http::HeaderMap;
use http::header::AUTHORIZATION;
use mcp::serve::Caller;
use net::http::server::single;

use crate::local;
use crate::places::Places;
use crate::run::Failure;

/// The keys, and what has been refused since it was last written down.
pub struct Guests {
    ring: RwLock<KeyRing>,
    required: bool,
    local: Caller,
    refused: Mutex<[u64; KeyFault::ALL.len()]>,
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
        Ok(Self {
            ring: RwLock::new(ring),
            required,
            local: Caller {
                subject_id: places.user.as_str().into(),
            },
            refused: Mutex::default(),
        })
    }

    /// Whether nobody is answered without a key.
    pub fn need_keys(&self) -> bool {
        self.required || self.ring().has_keys()
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
        if !self.required && !ring.has_keys() {
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
            subject_id: Arc::from(format!("key:{}", entry.name)),
        })
    }

    /// Reads the keys again where they have changed, and writes down what was refused.
    pub fn tick(&self, gate: &Gate) {
        if !self.ring().is_current() {
            let mut ring = self.ring.write().unwrap_or_else(PoisonError::into_inner);
            match ring.reload() {
                Ok(()) => tracing::info!("the keys were read again"),
                Err(error) => tracing::error!("the keys that were known stay: {error}"),
            }
        }
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
