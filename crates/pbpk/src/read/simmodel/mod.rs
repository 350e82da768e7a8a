//! SimModel xml: lists of parameters, variables, observers, formulas and events, in any order, joined by number ids.

mod bind;
mod formulas;
mod id;
mod lists;

use std::io::BufRead;

use crate::error::LoadError;
use crate::model::{Model, ModelFormat, OutputGrid, OutputInterval};
use crate::watch::Watch;
use crate::xml::{XmlScanner, number};
use id::ObjectId;
use lists::{RawEvent, RawQuantity};

/// Everything of the document, unbound.
#[derive(Default)]
struct RawSimModel {
    version: Option<u32>,
    delimiter: Option<char>,
    parameters: Vec<RawQuantity>,
    variables: Vec<RawQuantity>,
    observers: Vec<RawQuantity>,
    events: Vec<RawEvent>,
    formulas: Vec<formulas::SimModelFormula>,
    /// What each formula computes.
    kinds: Vec<formulas::SimModelFormulaKind>,
    /// Setting name and the id of its parameter.
    solver: Vec<(String, ObjectId)>,
    grid: OutputGrid,
}

/// Reads the document after its `Simulation` tag.
pub(super) fn read(
    scanner: &mut XmlScanner<impl BufRead>,
    watch: &Watch<'_>,
) -> Result<Model, LoadError> {
    let mut raw = RawSimModel::default();
    let mut name = String::new();
    let root = scanner.current()?;
    root.attributes(|key, value| {
        match key {
            "version" => raw.version = value.trim().parse().ok(),
            "objectPathDelimiter" => raw.delimiter = value.chars().next(),
            "name" => name = value.into_owned(),
            _ => {}
        }
        Ok(())
    })?;
    scanner.children(|s, element| match element.as_str() {
        "ParameterList" => lists::quantities(s, "P", &mut raw.parameters),
        "VariableList" => lists::quantities(s, "V", &mut raw.variables),
        "ObserverList" => lists::quantities(s, "Observer", &mut raw.observers),
        "EventList" => lists::events(s, &mut raw.events),
        "FormulaList" => formulas::read(s, &mut raw.formulas, &mut raw.kinds),
        "Solver" => solver(s, &mut raw.solver),
        "OutputSchema" => schema(s, &mut raw.grid),
        _ => s.skip(),
    })?;
    let format = ModelFormat::SimModel {
        version: raw.version,
    };
    bind::bind(raw, name, format, watch)
}

fn solver(
    scanner: &mut XmlScanner<impl BufRead>,
    out: &mut Vec<(String, ObjectId)>,
) -> Result<(), LoadError> {
    scanner.children(|s, name| {
        let id = s.current()?.attribute("id")?;
        if let Some(id) = id {
            out.push((name.to_string(), ObjectId::new(&id)));
        }
        s.skip()
    })
}

fn schema(scanner: &mut XmlScanner<impl BufRead>, grid: &mut OutputGrid) -> Result<(), LoadError> {
    scanner.children(|s, list| match list.as_str() {
        "OutputIntervalList" => s.children(|s, name| match name.as_str() {
            "OutputInterval" => {
                grid.intervals.push(interval(s)?);
                Ok(())
            }
            _ => s.skip(),
        }),
        "OutputTimeList" => s.children(|s, name| match name.as_str() {
            "OutputTime" => {
                let line = s.line();
                let text = s.text()?;
                grid.times.push(numeric(&text, "OutputTime", line)?);
                if grid.times.len() > OutputGrid::TIMES_MAX {
                    return Err(LoadError::Limit {
                        what: "output times",
                        limit: OutputGrid::TIMES_MAX as u64,
                        line,
                    });
                }
                Ok(())
            }
            _ => s.skip(),
        }),
        _ => s.skip(),
    })
}

fn interval(scanner: &mut XmlScanner<impl BufRead>) -> Result<OutputInterval, LoadError> {
    let line = scanner.line();
    let distribution = scanner.current()?.attribute("distribution")?;
    if let Some(kind) = distribution
        && kind != "Uniform"
    {
        return Err(LoadError::Invalid {
            line,
            message: format!("output interval with distribution '{kind}': only Uniform is known"),
        });
    }
    let (mut start, mut end, mut points) = (None, None, None);
    scanner.children(|s, name| {
        let line = s.line();
        let text = s.text()?;
        let value = numeric(&text, &name, line)?;
        match name.as_str() {
            "StartTime" => start = Some(value),
            "EndTime" => end = Some(value),
            "NumberOfTimePoints" => points = Some(value),
            _ => {}
        }
        Ok(())
    })?;
    match (start, end, points) {
        (Some(start), Some(end), Some(points))
            if points >= 1.0 && points <= OutputGrid::TIMES_MAX as f64 =>
        {
            Ok(OutputInterval {
                start,
                end,
                points: points as usize,
            })
        }
        _ => Err(LoadError::Invalid {
            line,
            message:
                "output interval needs StartTime, EndTime and NumberOfTimePoints of at least 1"
                    .to_owned(),
        }),
    }
}

fn numeric(text: &str, what: &str, line: u64) -> Result<f64, LoadError> {
    number(text).ok_or_else(|| LoadError::Invalid {
        line,
        message: format!("{what}: '{text}' is not a number"),
    })
}
