//! Output that is too long for an answer: kept in a store, read in parts.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use toolkit::outputs::{Grep, OutputBounds, OutputError, Outputs, Position, shown};
use toolkit::server::{Answer, Args, Content, Failure};
use toolkit::store::Store;

use crate::random;

/// Chunks that wait to be written; more hold up the command.
const CHUNKS_MAX: usize = 16;
/// Most matching lines of one answer.
const MATCHES: usize = 200;
/// Streams of a command: its output, then its errors.
pub(crate) const STREAMS: usize = 2;

/// What is kept between calls, on the disk.
#[derive(Debug)]
pub(crate) struct Shelf {
    pub store: Arc<Store>,
    pub outputs: Arc<Outputs>,
}

/// What is kept; it is opened when something is to be kept for the first time, and tried again where that failed.
#[derive(Debug)]
pub(crate) struct Kept {
    directory: Option<PathBuf>,
    shelf: Mutex<Option<Arc<Shelf>>>,
}

/// Where a command's long output goes.
#[derive(Debug)]
pub(crate) struct Spill {
    outputs: Arc<Outputs>,
    caller: String,
    writing: Option<Writing>,
}

#[derive(Debug)]
struct Writing {
    chunks: mpsc::Sender<(usize, Vec<u8>)>,
    done: JoinHandle<Result<Spilled, OutputError>>,
}

/// What became of a long output.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Spilled {
    /// By which its caller reads it.
    pub handle: String,
    /// Bytes that are not kept.
    pub dropped: u64,
}

impl Kept {
    /// A store in this directory; without one, what is too long is counted and thrown away.
    pub fn new(directory: Option<PathBuf>) -> Self {
        Self {
            directory,
            shelf: Mutex::default(),
        }
    }

    /// What is kept here; `None` without a directory. Blocks on the disk where it was not open.
    pub fn shelf(&self) -> Option<Result<Arc<Shelf>, String>> {
        let directory = self.directory.as_deref()?;
        let mut shelf = self.shelf.lock().unwrap_or_else(PoisonError::into_inner);
        Some(match &*shelf {
            Some(open) => Ok(Arc::clone(open)),
            None => open(directory).inspect(|opened| *shelf = Some(Arc::clone(opened))),
        })
    }

    /// Whether an earlier process has kept something here.
    pub fn is_there(&self) -> bool {
        let mut entries = self.directory.as_deref().and_then(|at| at.read_dir().ok());
        entries
            .as_mut()
            .is_some_and(|entries| entries.next().is_some())
    }

    /// Where a command of this caller's may put what is too long.
    pub fn spill(&self, caller: &str) -> Option<Spill> {
        match self.shelf()? {
            Ok(shelf) => Some(Spill {
                outputs: Arc::clone(&shelf.outputs),
                caller: caller.to_owned(),
                writing: None,
            }),
            Err(wrong) => {
                tracing::warn!(wrong, "long outputs cannot be kept");
                None
            }
        }
    }

