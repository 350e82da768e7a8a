//! The directory of segments: which there are, how each begins and ends, and which one may be continued.

use std::collections::HashSet;
use std::fs::{self, File};
use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};

use serde::Deserialize;

use super::body::{Continues, Header};
use super::chain::{LINE_BYTES_MAX, Line};
use super::head::Head;
use super::{JournalError, PublicKey, SegmentId, instant};

/// Most segments that a directory may hold.
pub(super) const SEGMENTS_MAX: usize = 100_000;

/// Longest header line, in bytes.
const HEADER_BYTES_MAX: u64 = 4_096;

/// The segments of a directory, oldest first by name. Files of another name are none of ours.
pub(super) fn segments(directory: &Path) -> io::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(directory)? {
        let path = entry?.path();
        if id_of(&path).is_some() {
            found.push(path);
        }
        if found.len() > SEGMENTS_MAX {
            return Err(io::Error::other(format!(
                "more than {SEGMENTS_MAX} segments"
            )));
        }
    }
    found.sort();
    Ok(found)
}

/// The segment id that a file's name states.
pub(super) fn id_of(path: &Path) -> Option<SegmentId> {
    let (_, id) = path
        .file_name()?
        .to_str()?
        .strip_suffix(".jsonl")?
        .rsplit_once('-')?;
    SegmentId::parse(id)
}

/// The time that a file's name states.
pub(super) fn named_ms(path: &Path) -> Option<i64> {
    let (time, _) = path.file_name()?.to_str()?.split_once('-')?;
    instant::parse_compact(time)
}

/// The header of a segment, when its first line is whole and holds.
pub(super) fn header(path: &Path) -> io::Result<Option<Header>> {
    let mut start = Vec::new();
    File::open(path)?
        .take(HEADER_BYTES_MAX)
        .read_to_end(&mut start)?;
    let Some(line) = start
        .split_inclusive(|byte| *byte == b'\n')
        .next()
        .and_then(|line| line.strip_suffix(b"\n"))
    else {
        return Ok(None);
    };
    let line = Line::parse(line);
    let header = line.and_then(|line| Some((line, Header::parse(line.body)?)));
    Ok(header
        .filter(|(line, header)| line.sequence == 0 && line.holds(header.segment))
        .map(|(_, header)| header))
}

/// The last whole line of a segment.
pub(super) struct End {
    pub(super) sequence: u64,
    pub(super) hash: super::EntryHash,
    /// It is a closing record, rightly hashed and signed by this key.
    pub(super) closed: bool,
}

/// Reads a segment's end; `None` when it has no whole line there.
pub(super) fn end(path: &Path, id: SegmentId, key: PublicKey) -> io::Result<Option<End>> {
    let mut file = File::open(path)?;
    let size_bytes = file.metadata()?.len();
    let block = LINE_BYTES_MAX as u64;
    file.seek(SeekFrom::Start(size_bytes.saturating_sub(block)))?;
    let mut tail = Vec::new();
    file.take(block).read_to_end(&mut tail)?;
    let whole = tail
        .iter()
        .rposition(|byte| *byte == b'\n')
        .and_then(|last| tail.get(..last));
    let last = whole.and_then(|whole| whole.rsplit(|byte| *byte == b'\n').next());
    let Some(line) = last.and_then(Line::parse) else {
        return Ok(None);
    };
    let torn = !tail.ends_with(b"\n");
    let closed = !torn && line.holds(id) && closing(&line, id, key);
    Ok(Some(End {
        sequence: line.sequence,
        hash: line.entry,
        closed,
    }))
}

#[derive(Deserialize)]
struct Closing {
    event: String,
    kind: String,
    signature: String,
}

fn closing(line: &Line<'_>, id: SegmentId, key: PublicKey) -> bool {
    let Ok(raw) = serde_json::from_slice::<Closing>(line.body) else {
        return false;
    };
    let message = super::chain::signed(true, id, line.sequence, line.previous);
    raw.kind == "system"
        && raw.event == "segment_closed"
        && super::body::signature(&raw.signature)
            .is_some_and(|signature| key.verifies(&message, &signature))
}

/// The newest closed segment of this key that nothing continues yet, of those that `head` names where there is one, and the
/// time in its name. The caller holds the directory's lock.
pub(super) fn continuable(
    directory: &Path,
    key: PublicKey,
    head: Option<&Head>,
) -> Result<Option<(Continues, Option<i64>)>, JournalError> {
    let failed = |path: &Path| {
        let path = path.to_path_buf();
        move |error| JournalError::Read { path, error }
    };
    let paths = segments(directory).map_err(failed(directory))?;
    if paths.len() >= SEGMENTS_MAX {
        return Err(JournalError::TooManySegments {
            segments_max: SEGMENTS_MAX,
        });
    }
    let mut continued = HashSet::new();
    let mut candidates = Vec::new();
    for path in paths {
        let Some(header) = header(&path).map_err(failed(&path))? else {
            continue;
        };
        continued.extend(header.continues.map(|continues| continues.segment));
        if header.public_key == key && id_of(&path) == Some(header.segment) {
            candidates.push((path, header.segment));
        }
    }
    // What the head does not name was put there by somebody else, or before there was a head.
    let known = |segment| head.is_none_or(|head| head.end(segment).is_some());
    candidates.retain(|(_, segment)| !continued.contains(segment) && known(*segment));
    for (path, segment) in candidates.iter().rev() {
        if let Some(end) = end(path, *segment, key).map_err(failed(path))?
            && end.closed
        {
            let continues = Continues {
                segment: *segment,
                sequence: end.sequence,
                hash: end.hash,
            };
            return Ok(Some((continues, named_ms(path))));
        }
    }
    Ok(None)
}
