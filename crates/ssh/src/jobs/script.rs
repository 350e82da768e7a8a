//! What runs at the host for a job, and what it says.
//!
//! A job has a directory of its own at its host, `~/.cache/durward/jobs/NAME`. Making it is what starts the
//! job: it is made once, so a job starts once, however often the host is asked. There a supervisor, in a
//! session of its own, leaves the output and, at the end, the exit code. It lives on when the connection that
//! started it is gone.

use std::time::Duration;

use toolkit::server::Failure;

use crate::command::{QuoteFault, quoted};
use crate::end::Missing;
use crate::upstream::{Bounds, Ended, Mark, Order};

/// Before what a script says: a login shell may have said something of its own.
const SAYS: &str = "durward-job:";
/// Bytes of a block of `ulimit -f`.
const BLOCK_BYTES: u64 = 512;
/// How long a host may take to answer.
const TIME: Duration = Duration::from_secs(30);
/// Bytes around the output that a poll may come with.
const AROUND_BYTES: usize = 64 * 1024;

/// `$0` the name, `$1` blocks of each stream that are kept, then the command; its input comes on standard input. The place
/// of its exit code is taken beforehand: a disk that is full by the end has room for it.
const START: &str = "umask 077; [ -r /proc/self/environ ] || { echo 'there is no /proc' >&2; exit 71; }; \
command -v setsid >/dev/null || { echo 'there is no setsid' >&2; exit 71; }; \
d=${HOME:?}/.cache/durward/jobs; mkdir -p \"$d\" && cd \"$d\" || exit 70; \
mkdir \"$0\" || { [ -d \"$0\" ] || exit 70; echo durward-job:begun; exit 0; }; \
cd \"$0\" && cat >in && echo '               ' | cat >x && : >whole && mkfifo o e || exit 70; \
b=$1; shift; setsid sh -c \"$DURWARD_SUPERVISOR\" \"$PWD\" \"$b\" \"$@\" </dev/null >/dev/null 2>&1 & echo durward-job:begun";

/// `$0` the directory, `$1` blocks, then the command. What the command leaves behind may hold its streams for ever; they are
/// waited for two seconds, and where that is not enough, the exit code is followed by `open`. What finds no room on the disk is thrown away, and `whole` with it.
const SUPERVISOR: &str = "unset DURWARD_SUPERVISOR; d=$0 b=$1; shift; cd; echo $$ >\"$d/pid\"; \
(ulimit -c 0; ulimit -f \"$b\"; cat >\"$d/out\"; [ $? != 1 ] || rm -f \"$d/whole\"; exec cat >/dev/null) <\"$d/o\" & o=$!; \
(ulimit -c 0; ulimit -f \"$b\"; cat >\"$d/err\"; [ $? != 1 ] || rm -f \"$d/whole\"; exec cat >/dev/null) <\"$d/e\" & e=$!; \
\"$@\" <\"$d/in\" >\"$d/o\" 2>\"$d/e\" & wait $!; c=$?; \
l=; trap l=open USR1; (sleep 2; kill -USR1 $$) & w=$!; wait $o $e; kill $w; \
[ -e \"$d/whole\" ] || l=cut; echo \"$c $l\" 1<>\"$d/x\"; mv \"$d/x\" \"$d/exit\"; \
rm -f \"$d/in\" \"$d/o\" \"$d/e\" \"$d/whole\"";

