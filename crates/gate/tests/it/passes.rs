//! Passes at run time: each is made out to a destination, comes back unspent elsewhere, and what
//! becomes of its call stands in the journal.
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll, Waker};

use crate::journal_support::{NOW_MS, Place, at_last};
use gate::approval::Shown;
use gate::facts::{Direction, Fact, Facts, ResourceType};
use gate::journal::audit::{Filter, each};
use gate::journal::{Journal, Micros, Status, Usage};
use gate::policy::Policy;
use gate::{
    Admission, Attempt, Call, Caller, Clock, ClosedSet, ControlKind, Gate, Origin, Outcome,
    Pass as _, PeerId, Permit, Reason, Targets, World,
};
use serde_json::{Value, json};

use crate::inspected::inspected;

/// What goes wrong at a peer of this test.
#[derive(Clone, Copy)]
struct Unreachable;

impl ClosedSet for Unreachable {
    const EVERY: &'static [Self] = &[Self];

    fn word(self) -> &'static str {
        "upstream_unreachable"
    }
}

/// What is sent.
#[derive(Debug, PartialEq)]
struct Request(&'static str);

impl Shown for Request {
    fn arguments(&self) -> Option<std::borrow::Cow<'_, str>> {
        None
    }

    fn weight(&self) -> usize {
        0
    }
}

const REQUEST: Request = Request("the request");
const MS: u64 = 1_000_000;
const POLICY: &str = r#"{"rules":[
 {"id":"allow-all","effect":"allow","conditions":{"tool_name":"*"}},
 {"id":"allow-elicitation","effect":"allow","conditions":{"mcp_method":"elicitation/create"}},
 {"id":"no-etc","effect":"deny","conditions":{"path_pattern":"/etc/**"}},
 {"id":"no-secret","effect":"deny","conditions":{"host":"secret"}},
 {"id":"ask-asked","effect":"hitl","conditions":{"host":"asked"}},
 {"id":"ask-home","effect":"hitl","conditions":{"path_pattern":"/home/**"}}]}"#;

#[derive(Default)]
struct Time(AtomicU64);

