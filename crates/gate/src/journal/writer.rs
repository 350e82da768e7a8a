//! The journal as the gate sees it.

use std::cell::RefCell;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, RwLock};

use state::directory::Waiting;
use state::{Composed, DirectoryLock, Log as _, directory};

use super::begin::{Begin, Begun};
use super::body::{self, Own};
use super::chain::{SegmentId, body_hash};
use super::head::{Courier, Head, Keeper, Steps, Witness};
use super::segment::{Declined, Segment, Weight};
use super::{Digest, JournalError, JournalOptions, Keys, Record, Usage, retention};
use crate::effect::Effect;

/// Capacity that a thread's buffer may keep between records, in bytes.
const BUFFER_KEPT_BYTES_MAX: usize = 16 * 1024;

/// Segments that one append may find ended before it gives up; more means that the size is set absurdly small.
const ROTATIONS_MAX: usize = 64;

thread_local! {
    static BUFFER: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// Where a record went.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Appended {
    /// Its position in the segment.
    pub sequence: u64,
    /// The segment.
    pub segment: SegmentId,
    /// Length of its line, in bytes.
    pub bytes: u64,
}

/// A record on its way into the file; dropped, it gets there all the same.
#[must_use = "what is recorded may happen only once this is finished"]
pub struct Appending {
    segment: Arc<Segment>,
    appended: Appended,
    composed: Option<Composed>,
}

impl Appending {
    /// Returns the length of the record's line, in bytes.
    pub(crate) fn bytes(&self) -> u64 {
        self.appended.bytes
    }

    /// Returns once the record is in the file, as [`Journal::append`] does.
    ///
    /// # Errors
    /// Any [`JournalError`]: the record is not in the journal, so what it records must not happen.
    pub fn finish(mut self) -> Result<Appended, JournalError> {
        if let Some(composed) = self.composed.take() {
            self.segment.log.finish(composed)?;
        }
        Ok(self.appended)
    }
}

impl Drop for Appending {
    fn drop(&mut self) {
        if let Some(composed) = self.composed.take() {
            // The log remembers its failure, and whoever comes next meets it.
            let _ = self.segment.log.finish(composed);
        }
    }
}

/// What a journal is given from outside while it is opened.
pub struct Surroundings<'a> {
    /// Fills its argument with uniform bytes.
    pub random: &'a mut dyn FnMut(&mut [u8]),
    /// Told when another process keeps a lock for long.
    pub waiting: &'a mut Waiting<'a>,
    /// Is given each head.
    pub witness: Option<Arc<dyn Witness>>,
    /// Told of each step that changes the disk; tests look at it then.
    pub steps: Option<Steps>,
}

/// An open journal. Shared by all threads behind an `Arc`.
pub struct Journal {
    directory: PathBuf,
    keys: Keys,
    options: JournalOptions,
    instance: [u8; 16],
    slot: RwLock<Slot>,
    rotation: Mutex<Names>,
    keeper: Option<Arc<Keeper>>,
    courier: Option<Courier>,
    appends: Appends,
}

#[derive(Clone)]
enum Slot {
    Open(Arc<Segment>),
    Closed,
    Failed(Arc<str>),
}

/// Who hears of appended records.
#[derive(Default)]
struct Appends {
    told: AtomicBool,
    hear: OnceLock<Box<dyn Fn() + Send + Sync>>,
}

impl Appends {
    fn tell(&self) {
        let is_told = self.told.load(Ordering::Acquire) || self.told.swap(true, Ordering::AcqRel);
        if let (false, Some(hear)) = (is_told, self.hear.get()) {
            hear();
        }
    }
}

/// Names for coming segments, drawn from one secret seed.
struct Names {
    seed: [u8; 32],
    drawn: u64,
}

impl Names {
    fn next(&mut self) -> SegmentId {
        self.drawn = self.drawn.saturating_add(1);
        let mut id = [0; 16];
        for (to, from) in id
            .iter_mut()
            .zip(blake3::keyed_hash(&self.seed, &self.drawn.to_be_bytes()).as_bytes())
        {
            *to = *from;
        }
        SegmentId(id)
    }
}

