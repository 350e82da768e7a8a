//! The server process: lines in and out, each within a time limit.

use super::ClientError;
use net::blocking::{Line, Lines, excerpt, poll_one, timespec};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use rustix::process::{Pid, Signal, kill_process};
use std::{
    ffi::{OsStr, OsString},
    io::{self, Read, Write},
    path::PathBuf,
    process::{Child, ChildStderr, ChildStdin, ChildStdout, Command, ExitStatus, Stdio},
    sync::{Arc, Mutex, PoisonError},
    thread::JoinHandle,
    time::{Duration, Instant},
};

/// How much of the end of the server's standard error is kept, in bytes.
const STDERR_BYTES_MAX: usize = 64 * 1024;
/// How often an exit is looked for, where the system offers no wait with a limit.
const EXIT_POLL: Duration = Duration::from_millis(2);
/// How long the rest of standard error is waited for once the output has ended: a grandchild may hold
/// it open.
const STDERR_WAIT: Duration = Duration::from_millis(500);

/// How to start a server and how long to wait for it.
#[derive(Debug, Clone)]
pub struct Options {
    /// The longest wait for one line, and for the server to take one.
    pub timeout: Duration,
    /// The longest line to read, in bytes.
    pub line_bytes_max: usize,
    /// Variables to set beside the inherited ones.
    pub env: Vec<(OsString, OsString)>,
    /// The directory to start in; the current one where none is given.
    pub cwd: Option<PathBuf>,
    /// Whether standard error is read (and its end kept); else nobody reads it.
    pub drain_stderr: bool,
    /// Whether standard error is the parent's own instead.
    pub inherit_stderr: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            timeout: Duration::from_secs(20),
            line_bytes_max: 64 * 1024 * 1024,
            env: Vec::new(),
            cwd: None,
            drain_stderr: true,
            inherit_stderr: false,
        }
    }
}

/// A child with piped stdio. Dropping it kills the child and waits for it.
#[derive(Debug)]
pub struct Process {
    child: Child,
    input: Option<ChildStdin>,
    /// None once it was closed.
    output: Option<ChildStdout>,
    /// Held open, unread, where standard error is not drained.
    _error: Option<ChildStderr>,
    lines: Lines,
    line_bytes_max: usize,
    timeout: Duration,
    stderr: Arc<Mutex<Vec<u8>>>,
    /// Ends with the server's standard error.
    drain: Option<JoinHandle<()>>,
}

impl Process {
    /// Starts a program.
    ///
    /// # Errors
    /// When it cannot be started.
    pub fn spawn<S: AsRef<OsStr>>(
        program: &OsStr,
        args: impl IntoIterator<Item = S>,
        options: &Options,
    ) -> Result<Self, ClientError> {
        let mut command = Command::new(program);
        command
            .args(args)
            .envs(options.env.iter().map(|(name, value)| (name, value)));
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(match options.inherit_stderr {
                true => Stdio::inherit(),
                false => Stdio::piped(),
            });
        if let Some(cwd) = &options.cwd {
            command.current_dir(cwd);
        }
        let failed = |source| ClientError::Spawn {
            program: program.to_string_lossy().into_owned(),
            source,
        };
        let mut child = command.spawn().map_err(failed)?;
        let (Some(input), Some(output)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(failed(io::ErrorKind::BrokenPipe.into()));
        };
        fcntl_setfl(
            &input,
            fcntl_getfl(&input).map_err(io::Error::from)? | OFlags::NONBLOCK,
        )
        .map_err(io::Error::from)?;
        fcntl_setfl(
            &output,
            fcntl_getfl(&output).map_err(io::Error::from)? | OFlags::NONBLOCK,
        )
        .map_err(io::Error::from)?;
        let stderr = Arc::new(Mutex::new(Vec::new()));
        let mut error = child.stderr.take();
        let mut drained = None;
        if options.drain_stderr
            && let Some(mut source) = error.take()
        {
            let kept = Arc::clone(&stderr);
            drained = Some(std::thread::spawn(move || drain(&mut source, &kept)));
        }
        Ok(Self {
            child,
            input: Some(input),
            output: Some(output),
            _error: error,
            lines: Lines::new(options.line_bytes_max),
            line_bytes_max: options.line_bytes_max,
            timeout: options.timeout,
            stderr,
            drain: drained,
        })
    }

    /// The process id.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// The longest wait for one line.
    #[must_use]
    pub fn timeout(&self) -> Duration {
        self.timeout
    }

    /// Changes the longest wait from now on.
    pub fn set_timeout(&mut self, timeout: Duration) {
        self.timeout = timeout;
    }

    /// Sends one line; the newline is added.
    ///
    /// # Errors
    /// When the server does not take it in time, or is gone.
    pub fn send_line(&mut self, line: &[u8]) -> Result<(), ClientError> {
        self.send_raw(&[line, b"\n"].concat())
    }

