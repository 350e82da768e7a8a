//! Commands that another user runs: `sudo PROGRAM WORDS`.
//!
//! The password comes on the standard input of a script at the host and is in no argument and no variable.
//! `sudo` gets it before the program is begun, and only to remember that it was right; what follows on
//! standard input is the program's. A signal does not reach what another user runs, so the script passes it
//! on by the same right.

use toolkit::server::Failure;

use crate::command::SUDO;
use crate::end::End;
use crate::hosts::{Host, Place, Secret, Sudo};
use crate::processes::Aftermath;
use crate::upstream::Ended;

/// What the script says once sudo has let the user in.
const IN: &[u8] = b"durward-sudo:in\n";
/// The script's exit code where sudo let nobody in.
const REFUSED: u32 = 126;
/// Before what the script says.
const SAYS: &[u8] = b"durward-sudo:";

/// `$0` says whether there is a password; the words are the command. A shell that is told by its environment to print what
/// it runs (`SHELLOPTS`) would print the password. What sudo says first is told where it refuses; elsewhere it is a lecture.
const SCRIPT: &str = "{ set +x; } 2>/dev/null; exec 3<&0; case $0 in ask) IFS= read -r p; \
printf '%s\\n' \"$p\" | sudo -S -p '' -v || { echo durward-sudo:refused >&2; exit 126; }; p=; echo durward-sudo:in >&2; \
sudo -n -v 2>/dev/null || { echo durward-sudo:forgets >&2; exit 126; };; esac; \
sudo -n -- \"$@\" <&3 3<&- & c=$!; exec 3<&-; \
k() { set -- $1 $2 $(cat /proc/$2/task/$2/children 2>/dev/null); sudo -n kill -$1 $2 2>/dev/null; s=$1; shift 2; for q; do k $s $q; done; }; \
trap 'k TERM $c; sleep 0.5 2>/dev/null || sleep 1; k KILL $c; wait $c; echo durward-sudo:ended >&2; exit 143' TERM; wait $c";

/// Whether a command is one of these.
pub(crate) fn is(argv: &[String]) -> bool {
    argv.first().is_some_and(|program| program == SUDO)
}

/// The words that run a command of another user's.
///
/// # Errors
/// Where the host's credential does not say how.
pub(crate) fn words(argv: &[String], host: &Host) -> Result<Vec<String>, Failure> {
    let how = match &host.credential.sudo {
        Some(Sudo::Password(_)) => "ask",
        Some(Sudo::Passwordless) => "none",
        None => {
            let wrong = format!(
                "{} runs nothing by sudo: its credential has no sudo_password_file, sudo_password_env or sudo: passwordless",
                host.name
            );
            return Err(Failure::new("no_sudo", wrong));
        }
    };
    let mut words = ["sh", "-c", SCRIPT, how].map(str::to_owned).to_vec();
    words.extend(argv.iter().skip(1).cloned());
    Ok(words)
}

/// The password that the script asks for; none where sudo wants none.
///
/// # Errors
/// Where it cannot be read, or is no line.
pub(crate) fn secret(
    host: &Host,
    read: impl Fn(&Place) -> Result<Secret, String>,
) -> Result<Option<Secret>, Failure> {
    let Some(Sudo::Password(place)) = &host.credential.sudo else {
        return Ok(None);
    };
    let unreadable = |wrong: String| Failure::new("credential_unreadable", wrong);
    let secret = read(place).map_err(unreadable)?;
    if secret.expose().contains(['\n', '\0']) {
        let wrong = format!("the sudo password of {} is more than one line", host.name);
        return Err(unreadable(wrong));
    }
    Ok(Some(secret))
}

/// Takes what the script said out of a command's errors, and does what it says.
///
/// # Errors
/// Where sudo let nobody in.
pub(crate) fn heard(ended: &mut Ended, host: &Host) -> Result<(), Failure> {
    let mut is_ended = false;
    let stderr = &mut ended.stderr;
    if let Some(at) = stderr.bytes.windows(IN.len()).position(|is| is == IN) {
        let lecture = at + IN.len();
        stderr.bytes.drain(..lecture);
        stderr.length = stderr.length.saturating_sub(lecture as u64);
    }
    let said = take(&mut ended.stderr.bytes);
    // A program may print the same, which is no reason to say that it did not run.
    let may_refuse = ended.end == End::Exited(REFUSED);
    let user = &host.credential.user;
    for line in &said {
        ended.stderr.length = ended.stderr.length.saturating_sub(line.len() as u64);
        let wrong = match line.get(SAYS.len()..).unwrap_or_default() {
            b"ended\n" => {
                is_ended = true;
                continue;
            }
            b"refused\n" if may_refuse => {
                let told = String::from_utf8_lossy(&ended.stderr.bytes);
                format!("sudo did not let {user} in: {}", told.trim())
            }
            b"forgets\n" if may_refuse => format!(
                "sudo does not remember {user} for one command (timestamp_timeout=0), which is not supported; give this user NOPASSWD and set sudo: passwordless"
            ),
            _ => continue,
        };
        return Err(Failure::new("sudo_refused", wrong));
    }
    // The shell's end alone does not say that what another user runs has ended.
    if let Some(left) = ended.end.left_mut()
        && *left == Aftermath::Dead
        && !is_ended
    {
        *left = Aftermath::unknown("sudo did not say that its command has ended");
    }
    Ok(())
}

/// Takes the script's lines out.
fn take(bytes: &mut Vec<u8>) -> Vec<Vec<u8>> {
    let (said, kept): (Vec<&[u8]>, Vec<&[u8]>) = bytes
        .split_inclusive(|byte| *byte == b'\n')
        .partition(|line| line.starts_with(SAYS));
    if said.is_empty() {
        return Vec::new();
    }
    let said = said.into_iter().map(<[u8]>::to_vec).collect();
    *bytes = kept.concat();
    said
}
