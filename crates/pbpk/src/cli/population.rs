//! `sim population`: many individuals of one model, in parts that survive an interruption.

mod bands;
mod columns;
mod figures;
mod kept;
mod parts;
mod people;

use std::collections::BTreeSet;
use std::fs;
use std::io::{self, Write};
use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, mpsc};
use std::time::{Duration, Instant};

use super::args::{MergeArgs, PopulationArgs};
use super::cache::{FileStamp, ResultCache};
use super::failure::CommandFailure;
use super::{model, table};
use crate::csv;
use crate::population::{AgeingTables, Population, PopulationPlan, run_chunk};
use crate::run::{Results, RunOptions};
use crate::watch::Watch;
use kept::{PartOutcome, PopulationCache};
use parts::{
    JoinedTables, POPULATION, RunParts, Shard, WordDigest, folder_failure, interrupt_failure,
    write_pieces,
};
pub(super) use people::read;

/// Most threads.
const THREADS_MAX: usize = 256;
/// Least interval between two lines of progress.
const PROGRESS_EVERY: Duration = Duration::from_secs(2);
/// Most different warnings of runs that are kept.
const WARNINGS_MAX: usize = 20;

pub(super) fn run(
    args: &PopulationArgs,
    out: &mut dyn Write,
    err: &mut (dyn Write + Send),
) -> Result<(), CommandFailure> {
    let deadline = model::Deadline::new(&args.solver)?;
    let threads = model::threads(args.threads)?.min(THREADS_MAX);
    check_percentiles(&args.percentiles)?;
    let shard = shard(args)?;
    let ask = || deadline.ask();
    let watch = Watch::new(Some(&ask));
    let population = people::population(args, &watch)?;
    let cache = ResultCache::open(&args.cache)?;
    let stamp = FileStamp::of(&args.model.model).ok();
    let model = model::open(&args.model, &deadline, err)?;
    let outputs = model::outputs(&model, &args.output, err)?;
    let base = model::individual(model, outputs, &args.model, &deadline)?;
    let kept = PopulationCache::new(cache, stamp, args, &base)?;
    let (plan, ageing) = people::bound(args, base, &population, &watch, err)?;
    let io = |e: io::Error| folder_failure(&e, &format!("cannot write to {}", args.out.display()));
    make_folder(args)?;
    if plan.matched() == 0 && ageing.is_none() {
        writeln!(
            err,
            "warning: no parameter differs, so all individuals are alike"
        )?;
    }
    let parts = RunParts::open(
        &args.out,
        head(&plan),
        inputs(args, &population, ageing.as_ref(), &watch)?,
        population.len(),
        args.chunk,
        &watch,
    )?;
    let work = SharedWork {
        args,
        plan: &plan,
        population: &population,
        parts: &parts,
        shard,
        deadline: &deadline,
        kept: kept.as_ref(),
        next: AtomicUsize::new(0),
        failed: Mutex::new(None),
        warnings: Mutex::new(BTreeSet::new()),
    };
    let whole = shard == Shard::WHOLE;
    let mut joined = whole
        .then(|| JoinedTables::begin(&parts))
        .transpose()
        .map_err(io)?;
    work.all(threads, joined.as_mut(), err)?;
    work.report(err)?;
    let Some(joined) = joined else {
        let (done, out_of) = (parts.done(shard).0, parts.count());
        return Ok(writeln!(
            out,
            "{done} of {out_of} parts are in {}; `sim merge` joins them when all shards are done",
            args.out.display()
        )?);
    };
    let failures = joined.finish(&watch).map_err(io)?;
    figures(args, &plan, &population, &watch).map_err(io)?;
    summary(args, &plan, population.len(), failures, out)
}

/// The folder for the results.
fn make_folder(args: &PopulationArgs) -> Result<(), CommandFailure> {
    let name = args.out.display();
    if args.out.exists() && !args.out.is_dir() {
        let message = format!("{name} is a file; --out names a folder");
        return Err(CommandFailure::misuse(message));
    }
    fs::create_dir_all(&args.out)
        .map_err(|e| folder_failure(&e, &format!("cannot write to {name}")))
}

