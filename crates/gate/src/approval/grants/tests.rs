use super::*;

fn grant(expires_ns: u64) -> Grant {
    Grant {
        expires_ns,
        channel: Channel::Cli,
        approver: "p".into(),
        call: GrantedCall::default(),
    }
}

#[test]
fn remembered_only_where_effects_are_known_and_borne() {
    let borne = |names: &[&str]| names.iter().map(|n| (*n).to_owned()).collect::<Vec<_>>();
    type Case<'c> = (Option<&'c [&'c str]>, Vec<Vec<String>>, bool);
    let cases: [Case<'_>; 7] = [
        (None, vec![borne(&["fs_write"])], false),
        (Some(&[]), vec![borne(&[])], true),
        (Some(&["fs_write"]), vec![borne(&[])], false),
        (Some(&["fs_write"]), vec![borne(&["fs_write"])], true),
        (
            Some(&["fs_read", "fs_write"]),
            vec![borne(&["fs_write"])],
            false,
        ),
        (
            Some(&["code_exec"]),
            vec![borne(&["code_exec", "process_spawn"])],
            false,
        ),
        // Every rule that asks has to bear it.
        (
            Some(&["fs_write"]),
            vec![borne(&["fs_write"]), borne(&[])],
            false,
        ),
    ];
    for (effects, rules, expected) in cases {
        assert_eq!(
            may_be_remembered(effects, rules.iter().map(Vec::as_slice)),
            expected,
            "{effects:?} {rules:?}"
        );
    }
}

#[test]
fn sessions_have_bindings_of_their_own() {
    let binding = Binding([1; 32]);
    assert_eq!(binding.in_session("a"), binding.in_session("a"));
    assert_ne!(binding.in_session("a"), binding.in_session("b"));
    assert_ne!(binding.in_session(""), binding);
}

#[test]
fn the_number_of_grants_is_bounded() {
    let mut grants = Grants::default();
    let binding = |n: usize| {
        let mut bytes = [0; 32];
        bytes[..8].copy_from_slice(&n.to_le_bytes());
        Binding(bytes)
    };
    for n in 0..=GRANTS_MAX {
        grants.add(binding(n), grant(n as u64 + 10), 0);
    }
    assert_eq!(grants.len(), GRANTS_MAX);
    assert_eq!(grants.get(&binding(0), 1), None, "the first to end went");
    assert!(grants.get(&binding(GRANTS_MAX), 1).is_some());
}

#[test]
fn a_grant_ends_exactly() {
    let mut grants = Grants::default();
    grants.add(Binding([1; 32]), grant(100), 0);
    assert!(grants.get(&Binding([1; 32]), 99).is_some());
    assert_eq!(grants.get(&Binding([1; 32]), 100), None);
    assert_eq!(grants.len(), 0);
}
