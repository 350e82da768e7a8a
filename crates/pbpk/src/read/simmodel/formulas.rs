//! The formula list, as written.

use std::io::BufRead;

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

/// An alias and what it points to.
#[derive(Debug, Clone)]
pub(super) struct RawAlias {
    pub(super) alias: String,
    pub(super) id: String,
    pub(super) space: Space,
}

/// One formula.
#[derive(Debug, Clone)]
pub(super) struct RawFormula {
    pub(super) line: u64,
    pub(super) id: String,
    pub(super) kind: RawKind,
}

/// What it computes.
#[derive(Debug, Clone)]
pub(super) enum RawKind {
    Explicit {
        equation: String,
        aliases: Vec<RawAlias>,
    },
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
}

/// Reads the list into `out`.
pub(super) fn read(
    scanner: &mut Scanner<impl BufRead>,
    out: &mut Vec<RawFormula>,
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
        let id = element.required("id")?.trim().to_owned();
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
        out.push(RawFormula { line, id, kind });
        Ok(())
    })
}

fn explicit(scanner: &mut Scanner<impl BufRead>, id: &str) -> Result<RawKind, LoadError> {
    let line = scanner.line();
    let mut equation = None;
    let mut aliases = Vec::new();
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
            let alias = element.required("alias")?;
            aliases.push(RawAlias {
                alias,
                id: element.required("id")?.trim().to_owned(),
                space,
            });
            s.skip()
        })
    })?;
    match equation {
        Some(equation) => Ok(RawKind::Explicit { equation, aliases }),
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
) -> Result<(String, String), LoadError> {
    let (mut a, mut b) = (None, None);
    scanner.children(|s, name| {
        let id = s.current()?.attribute("id")?.map(|id| id.trim().to_owned());
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
