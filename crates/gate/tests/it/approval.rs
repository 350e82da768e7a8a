//! Asking a person, at the gate: time is a number that the tests turn.

use std::borrow::Cow;
use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, AtomicUsize, Ordering};
use std::task::{Context, Poll, Wake, Waker};

use crate::journal_support::{NOW_MS, Place};
use gate::approval::{
    Answer, Channel, Choice, Declined, Options, Outcome, Shown, WAITING_BYTES_MAX,
    WAITING_BYTES_OF_CALLER_MAX, display,
};
use gate::facts::{Fact, FactId, Facts, ResourceType};
use gate::flow::Cause;
use gate::labels::{Label, Labels};
use gate::paths::canonical::Meaning;
use gate::paths::{PathArgument, Role};
use gate::policy::Policy;
use gate::{
    Admission, Call, Caller, Clock, Gate, Origin, Pass as _, PeerId, Permit, Reason, Ticket, World,
};

use crate::inspected::inspected;

const S: u64 = 1_000_000_000;
const POLICY: &str = r#"{"rules":[
    {"id":"ask","effect":"hitl","conditions":{"tool_name":"*"},
     "cache_side_effects":["fs_write","code_exec","process_spawn"]}]}"#;

struct Time {
    wall_ms: AtomicI64,
    mono_ns: AtomicU64,
}

impl Clock for Time {
    fn wall_ms(&self) -> i64 {
        self.wall_ms.load(Ordering::SeqCst)
    }
    fn mono_ns(&self) -> u64 {
        self.mono_ns.load(Ordering::SeqCst)
    }
}

#[derive(Debug)]
struct Request(String);

impl Shown for Request {
    fn arguments(&self) -> Option<Cow<'_, str>> {
        Some(Cow::Borrowed(&self.0))
    }

    fn weight(&self) -> usize {
        self.0.len()
    }
}

struct Scene {
    gate: Gate,
    time: Arc<Time>,
    _place: Place,
}

fn world(policy: &str, version: &str) -> World {
    World {
        policy: Policy::load(policy, None, &[]).unwrap(),
        version: version.into(),
        limits: gate::limits::Limits {
            requests: gate::limits::Rate::per_second(1_000_000),
            requests_burst: 1_000_000,
            tool_calls_max: 1_000_000,
            under_way_max: 100_000,
            ..gate::limits::Limits::default()
        },
        approval: Options::default(),
        inspect: Arc::default(),
        flow: Arc::default(),
    }
}

impl Scene {
    fn new(options: Options) -> Self {
        let place = Place::new("approval");
        let time = Arc::new(Time {
            wall_ms: AtomicI64::new(NOW_MS),
            mono_ns: AtomicU64::new(5 * S),
        });
        let journal = Arc::new(place.open());
        let clock = Arc::clone(&time) as Arc<dyn Clock>;
        Self {
            gate: Gate::new(
                World {
                    approval: options,
                    ..world(POLICY, "v1")
                },
                journal,
                clock,
                42,
            ),
            time,
            _place: place,
        }
    }

    fn pass_ns(&self, ns: u64) {
        self.time.mono_ns.fetch_add(ns, Ordering::SeqCst);
    }

    fn admit(&self, facts: &Facts, arguments: &str) -> Admission<Request> {
        self.admit_in("s", facts, (arguments, arguments))
    }

    /// A call in this session with these arguments, and all that is shown of it.
    fn admit_in(
        &self,
        session: &str,
        facts: &Facts,
        (arguments, shown): (&str, &str),
    ) -> Admission<Request> {
        now(self.gate.admit(Call {
            caller: Caller::local(&facts.subject_id),
            facts: facts.clone().into(),
            targets: PeerId::server("files").into(),
            origin: Box::new(Origin {
                session_id: session.into(),
                arguments_digest: Some(self.gate.digest(arguments.as_bytes())),
                ..Origin::default()
            }),
            request: inspected(&self.gate, Request(shown.to_owned())),
        }))
    }

    #[track_caller]
    fn ask(&self, facts: &Facts, arguments: &str) -> Box<Ticket<Request>> {
        match self.admit(facts, arguments) {
            Admission::Pending(ticket) => ticket,
            other => panic!("not asked: {other:?}"),
        }
    }

