//! The form in which results are kept: columns of numbers behind a header, so that a part of a file is a part of a
//! column and can be read alone.
//!
//! `DWCOLS01`, the header's length in 8 bytes, the header as JSON, blanks up to a multiple of 64 bytes, then the
//! columns one after another, each `rows` numbers in IEEE 754 double precision. All numbers are little-endian. The
//! first column is the time in minutes. `sha256` of the header covers everything behind it.

use std::fmt;

use pbpk::watch::{Interrupt, Question, Watch};
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use crate::models::{digest, hex};

const MAGIC: &[u8; 8] = b"DWCOLS01";
/// Alignment of the first column, in bytes.
const ALIGNMENT: usize = 64;
/// Bytes before the header.
const PREFIX_BYTES: usize = 16;
/// Longest header, in bytes.
const HEADER_BYTES_MAX: usize = 64 << 20;
/// Numbers that are written between two questions whether to stop.
const BLOCK: usize = 64 * 1024;
/// Placeholder of the digest until it is known; of the same length.
const NO_DIGEST: &str = "0000000000000000000000000000000000000000000000000000000000000000";

/// One column.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ResultColumn {
    /// Path of the quantity.
    pub parameter: String,
    /// Its base unit; may be empty.
    pub unit: String,
    /// Individual of the values, in a population.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subject: Option<i64>,
}

/// Header before the numbers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ColumnsHeader {
    /// Numbers of one column.
    pub rows: usize,
    /// The columns behind the time.
    pub columns: Vec<ResultColumn>,
    /// Digest of the numbers, in hex.
    pub sha256: String,
}

/// Columns of numbers.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Columns {
    /// Times in minutes.
    pub times: Vec<f64>,
    /// Descriptions of the columns.
    pub columns: Vec<ResultColumn>,
    /// Their numbers, column by column.
    pub values: Vec<f64>,
}

/// Bytes that are no columns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ColumnsFault(&'static str);

impl fmt::Display for ColumnsFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the kept result cannot be read: {}", self.0)
    }
}

impl std::error::Error for ColumnsFault {}

impl Columns {
    /// Returns the numbers of a column.
    #[must_use]
    pub fn column(&self, at: usize) -> &[f64] {
        let rows = self.times.len();
        self.values
            .get(at * rows..(at + 1) * rows)
            .unwrap_or_default()
    }

    /// As bytes. A large one takes a while: now and then it is asked whether to stop.
    ///
    /// # Errors
    /// Why it stopped.
    pub fn encode(&self, ask: Question<'_>) -> Result<Vec<u8>, Interrupt> {
        let header = ColumnsHeader {
            rows: self.times.len(),
            columns: self.columns.clone(),
            sha256: NO_DIGEST.to_owned(),
        };
        // A header of texts and numbers is always JSON.
        let mut text = serde_json::to_vec(&header).unwrap_or_default();
        // The digest is the last member, and put there when the numbers are known.
        let digest_at = (PREFIX_BYTES + text.len()).saturating_sub(NO_DIGEST.len() + 2);
        let whole = (PREFIX_BYTES + text.len()).next_multiple_of(ALIGNMENT);
        text.resize(whole - PREFIX_BYTES, b' ');
        let mut bytes = Vec::with_capacity(whole + 8 * (self.times.len() + self.values.len()));
        bytes.extend_from_slice(MAGIC);
        bytes.extend_from_slice(&(text.len() as u64).to_le_bytes());
        bytes.extend_from_slice(&text);
        let mut digest = Sha256::new();
        for block in self.times.chunks(BLOCK).chain(self.values.chunks(BLOCK)) {
            if let Some(cause) = ask() {
                return Err(cause);
            }
            let from = bytes.len();
            bytes.resize(from + 8 * block.len(), 0);
            let written = bytes.get_mut(from..).unwrap_or_default();
            for (to, number) in written.chunks_exact_mut(8).zip(block) {
                to.copy_from_slice(&number.to_le_bytes());
            }
            digest.update(written);
        }
        let digest = hex(&digest.finalize());
        if let Some(to) = bytes.get_mut(digest_at..digest_at + NO_DIGEST.len()) {
            to.copy_from_slice(digest.as_bytes());
        }
        Ok(bytes)
    }

