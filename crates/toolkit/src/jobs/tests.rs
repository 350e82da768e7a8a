use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Command, Stdio};
use std::time::Duration;

use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::store::tests::Place;

const NOW: i64 = 1_795_232_289_123;
const SMALL: Bounds = Bounds {
    open_per_caller_max: 3,
    open_max: 5,
    running_per_caller_max: 2,
    queued_ms_max: 1_000,
    kept_ms: 10_000,
    kept_per_caller_max: 3,
    kept_max: 4,
};

fn new(caller: &str) -> NewJob {
    NewJob {
        caller: caller.to_owned(),
        kind: "count",
        request: json!({"to": 3}),
        timeout_ms: Some(500),
        retries_max: 1,
        recovery: Recovery::Fail,
        idempotency_key: None,
    }
}

fn keyed(caller: &str, key: &str, request: Value) -> NewJob {
    NewJob {
        request,
        idempotency_key: Some(key.to_owned()),
        ..new(caller)
    }
}

fn open(place: &Place, bounds: Bounds) -> Jobs {
    Jobs::open(place.open(), bounds, NOW).unwrap().0
}

fn claim(jobs: &Jobs, now_ms: i64) -> Claimed {
    jobs.claim(&["count"], now_ms).unwrap().unwrap()
}

fn label(error: JobError) -> &'static str {
    error.label()
}

#[test]
fn a_job_lives_from_submission_to_its_result() {
    let place = Place::new();
    let jobs = open(&place, Bounds::default());
    let submitted = jobs.submit(new("ada"), NOW).unwrap();
    assert!(submitted.is_new);
    assert_eq!(submitted.job.state, JobState::Queued);
    assert!(jobs.claim(&["other"], NOW).unwrap().is_none());
    let claimed = claim(&jobs, NOW + 5);
    assert_eq!(claimed.job.id, submitted.job.id);
    assert!(jobs.claim(&["count"], NOW).unwrap().is_none());
    let progress = JobProgress {
        done: 1.0,
        total: Some(3.0),
        message: Some("m".repeat(10_000)),
        began: 0.0,
    };
    assert_eq!(claimed.job.left_ms(NOW + 6), None, "nothing is done yet");
    jobs.progress(&claimed.attempt, progress).unwrap();
    let running = jobs.get("ada", &submitted.job.id).unwrap();
    // A third took 4 ms.
    assert_eq!(running.left_ms(NOW + 9), Some(8.0));
    // A clock that was set back makes no negative time.
    assert_eq!(running.left_ms(NOW), Some(0.0));
    let end = End::Succeeded(json!({"n": 3}));
    jobs.finish(&claimed.attempt, end.clone(), NOW + 10)
        .unwrap();
    let job = jobs.get("ada", &submitted.job.id).unwrap();
    assert_eq!(job.state, JobState::Succeeded);
    assert_eq!(
        (job.started_ms, job.finished_ms),
        (Some(NOW + 5), Some(NOW + 10))
    );
    assert_eq!(job.result, Some(json!({"n": 3})));
    assert_eq!(job.left_ms(NOW + 20), None, "it has ended");
    assert_eq!(job.progress.message.unwrap().len(), 4_096);
    let late = jobs.finish(&claimed.attempt, end, NOW + 20).map_err(label);
    assert_eq!(late.unwrap_err(), "job_superseded");
}

#[test]
fn a_job_is_its_callers_alone() {
    let place = Place::new();
    let jobs = open(&place, Bounds::default());
    let job = jobs.submit(keyed("ada", "k", json!(1)), NOW).unwrap().job;
    for caller in ["bob", "", "ada\0", "ad"] {
        assert_eq!(
            jobs.get(caller, &job.id).map_err(label),
            Err("job_not_found")
        );
        assert_eq!(
            jobs.cancel(caller, &job.id, NOW).map_err(label),
            Err("job_not_found")
        );
        assert_eq!(
            jobs.watch(caller, &job.id).map(drop).map_err(label),
            Err("job_not_found")
        );
        assert!(jobs.list(caller, None, 10).unwrap().jobs.is_empty());
    }
    // Nor does another caller's key stand in the way.
    assert!(
        jobs.submit(keyed("bob", "k", json!(2)), NOW)
            .unwrap()
            .is_new
    );
    assert_eq!(
        jobs.get("ada", &JobId::of("job_none")).map_err(label),
        Err("job_not_found")
    );
}

