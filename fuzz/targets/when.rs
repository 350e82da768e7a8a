//! Any expression over any facts: no panic, one answer, never both it and its opposite; and a fact is equal to
//! itself written as a literal.
#![no_main]

use gate::Caller;
use gate::facts::{Fact, Facts};
use gate::policy::{Effect, Policy};
use libfuzzer_sys::fuzz_target;

/// Policies with one rule that this expression decides.
fn policy(effect: &str, default: &str, when: &str) -> Option<Policy> {
    let rule = serde_json::json!({ "id": "r", "effect": effect, "conditions": { "when": when } });
    let policy = serde_json::json!({ "version": "1", "default_action": default, "rules": [rule] });
    Policy::load(&policy.to_string(), None, &[]).ok()
}

fn effect(policy: &Policy, facts: &Facts) -> Effect {
    policy.judge(facts).verdict().effect
}

fuzz_target!(|input: (u8, &str, &str)| {
    let (which, expression, text) = input;
    let caller = Caller::local("u");
    let mut facts = Facts::of(&caller);
    facts.tool_name = match which % 4 {
        0 => Fact::Unknown,
        1 => Fact::Absent,
        _ => Fact::Known(text.to_owned()),
    };
    text.clone_into(&mut facts.backend_id);

    if which % 4 > 1 {
        let literal = serde_json::Value::from(text).to_string();
        let same = policy("allow", "deny", &format!("tool_name == {literal}"));
        if let Some(same) = same {
            assert_eq!(effect(&same, &facts), Effect::Allow, "{literal}");
        }
    }
    let Some(allows) = policy("allow", "deny", expression) else {
        return;
    };
    let allowed = effect(&allows, &facts) == Effect::Allow;
    assert_eq!(effect(&allows, &facts) == Effect::Allow, allowed);
    let opposite = format!("!({expression})");
    if let Some(opposite) = policy("allow", "deny", &opposite) {
        let other = effect(&opposite, &facts) == Effect::Allow;
        assert!(!(allowed && other), "{expression:?} and its opposite hold");
    }
    // What lets a call pass for certain is certain for a rule that refuses, too.
    if let Some(denies) = policy("deny", "allow", expression) {
        assert!(!allowed || effect(&denies, &facts) == Effect::Deny, "{expression:?}");
    }
});
