//! Who a population run is about: a table, a cohort that is drawn, and ageing data.

use std::collections::HashSet;
use std::fs::File;
use std::io::{BufReader, Write};
use std::path::Path;

use super::super::args::PopulationArgs;
use super::super::failure::CommandFailure;
use crate::compile::Instance;
use crate::csv;
use crate::population::{
    AgeingTables, Cohort, Distribution, ParameterColumn, Population, PopulationError,
    PopulationPlan, ScoreCorrelation, VariedParameter,
};
use crate::watch::Watch;

/// Returns the population bound to the model, and its ageing data; columns that the model does not have are reported,
/// or refused.
pub(super) fn bound(
    args: &PopulationArgs,
    base: Instance,
    population: &Population,
    watch: &Watch<'_>,
    err: &mut dyn Write,
) -> Result<(PopulationPlan, Option<AgeingTables>), CommandFailure> {
    let ageing = ageing(args, population, watch, err)?;
    let (mut plan, mut unmatched) = PopulationPlan::with_watch(base, population, watch)?;
    if let Some(ageing) = &ageing {
        unmatched.extend(plan.age_watched(ageing, watch)?);
    }
    for warning in plan.warnings() {
        writeln!(err, "warning: {warning}")?;
    }
    for path in &unmatched {
        writeln!(err, "warning: the model has no '{path}'; it is left out")?;
    }
    if args.strict_paths && !unmatched.is_empty() {
        let message = format!("{} columns name nothing in the model", unmatched.len());
        return Err(CommandFailure::misuse(message));
    }
    Ok((plan, ageing))
}

/// Reads a population file.
pub(in super::super) fn read(file: &Path, watch: &Watch<'_>) -> Result<Population, CommandFailure> {
    let name = file.display();
    let opened = File::open(file)
        .map_err(|e| CommandFailure::failure(format!("cannot read {name}: {e}")))?;
    Population::read_watched(&mut BufReader::new(opened), watch)
        .map_err(|e| CommandFailure::failure(format!("{name}: {e}")))
}

/// Returns the ageing data that were named; individuals that the population does not have are reported.
fn ageing(
    args: &PopulationArgs,
    population: &Population,
    watch: &Watch<'_>,
    err: &mut dyn Write,
) -> Result<Option<AgeingTables>, CommandFailure> {
    let Some(file) = &args.ageing else {
        return Ok(None);
    };
    let wrong =
        |e: &dyn std::fmt::Display| CommandFailure::failure(format!("{}: {e}", file.display()));
    let opened = File::open(file).map_err(|e| wrong(&e))?;
    let ageing =
        AgeingTables::read_watched(&mut BufReader::new(opened), watch).map_err(|e| wrong(&e))?;
    let known: HashSet<i64> = (0..population.len()).map(|r| population.id(r)).collect();
    let strangers = ageing.ids().filter(|id| !known.contains(id));
    match strangers.count() {
        0 => {}
        n => writeln!(
            err,
            "warning: {} has rows of {n} individuals who are not in the population; they are left out",
            file.display()
        )?,
    }
    Ok(Some(ageing))
}

/// Returns the table that was named, or the cohort that was described.
pub(super) fn population(
    args: &PopulationArgs,
    watch: &Watch<'_>,
) -> Result<Population, CommandFailure> {
    let refused = |e: PopulationError| match e {
        PopulationError::Interrupted(_) => CommandFailure::failure(e.to_string()),
        e => CommandFailure::misuse(e.to_string()),
    };
    match (&args.population, args.size) {
        (Some(file), None) => read(file, watch),
        (None, Some(size)) => Cohort {
            size,
            seed: args.seed,
            varied: args
                .vary
                .iter()
                .map(|text| varied(text))
                .collect::<Result<_, _>>()?,
            latin: args.latin,
            correlations: args
                .correlate
                .iter()
                .map(|text| correlated(text, &args.vary))
                .collect::<Result<_, _>>()?,
        }
        .draw_watched(watch)
        .map_err(refused),
        _ => Err(CommandFailure::misuse(
            "give either a population file or --size".to_owned(),
        )),
    }
}

/// `PATH=DISTRIBUTION` or `PATH [unit]=DISTRIBUTION`.
fn varied(text: &str) -> Result<VariedParameter, CommandFailure> {
    let wrong = |what: &str| CommandFailure::misuse(format!("--vary '{text}': {what}"));
    let (name, spread) = text.rsplit_once('=').ok_or_else(|| wrong("no '='"))?;
    let (path, unit) = csv::split_unit(name.trim());
    Ok(VariedParameter {
        column: ParameterColumn {
            path: path.to_owned(),
            unit: unit.to_owned(),
        },
        distribution: Distribution::parse(spread).map_err(|e| wrong(&e))?,
    })
}

/// `PATH~PATH=NUMBER`: places of both among the drawn parameters, and the correlation.
fn correlated(text: &str, vary: &[String]) -> Result<ScoreCorrelation, CommandFailure> {
    let wrong = |what: &str| CommandFailure::misuse(format!("--correlate '{text}': {what}"));
    let (names, number) = text.rsplit_once('=').ok_or_else(|| wrong("no '='"))?;
    let (a, b) = names
        .split_once('~')
        .ok_or_else(|| wrong("no '~' between the paths"))?;
    let place = |name: &str| {
        let wanted = csv::split_unit(name.trim()).0;
        let found = vary.iter().position(|v| {
            let path = v.rsplit_once('=').map_or("", |(path, _)| path);
            csv::split_unit(path.trim()).0 == wanted
        });
        found.ok_or_else(|| wrong(&format!("'{wanted}' is not drawn; name it with --vary")))
    };
    let value = number.trim().parse::<f64>();
    Ok(ScoreCorrelation {
        first: place(a)?,
        second: place(b)?,
        value: value.map_err(|_| wrong("the correlation is not a number"))?,
    })
}
