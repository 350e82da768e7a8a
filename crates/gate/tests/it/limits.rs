//! Limits at the gate, with an injected clock: counts are exact, an escalation asks and opens no door,
//! what is turned away is written once and counted after that.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

use crate::journal_support::{NOW_MS, Place, at_last};
use gate::approval::{Answer, Channel, Choice};
use gate::facts::{Direction, Fact, Facts, ResourceType};
use gate::journal::Journal;
use gate::journal::audit::{Filter, Kind, each};
use gate::limits::{Limits, Rate, Then};
use gate::policy::Policy;
use gate::{
    Admission, Call, Caller, Clock, ControlKind, Gate, Origin, Pass as _, PeerId, Reason, World,
};
use serde_json::Value;

use crate::inspected::inspected;

const SECOND: u64 = 1_000_000_000;
const POLICY: &str = r#"{"rules":[
 {"id":"allow-all","effect":"allow","conditions":{"tool_name":["read","write"]}},
 {"id":"allow-elicitation","effect":"allow","conditions":{"mcp_method":"elicitation/create"}},
 {"id":"no-writes","effect":"deny","conditions":{"tool_name":"write"}}]}"#;

#[derive(Default)]
struct Time {
    mono: AtomicU64,
    wall: AtomicI64,
}

impl Clock for Time {
    fn wall_ms(&self) -> i64 {
        NOW_MS + self.wall.load(Ordering::Relaxed)
    }
    fn mono_ns(&self) -> u64 {
        self.mono.load(Ordering::Relaxed)
    }
}

struct Scene {
    gate: Gate,
    time: Arc<Time>,
    journal: Arc<Journal>,
    place: Place,
}

impl Scene {
    fn new(limits: Limits) -> Self {
        let place = Place::new("limits");
        let journal = Arc::new(place.open());
        let time = Arc::new(Time::default());
        time.mono.store(100 * SECOND, Ordering::Relaxed);
        let world = World {
            policy: Policy::load(POLICY, None, &[]).unwrap(),
            version: "v1".into(),
            limits,
            approval: gate::approval::Options::default(),
            inspect: Arc::default(),
            flow: Arc::default(),
        };
        let clock: Arc<dyn Clock> = time.clone();
        Self {
            gate: Gate::new(world, Arc::clone(&journal), clock, 7),
            time,
            journal,
            place,
        }
    }

    fn pass(&self, seconds: u64) {
        self.time
            .mono
            .fetch_add(seconds * SECOND, Ordering::Relaxed);
    }

    fn admit(&self, session: &str, tool: &str) -> Admission<()> {
        self.admit_facts(session, facts(tool))
    }

    fn admit_facts(&self, session: &str, facts: Facts) -> Admission<()> {
        at_last(self.gate.admit(Call {
            caller: Caller::local(&facts.subject_id),
            facts: facts.into(),
            origin: origin(session).into(),
            targets: files().into(),
            request: inspected(&self.gate, ()),
        }))
    }

    /// What became of a call, in a word. What was permitted is sent and ends at once.
    fn call(&self, tool: &str) -> String {
        word(self.admit("s", tool))
    }

    /// The decision records, after all counts are written.
    fn decisions(&self) -> Vec<Value> {
        self.gate.flush().unwrap();
        self.journal.close(NOW_MS, "test").unwrap();
        let filter = Filter {
            kind: Some(Kind::Decision),
            ..Filter::default()
        };
        let mut out = Vec::new();
        each(&self.place.directory, &filter, &mut |body| {
            out.push(serde_json::from_slice(body).unwrap());
        })
        .unwrap();
        out
    }
}

fn word(admission: Admission<()>) -> String {
    match admission {
        Admission::Permit(permit) => {
            drop(permit.spend(&files()).unwrap());
            "permit".into()
        }
        Admission::Pending(ticket) if ticket.is_escalated() => "asked".into(),
        Admission::Pending(_) => "pending".into(),
        Admission::Refused(refusal) => refusal.reason.label().into(),
    }
}

fn facts(tool: &str) -> Facts {
    Facts {
        method: "tools/call".into(),
        tool_name: Fact::Known(tool.into()),
        backend_id: "files".into(),
        resource_type: Some(ResourceType::Tool),
        subject_id: "u".into(),
        paths: Fact::Known(Vec::new()),
        ..Facts::default()
    }
}

fn files() -> PeerId {
    PeerId::server("files")
}

fn origin(session: &str) -> Origin {
    Origin {
        session_id: session.into(),
        ..Origin::default()
    }
}

/// How many calls the records stand for.
fn calls(decisions: &[Value]) -> u64 {
    let refusals = |record: &Value| record["refusals"].as_u64().unwrap_or(1);
    decisions.iter().map(refusals).sum()
}

fn wide() -> Limits {
    Limits {
        requests: Rate::per_second(1_000_000),
        requests_burst: 1_000_000,
        ..Limits::default()
    }
}

