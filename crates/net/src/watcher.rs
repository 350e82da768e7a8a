//! No orphans: a small process between us and a child, which ends everything below it when we are
//! gone, even by `kill -9`.
//!
//! Our binary starts itself as `__child`; that process becomes the *subreaper* of all that is
//! started below it (so that a daemon that detaches comes back to it), starts itself once more as
//! `__exec` (which asks the kernel to be killed with its parent, then becomes the real command),
//! and waits: for us, for the command, or for a signal. It is not in the way of the data: the
//! command has inherited the pipes.

use std::ffi::OsString;
use std::io;
use std::os::unix::process::CommandExt as _;
use std::process::{Command, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, WaitOptions};
use tokio::signal::unix::{SignalKind, signal};

#[cfg(target_os = "linux")]
use crate::confine;
use crate::confine::{Confine, Confinement};

/// The hidden command that watches.
pub const WATCH_COMMAND: &str = "__child";
/// The hidden command that becomes the real one.
pub const EXEC_COMMAND: &str = "__exec";

/// How long a command may take to end after SIGTERM, in milliseconds.
const TERM_WAIT_MS: u64 = 300;
/// Exit code where the parent was gone before the watcher could look at it.
const PARENT_GONE: u8 = 125;
/// Exit code where the command is there, but cannot be started.
const NOT_STARTED: u8 = 126;
/// How often the parent is looked for where there is no `pidfd`, in milliseconds.
#[cfg(not(target_os = "linux"))]
const PARENT_POLL_MS: u64 = 200;

/// The option that says how many files the program may have open.
const FILES: &str = "--files";

/// What is watched over.
#[derive(Debug, Clone, Default)]
pub struct Watched {
    /// The program.
    pub program: OsString,
    /// Its arguments.
    pub args: Vec<OsString>,
    /// How many files it may have open; as many as we where absent.
    pub files_max: Option<u64>,
    /// What it is kept from.
    pub confinement: Confinement,
}

impl Watched {
    /// The arguments with which our binary runs a hidden command for `parent`.
    #[must_use]
    pub fn arguments(&self, command: &str, parent: u32) -> Vec<OsString> {
        let mut out = vec![command.into(), parent.to_string().into()];
        if let Some(files) = self.files_max {
            out.extend([FILES.into(), files.to_string().into()]);
        }
        out.extend(self.confinement.to_arguments());
        out.extend(["--".into(), self.program.clone()]);
        out.extend_from_slice(&self.args);
        out
    }

    /// Reads what [`Watched::arguments`] writes behind the parent's number.
    fn read(mut args: &[OsString]) -> Option<Self> {
        let mut out = Self::default();
        loop {
            args = match args {
                [end, program, rest @ ..] if end == "--" => {
                    out.program.clone_from(program);
                    out.args = rest.to_vec();
                    return Some(out);
                }
                [option, value, rest @ ..] if option == FILES => {
                    out.files_max = Some(value.to_str()?.parse().ok()?);
                    rest
                }
                [option, value, rest @ ..] if out.confinement.take_argument(option, value) => rest,
                _ => return None,
            };
        }
    }
}

/// Takes back a raised limit on open files, for us and all that we start.
fn limit_files(files_max: u64) {
    let mut limit = rustix::process::getrlimit(rustix::process::Resource::Nofile);
    limit.current = Some(limit.maximum.map_or(files_max, |most| most.min(files_max)));
    // Where it cannot be taken back, the program has more than it knows of.
    let _ = rustix::process::setrlimit(rustix::process::Resource::Nofile, limit);
}

/// Runs a hidden command if `args` (without the program's name) is one; gives its exit code.
#[must_use]
pub fn intercept(args: &[OsString], own_binary: &std::path::Path) -> Option<u8> {
    let (command, rest) = args.split_first()?;
    let command = command.to_str()?;
    if !command.starts_with("__") {
        return None;
    }
    let (parent, rest) = rest.split_first()?;
    let parent: i32 = parent.to_str()?.parse().ok()?;
    let watched = Watched::read(rest)?;
    match command {
        WATCH_COMMAND => {
            #[cfg(target_os = "linux")]
            confine::close_inherited();
            if let Some(files_max) = watched.files_max {
                limit_files(files_max);
            }
            Some(watch(parent, &watched, own_binary).unwrap_or(PARENT_GONE))
        }
        EXEC_COMMAND => Some(become_command(parent, &watched)),
        #[cfg(target_os = "linux")]
        confine::MAP_COMMAND => Some(confine::map(parent)),
        _ => None,
    }
}

/// Becomes the command; returns only where that failed.
fn become_command(watcher: i32, watched: &Watched) -> u8 {
    let say = |line: String| drop(io::Write::write_all(&mut io::stderr(), line.as_bytes()));
    let program = &watched.program;
    if let Err(why) = watched.confinement.enter() {
        if watched.confinement.confine == Confine::Require {
            say(format!("cannot start {}: {why}\n", program.display()));
            return NOT_STARTED;
        }
        say(format!("warning: the server is not confined: {why}\n"));
    }
    // Entering a user namespace forgets it, so it comes after.
    #[cfg(target_os = "linux")]
    let _ = rustix::process::set_parent_process_death_signal(Some(Signal::KILL));
    if rustix::process::getppid().map(Pid::as_raw_pid) != Some(watcher) {
        return PARENT_GONE;
    }
    let error = Command::new(program).args(&watched.args).exec();
    say(format!("cannot start {}: {error}\n", program.display()));
    if error.kind() == io::ErrorKind::NotFound {
        127
    } else {
        NOT_STARTED
    }
}

