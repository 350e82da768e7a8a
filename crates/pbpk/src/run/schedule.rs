//! The times of a run: outputs, switches, table restarts.
#![expect(
    clippy::indexing_slicing,
    reason = "numeric kernel: operands precede their users in a body"
)]

use super::RunOptions;
use crate::compile::{Instance, table};
use crate::formula::{Binary, Body, Expr, apply_binary, apply_select, apply_unary};
use crate::model::{FormulaKind, Model, Reference, SolverSettings, Source};

/// One time to integrate to.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Point {
    pub(super) time: f64,
    /// An output time.
    pub(super) store: bool,
    /// The solver starts anew here even if no event fires.
    pub(super) restart: bool,
    /// The solver must not step over it.
    pub(super) stop: bool,
}

impl Point {
    pub(super) fn time_fraction(&self, start: f64, times: &[f64]) -> f64 {
        let end = times.last().copied().unwrap_or(start);
        if end > start {
            (self.time - start) / (end - start)
        } else {
            1.0
        }
    }
}

/// All points after the start, ascending.
pub(super) struct Schedule {
    pub(super) points: Vec<Point>,
    /// For each point, the first stop at or after it.
    stops: Vec<Option<f64>>,
}

impl Schedule {
    /// The schedule for these output times; the first is the start. Switch times after the last output time do not matter.
    pub(super) fn new(instance: &Instance, times: &[f64]) -> Self {
        let model = instance.structure().model();
        let start = times.first().copied().unwrap_or(0.0);
        let end = times.last().copied().unwrap_or(start);
        let inside = |t: &f64| t.is_finite() && *t > start && *t <= end;
        let restarts: Vec<f64> = restarts(instance, model, start)
            .into_iter()
            .filter(inside)
            .collect();
        let switches: Vec<f64> = switches(instance, model, start)
            .into_iter()
            .filter(inside)
            .collect();
        let mut points: Vec<Point> = times
            .iter()
            .skip(1)
            .map(|&time| Point {
                time,
                store: true,
                restart: false,
                stop: false,
            })
            .collect();
        points.extend(switches.iter().map(|&time| Point {
            time,
            store: false,
            restart: false,
            stop: true,
        }));
        points.extend(restarts.iter().map(|&time| Point {
            time,
            store: false,
            restart: true,
            stop: true,
        }));
        points.sort_by(|a, b| a.time.total_cmp(&b.time));
        points.dedup_by(|later, first| {
            let same = later.time == first.time;
            if same {
                first.store |= later.store;
                first.restart |= later.restart;
                first.stop |= later.stop;
            }
            same
        });
        let mut stops = vec![None; points.len()];
        let mut next = None;
        for (stop, point) in stops.iter_mut().zip(&points).rev() {
            if point.stop {
                next = Some(point.time);
            }
            *stop = next;
        }
        Self { points, stops }
    }

    /// The stop that is in force on the way to point i.
    pub(super) fn stop_from(&self, i: usize) -> Option<f64> {
        self.stops.get(i).copied().flatten()
    }
}

/// Output times given by a caller: finite, ascending, once each.
pub(super) fn usable(times: &[f64]) -> Vec<f64> {
    let mut times: Vec<f64> = times
        .iter()
        .copied()
        .filter(|t| t.is_finite() && *t >= 0.0)
        .collect();
    times.sort_by(f64::total_cmp);
    times.dedup();
    times
}

/// Settings of the file with the options' changes.
pub(super) fn settings(model: &Model, options: &RunOptions<'_>) -> SolverSettings {
    let mut settings = model.solver;
    settings.rel_tol = options.rel_tol.unwrap_or(settings.rel_tol);
    settings.abs_tol = options.abs_tol.unwrap_or(settings.abs_tol);
    settings.max_steps = options.max_steps.unwrap_or(settings.max_steps);
    settings.check_negative = options.check_negative.unwrap_or(settings.check_negative);
    settings
}

/// Restart times of all tables over time, shifted by their offsets.
fn restarts(instance: &Instance, model: &Model, start: f64) -> Vec<f64> {
    let values = instance.values();
    let mut times = Vec::new();
    for formula in &model.formulas {
        match &formula.kind {
            FormulaKind::Table(table) => times.extend(table.restarts()),
            FormulaKind::TableWithOffset { table: q, offset } => {
                let own = match model.quantities[*q].source {
                    Source::Formula(f) if !instance.is_set(*q) => table(model, Some(f)),
                    _ => None,
                };
                let shift = match offset {
                    Reference::Time => start,
                    Reference::Quantity(q) => values[*q],
                };
                times.extend(
                    own.into_iter()
                        .flat_map(|t| t.restarts())
                        .map(|x| x + shift),
                );
            }
            FormulaKind::Explicit { .. } | FormulaKind::TableWithArgument { .. } => {}
        }
    }
    times
}

/// Values that the time is compared with in conditions of events, where they are free of states.
fn switches(instance: &Instance, model: &Model, start: f64) -> Vec<f64> {
    let structure = instance.structure();
    let mut is_state = vec![false; model.quantities.len()];
    for &q in structure.states() {
        is_state[q] = true;
    }
    let on_state = structure
        .base
        .dependencies
        .reach(is_state.len(), |q| is_state[q]);
    let mut times = Vec::new();
    for event in &model.events {
        if let FormulaKind::Explicit { body, arguments } = &model.formulas[event.condition].kind {
            compared_with_time(
                body,
                arguments,
                &on_state,
                instance.values(),
                start,
                &mut times,
            );
        }
    }
    times
}

fn compared_with_time(
    body: &Body,
    arguments: &[Reference],
    on_state: &[bool],
    values: &[f64],
    start: f64,
    out: &mut Vec<f64>,
) {
    let mut known: Vec<(f64, bool)> = Vec::with_capacity(body.nodes.len());
    let is_time = |i: u32| matches!(body.nodes[i as usize], Expr::Argument(a) if arguments[a as usize] == Reference::Time);
    for node in &body.nodes {
        let at = |i: u32| known[i as usize];
        let entry = match *node {
            Expr::Number(value) => (value, false),
            Expr::Argument(a) => match arguments[a as usize] {
                Reference::Time => (start, false),
                Reference::Quantity(q) => (values[q], on_state[q]),
            },
            Expr::Unary(op, a) => (apply_unary(op, at(a).0), at(a).1),
            Expr::Binary(op, a, b) => {
                use Binary::{Equal, Greater, GreaterOrEqual, Less, LessOrEqual, NotEqual};
                if matches!(
                    op,
                    Less | LessOrEqual | Greater | GreaterOrEqual | Equal | NotEqual
                ) {
                    for (time, other) in [(a, b), (b, a)] {
                        if is_time(time) && !at(other).1 {
                            out.push(at(other).0);
                        }
                    }
                }
                (apply_binary(op, at(a).0, at(b).0), at(a).1 || at(b).1)
            }
            Expr::Select(c, a, b) => (
                apply_select(at(c).0, at(a).0, at(b).0),
                at(c).1 || at(a).1 || at(b).1,
            ),
        };
        known.push(entry);
    }
}
