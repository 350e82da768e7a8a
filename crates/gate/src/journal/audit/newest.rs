//! Segments from the newest to the oldest, and what their ends tell of them.

use std::borrow::Cow;
use std::fs::File;
use std::io::{ErrorKind, Read as _, Seek as _, SeekFrom};
use std::iter::{Enumerate, Rev};
use std::path::{Path, PathBuf};
use std::vec::IntoIter;

use serde::Deserialize;

use super::verify::{AuditError, failed, files};
use crate::journal::{Line, parse_utc};

/// Bytes at the end of a segment in which its last record is looked for.
const TAIL_BYTES_MAX: u64 = 64 << 10;

/// The segments that there are, from the newest on.
pub(super) struct Newest(Rev<Enumerate<IntoIter<PathBuf>>>);

/// One of them, opened.
pub(super) struct Segment {
    /// A later one has a larger number.
    pub(super) number: usize,
    pub(super) path: PathBuf,
    pub(super) file: File,
}

impl Newest {
    pub(super) fn of(path: &Path) -> Result<Self, AuditError> {
        Ok(Self(files(path)?.into_iter().enumerate().rev()))
    }

    /// The next one. Those whose last record is older than `not_before_ms` are passed over, and those that retention let go
    /// after the directory was listed.
    pub(super) fn next(
        &mut self,
        not_before_ms: Option<i64>,
    ) -> Result<Option<Segment>, AuditError> {
        for (number, path) in self.0.by_ref() {
            let Some(mut file) = open(&path)? else {
                continue;
            };
            if let Some(not_before_ms) = not_before_ms
                && last_ms(&path, &mut file)?.is_some_and(|ms| ms < not_before_ms)
            {
                continue;
            }
            return Ok(Some(Segment { number, path, file }));
        }
        Ok(None)
    }
}

/// A segment's file; nothing where retention let it go after the directory was listed.
pub(super) fn open(path: &Path) -> Result<Option<File>, AuditError> {
    match File::open(path) {
        Ok(file) => Ok(Some(file)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(failed(path)(error)),
    }
}

/// The time of a segment's last record, in milliseconds since 1970; nothing where it can't be read at once.
fn last_ms(path: &Path, file: &mut File) -> Result<Option<i64>, AuditError> {
    let length = file.metadata().map_err(failed(path))?.len();
    let start = length.saturating_sub(TAIL_BYTES_MAX);
    let mut tail = Vec::new();
    file.seek(SeekFrom::Start(start)).map_err(failed(path))?;
    let mut end = std::io::Read::take(&mut *file, TAIL_BYTES_MAX);
    end.read_to_end(&mut tail).map_err(failed(path))?;
    file.rewind().map_err(failed(path))?;
    let mut lines = tail.split(|byte| *byte == b'\n').rev();
    let is_whole = lines.next().is_some_and(<[u8]>::is_empty);
    let line = lines.next().filter(|_| is_whole).and_then(Line::parse);
    Ok(line.map(|line| time_ms(line.body)).filter(|ms| *ms > 0))
}

/// The time of a record, in milliseconds since 1970; 0 where it has none.
pub(super) fn time_ms(body: &[u8]) -> i64 {
    #[derive(Deserialize)]
    struct Timed<'a> {
        #[serde(borrow)]
        time: Cow<'a, str>,
    }
    let timed = serde_json::from_slice::<Timed<'_>>(body).ok();
    timed.and_then(|of| parse_utc(&of.time)).unwrap_or_default()
}
