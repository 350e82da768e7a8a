//! Process of a channel, as the user of the mock. It ends with its connection.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::process::{ExitStatus, Stdio};

use russh::server::Msg;
use russh::{Channel, ChannelMsg, ChannelReadHalf, ChannelWriteHalf, Sig};
use rustix::process::{Pid, Signal, kill_process_group};
use tokio::io::AsyncWriteExt as _;
use tokio::process::{Child, ChildStdin, Command};

/// The number of the stream of errors.
const STDERR: u32 = 1;

/// Kind of process to run.
pub enum RunKind {
    /// A line for the shell.
    Line(Vec<u8>),
    /// A shell with this prompt.
    Shell(&'static str),
    /// A program.
    Program(&'static str),
}

/// Returns the machine's SFTP server, if it has one.
pub fn sftp_server() -> Option<RunKind> {
    let places = [
        "/usr/lib/openssh/sftp-server",
        "/usr/lib/ssh/sftp-server",
        "/usr/libexec/sftp-server",
        "/usr/libexec/openssh/sftp-server",
    ];
    let found = places.into_iter().find(|place| Path::new(place).exists());
    found.map(RunKind::Program)
}

fn command(what: RunKind) -> Command {
    let mut command = match &what {
        RunKind::Program(program) => Command::new(program),
        RunKind::Line(_) | RunKind::Shell(_) => Command::new("/bin/sh"),
    };
    match what {
        RunKind::Line(line) => {
            command.args([OsStr::new("-c"), OsStr::from_bytes(&line)]);
        }
        RunKind::Shell(prompt) => {
            command.arg("-i").env("PS1", OsString::from(prompt));
        }
        RunKind::Program(_) => {}
    }
    command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .process_group(0)
        .kill_on_drop(true);
    command
}

/// Runs it to its end and says how that was.
pub async fn run(channel: Channel<Msg>, what: RunKind) {
    let (read, write) = channel.split();
    let code = match command(what).spawn() {
        Ok(child) => follow(child, read, &write).await,
        Err(error) => {
            let told = format!("{error}\n");
            let _ = write.extended_data_bytes(STDERR, told).await;
            Some(127)
        }
    };
    // A client that has left needs no exit status.
    if let Some(code) = code {
        let _ = write.exit_status(code).await;
    }
    let _ = write.eof().await;
    let _ = write.close().await;
}

async fn follow(
    mut child: Child,
    read: ChannelReadHalf,
    write: &ChannelWriteHalf<Msg>,
) -> Option<u32> {
    let group = child.id().and_then(|id| i32::try_from(id).ok());
    let mut group = ProcessGroup(group.and_then(Pid::from_raw));
    let (stdin, stdout, stderr) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
    let mut outward = write.make_writer();
    let mut errors = write.make_writer_ext(Some(STDERR));
    let told = async {
        let out = async {
            if let Some(mut stdout) = stdout {
                let _ = tokio::io::copy(&mut stdout, &mut outward).await;
            }
        };
        let err = async {
            if let Some(mut stderr) = stderr {
                let _ = tokio::io::copy(&mut stderr, &mut errors).await;
            }
        };
        tokio::join!(out, err);
        child.wait().await
    };
    let ended = tokio::select! {
        ended = told => ended.ok(),
        () = hear(read, stdin, &group) => None,
    };
    if ended.is_some() {
        // Processes left in its group may go on, as on a real server.
        group.0 = None;
    }
    ended.map(code_of)
}

/// Passes on what the client sends, until the channel is closed.
async fn hear(mut read: ChannelReadHalf, mut stdin: Option<ChildStdin>, group: &ProcessGroup) {
    while let Some(message) = read.wait().await {
        match message {
            ChannelMsg::Data { data } => {
                if let Some(to) = &mut stdin
                    && to.write_all(&data).await.is_err()
                {
                    stdin = None;
                }
            }
            ChannelMsg::Eof => stdin = None,
            ChannelMsg::Signal { signal } => group.signal(&signal),
            ChannelMsg::Close => return,
            _ => {}
        }
    }
}

fn code_of(status: ExitStatus) -> u32 {
    let signal = || status.signal().map_or(255, |signal| 128 + signal);
    u32::try_from(status.code().unwrap_or_else(signal)).unwrap_or(255)
}

/// The processes of a channel; they are killed when it goes.
struct ProcessGroup(Option<Pid>);

impl ProcessGroup {
    fn signal(&self, signal: &Sig) {
        let signal = match signal {
            Sig::TERM => Signal::TERM,
            Sig::INT => Signal::INT,
            Sig::KILL => Signal::KILL,
            Sig::HUP => Signal::HUP,
            Sig::USR1 => Signal::USR1,
            _ => return,
        };
        if let Some(group) = self.0 {
            // It may have ended meanwhile.
            let _ = kill_process_group(group, signal);
        }
    }
}

impl Drop for ProcessGroup {
    fn drop(&mut self) {
        self.signal(&Sig::KILL);
    }
}
