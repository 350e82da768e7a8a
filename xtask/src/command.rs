//! Running another program and keeping what it said.

use std::fmt;
use std::io;
use std::path::Path;
use std::process::{Command, Stdio};

/// What can stop a task; a finding is not an error.
#[derive(Debug)]
pub(crate) enum TaskError {
    /// Reading or writing a file, or starting a program, failed.
    Io { what: String, source: io::Error },
    /// A program ran and failed.
    Failed { program: String, stderr: String },
    /// A program's output or a file of ours could not be understood.
    Malformed { what: String, why: String },
}

impl fmt::Display for TaskError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Io { what, source } => write!(f, "{what}: {source}"),
            Self::Failed { program, stderr } => {
                write!(f, "`{program}` failed\n{}", stderr.trim_end())
            }
            Self::Malformed { what, why } => write!(f, "{what} cannot be read: {why}"),
        }
    }
}

impl From<io::Error> for TaskError {
    fn from(source: io::Error) -> Self {
        Self::Io {
            what: "writing the report".to_owned(),
            source,
        }
    }
}

impl TaskError {
    /// Returns an I/O error with what was being done.
    pub(crate) fn io(what: impl Into<String>) -> impl FnOnce(io::Error) -> Self {
        let what = what.into();
        |source| Self::Io { what, source }
    }
}

/// Runs `program` in `folder` without standard input and returns its standard output.
///
/// It does not inherit the caller's screen width and settings of ours: its output depends on the tree alone.
pub(crate) fn output(folder: &Path, program: &str, args: &[&str]) -> Result<Vec<u8>, TaskError> {
    let line = || [&[program], args].concat().join(" ");
    let ours = std::env::vars_os().map(|(name, _)| name).filter(|name| {
        name == "COLUMNS" || name == "LINES" || name.to_string_lossy().starts_with("DURWARD_")
    });
    let mut command = Command::new(program);
    for name in ours {
        command.env_remove(name);
    }
    let done = command
        .args(args)
        .current_dir(folder)
        .stdin(Stdio::null())
        .output()
        .map_err(|source| TaskError::Io {
            what: format!("running `{}`", line()),
            source,
        })?;
    if done.status.success() {
        return Ok(done.stdout);
    }
    let stderr = String::from_utf8_lossy(&done.stderr).into_owned();
    Err(TaskError::Failed {
        program: line(),
        stderr,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn output_and_failure_are_told() {
        let here = Path::new(".");
        assert_eq!(output(here, "echo", &["a"]).unwrap(), b"a\n");
        let failed = output(here, "sh", &["-c", "echo why >&2; exit 3"])
            .unwrap_err()
            .to_string();
        assert_eq!(failed, "`sh -c echo why >&2; exit 3` failed\nwhy");
        assert!(output(here, "no-such-program", &[]).is_err());
    }
}
