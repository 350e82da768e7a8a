//! A server over HTTP: one that runs already, or one that is started and waited for.

use super::child::{ChildProcess, PipedChild, spawn};
use crate::error::LabError;
use crate::url::HttpUrl;
use crate::variant::{Variant, VariantTransport};
use std::io::{self, BufRead, BufReader};
use std::net::TcpListener;
use std::time::{Duration, Instant};

/// How often a starting server is tried.
const GLANCE: Duration = Duration::from_millis(1);
/// The longest first line of a server that prints its address, in bytes.
const FIRST_LINE_BYTES_MAX: u64 = 4_096;

/// A server that takes connections.
#[derive(Debug)]
pub(crate) struct ListeningServer {
    arm: String,
    /// `None` if it ran before.
    process: Option<ChildProcess>,
    url: HttpUrl,
    begun: Instant,
    limit_ms: u64,
}

impl ListeningServer {
    /// Starts the command of a variant, if it has one, and waits for a listener at its address.
    pub(crate) fn start(arm: &Variant, timeout_ms: u64) -> Result<Self, LabError> {
        debug_assert_eq!(
            arm.transport(),
            VariantTransport::Http,
            "asked for by the plan"
        );
        let arm = arm.at_port(arm.wants_port().then(free_port).transpose()?);
        let begun = Instant::now();
        let mut served = match (arm.url(), arm.command().is_empty()) {
            (Some(url), true) => Self {
                arm: arm.name.clone(),
                process: None,
                url: url.parse()?,
                begun,
                limit_ms: timeout_ms,
            },
            (url, _) => {
                let url = url.map(str::parse::<HttpUrl>).transpose()?;
                let spawned = spawn(&arm, timeout_ms)?;
                let (process, url) = match url {
                    Some(url) => {
                        let PipedChild {
                            process, output, ..
                        } = spawned;
                        process.drain(output);
                        (process, url)
                    }
                    None => first_line(spawned)?,
                };
                Self {
                    arm: arm.name.clone(),
                    process: Some(process),
                    url,
                    begun,
                    limit_ms: timeout_ms,
                }
            }
        };
        served.wait_for_port()?;
        Ok(served)
    }

    /// Returns its address.
    pub(crate) fn url(&self) -> &HttpUrl {
        &self.url
    }

    /// Its process, if it is ours.
    pub(crate) fn pid(&self) -> Option<u32> {
        self.process.as_ref().map(ChildProcess::pid)
    }

    /// When it was started.
    pub(super) fn start_time(&self) -> Instant {
        self.begun
    }

    /// Returns why something with it failed.
    pub(crate) fn broken_error(&mut self, what: String) -> LabError {
        match &mut self.process {
            Some(process) => {
                let ended = process.exit_status();
                process.broken_error(match ended {
                    Some(status) => format!("{what} (the server ended: {status})"),
                    None => what,
                })
            }
            None => LabError::Broken {
                arm: self.arm.clone(),
                what,
            },
        }
    }

    /// Returns why a call came to no answer.
    pub(crate) fn fault(&mut self, asked: &str, error: &io::Error) -> LabError {
        match error.kind() {
            io::ErrorKind::TimedOut | io::ErrorKind::WouldBlock => LabError::Silent {
                arm: self.arm.clone(),
                asked: asked.into(),
                waited_ms: self.limit_ms,
            },
            io::ErrorKind::UnexpectedEof => {
                self.broken_error(format!("the server closed the connection during {asked}"))
            }
            _ => self.broken_error(format!("{asked} failed: {error}")),
        }
    }

    /// Returns why its answer does not count.
    pub(crate) fn invalid(&self, what: String) -> LabError {
        LabError::Invalid {
            arm: self.arm.clone(),
            what,
        }
    }

    /// Ends it, if it is ours.
    pub(crate) fn close(self) {
        if let Some(process) = self.process {
            process.terminate();
        }
    }

    fn wait_for_port(&mut self) -> Result<(), LabError> {
        let limit = Duration::from_millis(self.limit_ms);
        loop {
            let error = match self.url.connect(GLANCE.max(limit / 10)) {
                Ok(_) => return Ok(()),
                Err(error) => error,
            };
            let dead = self.process.as_mut().map(ChildProcess::exit_status);
            match dead {
                Some(Some(_)) => return Err(self.broken_error("it never listened".into())),
                // Without a command the server has to run already.
                None => {
                    let what = format!("cannot connect to {}: {error}", self.url.authority());
                    return Err(self.broken_error(what));
                }
                Some(None) if self.begun.elapsed() > limit => {
                    let what = format!(
                        "nobody listens at {} after {} ms; --timeout-ms allows more",
                        self.url.authority(),
                        self.limit_ms
                    );
                    return Err(self.broken_error(what));
                }
                Some(None) => std::thread::park_timeout(GLANCE),
            }
        }
    }
}

/// Returns the address that a server prints first.
fn first_line(spawned: PipedChild) -> Result<(ChildProcess, HttpUrl), LabError> {
    let PipedChild {
        mut process,
        output,
        ..
    } = spawned;
    let mut reader = BufReader::new(io::Read::take(output, FIRST_LINE_BYTES_MAX));
    let mut line = String::new();
    process.guard.begin();
    let read = reader.read_line(&mut line);
    process.guard.end();
    let asked = "the address that it prints first";
    match read {
        Ok(1..) => {}
        Ok(0) => return Err(process.fault(asked, &io::ErrorKind::UnexpectedEof.into())),
        Err(error) => return Err(process.fault(asked, &error)),
    }
    let Ok(url) = line.trim().parse() else {
        let said: String = line.trim().chars().take(120).collect();
        return Err(process.broken_error(format!(
            "its first line is not an http:// address: {said}; put {{port}} into its command, or write URL -- CMD"
        )));
    };
    process.drain(reader.into_inner().into_inner());
    Ok((process, url))
}

/// Returns a port without a listener now.
fn free_port() -> Result<u16, LabError> {
    TcpListener::bind(("127.0.0.1", 0))
        .and_then(|listener| listener.local_addr())
        .map(|address| address.port())
        .map_err(|source| LabError::System {
            what: "find a free port",
            source,
        })
}
