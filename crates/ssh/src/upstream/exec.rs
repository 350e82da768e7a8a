//! One command on one channel: its streams, its end, and how it is stopped.
//!
//! A command is over when the server has closed its channel, however long after the exit status that is. What a bound
//! cuts is marked as incomplete.
//!
//! Closing a channel stops nothing at the other end, so a command that is to end gets TERM, then KILL. A channel that
//! the server has not closed stays taken until it does. Nothing here waits for a stalled line: the caller's answer
//! comes within `running::GRACE` of the command's time.

mod running;

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use russh::client::Msg;
use russh::{ChannelMsg, ChannelReadHalf, ChannelWriteHalf, Sig};
use tokio::sync::{mpsc, oneshot};
use tokio::time::Instant;
use toolkit::cancel::Cancel;

use running::CLOSE_WAIT;
use running::{Running, not_asked};

use super::begin::{Before, Begin};
use super::connection::Channel;
use super::mark::{Mark, Marked};
use crate::end::{End, Missing};
use crate::hosts::Secret;
use crate::outputs::{Spill, Spilled};
use crate::processes::{Aftermath, Whose};
use crate::size::Size;
use crate::terminals::Inside;

/// What a terminal says that it is.
const TERM: &str = "xterm-256color";
/// The number of the stream of errors.
pub(super) const STDERR: u32 = 1;

/// What is to be run.
pub(crate) struct Order {
    /// As the login shell is to read it.
    pub line: String,
    pub stdin: Vec<u8>,
    /// What the script of `crate::sudo` reads before that.
    pub secret: Option<Secret>,
    /// It runs by that script.
    pub by_sudo: bool,
    pub bounds: Bounds,
    /// Where output goes that is too long for an answer.
    pub spill: Option<Spill>,
    /// The terminal that it runs on, where it does: there its output goes, and thence its input comes.
    pub terminal: Option<Inside>,
    /// The variable by which its processes are found, where sshd passes no signals on.
    pub mark: Option<Marked>,
    /// It says when it begins, where its login says something before.
    pub begin: Option<Begin>,
    /// Called once when it is stopped.
    pub on_stop: Option<OnStop>,
    /// Whose processes it can start.
    pub whose: Whose,
    /// Finds out what it has left where it was stopped.
    pub inspect: Option<Inspect>,
}

/// What a stopped command has left, once it is known.
pub(crate) type AftermathFuture = Pin<Box<dyn Future<Output = Aftermath> + Send>>;

/// Finds out what a stopped command has left, within its time.
pub(crate) struct Inspect(pub Box<dyn FnOnce(Stopped) -> AftermathFuture + Send>);

/// A command that was stopped.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Stopped {
    /// When it was sent.
    pub began: Instant,
    /// When its answer is due.
    pub until: Instant,
    /// Its own process has ended, as its server says.
    pub has_ended: bool,
}

impl Order {
    /// A command that gets no input and leaves nothing beside its answer.
    pub fn new(line: String, bounds: Bounds) -> Self {
        Self {
            line,
            stdin: Vec::new(),
            secret: None,
            by_sudo: false,
            bounds,
            spill: None,
            terminal: None,
            mark: None,
            begin: None,
            on_stop: None,
            whose: Whose::Anybodys,
            inspect: None,
        }
    }
}

/// Runs when a command is stopped. Its argument: whether the server has set the command's variable, where it was asked to.
pub(crate) struct OnStop(pub Box<dyn FnOnce(Option<bool>) + Send>);

/// How long and how much.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Bounds {
    pub time: Duration,
    /// Bytes of each stream that are kept.
    pub stream_bytes_max: usize,
}

/// What became of a command.
#[derive(Debug)]
pub(crate) struct Ended {
    pub end: End,
    pub stdout: Kept,
    pub stderr: Kept,
    /// Why output may be missing; none where all of it has come.
    pub missing: Option<Missing>,
    /// Nothing at all has come since it was stopped: the line may be stalled.
    pub is_silent: bool,
    /// Where it was stopped: when, and whether its own process has ended.
    pub stopped: Option<Stopped>,
    pub time: Duration,
    /// Where all of the output is, where it was too long for an answer.
    pub spilled: Option<Spilled>,
    /// Whether the server has set the variable that it was asked to; none where it was not.
    pub has_variable: Option<bool>,
    /// The server has not closed the channel: something may still hold its streams.
    pub open: Option<Left>,
}

