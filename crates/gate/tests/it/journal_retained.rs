//! Several processes write one directory and let old segments go, and each is killed at some moment.

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, ChildStdout, Command, Stdio};

use crate::journal_support::{Place, decision, operation, random};
use gate::journal::audit::{Anchors, Verdict, verify_against};
use gate::journal::{Journal, JournalOptions, Record, SyncPolicy};

/// Processes at once, and how often one of them is killed and another begun.
const WRITERS: usize = 3;
const ROUNDS: usize = 40;

fn options() -> JournalOptions {
    JournalOptions {
        sync: SyncPolicy::Never,
        segment_bytes_max: 16 << 10,
        retain_bytes_max: Some(48 << 10),
        ..JournalOptions::default()
    }
}

/// One of the writers; by itself it does nothing. It says a line for each call.
#[test]
fn retaining_process() {
    let Some(place) = Place::handed_over() else {
        return;
    };
    let now_ms = || {
        let since = std::time::UNIX_EPOCH.elapsed().unwrap();
        i64::try_from(since.as_millis()).unwrap()
    };
    let random = &mut random();
    let journal = Journal::open(
        &place.directory,
        &place.keys,
        options(),
        [7; 16],
        now_ms(),
        random,
    );
    let journal = journal.unwrap();
    let mut out = std::io::stdout();
    for op in 1.. {
        let call = [
            Record::Decision(&decision(op)),
            Record::Operation(&operation(op)),
        ];
        for record in call {
            journal.append(now_ms(), &record).unwrap();
        }
        journal.tick(now_ms()).unwrap();
        writeln!(out, "called").unwrap();
    }
}

struct Writer {
    process: Child,
    calls: BufReader<ChildStdout>,
}

impl Writer {
    fn start(place: &Place) -> Self {
        let test = "journal_retained::retaining_process";
        let script = format!("exec {}", place.hand_over(test));
        let mut process = Command::new("sh")
            .args(["-c", &script])
            .stdout(Stdio::piped())
            .stderr(Stdio::inherit())
            .spawn()
            .unwrap();
        let calls = BufReader::new(process.stdout.take().unwrap());
        Self { process, calls }
    }

    /// Waits for so many calls.
    fn called(&mut self, count: u64) {
        let mut line = String::new();
        let mut seen = 0;
        while seen < count {
            line.clear();
            assert_ne!(
                self.calls.read_line(&mut line).unwrap(),
                0,
                "a writer failed"
            );
            seen += u64::from(line == "called\n");
        }
    }

    fn kill(mut self) {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
    }
}

/// Segments that last a millisecond come and go during a look; what is truly wrong is so at every one of them.
fn nothing_looks_tampered(place: &Place, looks: usize) {
    let head = place.head();
    let anchors = Anchors {
        head: Some(&head),
        witness: None,
    };
    let trusted = [place.kept_keys().public()];
    let mut reports =
        (0..looks).map(|_| verify_against(&place.directory, &trusted, &anchors).unwrap());
    let is_well = reports.any(|report| report.verdict() != Verdict::Tampered);
    let now = verify_against(&place.directory, &trusted, &anchors);
    assert!(is_well, "{now:#?}");
}

#[test]
fn writers_that_let_segments_go_and_are_killed_at_any_moment_leave_nothing_that_looks_tampered() {
    let place = Place::kept("retained");
    let mut writers: Vec<Writer> = Vec::new();
    let mut drawn = 0x9e37_79b9_7f4a_7c15_u64;
    for _ in 0..ROUNDS {
        while writers.len() < WRITERS {
            writers.push(Writer::start(&place));
        }
        drawn ^= drawn << 13;
        drawn ^= drawn >> 7;
        drawn ^= drawn << 17;
        let at = usize::try_from(drawn % 3).unwrap();
        writers[at].called(1 + drawn % 97);
        nothing_looks_tampered(&place, 10);
        writers.swap_remove(at).kill();
        nothing_looks_tampered(&place, 10);
    }
    writers.into_iter().for_each(Writer::kill);
    nothing_looks_tampered(&place, 1);
    let kept: u64 = place
        .files()
        .iter()
        .map(|file| file.metadata().unwrap().len())
        .sum();
    assert!(kept < 400 << 10, "{kept}");
}
