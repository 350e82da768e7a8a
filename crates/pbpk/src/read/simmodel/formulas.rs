//! The formula list, as written.

use std::io::BufRead;

use super::id::Id;
use crate::error::LoadError;
use crate::xml::{Scanner, flag, number};

/// Which list an alias's id points into.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Space {
    /// Any object.
    Any,
    /// The old parameter list inside a formula.
    Parameter,
    /// The old variable list inside a formula.
    Variable,
}

/// One formula.
#[derive(Debug, Clone)]
pub(super) struct RawFormula {
    pub(super) line: u64,
    pub(super) id: Id,
}

/// What it computes.
#[derive(Debug, Clone)]
pub(super) enum RawKind {
    Explicit {
        equation: String,
        aliases: Vec<String>,
        /// What each alias points to.
        targets: Vec<(Id, Space)>,
    },
    Table {
        points: Vec<(f64, f64, bool)>,
        slope_mode: bool,
    },
    Offset {
        table: Id,
        offset: Id,
    },
    Argument {
        table: Id,
        argument: Id,
    },
}

/// Reads the list into `out` and `kinds`.
pub(super) fn read(
    scanner: &mut Scanner<impl BufRead>,
    out: &mut Vec<RawFormula>,
    kinds: &mut Vec<RawKind>,
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
        let id = Id::new(&element.required("id")?);
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
                RawKind::Offset { table, offset }
            }
            _ => {
                let (table, argument) = pair(s, "Table", "XArgument", line)?;
                RawKind::Argument { table, argument }
            }
        };
        out.push(RawFormula { line, id });
        kinds.push(kind);
        Ok(())
    })
}

fn explicit(scanner: &mut Scanner<impl BufRead>, id: &Id) -> Result<RawKind, LoadError> {
    let line = scanner.line();
    let mut equation = None;
    let (mut aliases, mut targets) = (Vec::new(), Vec::new());
    scanner.children(|s, name| {
        let space = match name.as_str() {
            "Equation" => {
                equation = Some(s.text()?);
                return Ok(());
            }
            "ReferenceList" => Space::Any,
            "ParameterList" => Space::Parameter,
            "VariableList" => Space::Variable,
            _ => return s.skip(),
        };
        s.children(|s, _| {
            let element = s.current()?;
            let (alias, id) = element.pair("alias", "id")?;
            aliases.push(alias.into_owned());
            targets.push((Id::new(&id), space));
            s.skip()
        })
    })?;
    match equation {
        Some(equation) => Ok(RawKind::Explicit {
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

fn table(scanner: &mut Scanner<impl BufRead>, slope_mode: bool) -> Result<RawKind, LoadError> {
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
    Ok(RawKind::Table { points, slope_mode })
}

fn pair(
    scanner: &mut Scanner<impl BufRead>,
    first: &str,
    second: &str,
    line: u64,
) -> Result<(Id, Id), LoadError> {
    let (mut a, mut b) = (None, None);
    scanner.children(|s, name| {
        let id = s.current()?.attribute("id")?.map(|id| Id::new(&id));
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