impl Journal {
    /// Opens a journal in `dir`, made `0700` where it is missing: starts a new segment, which continues the newest closed one
    /// that nobody continues yet, or else a chain of its own. `instance` names the running program, `now_ms` is milliseconds
    /// since 1970 (UTC), `random` fills its argument with uniform bytes.
    ///
    /// # Errors
    /// Any [`JournalError`]: nothing may be forwarded then.
    pub fn open(
        dir: &Path,
        keys: &Keys,
        opts: JournalOptions,
        instance: [u8; 16],
        now_ms: i64,
        random: &mut dyn FnMut(&mut [u8]),
    ) -> Result<Journal, JournalError> {
        let surroundings = Surroundings {
            random,
            waiting: &mut |_| {},
            witness: None,
            steps: None,
        };
        Journal::open_in(dir, keys, opts, (instance, now_ms), surroundings)
    }

    /// [`Journal::open`] with all that a program gives it. Where the keys are kept in a directory, so is a head: it names the
    /// new segment before there is one, and segments whose writers have died are named in records.
    ///
    /// # Errors
    /// As [`Journal::open`].
    pub fn open_in(
        dir: &Path,
        keys: &Keys,
        opts: JournalOptions,
        own: ([u8; 16], i64),
        surroundings: Surroundings<'_>,
    ) -> Result<Journal, JournalError> {
        Journal::open_chain(dir, keys, opts, own, surroundings, false)
    }

    /// [`Journal::open_in`], whose first segment may begin a chain of its own whatever there is to continue.
    pub(super) fn open_chain(
        dir: &Path,
        keys: &Keys,
        opts: JournalOptions,
        (instance, now_ms): ([u8; 16], i64),
        surroundings: Surroundings<'_>,
        is_new_chain: bool,
    ) -> Result<Journal, JournalError> {
        directory::create_private(dir)?;
        let mut names = Names {
            seed: [0; 32],
            drawn: 0,
        };
        (surroundings.random)(&mut names.seed);
        let keeper = Keeper::of(keys, opts.sync, surroundings.steps).map(Arc::new);
        let lock = DirectoryLock::acquire_telling(dir, surroundings.waiting)?;
        let begin = Begin {
            directory: dir,
            keys,
            options: opts,
            instance,
            keeper: keeper.as_deref(),
            now_ms,
            is_new_chain,
        };
        let Begun { segment, line } = begin.first(names.next())?;
        drop(lock);
        let witness = surroundings.witness;
        if let (Some(witness), Some(line)) = (&witness, &line) {
            witness.take(line).map_err(|error| JournalError::Witness {
                name: witness.name(),
                error,
            })?;
        }
        let courier = keeper.clone().map(|keeper| Courier::start(keeper, witness));
        Ok(Journal {
            directory: dir.to_path_buf(),
            keys: keys.clone(),
            options: opts,
            instance,
            slot: RwLock::new(Slot::Open(Arc::new(segment))),
            rotation: Mutex::new(names),
            appends: Appends::default(),
            keeper,
            courier: courier.transpose()?,
        })
    }

    /// Appends one record. When this returns, the record is in the file; under [`state::SyncPolicy::Every`], on the disk.
    /// An operation is over: it is written with the next record, at the latest after [`state::log::LATER_MS`], unless it says
    /// what was used. Before anything else, whether the path still names that file is looked at.
    ///
    /// # Errors
    /// Any [`JournalError`]: the record is not in the journal, so what it records must not happen. After an error that
    /// [`JournalError::is_fatal`] every later append fails too.
    pub fn append(&self, now_ms: i64, record: &Record<'_>) -> Result<Appended, JournalError> {
        self.begin(now_ms, record)?.finish()
    }

    /// [`Journal::append`] in two steps: what several calls begin on one thread, the first that finishes writes for all.
    ///
    /// # Errors
    /// As [`Journal::append`].
    pub fn begin(&self, now_ms: i64, record: &Record<'_>) -> Result<Appending, JournalError> {
        // The buffer is taken out for the time of use, so that nothing breaks should an append ever happen within an append.
        let mut body = BUFFER.take();
        body.clear();
        let result = body::write(&mut body, now_ms, record, &self.keys).and_then(|()| {
            let weight = match record {
                // What was used is settled elsewhere as well, and the two must agree over a kill.
                Record::Operation(over) if over.usage == Usage::default() => Weight::Afterwards,
                Record::Decision(decision) if decision.decision != Effect::Allow => Weight::Refusal,
                _ => Weight::Usual,
            };
            self.begin_body(now_ms, &body, weight)
        });
        body.shrink_to(BUFFER_KEPT_BYTES_MAX);
        BUFFER.set(body);
        result
    }

