//! Results that are kept for the next time, each under the digest of everything that it depends on: the engine, the
//! model file, what was set, the outputs, times and tolerances, and for individuals of a population their values.
//!
//! An entry is written under another name first, so that one with its own name is whole, and ends with a digest of
//! itself: one that was damaged is taken away and computed again. The oldest entries go when the folder has no more
//! room.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::SystemTime;

use sha2::{Digest as _, Sha256};

use super::args::{CacheArgs, ModelArgs};
use super::failure::CommandFailure;
use crate::compile::Instance;
use crate::run::RunOptions;

/// First bytes of an entry.
const MAGIC: &[u8; 8] = b"PBPKRES1";
/// End of an entry's name.
const SUFFIX: &str = ".result";
const DIGEST_BYTES: usize = 32;
/// The folder is tidied when as large a part of its room as this may have been filled since the last time.
const UNTIDIED_PARTS: u64 = 8;
const MIB: u64 = 1 << 20;

/// A folder of results.
pub(super) struct ResultCache {
    folder: PathBuf,
    /// Most bytes in it.
    most: u64,
    /// Bytes that were written since the folder was tidied.
    untidied: AtomicU64,
}

/// The digest of everything that a result depends on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct CacheKey([u8; DIGEST_BYTES]);

/// The digest of what the results of a command have in common.
pub(super) struct InputDigest(Sha256);

/// Length and time of a file: another one means that it was written again.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct FileStamp(u64, Option<SystemTime>);

impl FileStamp {
    /// That of a file now.
    pub(super) fn of(file: &Path) -> io::Result<Self> {
        let about = fs::metadata(file)?;
        Ok(Self(about.len(), about.modified().ok()))
    }
}

impl InputDigest {
    /// Returns the digest of the command line's individual and run; `None` if the model file was written again since
    /// `stamp`.
    pub(super) fn new(
        args: &ModelArgs,
        stamp: &FileStamp,
        instance: &Instance,
        options: &RunOptions<'_>,
    ) -> io::Result<Option<Self>> {
        let model = fs::read(&args.model)?;
        if FileStamp::of(&args.model)? != *stamp {
            return Ok(None);
        }
        let mut all = Self(Sha256::new());
        let engine = FileStamp::of(&std::env::current_exe()?)?;
        all.add(format!("{MAGIC:?} {} {engine:?}", env!("CARGO_PKG_VERSION")).as_bytes());
        all.add(&model);
        let structure = instance.structure();
        all.add(format!("{} {:?}", args.strict, structure.outputs()).as_bytes());
        all.add(format!("{:?}", args.doses).as_bytes());
        let set = instance.values().iter().enumerate();
        for (q, value) in set.filter(|(q, _)| instance.is_set(*q)) {
            all.add(format!("{q} {:x}", value.to_bits()).as_bytes());
        }
        let o = options;
        let how = format!(
            "{:?} {:?} {:?} {:?} {:?} {:?} {:?} {} {} {} {:?}",
            o.rel_tol,
            o.abs_tol,
            o.max_steps,
            o.max_step,
            o.check_negative,
            o.precision,
            o.times,
            o.locate_events,
            o.osp_version,
            o.once_at_start,
            o.sensitivity_to
        );
        all.add(how.as_bytes());
        Ok(Some(all))
    }

    /// Adds a piece, with its length before it.
    fn add(&mut self, piece: &[u8]) {
        self.0.update((piece.len() as u64).to_le_bytes());
        self.0.update(piece);
    }

    /// Returns the key of one result: its kind, and what it depends on besides.
    pub(super) fn key(&self, kind: &str, pieces: &[&[u8]]) -> CacheKey {
        let mut all = Self(self.0.clone());
        all.add(kind.as_bytes());
        pieces.iter().for_each(|piece| all.add(piece));
        CacheKey(all.0.finalize().into())
    }
}

impl ResultCache {
    /// Returns the requested folder, made if absent.
    ///
    /// # Errors
    /// A folder that cannot be made or read.
    pub(super) fn open(args: &CacheArgs) -> Result<Option<Self>, CommandFailure> {
        let Some(folder) = &args.cache else {
            return Ok(None);
        };
        let io = |e: io::Error| {
            CommandFailure::failure(format!("cannot use {} as a cache: {e}", folder.display()))
        };
        fs::create_dir_all(folder).map_err(io)?;
        fs::read_dir(folder).map_err(io)?;
        Ok(Some(Self {
            folder: folder.clone(),
            most: args.cache_size.saturating_mul(MIB),
            untidied: AtomicU64::new(u64::MAX / 2),
        }))
    }

