//! The index finds every rule that the plain walk finds, whatever rules and paths are.

use gate::facts::{Fact, Facts, ResourceType};
use gate::paths::canonical::Meaning;
use gate::paths::{PathArgument, Reach, Role};
use gate::policy::{Policy, Tri};
use proptest::prelude::*;
use serde_json::{Value, json};

const PIECES: [&str; 24] = [
    "/", "/a", "/b", "/ab", "a", "*", "**", "?", "/**", "/*", ".pem", ".KEY", "/a/b", "x:", "/(a)",
    "/{a,b}", "/[a]", "!", "/..", "/.", "//", "/é", "\\", " ",
];

fn text(pieces: std::ops::Range<usize>) -> impl Strategy<Value = String> {
    prop::collection::vec(prop::sample::select(&PIECES[..]), pieces).prop_map(|p| p.concat())
}

fn place() -> impl Strategy<Value = String> {
    let pieces = prop::sample::select(
        &[
            "/a", "/b", "/ab", "/a.pem", "/x.KEY", "a", "x:", ".pem", "/(a)", "/{a,b}", "/[a]",
            "!", "/é", ".É", "\\", " ", "/", "//",
        ][..],
    );
    prop::collection::vec(pieces, 1..5).prop_map(|p| p.concat())
}

fn conditions() -> impl Strategy<Value = Value> {
    let list = |of: BoxedStrategy<String>| prop::option::of(prop::collection::vec(of, 0..3));
    let names = [
        "read", "READ", "re*", "write", "*", "r?ad", "[r]ead", "[!w]*", "read(", "reaſ", "Straße",
        "STRASSE",
    ];
    let names = names.map(str::to_owned);
    let endings = [".pem", ".key", ".txt", ".KEY", ".é", ".É", ".a.pem", ". "].map(str::to_owned);
    (
        list(prop::sample::select(names.to_vec()).boxed()),
        list(text(1..4).boxed()),
        list(text(1..4).boxed()),
        list(text(1..4).boxed()),
        list(prop::sample::select(endings.to_vec()).boxed()),
        prop::option::of(Just("paths.exists(p, p.contains('a'))")),
    )
        .prop_map(|(tool, path, source, dest, extension, when)| {
            let mut all = json!({ "subject_id": "u" });
            for (name, list) in [
                ("tool_name", tool),
                ("path_pattern", path),
                ("source_path", source),
                ("dest_path", dest),
                ("extension", extension),
            ] {
                if let Some(list) = list {
                    all[name] = json!(list);
                }
            }
            if let Some(when) = when {
                all["when"] = json!(when);
            }
            all
        })
}

fn arguments() -> impl Strategy<Value = Fact<Vec<PathArgument>>> {
    let argument = (
        prop::sample::select(&Role::ALL[..]),
        prop::collection::vec(place(), 0..3),
        prop::bool::weighted(0.1),
        prop::bool::weighted(0.2),
    )
        .prop_map(|(role, places, uncertain, content)| PathArgument {
            text: places.first().cloned().unwrap_or_default(),
            role,
            content,
            meaning: Meaning {
                places,
                uncertain,
                ..Meaning::default()
            },
        });
    prop_oneof![
        9 => prop::collection::vec(argument, 0..4).prop_map(Fact::Known),
        1 => Just(Fact::Unknown),
        1 => Just(Fact::Absent),
    ]
}

/// What else the strings of a call may lead to.
fn reach() -> impl Strategy<Value = Reach> {
    let few = || prop::collection::vec(place(), 0..2);
    let globs = prop::collection::vec(text(1..4), 0..2);
    let flag = || prop::bool::weighted(0.1);
    let reach = (few(), few(), few(), globs, flag(), flag()).prop_map(
        |(places, words, relative, globs, below, unread)| Reach {
            places,
            words,
            relative,
            globs,
            below,
            unread,
            ..Reach::default()
        },
    );
    prop_oneof![Just(Reach::default()), reach]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn the_index_and_the_plain_walk_say_the_same(
        rules in prop::collection::vec(
            (prop::sample::select(&["allow", "deny", "hitl"][..]), conditions()), 1..12),
        calls in prop::collection::vec(
            (
                prop::sample::select(
                    &["read", "Read", "write", "other", "read(", "REAS", "straße", "delete_file"][..],
                ),
                arguments(),
                reach(),
            ),
            1..6,
        ),
    ) {
        // Patterns that the loader refuses are left out one by one.
        let load = |rules: &[Value]| Policy::load(&json!({ "rules": rules }).to_string(), None, &[]);
        let mut kept = Vec::new();
        for (number, (effect, conditions)) in rules.iter().enumerate() {
            let rule = json!({"id": number.to_string(), "effect": effect, "conditions": conditions});
            if load(std::slice::from_ref(&rule)).is_ok() {
                kept.push(rule);
            }
        }
        let policy = load(&kept).unwrap();
        for (tool, paths, reach) in calls {
            let facts = Facts {
                method: "tools/call".into(),
                tool_name: Fact::Known(tool.into()),
                backend_id: "files".into(),
                resource_type: Some(ResourceType::Tool),
                subject_id: "u".into(),
                paths,
                reach,
                ..Facts::default()
            };
            let judgement = policy.judge(&facts);
            let readings = policy.readings(&facts);
            let plain = |outcome: Tri| -> Vec<&str> {
                let of_outcome = readings.iter().filter(move |r| r.outcome == outcome);
                of_outcome.map(|r| r.rule.id.as_str()).collect()
            };
            let matched: Vec<&str> = judgement.matched_rules().map(|r| r.id.as_str()).collect();
            prop_assert_eq!(matched, plain(Tri::Yes), "{:?}", facts);
            let unsure: Vec<&str> = judgement.unsure_rules().map(|r| r.id.as_str()).collect();
            prop_assert_eq!(unsure, plain(Tri::Unknown), "{:?}", facts);
        }
    }
}
