//! A started variant: its pipes, the end of its standard error, and how it is ended.

use super::guard::TimeoutGuard;
use super::reaper;
use super::scratch::{self, ScratchDirectory};
use crate::error::LabError;
use crate::variant::Variant;
use crate::{interrupt, processes};
use std::collections::VecDeque;
use std::io::{self, Read};
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// How much of its standard error is kept, in bytes.
const COMPLAINT_BYTES_MAX: usize = 2 * 1024;
/// How long a child may take to end after its input is closed.
const FAREWELL: Duration = Duration::from_secs(5);
/// How often an ending child is looked at.
const GLANCE: Duration = Duration::from_millis(1);

/// A child process.
#[derive(Debug)]
pub(crate) struct ChildProcess {
    pub(super) arm: String,
    pub(super) spawned: Instant,
    pub(super) guard: TimeoutGuard,
    child: ProcessGroupGuard,
    complaint: StderrTail,
    /// Removed once the process has ended.
    _scratch: Option<ScratchDirectory>,
}

/// A child process with the pipes on its standard input and output.
#[derive(Debug)]
pub(crate) struct PipedChild {
    pub(crate) process: ChildProcess,
    pub(crate) input: ChildStdin,
    pub(crate) output: ChildStdout,
}

/// Killed with its whole group when it is dropped before it ended.
#[derive(Debug)]
struct ProcessGroupGuard(Child);

#[derive(Debug)]
struct StderrTail {
    tail: Tail,
    reader: Option<JoinHandle<()>>,
}

/// What would lead the control socket out of the state directory, to where people look for questions.
const RUNTIME_VARIABLE: &str = "XDG_RUNTIME_DIR";
/// Variable of the configuration's directory, which is made if absent.
const CONFIG_VARIABLE: &str = "XDG_CONFIG_HOME";

/// The end of what was written.
type Tail = Arc<Mutex<VecDeque<u8>>>;

/// Starts a variant in a process group of its own. It inherits the processor affinity of this thread.
pub(crate) fn spawn(arm: &Variant, timeout_ms: u64) -> Result<PipedChild, LabError> {
    let failed = |source| LabError::Spawn {
        arm: arm.name.clone(),
        program: arm.program().to_string_lossy().into_owned(),
        source,
    };
    let spawned = Instant::now();
    let mut command = Command::new(arm.program());
    if let Some(home) = arm.home() {
        command.env_remove(RUNTIME_VARIABLE);
        command.env(CONFIG_VARIABLE, home);
    }
    let scratch = ScratchDirectory::of(arm)?;
    if let Some(scratch) = &scratch {
        command.env(scratch::VARIABLE, scratch.folder());
    }
    let mut child = ProcessGroupGuard(
        command
            .args(arm.arguments())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0)
            .spawn()
            .map_err(failed)?,
    );
    reaper::keep(child.0.id());
    let pipes = (
        child.0.stdin.take(),
        child.0.stdout.take(),
        child.0.stderr.take(),
    );
    let (Some(input), Some(output), Some(errors)) = pipes else {
        return Err(failed(io::ErrorKind::BrokenPipe.into()));
    };
    let guard = TimeoutGuard::start(child.0.id(), timeout_ms);
    Ok(PipedChild {
        process: ChildProcess {
            arm: arm.name.clone(),
            spawned,
            guard,
            child,
            complaint: StderrTail::collect(errors),
            _scratch: scratch,
        },
        input,
        output,
    })
}

impl ChildProcess {
    /// Its number.
    pub(crate) fn pid(&self) -> u32 {
        self.child.0.id()
    }

