use std::sync::Mutex;
use std::task::{Context, Poll, Waker};

use super::*;
use crate::labels::Labels;
use crate::reason::Reason;

/// Says what it was told to say, and remembers what it was asked.
#[derive(Debug)]
struct Told {
    says: Result<Checked, String>,
    asked: Mutex<Vec<String>>,
}

impl Checker for Told {
    fn check<'a>(&'a self, question: Question<'a>) -> Checking<'a> {
        let mut asked = self.asked.lock().unwrap();
        asked.push(question.content.to_owned());
        let says = self.says.clone();
        Box::pin(async move { says })
    }
}

fn told(says: Result<Checked, String>) -> Arc<Told> {
    Arc::new(Told {
        says,
        asked: Mutex::default(),
    })
}

fn names(texts: &[&str]) -> Arc<Told> {
    let texts = texts.iter().map(|text| (*text).to_owned());
    told(Ok(Checked::Found(texts.collect())))
}

fn rule(name: &str, checker: &Arc<Told>, action: Action, passes_unchecked: bool) -> Rule {
    Rule {
        name: name.into(),
        finds: Finds::Outside(Outside {
            checker: Arc::clone(checker) as _,
            passes_unchecked,
        }),
        requests: true,
        results: true,
        servers: Vec::new(),
        action,
        labels: Labels::default(),
    }
}

const ABOUT: About<'_> = About {
    way: Way::Request,
    server: "files",
    caller: "me",
    method: "tools/call",
    name: None,
};

/// These checkers never wait.
fn now<T>(future: impl Future<Output = T>) -> T {
    let mut future = std::pin::pin!(future);
    match future
        .as_mut()
        .poll(&mut Context::from_waker(Waker::noop()))
    {
        Poll::Ready(done) => done,
        Poll::Pending => panic!("it waits"),
    }
}

fn checked(rules: Vec<Rule>, raw: &str) -> (String, Option<Finding>) {
    let inspection = Inspection::new(rules);
    let (text, finding) = now(inspection.checked(ABOUT, raw, &["name"]));
    (text.into_owned(), finding)
}

#[test]
fn texts_that_a_checker_names_are_masked_wherever_they_stand() {
    let checker = names(&["Ada Lovelace", "42"]);
    let raw = r#"{"name":"x","a":["Ada Lovelace and Ada\u0020Lovelace",42],"b":"none"}"#;
    let (text, finding) = checked(vec![rule("people", &checker, Action::Mask, false)], raw);
    let expect = r#"{"name":"x","a":["[masked: people] and [masked: people]","[masked: people]"],"b":"none"}"#;
    assert_eq!(text, expect);
    let finding = finding.unwrap();
    assert_eq!(finding.told(), ["people:3".into()]);
    assert_eq!((finding.denied_by(), finding.masked()), (None, 3));
}

