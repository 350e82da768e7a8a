//! What the journal's tests share.

pub(crate) mod forging;

use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};

use gate::effect::Effect;
use gate::journal::{
    Decision, EntryHash, Journal, JournalOptions, Keys, OpId, Operation, Record, SegmentId, Status,
    SyncPolicy, body_hash, entry_hash,
};

/// 2026-11-21T03:38:09.123Z
pub(crate) const NOW_MS: i64 = 1_795_232_289_123;

static PLACES: AtomicU64 = AtomicU64::new(1);

/// A counter that looks random enough to be told apart, in this process and from others.
pub(crate) fn random() -> impl FnMut(&mut [u8]) {
    let mut state = (PLACES.fetch_add(1, Ordering::Relaxed) << 32 | u64::from(std::process::id()))
        .wrapping_mul(0x9e37_79b9_7f4a_7c15);
    move |bytes| {
        for byte in bytes {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            *byte = (state >> 24) as u8;
        }
    }
}

/// A directory for one test, with keys; removed at its end.
pub(crate) struct Place {
    pub(crate) directory: PathBuf,
    pub(crate) keys: Keys,
    owned: bool,
}

impl Place {
    pub(crate) fn new(name: &str) -> Place {
        let number = PLACES.fetch_add(1, Ordering::Relaxed);
        let directory =
            std::env::temp_dir().join(format!("journal-{name}-{}-{number}", std::process::id()));
        let _ = std::fs::remove_dir_all(&directory);
        Place {
            directory,
            keys: Keys::ephemeral(&mut random()),
            owned: true,
        }
    }

    pub(crate) fn options() -> JournalOptions {
        JournalOptions {
            sync: SyncPolicy::Never,
            ..JournalOptions::default()
        }
    }

    pub(crate) fn open(&self) -> Journal {
        self.open_with(Place::options())
    }

    pub(crate) fn open_with(&self, options: JournalOptions) -> Journal {
        Journal::open(
            &self.directory,
            &self.keys,
            options,
            [7; 16],
            NOW_MS,
            &mut random(),
        )
        .unwrap()
    }

    /// A shell command that runs one test of this binary in another process, with this place.
    pub(crate) fn hand_over(&self, test: &str) -> String {
        let program = std::env::current_exe().unwrap();
        let (program, directory) = (program.display(), self.directory.display());
        format!("'{program}' --exact {test} --nocapture --skip 'place={directory}'")
    }

    /// The place that another process handed over; `None` where this test was not started so. Its keys are kept beside it.
    pub(crate) fn handed_over() -> Option<Place> {
        let mut arguments = std::env::args().skip_while(|argument| argument != "--skip");
        let directory = PathBuf::from(arguments.nth(1)?.strip_prefix("place=")?);
        let keys = Place::keys_of(&directory);
        Some(Place {
            directory,
            keys,
            owned: false,
        })
    }

    /// The keys that processes to which this place was handed over use.
    pub(crate) fn kept_keys(&self) -> Keys {
        Place::keys_of(&self.directory)
    }

    fn keys_of(directory: &std::path::Path) -> Keys {
        Keys::open(&directory.with_extension("keys"), &mut random()).unwrap()
    }

    /// A place whose keys are kept beside the journal, and so its head.
    pub(crate) fn kept(name: &str) -> Place {
        let mut place = Place::new(name);
        place.keys = place.kept_keys();
        place
    }

    /// The directory of the keys and the head.
    pub(crate) fn keys_directory(&self) -> PathBuf {
        self.directory.with_extension("keys")
    }

    /// The head's file.
    pub(crate) fn head(&self) -> PathBuf {
        self.keys_directory().join(gate::journal::HEAD_FILE)
    }

    /// Opens as an instance started this many milliseconds later would.
    pub(crate) fn open_with_later(&self, later_ms: i64) -> Journal {
        let now_ms = NOW_MS + later_ms;
        Journal::open(
            &self.directory,
            &self.keys,
            Place::options(),
            [8; 16],
            now_ms,
            &mut random(),
        )
        .unwrap()
    }

    /// The segment files, oldest first.
    pub(crate) fn files(&self) -> Vec<PathBuf> {
        let mut files: Vec<_> = std::fs::read_dir(&self.directory)
            .into_iter()
            .flatten()
            .map(|entry| entry.unwrap().path())
            .filter(|path| {
                path.extension()
                    .is_some_and(|extension| extension == "jsonl")
            })
            .collect();
        files.sort();
        files
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        if self.owned {
            let _ = std::fs::remove_dir_all(&self.directory);
            for beside in ["keys", "aside"] {
                let _ = std::fs::remove_dir_all(self.directory.with_extension(beside));
            }
        }
    }
}

pub(crate) fn decision(op: u128) -> Decision<'static> {
    Decision {
        op: OpId(op),
        decision: Effect::Allow,
        mcp_method: Some("tools/call"),
        tool_name: Some("read_file"),
        path: Some("/tmp/a"),
        ..Decision::default()
    }
}

pub(crate) fn operation(op: u128) -> Operation<'static> {
    Operation {
        op: OpId(op),
        status: Status::Success,
        method: Some("tools/call"),
        ..Operation::default()
    }
}

/// Writes `calls` calls, each with its decision and outcome.
pub(crate) fn calls(journal: &Journal, calls: std::ops::Range<u128>) {
    for op in calls {
        journal
            .append(NOW_MS, &Record::Decision(&decision(op)))
            .unwrap();
        journal
            .append(NOW_MS, &Record::Operation(&operation(op)))
            .unwrap();
    }
}

/// One line with right hashes, as anybody can make it.
pub(crate) fn forge(
    segment: SegmentId,
    sequence: u64,
    previous: EntryHash,
    body: &[u8],
) -> Vec<u8> {
    let entry = entry_hash(segment, previous, sequence, &body_hash(body));
    let body = String::from_utf8(body.to_vec()).unwrap();
    format!("{{\"sequence\":{sequence},\"prev_hash\":\"{previous}\",\"entry_hash\":\"{entry}\",\"body\":{body}}}\n")
        .into_bytes()
}

/// What a future of the gate comes to that lets others come first, at most once.
pub fn at_last<F: Future>(future: F) -> F::Output {
    let mut future = std::pin::pin!(future);
    let mut context = std::task::Context::from_waker(std::task::Waker::noop());
    for _ in 0..2 {
        if let std::task::Poll::Ready(output) = future.as_mut().poll(&mut context) {
            return output;
        }
    }
    panic!("nothing to wait for")
}
