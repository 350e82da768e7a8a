//! Whether the login shell of a host reads words as they are written for it.
//!
//! Words are written for bash, dash, zsh, fish and tcsh. Which shell a login has cannot be told beforehand, so the first
//! command of a host is one that repeats its words; nothing else is run there unless they come back as they are.

use std::collections::HashMap;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::OnceCell;
use toolkit::cancel::Cancel;

use super::lane::Slot;
use crate::command::quoted;
use crate::end::End;
use crate::hosts::Host;
use crate::upstream::{self, Bounds, ConnectFault, Mark, Marked, Order};

/// Words that a shell which quotes in another way does not repeat. None of them does harm where it is run.
const WORDS: [&str; 12] = [
    "a b", "it's", "\\", "\\n", "!", "!!", "\"", "$HOME", "~", "*", ";true", "",
];
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
    /// Whether sshd sets a variable that it is asked to set.
    pub takes_variables: AtomicBool,
}

impl Shells {
    /// What is known of one.
    pub fn of(&self, host: &Host) -> Arc<OnceCell<Login>> {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(known.entry(host.name.clone()).or_default())
    }
}

/// Has the login shell repeat words.
pub(super) async fn ask(slot: Slot, host: &Host) -> Result<Login, ConnectFault> {
    let (channel, taken) = slot.take().ok_or_else(|| lost(host))?;
    let words = ["printf", "[%s]"].into_iter().chain(WORDS);
    let words: Vec<String> = words.map(str::to_owned).collect();
    let line = quoted(&words).map_err(|fault| other(host, &fault.to_string()))?;
    let mark = Mark::new().map(|mark| Marked {
        mark,
        line: line.clone(),
        by_request: true,
    });
    let order = Order {
        line,
        stdin: Vec::new(),
        secret: None,
        by_sudo: false,
        bounds: Bounds {
            time: TIME,
            stream_bytes_max: BYTES_MAX,
        },
        spill: None,
        terminal: None,
        mark,
    };
    let mut ended = upstream::run(channel, order, Cancel::default()).await;
    if let Some(left) = ended.open.take() {
        tokio::spawn(async move {
            left.closed().await;
            drop(taken);
        });
    }
    let said = &ended.stdout.bytes;
    match ended.end {
        End::Lost | End::Unsent => Err(lost(host)),
        End::Refused => Err(ConnectFault::new(
            "refused_by_server",
            format!("{} refused to run a command on this login", host.name),
        )),
        _ if said.ends_with(repeated().as_bytes()) => Ok(Login {
            takes_variables: AtomicBool::new(ended.has_variable == Some(true)),
        }),
        end => {
            let said = if said.is_empty() {
                &ended.stderr.bytes
            } else {
                said
            };
            let said = String::from_utf8_lossy(said);
            let said: String = said.trim().chars().take(200).collect();
            Err(other(host, &format!("it answered \"{said}\" ({end})")))
        }
    }
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
