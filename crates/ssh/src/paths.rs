//! Where the paths of commands lead at their host, and what is run then.
//!
//! Before a command runs, the host is asked where each of its paths leads. A call whose paths lead elsewhere is
//! judged again with those places, and what runs names them instead of the links: who changes a link after that
//! changes nothing. Directories on the way may still be replaced; `docs/security.md` says what that leaves.

use std::io;
use std::time::{Duration, Instant};

use gate::paths::{PathArgument, Role, meanings};
use serde_json::{Map, Value};
use toolkit::cancel::Cancel;
use toolkit::server::{Failure, ReplySink};

use crate::command::{Command, Context, Part};
use crate::hosts::{Host, Links};
use crate::pool::Slot;
use crate::tools::normalised;

/// Opens a file, and reads it where what was opened is what was judged.
const GUARD: &str = "exec 3<\"$2\" || exit 1; [ ! -e /proc/$$/fd ] || [ \"$(readlink /proc/$$/fd/3)\" = \"$2\" ] || \
{ echo \"$2 was replaced while it was opened\" >&2; exit 1; }; exec head -c \"$1\" <&3";

/// Commands as they run.
#[derive(Debug)]
pub(crate) struct Opened {
    pub commands: Vec<Command>,
    /// Where they run, its links followed, and with which variables.
    pub context: Context,
    /// Paths that lead elsewhere, with their places.
    pub elsewhere: Map<String, Value>,
    /// Whether the host was asked.
    pub is_checked: bool,
    /// How long the host has taken, which is a part of the call's time; what a person has taken is none.
    pub took: Duration,
}

/// A path as a rule sees it.
pub(crate) fn argument(text: &str) -> PathArgument {
    PathArgument {
        text: text.to_owned(),
        role: Role::Path,
        content: false,
        // The links are at the other end.
        meaning: meanings(text, None),
    }
}

/// The host that is asked, and how long that may take.
pub(crate) struct Asking<'a, F> {
    pub host: &'a Host,
    /// A channel to it, and another one where the first was lost; each is only waited for where it is needed.
    pub slots: [F; 2],
    pub wait: Duration,
    /// It is not the host that the call was judged for, but a further one.
    pub further: bool,
}