/// The last line of a run, or that all of it failed.
fn summary(
    args: &PopulationArgs,
    plan: &PopulationPlan,
    people: usize,
    failures: usize,
    out: &mut dyn Write,
) -> Result<(), CommandFailure> {
    let (folder, parameters) = (args.out.display(), plan.matched());
    if failures == people {
        let hint = format!("{folder}/failures.csv says why");
        return Err(
            CommandFailure::failure(format!("all {people} individuals failed")).with_hint(&hint),
        );
    }
    let told = match failures {
        0 => "",
        _ => ", why in failures.csv",
    };
    Ok(writeln!(
        out,
        "{}, {} each, {failures} failed{told}; results in {folder}",
        table::count(people, "individual"),
        table::count(parameters, "parameter")
    )?)
}

/// `sim merge`: the parts of several shards as one table.
pub(super) fn merge(args: &MergeArgs, out: &mut dyn Write) -> Result<(), CommandFailure> {
    let deadline = model::Deadline::of(&args.timeout)?;
    let ask = || deadline.ask();
    let watch = Watch::new(Some(&ask));
    let parts = RunParts::gather(&args.out, &args.folders, &watch)?;
    let missing = parts.missing();
    if !missing.is_empty() {
        let shown: Vec<String> = missing.iter().take(5).map(usize::to_string).collect();
        let message = format!(
            "{} of {} parts are missing or damaged, among them {}",
            missing.len(),
            parts.count(),
            shown.join(", ")
        );
        return Err(CommandFailure::failure(message)
            .with_hint("run the shards again: each makes only what is not there yet"));
    }
    let io = |e: io::Error| folder_failure(&e, &format!("cannot write to {}", args.out.display()));
    let joined = JoinedTables::begin(&parts).map_err(io)?;
    let failures = joined.finish(&watch).map_err(io)?;
    Ok(writeln!(
        out,
        "{} individuals, {failures} failed; results in {}",
        parts.individuals(),
        args.out.display()
    )?)
}

fn shard(args: &PopulationArgs) -> Result<Shard, CommandFailure> {
    let Some(text) = &args.shard else {
        return Ok(Shard::WHOLE);
    };
    Shard::parse(text).ok_or_else(|| {
        CommandFailure::misuse(format!(
            "--shard '{text}': write I/N with I from 1 to N, for example 2/8"
        ))
    })
}

fn check_percentiles(percent: &[f64]) -> Result<(), CommandFailure> {
    match percent.iter().find(|p| !(0.0..=100.0).contains(*p)) {
        Some(bad) => Err(CommandFailure::misuse(format!(
            "--percentiles: {bad} does not lie between 0 and 100"
        ))),
        None => Ok(()),
    }
}

/// Computes the figures of the joined results.
fn figures(
    args: &PopulationArgs,
    plan: &PopulationPlan,
    population: &Population,
    watch: &Watch<'_>,
) -> io::Result<()> {
    let file = args.out.join("results.csv");
    let results = figures::FigureSource { file: &file, watch };
    if !args.percentiles.is_empty() {
        let file = args.out.join("percentiles.csv");
        figures::percentiles(&results, &file, plan, population.len(), &args.percentiles)?;
    }
    if args.bands {
        bands::write(&args.out.join("percentiles.csv"), &args.out, watch)?;
    }
    if args.arrow {
        columns::clear(&args.out)?;
        columns::write(&results, &args.out, plan, args.chunk)?;
    }
    if args.pk {
        figures::kinetics(&results, &args.out.join("pk.csv"), plan, population)?;
    }
    Ok(())
}

