//! The folder of a population run: parts that are written whole or not at all, so that a run can continue after a stop.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use super::super::failure::interrupt;
use super::CommandFailure;
use crate::watch::{Interrupt, Watch};

/// Parts of one run.
pub(super) struct RunParts {
    folder: PathBuf,
    head: String,
    individuals: usize,
    size: usize,
    done: Vec<AtomicBool>,
}

/// A part of all parts, for one of several processes: those with this remainder of their number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Shard {
    index: usize,
    count: usize,
}

impl Shard {
    /// All parts.
    pub(super) const WHOLE: Self = Self { index: 0, count: 1 };

    /// Reads `I/N`, 1 to N.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let (index, count) = text.split_once('/')?;
        let (index, count): (usize, usize) = (index.parse().ok()?, count.parse().ok()?);
        let index = index.checked_sub(1).filter(|i| *i < count)?;
        Some(Self { index, count })
    }

    fn holds(self, part: usize) -> bool {
        part % self.count == self.index
    }
}

/// What ended the work on a folder: the watch, or `what` could not be done.
pub(super) fn folder_failure(e: &io::Error, what: &str) -> CommandFailure {
    interrupt(e).map_or_else(
        || CommandFailure::failure(format!("{what}: {e}")),
        interrupt_failure,
    )
}

/// Returns the failure of a run that was ended.
pub(super) fn interrupt_failure(cause: Interrupt) -> CommandFailure {
    CommandFailure::failure(format!("{cause}; the parts that were done are kept"))
        .with_hint("the same command goes on where it stopped")
}

/// Names within the folder.
const INPUTS: &str = "inputs.txt";
const RESULTS: &str = "results.csv";
const FAILURES: &str = "failures.csv";
pub(super) const POPULATION: &str = "population.csv";
/// The joined results while they grow.
const UNFINISHED: &str = "results.tmp";
/// Beginning of the names of parts.
const PART: &str = "part-";
/// End of the names of files that are not whole yet.
const BESIDE: &str = ".tmp";
/// Line of a part between its rows and its failures.
const FAULTS: &str = "#failures\n";
/// Last line of a part, before its checksum.
const CHECK: &str = "#checksum ";

impl RunParts {
    /// Opens the folder: parts of the same inputs that are whole count as done, others are refused or made again.
    pub(super) fn open(
        folder: &Path,
        head: String,
        inputs: u64,
        individuals: usize,
        size: usize,
        watch: &Watch<'_>,
    ) -> Result<Self, CommandFailure> {
        if size == 0 {
            return Err(CommandFailure::misuse(
                "--chunk must be at least 1".to_owned(),
            ));
        }
        let io = |e: io::Error| folder_failure(&e, &format!("cannot use {}", folder.display()));
        let wanted = format!("{inputs:016x}\n{individuals} {size}\n{head}");
        let noted = folder.join(INPUTS);
        match fs::read_to_string(&noted) {
            Ok(found) if found == wanted => {}
            Ok(_) => {
                let message = format!(
                    "{} holds results of other inputs (model, population, options or version)",
                    folder.display()
                );
                return Err(
                    CommandFailure::misuse(message).with_hint("name another folder with --out")
                );
            }
            Err(e) if e.kind() == io::ErrorKind::NotFound => {
                write_whole(&noted, wanted.as_bytes()).map_err(io)?;
            }
            Err(e) => return Err(io(e)),
        }
        Self::find_parts(folder, head, individuals, size, watch).map_err(io)
    }

    fn find_parts(
        folder: &Path,
        head: String,
        individuals: usize,
        size: usize,
        watch: &Watch<'_>,
    ) -> io::Result<Self> {
        let mut parts = Self {
            folder: folder.to_owned(),
            head,
            individuals,
            size,
            done: Vec::new(),
        };
        let finished = folder.join(RESULTS).exists();
        let is_done = |part| {
            watch.check()?;
            // A present part is checked whole.
            let there = finished || parts.name(part).exists();
            if there && !finished {
                watch.ask()?;
            }
            let done = finished || there && parts.whole(part).is_some();
            Ok(AtomicBool::new(done))
        };
        let done = (0..individuals.div_ceil(size)).map(is_done);
        parts.done = done.collect::<io::Result<_>>()?;
        Ok(parts)
    }

