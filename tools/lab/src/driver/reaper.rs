//! Ends the variants if the lab itself is killed: a shell that sleeps on a pipe of ours, knows the process groups of
//! the variants that live, and kills them when the pipe is closed. A server over stdio ends with its pipes; one over
//! HTTP would be left listening for ever.
//!
//! It is beside the variants and not above them: their start, their tree and their memory stay their own.

use std::io::Write as _;
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, OnceLock, PoisonError};

/// Reads `+ GROUP` and `- GROUP`, line by line; at the end kills the groups that are left.
const SCRIPT: &str = r#"
left=' '
while read -r sign group; do
  case $sign in
    +) left="$left$group " ;;
    -) case $left in *" $group "*) left="${left%%" $group "*} ${left#*" $group "}" ;; esac ;;
  esac
done
for group in $left; do kill -KILL -"$group"; done
"#;

/// The one of this process; `None` without a shell.
static KEEPER: OnceLock<Option<Mutex<Child>>> = OnceLock::new();

fn start() -> Option<Mutex<Child>> {
    let mut command = Command::new("sh");
    command
        .args(["-c", SCRIPT])
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        // Ctrl-C at a terminal is for the lab, which ends its variants itself.
        .process_group(0);
    command.spawn().ok().map(Mutex::new)
}

fn say(sign: char, group: u32) {
    let Some(keeper) = KEEPER.get_or_init(start) else {
        return;
    };
    let mut keeper = keeper.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(pipe) = keeper.stdin.as_mut() {
        // Without a keeper the variants of a killed lab live on; nothing else is lost.
        let _ = writeln!(pipe, "{sign} {group}");
    }
}

/// From now on this group ends with us.
pub(super) fn keep(group: u32) {
    say('+', group);
}

/// The group has ended; its number may be another's next.
pub(super) fn forget(group: u32) {
    say('-', group);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_forgotten_is_spared_and_the_rest_ends() {
        let sleeper = || {
            let mut command = Command::new("sleep");
            command.arg("600").process_group(0).spawn().unwrap()
        };
        let mut sleepers = [sleeper(), sleeper(), sleeper()];
        let keeper = start().unwrap();
        let mut keeper = keeper.into_inner().unwrap();
        let mut pipe = keeper.stdin.take().unwrap();
        for sleeper in &sleepers {
            writeln!(pipe, "+ {}", sleeper.id()).unwrap();
        }
        writeln!(pipe, "- {}", sleepers[1].id()).unwrap();
        writeln!(pipe, "- 1").unwrap();
        drop(pipe);
        keeper.wait().unwrap();
        assert!(sleepers[0].wait().unwrap().code().is_none());
        assert!(sleepers[2].wait().unwrap().code().is_none());
        assert_eq!(sleepers[1].try_wait().unwrap(), None, "it was spared");
        sleepers[1].kill().unwrap();
        sleepers[1].wait().unwrap();
    }
}
