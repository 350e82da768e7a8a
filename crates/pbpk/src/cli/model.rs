//! Opening a model, choosing outputs, running.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::args::{ModelArgs, OutputArgs, SolverArgs, TimeoutArgs, UnitArgs};
use super::failure::CommandFailure;
use crate::compile::{CompileError, Instance, Structure};
use crate::csv::{self, CurveSeries, CurveTable};
use crate::model::{Model, TimePrecision};
use crate::path::{self, DisplayUnit};
use crate::read::{self, ReadOptions};
use crate::regimen::{self, Regimen, RegimenError};
use crate::run::{Results, RunOptions};
use crate::watch::{Interrupt, Watch};

/// Longest deadline accepted, in seconds.
const TIMEOUT_SECONDS_MAX: f64 = 1e9;
/// Progress is shown of runs that take longer than this.
const QUIET: Duration = Duration::from_secs(2);

/// The time that a command may take in all, from its start.
pub(super) struct Deadline {
    begun: Instant,
    allowed: Option<Duration>,
}

impl Deadline {
    pub(super) fn none() -> Self {
        Self {
            begun: Instant::now(),
            allowed: None,
        }
    }

    /// That of `--timeout`, with all options of a run checked.
    pub(super) fn new(args: &SolverArgs) -> Result<Self, CommandFailure> {
        check(args)?;
        Self::of(&args.timeout)
    }

    /// That of `--timeout`, checked.
    pub(super) fn of(args: &TimeoutArgs) -> Result<Self, CommandFailure> {
        let seconds = args.timeout;
        if seconds.is_some_and(|s| !(s > 0.0 && s <= TIMEOUT_SECONDS_MAX)) {
            return Err(CommandFailure::misuse(
                "--timeout must be a positive number of seconds".to_owned(),
            ));
        }
        Ok(Self {
            begun: Instant::now(),
            allowed: seconds.map(Duration::from_secs_f64),
        })
    }

    /// Returns whether the time is over or the process is to end.
    pub(super) fn ask(&self) -> Option<Interrupt> {
        if super::is_stopped() {
            return Some(Interrupt::Cancelled);
        }
        let over = self.allowed.filter(|d| self.begun.elapsed() >= *d);
        over.map(|_| Interrupt::Deadline)
    }
}

/// Reads the model; warnings go to `err`.
pub(super) fn open(
    args: &ModelArgs,
    deadline: &Deadline,
    err: &mut (dyn Write + Send),
) -> Result<Model, CommandFailure> {
    let options = ReadOptions {
        strict: args.strict,
        ..ReadOptions::default()
    };
    let ask = || deadline.ask();
    let model = read::file_watched(&args.model, &options, &Watch::new(Some(&ask)))?;
    let regimens = regimens(&args.doses)?;
    let model = match regimens.is_empty() {
        true => model,
        false => regimen::apply(model, &regimens, Some(&ask))?.0,
    };
    for warning in &model.warnings {
        writeln!(err, "warning: {warning}")?;
    }
    Ok(model)
}

/// Reads the texts of `--dose`.
pub(super) fn regimens(texts: &[String]) -> Result<Vec<Regimen>, CommandFailure> {
    let parsed = texts.iter().map(|text| text.parse());
    Ok(parsed.collect::<Result<_, RegimenError>>()?)
}

/// Positions of the outputs asked for: patterns, everything, or the file's selection.
pub(super) fn outputs(
    model: &Model,
    args: &OutputArgs,
    err: &mut (dyn Write + Send),
) -> Result<Vec<usize>, CommandFailure> {
    if !args.outputs.is_empty() {
        let mut chosen = Vec::new();
        for pattern in &args.outputs {
            for position in path::find(model, pattern)? {
                if !chosen.contains(&position) {
                    chosen.push(position);
                }
            }
        }
        return Ok(chosen);
    }
    if args.all || model.selections.is_empty() {
        return Ok(model.outputs());
    }
    let mut chosen = Vec::new();
    for selection in &model.selections {
        match path::find_one(model, selection) {
            Ok(position) => chosen.push(position),
            Err(e) => writeln!(err, "warning: selected output: {e}")?,
        }
    }
    Ok(chosen)
}