    fn answer(&self, ticket: &Ticket<Request>, choice: Choice) -> Result<(), Declined> {
        let id = ticket.id().to_string();
        self.gate.approvals().answer(&id, by("p", choice)).map(drop)
    }

    /// Asks and says yes for a while.
    fn allow(&self, facts: &Facts, arguments: &str) {
        let ticket = self.ask(facts, arguments);
        self.answer(&ticket, Choice::Allow).unwrap();
        let resumed = self.gate.resume(ticket, facts.clone());
        assert!(matches!(resumed, Admission::Permit(_)), "{resumed:?}");
    }
}

/// What is sent of a permit.
fn sent(permit: Permit<Request>) -> String {
    let files = PeerId::server("files");
    let (spent, _flight) = permit.spend(&files).unwrap();
    spent.take(&files).unwrap().0
}

fn by(approver: &str, choice: Choice) -> Answer {
    Answer {
        choice,
        channel: Channel::Cli,
        approver: approver.into(),
        reason: None,
        unseen: false,
    }
}

/// The result of a future that never waits.
fn now<T>(future: impl Future<Output = T>) -> T {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(value) => value,
        Poll::Pending => panic!("it waits"),
    }
}

fn facts(subject: &str, tool: &str, path: &str) -> Facts {
    Facts {
        method: "tools/call".into(),
        tool_name: Fact::Known(tool.into()),
        backend_id: "files".into(),
        resource_type: Some(ResourceType::Tool),
        subject_id: subject.into(),
        paths: Fact::Known(vec![PathArgument {
            text: path.into(),
            role: Role::Path,
            content: false,
            meaning: Meaning {
                places: vec![path.into()],
                uncertain: false,
                ..gate::paths::Meaning::default()
            },
        }]),
        ..Facts::default()
    }
}

fn write() -> Facts {
    facts("ann", "write_file", "/tmp/a")
}

#[track_caller]
fn refused(admission: Admission<Request>) -> Reason {
    match admission {
        Admission::Refused(refusal) => refusal.reason,
        other => panic!("not refused: {other:?}"),
    }
}

#[test]
fn the_deadline_is_exact_whenever_it_is_looked_at() {
    let scene = Scene::new(Options::default());
    let (early, late) = (scene.ask(&write(), "1"), scene.ask(&write(), "2"));
    scene.pass_ns(50 * S - 1);
    scene.answer(&early, Choice::Once).unwrap();
    scene.pass_ns(1);
    let declined = scene.answer(&late, Choice::Once).unwrap_err();
    assert_eq!(declined.label(), "timed_out");
    assert!(scene.gate.approvals().list().is_empty());
    let permit = match scene.gate.resume(early, write()) {
        Admission::Permit(permit) => permit,
        other => panic!("{other:?}"),
    };
    assert_eq!(sent(permit), "1");
    let reason = refused(scene.gate.resume(late, write()));
    assert_eq!(reason, Reason::ApprovalTimeout);
}

#[test]
fn a_tick_ends_what_is_overdue_and_wakes_who_waits() {
    struct Count(AtomicUsize);
    impl Wake for Count {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::SeqCst);
        }
    }
    let scene = Scene::new(Options::default());
    let ticket = scene.ask(&write(), "1");
    let woken = Arc::new(Count(AtomicUsize::new(0)));
    let waker = Waker::from(Arc::clone(&woken));
    assert!(
        ticket
            .poll_settled(&Context::from_waker(&waker))
            .is_pending()
    );
    scene.pass_ns(50 * S - 1);
    scene.gate.tick().unwrap();
    assert_eq!(woken.0.load(Ordering::SeqCst), 0);
    scene.pass_ns(1);
    scene.gate.tick().unwrap();
    assert_eq!(woken.0.load(Ordering::SeqCst), 1);
    assert!(ticket.is_settled());
}

