//! `sim run`: run and write the outputs.

use std::io::Write;

use super::args::RunArgs;
use super::cache::{FileStamp, InputDigest, ResultCache};
use super::failure::CommandFailure;
use super::json::JsonWriter;
use super::{model, table};
use crate::compile::Instance;
use crate::csv::{self, CurveTable};
use crate::run::Results;
use crate::watch::Watch;

pub(super) fn run(
    args: &RunArgs,
    out: &mut dyn Write,
    err: &mut (dyn Write + Send),
) -> Result<(), CommandFailure> {
    model::check_units(&args.unit)?;
    let deadline = model::Deadline::new(&args.solver)?;
    let cache = ResultCache::open(&args.cache)?;
    let stamp = FileStamp::of(&args.model.model).ok();
    let model = model::open(&args.model, &deadline, err)?;
    let outputs = model::outputs(&model, &args.output, err)?;
    let instance = model::individual(model, outputs, &args.model, &deadline)?;
    let displays = model::displays(&instance, &args.unit)?;
    let kept = cache.as_ref().zip(stamp.as_ref());
    let results = results(args, kept, &instance, &deadline, err)?;
    let results = model::in_units(results, &displays);
    if let Some(file) = &args.csv {
        let curves = model::curves(&results);
        let ask = || deadline.ask();
        let watch = Watch::new(Some(&ask));
        model::to_file(file, &args.model.model, out, |w| {
            let CurveTable { times, series } = &curves;
            csv::write_in(w, &args.unit.time_unit, times, series, &watch)
        })?;
    } else if !args.json {
        let named = args.output.all || !args.output.outputs.is_empty();
        let shown = if named { usize::MAX } else { SHOWN_MAX };
        let left = summary(&results, shown, &args.unit.time_unit, out)?;
        if left > 0 {
            writeln!(
                err,
                "{left} more outputs are not shown; name some with --output, or take --all or --csv"
            )?;
        }
    }
    if args.json && args.csv.as_ref().is_none_or(|f| f.as_os_str() != "-") {
        out.write_all(json(&results).as_bytes())?;
    }
    if args.stats {
        statistics(&results, err)?;
    }
    Ok(())
}

/// Returns the results of the run: computed, or those of an earlier run with the same inputs.
fn results(
    args: &RunArgs,
    kept: Option<(&ResultCache, &FileStamp)>,
    instance: &Instance,
    deadline: &model::Deadline,
    err: &mut (dyn Write + Send),
) -> Result<Results, CommandFailure> {
    let Some((cache, stamp)) = kept else {
        return model::run(instance, &args.solver, deadline, err);
    };
    let options = model::options(&args.solver);
    let inputs = InputDigest::new(&args.model, stamp, instance, &options)
        .map_err(|e| CommandFailure::failure(format!("cannot make the key of the cache: {e}")))?;
    let key = inputs.map(|inputs| inputs.key("run", &[]));
    let found = key.and_then(|key| cache.get(&key));
    if let Some(found) = found.and_then(|bytes| Results::from_bytes(instance, bytes)) {
        for warning in &found.warnings {
            writeln!(err, "warning: {warning}")?;
        }
        writeln!(err, "taken from the cache")?;
        return Ok(found);
    }
    let results = model::run(instance, &args.solver, deadline, err)?;
    if let Some(key) = key
        && let Err(e) = cache.store(&key, &results.to_bytes())
    {
        writeln!(err, "warning: the cache cannot be written: {e}")?;
    }
    Ok(results)
}

/// Most outputs in a summary of a run for which none were named.
const SHOWN_MAX: usize = 30;

/// First, highest and last value of an output.
struct OutputExtent {
    first: f64,
    max: f64,
    max_time: f64,
    last: f64,
}

fn extent(results: &Results, output: usize) -> OutputExtent {
    let mut extent = OutputExtent {
        first: f64::NAN,
        max: f64::NAN,
        max_time: f64::NAN,
        last: f64::NAN,
    };
    for (i, (value, time)) in results.column(output).zip(&results.times).enumerate() {
        if i == 0 {
            extent.first = value;
        }
        if value > extent.max || extent.max.is_nan() && !value.is_nan() {
            extent.max = value;
            extent.max_time = *time;
        }
        extent.last = value;
    }
    extent
}

/// Prints the outputs with the largest values, in file order; reports how many are left out.
fn summary(
    results: &Results,
    shown: usize,
    time_unit: &str,
    out: &mut dyn Write,
) -> std::io::Result<usize> {
    let minutes = csv::minutes(time_unit).unwrap_or(f64::NAN);
    let outputs = results.paths.iter().zip(results.units.iter()).enumerate();
    let mut all: Vec<_> = outputs
        .map(|(i, named)| (i, named, extent(results, i)))
        .collect();
    let left = all.len().saturating_sub(shown);
    if left > 0 {
        let size = |e: &OutputExtent| if e.max.is_nan() { -1.0 } else { e.max.abs() };
        all.sort_by(|a, b| size(&b.2).total_cmp(&size(&a.2)));
        all.truncate(shown);
        all.sort_by_key(|a| a.0);
    }
    let row = |(_, (path, unit), e): &(usize, (&String, &String), OutputExtent)| {
        let numbers = [e.first, e.max, e.max_time / minutes, e.last].map(table::short);
        [(*path).clone(), (*unit).clone()]
            .into_iter()
            .chain(numbers)
            .collect()
    };
    let rows: Vec<Vec<String>> = all.iter().map(row).collect();
    let at = format!("at [{time_unit}]");
    table::write(
        out,
        &["output", "unit", "first", "max", &at, "last"],
        &rows,
        2,
    )?;
    Ok(left)
}

fn json(results: &Results) -> String {
    let s = &results.statistics;
    JsonWriter::object(|j| {
        j.count("times", results.times.len());
        j.list(
            "outputs",
            results.paths.iter().zip(results.units.iter()).enumerate(),
            |j, (i, (path, unit))| {
                let e = extent(results, i);
                j.string("path", path);
                j.string("unit", unit);
                j.number("first", e.first);
                j.number("max", e.max);
                j.number("max_time_min", e.max_time);
                j.number("last", e.last);
            },
        );
        j.nested("statistics", |j| {
            for (name, count) in counts(s) {
                j.count(name, count);
            }
            j.number("relative_tolerance", results.settings.rel_tol);
            j.number("absolute_tolerance", results.settings.abs_tol);
        });
        j.string("osp_version", results.osp_version.name());
        j.strings("warnings", &results.warnings);
    })
}

fn counts(s: &crate::solve::SolverStatistics) -> [(&'static str, usize); 9] {
    [
        ("steps", s.steps),
        ("rhs", s.rhs),
        ("jacobians", s.jacobians),
        ("factorisations", s.factorisations),
        ("newton_iterations", s.newton_iterations),
        ("error_test_failures", s.error_test_failures),
        ("convergence_failures", s.convergence_failures),
        ("starts", s.starts),
        ("non_finite", s.non_finite),
    ]
}

fn statistics(results: &Results, err: &mut (dyn Write + Send)) -> std::io::Result<()> {
    for (name, count) in counts(&results.statistics) {
        writeln!(err, "{name} {count}")?;
    }
    writeln!(err, "osp_version {}", results.osp_version)?;
    writeln!(err, "relative_tolerance {:e}", results.settings.rel_tol)?;
    writeln!(err, "absolute_tolerance {:e}", results.settings.abs_tol)
}
