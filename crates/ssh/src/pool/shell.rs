//! Whether the login shell of a host reads words as they are written for it.
//!
//! Words are written for bash, dash, zsh, fish and tcsh. Which shell a login has cannot be told beforehand, so the first
//! command of a host is one that repeats its words; nothing else is run there unless they come back as they are.
//!
//! Start-up files may define functions and traps. `exec` runs the program of that name and nothing else, and nothing
//! after it; a restricted shell has no `exec`, so there a command is written without it.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::OnceCell;
use toolkit::cancel::Cancel;

use super::lane::Slot;
use crate::command::quoted;
use crate::end::End;
use crate::hosts::Host;
use crate::upstream::{self, Begin, Bounds, ConnectFault, Mark, Marked, Order};

/// Words that a shell which quotes in another way does not repeat. None of them does harm where it is run.
const WORDS: [&str; 12] = [
    "a b", "it's", "\\", "\\n", "!", "!!", "\"", "$HOME", "~", "*", ";true", "",
];
/// What stands before a command, in the order in which it is tried.
pub(super) const WAYS: [&str; 2] = ["exec ", ""];
/// The same for zsh, whose `exec` runs functions too.
const ZSH: &str = "exec command ";
/// A word that zsh reads as the path of a program, and the other shells as it is.
const OF_ZSH: &str = "=sh";
/// How long that may take.
const TIME: Duration = Duration::from_secs(20);
/// How much of what it says is read: a login may say something before.
const BYTES_MAX: usize = 64 * 1024;

/// What is known of the login shells, by the names of their hosts.
#[derive(Debug, Default)]
pub(super) struct Shells(Mutex<HashMap<String, Arc<OnceCell<Login>>>>);

/// What is known of one: it gives a program its words.
#[derive(Debug)]
pub(super) struct Login {
    /// What stands before a command.
    way: &'static str,
    /// Its start-up files print something.
    speaks: bool,
    /// Whether sshd sets a variable that it is asked to set.
    pub takes_variables: AtomicBool,
}

/// What was heard of one.
pub(super) enum Heard {
    Login(Login),
    /// It does not repeat the words in this way.
    Other(ConnectFault),
}

impl Login {
    /// Writes an order as this login takes it.
    pub fn fit(&self, order: &mut Order) {
        // What is shown on a terminal is shown as it comes.
        let says = (self.speaks || order.secret.is_some()) && order.terminal.is_none();
        order.begin = if says { Begin::new() } else { None };
        if order.begin.is_none() {
            // Start-up files would read it.
            order.secret = None;
        }
        let begin = order.begin.as_ref().map_or("", |begin| &begin.line);
        let before = format!("{}{begin}", self.way);
        order.line.insert_str(0, &before);
        if let Some(marked) = &mut order.mark {
            marked.line.insert_str(0, &before);
            marked.by_request = self.takes_variables.load(Ordering::Relaxed);
        }
    }
}

impl Shells {
    /// What is known of one.
    pub fn of(&self, host: &Host) -> Arc<OnceCell<Login>> {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(known.entry(host.name.clone()).or_default())
    }
}

/// Has the login shell repeat words, with this before them.
pub(super) async fn ask(slot: Slot, host: &Host, way: &'static str) -> Result<Heard, ConnectFault> {
    let (channel, taken) = slot.take().ok_or_else(|| lost(host))?;
    let written = |words: &[&str]| {
        let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
        quoted(&words).map_err(|fault| other(host, &fault.to_string()))
    };
    let (program, words) = (written(&["printf", "[%s]"])?, written(&WORDS)?);
    let line = format!("{way}{program} {OF_ZSH} {words}");
    let mark = Mark::new().map(|mark| Marked {
        mark,
        line: line.clone(),
        by_request: true,
    });
    let bounds = Bounds {
        time: TIME,
        stream_bytes_max: BYTES_MAX,
    };
    let order = Order {
        mark,
        ..Order::new(line, bounds)
    };
    let mut ended = upstream::run(channel, order, Cancel::default()).await;
    taken.settle(&mut ended);
    let said = &ended.stdout.bytes;
    match ended.end {
        End::Lost | End::Unsent => Err(lost(host)),
        End::Refused => Err(ConnectFault::new(
            "refused_by_server",
            format!("{} refused to run a command on this login", host.name),
        )),
        end => Ok(match before(said) {
            Some((zsh, is_silent)) => Heard::Login(Login {
                way: if zsh { ZSH } else { way },
                speaks: !is_silent || ended.stderr.length > 0,
                takes_variables: AtomicBool::new(ended.has_variable == Some(true)),
            }),
            None => {
                let said = if said.is_empty() {
                    &ended.stderr.bytes
                } else {
                    said
                };
                let said = String::from_utf8_lossy(said);
                let said: String = said.trim().chars().take(200).collect();
                let fault = other(host, &format!("it answered \"{said}\" ({end})"));
                // What ends well has run something, and is not run again.
                if let End::TimedOut { .. } | End::Exited(0) = end {
                    return Err(fault);
                }
                Heard::Other(fault)
            }
        }),
    }
}

/// Whether what a shell says that has repeated the words is what zsh says, and whether it says nothing before.
fn before(said: &[u8]) -> Option<(bool, bool)> {
    let rest = said.strip_suffix(repeated().as_bytes())?;
    let rest = rest.strip_suffix(b"]")?;
    let from = rest.iter().rposition(|byte| *byte == b'[')?;
    let word = rest.get(from + 1..)?;
    let is_path = word.starts_with(b"/") && word.ends_with(b"/sh");
    (is_path || word == OF_ZSH.as_bytes()).then_some((is_path, from == 0))
}

/// The connection has gone.
pub(super) fn lost(host: &Host) -> ConnectFault {
    let wrong = format!(
        "the connection to {} was lost before the command was sent; it did not run",
        host.name
    );
    ConnectFault::new("connection_lost", wrong).retryable()
}

fn repeated() -> String {
    WORDS.map(|word| format!("[{word}]")).concat()
}

fn other(host: &Host, how: &str) -> ConnectFault {
    let wrong = format!(
        "{} does not give a program the words that it is sent: {how}. The command did not run. Give {} one of the login shells bash, dash, zsh, fish and tcsh, without a forced command",
        host.name, host.credential.user
    );
    ConnectFault::new("unknown_login_shell", wrong)
}