#[test]
fn what_cannot_be_masked_as_it_was_named_is_denied() {
    let raw = r#"{"name":"Ada","a":"Ad\u0061 and Grace"}"#;
    let many: Vec<String> = (0..=TEXTS_MAX).map(|_| "Ada".to_owned()).collect();
    let many: Vec<&str> = many.iter().map(String::as_str).collect();
    for texts in [
        &[][..],
        &["Eve"],
        &["Ada", "Eve"],
        &["Ad\\u0061"],
        &[""],
        &many,
    ] {
        let rules = vec![rule("people", &names(texts), Action::Mask, false)];
        let (_, finding) = checked(rules, raw);
        let finding = finding.unwrap();
        assert_eq!(finding.denied_by(), Some("people"), "{texts:?}");
        assert_eq!(finding.reason(), Reason::Inspected, "{texts:?}");
    }
    // It stands nowhere but in a member that is left alone.
    let rules = vec![rule("people", &names(&["tool"]), Action::Mask, false)];
    let (_, finding) = checked(rules, r#"{"name":"tool"}"#);
    assert_eq!(finding.unwrap().denied_by(), Some("people"));
}

#[test]
fn a_checker_that_does_not_answer_is_said_to_be_so() {
    let silent = told(Err("it did not answer".to_owned()));
    for (action, passes) in [
        (Action::Mask, false),
        (Action::Label, false),
        (Action::Deny, true),
    ] {
        let (text, finding) = checked(vec![rule("dlp", &silent, action, passes)], r#"{"a":1}"#);
        let finding = finding.unwrap();
        assert_eq!(text, r#"{"a":1}"#);
        assert_eq!(finding.told(), ["dlp:unchecked".into()]);
        assert_eq!(
            finding.denied_by(),
            (!passes).then_some("dlp"),
            "{action:?}"
        );
        if !passes {
            assert_eq!(finding.reason(), Reason::Unchecked);
        }
    }
}

#[test]
fn each_checker_sees_what_those_before_it_left_and_none_is_asked_once_one_denies() {
    let (first, second, third) = (names(&["one"]), names(&["two"]), names(&["three"]));
    let rules = vec![
        rule("a", &first, Action::Mask, false),
        rule("b", &second, Action::Deny, false),
        rule("c", &third, Action::Deny, false),
    ];
    let (_, finding) = checked(rules, r#"["one two three"]"#);
    assert_eq!(finding.unwrap().denied_by(), Some("b"));
    assert_eq!(
        *second.asked.lock().unwrap(),
        [r#"["[masked: a] two three"]"#]
    );
    assert!(third.asked.lock().unwrap().is_empty());
}

/// What a checker is shown of texts that came in pieces, what it finds, and what is left of them then.
fn answered(rules: Vec<Rule>, raw: &str) -> (String, Option<Finding>) {
    let inspection = Inspection::new(rules);
    let (inspection, finding) = now(inspection.with_answers(ABOUT, raw));
    let (text, _) = inspection.value(ABOUT.way, ABOUT.server, raw, &[]);
    (text.into_owned(), finding)
}

#[test]
fn of_texts_in_pieces_each_checker_sees_what_the_rules_before_it_left() {
    let (first, second) = (names(&["one"]), names(&["two"]));
    let plain = Rule {
        finds: Finds::Texts(vec!["zero".to_owned()]),
        ..rule("plain", &first, Action::Mask, false)
    };
    let rules = vec![
        plain,
        rule("a", &first, Action::Mask, false),
        rule("b", &second, Action::Mask, false),
    ];
    let (text, finding) = answered(rules, r#"["zero one","two"]"#);
    assert_eq!(text, r#"["[masked: plain] [masked: a]","[masked: b]"]"#);
    assert_eq!(finding, None);
    assert_eq!(
        *first.asked.lock().unwrap(),
        [r#"["[masked: plain] one","two"]"#]
    );
    assert_eq!(
        *second.asked.lock().unwrap(),
        [r#"["[masked: plain] [masked: a]","two"]"#]
    );
}

#[test]
fn a_text_across_what_another_rule_has_masked_is_denied_for_it_cannot_be_masked_in_pieces() {
    let checker = names(&["[masked: plain] one"]);
    let plain = Rule {
        finds: Finds::Texts(vec!["zero".to_owned()]),
        ..rule("plain", &checker, Action::Mask, false)
    };
    let rules = vec![plain, rule("a", &checker, Action::Mask, false)];
    let (_, finding) = answered(rules, r#"["zero one"]"#);
    assert_eq!(finding.unwrap().denied_by(), Some("a"));
}

#[test]
fn a_text_that_is_no_json_is_asked_about_as_one_string() {
    let checker = names(&["Ada"]);
    let inspection = Inspection::new(vec![rule("people", &checker, Action::Mask, false)]);
    let (text, _) = now(inspection.checked_text(ABOUT, "\"Ada\"\n"));
    assert_eq!(text, "\"[masked: people]\"\n");
    let nothing = told(Ok(Checked::Nothing));
    let inspection = Inspection::new(vec![rule("people", &nothing, Action::Mask, false)]);
    let (text, finding) = now(inspection.checked_text(ABOUT, "Ada"));
    assert_eq!((text.as_ref(), finding), ("Ada", None));
}