    fn file(&self, key: &CacheKey) -> PathBuf {
        let mut name = String::with_capacity(2 * DIGEST_BYTES + SUFFIX.len());
        for byte in key.0 {
            name.push_str(&format!("{byte:02x}"));
        }
        self.folder.join(name + SUFFIX)
    }

    /// Returns the result of a key, if it is there and whole. Removes a damaged one.
    pub(super) fn get(&self, key: &CacheKey) -> Option<Vec<u8>> {
        let file = self.file(key);
        let length = fs::metadata(&file).ok()?.len();
        let entry = (length <= self.most).then(|| fs::read(&file).ok())?;
        let found = entry.as_deref().and_then(|entry| content(entry, key));
        if found.is_none() {
            // What cannot be removed is written over.
            let _ = fs::remove_file(&file);
        }
        found
    }

    /// Keeps a result. One that takes more than an eighth of the room is not kept.
    ///
    /// # Errors
    /// Failure of the write; the result itself is still valid.
    pub(super) fn store(&self, key: &CacheKey, result: &[u8]) -> io::Result<()> {
        let length = (MAGIC.len() + 2 * DIGEST_BYTES + result.len()) as u64;
        let share = self.most / UNTIDIED_PARTS;
        if length > share {
            return Ok(());
        }
        if self.untidied.fetch_add(length, Ordering::Relaxed) + length > share {
            self.untidied.store(length, Ordering::Relaxed);
            self.tidy(self.most - share)?;
        }
        let mut digest = Sha256::new();
        let mut entry = Vec::with_capacity(MAGIC.len() + 2 * DIGEST_BYTES + result.len());
        for piece in [MAGIC.as_slice(), &key.0, result] {
            digest.update(piece);
            entry.extend_from_slice(piece);
        }
        entry.extend_from_slice(&digest.finalize());
        let name = self.file(key);
        let beside = name.with_extension(format!("{}.tmp", std::process::id()));
        let written = File::create(&beside).and_then(|mut file| {
            file.write_all(&entry)?;
            fs::rename(&beside, &name)
        });
        if written.is_err() {
            // Left behind, it goes with the oldest.
            let _ = fs::remove_file(&beside);
        }
        written
    }

    /// Takes the oldest entries away until the others have no more than `most` bytes. Touches nothing but entries.
    fn tidy(&self, most: u64) -> io::Result<()> {
        let mut entries = Vec::new();
        for entry in fs::read_dir(&self.folder)? {
            let entry = entry?;
            let name = entry.file_name();
            if !name.to_str().is_some_and(is_entry) {
                continue;
            }
            // Another process may have taken it away.
            if let Ok(about) = entry.metadata() {
                entries.push((about.modified().ok(), name, about.len()));
            }
        }
        let mut whole: u64 = entries.iter().map(|entry| entry.2).sum();
        entries.sort_unstable();
        for (_, name, length) in entries {
            if whole <= most {
                break;
            }
            match fs::remove_file(self.folder.join(name)) {
                Err(e) if e.kind() != io::ErrorKind::NotFound => return Err(e),
                _ => whole -= length,
            }
        }
        Ok(())
    }
}

/// Returns whether a file of this name is an entry, or one that was not finished.
fn is_entry(name: &str) -> bool {
    let (digest, rest) = name.split_at_checked(2 * DIGEST_BYTES).unwrap_or_default();
    digest.bytes().all(|b| b.is_ascii_hexdigit())
        && !digest.is_empty()
        && (rest == SUFFIX || rest.starts_with('.') && rest.ends_with(".tmp"))
}

/// Returns the result in an entry that is whole and belongs to the key.
fn content(entry: &[u8], key: &CacheKey) -> Option<Vec<u8>> {
    let (body, digest) = entry.split_at_checked(entry.len().checked_sub(DIGEST_BYTES)?)?;
    if Sha256::digest(body).as_slice() != digest {
        return None;
    }
    let result = body.strip_prefix(MAGIC)?.strip_prefix(&key.0)?;
    Some(result.to_vec())
}
