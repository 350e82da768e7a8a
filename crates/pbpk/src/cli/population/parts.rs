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

/// Names within the folder.
const INPUTS: &str = "inputs.txt";
const RESULTS: &str = "results.csv";
const FAILURES: &str = "failures.csv";
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
        let wanted = format!("{inputs:016x}\n");
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
                fs::write(&noted, wanted).map_err(io)?;
            }
            Err(e) => return Err(io(e)),
        }
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
        Ok(parts)
    }

    /// How many parts there are.
    pub(super) fn count(&self) -> usize {
        self.done.len()
    }

    /// How many of them are done.
    pub(super) fn done(&self) -> usize {
        let done = self.done.iter().filter(|d| d.load(Ordering::Relaxed));
        done.count()
    }

    pub(super) fn is_done(&self, part: usize) -> bool {
        self.done
            .get(part)
            .is_none_or(|d| d.load(Ordering::Relaxed))
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

    /// Writes a part under another name first, so that a part with its own name is whole.
    pub(super) fn write(&self, part: usize, results: &str, failures: &str) -> io::Result<()> {
        let body = format!("{results}#failures\n{failures}");
        let check = digest(&[body.as_bytes()]);
        let name = self.name(part);
        let beside = name.with_extension("tmp");
        let mut file = File::create(&beside)?;
        file.write_all(body.as_bytes())?;
        writeln!(file, "{CHECK}{check:016x}")?;
        file.sync_data()?;
        fs::rename(&beside, &name)?;
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

/// FNV-1a in 64 bits over all pieces, each with its length: finds damage and mistakes, not forgery.
pub(super) fn digest(pieces: &[&[u8]]) -> u64 {
    let lengths = pieces.iter().map(|p| (p.len() as u64).to_le_bytes());
    let lengths: Vec<[u8; 8]> = lengths.collect();
    let bytes = pieces
        .iter()
        .zip(&lengths)
        .flat_map(|(piece, length)| length.iter().chain(piece.iter()));
    bytes.fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}