    /// A part of an output, or the lines of it that match.
    pub async fn read(
        &self,
        caller: &str,
        handle: &str,
        args: Args<'_>,
    ) -> Result<Answer, Failure> {
        let outputs = match self.shelf() {
            None => return Err(Failure::new("no_outputs", "no outputs are kept here")),
            Some(Err(wrong)) => return Err(Failure::new("no_outputs", wrong)),
            Some(Ok(shelf)) => Arc::clone(&shelf.outputs),
        };
        let handle = handle.to_owned();
        let stream = usize::from(args.get("stream").and_then(Value::as_str) == Some("stderr"));
        let at = args.count("at")?;
        let most = usize::try_from(args.count("bytes")?).unwrap_or(usize::MAX);
        let grep = match args.get("grep").and_then(Value::as_str) {
            Some(pattern) => {
                let context = usize::try_from(args.count("context")?).unwrap_or(usize::MAX);
                let line = args.count("line")?;
                let grep = Grep::new(pattern, false, context, MATCHES)
                    .map_err(|fault| Failure::new("unfit_pattern", fault.to_string()))?;
                Some((grep, Position { at, line }))
            }
            None => None,
        };
        let caller = caller.to_owned();
        let reading = tokio::task::spawn_blocking(move || {
            let failed = |error: OutputError| Failure::new("no_such_output", error.to_string());
            let reader = outputs
                .stream(&caller, &handle, stream, now_ms())
                .map_err(failed)?;
            let broken =
                |error: state::SpoolError| Failure::new("unreadable_output", error.to_string());
            match grep {
                Some((grep, from)) => reader.grep(&grep, from).map_err(broken).map(|found| lines(&found)),
                None => reader.page(at, most).map_err(broken).map(|page| {
                    let part = shown(&page.bytes);
                    let data = json!({"at": page.at, "bytes": page.bytes.len(), "length": reader.length(), "next": page.next, "encoding": part.encoding, "content": part.data});
                    Answer { content: vec![Content::Text(part.data)], ..Answer::data(data) }
                }),
            }
        });
        reading
            .await
            .map_err(|_| Failure::new("internal", "the output could not be read"))?
    }
}

fn lines(found: &toolkit::outputs::Found) -> Answer {
    let lines: Vec<Value> = found
        .lines
        .iter()
        .map(|line| {
            let part = shown(&line.bytes);
            json!({"line": line.position.line, "at": line.position.at, "is_match": line.is_match, "encoding": part.encoding, "content": part.data})
        })
        .collect();
    let next = found
        .next
        .map(|next| json!({"at": next.at, "line": next.line}));
    Answer::data(json!({"lines": lines, "next": next}))
}

fn open(directory: &Path) -> Result<Arc<Shelf>, String> {
    state::directory::create_private(directory).map_err(|error| error.to_string())?;
    let opened = Store::open_free(directory, Box::new(random::fill));
    let (store, _) = opened.map_err(|error| error.to_string())?;
    let outputs =
        Outputs::open(&store, OutputBounds::default()).map_err(|error| error.to_string())?;
    Ok(Arc::new(Shelf {
        store,
        outputs: Arc::new(outputs),
    }))
}

impl Spill {
    /// Takes more of a stream (0 output, 1 errors); waits where the disk is slower than the host.
    pub async fn push(&mut self, stream: usize, bytes: &[u8]) {
        let writing = self.writing.get_or_insert_with(|| {
            let (sender, mut chunks) = mpsc::channel::<(usize, Vec<u8>)>(CHUNKS_MAX);
            let (outputs, caller) = (Arc::clone(&self.outputs), self.caller.clone());
            let done = tokio::task::spawn_blocking(move || {
                // Those that nobody may read any more make room.
                outputs.sweep(now_ms())?;
                let (handle, mut writer) = outputs.create(&caller, STREAMS, now_ms())?;
                while let Some((stream, bytes)) = chunks.blocking_recv() {
                    writer.append(stream, &bytes)?;
                }
                let dropped = writer.finish()?.iter().map(|written| written.dropped).sum();
                Ok(Spilled { handle, dropped })
            });
            Writing {
                chunks: sender,
                done,
            }
        });
        // A writer that failed says so at the end.
        let _ = writing.chunks.send((stream, bytes.to_vec())).await;
    }

    /// What became of it; `None` where nothing was too long, or it could not be kept.
    pub async fn finish(self) -> Option<Spilled> {
        let Writing { chunks, done } = self.writing?;
        drop(chunks);
        match done.await {
            Ok(Ok(spilled)) => Some(spilled),
            Ok(Err(error)) => {
                tracing::warn!(%error, "a long output could not be kept");
                None
            }
            Err(_) => None,
        }
    }

    /// Whether something was too long.
    pub fn has_begun(&self) -> bool {
        self.writing.is_some()
    }
}

/// Now, in milliseconds since 1970.
pub(crate) fn now_ms() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| {
        i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
    })
}