    /// Returns the parts of one run that lie in several folders, brought together in the first; the others keep theirs.
    pub(super) fn gather(
        folder: &Path,
        others: &[PathBuf],
        watch: &Watch<'_>,
    ) -> Result<Self, CommandFailure> {
        let io = |folder: &Path| {
            let name = folder.display().to_string();
            move |e: io::Error| folder_failure(&e, &format!("cannot use {name}"))
        };
        let source = others.first().map_or(folder, PathBuf::as_path);
        let noted = source.join(INPUTS);
        let inputs = fs::read_to_string(&noted).map_err(|e| {
            let message = format!(
                "{} is not a folder of a population run: {e}",
                source.display()
            );
            CommandFailure::misuse(message)
        })?;
        for other in others.iter().map(PathBuf::as_path).chain([folder]) {
            match fs::read_to_string(other.join(INPUTS)) {
                Ok(found) if found == inputs => {}
                Err(e) if e.kind() == io::ErrorKind::NotFound && other == folder => {
                    fs::create_dir_all(folder).map_err(io(folder))?;
                    write_whole(&folder.join(INPUTS), inputs.as_bytes()).map_err(io(folder))?;
                }
                Ok(_) => {
                    let (a, b) = (source.display(), other.display());
                    return Err(CommandFailure::misuse(format!(
                        "{a} and {b} hold results of different inputs (model, population, options or version)"
                    )));
                }
                Err(e) => return Err(io(other)(e)),
            }
        }
        let damaged = || CommandFailure::failure(format!("{} is damaged", noted.display()));
        let (_, rest) = inputs.split_once('\n').ok_or_else(damaged)?;
        let (shape, head) = rest.split_once('\n').ok_or_else(damaged)?;
        let (individuals, size) = shape.split_once(' ').ok_or_else(damaged)?;
        let number = |text: &str| text.parse().ok().filter(|n| *n > 0).ok_or_else(damaged);
        let (individuals, size) = (number(individuals)?, number(size)?);
        let parts = Self::find_parts(folder, head.to_owned(), individuals, size, watch);
        let parts = parts.map_err(io(folder))?;
        for other in others {
            parts.take_from(other, watch).map_err(io(other))?;
        }
        Ok(parts)
    }

    /// Copies what is not here yet and whole in another folder.
    fn take_from(&self, other: &Path, watch: &Watch<'_>) -> io::Result<()> {
        let there = Self::find_parts(other, self.head.clone(), self.individuals, self.size, watch)?;
        for (part, done) in self.done.iter().enumerate() {
            watch.ask()?;
            if done.load(Ordering::Relaxed) {
                continue;
            }
            if let Some(whole) = there.whole(part) {
                write_whole(&self.name(part), whole.text.as_bytes())?;
                done.store(true, Ordering::Relaxed);
            }
        }
        let people = POPULATION;
        if !self.folder.join(people).exists() && other.join(people).exists() {
            write_whole(&self.folder.join(people), &fs::read(other.join(people))?)?;
        }
        Ok(())
    }

    /// Numbers of the parts that are still to be run.
    pub(super) fn missing(&self) -> Vec<usize> {
        (0..self.count()).filter(|p| !self.is_done(*p)).collect()
    }

    /// Returns how many parts there are.
    pub(super) fn count(&self) -> usize {
        self.done.len()
    }

    /// Returns the parts of a shard: how many are done, and how many there are.
    pub(super) fn done(&self, shard: Shard) -> (usize, usize) {
        let own = (0..self.count()).filter(|p| shard.holds(*p));
        own.fold((0, 0), |(done, all), part| {
            (done + usize::from(self.is_done(part)), all + 1)
        })
    }