#[test]
fn a_wall_clock_set_back_or_forward_changes_no_grant_and_no_deadline() {
    for jump_ms in [-86_400_000, 86_400_000] {
        let scene = Scene::new(Options::default());
        scene.allow(&write(), "x");
        let waiting = scene.ask(&write(), "other");
        scene.time.wall_ms.fetch_add(jump_ms, Ordering::SeqCst);
        scene.gate.tick().unwrap();
        assert!(!waiting.is_settled());
        scene.pass_ns(600 * S - 1);
        let remembered = scene.admit(&write(), "x");
        assert!(matches!(remembered, Admission::Permit(_)), "{remembered:?}");
        scene.pass_ns(1);
        let forgotten = scene.admit(&write(), "x");
        assert!(matches!(forgotten, Admission::Pending(_)), "{forgotten:?}");
    }
}

#[test]
fn a_grant_fits_only_what_was_approved() {
    let scene = Scene::new(Options::default());
    scene.allow(&write(), "x");
    let again = scene.admit(&write(), "x");
    assert!(matches!(again, Admission::Permit(_)), "{again:?}");
    let others = [
        (facts("bob", "write_file", "/tmp/a"), "x"),
        (facts("ann", "write_file", "/tmp/b"), "x"),
        (facts("ann", "append_file", "/tmp/a"), "x"),
        (write(), "y"),
        (
            Facts {
                backend_id: "other".into(),
                ..write()
            },
            "x",
        ),
    ];
    for (facts, arguments) in others {
        let other = scene.admit(&facts, arguments);
        assert!(
            matches!(other, Admission::Pending(_)),
            "{facts:?} {other:?}"
        );
    }
}

#[test]
fn a_remembered_yes_covered_parameters_that_nobody_was_shown() {
    let scene = Scene::new(Options::default());
    scene.allow(&write(), "x");
    // The same arguments, and an answer to the server's question beside them.
    let beside = r#"{"arguments":"x","inputResponses":{"account":"all"}}"#;
    let other = scene.admit_in("s", &write(), ("x", beside));
    assert!(matches!(other, Admission::Pending(_)), "{other:?}");
}

#[test]
fn a_remembered_yes_covered_a_session_that_had_become_untrusted_since() {
    let scene = Scene::new(Options::default());
    scene.allow(&write(), "x");
    let cause = Cause {
        server: "web".into(),
        tool: None,
        op: None,
    };
    let world = scene.gate.world();
    let labels = Label::ALL.into_iter().collect::<Labels>();
    let now_ns = scene.time.mono_ns();
    let sessions = world.flow.sessions();
    sessions.label(&"ann".into(), labels, &cause, now_ns);
    let other = scene.admit(&write(), "x");
    assert!(matches!(other, Admission::Pending(_)), "{other:?}");
}

#[test]
fn a_remembered_yes_covered_another_machine_of_the_same_name() {
    let scene = Scene::new(Options::default());
    let at = |host: &str| {
        let mut facts = write();
        facts.set(FactId::Host, Fact::Known(host.into())).unwrap();
        facts
    };
    scene.allow(&at("web1.example"), "x");
    let again = scene.admit(&at("web1.example"), "x");
    assert!(matches!(again, Admission::Permit(_)), "{again:?}");
    let other = scene.admit(&at("db1.example"), "x");
    assert!(matches!(other, Admission::Pending(_)), "{other:?}");
}

#[test]
fn a_yes_for_the_session_held_for_half_a_day_where_there_was_no_session() {
    let scene = Scene::new(Options::default());
    for (session, is_remembered) in [("s", true), ("", false)] {
        let Admission::Pending(ticket) = scene.admit_in(session, &write(), (session, session))
        else {
            panic!("not asked");
        };
        scene.answer(&ticket, Choice::Session).unwrap();
        let resumed = scene.gate.resume(ticket, write());
        assert!(matches!(resumed, Admission::Permit(_)), "{resumed:?}");
        scene.pass_ns(600 * S - 1);
        let soon = scene.admit_in(session, &write(), (session, session));
        assert!(matches!(soon, Admission::Permit(_)), "{soon:?}");
        scene.pass_ns(1);
        let late = scene.admit_in(session, &write(), (session, session));
        let passes = matches!(late, Admission::Permit(_));
        assert_eq!(passes, is_remembered, "{session:?}: {late:?}");
    }
}

