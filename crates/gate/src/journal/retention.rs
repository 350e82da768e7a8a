//! Letting old segments go: each is named in a signed record before its file is deleted.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use state::{FileLog, Log as _, LogError, SyncPolicy, directory};

use super::body::Own;
use super::chain::SegmentId;
use super::head::{Keeper, Step};
use super::segment::{Declined, Segment};
use super::{JournalError, Keys, segment_files};

/// Most segments that go at one time: each has a record in the segment that begins. The rest goes with the next ones.
const GOING_MAX: usize = 8;

struct Old {
    path: PathBuf,
    id: SegmentId,
    size_bytes: u64,
}

/// Deletes the oldest segments that nobody writes until at most `retain_bytes_max` remain besides `current`. The caller holds
/// the directory's lock.
pub(super) fn retire(
    directory: &Path,
    keys: &Keys,
    current: &Segment,
    retain_bytes_max: u64,
    now_ms: i64,
    keeper: Option<&Keeper>,
) -> Result<(), JournalError> {
    let failed = |error| JournalError::Read {
        path: directory.to_path_buf(),
        error,
    };
    let mut old = Vec::new();
    for path in segment_files::segments(directory).map_err(failed)? {
        let Some(id) = segment_files::id_of(&path).filter(|id| *id != current.id) else {
            continue;
        };
        let size_bytes = fs::metadata(&path).map_err(failed)?.len();
        old.push(Old {
            path,
            id,
            size_bytes,
        });
    }
    let mut kept_bytes: u64 = old.iter().map(|segment| segment.size_bytes).sum();
    let (mut going, mut staying) = (Vec::new(), Vec::new());
    for segment in old {
        if kept_bytes <= retain_bytes_max || going.len() >= GOING_MAX {
            break;
        }
        // A segment that another process is writing, or a thread of ours since it was rotated, is locked, and stays. So does
        // what continues it: nothing else names it any more.
        if is_held(&segment.path)? || continues_any(&segment.path, &staying).map_err(failed)? {
            staying.push(segment.id);
            continue;
        }
        kept_bytes = kept_bytes.saturating_sub(segment.size_bytes);
        going.push(segment);
    }
    if going.is_empty() {
        return Ok(());
    }
    record(keys, current, &going, now_ms)?;
    if let Some(keeper) = keeper {
        keeper.step(Step::Retiring);
        forget(keeper, current, &going, now_ms)?;
        keeper.step(Step::Forgotten);
    }
    for segment in &going {
        match fs::remove_file(&segment.path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(failed(error)),
            _ => {}
        }
    }
    directory::sync(directory).map_err(failed)?;
    if let Some(keeper) = keeper {
        keeper.step(Step::Retired);
    }
    Ok(())
}

pub(super) fn is_held(path: &Path) -> Result<bool, LogError> {
    match FileLog::open(path, SyncPolicy::Never) {
        Err(LogError::Locked) => Ok(true),
        other => other.map(|_| false),
    }
}

fn continues_any(path: &Path, segments: &[SegmentId]) -> io::Result<bool> {
    if segments.is_empty() {
        return Ok(false);
    }
    let header = segment_files::header(path)?;
    let continues = header.and_then(|header| header.continues);
    Ok(continues.is_some_and(|before| segments.contains(&before.segment)))
}

/// Takes retired segments out of the head, and states that they went.
fn forget(
    keeper: &Keeper,
    current: &Segment,
    going: &[Old],
    now_ms: i64,
) -> Result<(), JournalError> {
    let ids: Vec<_> = going.iter().map(|segment| segment.id).collect();
    let latest_ms = going
        .iter()
        .filter_map(|old| segment_files::named_ms(&old.path))
        .max();
    let kept = keeper.change(now_ms, true, &mut |head| {
        head.drop_ends(&ids);
        head.retired_ms = head.retired_ms.max(latest_ms);
        Ok(())
    })?;
    if let Some(kept) = kept {
        current.headed(&kept.head);
    }
    Ok(())
}

fn record(keys: &Keys, current: &Segment, going: &[Old], now_ms: i64) -> Result<(), JournalError> {
    for segment in going {
        let end = segment_files::end(&segment.path, segment.id, keys.public());
        let end = end.map_err(|error| JournalError::Read {
            path: segment.path.clone(),
            error,
        })?;
        let own = Own::SegmentRetired {
            segment: segment.id,
            sequence: end.as_ref().map(|end| end.sequence),
            hash: end.as_ref().map(|end| end.hash),
            size_bytes: segment.size_bytes,
        };
        current.append_own(keys, now_ms, &own).map_err(refused)?;
    }
    current.checkpoint(keys, now_ms, true).map_err(refused)?;
    Ok(current.log.sync()?)
}

pub(super) fn refused(declined: Declined) -> JournalError {
    match declined {
        Declined::Ended => JournalError::Closed,
        Declined::Refused(error) => error,
    }
}
