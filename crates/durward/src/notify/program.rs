//! A command that is run for each call that waits.

use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

use tokio::io::AsyncWriteExt as _;
use tokio::process::Command;

use crate::program;

/// A program with its arguments.
pub(super) struct Program {
    program: PathBuf,
    arguments: Vec<String>,
}

impl Program {
    pub fn of(command: &[String]) -> Option<Self> {
        let (program, arguments) = command.split_first()?;
        Some(Self {
            // Found once: what is put into an earlier directory of the PATH later on is not run.
            program: program::found(program.as_ref()).unwrap_or_else(|| program.into()),
            arguments: arguments.to_vec(),
        })
    }

    /// Runs it with `input` as its standard input; what it prints is not read. It is killed after `ms_max`.
    pub async fn run(&self, input: &[u8], ms_max: u64) {
        let time = Duration::from_millis(ms_max);
        let failed = match tokio::time::timeout(time, self.run_to_end(input)).await {
            Ok(Ok(status)) if status.success() => return,
            Ok(Ok(status)) => status.to_string(),
            Ok(Err(error)) => error.to_string(),
            Err(_) => format!("it ran longer than {ms_max} ms and was killed"),
        };
        tracing::warn!("approval.notify: {}: {failed}", self.program.display());
    }

    async fn run_to_end(&self, input: &[u8]) -> std::io::Result<std::process::ExitStatus> {
        let mut child = Command::new(&self.program)
            .args(&self.arguments)
            .stdin(Stdio::piped())
            // Standard output may belong to a client.
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .kill_on_drop(true)
            .spawn()?;
        if let Some(mut stdin) = child.stdin.take() {
            // A program that does not read its input is told all the same.
            let _ = stdin.write_all(input).await;
        }
        child.wait().await
    }
}