/// Returns a digest of everything that the results depend on.
fn inputs(
    args: &PopulationArgs,
    population: &Population,
    ageing: Option<&AgeingTables>,
    watch: &Watch<'_>,
) -> Result<u64, CommandFailure> {
    let name = args.model.model.display();
    let model = fs::read(&args.model.model)
        .map_err(|e| CommandFailure::failure(format!("cannot read {name}: {e}")))?;
    let s = &args.solver;
    let settings = format!(
        "{} {:?} {} {:?} {} {:?} {:?} {:?} {:?} {} {} {} {} {}",
        env!("CARGO_PKG_VERSION"),
        (&args.model.params, &args.model.doses),
        args.model.strict,
        args.output.outputs,
        args.output.all,
        s.rtol,
        s.atol,
        s.max_steps,
        s.times,
        s.locate_events,
        s.osp_version,
        s.once_at_start,
        s.double_times,
        args.chunk
    );
    let mut digest = WordDigest::default();
    let ageing = ageing.map_or_else(String::new, |a| format!("{a:?}"));
    let heads = format!("{:?}", population.columns);
    for piece in [
        &*model,
        settings.as_bytes(),
        ageing.as_bytes(),
        heads.as_bytes(),
    ] {
        digest.bytes(piece);
    }
    for row in 0..population.len() {
        watch.check().map_err(interrupt_failure)?;
        digest.word(population.id(row).cast_unsigned());
        let numbers = population.row(row).iter();
        numbers.for_each(|number| digest.word(number.to_bits()));
    }
    Ok(digest.value())
}

/// What all threads share.
struct SharedWork<'a> {
    args: &'a PopulationArgs,
    plan: &'a PopulationPlan,
    population: &'a Population,
    parts: &'a RunParts,
    shard: Shard,
    deadline: &'a model::Deadline,
    kept: Option<&'a PopulationCache>,
    next: AtomicUsize,
    failed: Mutex<Option<CommandFailure>>,
    warnings: Mutex<BTreeSet<String>>,
}

