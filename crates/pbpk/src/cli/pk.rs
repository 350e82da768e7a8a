//! `sim pk`: pharmacokinetic parameters of outputs.

use std::io::Write;
use std::path::Path;

use tables::{SheetCell, WorkSheet};

use super::args::PkArgs;
use super::failure::CommandFailure;
use super::json::JsonWriter;
use super::{model, observed, table};
use crate::compile::Instance;
use crate::csv::{self, CurveSeries, CurveTable};
use crate::model::Model;
use crate::observed::ObservedPoint;
use crate::pk::{
    Curve, Dosing, DrugApplication, IntervalMeasure, ObservedProfile, UserParameter, analyse_all,
};
use crate::run::OspVersion;

/// One computed parameter: output, name, value, unit.
type Row = (String, String, f64, String);

pub(super) fn run(
    args: &PkArgs,
    out: &mut dyn Write,
    err: &mut (dyn Write + Send),
) -> Result<(), CommandFailure> {
    let user = args
        .user
        .iter()
        .map(|text| definition(text))
        .collect::<Result<Vec<_>, _>>()?;
    let deadline = model::Deadline::new(&args.solver)?;
    let model = model::open(&args.model, &deadline, err)?;
    let (instance, curves) = match &args.observed {
        Some(file) => observed_curves(args, file, model, &deadline, err)?,
        None => {
            let outputs = model::outputs(&model, &args.output, err)?;
            let instance = model::individual(model, outputs, &args.model, &deadline)?;
            let results = model::run(&instance, &args.solver, &deadline, err)?;
            (instance, vec![model::curves(&results)])
        }
    };
    let start = curves.first().and_then(|curve| curve.times.first());
    let dosing = dosing(args, &instance, start.copied().unwrap_or(0.0))?;
    if args.norm_dose.is_some() {
        writeln!(
            err,
            "warning: --norm-dose changes only what parameters are divided by; the model keeps its own doses (change them with --param)"
        )?;
    }
    if dosing.applications().is_empty() {
        writeln!(
            err,
            "warning: no application with start time and drug mass was found; dose-dependent parameters are not computed"
        )?;
    }
    let mut rows = Vec::new();
    for table in &curves {
        for series in &table.series {
            rows.extend(analysed(&table.times, series, &dosing, &user)?);
        }
    }
    if let Some(file) = &args.xlsx {
        workbook(file, args, &rows, out)?;
    }
    if let Some(file) = &args.csv {
        let text = as_csv(&rows);
        model::to_file(file, &args.model.model, out, |w| {
            w.write_all(text.as_bytes())
        })?;
    }
    if args.json {
        return Ok(out.write_all(as_json(&rows, args.solver.osp_version).as_bytes())?);
    }
    if args.xlsx.is_some() || args.csv.is_some() {
        return Ok(());
    }
    let cells = |(output, name, value, unit): &Row| {
        vec![
            output.clone(),
            name.clone(),
            table::short(*value),
            unit.clone(),
        ]
    };
    let rows: Vec<Vec<String>> = rows.iter().map(cells).collect();
    Ok(table::write(
        out,
        &["output", "parameter", "value", "unit"],
        &rows,
        usize::MAX,
    )?)
}

/// Returns the observed values of a file in base units, a table for each series, and the individual that they are of.
fn observed_curves(
    args: &PkArgs,
    file: &Path,
    model: Model,
    deadline: &model::Deadline,
    err: &mut (dyn Write + Send),
) -> Result<(Instance, Vec<CurveTable>), CommandFailure> {
    let named = (&args.of, args.output.outputs.as_slice());
    let data = observed::read(file, &model, named, deadline, err)?;
    let outputs = data.iter().map(|one| one.position).collect();
    let instance = model::individual(model, outputs, &args.model, deadline)?;
    let mut tables = Vec::new();
    for (number, one) in data.into_iter().enumerate() {
        let one = one.in_base(&instance)?;
        let model = instance.structure().model();
        let quantity = model.quantities.get(one.position);
        let (name, unit) =
            quantity.map_or_else(Default::default, |q| (q.path.clone(), q.unit.clone()));
        let point = |p: &ObservedPoint| (p.time, p.value, p.is_censored);
        let profile = ObservedProfile::new(one.points.iter().map(point));
        if profile.left_out > 0 {
            let left_out = table::count(profile.left_out, "value");
            writeln!(
                err,
                "warning: '{name}', series {}: left out {left_out} (missing or below the limit)",
                number + 1
            )?;
        }
        if profile.times.is_empty() {
            continue;
        }
        tables.push(CurveTable {
            times: profile.times,
            series: vec![CurveSeries {
                name,
                unit,
                values: profile.values,
            }],
        });
    }
    Ok((instance, tables))
}