    /// From bytes; the digest is compared with the numbers. Of many it takes a while.
    ///
    /// # Errors
    /// That of `watch`; within, [`ColumnsFault`].
    pub fn decode(
        bytes: &[u8],
        watch: &Watch<'_>,
    ) -> Result<Result<Self, ColumnsFault>, Interrupt> {
        let (header, numbers) = match Self::parted(bytes) {
            Ok(parts) => parts,
            Err(fault) => return Ok(Err(fault)),
        };
        if digest(numbers, watch)? != header.sha256 {
            let wrong = "its numbers are not those that were written";
            return Ok(Err(ColumnsFault(wrong)));
        }
        let number = |bytes: &[u8]| bytes.try_into().map(f64::from_le_bytes).unwrap_or(f64::NAN);
        let mut all: Vec<f64> = Vec::with_capacity(numbers.len() / 8);
        for block in numbers.chunks(8 * BLOCK) {
            watch.ask()?;
            all.extend(block.chunks_exact(8).map(number));
        }
        let values = all.split_off(header.rows.min(all.len()));
        Ok(Ok(Self {
            times: all,
            columns: header.columns,
            values,
        }))
    }

    /// Header and numbers, which fit together.
    fn parted(bytes: &[u8]) -> Result<(ColumnsHeader, &[u8]), ColumnsFault> {
        let (magic, rest) = bytes
            .split_first_chunk()
            .ok_or(ColumnsFault("it is cut off"))?;
        if magic != MAGIC {
            return Err(ColumnsFault("it is another form"));
        }
        let (length, rest) = rest
            .split_first_chunk()
            .ok_or(ColumnsFault("it is cut off"))?;
        let length = usize::try_from(u64::from_le_bytes(*length)).unwrap_or(usize::MAX);
        if length > HEADER_BYTES_MAX || length > rest.len() {
            return Err(ColumnsFault("it is cut off"));
        }
        let (header, numbers) = rest.split_at(length);
        let header: ColumnsHeader =
            serde_json::from_slice(header).map_err(|_| ColumnsFault("its header is damaged"))?;
        let count = (header.columns.len() + 1).checked_mul(header.rows);
        if count.and_then(|count| count.checked_mul(8)) != Some(numbers.len()) {
            return Err(ColumnsFault("its header and its length differ"));
        }
        Ok((header, numbers))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decoded(bytes: &[u8]) -> Result<Columns, ColumnsFault> {
        Columns::decode(bytes, &Watch::default()).unwrap()
    }

    fn columns() -> Columns {
        let column = |parameter: &str, subject| ResultColumn {
            parameter: parameter.to_owned(),
            unit: "µmol/l".to_owned(),
            subject,
        };
        Columns {
            times: vec![0.0, 1.0, 2.5],
            columns: vec![column("A", Some(7)), column("B", None)],
            values: vec![1.0, -0.0, f64::MIN_POSITIVE, 4.0, f64::INFINITY, 1e-300],
        }
    }

    #[test]
    fn what_is_written_is_read_bit_by_bit() {
        let written = columns();
        let bytes = written.encode(&|| None).unwrap();
        assert_eq!((bytes.len() - 8 * 9) % ALIGNMENT, 0);
        let read = decoded(&bytes).unwrap();
        assert_eq!(read, written);
        assert_eq!(read.column(1), [4.0, f64::INFINITY, 1e-300]);
        assert_eq!(read.column(2), [] as [f64; 0]);
    }

    #[test]
    fn writing_stops_when_it_is_told_to() {
        let asked = std::sync::atomic::AtomicUsize::new(0);
        let large = Columns {
            times: vec![0.0; 2 * BLOCK],
            ..Columns::default()
        };
        let count = || asked.fetch_add(1, std::sync::atomic::Ordering::Relaxed) + 1;
        let ask = || (count() == 2).then_some(Interrupt::Deadline);
        assert_eq!(large.encode(&ask), Err(Interrupt::Deadline));
        assert_eq!(asked.into_inner(), 2);
    }

    #[test]
    fn reading_stops_when_it_is_told_to() {
        let large = Columns {
            times: vec![0.0; 3 * BLOCK],
            ..Columns::default()
        };
        let bytes = large.encode(&|| None).unwrap();
        let asked = std::sync::atomic::AtomicUsize::new(0);
        let count = || asked.fetch_add(1, std::sync::atomic::Ordering::Relaxed) + 1;
        // Two looks while 1.5 MiB are digested, and one at each block.
        let ask = || (count() == 5).then_some(Interrupt::Cancelled);
        let read = Columns::decode(&bytes, &Watch::new(Some(&ask)));
        assert_eq!(read, Err(Interrupt::Cancelled));
        assert_eq!(asked.into_inner(), 5);
    }

    #[test]
    fn damage_is_seen_wherever_it_is() {
        let bytes = columns().encode(&|| None).unwrap();
        for at in 0..bytes.len() {
            let mut damaged = bytes.clone();
            damaged[at] ^= 1;
            let read = decoded(&damaged);
            // A changed unit or name is still a header; numbers are covered by the digest.
            let numbers = at >= bytes.len() - 72;
            assert!(!numbers || read.is_err(), "byte {at}");
            assert!(decoded(&bytes[..at]).is_err(), "cut at {at}");
        }
    }
}
