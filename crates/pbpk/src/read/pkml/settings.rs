//! Solver and output settings, in the four forms of twenty versions: attributes or child parameters.

use std::collections::HashMap;
use std::io::BufRead;

use crate::error::LoadError;
use crate::model::{OutputGrid, OutputInterval};
use crate::xml::{XmlElement, XmlScanner, number};

/// A setting's value: a number, or the id of a constant formula in the settings' own cache.
#[derive(Debug, Clone)]
pub(super) enum SettingValue {
    Number(f64),
    Formula(String),
}

/// The settings, as written.
#[derive(Debug, Default)]
pub(super) struct PkmlSettings {
    pub(super) solver: Vec<(String, SettingValue)>,
    intervals: Vec<[Option<SettingValue>; 3]>,
    times: Vec<f64>,
    pub(super) selections: Vec<String>,
    constants: HashMap<String, f64>,
}

const INTERVAL_PARTS: [&str; 3] = ["starttime", "endtime", "resolution"];

impl PkmlSettings {
    /// Returns the number of a setting.
    pub(super) fn value(&self, setting: &SettingValue) -> Option<f64> {
        match setting {
            SettingValue::Number(value) => Some(*value),
            SettingValue::Formula(id) => self.constants.get(id).copied(),
        }
    }

    /// Returns the output grid.
    pub(super) fn grid(&self) -> Result<OutputGrid, LoadError> {
        let mut grid = OutputGrid {
            intervals: Vec::new(),
            times: self.times.clone(),
        };
        for [start, end, resolution] in &self.intervals {
            let part = |setting: &Option<SettingValue>| {
                setting
                    .as_ref()
                    .and_then(|s| self.value(s))
                    .filter(|v| v.is_finite())
            };
            let (Some(start), Some(end)) = (part(start), part(end)) else {
                return Err(LoadError::Invalid {
                    line: 0,
                    message: "an output interval has no start or end time".to_owned(),
                });
            };
            grid.intervals.push(OutputInterval::with_resolution(
                start,
                end,
                part(resolution).unwrap_or(0.0),
            ));
        }
        Ok(grid)
    }
}

/// Reads the settings inside a configuration element, on any level.
pub(super) fn read(
    scanner: &mut XmlScanner<impl BufRead>,
    out: &mut PkmlSettings,
) -> Result<(), LoadError> {
    scanner.children(|s, name| match name.as_str() {
        "SimulationSettings" => read(s, out),
        "Solver" | "CVODESettings" => solver(s, out),
        "OutputSchema" => schema(s, out),
        "OutputSelections" => selections(s, out),
        "FormulaCache" => constants(s, out),
        _ => s.skip(),
    })
}

fn solver(scanner: &mut XmlScanner<impl BufRead>, out: &mut PkmlSettings) -> Result<(), LoadError> {
    scanner.current()?.attributes(|key, value| {
        if let Some(value) = number(&value).filter(|_| !matches!(key, "id" | "name")) {
            out.solver
                .push((key.to_owned(), SettingValue::Number(value)));
        }
        Ok(())
    })?;
    scanner.children(|s, name| match name.as_str() {
        "Children" => s.children(|s, tag| {
            if tag == "Parameter" {
                let (name, setting) = parameter(&s.current()?)?;
                out.solver.extend(setting.map(|setting| (name, setting)));
            }
            s.skip()
        }),
        _ => s.skip(),
    })
}

/// Returns a child parameter's name and value.
fn parameter(element: &XmlElement<'_>) -> Result<(String, Option<SettingValue>), LoadError> {
    let (mut name, mut value, mut formula, mut fixed) = (String::new(), None, None, false);
    element.attributes(|key, text| {
        match key {
            "name" => name = text.into_owned(),
            "value" => {
                value =
                    Some(number(&text).ok_or_else(|| {
                        element.invalid(format!("value '{text}' is not a number"))
                    })?)
            }
            "formula" => formula = Some(text.into_owned()),
            "isFixedValue" => fixed = text.trim() == "1",
            _ => {}
        }
        Ok(())
    })?;
    let setting = match (value, formula) {
        (Some(value), None) => Some(SettingValue::Number(value)),
        (Some(value), Some(_)) if fixed => Some(SettingValue::Number(value)),
        (_, Some(formula)) => Some(SettingValue::Formula(formula)),
        (None, None) => None,
    };
    Ok((name, setting))
}

fn schema(scanner: &mut XmlScanner<impl BufRead>, out: &mut PkmlSettings) -> Result<(), LoadError> {
    scanner.children(|s, name| match name.as_str() {
        "Children" | "Intervals" => s.children(|s, tag| match tag.as_str() {
            "OutputInterval" => interval(s, out),
            _ => s.skip(),
        }),
        "TimePoints" => s.children(|s, _| time_point(s, out)),
        _ => s.skip(),
    })
}

fn time_point(
    scanner: &mut XmlScanner<impl BufRead>,
    out: &mut PkmlSettings,
) -> Result<(), LoadError> {
    let line = scanner.line();
    let attribute = scanner.current()?.attribute("value")?;
    let inner = scanner.text()?;
    let text = attribute.unwrap_or(inner);
    let time = number(&text).ok_or_else(|| LoadError::Invalid {
        line,
        message: format!("TimePoint '{text}' is not a number"),
    })?;
    out.times.push(time);
    Ok(())
}

fn interval(
    scanner: &mut XmlScanner<impl BufRead>,
    out: &mut PkmlSettings,
) -> Result<(), LoadError> {
    let mut parts: [Option<SettingValue>; 3] = [None, None, None];
    let mut place = |name: &str, setting: SettingValue| {
        let folded: String = name
            .chars()
            .filter(|c| !c.is_whitespace())
            .collect::<String>()
            .to_ascii_lowercase();
        for (part, slot) in INTERVAL_PARTS.iter().zip(parts.iter_mut()) {
            if *part == folded {
                *slot = Some(setting.clone());
            }
        }
    };
    scanner.current()?.attributes(|key, value| {
        if let Some(value) = number(&value) {
            place(key, SettingValue::Number(value));
        }
        Ok(())
    })?;
    scanner.children(|s, name| match name.as_str() {
        "Children" => s.children(|s, tag| {
            if tag == "Parameter" {
                let (name, setting) = parameter(&s.current()?)?;
                if let Some(setting) = setting {
                    place(&name, setting);
                }
            }
            s.skip()
        }),
        _ => s.skip(),
    })?;
    // Some files have empty intervals; they add no times.
    if parts.iter().any(Option::is_some) {
        out.intervals.push(parts);
    }
    Ok(())
}

fn selections(
    scanner: &mut XmlScanner<impl BufRead>,
    out: &mut PkmlSettings,
) -> Result<(), LoadError> {
    scanner.children(|s, name| match name.as_str() {
        "AllOutputs" => s.children(|s, _| {
            out.selections.extend(s.current()?.attribute("path")?);
            s.skip()
        }),
        _ => s.skip(),
    })
}

fn constants(
    scanner: &mut XmlScanner<impl BufRead>,
    out: &mut PkmlSettings,
) -> Result<(), LoadError> {
    scanner.children(|s, name| match name.as_str() {
        "Formulas" => s.children(|s, tag| {
            let element = s.current()?;
            let key = if tag == "ConstantFormula" {
                "value"
            } else {
                "formula"
            };
            let value = element.attribute(key)?.as_deref().and_then(number);
            if let (Some(id), Some(value)) = (element.attribute("id")?, value) {
                out.constants.insert(id, value);
            }
            s.skip()
        }),
        _ => s.skip(),
    })
}