#[test]
fn the_same_key_gives_the_same_job_and_another_payload_conflicts() {
    let place = Place::new();
    let jobs = open(&place, Bounds::default());
    let request: Value = serde_json::from_str(r#"{"a":1,"b":[1,2]}"#).unwrap();
    let first = jobs.submit(keyed("ada", "k", request), NOW).unwrap().job;
    let turned: Value = serde_json::from_str(r#"{"b":[1,2],"a":1}"#).unwrap();
    let claimed = claim(&jobs, NOW);
    let again = jobs.submit(keyed("ada", "k", turned.clone()), NOW).unwrap();
    assert!(!again.is_new);
    assert_eq!(
        (&again.job.id, again.job.state),
        (&first.id, JobState::Running)
    );
    for other in [
        json!({"a": 1, "b": [2, 1]}),
        json!({"a": 1.5, "b": [1, 2]}),
        json!({}),
    ] {
        let conflict = jobs.submit(keyed("ada", "k", other), NOW).unwrap_err();
        assert!(matches!(conflict, JobError::Conflict { job } if job == first.id));
    }
    let kind = NewJob {
        kind: "other",
        ..keyed("ada", "k", turned.clone())
    };
    assert_eq!(
        jobs.submit(kind, NOW).map_err(label),
        Err("idempotency_conflict")
    );
    jobs.finish(&claimed.attempt, End::Succeeded(json!(7)), NOW)
        .unwrap();
    drop(jobs);
    // Also after a restart and after the end, as long as the job is kept.
    let jobs = open(&place, Bounds::default());
    let again = jobs.submit(keyed("ada", "k", turned.clone()), NOW).unwrap();
    assert_eq!((again.is_new, again.job.result), (false, Some(json!(7))));
    let kept_ms = i64::try_from(Bounds::default().kept_ms).unwrap();
    jobs.sweep(NOW + kept_ms + 1).unwrap();
    assert!(jobs.submit(keyed("ada", "k", turned), NOW).unwrap().is_new);
    let long = keyed("ada", &"k".repeat(KEY_BYTES_MAX + 1), json!(0));
    assert_eq!(jobs.submit(long, NOW).map_err(label), Err("job_too_long"));
}

#[test]
fn who_has_the_fewest_running_comes_first_however_much_others_have_asked_for() {
    let place = Place::new();
    let jobs = open(&place, Bounds::default());
    let asked = ["ada", "ada", "ada", "ada", "bob", "bob", "eve"];
    for (after_ms, caller) in (0..).zip(asked) {
        jobs.submit(new(caller), NOW + after_ms).unwrap();
    }
    let callers: Vec<String> = (0..7).map(|_| claim(&jobs, NOW + 10).job.caller).collect();
    assert_eq!(callers, ["ada", "bob", "eve", "ada", "bob", "ada", "ada"]);
}

#[test]
fn no_job_begins_before_it_was_asked_for_nor_ends_before_it_began() {
    let place = Place::new();
    let jobs = open(&place, Bounds::default());
    jobs.submit(new("ada"), NOW).unwrap();
    let claimed = claim(&jobs, NOW - 3);
    assert_eq!(claimed.job.started_ms, Some(NOW));
    let end = End::Succeeded(json!(7));
    let ended = jobs.finish(&claimed.attempt, end, NOW - 3).unwrap();
    assert_eq!(ended.finished_ms, Some(NOW));
}

#[test]
fn quotas_hold_at_exactly_their_number() {
    let place = Place::new();
    let jobs = open(&place, SMALL);
    let ada: Vec<_> = (0..3)
        .map(|_| jobs.submit(new("ada"), NOW).unwrap().job)
        .collect();
    let full = jobs.submit(new("ada"), NOW).unwrap_err();
    assert_eq!(
        (full.label(), full.is_retryable()),
        ("too_many_jobs_of_caller", true)
    );
    for _ in 0..2 {
        jobs.submit(new("bob"), NOW).unwrap();
    }
    assert_eq!(
        jobs.submit(new("eve"), NOW).map_err(label),
        Err("too_many_jobs")
    );
    // Two of ada's run; her third waits while bob's, submitted later, are taken.
    let callers: Vec<String> = (0..4).map(|_| claim(&jobs, NOW).job.caller).collect();
    assert_eq!(callers.iter().filter(|c| *c == "ada").count(), 2);
    assert!(jobs.claim(&["count"], NOW).unwrap().is_none());
    let waits = ada.iter().map(|job| jobs.get("ada", &job.id).unwrap());
    let waits: Vec<_> = waits.filter(|job| job.state == JobState::Queued).collect();
    assert_eq!(waits.len(), 1);
    jobs.cancel("ada", &waits[0].id, NOW).unwrap();
    assert!(
        jobs.submit(new("ada"), NOW).unwrap().is_new,
        "there is room again"
    );
}

#[test]
fn cancelling_ends_what_waits_and_tells_what_runs() {
    let place = Place::new();
    let jobs = open(&place, Bounds::default());
    let waits = jobs.submit(new("ada"), NOW).unwrap().job.id;
    let job = jobs.cancel("ada", &waits, NOW + 1).unwrap();
    assert_eq!(
        (job.state, job.finished_ms),
        (JobState::Cancelled, Some(NOW + 1))
    );
    assert!(jobs.claim(&["count"], NOW).unwrap().is_none());

    let runs = jobs.submit(new("ada"), NOW).unwrap().job.id;
    let claimed = claim(&jobs, NOW);
    assert!(!claimed.cancel.is_cancelled());
    let job = jobs.cancel("ada", &runs, NOW).unwrap();
    assert!(job.state == JobState::Running && job.cancel_requested);
    assert!(claimed.cancel.is_cancelled());
    let job = jobs.finish(&claimed.attempt, End::Cancelled, NOW).unwrap();
    assert_eq!(job.state, JobState::Cancelled);
    let after = jobs.cancel("ada", &runs, NOW + 9).unwrap();
    assert_eq!(after, job, "a job that has ended stays as it is");
}

#[test]
fn failures_that_may_go_away_are_tried_again_so_often() {
    let place = Place::new();
    let jobs = open(&place, Bounds::default());
    let id = jobs.submit(new("ada"), NOW).unwrap().job.id;
    let first = claim(&jobs, NOW);
    jobs.checkpoint(&first.attempt, json!({"at": 2})).unwrap();
    let fault = JobFault::new("engine", "the engine stopped".repeat(1_000));
    let job = jobs
        .finish(&first.attempt, End::Retryable(fault.clone()), NOW)
        .unwrap();
    assert_eq!(job.state, JobState::Queued);
    let second = claim(&jobs, NOW + 1);
    assert_eq!(
        (second.attempt.number, second.job.started_ms),
        (2, Some(NOW))
    );
    assert_eq!(second.job.checkpoint, Some(json!({"at": 2})));
    // The first attempt's worker is too late for everything.
    for late in [
        jobs.progress(&first.attempt, JobProgress::default()),
        jobs.checkpoint(&first.attempt, json!(0)),
        jobs.finish(&first.attempt, End::Succeeded(json!(0)), NOW)
            .map(drop),
    ] {
        assert_eq!(late.map_err(label), Err("job_superseded"));
    }
    let job = jobs
        .finish(&second.attempt, End::Retryable(fault), NOW)
        .unwrap();
    assert_eq!((job.state, job.id), (JobState::Failed, id));
    assert_eq!(job.fault.unwrap().message.len(), 4_096);
    let cancelled = jobs.submit(new("ada"), NOW).unwrap().job.id;
    let claimed = claim(&jobs, NOW);
    jobs.cancel("ada", &cancelled, NOW).unwrap();
    let fault = JobFault::new("engine", "it stopped");
    let job = jobs
        .finish(&claimed.attempt, End::Retryable(fault), NOW)
        .unwrap();
    assert_eq!(job.state, JobState::Failed, "nobody wants it any more");
    // One that is tried again and then cancelled did not end in what came before.
    let again = jobs.submit(new("ada"), NOW).unwrap().job.id;
    let claimed = claim(&jobs, NOW);
    let fault = JobFault::new("engine", "it stopped");
    let job = jobs
        .finish(&claimed.attempt, End::Retryable(fault), NOW)
        .unwrap();
    assert_eq!((job.state, job.fault.is_some()), (JobState::Queued, true));
    let claimed = claim(&jobs, NOW);
    jobs.cancel("ada", &again, NOW).unwrap();
    let job = jobs.finish(&claimed.attempt, End::Cancelled, NOW).unwrap();
    assert_eq!((job.state, job.fault), (JobState::Cancelled, None));
}

#[test]
fn what_takes_too_long_ends_and_its_worker_is_told() {
    let place = Place::new();
    let jobs = open(&place, SMALL);
    let runs = jobs.submit(new("ada"), NOW).unwrap().job.id;
    let claimed = claim(&jobs, NOW + 100);
    let waits = jobs.submit(new("ada"), NOW + 100).unwrap().job.id;
    assert_eq!(jobs.sweep(NOW + 600).unwrap(), Swept::default());
    assert_eq!(
        jobs.sweep(NOW + 601).unwrap().timed_out,
        std::slice::from_ref(&runs)
    );
    assert!(claimed.cancel.is_cancelled());
    let job = jobs.get("ada", &runs).unwrap();
    assert_eq!(
        (job.state, job.fault.unwrap().code),
        (JobState::Timeout, "timeout".into())
    );
    assert_eq!(jobs.sweep(NOW + 1_101).unwrap().timed_out, [waits]);
    let late = jobs.finish(&claimed.attempt, End::Succeeded(json!(1)), NOW + 700);
    assert_eq!(late.map_err(label), Err("job_superseded"));
}

#[test]
fn ended_jobs_are_kept_by_age_and_number() {
    let place = Place::new();
    let jobs = open(&place, SMALL);
    let end = |caller: &str, now_ms| {
        let id = jobs.submit(new(caller), now_ms).unwrap().job.id;
        jobs.cancel(caller, &id, now_ms).unwrap();
        id
    };
    let ada: Vec<_> = (0..4).map(|n| end("ada", NOW + n)).collect();
    assert!(
        jobs.get("ada", &ada[0]).is_err(),
        "three of a caller are kept"
    );
    let bob: Vec<_> = (0..2).map(|n| end("bob", NOW + 10 + n)).collect();
    // Five are there, four may be.
    assert_eq!(jobs.sweep(NOW + 20).unwrap().removed, [ada[1].clone()]);
    assert_eq!(jobs.sweep(NOW + 10_010).unwrap().removed.len(), 2);
    assert!(jobs.get("bob", &bob[0]).is_ok());
    assert_eq!(jobs.sweep(NOW + 20_000).unwrap().removed, bob);
    assert!(jobs.list("ada", None, 10).unwrap().jobs.is_empty());
}

#[test]
fn lists_come_in_pages_that_a_new_job_does_not_shift() {
    let place = Place::new();
    let jobs = open(&place, Bounds::default());
    let ids: Vec<_> = (0..7)
        .map(|n| jobs.submit(new("ada"), NOW + n).unwrap().job.id)
        .collect();
    jobs.submit(new("adaa"), NOW).unwrap();
    let mut seen = Vec::new();
    let mut from: Option<Vec<u8>> = None;
    loop {
        let page = jobs.list("ada", from.as_deref(), 3).unwrap();
        seen.extend(page.jobs.into_iter().map(|job| job.id));
        let Some(next) = page.next else { break };
        from = Some(next);
    }
    assert_eq!(seen, ids);
}

#[test]
fn a_restart_settles_what_was_running_as_each_job_says() {
    let place = Place::new();
    let jobs = open(
        &place,
        Bounds {
            running_per_caller_max: 9,
            ..Bounds::default()
        },
    );
    let start = |recovery| {
        let id = jobs
            .submit(
                NewJob {
                    recovery,
                    ..new("ada")
                },
                NOW,
            )
            .unwrap()
            .job
            .id;
        (id, claim(&jobs, NOW))
    };
    let (fail, _) = start(Recovery::Fail);
    let (retry, claimed) = start(Recovery::Retry);
    let (adopt, before) = start(Recovery::Adopt);
    let (given_up, _) = start(Recovery::Retry);
    jobs.checkpoint(&claimed.attempt, json!([1, 2])).unwrap();
    jobs.cancel("ada", &given_up, NOW).unwrap();
    let waits = jobs.submit(new("ada"), NOW).unwrap().job.id;
    drop(jobs);
    let (jobs, recovered) = Jobs::open(place.open(), Bounds::default(), NOW + 9).unwrap();
    assert_eq!(
        (recovered.failed, recovered.queued),
        (vec![fail.clone()], vec![retry.clone()])
    );
    let job = jobs.get("ada", &fail).unwrap();
    assert_eq!(
        (job.state, job.fault.unwrap().code),
        (JobState::Failed, "interrupted".into())
    );
    assert_eq!(
        jobs.get("ada", &given_up).unwrap().state,
        JobState::Cancelled
    );
    let adopted = &recovered.adopted[0];
    assert_eq!(
        (&adopted.job.id, adopted.job.state),
        (&adopt, JobState::Running)
    );
    assert!(
        jobs.finish(&before.attempt, End::Cancelled, NOW).is_err(),
        "an older worker"
    );
    jobs.finish(&adopted.attempt, End::Succeeded(json!(0)), NOW)
        .unwrap();
    let next: BTreeSet<_> = (0..2)
        .map(|_| claim(&jobs, NOW).job)
        .map(|job| (job.id, job.checkpoint.is_some()))
        .collect();
    assert_eq!(next, BTreeSet::from([(retry, true), (waits, false)]));
}

#[test]
fn a_job_that_ends_the_process_each_time_is_given_up() {
    let place = Place::new();
    let new = NewJob {
        recovery: Recovery::Retry,
        ..new("ada")
    };
    let id = open(&place, Bounds::default())
        .submit(new, NOW)
        .unwrap()
        .job
        .id;
    for _ in 0..INTERRUPTIONS_MAX {
        claim(&open(&place, Bounds::default()), NOW);
    }
    let jobs = open(&place, Bounds::default());
    claim(&jobs, NOW);
    drop(jobs);
    let job = open(&place, Bounds::default()).get("ada", &id).unwrap();
    assert_eq!(
        (job.state, job.attempts),
        (JobState::Failed, INTERRUPTIONS_MAX + 1)
    );
}

/// Started by the test below in a directory of its own; works until it is killed.
#[test]
#[ignore = "a part of jobs_survive_kill_9"]
fn worker_that_is_killed() {
    let place = Place("store".into());
    let jobs = open(&place, Bounds::default());
    let new = NewJob {
        recovery: Recovery::Retry,
        retries_max: 0,
        timeout_ms: None,
        ..keyed("ada", "k", json!(1))
    };
    jobs.submit(new, NOW).unwrap();
    let claimed = claim(&jobs, NOW);
    let from = claimed.job.checkpoint.and_then(|c| c.as_u64()).unwrap_or(0);
    for chunk in from + 1..u64::MAX {
        jobs.checkpoint(&claimed.attempt, chunk.into()).unwrap();
        println!("chunk {chunk}");
        std::io::stdout().flush().unwrap();
    }
    std::mem::forget(place);
}

#[test]
fn jobs_survive_kill_9() {
    let place = Place::new();
    std::fs::create_dir_all(&place.0).unwrap();
    let mut last = 0;
    for _ in 0..3 {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args([
                "--exact",
                "--ignored",
                "--nocapture",
                "jobs::tests::worker_that_is_killed",
            ])
            .current_dir(&place.0)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let chunks: Vec<u64> = lines
            .filter_map(|line| Some(line.unwrap().rsplit_once("chunk ")?.1.parse().unwrap()))
            .take(5)
            .collect();
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(
            chunks.len() == 5 && chunks[0] > last,
            "{chunks:?} goes on after {last}"
        );
        last = chunks[4];
    }
    let place = Place(place.0.join("store"));
    let (jobs, recovered) = Jobs::open(place.open(), Bounds::default(), NOW).unwrap();
    assert_eq!(recovered.queued.len(), 1);
    let page = jobs.list("ada", None, 10).unwrap();
    assert_eq!(
        (page.jobs.len(), page.jobs[0].attempts),
        (1, 3),
        "one job, under one key"
    );
    assert!(page.jobs[0].checkpoint.as_ref().unwrap().as_u64() >= Some(last));
}

#[tokio::test]
async fn who_watches_is_told_of_each_change_and_of_the_end() {
    let place = Place::new();
    let jobs = open(&place, Bounds::default());
    let id = jobs.submit(new("ada"), NOW).unwrap().job.id;
    let mut watch = jobs.watch("ada", &id).unwrap();
    let claimed = claim(&jobs, NOW);
    assert!(watch.changed().await);
    let none = tokio::time::timeout(Duration::from_millis(5), watch.changed()).await;
    assert!(none.is_err(), "nothing more has changed");
    jobs.progress(&claimed.attempt, JobProgress::default())
        .unwrap();
    assert!(watch.changed().await);
    jobs.finish(&claimed.attempt, End::Succeeded(json!(1)), NOW)
        .unwrap();
    assert!(watch.changed().await, "the end is a change");
    assert!(!watch.changed().await, "and the last one");
}

#[derive(Debug, Clone)]
enum Step {
    Submit {
        caller: u8,
        key: Option<u8>,
        request: u8,
    },
    Claim,
    Finish(u8, u8),
    Cancel {
        caller: u8,
        job: u8,
    },
    Pass(u16),
    Restart,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => (0..3_u8, prop::option::of(0..3_u8), 0..2_u8)
            .prop_map(|(caller, key, request)| Step::Submit { caller, key, request }),
        4 => Just(Step::Claim),
        3 => (any::<u8>(), 0..5_u8).prop_map(|(at, end)| Step::Finish(at, end)),
        2 => (0..3_u8, any::<u8>()).prop_map(|(caller, job)| Step::Cancel { caller, job }),
        2 => (0..700_u16).prop_map(Step::Pass),
        1 => Just(Step::Restart),
    ]
}

fn caller(number: u8) -> String {
    ["ada", "bob", "ada\0bob"][usize::from(number)].to_owned()
}

/// What must hold after every step.
fn check(jobs: &Jobs, before: &mut BTreeMap<JobId, (String, JobState, u32)>) {
    let mut open = 0;
    let mut ended = 0;
    for number in 0..3 {
        let caller = caller(number);
        let page = jobs.list(&caller, None, 100).unwrap();
        let running = page
            .jobs
            .iter()
            .filter(|job| job.state == JobState::Running)
            .count();
        let waiting = page
            .jobs
            .iter()
            .filter(|job| job.state == JobState::Queued)
            .count();
        assert!(running <= SMALL.running_per_caller_max);
        assert!(running + waiting <= SMALL.open_per_caller_max);
        open += running + waiting;
        ended += page.jobs.len() - running - waiting;
        assert!(page.jobs.len() - running - waiting <= SMALL.kept_per_caller_max);
        for job in page.jobs {
            assert_eq!(job.caller, caller);
            assert_eq!(job.finished_ms.is_some(), job.state.is_end());
            if let Some((owner, was, attempts)) = before.get(&job.id) {
                assert_eq!(*owner, job.caller);
                let retried = *was == JobState::Running && job.attempts > *attempts;
                assert!(
                    *was == job.state || retried || was.may_become(job.state) || !was.is_end(),
                    "{was:?} {:?}",
                    job.state
                );
                assert!(!was.is_end() || *was == job.state, "an end stays");
            }
            before.insert(job.id, (job.caller, job.state, job.attempts));
        }
    }
    assert!(open <= SMALL.open_max);
    let counted: Result<_, JobError> = jobs.store.kv().read(|s| {
        Ok((
            index::open_count(s)?,
            index::ended_count(s)?,
            index::waiting(s, 100)?.len(),
        ))
    });
    let (open_counted, ended_counted, waiting) = counted.unwrap();
    assert_eq!(
        (open_counted, ended_counted),
        (open as u64, ended as u64),
        "the indexes agree with the records"
    );
    assert_eq!(
        waiting,
        before
            .values()
            .filter(|(_, state, _)| *state == JobState::Queued)
            .count()
    );
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn records_indexes_quotas_and_states_agree_whatever_happens(steps in prop::collection::vec(step(), 1..60)) {
        let place = Place::new();
        let mut jobs = open(&place, SMALL);
        let mut now = NOW;
        let mut attempts: Vec<Attempt> = Vec::new();
        let mut ids: Vec<JobId> = Vec::new();
        let mut before: BTreeMap<JobId, (String, JobState, u32)> = BTreeMap::new();
        for step in steps {
            match step {
                Step::Submit { caller: owner, key, request } => {
                    let new = NewJob {
                        request: request.into(),
                        idempotency_key: key.map(|key| key.to_string()),
                        recovery: [Recovery::Fail, Recovery::Retry, Recovery::Adopt][usize::from(request) % 3],
                        ..new(&caller(owner))
                    };
                    ids.extend(jobs.submit(new, now).ok().map(|submitted| submitted.job.id));
                }
                Step::Claim => attempts.extend(jobs.claim(&["count"], now).unwrap().map(|c| c.attempt)),
                Step::Finish(at, end) if !attempts.is_empty() => {
                    let attempt = &attempts[usize::from(at) % attempts.len()];
                    let fault = JobFault::new("x", "y");
                    let end = match end {
                        0 => End::Succeeded(json!(1)),
                        1 => End::Retryable(fault),
                        2 => End::Failed(fault),
                        3 => End::Cancelled,
                        _ => End::TimedOut,
                    };
                    let _ = jobs.finish(attempt, end, now);
                }
                Step::Cancel { caller: owner, job } if !ids.is_empty() => {
                    let _ = jobs.cancel(&caller(owner), &ids[usize::from(job) % ids.len()], now);
                }
                Step::Pass(ms) => {
                    now += i64::from(ms);
                    let removed = jobs.sweep(now).unwrap().removed;
                    before.retain(|id, _| !removed.contains(id));
                }
                Step::Restart => {
                    drop(jobs);
                    jobs = open(&place, SMALL);
                }
                Step::Finish(..) | Step::Cancel { .. } => {}
            }
            // What a caller's own newer jobs pushed out.
            before.retain(|id, (owner, _, _)| jobs.get(owner, id).is_ok());
            check(&jobs, &mut before);
        }
    }
}