    fn begin_body(
        &self,
        now_ms: i64,
        body: &[u8],
        weight: Weight,
    ) -> Result<Appending, JournalError> {
        let hash = body_hash(body);
        for _ in 0..ROTATIONS_MAX {
            let segment = self.segment()?;
            match segment.begin(&self.keys, now_ms, (body, &hash), weight) {
                Ok(((sequence, bytes), composed)) => {
                    self.appends.tell();
                    let appended = Appended {
                        sequence,
                        segment: segment.id,
                        bytes,
                    };
                    return Ok(Appending {
                        segment,
                        appended,
                        composed,
                    });
                }
                Err(Declined::Ended) => self.rotate(&segment, now_ms)?,
                Err(Declined::Refused(error)) => return Err(error),
            }
        }
        Err(JournalError::Failed {
            cause: "segments end faster than they are opened".to_owned(),
        })
    }

    /// From now on `hear` is called when a record is appended, once until the next [`Journal::tick`]: whoever does not tick all
    /// the time begins again. The first to ask for it is heard.
    pub fn on_append(&self, hear: impl Fn() + Send + Sync + 'static) {
        // A second one would want the same.
        let _ = self.appends.hear.set(Box::new(hear));
    }

    /// The keyed digest of contents that must not be written.
    #[must_use]
    pub fn digest(&self, bytes: &[u8]) -> Digest {
        self.keys.digest(bytes)
    }

    /// To be called a few times a second: writes the checkpoint that is due by time, has the head brought up to date on its own
    /// thread, and looks whether the file is still ours, so that a quiet journal notices too.
    ///
    /// # Errors
    /// Any [`JournalError`]: the journal is over.
    pub fn tick(&self, now_ms: i64) -> Result<(), JournalError> {
        self.appends.told.store(false, Ordering::Release);
        let segment = self.segment()?;
        match segment.checkpoint(&self.keys, now_ms, false) {
            // Another thread is opening the next segment, which looks for itself.
            Err(Declined::Ended) => Ok(()),
            Err(Declined::Refused(error)) => Err(error),
            Ok(()) => {
                segment.log.check()?;
                self.bring_head(&segment, now_ms, false)
            }
        }
    }

    /// Has the head state where the journal ends at this moment and waits until it does, and until the witness knows.
    ///
    /// # Errors
    /// Any [`JournalError`]: the journal is over.
    pub fn settle(&self, now_ms: i64) -> Result<(), JournalError> {
        self.bring_head(&self.segment()?, now_ms, true)?;
        let Some(courier) = &self.courier else {
            return Ok(());
        };
        courier.settle();
        self.head_failure()
    }

    fn bring_head(
        &self,
        segment: &Arc<Segment>,
        now_ms: i64,
        now: bool,
    ) -> Result<(), JournalError> {
        self.head_failure()?;
        match &self.courier {
            Some(courier) if now || segment.wants_head(now_ms) => courier.follow(segment, now_ms),
            _ => Ok(()),
        }
    }

    /// A head that could not be kept ends the journal: what comes after could be taken away without a trace.
    fn head_failure(&self) -> Result<(), JournalError> {
        let Some(cause) = self.courier.as_ref().and_then(Courier::failure) else {
            return Ok(());
        };
        self.put(Slot::Failed(Arc::clone(&cause)));
        Err(JournalError::Failed {
            cause: cause.to_string(),
        })
    }

    /// Ends the journal for this reason: every later append fails.
    pub fn fail(&self, cause: &str) {
        self.put(Slot::Failed(cause.into()));
    }