/// A channel that the server has not closed after its command was given up.
#[derive(Debug)]
pub(crate) struct Left {
    read: ChannelReadHalf,
    write: Arc<ChannelWriteHalf<Msg>>,
}

impl Left {
    /// Closes it, and waits until the server does; what still comes is thrown away.
    pub async fn closed(mut self) {
        let _ = self.write.close().await;
        while let Some(message) = self.read.wait().await {
            if matches!(message, ChannelMsg::Close) {
                let _ = self.write.close().await;
                return;
            }
        }
    }
}

/// A stream, as far as it is kept.
#[derive(Debug, Default)]
pub(crate) struct Kept {
    pub bytes: Vec<u8>,
    /// How long it was.
    pub length: u64,
}

/// Where output goes beside the answer.
struct Out {
    spill: Option<Spill>,
    terminal: Option<Inside>,
    /// What its login says first, which goes nowhere.
    before: Before,
}

impl Out {
    /// Takes in what came; false where it cannot be recorded.
    async fn take(&mut self, message: &ChannelMsg, running: &Running) -> bool {
        if let Some(spill) = &mut self.spill {
            running.spill(message, spill).await;
        }
        let (Some(terminal), ChannelMsg::Data { data }) = (&mut self.terminal, message) else {
            return true;
        };
        terminal.screen.push(data);
        match &mut terminal.recorder {
            Some(recorder) => match recorder.output(data).await {
                Ok(()) => true,
                Err(error) => {
                    tracing::warn!(%error, "a terminal is stopped because it cannot be recorded");
                    false
                }
            },
            None => true,
        }
    }

    async fn finish(self, end: &End, missing: Option<Missing>) -> Option<Spilled> {
        if let Some(terminal) = self.terminal {
            let mut hash = None;
            if let Some(recorder) = terminal.recorder {
                let recorded = recorder.finish(&end.to_string()).await;
                let lost =
                    |error: &std::io::Error| tracing::warn!(%error, "a recording has no end");
                hash = recorded.inspect_err(lost).ok();
            }
            terminal.screen.end(end.clone(), missing, hash);
        }
        match self.spill {
            Some(spill) => spill.finish().await,
            None => None,
        }
    }
}

/// Runs a command to its end.
pub(crate) async fn run(channel: Channel, mut order: Order, cancel: Cancel) -> Ended {
    let (before, begun) = Before::of(order.begin.take());
    let mut out = Out {
        spill: order.spill.take(),
        terminal: order.terminal.take(),
        before,
    };
    let keep = order.bounds.stream_bytes_max;
    let inspect = order.inspect.take();
    let mut ended = follow(channel, order, &mut out, begun, cancel).await;
    std::mem::take(&mut out.before).finish(&mut ended, keep);
    if let (Some(stopped), Some(Inspect(inspect)), Some(left)) =
        (ended.stopped, inspect, ended.end.left_mut())
    {
        *left = inspect(stopped).await;
    }
    ended.spilled = out.finish(&ended.end, ended.missing).await;
    ended
}

/// Sends a command, on a terminal where it has one; false where the connection is lost.
async fn send(
    write: &ChannelWriteHalf<Msg>,
    line: String,
    mark: Option<&Mark>,
    size: Option<Size>,
) -> bool {
    if let Some((name, value)) = mark.map(Mark::requested)
        && write.set_env(true, name, value).await.is_err()
    {
        return false;
    }
    if let Some(Size { columns, rows }) = size {
        let asked = write.request_pty(true, TERM, columns, rows, 0, 0, &[]);
        if asked.await.is_err() {
            return false;
        }
    }
    write.exec(true, line).await.is_ok()
}

/// What is sent of a command that may be marked, and the variable that is asked for where it is marked by one.
fn written(line: String, mark: Option<Marked>) -> (String, Option<Mark>) {
    match mark {
        Some(marked) if marked.by_request => (line, Some(marked.mark)),
        Some(marked) => (marked.line, None),
        None => (line, None),
    }
}