    /// Returns why a call came to no answer.
    pub(super) fn fault(&mut self, asked: &str, error: &io::Error) -> LabError {
        if self.guard.has_fired() && interrupt::is_asked() {
            return LabError::Aborted;
        }
        if self.guard.has_fired() {
            return LabError::Silent {
                arm: self.arm.clone(),
                asked: asked.into(),
                waited_ms: self.guard.limit_ms,
            };
        }
        let gone = matches!(
            error.kind(),
            io::ErrorKind::UnexpectedEof | io::ErrorKind::BrokenPipe
        );
        let what = if gone {
            match self.child.wait(Duration::from_secs(1)) {
                Some(status) => format!("the server ended during {asked} ({status})"),
                None => format!("the server closed its output during {asked}"),
            }
        } else {
            format!("{asked} failed: {error}")
        };
        self.broken_error(what)
    }

    /// Waits for its end, which was asked for by closing its input.
    pub(crate) fn close(mut self) {
        // Who does not end by himself is ended when `child` is dropped.
        let _ = self.child.wait(FAREWELL);
    }

    /// Asks it by a signal to end, and waits for that.
    pub(super) fn terminate(self) {
        processes::terminate(self.pid());
        self.close();
    }

    /// How it ended, if it did.
    pub(super) fn exit_status(&mut self) -> Option<std::process::ExitStatus> {
        self.child.0.try_wait().ok().flatten()
    }

    /// Takes what else it writes to its output, so that it never waits for a reader.
    pub(super) fn drain(&self, output: ChildStdout) {
        // The thread ends with the pipe.
        keep_tail(output, Arc::clone(&self.complaint.tail));
    }

    /// Returns a fault of the variant with the end of what it wrote.
    pub(super) fn broken_error(&mut self, mut what: String) -> LabError {
        let said = self.complaint.text();
        if !said.is_empty() {
            what.push_str("; its standard error ends: ");
            what.push_str(&said);
        }
        LabError::Broken {
            arm: self.arm.clone(),
            what,
        }
    }
}

impl ProcessGroupGuard {
    /// Waits so long for the end; nothing when it did not come.
    fn wait(&mut self, limit: Duration) -> Option<std::process::ExitStatus> {
        let start = Instant::now();
        loop {
            if let Ok(Some(status)) = self.0.try_wait() {
                return Some(status);
            }
            if start.elapsed() >= limit {
                return None;
            }
            std::thread::park_timeout(GLANCE);
        }
    }
}

impl Drop for ProcessGroupGuard {
    fn drop(&mut self) {
        if !matches!(self.0.try_wait(), Ok(Some(_))) {
            processes::kill_tree(self.0.id());
            // It was killed: the wait is short.
            let _ = self.0.wait();
        }
        reaper::forget(self.0.id());
    }
}

/// Reads to the end and keeps the last of it.
fn keep_tail(mut from: impl Read + Send + 'static, tail: Tail) -> JoinHandle<()> {
    std::thread::spawn(move || {
        let mut piece = [0; 1024];
        while let Ok(read @ 1..) = from.read(&mut piece) {
            let mut kept = tail.lock().unwrap_or_else(PoisonError::into_inner);
            kept.extend(piece.iter().take(read));
            let excess = kept.len().saturating_sub(COMPLAINT_BYTES_MAX);
            kept.drain(..excess);
        }
    })
}

impl StderrTail {
    fn collect(errors: ChildStderr) -> Self {
        let tail = Tail::default();
        let reader = keep_tail(errors, Arc::clone(&tail));
        Self {
            tail,
            reader: Some(reader),
        }
    }

    /// Returns the written text on one line. Waits a moment for a reader that is about to finish.
    fn text(&mut self) -> String {
        let start = Instant::now();
        while self.reader.as_ref().is_some_and(|r| !r.is_finished())
            && start.elapsed() < Duration::from_millis(200)
        {
            std::thread::park_timeout(GLANCE);
        }
        let mut tail = self.tail.lock().unwrap_or_else(PoisonError::into_inner);
        let text = String::from_utf8_lossy(tail.make_contiguous()).into_owned();
        text.split_whitespace().collect::<Vec<_>>().join(" ")
    }
}