fn watch(parent: i32, watched: &Watched, own_binary: &std::path::Path) -> io::Result<u8> {
    // Without the terminal of whoever started us: what is typed into it by a program is run by the shell there.
    rustix::process::setsid()?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    runtime.block_on(watch_over(parent, watched, own_binary))
}

async fn watch_over(
    parent: i32,
    watched: &Watched,
    own_binary: &std::path::Path,
) -> io::Result<u8> {
    let gone = ParentGone::of(parent)?;
    #[cfg(target_os = "linux")]
    rustix::process::set_child_subreaper(Some(rustix::process::getpid()))?;
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut hangup = signal(SignalKind::hangup())?;
    let mut child = tokio::process::Command::new(own_binary)
        .args(watched.arguments(EXEC_COMMAND, std::process::id()))
        .stdin(Stdio::inherit())
        .stdout(Stdio::inherit())
        .stderr(Stdio::inherit())
        .spawn()?;
    release_streams()?;
    let status = tokio::select! {
        status = child.wait() => Some(status?),
        () = gone.wait() => None,
        _ = terminate.recv() => None,
        _ = interrupt.recv() => None,
        _ = hangup.recv() => None,
    };
    let status = match status {
        Some(status) => Some(status),
        None => {
            if let Some(pid) = child
                .id()
                .and_then(|id| i32::try_from(id).ok())
                .and_then(Pid::from_raw)
            {
                let _ = rustix::process::kill_process(pid, Signal::TERM);
            }
            tokio::time::timeout(Duration::from_millis(TERM_WAIT_MS), child.wait())
                .await
                .ok()
                .and_then(Result::ok)
        }
    };
    sweep();
    Ok(status.map_or(143, exit_code))
}

/// Gives up our copies of the child's pipes, else their ends would never be seen.
fn release_streams() -> io::Result<()> {
    let null = std::fs::OpenOptions::new()
        .read(true)
        .write(true)
        .open("/dev/null")?;
    rustix::stdio::dup2_stdin(&null)?;
    rustix::stdio::dup2_stdout(&null)?;
    Ok(())
}

/// Kills every process below us until none is left. Orphans come to us, so nothing escapes.
fn sweep() {
    /// Bound on rounds: each ends at least one process, or there is none.
    const ROUNDS_MAX: usize = 10_000;
    for _ in 0..ROUNDS_MAX {
        for pid in children() {
            let _ = rustix::process::kill_process(pid, Signal::KILL);
        }
        match rustix::process::wait(WaitOptions::empty()) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(_) => return,
        }
    }
}

/// Our direct children, orphans included.
fn children() -> Vec<Pid> {
    let Ok(threads) = std::fs::read_dir("/proc/self/task") else {
        return Vec::new();
    };
    threads
        .flatten()
        .filter_map(|thread| std::fs::read_to_string(thread.path().join("children")).ok())
        .flat_map(|list| {
            list.split_whitespace()
                .filter_map(|pid| pid.parse().ok())
                .filter_map(Pid::from_raw)
                .collect::<Vec<_>>()
        })
        .collect()
}

fn exit_code(status: std::process::ExitStatus) -> u8 {
    use std::os::unix::process::ExitStatusExt as _;
    let code = status
        .code()
        .or_else(|| status.signal().map(|signal| 128 + signal))
        .unwrap_or(1);
    u8::try_from(code).unwrap_or(1)
}

/// Notices the end of our parent.
struct ParentGone {
    #[cfg(target_os = "linux")]
    pidfd: tokio::io::unix::AsyncFd<std::os::fd::OwnedFd>,
    parent: i32,
}

impl ParentGone {
    fn of(parent: i32) -> io::Result<Self> {
        #[cfg(target_os = "linux")]
        #[expect(
            deprecated,
            reason = "its successor is unsafe; an owned descriptor stays open as it should"
        )]
        let pidfd = {
            let pid = Pid::from_raw(parent).ok_or(io::ErrorKind::InvalidInput)?;
            tokio::io::unix::AsyncFd::with_interest(
                rustix::process::pidfd_open(pid, rustix::process::PidfdFlags::empty())?,
                tokio::io::Interest::READABLE,
            )?
        };
        let this = Self {
            #[cfg(target_os = "linux")]
            pidfd,
            parent,
        };
        // The parent may have ended, and its number been given away, before we looked.
        if this.is_gone() {
            Err(io::ErrorKind::NotFound.into())
        } else {
            Ok(this)
        }
    }

    fn is_gone(&self) -> bool {
        rustix::process::getppid().map(Pid::as_raw_pid) != Some(self.parent)
    }

    async fn wait(&self) {
        #[cfg(target_os = "linux")]
        drop(self.pidfd.readable().await);
        #[cfg(not(target_os = "linux"))]
        while !self.is_gone() {
            tokio::time::sleep(Duration::from_millis(PARENT_POLL_MS)).await;
        }
    }
}