/// `$0` the name, `$1` the mark, `$2` and `$3` where the streams are read on, `$4` how much of each, `$5` whether a job that has
/// not begun is to be kept from it.
const LOOK: &str = "umask 077; d=${HOME:?}/.cache/durward/jobs; \
if [ \"$5\" = 1 ] && mkdir -p \"$d\" && mkdir \"$d/$0\" 2>/dev/null; then echo durward-job:never 0 0 0 0; exit; fi; \
cd \"$d/$0\" 2>/dev/null || { echo durward-job:gone 0 0 0 0; exit; }; \
m=$1; lives() { p=$(cat pid 2>/dev/null) && grep -qs -- \"$m\" \"/proc/$p/environ\" || grep -qs -- \"$m\" /proc/[0-9]*/environ; }; \
s=running; [ -e exit ] || lives || s=lost; [ -e exit ] && { c=; l=; read -r c l <exit; s=lost; [ \"$c\" ] && s=ended:$c${l:+:$l}; }; \
o=0; [ -e out ] && o=$(wc -c <out); e=0; [ -e err ] && e=$(wc -c <err); \
part() { n=$(($1-$2)); [ $n -gt $3 ] && n=$3; [ $n -lt 0 ] && n=0; echo $n; }; \
a=$(part $o $2 $4); b=$(part $e $3 $4); echo durward-job:$s $((o)) $((e)) $a $b; \
[ $a -gt 0 ] && tail -c +$(($2+1)) out | head -c $a; [ $b -gt 0 ] && tail -c +$(($3+1)) err | head -c $b; :";

/// `$0` the name.
const CLEAR: &str = "rm -rf \"${HOME:?}/.cache/durward/jobs/$0\"";

/// A job at its host.
#[derive(Debug, Clone)]
pub(super) struct Remote {
    name: String,
    pub mark: Mark,
}

/// How a job is at its host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stands {
    Running,
    /// With this exit code.
    Ended(u32),
    /// Nothing of it runs, and nobody has left its exit code.
    Lost,
    /// There is no trace of it.
    Gone,
    /// It had not begun, and will not any more.
    Never,
}

/// What a look at a job told.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Look {
    pub stands: Stands,
    /// It has ended, and not all that it wrote is kept.
    pub missing: Option<Missing>,
    /// Lengths of its output and its errors.
    pub lengths: [u64; 2],
    /// What comes next of each.
    pub parts: [Vec<u8>; 2],
}

/// Where a look begins, and how much it takes.
#[derive(Debug, Clone, Copy)]
pub(super) struct From {
    pub at: [u64; 2],
    pub bytes_max: usize,
    /// A job that has not begun is not to begin any more.
    pub claims: bool,
}

impl Remote {
    pub fn new(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            mark: Mark::of(name),
        }
    }

    fn order(&self, words: &[String], stdin: Vec<u8>, bytes: usize) -> Result<Order, QuoteFault> {
        let bounds = Bounds {
            time: TIME,
            stream_bytes_max: bytes + AROUND_BYTES,
        };
        Ok(Order {
            stdin,
            ..Order::new(quoted(words)?, bounds)
        })
    }

    fn script(&self, script: &str, more: &[String]) -> Vec<String> {
        let mut words = ["sh", "-c", script, &self.name].map(str::to_owned).to_vec();
        words.extend_from_slice(more);
        words
    }

    /// Starts it.
    pub fn start(
        &self,
        argv: &[String],
        stdin: Vec<u8>,
        bytes_max: u64,
    ) -> Result<Order, QuoteFault> {
        let mut more = vec![bytes_max.div_ceil(BLOCK_BYTES).to_string()];
        more.extend_from_slice(argv);
        let mut words = self.mark.before(&self.script(START, &more));
        words.insert(1, format!("DURWARD_SUPERVISOR={SUPERVISOR}"));
        self.order(&words, stdin, 0)
    }

    /// Looks how it is, and what it has written.
    pub fn look(&self, from: From) -> Result<Order, QuoteFault> {
        let [out, err] = from.at.map(|at| at.to_string());
        let mark = self.mark.text().to_owned();
        let claims = u8::from(from.claims).to_string();
        let more = [mark, out, err, from.bytes_max.to_string(), claims];
        self.order(&self.script(LOOK, &more), Vec::new(), 2 * from.bytes_max)
    }

    /// Removes what is left of it.
    pub fn clear(&self) -> Result<Order, QuoteFault> {
        self.order(&self.script(CLEAR, &[]), Vec::new(), 0)
    }
}

/// Whether the start was heard, or why it was not possible.
pub(super) fn begun(ended: &Ended) -> Result<(), Failure> {
    if said(&ended.stdout.bytes).is_some_and(|(line, _)| line == "begun") {
        return Ok(());
    }
    let told = String::from_utf8_lossy(&ended.stderr.bytes);
    let wrong = format!("the job could not be started: {}", told.trim());
    Err(Failure::new("job_not_started", wrong))
}

