//! The lab's person against control sockets that do not do what they should.

use super::approver::Approver;
use super::socket::ControlConnection;
use super::waiting::WaitingCalls;
use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::net::{UnixListener, UnixStream};
use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
use std::process::{Child, Command};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

const PATIENCE: Duration = Duration::from_secs(20);
const ASKED: &str = r#"{"item":{"asked":{"id":"abcdefgh","tool_name":"echo"}}}"#;
const TAKEN: &str = r#"{"ok":{"remembered":false}}"#;

/// A process that a variant could be, and a socket under its number.
struct Variant {
    directory: PathBuf,
    process: Child,
}

impl Variant {
    /// Starts a process with `news` for the watching connection and `answer` for every request on the others.
    fn new(news: &'static [&'static str], answer: &'static str, hold: bool) -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("lab-person-{}-{number}", std::process::id());
        let directory = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&directory).unwrap();
        let process = Command::new("sleep")
            .arg("60")
            .process_group(0)
            .spawn()
            .unwrap();
        let socket = directory.join(format!("mock-{}.sock", process.id()));
        let listener = UnixListener::bind(socket).unwrap();
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                std::thread::spawn(move || serve(&stream, news, answer, hold));
            }
        });
        Self { directory, process }
    }

    fn approver(&self) -> Approver {
        self.approver_of(Duration::ZERO, 1)
    }

    fn approver_of(&self, delay: Duration, at_once: usize) -> Approver {
        Approver::start(&self.directory, self.process.id(), delay, at_once).unwrap()
    }

    /// Waits until the process was ended.
    fn wait_for_end(&mut self) -> bool {
        let since = Instant::now();
        while since.elapsed() < PATIENCE {
            if self.process.try_wait().unwrap().is_some() {
                return true;
            }
            std::thread::park_timeout(Duration::from_millis(2));
        }
        false
    }
}

impl Drop for Variant {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
        let _ = std::fs::remove_dir_all(&self.directory);
    }
}

fn serve(stream: &UnixStream, news: &[&str], answer: &str, hold: bool) {
    let (mut out, lines) = (stream, BufReader::new(stream).lines());
    for line in lines.map_while(Result::ok) {
        if !line.contains("watch_approvals") {
            let _ = writeln!(out, "{answer}");
            continue;
        }
        for piece in news {
            let _ = writeln!(out, "{piece}");
        }
        if !hold {
            let _ = out.shutdown(std::net::Shutdown::Both);
            return;
        }
    }
}

#[test]
fn a_question_is_answered_and_its_time_kept() {
    let arm = Variant::new(
        &[ASKED, r#"{"item":{"ended":{"id":"abcdefgh"}}}"#, ASKED],
        TAKEN,
        true,
    );
    let approver = arm.approver();
    let since = Instant::now();
    while approver.count_held() < 2 && since.elapsed() < PATIENCE {
        std::thread::park_timeout(Duration::from_millis(2));
    }
    assert_eq!(approver.leave().unwrap().len(), 2);
}

#[test]
fn questions_that_are_open_together_wait_their_own_time_each() {
    const TEN: [&str; 10] = [ASKED; 10];
    let arm = Variant::new(&TEN, TAKEN, true);
    let approver = arm.approver_of(Duration::from_millis(200), 10);
    let since = Instant::now();
    while approver.count_held() < 10 && since.elapsed() < PATIENCE {
        std::thread::park_timeout(Duration::from_millis(2));
    }
    // One after the other, the last would have been answered after two seconds and not have been read before.
    let (all, held) = (since.elapsed(), approver.leave().unwrap());
    assert_eq!(held.len(), 10);
    assert!(all < Duration::from_secs(2), "{all:?}");
    assert!(held.iter().all(|us| *us >= 200_000.0), "{held:?}");
}

#[test]
fn an_approver_who_cannot_go_on_ends_the_arm_and_says_why() {
    let long = Box::leak("x".repeat(600 * 1024).into_boxed_str());
    let refused = r#"{"error":{"label":"busy","message":"too many connections"}}"#;
    let cases: [(&'static [&'static str], &'static str, bool, &str); 6] = [
        (&[], TAKEN, false, "was closed"),
        (&[ASKED], TAKEN, false, "was closed"),
        (&["hello"], TAKEN, true, "not understood"),
        (
            Box::leak(Box::new([&*long])),
            TAKEN,
            true,
            "longer than 512 KiB",
        ),
        (
            Box::leak(Box::new([refused])),
            TAKEN,
            true,
            "too many connections",
        ),
        (&[ASKED, ASKED], refused, true, "too many connections"),
    ];
    for (news, answer, hold, part) in cases {
        for at_once in [1, 8] {
            let mut arm = Variant::new(news, answer, hold);
            let approver = arm.approver_of(Duration::ZERO, at_once);
            assert!(arm.wait_for_end(), "{part}");
            let fault = approver.leave().unwrap_err();
            assert!(fault.contains(part), "{fault}");
        }
    }
}

#[test]
fn leaving_is_no_fault_and_ends_nothing() {
    let mut arm = Variant::new(&[ASKED], TAKEN, true);
    drop(arm.approver());
    arm.approver().leave().unwrap();
    assert!(arm.process.try_wait().unwrap().is_none());
}

#[test]
fn calls_that_do_not_wait_are_counted() {
    for (answer, part) in [
        (
            r#"{"ok":{"approvals_waiting":20}}"#,
            "20 calls wait for a person where 50 should",
        ),
        (r#"{"ok":{}}"#, "does not say how many"),
        (
            r#"{"error":{"label":"another_user","message":"only of the same user"}}"#,
            "same user",
        ),
    ] {
        let arm = Variant::new(&[], answer, true);
        let control = ControlConnection::of(&arm.directory, arm.process.id()).unwrap();
        let error = WaitingCalls::begin(control, 50, 50).unwrap_err();
        assert!(error.contains(part), "{error}");
    }
    let arm = Variant::new(&[], r#"{"ok":{"approvals_waiting":50}}"#, true);
    let control = ControlConnection::of(&arm.directory, arm.process.id()).unwrap();
    WaitingCalls::begin(control, 50, 50)
        .unwrap()
        .leave()
        .unwrap();
}

#[test]
fn a_missing_socket_is_looked_for_and_then_missed() {
    let arm = Variant::new(&[], TAKEN, true);
    let error = ControlConnection::of(&arm.directory, std::process::id()).map(drop);
    // Ours is the parent of the variant: its socket counts as a descendant's.
    error.unwrap();
    let error = ControlConnection::of(&arm.directory.join("none"), arm.process.id()).unwrap_err();
    assert!(error.contains("no control socket"), "{error}");
}