#[test]
fn running_code_and_unknown_effects_are_never_remembered() {
    let scene = Scene::new(Options::default());
    for tool in ["execute_command", "run_python", "unheard_of"] {
        let facts = facts("ann", tool, "/tmp/a");
        let ticket = scene.ask(&facts, "x");
        let id = ticket.id();
        let question = scene.gate.approvals().question(id).unwrap();
        assert!(!question.can_cache, "{tool}: {question:?}");
        scene.answer(&ticket, Choice::Allow).unwrap();
        let resumed = scene.gate.resume(ticket, facts.clone());
        assert!(matches!(resumed, Admission::Permit(_)), "{resumed:?}");
        let again = scene.admit(&facts, "x");
        assert!(matches!(again, Admission::Pending(_)), "{tool}: {again:?}");
    }
}

#[test]
fn the_queue_each_caller_and_each_minute_have_bounds() {
    let options = Options {
        pending_max: 5,
        waiting_per_caller_max: 3,
        asked_per_minute_max: 4,
        ..Options::default()
    };
    let scene = Scene::new(options);
    let ann: Vec<_> = (0..3)
        .map(|n| scene.ask(&write(), &n.to_string()))
        .collect();
    let fourth = refused(scene.admit(&write(), "x"));
    assert_eq!(fourth, Reason::ApprovalTooManyWaiting);
    let bob = facts("bob", "write_file", "/tmp/a");
    let _bobs: Vec<_> = (0..2).map(|n| scene.ask(&bob, &n.to_string())).collect();
    let sixth = refused(scene.admit(&bob, "x"));
    assert_eq!(sixth, Reason::ApprovalQueueFull);
    assert_eq!(scene.gate.approvals().waiting(), 5);
    drop(ann);
    // Three of ann's four within a minute are used up, answered or not.
    let last = scene.ask(&write(), "4");
    drop(last);
    let fifth = refused(scene.admit(&write(), "5"));
    assert_eq!(fifth, Reason::ApprovalTooManyAsked);
    scene.pass_ns(60 * S);
    scene.gate.tick().unwrap();
    drop(scene.ask(&write(), "6"));
}

#[test]
fn j17_calls_that_wait_take_a_bounded_number_of_bytes() {
    let scene = Scene::new(Options::default());
    let long = "x".repeat(WAITING_BYTES_OF_CALLER_MAX / 2);
    let more = format!("{long}{long}{long}");
    // However long it is, there may be one.
    drop(scene.ask(&write(), &more));
    let first = scene.ask(&write(), &long);
    let too_much = refused(scene.admit(&write(), &long));
    assert_eq!(too_much, Reason::ApprovalTooManyWaiting);
    drop(scene.ask(&write(), "short"));
    let of_others: Vec<_> = (0..)
        .map(|n| scene.admit(&facts(&format!("c{n}"), "write_file", "/tmp/a"), &long))
        .take_while(|admission| matches!(admission, Admission::Pending(_)))
        .collect();
    // What a call's facts take counts as well.
    let fit = WAITING_BYTES_MAX / long.len() - 1;
    assert_eq!(of_others.len(), fit - 1);
    let full = facts("late", "write_file", "/tmp/a");
    assert_eq!(
        refused(scene.admit(&full, &long)),
        Reason::ApprovalQueueFull
    );
    drop(first);
    drop(scene.ask(&full, &long));
    drop(of_others);
    let mut many = write();
    many.reach.words = vec!["word".to_owned(); WAITING_BYTES_OF_CALLER_MAX / 100];
    let _first = scene.ask(&write(), "x");
    assert_eq!(
        refused(scene.admit(&many, "x")),
        Reason::ApprovalTooManyWaiting
    );
}

#[test]
fn the_first_answer_stands_and_later_ones_are_told() {
    let scene = Scene::new(Options::default());
    let ticket = scene.ask(&write(), "1");
    let id = ticket.id().to_string();
    let approvals = scene.gate.approvals();
    approvals.answer(&id, by("first", Choice::Once)).unwrap();
    let declined = approvals
        .answer(&id, by("second", Choice::Deny))
        .unwrap_err();
    assert_eq!(
        declined.to_string(),
        format!("{id} was already allowed once by first on channel cli; this answer has no effect")
    );
    let resumed = scene.gate.resume(ticket, write());
    assert!(matches!(resumed, Admission::Permit(_)), "{resumed:?}");
    drop(scene.ask(&write(), "2"));
    assert_eq!(
        approvals.answer("", by("p", Choice::Once)),
        Err(Declined::TooShort)
    );
}

