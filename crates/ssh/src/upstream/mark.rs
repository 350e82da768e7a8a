//! Killing what a signal does not reach.
//!
//! OpenSSH passes no signal on to what root runs. Such commands get a variable of their own, by which all that
//! they have started is found and killed over another channel. What else may be left of a command is found there, too.

use std::time::Duration;

use toolkit::cancel::Cancel;

use super::connection::Channel;
use super::exec::{Bounds, Order, run};
use crate::command::quoted;
use crate::end::End;
use crate::processes::{self, Aftermath, Whose};
use crate::random;

/// The variable's name.
const NAME: &str = "DURWARD_RUN";
/// Where sshd itself sets it: most take variables whose names begin so. What finds the name above finds this one too.
const REQUESTED: &str = "LC_DURWARD_RUN";
/// Finds what has the variable `$0`: TERM, a second, then KILL. Says whether nothing of it is left; `$0` may be empty.
const KILL: &str = "n=0; f=; while [ \"$0\" ] && [ $n -lt 9 ]; do f=$(grep -ls -- \"$0\" /proc/[0-9]*/environ); [ \"$f\" ] || break; \
case $n in 0) s=TERM;; [1-4]) s=0;; *) s=KILL;; esac; \
for p in $f; do p=${p#/proc/}; kill -$s \"${p%/environ}\" 2>/dev/null; done; n=$((n+1)); sleep 0.2 2>/dev/null || sleep 1; done; \
[ \"$f\" ] || echo durward-killed; ";
/// What that says.
const KILLED: &[u8] = b"durward-killed\n";
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
}

/// What is left of a command, and whether all that has its variable is gone.
#[derive(Debug)]
pub(crate) struct Left {
    pub aftermath: Aftermath,
    pub is_killed: bool,
}

/// Kills what has a command's variable, and finds out what else may be left of it.
///
/// `fit` writes the order as the host's login takes it, and `age` says how long ago the command was sent.
pub(crate) async fn clean_up(
    channel: Channel,
    mark: Option<&Mark>,
    fit: impl FnOnce(&mut Order),
    (age, whose): (impl Fn() -> Duration, Whose),
) -> Left {
    let mark = mark.map_or("", Mark::text);
    let script = format!("{KILL}{}", processes::SCRIPT);
    let words = ["sh", "-c", &script, mark].map(str::to_owned);
    let unknown = |why| Left {
        aftermath: Aftermath::unknown(why),
        is_killed: false,
    };
    let Ok(line) = quoted(&words) else {
        return unknown("the host could not be asked");
    };
    let bounds = Bounds {
        time: TIME,
        stream_bytes_max: processes::TABLES_BYTES_MAX,
    };
    let mut order = Order::new(line, bounds);
    fit(&mut order);
    let ended = Box::pin(run(channel, order, Cancel::default())).await;
    if !matches!(ended.end, End::Exited(_)) || ended.missing.is_some() {
        return unknown("the host did not answer");
    }
    let printed = &ended.stdout.bytes;
    Left {
        aftermath: processes::aftermath(printed, age(), whose),
        is_killed: printed.windows(KILLED.len()).any(|is| is == KILLED),
    }
}
