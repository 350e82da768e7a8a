//! The lists of quantities and events, as written.

use std::io::BufRead;

use super::id::ObjectId;
use crate::error::LoadError;
use crate::xml::{XmlElement, XmlScanner, flag, number};

/// A `P`, `V` or `Observer`.
#[derive(Debug, Default, Clone)]
pub(super) struct RawQuantity {
    pub(super) line: u64,
    pub(super) id: Option<ObjectId>,
    pub(super) entity_id: String,
    pub(super) name: String,
    pub(super) path: String,
    pub(super) unit: String,
    pub(super) value: Option<f64>,
    pub(super) formula: Option<ObjectId>,
    pub(super) can_be_varied: Option<bool>,
    pub(super) persistable: Option<bool>,
    pub(super) negative_allowed: Option<bool>,
    pub(super) scale: Option<f64>,
    pub(super) rhs: Vec<ObjectId>,
}

/// An event.
#[derive(Debug, Clone)]
pub(super) struct RawEvent {
    pub(super) line: u64,
    pub(super) id: String,
    pub(super) condition: ObjectId,
    pub(super) one_time: bool,
    pub(super) assignments: Vec<RawAssignment>,
}

/// An assignment.
#[derive(Debug, Clone)]
pub(super) struct RawAssignment {
    pub(super) object: ObjectId,
    pub(super) formula: ObjectId,
    pub(super) as_value: bool,
}

/// Reads the items of a list into `out`.
pub(super) fn quantities(
    scanner: &mut XmlScanner<impl BufRead>,
    item: &str,
    out: &mut Vec<RawQuantity>,
) -> Result<(), LoadError> {
    scanner.children(|s, name| {
        if *name != *item {
            return s.skip();
        }
        let mut quantity = attributes(&s.current()?)?;
        s.children(|s, child| match child.as_str() {
            "ScaleFactor" => {
                let line = s.line();
                let text = s.text()?;
                quantity.scale = Some(
                    number(&text)
                        .filter(|v| v.is_finite() && *v > 0.0)
                        .ok_or_else(|| LoadError::Invalid {
                            line,
                            message: format!(
                                "ScaleFactor '{text}' of {} is not a positive number",
                                quantity.path
                            ),
                        })?,
                );
                Ok(())
            }
            "RHSFormulaList" => s.children(|s, term| {
                if term == "RHSFormula" {
                    quantity
                        .rhs
                        .push(ObjectId::new(&s.current()?.required("id")?));
                }
                s.skip()
            }),
            _ => s.skip(),
        })?;
        out.push(quantity);
        Ok(())
    })
}

fn attributes(element: &XmlElement<'_>) -> Result<RawQuantity, LoadError> {
    let mut q = RawQuantity {
        line: element.line,
        ..RawQuantity::default()
    };
    element.attributes(|key, value| {
        match key {
            "id" if !value.trim().is_empty() => q.id = Some(ObjectId::new(&value)),
            "entityId" => q.entity_id = value.into_owned(),
            "name" => q.name = value.into_owned(),
            "path" => q.path = value.into_owned(),
            "unit" => q.unit = value.into_owned(),
            "value" => {
                let read = number(&value);
                q.value =
                    Some(read.ok_or_else(|| {
                        element.invalid(format!("value '{value}' is not a number"))
                    })?);
            }
            "formulaId" | "initialValueFormulaId" => q.formula = Some(ObjectId::new(&value)),
            "canBeVaried" => q.can_be_varied = flag(&value),
            "persistable" => q.persistable = flag(&value),
            "negativeValuesAllowed" => q.negative_allowed = flag(&value),
            _ => {}
        }
        Ok(())
    })?;
    if q.id.is_none() {
        return Err(element.invalid(format!("{} without attribute 'id'", element.name())));
    }
    Ok(q)
}

/// Reads the events into `out`.
pub(super) fn events(
    scanner: &mut XmlScanner<impl BufRead>,
    out: &mut Vec<RawEvent>,
) -> Result<(), LoadError> {
    scanner.children(|s, name| {
        if *name != *"Event" {
            return s.skip();
        }
        let element = s.current()?;
        let mut event = RawEvent {
            line: element.line,
            id: element.attribute("id")?.unwrap_or_default(),
            condition: ObjectId::new(&element.required("conditionFormulaId")?),
            one_time: element
                .attribute("oneTime")?
                .as_deref()
                .and_then(flag)
                .unwrap_or(false),
            assignments: Vec::new(),
        };
        s.children(|s, list| match list.as_str() {
            "AssignmentList" => s.children(|s, assignment| {
                if assignment == "Assignment" {
                    let element = s.current()?;
                    event.assignments.push(RawAssignment {
                        object: ObjectId::new(&element.required("objectId")?),
                        formula: ObjectId::new(&element.required("newFormulaId")?),
                        as_value: element
                            .attribute("useAsValue")?
                            .as_deref()
                            .and_then(flag)
                            .unwrap_or(false),
                    });
                }
                s.skip()
            }),
            _ => s.skip(),
        })?;
        out.push(event);
        Ok(())
    })
}
