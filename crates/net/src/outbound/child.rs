//! A child process that speaks over its standard streams and never outlives us.

use std::ffi::OsString;
use std::io;
use std::os::unix::process::ExitStatusExt as _;
use std::path::PathBuf;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, BufReader};
use tokio::process::{ChildStderr, Command};

use crate::confine::Confinement;
use crate::stdio::{self, FrameReader, FrameWriter};
use crate::watcher;

/// What to start.
#[derive(Debug, Clone)]
pub struct ChildSpec {
    /// The program, looked up in the child's `PATH` where it has no slash.
    pub program: OsString,
    /// Its arguments.
    pub args: Vec<OsString>,
    /// Its whole environment.
    pub environment: Vec<(OsString, OsString)>,
    /// Where it runs; ours where absent.
    pub directory: Option<PathBuf>,
    /// Our own binary, which knows the watcher's hidden commands.
    pub watcher: PathBuf,
    /// How many files it may have open; as many as we where absent.
    pub files_max: Option<u64>,
    /// What it is kept from.
    pub confinement: Confinement,
}

/// A running child, in a session and process group of its own below a watcher, which begins them.
pub struct Child {
    process: tokio::process::Child,
    /// Taken to close the child's standard input.
    writer: Option<FrameWriter>,
    reader: FrameReader,
    ended: Option<ExitStatus>,
}

/// Longest line of a child's standard error that is logged, in bytes; the rest of it is dropped.
const LOG_LINE_BYTES_MAX: u64 = 8 * 1024;
/// How long a child may take to end after its input was closed, in milliseconds.
const CLOSE_WAIT_MS: u64 = 2_000;
/// How long the watcher may take to end what is below it, in milliseconds.
const STOP_WAIT_MS: u64 = 2_000;

impl Child {
    /// Starts the child. Its standard error goes to the log, line by line, under `name`.
    ///
    /// # Errors
    /// Where the watcher cannot be started. A program that does not exist shows as an early end with
    /// exit code 127.
    pub fn spawn(spec: &ChildSpec, name: &str) -> io::Result<Self> {
        let watched = watcher::Watched {
            program: spec.program.clone(),
            args: spec.args.clone(),
            files_max: spec.files_max,
            confinement: spec.confinement.clone(),
        };
        let mut command = Command::new(&spec.watcher);
        command
            .args(watched.arguments(watcher::WATCH_COMMAND, std::process::id()))
            .env_clear()
            .envs(spec.environment.iter().map(|(k, v)| (k, v)))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        if let Some(directory) = &spec.directory {
            command.current_dir(directory);
        }
        let mut process = command.spawn()?;
        let missing = || io::Error::other("the child's streams are missing");
        let input = process.stdin.take().ok_or_else(missing)?.into_owned_fd()?;
        let output = process.stdout.take().ok_or_else(missing)?.into_owned_fd()?;
        if let Some(stderr) = process.stderr.take() {
            tokio::spawn(log_lines(stderr, name.to_owned()));
        }
        let (reader, writer) = stdio::over(output, input)?;
        Ok(Self {
            process,
            writer: Some(writer),
            reader,
            ended: None,
        })
    }

    /// Frames from the child, and the way to send frames to it (absent once its input was closed).
    pub fn streams(&mut self) -> (&mut FrameReader, Option<&mut FrameWriter>) {
        (&mut self.reader, self.writer.as_mut())
    }

    /// The way to send frames to it, to be kept elsewhere; once. Dropping it closes the child's input.
    pub fn take_writer(&mut self) -> Option<FrameWriter> {
        self.writer.take()
    }

    /// Process id of the watcher, which is the child's process group.
    #[must_use]
    pub fn id(&self) -> Option<u32> {
        self.process.id()
    }

    /// Ends the child: closes its input, waits, then has the watcher end everything below it.
    pub async fn stop(&mut self) -> Option<ExitStatus> {
        self.writer = None;
        if let Some(status) = self.wait_at_most(CLOSE_WAIT_MS).await {
            return Some(status);
        }
        self.signal(rustix::process::Signal::TERM, false);
        if let Some(status) = self.wait_at_most(STOP_WAIT_MS).await {
            return Some(status);
        }
        self.signal(rustix::process::Signal::KILL, true);
        self.wait_at_most(STOP_WAIT_MS).await
    }

    /// Waits for the child's own end, for at most so long.
    pub async fn wait_at_most(&mut self, wait_ms: u64) -> Option<ExitStatus> {
        if self.ended.is_none() {
            let waited =
                tokio::time::timeout(Duration::from_millis(wait_ms), self.process.wait()).await;
            self.ended = waited.ok().and_then(Result::ok);
        }
        self.ended
    }

    fn signal(&self, signal: rustix::process::Signal, group: bool) {
        let Some(pid) = self
            .id()
            .and_then(|id| i32::try_from(id).ok())
            .and_then(rustix::process::Pid::from_raw)
        else {
            return;
        };
        // The process may be gone already; then there is nothing to end.
        let _ = if group {
            rustix::process::kill_process_group(pid, signal)
        } else {
            rustix::process::kill_process(pid, signal)
        };
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        // Normally stopped before; here the watcher still sees to it that nothing remains.
        self.signal(rustix::process::Signal::TERM, false);
    }
}

/// How a process ended whose command is not there, in words.
pub const NOT_FOUND: &str = "exit code 127 (command not found)";

/// How a process ended, in words.
#[must_use]
pub fn describe(status: ExitStatus) -> String {
    match (status.code(), status.signal()) {
        (Some(127), _) => NOT_FOUND.into(),
        (Some(code), _) => format!("exit code {code}"),
        (None, Some(signal)) => format!("signal {signal}"),
        (None, None) => "an unknown status".into(),
    }
}

/// Copies a child's standard error to the log. Control characters are escaped, so that a server
/// cannot write to the user's terminal.
async fn log_lines(stderr: ChildStderr, name: String) {
    let mut lines = BufReader::new(stderr);
    let mut line = Vec::new();
    loop {
        line.clear();
        match (&mut lines)
            .take(LOG_LINE_BYTES_MAX)
            .read_until(b'\n', &mut line)
            .await
        {
            Ok(0) | Err(_) => return,
            Ok(_) => {
                let text = String::from_utf8_lossy(line.trim_ascii_end());
                tracing::info!(target: "upstream", server = %name, "{}", shown(&text));
            }
        }
    }
}

/// A line as a person reads it: characters that a terminal would act on are escaped, quotes and backslashes are not.
fn shown(line: &str) -> String {
    let escaped = line.escape_debug().to_string();
    escaped
        .replace("\\'", "'")
        .replace("\\\"", "\"")
        .replace("\\\\", "\\")
}

#[cfg(test)]
mod tests {
    #[test]
    fn p16_lines_of_servers_keep_their_quotes_and_lose_what_a_terminal_acts_on() {
        assert_eq!(
            super::shown("it's \"C:\\x\" e\u{301}\u{1b}[31m\u{202e}"),
            "it's \"C:\\x\" e\u{301}\\u{1b}[31m\\u{202e}"
        );
    }
}
