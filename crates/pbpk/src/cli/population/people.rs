//! Who a population run is about: a table, a cohort that is drawn, and ageing data.

use std::collections::HashSet;
use std::fs::File;
use std::io::{BufReader, Write};
use std::path::Path;

use super::super::args::PopulationArgs;
use super::super::failure::Failure;
use crate::compile::Instance;
use crate::csv;
use crate::population::{
    Ageing, Cohort, Column, Correlation, Distribution, Plan, Population, PopulationError, Varied,
};
use crate::watch::Watch;

/// The population bound to the model, and its ageing data; what the model does not have is told, or refused.
pub(super) fn bound(
    args: &PopulationArgs,
    base: Instance,
    population: &Population,
    watch: &Watch<'_>,
    err: &mut dyn Write,
) -> Result<(Plan, Option<Ageing>), Failure> {
    let ageing = ageing(args, population, watch, err)?;
    let (mut plan, mut unmatched) = Plan::watched(base, population, watch)?;
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
        return Err(Failure::misuse(message));
    }
    Ok((plan, ageing))
}

/// Reads a population file.
pub(in super::super) fn read(file: &Path, watch: &Watch<'_>) -> Result<Population, Failure> {
    let name = file.display();
    let opened =
        File::open(file).map_err(|e| Failure::failed(format!("cannot read {name}: {e}")))?;
    Population::read_watched(&mut BufReader::new(opened), watch)
        .map_err(|e| Failure::failed(format!("{name}: {e}")))
}

/// The ageing data that were named; people whom the population does not have are told.
fn ageing(
    args: &PopulationArgs,
    population: &Population,
    watch: &Watch<'_>,
    err: &mut dyn Write,
) -> Result<Option<Ageing>, Failure> {
    let Some(file) = &args.ageing else {
        return Ok(None);
    };
    let wrong = |e: &dyn std::fmt::Display| Failure::failed(format!("{}: {e}", file.display()));
    let opened = File::open(file).map_err(|e| wrong(&e))?;
    let ageing = Ageing::read_watched(&mut BufReader::new(opened), watch).map_err(|e| wrong(&e))?;
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

/// The table that was named, or the cohort that was described.
pub(super) fn population(args: &PopulationArgs, watch: &Watch<'_>) -> Result<Population, Failure> {
    let refused = |e: PopulationError| match e {
        PopulationError::Interrupted(_) => Failure::failed(e.to_string()),
        e => Failure::misuse(e.to_string()),
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
        _ => Err(Failure::misuse(
            "give either a population file or --size".to_owned(),
        )),
    }
}

/// `PATH=DISTRIBUTION` or `PATH [unit]=DISTRIBUTION`.
fn varied(text: &str) -> Result<Varied, Failure> {
    let wrong = |what: &str| Failure::misuse(format!("--vary '{text}': {what}"));
    let (name, spread) = text.rsplit_once('=').ok_or_else(|| wrong("no '='"))?;
    let (path, unit) = csv::split_unit(name.trim());
    Ok(Varied {
        column: Column {
            path: path.to_owned(),
            unit: unit.to_owned(),
        },
        distribution: Distribution::parse(spread).map_err(|e| wrong(&e))?,
    })
}

/// `PATH~PATH=NUMBER`: places of both among the drawn parameters, and the correlation.
fn correlated(text: &str, vary: &[String]) -> Result<Correlation, Failure> {
    let wrong = |what: &str| Failure::misuse(format!("--correlate '{text}': {what}"));
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
    Ok(Correlation {
        first: place(a)?,
        second: place(b)?,
        value: value.map_err(|_| wrong("the correlation is not a number"))?,
    })
}
