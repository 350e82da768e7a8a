//! Terminals: programs that run on a pseudo-terminal of a host, are typed to and read from by later calls.
//!
//! A terminal belongs to a session and ends with it. Its command is judged as any other; what is typed later is
//! judged by a call of its own, with the command's facts.

mod plain;
mod screen;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::mpsc;
use toolkit::cancel::Cancel;
use toolkit::server::Failure;

use crate::command::{Command, Context};
use crate::random;
use crate::recording::Recorder;
use crate::size::Size;
pub(crate) use plain::plain;
pub(crate) use screen::{Part, Screen};

/// Most texts that wait to be typed.
pub(crate) const TYPED_MAX: usize = 16;

/// The end of a terminal at which its command runs.
#[derive(Debug)]
pub(crate) struct Inside {
    pub size: Size,
    /// What is typed, until somebody takes it.
    pub typed: Option<mpsc::Receiver<Vec<u8>>>,
    pub screen: Arc<Screen>,
    pub recorder: Option<Recorder>,
}

/// A terminal. Dropped, its command is killed.
#[derive(Debug)]
pub(crate) struct Terminal {
    pub command: Command,
    pub context: Context,
    pub screen: Arc<Screen>,
    pub typed: mpsc::Sender<Vec<u8>>,
    stop: Cancel,
}

impl Drop for Terminal {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

impl Terminal {
    /// A terminal for this command and its other end; it is stopped by `stop`.
    pub fn new(
        (command, context): (Command, Context),
        size: Size,
        bytes_max: usize,
        recorder: Option<(Recorder, String)>,
        stop: Cancel,
    ) -> (Self, Inside) {
        let (typed, from) = mpsc::channel(TYPED_MAX);
        let (recorder, recording) = recorder.unzip();
        let screen = Arc::new(Screen::new(bytes_max, recording));
        let inside = Inside {
            size,
            typed: Some(from),
            screen: Arc::clone(&screen),
            recorder,
        };
        let terminal = Self {
            command,
            context,
            screen,
            typed,
            stop,
        };
        (terminal, inside)
    }

    /// Types bytes.
    ///
    /// # Errors
    /// Where its command has ended, or does not read.
    pub fn type_in(&self, bytes: Vec<u8>) -> Result<(), Failure> {
        use mpsc::error::TrySendError;
        match self.typed.try_send(bytes) {
            Ok(()) => Ok(()),
            Err(TrySendError::Full(_)) => {
                let wrong = "the program does not read what was typed before; wait for it";
                Err(Failure::new("typed_too_much", wrong).retryable())
            }
            Err(TrySendError::Closed(_)) => {
                let wrong = "the program in the terminal has ended; nothing was typed";
                Err(Failure::new("terminal_ended", wrong))
            }
        }
    }

    /// Has its command killed.
    pub fn stop(&self) {
        self.stop.cancel();
    }
}

/// The terminals of a session.
#[derive(Debug, Default)]
pub(crate) struct Terminals(Mutex<BTreeMap<String, Arc<Terminal>>>);

impl Terminals {
    fn all(&self) -> MutexGuard<'_, BTreeMap<String, Arc<Terminal>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Keeps one at this host, and gives its name, which says what runs where: whoever is asked about what is typed
    /// sees nothing else of it. Those that have ended make room for it.
    ///
    /// # Errors
    /// Where there is none.
    pub fn add(&self, terminal: Arc<Terminal>, host: &str, most: usize) -> Result<String, Failure> {
        let mut all = self.all();
        if all.len() >= most {
            all.retain(|_, terminal| !terminal.screen.is_over());
        }
        if all.len() >= most {
            let wrong = format!("the session has {most} terminals already; close one");
            return Err(Failure::new("too_many_terminals", wrong).retryable());
        }
        let Some(name) = random::name(&format!("{}@{host}:term_", terminal.command.program()))
        else {
            let wrong = "the system gives no random numbers";
            return Err(Failure::new("no_randomness", wrong));
        };
        all.insert(name.clone(), terminal);
        Ok(name)
    }

    /// One by its name.
    ///
    /// # Errors
    /// Where there is none.
    pub fn named(&self, name: &str) -> Result<Arc<Terminal>, Failure> {
        let found = self.all().get(name).map(Arc::clone);
        found.ok_or_else(|| {
            let wrong = "the session has no such terminal; it may have been closed";
            Failure::new("unknown_terminal", wrong)
        })
    }

    /// Forgets one.
    pub fn forget(&self, name: &str) {
        self.all().remove(name);
    }

    /// What runs in one.
    pub fn command(&self, name: &str) -> Option<(Command, Context)> {
        let all = self.all();
        let terminal = all.get(name)?;
        Some((terminal.command.clone(), terminal.context.clone()))
    }

    /// Whether a program runs in one of them.
    pub fn is_in_use(&self) -> bool {
        self.all()
            .values()
            .any(|terminal| !terminal.screen.is_over())
    }
}
