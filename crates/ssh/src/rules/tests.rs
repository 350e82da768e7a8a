use gate::effect::Effect;
use gate::policy::Policy;

use super::*;

fn judged(policy: &Policy, line: &str) -> Result<(Effect, String), String> {
    let facts = facts(line, None).map_err(|fault| fault.wrong)?;
    let judgement = policy.judge(&facts);
    let verdict = judgement.verdict();
    Ok((verdict.effect, verdict.final_rule.to_owned()))
}

/// The lines of a file of the corpus; a line end in a command is written as its picture, as is root's home.
fn lines(text: &str) -> Vec<String> {
    let kept = text
        .lines()
        .filter(|line| !line.is_empty() && !line.starts_with("# "));
    let pictured = [
        ("\u{2302}", "/root"),
        ("\u{240a}", "\n"),
        ("\u{240d}", "\r"),
        ("\u{2409}", "\t"),
        ("\u{2400}", "\0"),
        ("\u{241b}", "\u{1b}"),
        ("\u{2421}", "\u{7f}"),
    ];
    kept.map(|line| {
        pictured
            .iter()
            .fold(line.to_owned(), |line, (picture, is)| {
                line.replace(picture, is)
            })
    })
    .collect()
}

#[test]
fn what_is_refused_is_refused() {
    let policy = Policy::load(&policy(), None, &[]).unwrap();
    let lines = lines(include_str!("../../tests/corpus/refused.txt"));
    let passed: Vec<_> = lines
        .iter()
        .filter_map(|line| match judged(&policy, line) {
            Ok((Effect::Deny, _)) | Err(_) => None,
            Ok(other) => Some((line, other)),
        })
        .collect();
    assert!(passed.is_empty(), "{passed:#?}");
    assert!(lines.len() >= 250, "{}", lines.len());
}

#[test]
fn what_is_allowed_is_allowed() {
    let policy = Policy::load(&policy(), None, &[]).unwrap();
    let lines = lines(include_str!("../../tests/corpus/allowed.txt"));
    let refused: Vec<_> = lines
        .iter()
        .filter_map(|line| match judged(&policy, line) {
            Ok((Effect::Allow, _)) => None,
            other => Some((line, other)),
        })
        .collect();
    assert!(refused.is_empty(), "{refused:#?}");
    assert!(lines.len() >= 200, "{}", lines.len());
}

#[test]
fn a_service_is_restarted_by_a_persons_yes() {
    let policy = Policy::load(&policy(), None, &[]).unwrap();
    let asked = judged(&policy, "systemctl restart nginx.service").unwrap();
    assert_eq!(asked, (Effect::Hitl, "ssh-ask-services".into()));
    let asked = judged(&policy, "sudo systemctl restart nginx.service").unwrap();
    assert_eq!(asked, (Effect::Hitl, "ssh-ask-sudo".into()));
    assert_eq!(
        judged(&policy, "sudo cat /etc/shadow").unwrap().1,
        "ssh-deny-secrets"
    );
    assert_eq!(
        judged(&policy, "cat /etc/shadow").unwrap().1,
        "ssh-deny-secrets"
    );
    assert_eq!(
        judged(&policy, "sort -o /tmp/x /etc/hosts").unwrap().1,
        "default"
    );
    assert_eq!(
        judged(&policy, "cat /srv/x").unwrap().1,
        "ssh-deny-other-roots"
    );
}

#[test]
fn typing_into_a_terminal_is_seen_by_a_person() {
    let policy = Policy::load(&policy(), None, &[]).unwrap();
    let mut facts = facts("top -bn1", None).unwrap();
    facts.tool_name = Fact::Known("ssh_terminal_send".into());
    facts.operation = Some(gate::facts::Operation::Unknown);
    let judgement = policy.judge(&facts);
    let verdict = judgement.verdict();
    assert_eq!(
        (verdict.effect, verdict.final_rule),
        (Effect::Hitl, "ssh-ask-typing")
    );
}

/// Programs that look, with the options and operands by which they write, and a form of each that is allowed.
#[test]
fn forms_that_write_are_refused_by_a_rule_beside_forms_that_look() {
    let policy = Policy::load(&policy(), None, &[]).unwrap();
    for (looks, writes) in [
        (
            "sort /etc/hosts",
            &[
                "sort -o /tmp/x /etc/hosts",
                "sort --compress-program=sh /etc/hosts",
            ][..],
        ),
        ("uniq /etc/hosts", &["uniq /etc/hosts /tmp/x"]),
        ("file /etc/hosts", &["file -C -m /tmp/x"]),
        ("hostname", &["hostname other"]),
        (
            "sysctl net.ipv4.ip_forward",
            &[
                "sysctl net.ipv4.ip_forward=1",
                "sysctl -w net.ipv4.ip_forward=1",
            ],
        ),
        ("ss -t", &["ss -tK", "ss -K dst 10.0.0.1"]),
        ("conntrack -L", &["conntrack -L -F", "conntrack -D"]),
        (
            "iptables -L",
            &[
                "iptables -L -Z",
                "iptables -F",
                "iptables -A INPUT -j DROP",
                "iptables -P INPUT DROP",
            ],
        ),
    ] {
        let (effect, rule) = judged(&policy, looks).unwrap();
        assert_eq!(effect, Effect::Allow, "{looks}: {rule}");
        for line in writes {
            let (effect, rule) = judged(&policy, line).unwrap();
            assert!(effect == Effect::Deny && !rule.is_empty(), "{line}: {rule}");
        }
    }
}

#[test]
fn the_shipped_policy_loads_without_a_warning() {
    let policy = Policy::load(&policy(), None, &[]).unwrap();
    let warnings: Vec<_> = gate::policy::lint::warnings(policy.rules(), &[])
        .into_iter()
        .map(|w| (w.id, w.message))
        .collect();
    assert!(warnings.is_empty(), "{warnings:?}");
}
