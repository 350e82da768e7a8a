//! Notes of work under way, which outlive a kill: the next start can settle the work that was cut.
//!
//! One file of slots of a fixed size. A slot begins with a mark and the numbers so far, each in a fixed number of
//! digits, and continues with a text, which is bytes to this module. `kill -9` loses nothing that was
//! written; a loss of power may lose data that the system had not written yet.

use std::fmt;
use std::fs::{File, OpenOptions};
use std::io::{self, Read as _};
use std::os::unix::fs::{FileExt as _, OpenOptionsExt as _};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use rustix::fs::{FlockOperation, flock};

/// Numbers of a note.
pub const NUMBERS: usize = 5;
/// Longest text of a note, in bytes.
pub const ABOUT_BYTES_MAX: usize = SLOT_BYTES - HEAD_BYTES - LENGTH_DIGITS - 1;
/// Most notes at once.
pub const NOTES_MAX: usize = 16_384;

/// Bytes of a slot. Unwritten parts take no space on the disk.
const SLOT_BYTES: usize = 16 * 1024;
/// Digits of a number.
const DIGITS: usize = 20;
/// The mark, the numbers with a space before each, and the end of the line.
const HEAD_BYTES: usize = 1 + NUMBERS * (DIGITS + 1) + 1;
/// Digits of the length of the text.
const LENGTH_DIGITS: usize = 8;
/// The first byte of a slot that is in use.
const MARK: u8 = b'U';

/// The file, and which of its slots are free.
pub struct Underway {
    file: File,
    slots: Mutex<Slots>,
}

#[derive(Debug, Default)]
struct Slots {
    /// Slots that were used and are free again.
    free: Vec<usize>,
    /// Slots that were ever used.
    count: usize,
}

/// A note. Dropped, it is gone from the file.
#[must_use = "a note that is dropped is gone"]
pub struct Note {
    of: Arc<Underway>,
    slot: usize,
}

/// A note of a process that did not end its work.
#[derive(Debug)]
pub struct Left {
    /// Text of the note.
    pub about: Vec<u8>,
    /// Numbers that were written last.
    pub numbers: [u64; NUMBERS],
    /// Dropped once it is settled.
    pub note: Note,
}

impl Underway {
    /// Opens the file, or creates it, and returns the notes in it. `None` if another process has it open.
    ///
    /// # Errors
    /// The error of the operating system.
    pub fn open(path: &Path) -> io::Result<Option<(Arc<Self>, Vec<Left>)>> {
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).mode(0o600);
        let mut file = options.open(path)?;
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => {}
            Err(rustix::io::Errno::WOULDBLOCK) => return Ok(None),
            Err(error) => return Err(error.into()),
        }
        let bytes_max = u64::try_from(SLOT_BYTES * NOTES_MAX).unwrap_or(u64::MAX);
        let mut bytes = Vec::new();
        (&mut file).take(bytes_max).read_to_end(&mut bytes)?;
        let slots: Vec<Option<([u64; NUMBERS], Vec<u8>)>> =
            bytes.chunks(SLOT_BYTES).map(parse).collect();
        let free = slots.iter().enumerate().rev();
        let free = free.filter(|(_, slot)| slot.is_none()).map(|(at, _)| at);
        let own = Arc::new(Self {
            file,
            slots: Mutex::new(Slots {
                free: free.collect(),
                count: slots.len(),
            }),
        });
        let left = slots.into_iter().enumerate().filter_map(|(slot, found)| {
            let (numbers, about) = found?;
            let of = Arc::clone(&own);
            let note = Note { of, slot };
            Some(Left {
                about,
                numbers,
                note,
            })
        });
        let left = left.collect();
        Ok(Some((own, left)))
    }

    /// Makes a note.
    ///
    /// # Errors
    /// An error if the note cannot be written, its text is too long, or there are too many.
    pub fn begin(self: &Arc<Self>, about: &[u8], numbers: [u64; NUMBERS]) -> io::Result<Note> {
        if about.len() > ABOUT_BYTES_MAX {
            return Err(io::Error::other("the note is too long"));
        }
        let slot = {
            let mut slots = self.slots.lock().unwrap_or_else(PoisonError::into_inner);
            match slots.free.pop() {
                Some(slot) => slot,
                None if slots.count >= NOTES_MAX => {
                    return Err(io::Error::other("there are too many notes"));
                }
                None => {
                    slots.count += 1;
                    slots.count - 1
                }
            }
        };
        let note = Note {
            of: Arc::clone(self),
            slot,
        };
        let mut bytes = head(numbers);
        bytes.extend_from_slice(format!("{:0LENGTH_DIGITS$}\n", about.len()).as_bytes());
        bytes.extend_from_slice(about);
        // If this fails, the dropped note clears its slot.
        self.file.write_all_at(&bytes, at(slot))?;
        Ok(note)
    }
}

