//! `sim params`: parameters with values and units.

use std::io::Write;

use super::args::ParamsArgs;
use super::failure::CommandFailure;
use super::json::JsonWriter;
use super::{model, table};
use crate::compile::Instance;
use crate::model::{Model, Quantity, QuantityKind, ValueSource};
use crate::{path, usage};

pub(super) fn run(
    args: &ParamsArgs,
    out: &mut dyn Write,
    err: &mut (dyn Write + Send),
) -> Result<(), CommandFailure> {
    let model = model::open(&args.model, &model::Deadline::none(), err)?;
    let chosen = choose_parameters(&model, args)?;
    let instance = model::individual(model, Vec::new(), &args.model, &model::Deadline::none())?;
    let model = instance.structure().model();
    let listed = || {
        chosen
            .iter()
            .filter_map(|q| Some((*q, model.quantities.get(*q)?)))
    };
    if args.json {
        let text = JsonWriter::object(|j| {
            j.list("parameters", listed(), |j, (i, q)| {
                entry(j, &instance, i, q)
            })
        });
        return Ok(out.write_all(text.as_bytes())?);
    }
    let row = |(i, q): (usize, &Quantity)| {
        vec![
            q.path.clone(),
            table::short(instance.value(i).unwrap_or(f64::NAN)),
            q.unit.clone(),
            nature(&instance, i, q).to_owned(),
        ]
    };
    let rows: Vec<Vec<String>> = listed().map(row).collect();
    Ok(table::write(
        out,
        &["path", "value", "unit", "from"],
        &rows,
        usize::MAX,
    )?)
}

/// Positions of the parameters to list.
fn choose_parameters(model: &Model, args: &ParamsArgs) -> Result<Vec<usize>, CommandFailure> {
    let mut chosen: Vec<usize> = match &args.pattern {
        Some(pattern) => path::find_among(model, pattern, |q| q.kind == QuantityKind::Parameter)?,
        None => (0..model.quantities.len())
            .filter(|q| {
                model
                    .quantities
                    .get(*q)
                    .is_some_and(|q| q.kind == QuantityKind::Parameter)
            })
            .collect(),
    };
    let used = match (&args.used_by, args.used) {
        (Some(output), _) => usage::of_output(model, path::find_one(model, output)?),
        (None, true) => usage::of_model(model),
        (None, false) => return Ok(chosen),
    };
    chosen.retain(|q| used.binary_search(q).is_ok());
    Ok(chosen)
}

/// Returns the origin of a value.
fn nature(instance: &Instance, i: usize, q: &Quantity) -> &'static str {
    match (instance.is_set(i), q.source, q.rhs.is_empty()) {
        (true, ..) => "set",
        (false, _, false) => "start",
        (false, ValueSource::Formula(_), true) => "formula",
        (false, ValueSource::Constant(_), true) => "value",
    }
}

fn entry(j: &mut JsonWriter, instance: &Instance, i: usize, q: &Quantity) {
    j.string("path", &q.path);
    j.number("value", instance.value(i).unwrap_or(f64::NAN));
    j.string("unit", &q.unit);
    j.string("from", nature(instance, i, q));
    j.flag("can_be_varied", q.can_be_varied);
    j.number("min", q.min.unwrap_or(f64::NAN));
    j.number("max", q.max.unwrap_or(f64::NAN));
    if let Some(dimension) = &q.dimension {
        j.string("dimension", dimension);
    }
}
