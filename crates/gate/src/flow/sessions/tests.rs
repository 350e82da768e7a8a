use super::*;

fn cause(tool: &str) -> Cause {
    Cause {
        server: "s".into(),
        tool: Some(tool.into()),
        op: Some("7".into()),
    }
}

fn labels(all: &[Label]) -> Labels {
    all.iter().copied().collect()
}

#[test]
fn a_session_gathers_labels_and_names_the_first_call_of_each() {
    let sessions = Sessions::default();
    let ada: Arc<str> = "ada".into();
    assert_eq!(sessions.of("ada", 0), None);
    sessions.label(&ada, labels(&[Label::Private]), &cause("read"), 1);
    sessions.label(&ada, labels(&Label::ALL), &cause("fetch"), 2);
    let held = sessions.of("ada", 3).unwrap();
    let words: Vec<String> = held.words().iter().map(ToString::to_string).collect();
    assert_eq!(words, ["untrusted", "private", "untrusted+private"]);
    let told = held.told();
    assert!(
        told[0].starts_with("untrusted by fetch on s, op "),
        "{told:?}"
    );
    assert!(told[1].starts_with("private by read on s, op "), "{told:?}");
    assert_eq!(sessions.of("bob", 3), None);
}

#[test]
fn labels_end_a_day_after_the_last_call_and_not_before() {
    let sessions = Sessions::default();
    let ada: Arc<str> = "ada".into();
    let day_ns = HOLD_MS * 1_000_000;
    sessions.label(&ada, labels(&[Label::Private]), &cause("read"), 0);
    assert!(sessions.of("ada", day_ns).is_some());
    assert!(sessions.of("ada", 2 * day_ns).is_some());
    assert_eq!(sessions.of("ada", 3 * day_ns + 1), None);
}

#[test]
fn where_there_is_no_room_nobody_is_taken_for_unlabelled() {
    let sessions = Sessions::default();
    for number in 0..=SESSIONS_MAX {
        let caller: Arc<str> = format!("c{number}").into();
        let which = if number == SESSIONS_MAX {
            Label::Private
        } else {
            Label::Untrusted
        };
        sessions.label(&caller, labels(&[which]), &cause("t"), 1);
    }
    assert!(!sessions.of("c0", 2).unwrap().labels().has(Label::Private));
    assert!(
        sessions
            .of("nobody", 2)
            .unwrap()
            .labels()
            .has(Label::Private)
    );
}
