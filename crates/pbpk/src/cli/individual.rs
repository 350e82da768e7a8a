//! `sim individual`: a model file with the values of one person of a population.

use std::collections::HashMap;
use std::io::Write;

use super::args::IndividualArgs;
use super::failure::CommandFailure;
use super::{model, population};
use crate::compile::Instance;
use crate::export;
use crate::model::{Model, ModelFormat, ValueSource};
use crate::population::PopulationPlan;
use crate::watch::Watch;

pub(super) fn run(
    args: &IndividualArgs,
    out: &mut dyn Write,
    err: &mut (dyn Write + Send),
) -> Result<(), CommandFailure> {
    let people = population::read(&args.population, &Watch::default())?;
    let row = people.find(args.id).ok_or_else(|| {
        let name = args.population.display();
        let message = format!("{name} has no individual {}", args.id);
        let hint = format!("its {} ids begin with {}", people.len(), people.id(0));
        CommandFailure::misuse(message).with_hint(&hint)
    })?;
    let deadline = model::Deadline::none();
    let opened = model::open(&args.model, &deadline, err)?;
    let base = model::individual(opened.clone(), Vec::new(), &args.model, &deadline)?;
    let (plan, unmatched) = PopulationPlan::new(base, &people)?;
    for warning in plan.warnings() {
        writeln!(err, "warning: {warning}")?;
    }
    for path in &unmatched {
        writeln!(err, "warning: the model has no '{path}'; it is left out")?;
    }
    let person = plan.individual(&people, row)?;
    let text = match opened.format {
        ModelFormat::Pkml { .. } if !args.model.doses.is_empty() => {
            let message = "--dose: a .pkml file is written with the applications that it has";
            return Err(CommandFailure::misuse(message.to_owned())
                .with_hint("export the model as SimModel first: durward sim export --dose"));
        }
        ModelFormat::Pkml { .. } => pkml(args, &person)?,
        _ => simmodel(opened, &person)?,
    };
    model::to_file(&args.file, &args.model.model, out, |w| w.write_all(&text))
}

/// Positions and numbers of what is set.
fn set(person: &Instance) -> impl Iterator<Item = (usize, f64)> {
    let numbers = person.values().iter().copied().enumerate();
    numbers.filter(|(q, _)| person.is_set(*q))
}

/// Returns the text of the model's own file with these values.
fn pkml(args: &IndividualArgs, person: &Instance) -> Result<Vec<u8>, CommandFailure> {
    let name = args.model.model.display();
    let text = std::fs::read_to_string(&args.model.model)
        .map_err(|e| CommandFailure::failure(format!("cannot read {name} as text: {e}")))?;
    let quantities = &person.structure().model().quantities;
    let values: HashMap<&str, f64> = set(person)
        .filter_map(|(q, value)| Some((quantities.get(q)?.entity_id.as_str(), value)))
        .collect();
    let written = export::pkml_with_values(&text, &values);
    Ok(written
        .map_err(|e| CommandFailure::failure(e.to_string()))?
        .into_bytes())
}

/// Returns the model with numbers in place of what is set.
fn simmodel(mut model: Model, person: &Instance) -> Result<Vec<u8>, CommandFailure> {
    for (q, value) in set(person) {
        if let Some(quantity) = model.quantities.get_mut(q) {
            quantity.source = ValueSource::Constant(value);
        }
    }
    let mut text = Vec::new();
    export::simmodel(&model, &mut text).map_err(|e| CommandFailure::failure(e.to_string()))?;
    Ok(text)
}
