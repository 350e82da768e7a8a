//! The folder of a population run: parts that are written whole or not at all, so that a run goes on where it stopped.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use super::Failure;

/// Parts of one run.
pub(super) struct Parts {
    folder: PathBuf,
    head: String,
    individuals: usize,
    size: usize,
    done: Vec<AtomicBool>,
}

/// A part of all parts, for one of several processes: those whose number leaves this remainder.
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

/// Names within the folder.
const INPUTS: &str = "inputs.txt";
const RESULTS: &str = "results.csv";
const FAILURES: &str = "failures.csv";
pub(super) const POPULATION: &str = "population.csv";
/// Last line of a part, before its checksum.
const CHECK: &str = "#checksum ";

impl Parts {
    /// Opens the folder: parts of the same inputs that are whole count as done, others are refused or made anew.
    pub(super) fn open(
        folder: &Path,
        head: String,
        inputs: u64,
        individuals: usize,
        size: usize,
    ) -> Result<Self, Failure> {
        if size == 0 {
            return Err(Failure::misuse("--chunk must be at least 1".to_owned()));
        }
        let io = |e: io::Error| Failure::failed(format!("cannot use {}: {e}", folder.display()));
        let wanted = format!("{inputs:016x}\n{individuals} {size}\n{head}");
        let noted = folder.join(INPUTS);
        match fs::read_to_string(&noted) {
            Ok(found) if found == wanted => {}
            Ok(_) => {
                let message = format!(
                    "{} holds results of other inputs (model, population, options or version)",
                    folder.display()
                );
                return Err(Failure::misuse(message).with_hint("name another folder with --out"));
            }
            Err(e) if e.kind() == io::ErrorKind::NotFound => {
                write_whole(&noted, wanted.as_bytes()).map_err(io)?;
            }
            Err(e) => return Err(io(e)),
        }
        Ok(Self::found(folder, head, individuals, size))
    }

    fn found(folder: &Path, head: String, individuals: usize, size: usize) -> Self {
        let mut parts = Self {
            folder: folder.to_owned(),
            head,
            individuals,
            size,
            done: Vec::new(),
        };
        let finished = folder.join(RESULTS).exists();
        parts.done = (0..individuals.div_ceil(size))
            .map(|part| AtomicBool::new(finished || parts.whole(part).is_some()))
            .collect();
        parts
    }

