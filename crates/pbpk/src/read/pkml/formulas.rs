//! The formula cache of a model, as written.

use std::collections::HashMap;
use std::io::BufRead;

use crate::error::LoadError;
use crate::xml::{XmlElement, XmlScanner, flag, number};

/// An alias and its path; both may be ids of the string map.
#[derive(Debug, Clone)]
pub(super) struct RawPath {
    pub(super) path: String,
    pub(super) alias: String,
    /// The simulation time instead of a path.
    pub(super) time: bool,
}

/// One formula.
#[derive(Debug, Clone)]
pub(super) struct PkmlFormula {
    pub(super) line: u64,
    pub(super) name: String,
    pub(super) kind: PkmlFormulaKind,
    pub(super) paths: Vec<RawPath>,
}

/// Kind of computation.
#[derive(Debug, Clone)]
pub(super) enum PkmlFormulaKind {
    Constant(Option<f64>),
    Explicit(String),
    Table {
        points: Vec<(f64, f64, bool)>,
        slope_mode: bool,
    },
    Offset {
        table: String,
        offset: String,
    },
    Argument {
        table: String,
        argument: String,
    },
    Normal,
    LogNormal,
    Uniform,
    Discrete,
    /// Kinds that occur only in building blocks.
    Unsupported(String),
}

/// Formulas by id, and the string map.
#[derive(Debug, Default)]
pub(super) struct FormulaCache {
    pub(super) formulas: HashMap<String, PkmlFormula>,
    strings: HashMap<String, String>,
}

impl FormulaCache {
    /// Returns the string behind an id of the string map; some files store the string itself.
    pub(super) fn string<'a>(&'a self, key: &'a str) -> &'a str {
        self.strings.get(key).map_or(key, String::as_str)
    }
}

/// Reads a `FormulaCache`.
pub(super) fn read(
    scanner: &mut XmlScanner<impl BufRead>,
    cache: &mut FormulaCache,
) -> Result<(), LoadError> {
    scanner.children(|s, name| match name.as_str() {
        "Formulas" => s.children(|s, tag| formula(s, &tag, cache)),
        "StringMap" => s.children(|s, _| {
            let (mut id, mut text) = (None, None);
            s.current()?.attributes(|key, value| {
                match key {
                    "id" => id = Some(value.into_owned()),
                    "s" => text = Some(value.into_owned()),
                    _ => {}
                }
                Ok(())
            })?;
            if let (Some(id), Some(text)) = (id, text) {
                cache.strings.insert(id, text);
            }
            s.skip()
        }),
        _ => s.skip(),
    })
}

/// The attributes of any kind of formula.
#[derive(Default)]
struct FormulaAttributes {
    id: String,
    name: String,
    text: Option<String>,
    value: Option<f64>,
    slope_mode: Option<bool>,
    table: String,
    offset: String,
    argument: String,
}

fn attributes(element: &XmlElement<'_>) -> Result<FormulaAttributes, LoadError> {
    let mut a = FormulaAttributes::default();
    element.attributes(|key, value| {
        match key {
            "id" => a.id = value.into_owned(),
            "name" => a.name = value.into_owned(),
            "formula" => a.text = Some(value.into_owned()),
            "value" => {
                a.value =
                    Some(number(&value).ok_or_else(|| {
                        element.invalid(format!("value '{value}' is not a number"))
                    })?)
            }
            "useDerivedValues" => a.slope_mode = flag(&value),
            "tableObjectAlias" => a.table = value.into_owned(),
            "offsetObjectAlias" => a.offset = value.into_owned(),
            "xArgumentObjectAlias" | "xArgumentAlias" => a.argument = value.into_owned(),
            _ => {}
        }
        Ok(())
    })?;
    Ok(a)
}

fn formula(
    scanner: &mut XmlScanner<impl BufRead>,
    tag: &str,
    cache: &mut FormulaCache,
) -> Result<(), LoadError> {
    let element = scanner.current()?;
    let line = element.line;
    let a = attributes(&element)?;
    let mut paths = Vec::new();
    let mut points = Vec::new();
    scanner.children(|s, name| match name.as_str() {
        "Paths" => s.children(|s, tag| {
            paths.push(path(&s.current()?, tag == "TimePath")?);
            s.skip()
        }),
        "AllPoints" => s.children(|s, _| {
            points.push(point(&s.current()?)?);
            s.skip()
        }),
        _ => s.skip(),
    })?;
    let kind = match tag {
        "Formula" | "ExplicitFormula" => PkmlFormulaKind::Explicit(a.text.unwrap_or_default()),
        "ConstantFormula" => PkmlFormulaKind::Constant(a.value),
        "TableFormula" => PkmlFormulaKind::Table {
            points,
            slope_mode: a.slope_mode.unwrap_or(true),
        },
        "TableFormulaWithOffset" => PkmlFormulaKind::Offset {
            table: a.table,
            offset: a.offset,
        },
        "TableFormulaWithXArgument" => PkmlFormulaKind::Argument {
            table: a.table,
            argument: a.argument,
        },
        "NormalDistributionFormula" => PkmlFormulaKind::Normal,
        "LogNormalDistributionFormula" => PkmlFormulaKind::LogNormal,
        "UniformDistributionFormula" => PkmlFormulaKind::Uniform,
        "DiscreteDistributionFormula" => PkmlFormulaKind::Discrete,
        other => PkmlFormulaKind::Unsupported(other.to_owned()),
    };
    let name = if a.name.is_empty() {
        a.id.clone()
    } else {
        a.name
    };
    cache.formulas.insert(
        a.id,
        PkmlFormula {
            line,
            name,
            kind,
            paths,
        },
    );
    Ok(())
}

fn path(element: &XmlElement<'_>, time: bool) -> Result<RawPath, LoadError> {
    let mut raw = RawPath {
        path: String::new(),
        alias: String::new(),
        time,
    };
    element.attributes(|key, value| {
        match key {
            "path" => raw.path = value.into_owned(),
            "as" | "alias" => raw.alias = value.into_owned(),
            _ => {}
        }
        Ok(())
    })?;
    if time && raw.alias.is_empty() {
        raw.alias = "Time".to_owned();
    }
    Ok(raw)
}

fn point(element: &XmlElement<'_>) -> Result<(f64, f64, bool), LoadError> {
    let mut point = (0.0, 0.0, false);
    element.attributes(|key, value| {
        let read = || {
            number(&value).ok_or_else(|| {
                element.invalid(format!("table point {key} '{value}' is not a number"))
            })
        };
        match key {
            "x" => point.0 = read()?,
            "y" => point.1 = read()?,
            "restartSolver" => point.2 = flag(&value).unwrap_or(false),
            _ => {}
        }
        Ok(())
    })?;
    Ok(point)
}