#[test]
fn the_beginning_of_an_id_never_means_another_call() {
    let scene = Scene::new(Options {
        pending_max: 10_000,
        waiting_per_caller_max: 10_000,
        asked_per_minute_max: 10_000,
        ..Options::default()
    });
    let approvals = scene.gate.approvals();
    // Calls come and go until one has ended whose name begins like that of one that waits.
    let mut tickets = std::collections::HashMap::new();
    let (ended, waiting) = loop {
        let ticket = scene.ask(&write(), "x");
        let id = ticket.id().to_string();
        if let Some(earlier) = tickets.insert(id[..3].to_owned(), ticket) {
            let ended = earlier.id().to_string();
            drop(earlier);
            break (ended, id);
        }
        assert!(
            tickets.len() < 5_000,
            "names do not repeat their beginnings"
        );
    };
    let beginning = &ended[..3];
    let declined = approvals
        .answer(beginning, by("p", Choice::Allow))
        .unwrap_err();
    assert_eq!(declined.label(), "ambiguous");
    assert!(declined.to_string().contains(&ended), "{declined}");
    let declined = approvals.answer(&beginning[..2], by("p", Choice::Allow));
    assert_eq!(declined, Err(Declined::TooShort));
    assert_eq!(
        approvals
            .answer(&ended, by("p", Choice::Allow))
            .unwrap_err()
            .label(),
        "withdrawn"
    );
    assert_eq!(
        approvals
            .answer(&waiting, by("p", Choice::Once))
            .unwrap()
            .id,
        waiting
    );
}

#[test]
fn a_dropped_ticket_is_withdrawn() {
    let scene = Scene::new(Options::default());
    let ticket = scene.ask(&write(), "1");
    let id = ticket.id().to_string();
    drop(ticket);
    assert_eq!(scene.gate.approvals().waiting(), 0);
    assert_eq!(
        scene.gate.approvals().outcome(&id),
        Some(Outcome::Withdrawn)
    );
    let late = scene.gate.approvals().answer(&id, by("p", Choice::Once));
    assert_eq!(late.unwrap_err().label(), "withdrawn");
}

#[test]
fn only_channels_that_the_rule_names_may_answer() {
    let scene = Scene::new(Options::default());
    scene.gate.reload(world(
        r#"{"rules":[{"id":"ask","effect":"hitl","conditions":{"tool_name":"*"},"approvers":["client"]}]}"#,
        "v2",
    ));
    let ticket = scene.ask(&write(), "1");
    assert_eq!(ticket.approvers(), [Channel::Client]);
    let declined = scene.answer(&ticket, Choice::Once).unwrap_err();
    assert_eq!(declined, Declined::Channel(vec![Channel::Client]));
    let id = ticket.id().to_string();
    let answer = Answer {
        channel: Channel::Client,
        ..by("ann", Choice::Once)
    };
    scene.gate.approvals().answer(&id, answer).unwrap();
    let resumed = scene.gate.resume(ticket, write());
    assert!(matches!(resumed, Admission::Permit(_)), "{resumed:?}");
}