    /// Appends records of the journal's own under a signature, and changes the head after them.
    pub(super) fn amend(
        &self,
        now_ms: i64,
        records: &[Own<'_>],
        change: &mut dyn FnMut(&mut Head),
    ) -> Result<(), JournalError> {
        let segment = self.segment()?;
        for own in records {
            let appended = segment.append_own(&self.keys, now_ms, own);
            appended.map_err(retention::refused)?;
        }
        let signed = segment.checkpoint(&self.keys, now_ms, true);
        signed.map_err(retention::refused)?;
        segment.log.sync()?;
        let Some(keeper) = &self.keeper else {
            return Ok(());
        };
        let kept = keeper.change(now_ms, true, &mut |head| {
            change(head);
            Ok(())
        })?;
        if let Some(kept) = kept {
            segment.headed(&kept.head);
        }
        Ok(())
    }

    /// Closes the segment with a signed record, syncs, and takes nothing more. Closing twice is harmless.
    ///
    /// # Errors
    /// Any [`JournalError`]; the segment then ends without its closing record, as after a crash.
    pub fn close(&self, now_ms: i64, reason: &str) -> Result<(), JournalError> {
        let turn = self.rotation.lock().unwrap_or_else(PoisonError::into_inner);
        let segment = match self.segment() {
            Err(JournalError::Closed) => return Ok(()),
            other => other?,
        };
        let result = segment.close(&self.keys, now_ms, reason);
        self.put(Slot::Closed);
        drop(turn);
        result?;
        segment.log.close()?;
        self.state_end(&segment, now_ms)
    }

    /// Has the head say that the last segment is closed.
    fn state_end(&self, segment: &Segment, now_ms: i64) -> Result<(), JournalError> {
        let Some(keeper) = &self.keeper else {
            return Ok(());
        };
        let end = segment.end(now_ms);
        let kept = keeper.change(now_ms, true, &mut |head| {
            // Another process may have continued it already: it is closed since before the head is changed.
            if head.end(segment.id).is_some() {
                head.put(end);
            }
            Ok(())
        })?;
        if let (Some(courier), Some(kept)) = (&self.courier, kept) {
            courier.hand_over(kept.line, now_ms);
            courier.settle();
        }
        Ok(())
    }

    /// Whether the journal still takes records, as far as is known without looking at the file.
    ///
    /// # Errors
    /// The [`JournalError`] that an append would meet.
    pub fn healthy(&self) -> Result<(), JournalError> {
        match self.segment()?.log.failure() {
            Some(error) => Err(error.into()),
            None => Ok(()),
        }
    }

    fn segment(&self) -> Result<Arc<Segment>, JournalError> {
        match &*self.slot.read().unwrap_or_else(PoisonError::into_inner) {
            Slot::Open(segment) => Ok(Arc::clone(segment)),
            Slot::Closed => Err(JournalError::Closed),
            Slot::Failed(cause) => Err(JournalError::Failed {
                cause: cause.to_string(),
            }),
        }
    }

    fn put(&self, slot: Slot) {
        *self.slot.write().unwrap_or_else(PoisonError::into_inner) = slot;
    }

    /// Puts a new segment in the place of `ended`, unless another thread has done so meanwhile.
    fn rotate(&self, ended: &Arc<Segment>, now_ms: i64) -> Result<(), JournalError> {
        let mut names = self.rotation.lock().unwrap_or_else(PoisonError::into_inner);
        let current = self.segment()?;
        if !Arc::ptr_eq(&current, ended) {
            return Ok(());
        }
        match self.succeed(&current, names.next(), now_ms) {
            Ok(next) => {
                self.put(Slot::Open(next));
                Ok(())
            }
            Err(error) => {
                self.put(Slot::Failed(error.to_string().into()));
                Err(error)
            }
        }
    }

    /// Closes `current` and opens its successor, under one lock, so that nobody else continues it.
    fn succeed(
        &self,
        current: &Segment,
        id: SegmentId,
        now_ms: i64,
    ) -> Result<Arc<Segment>, JournalError> {
        let lock = DirectoryLock::acquire(&self.directory)?;
        let begin = Begin {
            directory: &self.directory,
            keys: &self.keys,
            options: self.options,
            instance: self.instance,
            keeper: self.keeper.as_deref(),
            now_ms,
            is_new_chain: false,
        };
        let Begun { segment, line } = begin.after(current, id)?;
        drop(lock);
        if let (Some(courier), Some(line)) = (&self.courier, line) {
            courier.hand_over(line, now_ms);
        }
        Ok(Arc::new(segment))
    }
}

impl std::fmt::Debug for Journal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Journal")
            .field("directory", &self.directory)
            .finish_non_exhaustive()
    }
}