/// Returns the rows as one JSON object.
fn as_json(rows: &[Row], release: OspVersion) -> String {
    JsonWriter::object(|j| {
        j.string("osp_version", release.name());
        j.list(
            "parameters",
            rows.iter(),
            |j, (output, name, value, unit)| {
                j.string("output", output);
                j.string("parameter", name);
                j.number("value", *value);
                j.string("unit", unit);
            },
        );
    })
}

/// Returns the rows as text, with all digits.
fn as_csv(rows: &[Row]) -> String {
    let mut text = String::from("Output,Parameter,Value,Unit\n");
    for (output, name, value, unit) in rows {
        csv::push_field(&mut text, output);
        text.push(',');
        csv::push_field(&mut text, name);
        text.push(',');
        csv::push_number(&mut text, *value);
        text.push(',');
        csv::push_field(&mut text, unit);
        text.push('\n');
    }
    text
}

/// The rows as a workbook of one sheet.
fn workbook(
    file: &Path,
    args: &PkArgs,
    rows: &[Row],
    out: &mut dyn Write,
) -> Result<(), CommandFailure> {
    let cells = |(output, name, value, unit): &Row| {
        let text = |t: &String| SheetCell::Text(t.clone());
        vec![
            text(output),
            text(name),
            SheetCell::Number(*value),
            text(unit),
        ]
    };
    let header = ["Output", "Parameter", "Value", "Unit"];
    let sheet = WorkSheet {
        name: "PK parameters".to_owned(),
        header: header.map(str::to_owned).to_vec(),
        rows: rows.iter().map(cells).collect(),
    };
    let bytes = tables::workbook(&[sheet]).map_err(|e| CommandFailure::failure(e.to_string()))?;
    model::to_file(file, &args.model.model, out, |w| w.write_all(&bytes))
}

fn analysed(
    times: &[f64],
    series: &CurveSeries,
    dosing: &Dosing,
    user: &[UserParameter],
) -> Result<Vec<Row>, CommandFailure> {
    let curve = Curve::new(times, &series.values)
        .map_err(|e| CommandFailure::failure(format!("'{}': {e}", series.name)))?;
    let mut rows: Vec<Row> = analyse_all(curve, dosing)
        .iter()
        .map(|v| {
            let (value, unit) = v.display_in(&series.unit);
            (
                series.name.clone(),
                v.parameter.name.to_owned(),
                value,
                unit,
            )
        })
        .collect();
    rows.extend(user.iter().map(|u| {
        (
            series.name.clone(),
            u.name.clone(),
            u.evaluate(curve, dosing),
            "base unit".to_owned(),
        )
    }));
    Ok(rows)
}

/// Applications of the model, or the one of the command line.
fn dosing(args: &PkArgs, instance: &Instance, start: f64) -> Result<Dosing, CommandFailure> {
    let dosing = match args.norm_dose {
        Some(dose) => Dosing::new(vec![DrugApplication {
            start,
            dose_per_weight: Some(dose),
            infusion_time: args.infusion,
        }]),
        None => {
            let quantities = instance
                .structure()
                .model()
                .quantities
                .iter()
                .zip(instance.values());
            Dosing::from_constants(quantities.map(|(q, v)| (q.path.as_str(), *v)))
        }
    };
    dosing.map_err(|e| {
        CommandFailure::misuse(e.to_string())
            .with_hint("give --norm-dose in µmol/kg and, for infusions, --infusion in minutes")
    })
}

/// `NAME=MEASURE,START,END`.
fn definition(text: &str) -> Result<UserParameter, CommandFailure> {
    let wrong = |what: &str| {
        let names: Vec<&str> = IntervalMeasure::NAMES.iter().map(|n| n.0).collect();
        CommandFailure::misuse(format!("--user '{text}': {what}")).with_hint(&format!(
            "NAME=MEASURE,START,END; measures: {}",
            names.join(" ")
        ))
    };
    let (name, rest) = text.split_once('=').ok_or_else(|| wrong("no '='"))?;
    let mut parts = rest.split(',').map(str::trim);
    let measure = parts.next().unwrap_or_default();
    let (measure, threshold) = measure.split_once('>').unwrap_or((measure, ""));
    let mut measure =
        IntervalMeasure::from_name(measure).ok_or_else(|| wrong("unknown measure"))?;
    if let IntervalMeasure::TimeOfThreshold(value) = &mut measure {
        *value = threshold
            .parse()
            .map_err(|_| wrong("write Tthreshold>VALUE"))?;
    }
    let mut end = || match parts.next() {
        None | Some("") => Ok(None),
        Some(number) => number
            .parse::<f64>()
            .map(Some)
            .map_err(|_| wrong("an end of the interval is not a number")),
    };
    let mut parameter = UserParameter::new(name.trim(), measure);
    parameter.start = end()?;
    parameter.end = end()?;
    Ok(parameter)
}
