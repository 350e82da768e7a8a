//! The formula list, as written.

use std::io::BufRead;

use super::id::ObjectId;
use crate::error::LoadError;
use crate::xml::{XmlScanner, flag, number};

/// Which list an alias's id points into.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum AliasSpace {
    /// Any object.
    Any,
    /// The old parameter list inside a formula.
    Parameter,
    /// The old variable list inside a formula.
    Variable,
}

/// One formula.
#[derive(Debug, Clone)]
pub(super) struct SimModelFormula {
    pub(super) line: u64,
    pub(super) id: ObjectId,
}

/// Kind of computation.
#[derive(Debug, Clone)]
pub(super) enum SimModelFormulaKind {
    Explicit {
        equation: String,
        aliases: Vec<String>,
        /// What each alias points to.
        targets: Vec<(ObjectId, AliasSpace)>,
    },
    Table {
        points: Vec<(f64, f64, bool)>,
        slope_mode: bool,
    },
    Offset {
        table: ObjectId,
        offset: ObjectId,
    },
    Argument {
        table: ObjectId,
        argument: ObjectId,
    },
}

/// Reads the list into `out` and `kinds`.
pub(super) fn read(
    scanner: &mut XmlScanner<impl BufRead>,
    out: &mut Vec<SimModelFormula>,
    kinds: &mut Vec<SimModelFormulaKind>,
) -> Result<(), LoadError> {
    scanner.children(|s, name| {
        let element = s.current()?;
        let line = element.line;
        let kind = match name.as_str() {
            "ExplicitFormula"
            | "TableFormula"
            | "TableFormulaWithOffset"
            | "TableFormulaWithXArgument" => name.as_str(),
            _ => return Err(element.invalid(format!("unknown kind of formula '{name}'"))),
        };
        let id = ObjectId::new(&element.required("id")?);
        let kind = match kind {
            "ExplicitFormula" => explicit(s, &id)?,
            "TableFormula" => {
                // Without the attribute the genuine solver uses slopes.
                let slope_mode = element
                    .attribute("useDerivedValues")?
                    .as_deref()
                    .and_then(flag)
                    .unwrap_or(true);
                table(s, slope_mode)?
            }
            "TableFormulaWithOffset" => {
                let (table, offset) = pair(s, "Table", "Offset", line)?;
                SimModelFormulaKind::Offset { table, offset }
            }
            _ => {
                let (table, argument) = pair(s, "Table", "XArgument", line)?;
                SimModelFormulaKind::Argument { table, argument }
            }
        };
        out.push(SimModelFormula { line, id });
        kinds.push(kind);
        Ok(())
    })
}

fn explicit(
    scanner: &mut XmlScanner<impl BufRead>,
    id: &ObjectId,
) -> Result<SimModelFormulaKind, LoadError> {
    let line = scanner.line();
    let mut equation = None;
    let (mut aliases, mut targets) = (Vec::new(), Vec::new());
    scanner.children(|s, name| {
        let space = match name.as_str() {
            "Equation" => {
                equation = Some(s.text()?);
                return Ok(());
            }
            "ReferenceList" => AliasSpace::Any,
            "ParameterList" => AliasSpace::Parameter,
            "VariableList" => AliasSpace::Variable,
            _ => return s.skip(),
        };
        s.children(|s, _| {
            let element = s.current()?;
            let (alias, id) = element.pair("alias", "id")?;
            aliases.push(alias.into_owned());
            targets.push((ObjectId::new(&id), space));
            s.skip()
        })
    })?;
    match equation {
        Some(equation) => Ok(SimModelFormulaKind::Explicit {
            equation,
            aliases,
            targets,
        }),
        None => Err(LoadError::Invalid {
            line,
            message: format!("formula {id} has no Equation"),
        }),
    }
}

fn table(
    scanner: &mut XmlScanner<impl BufRead>,
    slope_mode: bool,
) -> Result<SimModelFormulaKind, LoadError> {
    let mut points = Vec::new();
    scanner.children(|s, list| match list.as_str() {
        "PointList" => s.children(|s, _| {
            let element = s.current()?;
            let (mut x, mut y, mut restart) = (0.0, 0.0, false);
            element.attributes(|key, value| {
                let read = || {
                    number(&value).ok_or_else(|| {
                        element.invalid(format!("table point {key} '{value}' is not a number"))
                    })
                };
                match key {
                    "x" => x = read()?,
                    "y" => y = read()?,
                    "restartSolver" => restart = flag(&value).unwrap_or(false),
                    _ => {}
                }
                Ok(())
            })?;
            points.push((x, y, restart));
            s.skip()
        }),
        _ => s.skip(),
    })?;
    Ok(SimModelFormulaKind::Table { points, slope_mode })
}

fn pair(
    scanner: &mut XmlScanner<impl BufRead>,
    first: &str,
    second: &str,
    line: u64,
) -> Result<(ObjectId, ObjectId), LoadError> {
    let (mut a, mut b) = (None, None);
    scanner.children(|s, name| {
        let id = s.current()?.attribute("id")?.map(|id| ObjectId::new(&id));
        if name == first {
            a = id;
        } else if name == second {
            b = id;
        }
        s.skip()
    })?;
    match (a, b) {
        (Some(a), Some(b)) => Ok((a, b)),
        _ => Err(LoadError::Invalid {
            line,
            message: format!("table formula needs {first} and {second}"),
        }),
    }
}