/// Returns the individual of the file with the changes of the command line.
pub(super) fn individual(
    model: Model,
    outputs: Vec<usize>,
    args: &ModelArgs,
    deadline: &Deadline,
) -> Result<Instance, CommandFailure> {
    let ask = || deadline.ask();
    let watch = Watch::new(Some(&ask));
    let structure = Structure::with_watch(Arc::new(model), outputs, &watch)?;
    let folded = Instance::with_watch(&structure, &watch);
    let mut instance = folded.map_err(|cause| CompileError::Interrupted { cause })?;
    for text in &args.params {
        let (path, value, unit) = path::parse(text).map_err(CommandFailure::misuse)?;
        path::assign(&mut instance, path, value, unit)?;
    }
    Ok(instance)
}

/// Refuses numbers that make no sense.
fn check(args: &SolverArgs) -> Result<(), CommandFailure> {
    for (name, value) in [("rtol", args.rtol), ("atol", args.atol)] {
        if value.is_some_and(|v| !(v.is_finite() && v > 0.0)) {
            return Err(CommandFailure::misuse(format!(
                "--{name} must be a positive number"
            )));
        }
    }
    if let Some(bad) = args.times.iter().find(|t| !(t.is_finite() && **t >= 0.0)) {
        return Err(CommandFailure::misuse(format!(
            "--times: {bad} is not a time"
        )));
    }
    Ok(())
}

/// Returns the options of the command line.
pub(super) fn options(args: &SolverArgs) -> RunOptions<'_> {
    RunOptions {
        rel_tol: args.rtol,
        abs_tol: args.atol,
        max_steps: args.max_steps,
        precision: if args.double_times {
            TimePrecision::Double
        } else {
            TimePrecision::Single
        },
        times: (!args.times.is_empty()).then_some(args.times.as_slice()),
        locate_events: args.locate_events,
        osp_version: args.osp_version,
        once_at_start: args.once_at_start,
        ..RunOptions::default()
    }
}

/// Runs with the options of the command line; progress and warnings go to `err`.
pub(super) fn run(
    instance: &Instance,
    args: &SolverArgs,
    deadline: &Deadline,
    err: &mut (dyn Write + Send),
) -> Result<Results, CommandFailure> {
    run_with(instance, &options(args), deadline, err)
}

/// Runs with these options; progress and warnings go to `err`.
pub(super) fn run_with(
    instance: &Instance,
    options: &RunOptions<'_>,
    deadline: &Deadline,
    err: &mut (dyn Write + Send),
) -> Result<Results, CommandFailure> {
    let begun = Instant::now();
    let interrupt = || deadline.ask();
    let shown = Mutex::new((err, 0_u32));
    let progress = |fraction: f64| {
        let mut shown = shown.lock().unwrap_or_else(PoisonError::into_inner);
        // Tenths of the way; a cast from float to integer saturates.
        let tenths = (fraction * 10.0) as u32;
        if tenths > shown.1 && begun.elapsed() > QUIET {
            shown.1 = tenths;
            // A failed write of progress is not a failure.
            let _ = writeln!(shown.0, "{} % done", tenths * 10);
        }
    };
    let options = RunOptions {
        interrupt: Some(&interrupt),
        progress: Some(&progress),
        ..*options
    };
    let done = crate::run::run(instance, &options);
    let (err, _) = shown.into_inner().unwrap_or_else(PoisonError::into_inner);
    let warnings = match &done {
        Ok(results) => results.warnings.as_slice(),
        // The last is the error itself.
        Err(failure) => failure
            .warnings
            .split_last()
            .map_or(&[][..], |(_, rest)| rest),
    };
    for warning in warnings {
        writeln!(err, "warning: {warning}")?;
    }
    Ok(done?)
}

/// Returns the threads asked for, or as many as the machine has.
pub(super) fn threads(asked: Option<usize>) -> Result<usize, CommandFailure> {
    let known = || std::thread::available_parallelism().map_or(1, usize::from);
    match asked.unwrap_or_else(known) {
        0 => Err(CommandFailure::misuse(
            "--threads must be at least 1".to_owned(),
        )),
        threads => Ok(threads),
    }
}