impl<F: Future<Output = Result<Slot, Failure>>> Asking<'_, F> {
    /// The commands with every path as the place that it leads to; judged again where one leads elsewhere.
    pub async fn opened(
        self,
        commands: Vec<Command>,
        context: &Context,
        reply: &ReplySink,
    ) -> Result<Opened, Failure> {
        let uses: Vec<_> = commands.iter().map(Command::uses).collect();
        let operands = uses.iter().flat_map(|uses| &uses.operands);
        let named = operands
            .filter(|operand| operand.part == Part::Path)
            .map(|operand| context.place(operand.text));
        // The directory comes first; what only may be opened is judged, and stays as it is written.
        let beside: Vec<String> = uses.iter().flat_map(|uses| context.beside(uses)).collect();
        let paths: Vec<String> = beside.iter().cloned().chain(named).collect();
        let paths: Vec<&str> = paths.iter().map(String::as_str).collect();
        if paths.is_empty() || self.host.links == Links::Trusted {
            drop(uses);
            return Ok(Opened {
                context: context.clone(),
                commands,
                elsewhere: Map::new(),
                is_checked: false,
                took: Duration::ZERO,
            });
        }
        // What only may be a path need not lead anywhere.
        let cwd = usize::from(context.cwd.is_some());
        let is_path = |at: usize| at < cwd || at >= beside.len();
        let (places, elsewhere, took) = self.judged(&paths, is_path, reply).await?;
        let mut context = context.clone();
        if let (Some(cwd), Some(place)) = (&mut context.cwd, places.first()) {
            cwd.clone_from(place);
            context.is_checked = true;
        }
        let mut places = places.into_iter().skip(beside.len());
        let mut run = Vec::with_capacity(commands.len());
        for (command, uses) in commands.iter().zip(&uses) {
            let run_with = command.with_paths(uses, &mut places);
            run.push(run_with.map_err(|fault| Failure::new("unfit_path", fault.to_string()))?);
        }
        Ok(Opened {
            commands: run,
            context,
            elsewhere,
            is_checked: true,
            took,
        })
    }

    /// Where these paths lead, those that are none left as they are, judged where that is elsewhere; which do so; and how long the host has taken.
    pub async fn judged(
        self,
        paths: &[&str],
        is_path: impl Fn(usize) -> bool,
        reply: &ReplySink,
    ) -> Result<(Vec<String>, Map<String, Value>, Duration), Failure> {
        let mut elsewhere = Map::new();
        if self.host.links == Links::Trusted {
            let same = paths.iter().map(|path| (*path).to_owned());
            return Ok((same.collect(), elsewhere, Duration::ZERO));
        }
        let at = self.further.then(|| self.host.name.as_str().into());
        let asked = Instant::now();
        let places = self.led(paths, reply.cancel()).await?;
        let took = asked.elapsed();
        let mut found = Vec::new();
        let places: Result<Vec<String>, Failure> = places
            .into_iter()
            .zip(paths)
            .enumerate()
            .map(|(at, (led, path))| match led {
                Err(_) if !is_path(at) => Ok(normalised(path)),
                led => led,
            })
            .collect();
        let places = places?;
        for (path, place) in paths.iter().zip(&places) {
            if *place != normalised(path) && elsewhere.get(*path).is_none() {
                found.push(argument(place));
                elsewhere.insert((*path).to_owned(), place.as_str().into());
            }
        }
        if !found.is_empty() {
            reply.found_at(at, found).await?;
        }
        Ok((places, elsewhere, took))
    }

    /// Where each of these paths leads, or why it leads nowhere.
    pub async fn led(
        self,
        paths: &[&str],
        cancel: &Cancel,
    ) -> Result<Vec<Result<String, Failure>>, Failure> {
        let Self {
            host, slots, wait, ..
        } = self;
        let [first, again] = slots;
        let asking = async {
            let led = match first.await?.lead(paths).await {
                // Asking twice does no harm.
                Err(error) if is_lost(&error) => again.await?.lead(paths).await,
                led => led,
            };
            led.map_err(|error| unled(host, &error))
        };
        let late = "the host did not say in time where the paths lead; the command did not run";
        let gone = "the command was cancelled before it was sent; it did not run";
        let (led, _) = tokio::select! {
            led = tokio::time::timeout(wait, asking) => {
                led.map_err(|_| Failure::new("paths_unchecked", late).retryable())??
            }
            () = cancel.cancelled() => return Err(Failure::new("cancelled", gone)),
        };
        let told = paths.iter().zip(led).map(|(path, led)| {
            led.map_err(|wrong| {
                Failure::new("unresolved_path", format!("{path} leads nowhere: {wrong}"))
            })
        });
        Ok(told.collect())
    }
}

/// The words by which a file's beginning is read at its host: it is opened first, and read only where what was
/// opened is what was judged. Where the host has no `/proc`, that cannot be asked, and it is read all the same.
pub fn guarded(most: u64, place: &str) -> Vec<String> {
    let most = most.to_string();
    ["sh", "-c", GUARD, "head", &most, place]
        .map(str::to_owned)
        .to_vec()
}

/// Whether it is the connection that failed.
fn is_lost(error: &io::Error) -> bool {
    use io::ErrorKind::{BrokenPipe, ConnectionReset, UnexpectedEof};
    matches!(error.kind(), BrokenPipe | ConnectionReset | UnexpectedEof)
}

/// Why a host did not say where paths lead.
pub(crate) fn unled(host: &Host, error: &io::Error) -> Failure {
    let wrong = match error.kind() {
        io::ErrorKind::Unsupported => format!(
            "{} has no SFTP server that could say where paths lead; have it run one, or set links: trusted for this host",
            host.name
        ),
        // Text before the first answer, or none at all.
        io::ErrorKind::InvalidData | io::ErrorKind::UnexpectedEof => format!(
            "{} did not answer as an SFTP server does: a forced command, or a start-up file that prints text, gets in the way; the command did not run",
            host.name
        ),
        _ => format!(
            "{} did not say where the paths lead: {error}; the command did not run",
            host.name
        ),
    };
    Failure::new("paths_unchecked", wrong)
}