async fn follow(
    channel: Channel,
    mut order: Order,
    out: &mut Out,
    begun: Option<oneshot::Receiver<()>>,
    cancel: Cancel,
) -> Ended {
    let mut running = Running::new(Instant::now(), order.bounds, order.by_sudo);
    let (mut read, write) = channel.0.split();
    let write = Arc::new(write);
    let size = out.terminal.as_ref().map(|terminal| terminal.size);
    let (line, mark) = written(order.line, order.mark.take());
    running.asked_variable = mark.is_some();
    let sending = send(&write, line, mark.as_ref(), size);
    match tokio::time::timeout_at(running.until, sending).await {
        Ok(true) => {}
        Ok(false) => return running.ended(End::Unsent),
        // A part of it may be under way.
        Err(_) => {
            running.stop(End::TimedOut(not_asked()));
            return left(running, read, write);
        }
    }
    let typed = out.terminal.as_mut();
    let typed = typed.and_then(|terminal| terminal.typed.take());
    let input = (order.secret, order.stdin);
    let feeding = feed(Arc::clone(&write), input, begun, typed);
    tokio::pin!(feeding);
    let mut is_fed = false;
    loop {
        let signal = tokio::select! {
            message = read.wait() => {
                running.heard();
                match message {
                    Some(ChannelMsg::Close) => {
                        let _ = tokio::time::timeout(CLOSE_WAIT, write.close()).await;
                        return running.closed();
                    }
                    // Answers come in the order of what was asked: the variable is the first.
                    Some(answer @ (ChannelMsg::Success | ChannelMsg::Failure)) if running.waits_for_variable() => {
                        running.has_variable = Some(matches!(answer, ChannelMsg::Success));
                        None
                    }
                    Some(ChannelMsg::Failure) if running.told.is_none() => {
                        let _ = tokio::time::timeout(CLOSE_WAIT, write.close()).await;
                        return running.ended(End::Refused);
                    }
                    Some(message) => {
                        let Some(message) = out.before.strip(message) else {
                            continue;
                        };
                        let is_kept = out.take(&message, &running).await;
                        running.take(message);
                        match is_kept {
                            true => None,
                            false => running.stop(End::Cancelled(not_asked())),
                        }
                    }
                    None => return running.lost(),
                }
            },
            () = &mut feeding, if !is_fed => {
                is_fed = true;
                None
            }
            () = tokio::time::sleep_until(running.until) => match running.next() {
                Some(signal) => Some(signal),
                None => return left(running, read, write),
            },
            () = cancel.cancelled(), if running.may_be_stopped() => {
                let signal = running.stop(End::Cancelled(not_asked()));
                if signal.is_none() {
                    return left(running, read, write);
                }
                signal
            }
        };
        if let Some(signal) = signal {
            say(&write, signal);
            if let Some(OnStop(on_stop)) = order.on_stop.take() {
                on_stop(running.has_variable);
            }
        }
    }
}

/// Sends a signal; a stalled line takes it later, and nobody waits for that.
fn say(write: &Arc<ChannelWriteHalf<Msg>>, signal: Sig) {
    let write = Arc::clone(write);
    tokio::spawn(async move { write.signal(signal).await });
}

/// A command that is waited for no longer, with its channel.
fn left(running: Running, read: ChannelReadHalf, write: Arc<ChannelWriteHalf<Msg>>) -> Ended {
    Ended {
        open: Some(Left { read, write }),
        ..running.given_up()
    }
}

/// Gives a command its input once it begins, and says that there is no more; on a terminal, what is typed as it comes.
async fn feed(
    write: Arc<ChannelWriteHalf<Msg>>,
    (secret, stdin): (Option<Secret>, Vec<u8>),
    begun: Option<oneshot::Receiver<()>>,
    typed: Option<mpsc::Receiver<Vec<u8>>>,
) {
    if let Some(mut typed) = typed {
        while let Some(bytes) = typed.recv().await {
            if write.data_bytes(bytes).await.is_err() {
                return;
            }
        }
        return;
    }
    if let Some(begun) = begun
        && (secret.is_some() || !stdin.is_empty())
        && begun.await.is_err()
    {
        return;
    }
    if let Some(secret) = secret {
        let line = [secret.expose().as_bytes(), b"\n"].concat();
        if write.data_bytes(line).await.is_err() {
            return;
        }
    }
    if stdin.is_empty() || write.data_bytes(stdin).await.is_ok() {
        let _ = write.eof().await;
    }
}

impl Kept {
    pub(super) fn push(&mut self, data: &[u8], keep: usize) {
        let room = keep.saturating_sub(self.bytes.len()).min(data.len());
        self.bytes.extend(data.iter().take(room));
        self.length = self.length.saturating_add(data.len() as u64);
    }
}

fn name_of(signal: &Sig) -> String {
    match signal {
        Sig::Custom(name) => name.clone(),
        other => format!("{other:?}"),
    }
}