/// Refuses what is no unit of time.
pub(super) fn check_units(args: &UnitArgs) -> Result<(), CommandFailure> {
    match csv::minutes(&args.time_unit) {
        Some(_) => Ok(()),
        None => Err(CommandFailure::misuse(format!(
            "--time-unit: '{}' is not a unit of time that is known here",
            args.time_unit
        ))
        .with_hint("write min, h or day(s)")),
    }
}

/// For each output the first of the units that fits it, if any does.
///
/// # Errors
/// A unit that fits no output at all.
pub(super) fn displays(
    instance: &Instance,
    args: &UnitArgs,
) -> Result<Vec<Option<DisplayUnit>>, CommandFailure> {
    let outputs = instance.structure().outputs();
    for unit in &args.units {
        if !outputs
            .iter()
            .any(|q| path::display(instance, *q, unit).is_some())
        {
            let message = format!("--unit: '{unit}' fits none of the outputs");
            return Err(CommandFailure::misuse(message)
                .with_hint("masses of molecules need their molecular weight in the model"));
        }
    }
    let first = |q: &usize| {
        let mut units = args.units.iter();
        units.find_map(|unit| path::display(instance, *q, unit))
    };
    Ok(outputs.iter().map(first).collect())
}

/// Returns the results in these units; times stay in minutes.
pub(super) fn in_units(mut results: Results, displays: &[Option<DisplayUnit>]) -> Results {
    let width = results.paths.len().max(1);
    for row in results.values.chunks_mut(width) {
        for (value, display) in row.iter_mut().zip(displays) {
            if let Some(display) = display {
                *value = display.of_base(*value);
            }
        }
    }
    let units = results.units.iter().enumerate().map(|(i, unit)| {
        let display = displays.get(i).and_then(Option::as_ref);
        display.map_or_else(|| unit.clone(), |display| display.unit().to_owned())
    });
    let units: Vec<String> = units.collect();
    results.units = units.into();
    results
}

/// Results as curves.
pub(super) fn curves(results: &Results) -> CurveTable {
    let named = results.paths.iter().zip(results.units.iter()).enumerate();
    let series = named.map(|(i, (path, unit))| CurveSeries {
        name: path.clone(),
        unit: unit.clone(),
        values: results.column(i).collect(),
    });
    CurveTable {
        times: results.times.clone(),
        series: series.collect(),
    }
}

/// Calls `write` with the file named, or with `out` for `-`. The file is there as a whole or not at all, and the
/// model's own file is never overwritten.
pub(super) fn to_file(
    file: &Path,
    model: &Path,
    out: &mut dyn Write,
    write: impl FnOnce(&mut dyn Write) -> std::io::Result<()>,
) -> Result<(), CommandFailure> {
    if file.as_os_str() == "-" {
        return Ok(write(out)?);
    }
    let real = file.canonicalize().unwrap_or_else(|_| file.to_path_buf());
    if model.canonicalize().is_ok_and(|model| model == real) {
        return Err(CommandFailure::misuse(format!(
            "{} is the model itself and is not overwritten",
            file.display()
        )));
    }
    let what = format!("cannot write {}", file.display());
    let io = |e: std::io::Error| CommandFailure::not_written(&e, &what);
    let filled = |file: File| {
        let mut writer = BufWriter::new(file);
        write(&mut writer).and_then(|()| writer.flush())
    };
    let Some((beside, unfinished)) = beside(&real) else {
        return filled(File::create(&real).map_err(io)?).map_err(io);
    };
    let written = filled(unfinished).and_then(|()| std::fs::rename(&beside, &real));
    if written.is_err() {
        drop(std::fs::remove_file(&beside));
    }
    written.map_err(io)
}

/// Returns a new file in the same folder, with the permissions of the one that it replaces. `None` if the file is a
/// pipe or a device, or if the folder takes no other file.
fn beside(file: &Path) -> Option<(PathBuf, File)> {
    let found = std::fs::metadata(file).ok();
    if found.as_ref().is_some_and(|found| !found.is_file()) {
        return None;
    }
    let mut name = std::ffi::OsString::from(".");
    name.push(file.file_name()?);
    name.push(format!(".{}.partial", std::process::id()));
    let beside = file.with_file_name(name);
    let unfinished = File::create_new(&beside).ok()?;
    if let Some(found) = found {
        // A file with other permissions is no reason to lose the numbers.
        let _ = unfinished.set_permissions(found.permissions());
    }
    Some((beside, unfinished))
}