#[test]
fn the_defaults_are_those_of_the_reference() {
    let scene = Scene::new(Limits {
        tool_calls_max: 1_000,
        ..Limits::default()
    });
    let passed = (0..250).filter(|_| scene.call("read") == "permit").count();
    assert_eq!(passed, 200);
    scene.pass(1);
    let passed = (0..100).filter(|_| scene.call("read") == "permit").count();
    assert_eq!(passed, 50);
    assert_eq!(calls(&scene.decisions()), 350);

    let scene = Scene::new(wide());
    let words: Vec<String> = (0..610).map(|_| scene.call("read")).collect();
    assert!(words[..600].iter().all(|w| w == "permit"), "{words:?}");
    assert!(words[600..].iter().all(|w| w == "asked"), "{words:?}");
    scene.pass(60);
    assert_eq!(scene.call("read"), "permit");
}

#[test]
fn sixty_four_sessions_at_once_get_exactly_what_there_is() {
    let scene = Scene::new(Limits {
        requests: Rate::per_minute(1),
        requests_burst: 700,
        tool_calls_max: 10,
        tool_then: Then::Refuse,
        ..Limits::default()
    });
    let [permits, limited, tool_limited] = [const { AtomicU64::new(0) }; 3];
    std::thread::scope(|scope| {
        for caller in 0..64 {
            let (scene, permits, limited, tool_limited) =
                (&scene, &permits, &limited, &tool_limited);
            scope.spawn(move || {
                for _ in 0..20 {
                    // Windows belong to the caller: its sessions share them.
                    let session = format!("session-{caller}");
                    let counter = match word(scene.admit(&session, "read")).as_str() {
                        "permit" => permits,
                        "rate_limited" => limited,
                        "tool_rate_limited" => tool_limited,
                        other => panic!("{other}"),
                    };
                    counter.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
    });
    let [permits, limited, tool_limited] = [permits, limited, tool_limited].map(|c| c.into_inner());
    assert_eq!(limited, 64 * 20 - 700);
    assert_eq!([permits, tool_limited], [10, 690]);
    let decisions = scene.decisions();
    assert_eq!(calls(&decisions), 64 * 20);
    let allowed = decisions
        .iter()
        .filter(|d| d["decision"] == "allow")
        .count();
    assert_eq!(allowed as u64, permits);
    // The refused of one caller and one reason share two records.
    assert!(decisions.len() as u64 <= permits + 4, "{}", decisions.len());
}

#[test]
fn an_escalation_asks_and_never_outranks_a_refusal() {
    let scene = Scene::new(Limits {
        tool_calls_max: 2,
        ..wide()
    });
    for (tool, within, beyond) in [
        ("read", "permit", "asked"),
        ("write", "denied_by_rule", "denied_by_rule"),
        // No rule allows it: a flood must not make it something that can be asked for.
        ("other", "no_rule_allows", "no_rule_allows"),
    ] {
        let words: Vec<String> = (0..4).map(|_| scene.call(tool)).collect();
        assert_eq!(words, [within, within, beyond, beyond], "{tool}");
    }
    let Admission::Pending(ticket) = scene.admit("s", "read") else {
        panic!("not asked");
    };
    let refusal = scene.gate.decline(*ticket, Reason::ApprovalDenied);
    assert_eq!(refusal.final_rule, "rate_limit_breach");
    assert_eq!(refusal.matched_rules, ["allow-all", "rate_limit_breach"]);
    let decisions = scene.decisions();
    let last = decisions.last().unwrap();
    assert_eq!(last["decision"], "hitl");
    assert_eq!(last["final_rule"], "rate_limit_breach");
}

#[test]
fn an_approval_begins_the_window_anew() {
    let scene = Scene::new(Limits {
        tool_calls_max: 3,
        ..wide()
    });
    for _ in 0..3 {
        assert_eq!(scene.call("read"), "permit");
    }
    let Admission::Pending(ticket) = scene.admit("s", "read") else {
        panic!("not asked");
    };
    let yes = Answer {
        choice: Choice::Allow,
        channel: Channel::Cli,
        approver: "p".into(),
        reason: None,
        unseen: false,
    };
    let id = ticket.id().to_string();
    scene.gate.approvals().answer(&id, yes).unwrap();
    let resumed = scene.gate.resume(ticket, facts("read"));
    assert_eq!(word(resumed), "permit");
    // The approved call is the first of the new window.
    let words: Vec<String> = (0..3).map(|_| scene.call("read")).collect();
    assert_eq!(words, ["permit", "permit", "asked"]);
}

#[test]
fn calls_under_way_end_in_every_way_and_make_room() {
    let scene = Scene::new(Limits {
        under_way_max: 2,
        ..wide()
    });
    let take = || match scene.admit("s", "read") {
        Admission::Permit(permit) => permit,
        other => panic!("{other:?}"),
    };
    let (never_sent, sent) = (take(), take());
    assert_eq!(scene.call("read"), "too_many_under_way");
    // Another session of the same caller has no more.
    assert_eq!(word(scene.admit("another", "read")), "too_many_under_way");
    let other = Facts {
        subject_id: "v".into(),
        ..facts("read")
    };
    assert_eq!(word(scene.admit_facts("s", other)), "permit");
    drop(never_sent);
    let (_, finished) = take().spend(&files()).unwrap();
    assert_eq!(scene.call("read"), "too_many_under_way");
    finished.finish(gate::Outcome::default());
    let (_, cancelled) = sent.spend(&files()).unwrap();
    drop(cancelled);
    let both = (take(), take());
    assert_eq!(scene.call("read"), "too_many_under_way");
    // What a server asks of its client has a table of its own.
    let elicitation = Facts {
        direction: Direction::ToClient,
        method: "elicitation/create".into(),
        subject_id: "u".into(),
        ..Facts::default()
    };
    assert_eq!(word(scene.admit_facts("s", elicitation)), "permit");
    drop(both);
    let refused = scene
        .decisions()
        .iter()
        .filter(|d| d["final_rule"] == "too_many_under_way")
        .count();
    assert_eq!(refused, 4);
}

#[test]
fn a_refusal_says_when_to_come_again() {
    let scene = Scene::new(Limits {
        requests: Rate::per_second(10),
        requests_burst: 1,
        ..Limits::default()
    });
    assert_eq!(scene.call("read"), "permit");
    let Admission::Refused(refusal) = scene.admit("s", "read") else {
        panic!("not refused");
    };
    assert_eq!(refusal.retry_after_ms, Some(100));
    assert!(refusal.reason.is_retryable());
    scene.time.mono.fetch_add(100_000_000, Ordering::Relaxed);
    assert_eq!(scene.call("read"), "permit");
}

#[test]
fn lists_count_handshakes_and_notifications_do_not() {
    let scene = Scene::new(Limits {
        requests: Rate::per_minute(1),
        requests_burst: 5,
        ..Limits::default()
    });
    let (facts, origin) = (facts("read"), origin("s"));
    let passed = |kind| {
        (0..20)
            .filter(|_| {
                scene
                    .gate
                    .admit_control(kind, &facts, &origin, &files(), ())
                    .is_ok()
            })
            .count()
    };
    assert_eq!(passed(ControlKind::List), 5);
    assert_eq!(scene.call("read"), "rate_limited");
    assert_eq!(passed(ControlKind::Ping), 5);
    assert_eq!(passed(ControlKind::LogLevel), 0);
    for kind in [
        ControlKind::Handshake,
        ControlKind::Cancel,
        ControlKind::News,
        ControlKind::Complaint,
    ] {
        assert_eq!(passed(kind), 20, "{}", kind.label());
    }
    let counts = scene.gate.control_counts();
    assert!(counts.contains(&("list", 5)) && counts.contains(&("ping", 5)));
}

#[test]
fn a_clock_set_back_neither_refunds_nor_blocks() {
    let scene = Scene::new(Limits {
        requests: Rate::per_second(10),
        requests_burst: 50,
        tool_calls_max: 1_000,
        ..Limits::default()
    });
    let passed = |calls| {
        (0..calls)
            .filter(|_| scene.call("read") == "permit")
            .count()
    };
    assert_eq!(passed(60), 50);
    scene.time.mono.store(0, Ordering::Relaxed);
    scene.time.wall.store(-86_400_000, Ordering::Relaxed);
    assert_eq!(passed(20), 0);
    scene.pass(2);
    assert_eq!(passed(60), 20);
    assert_eq!(calls(&scene.decisions()), 140);
}

#[test]
fn a_flood_is_a_few_records_and_nothing_is_lost() {
    let scene = Scene::new(Limits {
        requests: Rate::per_minute(1),
        requests_burst: 50,
        tool_calls_max: 1_000,
        ..Limits::default()
    });
    for step in 0..10_000_u64 {
        scene.call("read");
        if step % 1_000 == 999 {
            // Ten milliseconds between a thousand calls: all within a second.
            scene.time.mono.fetch_add(10_000_000, Ordering::Relaxed);
            scene.gate.tick().unwrap();
        }
    }
    scene.pass(1);
    scene.gate.tick().unwrap();
    // The second is over: what comes now is a record again.
    scene.call("read");
    scene.call("read");
    scene.gate.drain();
    scene.call("read");
    scene.call("read");
    let decisions = scene.decisions();
    assert_eq!(calls(&decisions), 10_004);
    let reasons: Vec<String> = decisions
        .iter()
        .filter(|d| d["decision"] == "deny")
        .map(|d| format!("{} {}", d["reason"].as_str().unwrap(), d["refusals"]))
        .collect();
    let mut last = reasons[4..].to_vec();
    last.sort();
    assert_eq!(
        reasons[..4],
        [
            "rate_limited null",
            "rate_limited 9949",
            "rate_limited null",
            "draining null"
        ]
    );
    assert_eq!(last, ["draining 1", "rate_limited 1"]);
    let tally = decisions.iter().find(|d| d["refusals"] == 9_949).unwrap();
    assert_eq!(tally["subject_id"], "u");
    assert_eq!(tally["session_id"], "s");
    assert_eq!(tally["final_rule"], "rate_limited");
}
