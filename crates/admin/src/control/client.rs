//! The other end of the control socket: finding running instances and asking them.

use std::fmt;
use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::time::Duration;

use serde_json::Value;

use super::directory::{Directory, peer};
use super::{ANSWER_BYTES_MAX, IDLE_MS_MAX, Request};

/// Most running instances that are looked at.
const INSTANCES_MAX: usize = 256;

/// A running instance, connected.
#[derive(Debug)]
pub struct Instance {
    /// Its socket.
    pub socket: PathBuf,
    connection: BufReader<UnixStream>,
}

/// Why an instance gave no answer.
#[derive(Debug)]
pub enum NoAnswer {
    /// It refused: label and sentence.
    Refused {
        /// A closed label.
        label: String,
        /// A sentence.
        message: String,
    },
    /// It went away or said something that is no answer.
    Io(io::Error),
}

impl fmt::Display for NoAnswer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Refused { message, .. } => f.write_str(message),
            Self::Io(error) => write!(f, "{error}"),
        }
    }
}

impl From<io::Error> for NoAnswer {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

/// Instances that take connections, and sentences about those that could not be inspected.
#[derive(Debug, Default)]
pub struct Found {
    /// Running instances, sorted by socket.
    pub instances: Vec<Instance>,
    /// Directories that are not trusted, sockets that cannot be reached.
    pub warnings: Vec<String>,
}

/// Connects to every running instance of this user, in these runtime directories.
pub fn instances(runtime: &[PathBuf]) -> Found {
    let mut found = Found::default();
    for path in runtime {
        let directory = match Directory::open(path) {
            Ok(directory) => directory,
            Err(error) if error.is_missing() => continue,
            Err(error) => {
                found.warnings.push(error.to_string());
                continue;
            }
        };
        let names = match directory.sockets() {
            Ok(names) => names,
            Err(error) => {
                found.warnings.push(format!("{}: {error}", path.display()));
                continue;
            }
        };
        for name in names {
            if found.instances.len() >= INSTANCES_MAX {
                let message = format!("more than {INSTANCES_MAX} instances; the rest is not shown");
                found.warnings.push(message);
                return found;
            }
            match Instance::connect(&directory, &name) {
                Ok(instance) => found.instances.push(instance),
                // A dead instance left it; the next that starts removes it.
                Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {}
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => {
                    let socket = path.join(name);
                    found
                        .warnings
                        .push(format!("{}: {error}", socket.display()));
                }
            }
        }
    }
    found
}

impl Instance {
    fn connect(directory: &Directory, name: &str) -> io::Result<Self> {
        let stream = directory.connect(name)?;
        if peer(&stream)? != rustix::process::geteuid().as_raw() {
            return Err(io::Error::new(
                io::ErrorKind::PermissionDenied,
                "the socket belongs to a process of another user",
            ));
        }
        let idle = Some(Duration::from_millis(IDLE_MS_MAX));
        stream.set_read_timeout(idle)?;
        stream.set_write_timeout(idle)?;
        Ok(Self {
            socket: directory.path().join(name),
            connection: BufReader::new(stream),
        })
    }

    /// Sends a request.
    pub fn send(&mut self, request: &Request) -> io::Result<()> {
        let mut line = serde_json::to_vec(request)?;
        line.push(b'\n');
        self.connection.get_mut().write_all(&line)
    }

    /// From now on waits without end for the next line: for watching.
    pub fn wait_without_end(&mut self) -> io::Result<()> {
        self.connection.get_ref().set_read_timeout(None)
    }

    /// Returns the next line; `None` after the instance has ended.
    pub fn next_line(&mut self) -> io::Result<Option<Value>> {
        let mut line = Vec::new();
        let bytes_max = ANSWER_BYTES_MAX as u64 + 1;
        (&mut self.connection)
            .take(bytes_max)
            .read_until(b'\n', &mut line)?;
        if line.len() > ANSWER_BYTES_MAX {
            return Err(io::Error::new(
                io::ErrorKind::InvalidData,
                "a line of the answer is longer than 512 KiB",
            ));
        }
        if line.is_empty() {
            return Ok(None);
        }
        Ok(Some(serde_json::from_slice(&line)?))
    }

    /// Asks and waits for the answer; items on the way go to `each`.
    ///
    /// # Errors
    /// The instance refuses the request, or cannot be reached.
    pub fn ask(
        &mut self,
        request: &Request,
        mut each: impl FnMut(Value),
    ) -> Result<Value, NoAnswer> {
        self.send(request)?;
        loop {
            let Some(mut line) = self.next_line()? else {
                let ended = io::Error::new(io::ErrorKind::UnexpectedEof, "the instance has ended");
                return Err(NoAnswer::Io(ended));
            };
            if let Some(item) = line.get_mut("item") {
                each(item.take());
            } else if let Some(value) = line.get_mut("ok") {
                return Ok(value.take());
            } else {
                let text = |name: &str| {
                    line.pointer(&format!("/error/{name}"))
                        .and_then(Value::as_str)
                        .unwrap_or("the answer is not one that this version understands")
                        .to_owned()
                };
                return Err(NoAnswer::Refused {
                    label: text("label"),
                    message: text("message"),
                });
            }
        }
    }
}
