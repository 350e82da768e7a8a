//! A child that computes, of this very program as a rule: frames on its standard streams, nothing else. It ends with us, also after
//! `kill -9`, since its input ends then; and it is ended with what it was started for.

use std::ffi::OsStr;
use std::io::{self, Read, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};

/// The longest frame, in bytes.
pub const FRAME_BYTES_MAX: u64 = 1 << 31;

/// A child that computes.
#[derive(Debug)]
pub struct Worker {
    child: Child,
    input: Arc<Mutex<ChildStdin>>,
    output: ChildStdout,
}

/// Speaks to a worker while somebody else listens to it.
#[derive(Debug, Clone)]
pub struct Speaker(Arc<Mutex<ChildStdin>>);

/// A frame: what it is, and its bytes.
pub type Frame = (u8, Vec<u8>);

impl Worker {
    /// Starts this program with this one word. It sees nothing of our environment.
    ///
    /// # Errors
    /// Where the process cannot be started.
    pub fn start(program: &Path, word: &str) -> io::Result<Self> {
        Self::start_as(program, &[OsStr::new(word)], &[])
    }

    /// Starts a program that speaks in frames too, with these words, and with these variables as its whole environment.
    ///
    /// # Errors
    /// Where the process cannot be started.
    pub fn start_as(
        program: &Path,
        words: &[&OsStr],
        variables: &[(&str, &OsStr)],
    ) -> io::Result<Self> {
        let mut child = Command::new(program)
            .args(words)
            .env_clear()
            .envs(variables.iter().copied())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()?;
        let lost = || io::Error::other("the worker has no streams");
        let input = child.stdin.take().ok_or_else(lost)?;
        let output = child.stdout.take().ok_or_else(lost)?;
        Ok(Self {
            child,
            input: Arc::new(Mutex::new(input)),
            output,
        })
    }

    /// Who speaks to it.
    #[must_use]
    pub fn speaker(&self) -> Speaker {
        Speaker(Arc::clone(&self.input))
    }

    /// Waits for its next frame.
    ///
    /// # Errors
    /// Where the worker has ended, or what it says is no frame.
    pub fn listen(&mut self) -> io::Result<Frame> {
        read(&mut self.output)
    }

    /// Its process.
    #[must_use]
    pub fn id(&self) -> u32 {
        self.child.id()
    }
}

/// Kills a worker that somebody else listens to; whoever listens sees that it has ended.
pub fn kill(id: u32) {
    let id = i32::try_from(id)
        .ok()
        .and_then(rustix::process::Pid::from_raw);
    if let Some(id) = id {
        // One that has ended meanwhile is not waited for yet, so its number is nobody else's.
        let _ = rustix::process::kill_process(id, rustix::process::Signal::KILL);
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        // One that has ended cannot be killed, and is only waited for.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Speaker {
    /// Sends a frame.
    ///
    /// # Errors
    /// Where the worker has ended.
    pub fn say(&self, kind: u8, bytes: &[u8]) -> io::Result<()> {
        let mut input = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        write(&mut *input, kind, bytes)
    }
}

/// Writes a frame.
///
/// # Errors
/// Where nobody reads any more.
pub fn write(to: &mut impl Write, kind: u8, bytes: &[u8]) -> io::Result<()> {
    to.write_all(&[kind])?;
    to.write_all(&(bytes.len() as u64).to_le_bytes())?;
    to.write_all(bytes)?;
    to.flush()
}

/// Reads a frame.
///
/// # Errors
/// Where the stream ends, or announces more than [`FRAME_BYTES_MAX`].
pub fn read(from: &mut impl Read) -> io::Result<Frame> {
    let mut kind = [0];
    from.read_exact(&mut kind)?;
    let mut length = [0; 8];
    from.read_exact(&mut length)?;
    let length = u64::from_le_bytes(length);
    if length > FRAME_BYTES_MAX {
        return Err(io::Error::other("a frame is too long"));
    }
    let mut bytes = Vec::new();
    let read = from.take(length).read_to_end(&mut bytes)?;
    if read as u64 != length {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    let [kind] = kind;
    Ok((kind, bytes))
}

#[cfg(test)]
mod tests;
