//! What has changed of a host's network since it was looked at.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::{Map, Value, json};

use super::words;

/// What changes by itself, and is no change.
const VOLATILE: [&str; 6] = [
    "valid_life_time",
    "preferred_life_time",
    "expires",
    "stats",
    "stats64",
    "cache",
];
/// Most changes that are listed.
const CHANGES_MAX: usize = 100;

/// The commands of a scope.
pub(super) fn argvs(scope: &str) -> Vec<Vec<String>> {
    let interfaces = || words(&["ip", "-j", "addr", "show"]);
    let routes = |family: &str| words(&["ip", family, "-j", "route", "show", "table", "main"]);
    match scope {
        "interfaces" => vec![interfaces()],
        "routes" => vec![routes("-4"), routes("-6")],
        _ => vec![interfaces(), routes("-4"), routes("-6")],
    }
}

/// Holds what was read against the baseline. The first state of a scope becomes it, a later one only where
/// that is asked for.
pub(super) fn compared(
    scope: &'static str,
    saves: bool,
    read: Vec<Value>,
    baselines: &Mutex<HashMap<&'static str, Value>>,
) -> Value {
    let mut state = Map::from_iter([("timestamp".to_owned(), json!(now_ms()))]);
    let mut read = read.into_iter().map(settled);
    if scope != "routes" {
        state.insert("interfaces".into(), read.next().unwrap_or_default());
    }
    if scope != "interfaces" {
        let routes = json!({"ipv4": read.next(), "ipv6": read.next()});
        state.insert("routes".into(), routes);
    }
    let state = Value::Object(state);
    let mut baselines = baselines.lock().unwrap_or_else(PoisonError::into_inner);
    let Some(before) = baselines.get(scope).cloned() else {
        baselines.insert(scope, state.clone());
        return json!({"baseline_saved": true, "changes_detected": false, "current_state": state});
    };
    let mut changes = Vec::new();
    differ("", &before, &state, &mut changes);
    changes.retain(|change| change != "timestamp");
    if saves {
        baselines.insert(scope, state);
    }
    let summary = match changes.len() {
        0 => "nothing has changed".to_owned(),
        count => format!(
            "{count} changes: {}",
            changes
                .iter()
                .take(CHANGES_MAX)
                .map(String::as_str)
                .collect::<Vec<_>>()
                .join(", ")
        ),
    };
    json!({
        "baseline_saved": saves,
        "changes_detected": !changes.is_empty(),
        "comparison": {"changed": u8::from(!changes.is_empty()), "summary": summary},
        "baseline_timestamp": before.get("timestamp"),
    })
}

/// A value without what changes by itself.
fn settled(value: Value) -> Value {
    match value {
        Value::Array(items) => Value::Array(items.into_iter().map(settled).collect()),
        Value::Object(members) => {
            let kept = members
                .into_iter()
                .filter(|(name, _)| !VOLATILE.contains(&name.as_str()));
            Value::Object(kept.map(|(name, value)| (name, settled(value))).collect())
        }
        other => other,
    }
}

/// The places where two values differ.
fn differ(at: &str, before: &Value, now: &Value, changes: &mut Vec<String>) {
    let below = |name: &str| {
        if at.is_empty() {
            name.to_owned()
        } else {
            format!("{at}.{name}")
        }
    };
    match (before, now) {
        (Value::Object(before), Value::Object(now)) => {
            for name in before
                .keys()
                .chain(now.keys().filter(|name| !before.contains_key(*name)))
            {
                let none = Value::Null;
                let (a, b) = (
                    before.get(name).unwrap_or(&none),
                    now.get(name).unwrap_or(&none),
                );
                differ(&below(name), a, b, changes);
            }
        }
        (Value::Array(before), Value::Array(now)) if before.len() == now.len() => {
            for (number, (a, b)) in before.iter().zip(now).enumerate() {
                let name = a
                    .get("ifname")
                    .and_then(Value::as_str)
                    .map_or_else(|| number.to_string(), str::to_owned);
                differ(&below(&name), a, b, changes);
            }
        }
        (before, now) if before == now => {}
        _ => changes.push(at.to_owned()),
    }
}

fn now_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| {
        u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What `ip` says of one interface.
    fn link(state: &str, lifetime: u64) -> Value {
        json!([{"ifname": "eth0", "operstate": state, "addr_info": [{"local": "10.0.0.5", "valid_life_time": lifetime}]}])
    }

    #[test]
    fn a_baseline_is_kept_until_another_is_asked_for_and_lifetimes_are_no_change() {
        let baselines = Mutex::default();
        let look = |saves, state, lifetime| {
            compared("interfaces", saves, vec![link(state, lifetime)], &baselines)
        };
        let first = look(false, "UP", 100);
        assert_eq!(first["baseline_saved"], true);
        let idle = look(false, "UP", 99);
        assert_eq!(idle["comparison"]["changed"], 0, "{idle}");
        for _ in 0..2 {
            // Looking at a change does not make it the new baseline.
            let changed = look(false, "DOWN", 98);
            assert_eq!(
                changed["comparison"],
                json!({"changed": 1, "summary": "1 changes: interfaces.eth0.operstate"})
            );
            let kept = &first["current_state"]["timestamp"];
            assert_eq!(changed["baseline_timestamp"], *kept);
        }
        assert_eq!(look(true, "DOWN", 97)["changes_detected"], true);
        assert_eq!(look(false, "DOWN", 96)["changes_detected"], false);
        // Each scope has its own.
        let other = compared("routes", false, vec![json!([]), json!([])], &baselines);
        assert_eq!(other["baseline_saved"], true);
    }
}
