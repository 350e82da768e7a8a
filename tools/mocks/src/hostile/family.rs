//! Processes that do not go when they should.

use crate::MockError;
use std::{
    process::{Command, Stdio},
    time::Duration,
};
use tokio::signal::unix::{SignalKind, signal};

/// Replaces the action of the termination signal by nothing, for the life of the process.
pub(super) fn ignore_term() -> Result<(), MockError> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_io()
        .build()
        .map_err(MockError::Runtime)?;
    let _inside = runtime.enter();
    // The handler stays installed after the stream that would report the signal is gone.
    signal(SignalKind::terminate())
        .map(drop)
        .map_err(MockError::Runtime)
}

/// Starts sleepers: a child, a child in a session of its own, a grandchild of a waiting parent, and an orphan in a
/// session of its own. Returns a JSON object with their ids, or with the fault.
pub(super) fn spawn(life: Duration) -> String {
    let seconds = life.as_secs().to_string();
    let members = [
        ("child", start(&["sleep", &seconds])),
        ("session", start(&["setsid", "sleep", &seconds])),
        (
            "grandchild",
            run_and_read_id(&format!("sleep {seconds} >/dev/null & echo $!; wait")),
        ),
        (
            "daemon",
            run_and_read_id(&format!("setsid sleep {seconds} >/dev/null & echo $!")),
        ),
    ];
    let members = members.map(|(name, id)| match id {
        Ok(id) => format!(r#""{name}":{id}"#),
        Err(error) => format!(r#""{name}":{}"#, crate::json::quote(&error.to_string())),
    });
    format!("{{{}}}", members.join(","))
}

fn start(command: &[&str]) -> std::io::Result<u32> {
    let (program, args) = command
        .split_first()
        .ok_or(std::io::ErrorKind::InvalidInput)?;
    let mut command = Command::new(program);
    command
        .args(args)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    command.spawn().map(|child| child.id())
}

/// Runs a shell line that starts a sleeper and prints its id.
fn run_and_read_id(line: &str) -> std::io::Result<u32> {
    use std::io::{BufRead, BufReader};
    let mut command = Command::new("sh");
    command
        .args(["-c", line])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null());
    let mut child = command.spawn()?;
    let output = child.stdout.take().ok_or(std::io::ErrorKind::BrokenPipe)?;
    let mut id = String::new();
    BufReader::new(output).read_line(&mut id)?;
    id.trim().parse().map_err(std::io::Error::other)
}