    /// Sends bytes as they are. What the server writes meanwhile is buffered, so that both sides
    /// cannot wait for each other.
    ///
    /// # Errors
    /// When the server does not take them in time, or is gone.
    pub fn send_raw(&mut self, mut bytes: &[u8]) -> Result<(), ClientError> {
        let deadline = Instant::now() + self.timeout;
        while !bytes.is_empty() {
            let Some(input) = self.input.as_mut() else {
                return Err(
                    io::Error::new(io::ErrorKind::BrokenPipe, "the input was closed").into(),
                );
            };
            match input.write(bytes) {
                Ok(written) => bytes = bytes.get(written..).unwrap_or_default(),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    self.wait_to_write(deadline)?
                }
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    fn wait_to_write(&mut self, deadline: Instant) -> Result<(), ClientError> {
        let left = deadline.saturating_duration_since(Instant::now());
        let timed_out = || ClientError::Timeout {
            waiting_for: "room in the server's input".into(),
            after: self.timeout,
        };
        let Some(input) = self.input.as_ref().filter(|_| !left.is_zero()) else {
            return Err(timed_out());
        };
        let output = self.output.as_ref();
        let mut fds: Vec<PollFd<'_>> = [PollFd::new(input, PollFlags::OUT)]
            .into_iter()
            .chain(output.map(|output| PollFd::new(output, PollFlags::IN)))
            .collect();
        match poll(&mut fds, timespec(Some(left)).as_ref()) {
            Ok(0) => return Err(timed_out()),
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(io::Error::from(error).into()),
        }
        let readable = fds
            .get(1)
            .is_some_and(|output| output.revents().contains(PollFlags::IN));
        drop(fds);
        if let Some(output) = self.output.as_mut()
            && readable
            && self.lines.rest().len() <= self.line_bytes_max
        {
            match self.lines.fill(output) {
                Ok(_) => {}
                Err(error)
                    if matches!(
                        error.kind(),
                        io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted
                    ) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    /// The next line without its newline.
    ///
    /// # Errors
    /// When none comes in time, the server is gone, or the line is too long.
    pub fn read_line(&mut self) -> Result<Vec<u8>, ClientError> {
        let timeout = self.timeout;
        self.read_line_within(timeout)?.ok_or(ClientError::Timeout {
            waiting_for: "line".into(),
            after: timeout,
        })
    }

    /// The next line without its newline; none where nothing came in time.
    ///
    /// # Errors
    /// When the server is gone or the line is too long.
    pub fn read_line_within(&mut self, longest: Duration) -> Result<Option<Vec<u8>>, ClientError> {
        let deadline = Instant::now() + longest;
        loop {
            match self.lines.next_line() {
                Line::Frame(frame) => return Ok(Some(frame.to_vec())),
                Line::TooLong => {
                    return Err(ClientError::LineTooLong {
                        bytes_max: self.line_bytes_max,
                    });
                }
                Line::Incomplete => {}
            }
            let Some(output) = self.output.as_mut() else {
                return Err(self.closed());
            };
            match self.lines.fill(output) {
                Ok(0) => return Err(self.closed()),
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    let left = deadline.saturating_duration_since(Instant::now());
                    if left.is_zero() {
                        return Ok(None);
                    }
                    poll_one(&*output, PollFlags::IN, Some(left))?;
                }
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// What is to be said once the output has ended.
    fn closed(&self) -> ClientError {
        let deadline = Instant::now() + STDERR_WAIT;
        while self
            .drain
            .as_ref()
            .is_some_and(|drain| !drain.is_finished())
            && Instant::now() < deadline
        {
            let _ = poll(&mut [], timespec(Some(EXIT_POLL)).as_ref());
        }
        let stderr: Vec<char> = self.stderr().chars().collect();
        let tail = stderr
            .iter()
            .skip(stderr.len().saturating_sub(2000))
            .collect();
        ClientError::Closed {
            rest: excerpt(self.lines.rest(), 200),
            stderr: tail,
        }
    }

    /// Closes the server's input.
    pub fn close_input(&mut self) {
        self.input = None;
    }

    /// Closes the server's output, as the end of its client does.
    pub fn close_output(&mut self) {
        self.output = None;
    }

    /// The end of what the server wrote to standard error so far.
    #[must_use]
    pub fn stderr(&self) -> String {
        let kept = self.stderr.lock().unwrap_or_else(PoisonError::into_inner);
        String::from_utf8_lossy(&kept).into_owned()
    }

    /// Sends a signal.
    ///
    /// # Errors
    /// When the process is gone.
    pub fn signal(&self, signal: Signal) -> Result<(), ClientError> {
        let pid = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw);
        let pid = pid.ok_or_else(|| io::Error::from(io::ErrorKind::NotFound))?;
        kill_process(pid, signal).map_err(|error| io::Error::from(error).into())
    }

    /// Waits for the process to end; none where it still runs after `longest`.
    ///
    /// # Errors
    /// When the system cannot say.
    pub fn wait_within(&mut self, longest: Duration) -> Result<Option<ExitStatus>, ClientError> {
        let deadline = Instant::now() + longest;
        loop {
            if let Some(status) = self.child.try_wait()? {
                return Ok(Some(status));
            }
            if Instant::now() >= deadline {
                return Ok(None);
            }
            poll(&mut [], timespec(Some(EXIT_POLL)).as_ref())
                .map(drop)
                .or_else(|error| match error {
                    rustix::io::Errno::INTR => Ok(()),
                    error => Err(io::Error::from(error)),
                })?;
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn drain(source: &mut ChildStderr, kept: &Mutex<Vec<u8>>) {
    let mut piece = [0; 4096];
    while let Ok(read @ 1..) = source.read(&mut piece) {
        let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.extend_from_slice(piece.get(..read).unwrap_or_default());
        let excess = kept.len().saturating_sub(STDERR_BYTES_MAX);
        kept.drain(..excess);
    }
}