    /// The parts of one run that lie in several folders, brought together in the first; the others keep theirs.
    pub(super) fn gather(folder: &Path, others: &[PathBuf]) -> Result<Self, Failure> {
        let io = |folder: &Path| {
            let name = folder.display().to_string();
            move |e: io::Error| Failure::failed(format!("cannot use {name}: {e}"))
        };
        let source = others.first().map_or(folder, PathBuf::as_path);
        let noted = source.join(INPUTS);
        let inputs = fs::read_to_string(&noted).map_err(|e| {
            let message = format!("{} is no folder of a population run: {e}", source.display());
            Failure::misuse(message)
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
                    return Err(Failure::misuse(format!(
                        "{a} and {b} hold results of different inputs (model, population, options or version)"
                    )));
                }
                Err(e) => return Err(io(other)(e)),
            }
        }
        let damaged = || Failure::failed(format!("{} is damaged", noted.display()));
        let (_, rest) = inputs.split_once('\n').ok_or_else(damaged)?;
        let (shape, head) = rest.split_once('\n').ok_or_else(damaged)?;
        let (individuals, size) = shape.split_once(' ').ok_or_else(damaged)?;
        let number = |text: &str| text.parse().ok().filter(|n| *n > 0).ok_or_else(damaged);
        let parts = Self::found(folder, head.to_owned(), number(individuals)?, number(size)?);
        for other in others {
            parts.take_from(other).map_err(io(other))?;
        }
        Ok(parts)
    }

    /// Copies what is not here yet and whole in another folder.
    fn take_from(&self, other: &Path) -> io::Result<()> {
        let there = Self::found(other, self.head.clone(), self.individuals, self.size);
        for (part, done) in self.done.iter().enumerate() {
            if !done.load(Ordering::Relaxed) && there.whole(part).is_some() {
                write_whole(&self.name(part), &fs::read(there.name(part))?)?;
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

    /// How many parts there are.
    pub(super) fn count(&self) -> usize {
        self.done.len()
    }

    /// The parts of a shard: how many are done, and how many there are.
    pub(super) fn done(&self, shard: Shard) -> (usize, usize) {
        let own = (0..self.count()).filter(|p| shard.holds(*p));
        own.fold((0, 0), |(done, all), part| {
            (done + usize::from(self.is_done(part)), all + 1)
        })
    }

    /// Whether a part is to be run by this shard.
    pub(super) fn is_open(&self, part: usize, shard: Shard) -> bool {
        shard.holds(part) && !self.is_done(part)
    }

    fn is_done(&self, part: usize) -> bool {
        self.done
            .get(part)
            .is_none_or(|d| d.load(Ordering::Relaxed))
    }

    /// How many individuals there are in all.
    pub(super) fn individuals(&self) -> usize {
        self.individuals
    }

    /// Rows of the population in a part.
    pub(super) fn range(&self, part: usize) -> Range<usize> {
        let from = part * self.size;
        from..(from + self.size).min(self.individuals)
    }

    fn name(&self, part: usize) -> PathBuf {
        self.folder.join(format!("part-{part:06}.csv"))
    }

    /// Results and failures of a part that is there and whole.
    fn whole(&self, part: usize) -> Option<(String, String)> {
        let text = fs::read_to_string(self.name(part)).ok()?;
        let (body, check) = text.rsplit_once(CHECK)?;
        let sound = check.trim_end() == format!("{:016x}", digest(&[body.as_bytes()]));
        let (results, failures) = body.split_once("#failures\n")?;
        sound.then(|| (results.to_owned(), failures.to_owned()))
    }

    /// Writes a part with its checksum.
    pub(super) fn write(&self, part: usize, results: &str, failures: &str) -> io::Result<()> {
        let body = format!("{results}#failures\n{failures}");
        let check = digest(&[body.as_bytes()]);
        write_whole(
            &self.name(part),
            format!("{body}{CHECK}{check:016x}\n").as_bytes(),
        )?;
        if let Some(done) = self.done.get(part) {
            done.store(true, Ordering::Relaxed);
        }
        Ok(())
    }

    /// Joins the parts to one table of results and one of failures, and takes them away. Gives back the number of failures.
    pub(super) fn finish(&self) -> io::Result<usize> {
        let results = self.folder.join(RESULTS);
        let failures = self.folder.join(FAILURES);
        if !results.exists() {
            let beside = self.folder.join("results.tmp");
            let mut table = BufWriter::new(File::create(&beside)?);
            let mut faults = String::from("IndividualId,Error\n");
            table.write_all(self.head.as_bytes())?;
            for part in 0..self.count() {
                let gone = || io::Error::other(format!("part {part} is damaged or gone"));
                let (rows, failed) = self.whole(part).ok_or_else(gone)?;
                table.write_all(rows.as_bytes())?;
                faults.push_str(&failed);
            }
            table.into_inner()?.sync_data()?;
            fs::write(&failures, faults)?;
            fs::rename(&beside, &results)?;
        }
        for part in 0..self.count() {
            match fs::remove_file(self.name(part)) {
                Err(e) if e.kind() != io::ErrorKind::NotFound => return Err(e),
                _ => {}
            }
        }
        let lines = fs::read_to_string(&failures)?.lines().count();
        Ok(lines.saturating_sub(1))
    }
}

/// Writes a file under another name first, so that a file with its own name is whole whatever happens.
pub(super) fn write_whole(name: &Path, content: &[u8]) -> io::Result<()> {
    let beside = name.with_extension(format!("{}.tmp", std::process::id()));
    let mut file = File::create(&beside)?;
    file.write_all(content)?;
    file.sync_data()?;
    fs::rename(&beside, name)
}

/// FNV-1a in 64 bits over all pieces, each with its length: finds damage and mistakes, not forgery.
pub(super) fn digest(pieces: &[&[u8]]) -> u64 {
    let lengths = pieces.iter().map(|p| (p.len() as u64).to_le_bytes());
    let lengths: Vec<[u8; 8]> = lengths.collect();
    let bytes = pieces
        .iter()
        .zip(&lengths)
        .flat_map(|(piece, length)| length.iter().chain(piece.iter()));
    fnv(bytes.copied())
}

/// FNV-1a in 64 bits.
pub(super) fn fnv(bytes: impl Iterator<Item = u8>) -> u64 {
    bytes.fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}
