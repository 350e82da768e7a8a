//! Parts of a population that are taken from the cache, or computed and put there.

use std::collections::BTreeSet;
use std::io::Write;
use std::ops::Range;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::super::args::PopulationArgs;
use super::super::cache::{CacheKey, FileStamp, InputDigest, ResultCache};
use super::super::failure::CommandFailure;
use super::super::model;
use crate::compile::Instance;
use crate::population::{Population, PopulationPlan};
use crate::words::{DamagedBytes, WordBuffer};

/// Most warnings of a part that are read.
const WARNINGS_MAX: usize = 1 << 20;

/// Results of the individuals of a part.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct PartOutcome {
    /// Rows of the table of results.
    pub(super) rows: String,
    /// Rows of the table of failures.
    pub(super) failures: String,
    /// Warnings of the runs.
    pub(super) warnings: BTreeSet<String>,
}

/// The cache of a population run.
pub(super) struct PopulationCache {
    cache: ResultCache,
    inputs: InputDigest,
    found: AtomicUsize,
    /// Why a part could not be kept, the first time.
    wrong: Mutex<Option<String>>,
}

impl PartOutcome {
    fn pass(&mut self, words: &mut WordBuffer) -> Result<(), DamagedBytes> {
        words.text(&mut self.rows)?;
        words.text(&mut self.failures)?;
        let mut warnings: Vec<String> = self.warnings.iter().cloned().collect();
        words.list(&mut warnings, WARNINGS_MAX, WordBuffer::text)?;
        self.warnings = warnings.into_iter().collect();
        Ok(())
    }

    fn to_bytes(&self) -> Vec<u8> {
        let mut words = WordBuffer::to_write();
        // Writing never fails.
        let _ = self.clone().pass(&mut words);
        words.into_bytes()
    }

    fn from_bytes(bytes: Vec<u8>) -> Option<Self> {
        let (mut made, mut words) = (Self::default(), WordBuffer::to_read(bytes));
        made.pass(&mut words).ok()?;
        words.is_read().then_some(made)
    }
}

impl PopulationCache {
    /// Returns the cache that was asked for, with the digest that all parts share; `None` without one, or if the model
    /// was written again meanwhile.
    pub(super) fn new(
        cache: Option<ResultCache>,
        stamp: Option<FileStamp>,
        args: &PopulationArgs,
        base: &Instance,
    ) -> Result<Option<Self>, CommandFailure> {
        let Some((cache, stamp)) = cache.zip(stamp) else {
            return Ok(None);
        };
        let options = model::options(&args.solver);
        let inputs = InputDigest::new(&args.model, &stamp, base, &options).map_err(|e| {
            CommandFailure::failure(format!("cannot make the key of the cache: {e}"))
        })?;
        Ok(inputs.map(|inputs| Self {
            cache,
            inputs,
            found: AtomicUsize::new(0),
            wrong: Mutex::new(None),
        }))
    }

    /// Returns the key of some rows: which quantities they set, and to what.
    fn key(
        &self,
        plan: &PopulationPlan,
        population: &Population,
        range: &Range<usize>,
    ) -> CacheKey {
        let columns = format!("{:?}", plan.columns());
        let mut numbers = Vec::new();
        for row in range.clone() {
            numbers.extend(population.id(row).to_le_bytes());
            let values = population.row(row).iter();
            numbers.extend(values.flat_map(|v| v.to_bits().to_le_bytes()));
            if let Some(aged) = plan.aged(population.id(row)) {
                numbers.extend(format!("{aged:?}").into_bytes());
            }
        }
        self.inputs
            .key("part", &[columns.as_bytes(), numbers.as_slice()])
    }

    /// Returns the cached results of these rows, else those of `make`, which are then cached.
    pub(super) fn or_make(
        &self,
        plan: &PopulationPlan,
        population: &Population,
        range: &Range<usize>,
        make: impl FnOnce() -> Result<PartOutcome, CommandFailure>,
    ) -> Result<PartOutcome, CommandFailure> {
        let key = self.key(plan, population, range);
        if let Some(made) = self.cache.get(&key).and_then(PartOutcome::from_bytes) {
            self.found.fetch_add(1, Ordering::Relaxed);
            return Ok(made);
        }
        let made = make()?;
        if let Err(e) = self.cache.store(&key, &made.to_bytes())
            && let Ok(mut wrong) = self.wrong.lock()
        {
            wrong.get_or_insert_with(|| e.to_string());
        }
        Ok(made)
    }

    /// Reports how many parts were cached, and failed writes.
    pub(super) fn report(&self, err: &mut dyn Write) -> std::io::Result<()> {
        let found = self.found.load(Ordering::Relaxed);
        if found > 0 {
            writeln!(err, "{found} parts taken from the cache")?;
        }
        let wrong = self.wrong.lock().ok().and_then(|mut wrong| wrong.take());
        match wrong {
            Some(wrong) => writeln!(err, "warning: the cache cannot be written: {wrong}"),
            None => Ok(()),
        }
    }
}