impl Clock for Time {
    fn wall_ms(&self) -> i64 {
        NOW_MS
    }
    fn mono_ns(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

struct Scene {
    gate: Gate,
    time: Arc<Time>,
    journal: Arc<Journal>,
    place: Place,
}

impl Scene {
    fn new(name: &str) -> Self {
        let place = Place::new(name);
        let journal = Arc::new(place.open());
        let time = Arc::new(Time::default());
        time.0.store(1_000 * MS, Ordering::Relaxed);
        let world = World {
            policy: Policy::load(POLICY, None, &[]).unwrap(),
            version: "v1".into(),
            limits: gate::limits::Limits::default(),
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

    fn pass_ms(&self, ms: u64) {
        self.time.0.fetch_add(ms * MS, Ordering::Relaxed);
    }

    fn admit(&self, facts: Facts, targets: Targets) -> Admission<Request> {
        at_last(self.admission(facts, targets))
    }

    fn admission(
        &self,
        facts: Facts,
        targets: Targets,
    ) -> impl Future<Output = Admission<Request>> {
        self.gate.admit(Call {
            caller: Caller::local("ada"),
            facts: facts.into(),
            origin: Box::new(Origin {
                request_id: "1".into(),
                session_id: "s".into(),
                received_ns: self.time.mono_ns(),
                ..Origin::default()
            }),
            targets,
            request: inspected(&self.gate, REQUEST),
        })
    }

    /// Bytes of the journal's files.
    fn written_bytes(&self) -> u64 {
        let entries = std::fs::read_dir(&self.place.directory).unwrap();
        entries.map(|e| e.unwrap().metadata().unwrap().len()).sum()
    }

    #[track_caller]
    fn permit(&self, facts: Facts, targets: impl Into<Targets>) -> Permit<Request> {
        match self.admit(facts, targets.into()) {
            Admission::Permit(permit) => permit,
            other => panic!("not permitted: {other:?}"),
        }
    }

    /// The records of calls.
    fn records(&self) -> Vec<Value> {
        self.journal.close(NOW_MS, "test").unwrap();
        let mut out = Vec::new();
        each(&self.place.directory, &Filter::default(), &mut |body| {
            let record: Value = serde_json::from_slice(body).unwrap();
            if record.get("op").is_some() {
                out.push(record);
            }
        })
        .unwrap();
        out
    }
}

fn a() -> PeerId {
    PeerId::server("a")
}

fn b() -> PeerId {
    PeerId::server("b")
}

fn facts() -> Facts {
    Facts {
        method: "tools/call".into(),
        tool_name: Fact::Known("read".into()),
        backend_id: "a".into(),
        resource_type: Some(ResourceType::Tool),
        paths: Fact::Known(Vec::new()),
        ..Facts::default()
    }
}

fn with_path(path: &str) -> Facts {
    use gate::paths::{PathArgument, Role, canonical::Meaning};
    let meaning = Meaning {
        places: vec![path.to_owned()],
        ..Meaning::default()
    };
    Facts {
        paths: Fact::Known(vec![PathArgument {
            role: Role::Path,
            text: path.to_owned(),
            meaning,
            content: false,
        }]),
        ..facts()
    }
}

#[test]
fn a_permit_for_one_peer_comes_back_unspent_at_another() {
    let scene = Scene::new("passes-peer");
    let permit = scene.permit(facts(), a());
    let permit = permit.spend(&b()).map(drop).unwrap_err();
    let permit = permit.spend(&PeerId::client("a")).map(drop).unwrap_err();
    assert_eq!(permit.request(), &REQUEST);
    let (spent, flight) = permit.spend(&a()).unwrap();
    // Nor can what was spent at the one be taken out by the other.
    let spent = spent.take(&b()).unwrap_err();
    let spent = flight.redirect(spent, &b()).unwrap_err();
    assert_eq!(spent.take(&a()).unwrap(), REQUEST);
    flight.finish(Outcome {
        status: Status::Success,
        ..Outcome::default()
    });
    // One that is only ever shown to the wrong peer has not been sent.
    let permit = scene.permit(facts(), a());
    drop(permit.spend(&b()).map(drop).unwrap_err());
    let records = scene.records();
    let ends: Vec<&Value> = records.iter().filter_map(|r| r.get("status")).collect();
    assert_eq!(ends, ["Success", "Aborted"]);
    assert!(
        records
            .iter()
            .all(|r| r["attempts"].is_null() && r["usage"].is_null())
    );
}

#[test]
fn the_protocols_own_traffic_and_answers_are_made_out_to_a_peer_as_well() {
    let scene = Scene::new("passes-control");
    let ping = scene.gate.control(ControlKind::Ping, &a(), ());
    let ping = ping.spend(&b()).map(drop).unwrap_err();
    assert!(ping.spend(&a()).is_ok());
    // A server asks its client: the request goes there, the answer to the server.
    let client = PeerId::client("s");
    let asks = Facts {
        method: "elicitation/create".into(),
        direction: Direction::ToClient,
        backend_id: "a".into(),
        ..Facts::default()
    };
    let permit = scene.permit(asks, &client);
    let permit = permit.spend(&a()).map(drop).unwrap_err();
    let (_, flight) = permit.spend(&client).unwrap();
    let answer = flight.answer("yes");
    let answer = answer.spend(&client).map(drop).unwrap_err();
    let answer = answer.spend(&b()).map(drop).unwrap_err();
    let (spent, flight) = answer.spend(&a()).unwrap();
    assert_eq!(
        (spent.op(), spent.take(&a()).unwrap()),
        (flight.op(), "yes")
    );
}

#[test]
fn a_second_target_takes_over_and_both_attempts_stand_in_the_record() {
    let scene = Scene::new("passes-attempts");
    let permit = scene.permit(facts(), Targets::any([a(), b()]));
    let (spent, mut flight) = permit.spend(&a()).unwrap();
    scene.pass_ms(3);
    flight.attempt(Attempt {
        peer: a(),
        model: None,
        status: Status::Failure,
        reason: Some(Unreachable.into()),
        duration: Micros::from_nanos(3 * MS),
    });
    let other = scene.permit(facts(), Targets::any([a(), b()]));
    let (foreign, _second) = other.spend(&a()).unwrap();
    assert!(flight.redirect(foreign, &b()).is_err());
    let spent = flight.redirect(spent, &b()).unwrap();
    assert_eq!(spent.take(&b()).unwrap(), REQUEST);
    for tokens in [7, 5] {
        flight.used(Usage {
            input_tokens: Some(tokens),
            cost_micros: Some(100),
            ..Usage::default()
        });
    }
    let op = flight.op().to_string();
    flight.finish(Outcome {
        status: Status::Success,
        ..Outcome::default()
    });
    let records = scene.records();
    let end = records
        .iter()
        .find(|r| r["op"] == op.as_str() && r["status"] == "Success");
    let end = end.unwrap();
    assert_eq!(
        end["attempts"],
        json!([{"peer":"a","status":"Failure","reason":"upstream_unreachable","duration_us":3000}])
    );
    assert_eq!(end["usage"], json!({"input_tokens":12,"cost_micros":200}));
}

#[test]
fn attempts_beyond_their_bound_are_counted() {
    let scene = Scene::new("passes-bound");
    let (_, mut flight) = scene.permit(facts(), a()).spend(&a()).unwrap();
    for _ in 0..gate::admit::ATTEMPTS_MAX + 2 {
        flight.attempt(Attempt {
            peer: a(),
            model: None,
            status: Status::Failure,
            reason: None,
            duration: Micros::default(),
        });
    }
    drop(flight);
    let records = scene.records();
    let end = records.iter().find(|r| r["status"] == "Cancelled").unwrap();
    let listed = end["attempts"].as_array().unwrap().len();
    assert_eq!((listed, &end["attempts_omitted"]), (16, &json!(2)));
}

#[test]
fn a_call_that_is_answered_here_was_never_sent() {
    let scene = Scene::new("passes-local");
    let flight = scene.permit(facts(), a()).answer_locally();
    scene.pass_ms(2);
    flight.finish(Outcome {
        status: Status::Success,
        ..Outcome::default()
    });
    drop(scene.permit(facts(), a()).answer_locally());
    let records = scene.records();
    let ends: Vec<&Value> = records
        .iter()
        .filter(|r| r.get("status").is_some())
        .collect();
    assert_eq!(
        (&ends[0]["status"], &ends[0]["upstream_us"]),
        (&json!("Success"), &json!(0))
    );
    assert_eq!(ends[1]["status"], "Cancelled");
}

#[test]
fn a_permit_can_be_taken_back_by_what_becomes_known_and_never_widened() {
    let scene = Scene::new("passes-narrow");
    let narrowed = |now: Facts| {
        let permit = scene.permit(facts(), a());
        permit
            .narrow(now)
            .map(drop)
            .map_err(|refusal| refusal.reason)
    };
    let subject = |facts: Facts| Facts {
        subject_id: "ada".into(),
        ..facts
    };
    assert_eq!(narrowed(subject(with_path("/tmp/x"))), Ok(()));
    assert_eq!(
        narrowed(subject(with_path("/etc/x"))),
        Err(Reason::DenyRule)
    );
    assert_eq!(
        narrowed(subject(with_path("/home/x"))),
        Err(Reason::ApprovalTooLate)
    );
    assert_eq!(narrowed(with_path("/tmp/x")), Err(Reason::FactsChanged));
    let other_tool = Facts {
        tool_name: Fact::Known("write".into()),
        ..subject(facts())
    };
    assert_eq!(narrowed(other_tool), Err(Reason::FactsChanged));
    let records = scene.records();
    let said = |r: &Value| {
        let word = |name: &str| r[name].as_str().map(str::to_owned);
        word("decision").or_else(|| word("status")).unwrap()
            + &word("reason")
                .map(|reason| format!(" {reason}"))
                .unwrap_or_default()
    };
    let told: Vec<String> = records.iter().map(said).collect();
    assert_eq!(
        told,
        [
            "allow",
            "Aborted",
            "allow",
            "deny denied_by_rule",
            "Aborted denied_by_rule",
            "allow",
            "hitl approval_too_late",
            "Aborted approval_too_late",
            "allow",
            "deny facts_changed",
            "Aborted facts_changed",
            "allow",
            "deny facts_changed",
            "Aborted facts_changed",
        ]
    );
}

#[test]
fn who_calls_is_who_was_identified_and_the_time_that_took_is_a_stage() {
    let scene = Scene::new("passes-identity");
    let admission = {
        let caller = Caller {
            identity_ns: 4_000,
            ..Caller::local("ada")
        };
        let mut future = std::pin::pin!(scene.gate.admit(Call {
            caller,
            facts: Box::new(Facts {
                subject_id: "somebody-else".into(),
                ..facts()
            }),
            origin: Box::new(Origin {
                received_ns: scene.time.mono_ns(),
                ..Origin::default()
            }),
            targets: a().into(),
            request: inspected(&scene.gate, REQUEST),
        }));
        future
            .as_mut()
            .poll(&mut Context::from_waker(Waker::noop()))
    };
    assert!(matches!(admission, Poll::Ready(Admission::Permit(_))));
    drop(admission);
    let records = scene.records();
    assert_eq!(records[0]["subject_id"], "ada");
    assert_eq!(records[1]["identity_us"], 4);
    assert_eq!(records[1]["duration_us"], 4);
    assert_eq!(records[1]["unexplained_us"], 0);
}

#[test]
fn a_call_at_several_machines_ends_at_each_as_it_did_there() {
    let scene = Scene::new("passes-ended-at");
    let ended = |status, code: Option<i64>| Outcome {
        status,
        error_code: code,
        ..Outcome::default()
    };
    let mut flight = scene.permit(facts(), a()).spend(&a()).unwrap().1;
    for host in ["web2", "web3", "web4"] {
        flight.beside(host, []).unwrap();
    }
    flight.ended_at("web2", ended(Status::Failure, Some(7)));
    // What was said first stays, and what was not judged is nowhere.
    flight.ended_at("web2", ended(Status::Success, None));
    flight.ended_at("web3", ended(Status::Aborted, None));
    flight.ended_at("nowhere", ended(Status::Failure, None));
    // Whoever goes away changes nothing of what was over.
    drop(flight);
    let records = scene.records();
    let mut ends: Vec<(&str, i64)> = records
        .iter()
        .filter_map(|r| Some((r["status"].as_str()?, r["error_code"].as_i64().unwrap_or(0))))
        .collect();
    ends.sort_unstable();
    assert_eq!(
        ends,
        [
            ("Aborted", 0),
            ("Cancelled", 0),
            ("Cancelled", 0),
            ("Failure", 7)
        ]
    );
}

#[test]
fn a_call_at_several_machines_is_judged_and_recorded_at_each() {
    let scene = Scene::new("passes-beside");
    let mut flight = scene.permit(facts(), a()).spend(&a()).unwrap().1;
    flight.beside("web2", []).unwrap();
    flight.beside("web3", []).unwrap();
    flight.finish(Outcome {
        status: Status::Success,
        ..Outcome::default()
    });
    let mut flight = scene.permit(facts(), a()).spend(&a()).unwrap().1;
    flight.beside("web2", []).unwrap();
    let refusal = flight.beside("secret", []).unwrap_err();
    assert_eq!(refusal.reason, Reason::DenyRule);
    // It is over: nothing more of it passes, however harmless.
    let refusal = flight.beside("web3", []).unwrap_err();
    assert_eq!(refusal.reason, Reason::FactsChanged);
    let refusal = flight.narrow(|_| ()).unwrap_err();
    assert_eq!(refusal.reason, Reason::FactsChanged);
    let mut flight = scene.permit(facts(), a()).spend(&a()).unwrap().1;
    let refusal = flight.beside("asked", []).unwrap_err();
    assert_eq!(refusal.reason, Reason::ApprovalTooLate);
    let records = scene.records();
    let count = |name: &str, is: &str| records.iter().filter(|r| r[name] == is).count();
    // Each decision that let pass has its end.
    assert_eq!(
        (count("decision", "allow"), count("decision", "deny")),
        (6, 1)
    );
    assert_eq!(
        (count("status", "Success"), count("status", "Aborted")),
        (3, 3)
    );
}

/// Polls a future once.
fn poll<F: Future>(future: std::pin::Pin<&mut F>) -> Poll<F::Output> {
    future.poll(&mut Context::from_waker(Waker::noop()))
}

#[test]
fn calls_that_come_together_are_recorded_by_one_write_before_any_passes() {
    let scene = Scene::new("passes-together");
    let other = scene.permit(facts(), a());
    let before = scene.written_bytes();
    let mut first = Box::pin(scene.admission(facts(), a().into()));
    let mut second = Box::pin(scene.admission(facts(), a().into()));
    assert!(poll(first.as_mut()).is_pending());
    assert!(poll(second.as_mut()).is_pending());
    assert_eq!(scene.written_bytes(), before);
    let Poll::Ready(Admission::Permit(_first)) = poll(first.as_mut()) else {
        panic!("it may pass");
    };
    let both = scene.written_bytes();
    assert!(both > before);
    let Poll::Ready(Admission::Permit(_second)) = poll(second.as_mut()) else {
        panic!("it may pass");
    };
    assert_eq!(scene.written_bytes(), both);
    drop(other);
}

#[test]
fn a_call_that_is_given_up_while_it_is_recorded_ends_as_aborted() {
    let scene = Scene::new("passes-given-up");
    let other = scene.permit(facts(), a());
    let mut given_up = Box::pin(scene.admission(facts(), a().into()));
    assert!(poll(given_up.as_mut()).is_pending());
    drop(given_up);
    drop(other);
    // Nothing is under way any more, so the next waits for nobody.
    let mut alone = Box::pin(scene.admission(facts(), a().into()));
    assert!(poll(alone.as_mut()).is_ready());
    drop(alone);
    let records = scene.records();
    let aborted = records.iter().filter(|r| r["status"] == "Aborted").count();
    assert_eq!((records.len(), aborted), (6, 3), "{records:#?}");
}