impl Note {
    /// Writes how far the work is.
    ///
    /// # Errors
    /// The error of the operating system.
    pub fn write(&self, numbers: [u64; NUMBERS]) -> io::Result<()> {
        self.of.file.write_all_at(&head(numbers), at(self.slot))
    }
}

impl Drop for Note {
    fn drop(&mut self) {
        if self.of.file.write_all_at(&[0], at(self.slot)).is_err() {
            // It is read again at the next start; the slot is not used again before that.
            return;
        }
        let mut slots = self.of.slots.lock().unwrap_or_else(PoisonError::into_inner);
        slots.free.push(self.slot);
    }
}

fn at(slot: usize) -> u64 {
    u64::try_from(slot * SLOT_BYTES).unwrap_or(u64::MAX)
}

fn head(numbers: [u64; NUMBERS]) -> Vec<u8> {
    let mut out = Vec::with_capacity(HEAD_BYTES);
    out.push(MARK);
    for number in numbers {
        out.extend_from_slice(format!(" {number:0DIGITS$}").as_bytes());
    }
    out.push(b'\n');
    out
}

/// Parses a slot; returns `None` if it is free or incomplete.
fn parse(slot: &[u8]) -> Option<([u64; NUMBERS], Vec<u8>)> {
    if slot.first() != Some(&MARK) {
        return None;
    }
    let (head, rest) = slot.split_at_checked(HEAD_BYTES)?;
    let mut words = std::str::from_utf8(head).ok()?.split_whitespace().skip(1);
    let mut numbers = [0; NUMBERS];
    for number in &mut numbers {
        *number = words.next()?.parse().ok()?;
    }
    let (length, about) = rest.split_at_checked(LENGTH_DIGITS + 1)?;
    let length: usize = std::str::from_utf8(length).ok()?.trim_end().parse().ok()?;
    Some((numbers, about.get(..length)?.to_vec()))
}

impl fmt::Debug for Underway {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Underway").finish_non_exhaustive()
    }
}

impl fmt::Debug for Note {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Note").field(&self.slot).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::PathBuf;

    fn place(name: &str) -> PathBuf {
        let path = std::env::temp_dir().join(format!("underway-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir(&path).unwrap();
        path
    }

    fn open(path: &Path) -> (Arc<Underway>, Vec<Left>) {
        Underway::open(path).unwrap().expect("nobody has it")
    }

    #[test]
    fn what_is_not_ended_is_read_at_the_next_start_with_its_last_numbers() {
        let dir = place("left");
        let path = dir.join("underway");
        let (own, left) = open(&path);
        assert!(left.is_empty());
        assert!(
            Underway::open(&path).unwrap().is_none(),
            "one process has it"
        );
        let first = own.begin(b"first", [1, 0, 0, 0, 0]).unwrap();
        let second = own.begin("zwö\0lf".as_bytes(), [0; NUMBERS]).unwrap();
        second.write([u64::MAX, 2, 3, 4, 5]).unwrap();
        drop(first);
        let third = own.begin(b"", [7; NUMBERS]).unwrap();
        // As a kill leaves it: nothing is dropped.
        std::mem::forget((second, third));
        // A copy, because this process keeps the lock of the other.
        let copy = dir.join("copy");
        std::fs::copy(&path, &copy).unwrap();
        let (own, left) = open(&copy);
        let told: Vec<_> = left
            .iter()
            .map(|one| (&one.about[..], one.numbers))
            .collect();
        assert_eq!(
            told,
            [
                (&b""[..], [7; NUMBERS]),
                ("zwö\0lf".as_bytes(), [u64::MAX, 2, 3, 4, 5])
            ]
        );
        drop(left);
        drop(own);
        assert!(open(&copy).1.is_empty(), "what was settled is gone");
        std::fs::remove_dir_all(dir).unwrap();
    }

    #[test]
    fn what_is_too_long_is_refused_and_what_was_torn_is_no_note() {
        let dir = place("torn");
        let path = dir.join("underway");
        let (own, _) = open(&path);
        let long = vec![b'x'; ABOUT_BYTES_MAX + 1];
        assert!(own.begin(&long, [0; NUMBERS]).is_err());
        let longest = own.begin(&long[1..], [0; NUMBERS]).unwrap();
        let next = own.begin(b"next", [9; NUMBERS]).unwrap();
        std::mem::forget((longest, next));
        let bytes = std::fs::read(&path).unwrap();
        for cut in [0, 1, HEAD_BYTES, SLOT_BYTES - 1] {
            let torn = dir.join(format!("torn-{cut}"));
            std::fs::write(&torn, &bytes[..cut]).unwrap();
            assert!(open(&torn).1.is_empty(), "{cut}");
        }
        let whole = dir.join("whole");
        std::fs::write(&whole, &bytes).unwrap();
        assert_eq!(open(&whole).1.len(), 2);
        std::fs::remove_dir_all(dir).unwrap();
    }
}