    /// Returns whether a part is to be run by this shard.
    pub(super) fn is_open(&self, part: usize, shard: Shard) -> bool {
        shard.holds(part) && !self.is_done(part)
    }

    fn is_done(&self, part: usize) -> bool {
        self.done
            .get(part)
            .is_none_or(|d| d.load(Ordering::Acquire))
    }

    /// Returns how many individuals there are in all.
    pub(super) fn individuals(&self) -> usize {
        self.individuals
    }

    /// Rows of the population in a part.
    pub(super) fn range(&self, part: usize) -> Range<usize> {
        let from = part * self.size;
        from..(from + self.size).min(self.individuals)
    }

    fn name(&self, part: usize) -> PathBuf {
        self.folder.join(format!("{PART}{part:06}.csv"))
    }

    /// Returns a part that is there and whole.
    fn whole(&self, part: usize) -> Option<PartText> {
        let text = fs::read_to_string(self.name(part)).ok()?;
        let (body, check) = text.rsplit_once(CHECK)?;
        let sound = check.trim_end() == checksum(body);
        let (rows, _) = body.split_once(FAULTS)?;
        let (rows, end) = (rows.len(), body.len());
        sound.then_some(PartText { text, rows, end })
    }

    /// Writes a part with its checksum. The checksum shows losses by a crash of the machine.
    pub(super) fn write(&self, part: usize, results: &str, failures: &str) -> io::Result<()> {
        let body = format!("{results}{FAULTS}{failures}");
        let check = checksum(&body);
        let beside = beside(&self.name(part));
        fs::write(&beside, format!("{body}{CHECK}{check}\n"))?;
        fs::rename(&beside, self.name(part))?;
        if let Some(done) = self.done.get(part) {
            done.store(true, Ordering::Release);
        }
        Ok(())
    }

    /// Takes the parts away once they are joined, with what processes that were killed left of them, and gives back the
    /// number of failures.
    fn cleared(&self) -> io::Result<usize> {
        for entry in fs::read_dir(&self.folder)? {
            let entry = entry?;
            let name = entry.file_name();
            let name = name.to_string_lossy();
            if name.starts_with(PART) && name.ends_with(BESIDE) {
                fs::remove_file(entry.path())?;
            }
        }
        for part in 0..self.count() {
            match fs::remove_file(self.name(part)) {
                Err(e) if e.kind() != io::ErrorKind::NotFound => return Err(e),
                _ => {}
            }
        }
        let lines = fs::read_to_string(self.folder.join(FAILURES))?
            .lines()
            .count();
        Ok(lines.saturating_sub(1))
    }
}

/// The text of a part: rows of results, failures and the checksum.
struct PartText {
    text: String,
    /// End of the rows.
    rows: usize,
    /// End of the failures.
    end: usize,
}

impl PartText {
    fn rows(&self) -> &str {
        self.text.get(..self.rows).unwrap_or_default()
    }

    fn failures(&self) -> &str {
        let from = self.rows + FAULTS.len();
        self.text.get(from..self.end).unwrap_or_default()
    }
}

/// The parts as one table of results and one of failures, which grow while parts are still made.
pub(super) struct JoinedTables<'a> {
    parts: &'a RunParts,
    /// `None` if the results are there already.
    table: Option<File>,
    faults: String,
    next: usize,
}

impl<'a> JoinedTables<'a> {
    /// Tables without a part.
    pub(super) fn begin(parts: &'a RunParts) -> io::Result<Self> {
        let mut table = None;
        if !parts.folder.join(RESULTS).exists() {
            let mut file = File::create(parts.folder.join(UNFINISHED))?;
            file.write_all(parts.head.as_bytes())?;
            table = Some(file);
        }
        Ok(Self {
            parts,
            table,
            faults: String::from("IndividualId,Error\n"),
            next: 0,
        })
    }