/// What a script said, and what follows.
fn said(bytes: &[u8]) -> Option<(&str, &[u8])> {
    let says = SAYS.as_bytes();
    let at = bytes.windows(says.len()).position(|part| part == says)?;
    let rest = bytes.get(at + says.len()..)?;
    let end = rest.iter().position(|byte| *byte == b'\n')?;
    let line = std::str::from_utf8(rest.get(..end)?).ok()?;
    Some((line, rest.get(end + 1..)?))
}

impl Look {
    /// Reads what a look gave; `None` where it is no such thing.
    pub fn read(bytes: &[u8]) -> Option<Self> {
        let (line, rest) = said(bytes)?;
        let mut words = line.split(' ');
        let word = words.next()?;
        let marks = [
            (":cut", Missing::OverBound),
            (":open", Missing::StreamsOpen),
        ];
        let marked = marks
            .into_iter()
            .find_map(|(mark, missing)| Some((word.strip_suffix(mark)?, Some(missing))));
        let (word, missing) = marked.unwrap_or((word, None));
        let stands = match word {
            "running" => Stands::Running,
            "lost" => Stands::Lost,
            "gone" => Stands::Gone,
            "never" => Stands::Never,
            other => Stands::Ended(other.strip_prefix("ended:")?.parse().ok()?),
        };
        let mut number = || words.next()?.parse::<u64>().ok();
        let lengths = [number()?, number()?];
        let [a, b] = [number()?, number()?].map(|n| usize::try_from(n).unwrap_or(usize::MAX));
        let out = rest.get(..a)?.to_vec();
        let err = rest.get(a..a.checked_add(b)?)?.to_vec();
        Some(Self {
            stands,
            missing,
            lengths,
            parts: [out, err],
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_host_says_is_read_behind_what_its_shell_says() {
        let look = Look::read(b"motd\ndurward-job:ended:3 5 7 2 1\nabc and more").unwrap();
        assert_eq!((look.stands, look.missing), (Stands::Ended(3), None));
        let cut = Look::read(b"durward-job:ended:0:cut 0 0 0 0\n").unwrap();
        let over = Some(Missing::OverBound);
        assert_eq!((cut.stands, cut.missing), (Stands::Ended(0), over));
        let open = Look::read(b"durward-job:ended:7:open 0 0 0 0\n").unwrap();
        let streams = Some(Missing::StreamsOpen);
        assert_eq!((open.stands, open.missing), (Stands::Ended(7), streams));
        assert_eq!(look.lengths, [5, 7]);
        assert_eq!(look.parts, [b"ab".to_vec(), b"c".to_vec()]);
        for (word, stands) in [
            ("running", Stands::Running),
            ("lost", Stands::Lost),
            ("gone", Stands::Gone),
            ("never", Stands::Never),
        ] {
            let look = Look::read(format!("durward-job:{word} 0 0 0 0\n").as_bytes());
            assert_eq!(look.unwrap().stands, stands);
        }
    }

    #[test]
    fn what_is_no_answer_is_none() {
        for bytes in [
            &b""[..],
            b"durward-job:",
            b"durward-job:running 0 0 0 0",
            b"durward-job:running 0 0\n",
            b"durward-job:running 9 9 9 9\nshort",
            b"durward-job:ended:x 0 0 0 0\n",
            b"durward-job:ended:1 0 0 18446744073709551615 18446744073709551615\n",
            b"durward-job:\xff 0 0 0 0\n",
        ] {
            assert_eq!(Look::read(bytes), None, "{bytes:?}");
        }
    }

    #[test]
    fn scripts_can_be_quoted_for_every_shell() {
        let remote = Remote::new("job_x");
        let argv = ["sleep".to_owned(), "1".to_owned()];
        let from = From {
            at: [0, 0],
            bytes_max: 1,
            claims: true,
        };
        assert!(remote.start(&argv, Vec::new(), 1).is_ok());
        assert!(remote.look(from).is_ok() && remote.clear().is_ok());
    }
}
