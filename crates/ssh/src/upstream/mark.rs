//! Killing what a signal does not reach.
//!
//! OpenSSH passes no signal on to what root runs. Such commands get a variable of their own, by which all that
//! they have started is found and killed over another channel.

use std::time::Duration;

use toolkit::cancel::Cancel;

use super::connection::Channel;
use super::exec::{Bounds, Order, run};
use crate::command::quoted;
use crate::end::End;
use crate::random;

/// The variable's name.
const NAME: &str = "DURWARD_RUN";
/// Where sshd itself sets it: most take variables whose names begin so. What finds the name above finds this one too.
const REQUESTED: &str = "LC_DURWARD_RUN";
/// Finds what has the variable, with TERM, then KILL; ends well once there is nothing left of it.
const SCRIPT: &str = "for signal in TERM KILL KILL; do left=; for process in /proc/[0-9]*; do \
if grep -qs \"$0\" \"$process/environ\"; then left=1; kill -$signal \"${process#/proc/}\" 2>/dev/null; fi; done; \
[ -z \"$left\" ] && exit 0; sleep 1; done; exit 1";
/// How long that may take.
const TIME: Duration = Duration::from_secs(20);

/// The variable of one command.
#[derive(Debug, Clone)]
pub(crate) struct Mark(String);

/// How a command gets its variable.
#[derive(Debug, Clone)]
pub(crate) struct Marked {
    pub mark: Mark,
    /// The line that gives it by a program of its own, which takes the host some time.
    pub line: String,
    /// Whether sshd sets it instead.
    pub by_request: bool,
}

impl Mark {
    /// A variable that no other command has.
    pub fn new() -> Option<Self> {
        random::name(&format!("{NAME}=")).map(Self)
    }

    /// The variable of what has this name, which nothing else has.
    pub fn of(name: &str) -> Self {
        Self(format!("{NAME}={name}"))
    }

    /// The variable with its value.
    pub fn text(&self) -> &str {
        &self.0
    }

    /// The name and the value that sshd is asked to set.
    pub fn requested(&self) -> (&'static str, &str) {
        let (_, value) = self.0.split_once('=').unwrap_or_default();
        (REQUESTED, value)
    }

    /// The words that give it to a program.
    pub fn before(&self, argv: &[String]) -> Vec<String> {
        let mut words = vec!["env".to_owned(), self.0.clone()];
        words.extend_from_slice(argv);
        words
    }

    /// Kills what has it; gives whether nothing of it is left.
    /// `fit` writes the order as the host's login takes it.
    pub async fn kill(&self, channel: Channel, fit: impl FnOnce(&mut Order)) -> bool {
        let words = ["sh", "-c", SCRIPT, &self.0].map(str::to_owned);
        let Ok(line) = quoted(&words) else {
            return false;
        };
        let mut order = Order {
            line,
            stdin: Vec::new(),
            secret: None,
            by_sudo: false,
            bounds: Bounds {
                time: TIME,
                stream_bytes_max: 0,
            },
            spill: None,
            terminal: None,
            mark: None,
            begin: None,
        };
        fit(&mut order);
        Box::pin(run(channel, order, Cancel::default())).await.end == End::Exited(0)
    }
}