    /// Adds the parts that are there, up to the first that is not; `watch` is asked before each.
    pub(super) fn follow(&mut self, watch: &Watch<'_>) -> io::Result<()> {
        let Some(table) = &mut self.table else {
            return Ok(());
        };
        let parts = self.parts;
        while self.next < parts.count() && parts.is_done(self.next) {
            watch.ask()?;
            let gone = || io::Error::other(format!("part {} is damaged or gone", self.next));
            let part = parts.whole(self.next).ok_or_else(gone)?;
            table.write_all(part.rows().as_bytes())?;
            self.faults.push_str(part.failures());
            self.next += 1;
        }
        Ok(())
    }

    /// Adds what is left and takes the parts away. Gives back the number of failures.
    pub(super) fn finish(mut self, watch: &Watch<'_>) -> io::Result<usize> {
        self.follow(watch)?;
        let folder = &self.parts.folder;
        if let Some(table) = self.table.take() {
            if self.next < self.parts.count() {
                return Err(io::Error::other(format!("part {} is gone", self.next)));
            }
            table.sync_data()?;
            fs::write(folder.join(FAILURES), &self.faults)?;
            fs::rename(folder.join(UNFINISHED), folder.join(RESULTS))?;
        }
        self.parts.cleared()
    }
}

/// Returns the name under which a file is written before it gets its own.
fn beside(name: &Path) -> PathBuf {
    name.with_extension(format!("{}{BESIDE}", std::process::id()))
}

/// Writes a file under another name first, so that a file under its own name is always whole.
pub(super) fn write_whole(name: &Path, content: &[u8]) -> io::Result<()> {
    write_pieces(name, std::iter::once(Ok(content)))
}

/// As [`write_whole`], piece by piece; the first that could not be made ends it.
pub(super) fn write_pieces<P: AsRef<[u8]>>(
    name: &Path,
    pieces: impl Iterator<Item = io::Result<P>>,
) -> io::Result<()> {
    let beside = beside(name);
    let mut file = BufWriter::new(File::create(&beside)?);
    for piece in pieces {
        file.write_all(piece?.as_ref())?;
    }
    file.into_inner()?.sync_data()?;
    fs::rename(&beside, name)
}

/// Returns the checksum of a part.
fn checksum(body: &str) -> String {
    let mut digest = WordDigest::default();
    digest.bytes(body.as_bytes());
    format!("{:016x}", digest.value())
}

/// FNV-1a over words of 64 bits, each turned a little so that all its bits reach all of the sum: finds damage and
/// mistakes, not forgery.
pub(super) struct WordDigest(u64);

impl Default for WordDigest {
    fn default() -> Self {
        Self(BASIS)
    }
}

impl WordDigest {
    pub(super) fn word(&mut self, word: u64) {
        self.0 = (self.0 ^ word).wrapping_mul(PRIME).rotate_left(TURN);
    }

    /// Adds a piece with its length before it.
    pub(super) fn bytes(&mut self, piece: &[u8]) {
        let (words, rest) = piece.as_chunks::<8>();
        let mut last = [0; 8];
        last.iter_mut().zip(rest).for_each(|(to, from)| *to = *from);
        self.word(piece.len() as u64);
        let words = words.iter().chain([&last]);
        words.for_each(|word| self.word(u64::from_le_bytes(*word)));
    }

    pub(super) fn value(&self) -> u64 {
        self.0
    }
}

/// Start and factor of FNV-1a in 64 bits.
const BASIS: u64 = 0xcbf2_9ce4_8422_2325;
const PRIME: u64 = 0x0000_0100_0000_01b3;
/// By how many bits a sum is turned after each word.
const TURN: u32 = 23;

/// FNV-1a in 64 bits.
pub(super) fn fnv(bytes: impl Iterator<Item = u8>) -> u64 {
    bytes.fold(BASIS, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(PRIME)
    })
}

#[cfg(test)]
mod tests;