impl SharedWork<'_> {
    /// Runs all parts that are not there yet; the parts that were done stay when one fails.
    fn all(
        &self,
        threads: usize,
        mut joined: Option<&mut JoinedTables<'_>>,
        err: &mut (dyn Write + Send),
    ) -> Result<(), CommandFailure> {
        let ask = || self.deadline.ask();
        let watch = Watch::new(Some(&ask));
        let (begun, found) = (Instant::now(), self.parts.done(self.shard).0);
        let (tell, told) = mpsc::sync_channel(threads);
        std::thread::scope(|scope| {
            for _ in 0..threads.min(self.parts.count()) {
                let tell = tell.clone();
                scope.spawn(move || self.worker(&tell));
            }
            drop(tell);
            scope.spawn(|| self.people());
            let mut last = Instant::now();
            // Ends when the last thread does: a thread ends with its parts, with a failure or at the deadline.
            for () in told {
                let follow = joined.as_mut().map(|joined| joined.follow(&watch));
                if let Some(Err(e)) = follow {
                    joined = None;
                    self.fail(self.not_written(&e));
                }
                if last.elapsed() >= PROGRESS_EVERY {
                    last = Instant::now();
                    let (done, all) = self.parts.done(self.shard);
                    let fresh = done.saturating_sub(found).max(1) as f64;
                    let left = begun.elapsed().as_secs_f64() / fresh * (all - done) as f64;
                    // A failed write of progress is not a failure.
                    let _ = writeln!(err, "{done} of {all} parts done, {left:.0} s left");
                }
            }
        });
        match self.failed.lock() {
            Ok(mut failed) => failed.take().map_or(Ok(()), Err),
            Err(_) => Err(CommandFailure::failure("a thread ended early".to_owned())),
        }
    }

    /// Reports the cached parts, and the warnings of runs.
    fn report(&self, err: &mut (dyn Write + Send)) -> io::Result<()> {
        if let Some(kept) = self.kept {
            kept.report(err)?;
        }
        let warnings = self.warnings.lock();
        for warning in warnings.iter().flat_map(|all| all.iter()) {
            writeln!(err, "warning: {warning}")?;
        }
        Ok(())
    }

    fn worker(&self, tell: &mpsc::SyncSender<()>) {
        loop {
            let part = self.next.fetch_add(1, Ordering::Relaxed);
            let over = self.failed.lock().map_or(true, |f| f.is_some());
            if part >= self.parts.count() || over {
                return;
            }
            if !self.parts.is_open(part, self.shard) {
                continue;
            }
            if let Err(failure) = self.part(part) {
                return self.fail(failure);
            }
            // The receiver outlives all threads.
            let _ = tell.send(());
        }
    }

    /// Notes the first failure, which ends all threads.
    fn fail(&self, failure: CommandFailure) {
        if let Ok(mut failed) = self.failed.lock() {
            failed.get_or_insert(failure);
        }
    }

    fn not_written(&self, e: &io::Error) -> CommandFailure {
        folder_failure(e, &format!("cannot write to {}", self.args.out.display()))
    }

    /// Writes the table of individuals, beside the work on them.
    fn people(&self) {
        let ask = || self.deadline.ask();
        let watch = Watch::new(Some(&ask));
        let lines = self.population.lines().map(|line| {
            watch.check()?;
            Ok(line)
        });
        if let Err(e) = write_pieces(&self.args.out.join(POPULATION), lines) {
            self.fail(self.not_written(&e));
        }
    }

    fn part(&self, part: usize) -> Result<(), CommandFailure> {
        let interrupt = || self.deadline.ask();
        let options = RunOptions {
            interrupt: Some(&interrupt),
            ..model::options(&self.args.solver)
        };
        let range = self.parts.range(part);
        let make = || self.run_range(range.clone(), &options);
        let mut made = match self.kept {
            Some(kept) => kept.or_make(self.plan, self.population, &range, make)?,
            None => make()?,
        };
        if let Ok(mut all) = self.warnings.lock() {
            all.append(&mut made.warnings);
            while all.len() > WARNINGS_MAX {
                all.pop_last();
            }
        }
        let written = self.parts.write(part, &made.rows, &made.failures);
        written.map_err(|e| CommandFailure::failure(format!("cannot write a part: {e}")))
    }

    /// Runs the individuals of a range of rows.
    fn run_range(
        &self,
        range: Range<usize>,
        options: &RunOptions<'_>,
    ) -> Result<PartOutcome, CommandFailure> {
        let mut made = PartOutcome::default();
        let mut times = TimeTexts::default();
        let ran = run_chunk(
            self.plan,
            self.population,
            range,
            options,
            |outcome| match outcome.result {
                Ok(results) => {
                    rows(&mut made.rows, outcome.id, &results, &mut times);
                    made.warnings.extend(results.warnings);
                }
                Err(why) => {
                    made.failures.push_str(&outcome.id.to_string());
                    made.failures.push(',');
                    csv::push_field(&mut made.failures, &why);
                    made.failures.push('\n');
                }
            },
        );
        ran.map_err(interrupt_failure)?;
        Ok(made)
    }
}

/// Head of the results, as the suite reads it.
fn head(plan: &PopulationPlan) -> String {
    let mut text = String::from("\u{feff}IndividualId,Time [min]");
    for (path, unit) in plan.outputs() {
        text.push(',');
        csv::push_field(&mut text, &csv::titled(path, unit));
    }
    text.push('\n');
    text
}

/// Times as text: those of the individual before, which nearly always are those of the next.
#[derive(Default)]
struct TimeTexts(Vec<(f64, String)>);

impl TimeTexts {
    /// Returns the text of time number `i`.
    fn text(&mut self, i: usize, time: f64) -> &str {
        let known = self
            .0
            .get(i)
            .is_some_and(|t| t.0.to_bits() == time.to_bits());
        if !known {
            self.0.truncate(i);
            let mut text = String::new();
            csv::push_number(&mut text, time);
            self.0.push((time, text));
        }
        self.0.get(i).map_or("", |t| t.1.as_str())
    }
}

fn rows(text: &mut String, id: i64, results: &Results, times: &mut TimeTexts) {
    let width = results.paths.len().max(1);
    let id = id.to_string();
    let rows = results.times.iter().zip(results.values.chunks(width));
    for (i, (time, row)) in rows.enumerate() {
        text.push_str(&id);
        text.push(',');
        text.push_str(times.text(i, *time));
        for value in row {
            text.push(',');
            csv::push_number(text, *value);
        }
        text.push('\n');
    }
}
