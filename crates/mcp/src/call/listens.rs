//! A Modern client that listens for changes is told of those that a reload makes, as of those that its server
//! announces: after a reload of the rules any list may be another.

use std::sync::Arc;
use std::time::Duration;

use gate::Gate;
use serde_json::Value;
use wire::jsonrpc::member;
use wire::scan::Scan;

use crate::message::announced::KINDS;
use crate::message::splice::META_SUBSCRIPTION;

/// How often the rules are looked at, in milliseconds.
const LOOK_MS: u64 = 250;

/// What a subscription is to hear of.
pub(super) struct Listens {
    gate: Arc<Gate>,
    /// The notifications.
    methods: Vec<&'static str>,
    /// What the lists were last told to be judged by.
    version: String,
    /// What is still to be said, the last first.
    unsaid: Vec<&'static str>,
}

/// The notifications about lists that `subscriptions/listen` asks for.
pub(super) fn wanted(scan: &Scan<'_>) -> Vec<&'static str> {
    let asked = member(&scan.params, "notifications")
        .and_then(|raw| serde_json::from_str::<Value>(raw).ok())
        .unwrap_or_default();
    let wants = |kind: &str| asked.get(format!("{kind}ListChanged")) == Some(&Value::Bool(true));
    let kinds = KINDS.iter().filter(|(kind, ..)| wants(kind));
    kinds.map(|(_, method, _)| *method).collect()
}

impl Listens {
    /// To hear of these from now on.
    pub fn new(gate: &Arc<Gate>, methods: Vec<&'static str>) -> Self {
        Self {
            version: gate.world().version.clone(),
            gate: Arc::clone(gate),
            methods,
            unsaid: Vec::new(),
        }
    }

    /// The next notification, for the subscription of this id as its client spelled it. Cancel-safe.
    pub async fn next(&mut self, id: &str) -> Vec<u8> {
        loop {
            if let Some(method) = self.unsaid.pop() {
                return format!(
                    "{{\"jsonrpc\":\"2.0\",\"method\":\"{method}\",\"params\":{{\"_meta\":{{\"{META_SUBSCRIPTION}\":{id}}}}}}}"
                )
                .into_bytes();
            }
            tokio::time::sleep(Duration::from_millis(LOOK_MS)).await;
            let world = self.gate.world();
            if world.version != self.version {
                self.version.clone_from(&world.version);
                self.unsaid = self.methods.iter().rev().copied().collect();
            }
        }
    }
}
