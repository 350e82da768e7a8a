//! Where a login's own text ends and a command's output begins.
//!
//! A login shell runs start-up files before a command, and these may print text on both streams, or read the input. Where
//! one is known to print, and where a secret is sent, a command is begun by a script that first says that it begins:
//! what came before is not the command's, and its input is sent only then.

use russh::ChannelMsg;
use tokio::sync::oneshot;

use super::exec::{Ended, STDERR};
use crate::command::quoted;
use crate::random;

/// Says on both streams that the command begins. What is said is not in the script's own words, which a shell may
/// print as it runs them.
const SCRIPT: &str = "{ set +x; } 2>/dev/null; n=$1; shift; printf %s-err \"$n\" >&2; printf %s-out \"$n\"; exec \"$@\"";
/// How much is kept of what comes before, in bytes, for a command that does not begin.
const HELD_BYTES_MAX: usize = 64 * 1024;

/// A command says that it begins.
#[derive(Debug)]
pub(crate) struct Begin {
    /// What stands before the command's own line.
    pub line: String,
    /// What is said on each stream.
    said: [Vec<u8>; 2],
}

impl Begin {
    /// One that says what no other does.
    pub fn new() -> Option<Self> {
        let name = random::name("")?;
        let said = ["out", "err"].map(|stream| format!("{name}-{stream}").into_bytes());
        let line = quoted(&["sh", "-c", SCRIPT, "sh", &name].map(str::to_owned)).ok()?;
        let line = format!("{line} ");
        Some(Self { line, said })
    }
}

/// What has come of each stream before the command began.
#[derive(Debug, Default)]
pub(super) struct Before {
    streams: [Option<Waiting>; 2],
    /// Told when it begins.
    begun: Option<oneshot::Sender<()>>,
}

#[derive(Debug)]
struct Waiting {
    said: Vec<u8>,
    held: Vec<u8>,
}

impl Waiting {
    /// What follows the beginning, once that has come.
    fn take(&mut self, data: &[u8]) -> Option<Vec<u8>> {
        let from = self.held.len().saturating_sub(self.said.len());
        self.held.extend_from_slice(data);
        let new = self.held.get(from..).unwrap_or_default();
        let found = new.windows(self.said.len()).position(|is| is == self.said);
        if let Some(at) = found {
            return Some(self.held.split_off(from + at + self.said.len()));
        }
        let more = self.held.len().saturating_sub(HELD_BYTES_MAX);
        self.held.drain(..more);
        None
    }
}

impl Before {
    /// Waits for a beginning, where one is said; gives what is told when it comes.
    pub fn of(begin: Option<Begin>) -> (Self, Option<oneshot::Receiver<()>>) {
        let Some(Begin { said, .. }) = begin else {
            return (Self::default(), None);
        };
        let (begun, told) = oneshot::channel();
        let streams = said.map(|said| {
            let held = Vec::new();
            Some(Waiting { said, held })
        });
        let begun = Some(begun);
        (Self { streams, begun }, Some(told))
    }

    /// What of a message is the command's; none where nothing is.
    pub fn strip(&mut self, message: ChannelMsg) -> Option<ChannelMsg> {
        match message {
            ChannelMsg::Data { data } => {
                let data = self.own(0, data)?;
                Some(ChannelMsg::Data { data })
            }
            ChannelMsg::ExtendedData { data, ext: STDERR } => {
                let data = self.own(1, data)?;
                Some(ChannelMsg::ExtendedData { data, ext: STDERR })
            }
            other => Some(other),
        }
    }

    fn own<B: AsRef<[u8]> + From<Vec<u8>>>(&mut self, stream: usize, data: B) -> Option<B> {
        let Some(Some(waiting)) = self.streams.get_mut(stream) else {
            return Some(data);
        };
        let own = waiting.take(data.as_ref())?;
        if let Some(done) = self.streams.get_mut(stream) {
            *done = None;
        }
        if stream == 0
            && let Some(begun) = self.begun.take()
        {
            let _ = begun.send(());
        }
        (!own.is_empty()).then(|| own.into())
    }

    /// Where a command has not begun, what came instead says why.
    pub fn finish(self, ended: &mut Ended, keep: usize) {
        let [out, err] = self.streams;
        if let Some(out) = out {
            ended.stdout.push(&out.held, keep);
            let err = err.map(|err| err.held).unwrap_or_default();
            ended.stderr.push(&err, keep);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_has_begun_once_its_output_begins() {
        let line = String::new();
        let said = [b"x-out".to_vec(), b"x-err".to_vec()];
        let (mut before, told) = Before::of(Some(Begin { line, said }));
        let mut told = told.unwrap();
        assert_eq!(
            before.own(1, b"hi x-errown".to_vec()),
            Some(b"own".to_vec())
        );
        assert!(told.try_recv().is_err());
        assert_eq!(before.own(0, b"x-out".to_vec()), None);
        assert_eq!(told.try_recv(), Ok(()));
    }

    #[test]
    fn what_comes_before_a_command_is_taken_away_however_it_is_cut() {
        let said = [b"x-out".to_vec(), b"x-err".to_vec()];
        let text = b"hi x-ou x-outown x-out";
        for size in 1..text.len() {
            let line = String::new();
            let said = said.clone();
            let (mut before, told) = Before::of(Some(Begin { line, said }));
            let mut own = Vec::new();
            for part in text.chunks(size) {
                own.extend(before.own(0, part.to_vec()).unwrap_or_default());
            }
            assert_eq!(own, b"own x-out", "{size}");
            assert_eq!(told.unwrap().try_recv(), Ok(()));
        }
    }
}
