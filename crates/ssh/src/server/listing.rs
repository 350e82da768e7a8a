//! What there is: sessions and connections.

use std::sync::atomic::Ordering;

use serde_json::{Value, json};
use toolkit::server::{Answer, Args, SessionRef};

use super::Ssh;

impl Ssh {
    pub(super) fn listed(&self, by: &SessionRef) -> Answer {
        let sessions: Vec<Value> = self
            .sessions
            .of(by, self.limits())
            .iter()
            .map(|session| {
                json!({
                    "session_id": &*session.id, "host": session.host.name, "user": session.host.credential.user,
                    "created_at": session.created_ms, "in_use": u8::from(session.is_in_use()),
                })
            })
            .collect();
        Answer::data(json!({"count": sessions.len(), "sessions": sessions}))
    }

    pub(super) fn stats(&self, args: Args<'_>) -> Answer {
        let count = |which: fn(&crate::pool::Counts) -> &std::sync::atomic::AtomicU64| {
            which(&self.pool.counts).load(Ordering::Relaxed)
        };
        let global = json!({
            "hits": count(|c| &c.hits), "misses": count(|c| &c.misses), "creates": count(|c| &c.creates),
            "expires": count(|c| &c.expires), "health_fails": count(|c| &c.health_fails),
        });
        let lanes = self.pool.states();
        if let Some(host) = args.get("host").and_then(Value::as_str) {
            let pool = lanes.iter().find(|lane| lane.host == host);
            let pool =
                pool.map(|lane| json!({"key": lane.key, "total": lane.total, "idle": lane.idle}));
            return Answer::data(match pool {
                Some(pool) => json!({"stats": {"global": global, "pool": pool}}),
                None => json!({"stats": {"global": global}}),
            });
        }
        let pools: serde_json::Map<String, Value> = lanes
            .into_iter()
            .map(|lane| {
                let state = json!({"total": lane.total, "idle": lane.idle, "channels_max": lane.channels_max, "waiting": lane.waiting});
                (lane.key, state)
            })
            .collect();
        Answer::data(json!({"stats": {"global": global, "pools": pools}}))
    }
}
