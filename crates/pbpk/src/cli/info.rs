//! `sim info`: content of a file.

use std::io::Write;

use super::args::InfoArgs;
use super::failure::CommandFailure;
use super::json::JsonWriter;
use super::model;
use crate::model::{Model, ModelFormat, QuantityKind, TimePrecision};

pub(super) fn run(
    args: &InfoArgs,
    out: &mut dyn Write,
    err: &mut (dyn Write + Send),
) -> Result<(), CommandFailure> {
    let model = model::open(&args.model, &model::Deadline::none(), err)?;
    let text = if args.json {
        json(&model)
    } else {
        text(&model)
    };
    Ok(out.write_all(text.as_bytes())?)
}

fn format(model: &Model) -> String {
    match model.format {
        ModelFormat::Pkml { version } => format!("pkml, version {version}"),
        ModelFormat::SimModel {
            version: Some(version),
        } => format!("SimModel xml, version {version}"),
        ModelFormat::SimModel { version: None } => "SimModel xml, no version".to_owned(),
    }
}

fn counts(model: &Model) -> [(&'static str, usize); 6] {
    let kind = |kind: QuantityKind| model.quantities.iter().filter(|q| q.kind == kind).count();
    [
        ("quantities", model.quantities.len()),
        ("states", model.states().len()),
        ("parameters", kind(QuantityKind::Parameter)),
        ("observers", kind(QuantityKind::Observer)),
        ("events", model.events.len()),
        (
            "outputs",
            if model.selections.is_empty() {
                model.outputs().len()
            } else {
                model.selections.len()
            },
        ),
    ]
}

fn text(model: &Model) -> String {
    let times = model.grid.sorted(TimePrecision::Single);
    let s = &model.solver;
    let mut text = format!(
        "name        {}\nformat      {}\n",
        model.name,
        format(model)
    );
    for (name, count) in counts(model) {
        text.push_str(&format!("{name:<12}{count}\n"));
    }
    match (times.first(), times.last()) {
        (Some(first), Some(last)) => text.push_str(&format!(
            "times       {} from {first} to {last} min\n",
            times.len()
        )),
        _ => text.push_str("times       none\n"),
    }
    text.push_str(&format!(
        "tolerances  relative {:e}, absolute {:e}\n",
        s.rel_tol, s.abs_tol
    ));
    text.push_str(&format!(
        "steps       first {:e}, smallest {}, largest {} min; at most {} per output interval\n",
        s.h0, s.h_min, s.h_max, s.max_steps
    ));
    text.push_str(&format!(
        "negatives   {}\n",
        if s.check_negative {
            "checked"
        } else {
            "not checked"
        }
    ));
    text
}

fn json(model: &Model) -> String {
    let times = model.grid.sorted(TimePrecision::Single);
    let s = &model.solver;
    JsonWriter::object(|j| {
        j.string("name", &model.name);
        j.string("format", &format(model));
        for (name, count) in counts(model) {
            j.count(name, count);
        }
        j.nested("times", |j| {
            j.count("count", times.len());
            j.number("first_min", times.first().copied().unwrap_or(f64::NAN));
            j.number("last_min", times.last().copied().unwrap_or(f64::NAN));
        });
        j.nested("solver", |j| {
            j.number("relative_tolerance", s.rel_tol);
            j.number("absolute_tolerance", s.abs_tol);
            j.number("first_step_min", s.h0);
            j.number("smallest_step_min", s.h_min);
            j.number("largest_step_min", s.h_max);
            j.number("max_steps", s.max_steps as f64);
            j.flag("check_negative", s.check_negative);
        });
        j.strings("warnings", &model.warnings);
    })
}