#[test]
fn a_yes_to_what_is_not_all_shown_has_to_say_so() {
    let scene = Scene::new(Options::default());
    let arguments = |length: usize| format!(r#"{{"content":"{}"}}"#, "x".repeat(length));
    let ticket = scene.ask(&write(), &arguments(display::STRING_CHARS_MAX + 1));
    assert!(scene.gate.approvals().list()[0].is_cut);
    for choice in [Choice::Allow, Choice::Once] {
        let declined = scene.answer(&ticket, choice).unwrap_err();
        assert_eq!(declined, Declined::NotAllShown);
    }
    let confirmed = Answer {
        unseen: true,
        ..by("p", Choice::Once)
    };
    let id = ticket.id().to_string();
    scene.gate.approvals().answer(&id, confirmed).unwrap();
    let resumed = scene.gate.resume(ticket, write());
    assert!(matches!(resumed, Admission::Permit(_)), "{resumed:?}");
    // A no needs no confirmation, nor does a yes to what is all there.
    let ticket = scene.ask(&write(), &arguments(display::STRING_CHARS_MAX + 1));
    scene.answer(&ticket, Choice::Deny).unwrap();
    let ticket = scene.ask(&write(), &arguments(display::STRING_CHARS_MAX));
    scene.answer(&ticket, Choice::Once).unwrap();
}

/// Links that the rules lead through may lead elsewhere by now; other bounds are no other rules.
#[test]
fn a_reload_forgets_even_where_the_text_is_the_same() {
    let scene = Scene::new(Options::default());
    scene.allow(&write(), "granted");
    let ticket = scene.ask(&write(), "asked");
    let tighter = Options {
        timeout_ms: 5_000,
        ..Options::default()
    };
    scene.gate.reload(World {
        approval: tighter,
        ..world(POLICY, "v1")
    });
    assert_eq!(scene.gate.approvals().grants(), 0);
    assert_eq!(scene.gate.approvals().options(), tighter);
    assert!(!ticket.is_settled(), "the same version asks the same");
    scene.gate.reload(world(POLICY, "v2"));
    assert!(ticket.is_settled());
    let again = scene.gate.resume(ticket, write());
    let Admission::Pending(again) = again else {
        panic!("not asked again: {again:?}");
    };
    scene.answer(&again, Choice::Once).unwrap();
    let resumed = scene.gate.resume(again, write());
    assert!(matches!(resumed, Admission::Permit(_)), "{resumed:?}");
}

#[test]
fn a_reload_voids_answers_and_grants_and_the_new_rules_judge() {
    let hitl = r#"{"rules":[{"id":"other","effect":"hitl","conditions":{"tool_name":"*"},"cache_side_effects":["fs_write"]}]}"#;
    let deny = r#"{"rules":[{"id":"no","effect":"deny","conditions":{"tool_name":"*"}}]}"#;
    let allow = r#"{"rules":[{"id":"yes","effect":"allow","conditions":{"tool_name":"*"}}]}"#;
    for answered in [false, true] {
        let scene = Scene::new(Options::default());
        scene.allow(&write(), "granted");
        let tickets: Vec<_> = (0..3)
            .map(|n| scene.ask(&write(), &n.to_string()))
            .collect();
        if answered {
            for ticket in &tickets {
                scene.answer(ticket, Choice::Allow).unwrap();
            }
        }
        let mut tickets = tickets.into_iter();
        let mut resume = || scene.gate.resume(tickets.next().unwrap(), write());
        scene.pass_ns(10 * S);
        scene.gate.reload(world(hitl, "v2"));
        let granted = scene.admit(&write(), "granted");
        assert!(matches!(granted, Admission::Pending(_)), "{granted:?}");
        let anew = match resume() {
            Admission::Pending(ticket) => ticket,
            other => panic!("{other:?}"),
        };
        // Asked anew, by the new rule, but not for longer.
        assert_eq!(anew.deadline_ns(), 55 * S);
        let question = scene.gate.approvals().question(anew.id()).unwrap();
        assert_eq!(question.rule, "other");
        scene.answer(&anew, Choice::Once).unwrap();
        let passed = scene.gate.resume(anew, write());
        assert!(matches!(passed, Admission::Permit(_)), "{passed:?}");
        scene.gate.reload(world(deny, "v3"));
        assert_eq!(refused(resume()), Reason::DenyRule);
        scene.gate.reload(world(allow, "v4"));
        let passed = resume();
        assert!(matches!(passed, Admission::Permit(_)), "{passed:?}");
    }
}

#[test]
fn a_no_stands_whatever_changed() {
    let scene = Scene::new(Options::default());
    let ticket = scene.ask(&write(), "1");
    scene.answer(&ticket, Choice::Deny).unwrap();
    let allow = r#"{"rules":[{"id":"yes","effect":"allow","conditions":{"tool_name":"*"}}]}"#;
    scene.gate.reload(world(allow, "v2"));
    let reason = refused(scene.gate.resume(ticket, write()));
    assert_eq!(reason, Reason::ApprovalDenied);
}

#[test]
fn a_place_that_changed_while_a_person_thought_voids_the_answer() {
    let scene = Scene::new(Options::default());
    let ticket = scene.ask(&write(), "1");
    let first = ticket.id();
    scene.answer(&ticket, Choice::Allow).unwrap();
    let moved = facts("ann", "write_file", "/etc/passwd");
    let anew = match scene.gate.resume(ticket, moved.clone()) {
        Admission::Pending(ticket) => ticket,
        other => panic!("{other:?}"),
    };
    assert_ne!(anew.id(), first);
    let question = scene.gate.approvals().question(anew.id()).unwrap();
    assert_eq!(question.path.as_deref(), Some("/etc/passwd"));
    let again = scene.admit(&write(), "1");
    assert!(
        matches!(again, Admission::Pending(_)),
        "nothing was remembered"
    );
}

#[test]
fn a_draining_gate_sends_nothing_however_it_was_answered() {
    let scene = Scene::new(Options::default());
    let ticket = scene.ask(&write(), "1");
    scene.answer(&ticket, Choice::Once).unwrap();
    scene.gate.drain();
    assert_eq!(
        refused(scene.gate.resume(ticket, write())),
        Reason::Draining
    );
}

#[test]
fn sixty_four_callers_at_once_each_get_their_own_answer() {
    const CALLERS: usize = 64;
    const ROUNDS: usize = 8;
    let scene = Scene::new(Options::default());
    let (allowed, denied) = (AtomicUsize::new(0), AtomicUsize::new(0));
    std::thread::scope(|scope| {
        for caller in 0..CALLERS {
            let (scene, allowed, denied) = (&scene, &allowed, &denied);
            scope.spawn(move || {
                let facts = facts(&format!("caller-{caller}"), "unheard_of", "/tmp/a");
                for round in 0..ROUNDS {
                    let yes = (caller + round) % 2 == 0;
                    let ticket = scene.ask(&facts, if yes { "yes" } else { "no" });
                    block_on(ticket.settled());
                    match scene.gate.resume(ticket, facts.clone()) {
                        Admission::Permit(permit) => {
                            assert_eq!(sent(permit), "yes");
                            allowed.fetch_add(1, Ordering::SeqCst);
                        }
                        Admission::Refused(refusal) => {
                            assert_eq!(refusal.reason, Reason::ApprovalDenied);
                            assert!(!yes);
                            denied.fetch_add(1, Ordering::SeqCst);
                        }
                        Admission::Pending(ticket) => panic!("{ticket:?}"),
                    }
                }
            });
        }
        // One person, who says yes to "yes".
        let mut answered = 0;
        while answered < CALLERS * ROUNDS {
            let approvals = scene.gate.approvals();
            let seen = approvals.version();
            let waiting = approvals.list();
            if waiting.is_empty() {
                block_on(approvals.changed(seen));
                continue;
            }
            for question in waiting {
                let yes = question.arguments.as_deref() == Some("yes");
                let choice = if yes { Choice::Once } else { Choice::Deny };
                approvals.answer(&question.id, by("p", choice)).unwrap();
                answered += 1;
            }
        }
    });
    assert_eq!(allowed.into_inner(), CALLERS * ROUNDS / 2);
    assert_eq!(denied.into_inner(), CALLERS * ROUNDS / 2);
    assert_eq!(scene.gate.approvals().waiting(), 0);
}

/// Waits on this thread.
fn block_on<T>(future: impl Future<Output = T>) -> T {
    struct Unpark(std::thread::Thread);
    impl Wake for Unpark {
        fn wake(self: Arc<Self>) {
            self.0.unpark();
        }
    }
    let waker = Waker::from(Arc::new(Unpark(std::thread::current())));
    let mut future = pin!(future);
    loop {
        match future.as_mut().poll(&mut Context::from_waker(&waker)) {
            Poll::Ready(value) => return value,
            Poll::Pending => std::thread::park(),
        }
    }
}
