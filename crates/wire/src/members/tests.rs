use super::*;
use crate::WireErrorKind;

const FILTER: Shape = Shape::flat(&["toolsListChanged", "resourceSubscriptions"]);
const PARAMS: Shape = Shape {
    known: &["notifications", "_meta"],
    below: &[
        ("notifications", &FILTER),
        ("_meta", &Shape::flat(&["progressToken"])),
    ],
};

#[test]
fn members_like_known_ones_are_refused_by_name() {
    let cases = [
        (r#"{"notifications":{"resourceSubscriptions":["a"]}}"#, None),
        (
            r#"{"notifications":{"resource\u0053ubscriptions":["a"]}}"#,
            None,
        ),
        (r#"{"vendor":1,"_meta":{"vendor/x":2}}"#, None),
        (
            r#"{"notifications":{"resource_subscriptions":["a"]}}"#,
            Some("resource_subscriptions"),
        ),
        (
            r#"{"notifications":[1,{"ResourceSubscriptions":["a"]}]}"#,
            Some("ResourceSubscriptions"),
        ),
        (r#"{"Notifications":{}}"#, Some("Notifications")),
        (r#"{"meta":{}}"#, Some("meta")),
        (
            r#"{"_meta":{"progress\u0054oken":1,"PROGRESSTOKEN":2}}"#,
            Some("PROGRESSTOKEN"),
        ),
        ("7", None),
    ];
    for (value, expect) in cases {
        let found = PARAMS.check(value).map_err(|error| {
            assert_eq!(error.kind, WireErrorKind::AmbiguousMember);
            error.names.unwrap().name
        });
        assert_eq!(found.err().as_deref(), expect, "{value}");
    }
    let twice = PARAMS.check(r#"{"_meta":{"a":1,"a":2}}"#).unwrap_err();
    assert_eq!(twice.kind, WireErrorKind::DuplicateKey);
}

#[test]
fn a_member_is_found_as_a_folding_reader_finds_it() {
    let look = |object: &str, name: &str| {
        let scan = scan_reply(object.as_bytes(), &Bounds::default()).unwrap();
        match find(&scan.members, name) {
            Found::Absent => "absent".to_owned(),
            Found::Exactly(value) => format!("exactly {value}"),
            Found::Like(name, value) => format!("{name} {value}"),
        }
    };
    assert_eq!(look(r#"{"a":1}"#, "b"), "absent");
    assert_eq!(look(r#"{"\u0061":1}"#, "a"), "exactly 1");
    assert_eq!(look(r#"{"a":1,"A":2}"#, "a"), "A 2");
    assert_eq!(look(r#"{"A":2}"#, "a"), "A 2");
}
