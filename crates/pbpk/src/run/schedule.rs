//! The times of a run: outputs, switches, table restarts.
#![expect(
    clippy::indexing_slicing,
    reason = "numeric kernel: operands precede their users in a body"
)]

use std::sync::Arc;

use super::{OspVersion, RunOptions, START};
use crate::compile::{Instance, table};
use crate::formula::{
    BinaryOperation, Expr, FormulaBody, KnownExtent, OperationRule, UnaryOperation, apply_binary,
    apply_select, apply_unary,
};
use crate::model::{AliasReference, FormulaKind, Model, PointTable, SolverSettings, ValueSource};

/// Steps follow the states alone, and derivatives are some ten times less accurate than these: runs with derivatives
/// are at least as tight as this by default.
const DERIVATIVES_REL_TOL: f64 = 1e-6;

/// One time to integrate to.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct SchedulePoint {
    pub(super) time: f64,
    /// An output time.
    pub(super) store: bool,
    /// Events are tested here.
    pub(super) test: bool,
    /// The solver starts again here even if no event fires.
    pub(super) restart: bool,
    /// The solver must not step over it.
    pub(super) stop: bool,
}

/// A point at which events are tested and nothing else happens.
const PLAIN: SchedulePoint = SchedulePoint {
    time: START,
    store: false,
    test: true,
    restart: false,
    stop: false,
};

/// All points after the start, ascending.
pub(super) struct IntegrationSchedule {
    /// Start of the run: at 0, or before that at a switch time.
    pub(super) start: f64,
    /// Whether the row at 0 is stored.
    pub(super) stores_start: bool,
    /// Whether events are tested at the start a second time.
    pub(super) tests_start_again: bool,
    pub(super) points: Vec<SchedulePoint>,
    /// For each point, the first stop at or after it.
    stops: Vec<Option<f64>>,
}

impl IntegrationSchedule {
    /// Returns the schedule for these output times. Switch times after the last output time do not matter.
    pub(super) fn new(
        instance: &Instance,
        times: &[f64],
        release: OspVersion,
        warnings: &mut Vec<String>,
    ) -> Self {
        let model = instance.structure().model();
        let end = times.last().copied().unwrap_or(START);
        let (restarts, mut kinks) = restarts(instance, model);
        let (switches, jumps) = switches(instance, model);
        kinks.extend(jumps);
        let early = switches.iter().filter(|t| **t < START && t.is_finite());
        let mut start = START;
        if release.starts_early() {
            start = early.fold(START, |first, time| first.min(*time));
            if start < START {
                warnings.push(format!(
                    "an event compares the time with {start}: as OSP {release} does, the run starts there and has no row at 0"
                ));
            }
        } else {
            for time in early {
                warnings.push(format!(
                    "an event compares the time with {time}, which lies before the start and is ignored"
                ));
            }
        }
        let inside = |point: &SchedulePoint| {
            let from = if point.store { START } else { start };
            point.time.is_finite() && point.time > from && point.time <= end
        };
        let at_start = |times: &[f64]| times.contains(&start);
        let outputs = SchedulePoint {
            store: true,
            ..PLAIN
        };
        let stop = SchedulePoint {
            stop: true,
            ..PLAIN
        };
        let restart = SchedulePoint {
            restart: true,
            ..stop
        };
        let kink = SchedulePoint {
            test: false,
            ..restart
        };
        let all = [
            (times, outputs),
            (&switches, stop),
            (&restarts, restart),
            (&kinks, kink),
        ];
        let points = all.into_iter().flat_map(|(times, point)| {
            times
                .iter()
                .map(move |&time| SchedulePoint { time, ..point })
        });
        let points = points.filter(inside);
        let points = merge_points(points.collect());
        Self {
            start,
            stores_start: start == START && at_start(times),
            tests_start_again: release.tests_start_again()
                && (at_start(&switches) || at_start(&restarts)),
            stops: stops(&points),
            points,
        }
    }

    /// Returns the stop that is in force on the way to point i.
    pub(super) fn stop_from(&self, i: usize) -> Option<f64> {
        self.stops.get(i).copied().flatten()
    }
}

/// In order of time, those of the same time as one.
fn merge_points(mut points: Vec<SchedulePoint>) -> Vec<SchedulePoint> {
    points.sort_by(|a, b| a.time.total_cmp(&b.time));
    points.dedup_by(|later, first| {
        let same = later.time == first.time;
        if same {
            first.store |= later.store;
            first.test |= later.test;
            first.restart |= later.restart;
            first.stop |= later.stop;
        }
        same
    });
    points
}

/// For each point, the first stop at or after it.
fn stops(points: &[SchedulePoint]) -> Vec<Option<f64>> {
    let mut stops = vec![None; points.len()];
    let mut next = None;
    for (stop, point) in stops.iter_mut().zip(points).rev() {
        if point.stop {
            next = Some(point.time);
        }
        *stop = next;
    }
    stops
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
    if !options.sensitivity_to.is_empty() && settings.rel_tol > DERIVATIVES_REL_TOL {
        settings.abs_tol *= DERIVATIVES_REL_TOL / settings.rel_tol;
        settings.rel_tol = DERIVATIVES_REL_TOL;
    }
    settings.rel_tol = options.rel_tol.unwrap_or(settings.rel_tol);
    settings.abs_tol = options.abs_tol.unwrap_or(settings.abs_tol);
    settings.max_steps = options.max_steps.unwrap_or(settings.max_steps);
    settings.h_max = options.max_step.unwrap_or(settings.h_max);
    settings.check_negative = options.check_negative.unwrap_or(settings.check_negative);
    settings
}

/// Restart times of all tables over time, at their own x and shifted by the offsets with which they are read, and
/// the kinks in between of those that are read.
fn restarts(instance: &Instance, model: &Model) -> (Vec<f64>, Vec<f64>) {
    let values = instance.values();
    let (mut restarts, mut kinks) = (Vec::new(), Vec::new());
    let mut add = |table: &Arc<PointTable>, shift: f64| {
        restarts.extend(table.restarts().iter().map(|x| x + shift));
        if instance.structure().may_read(table) {
            kinks.extend(table.kinks().iter().map(|x| x + shift));
        }
    };
    for formula in &model.formulas {
        match &formula.kind {
            FormulaKind::Table(table) => add(table, 0.0),
            FormulaKind::TableWithOffset { table: q, offset } => {
                let own = match model.quantities[*q].source {
                    ValueSource::Formula(f) if !instance.is_set(*q) => table(model, Some(f)),
                    _ => None,
                };
                let shift = match offset {
                    AliasReference::Quantity(q) if instance.structure().constants[*q] => values[*q],
                    _ => 0.0,
                };
                if let Some(own) = own {
                    add(own, shift);
                }
            }
            FormulaKind::Explicit { .. } | FormulaKind::TableWithArgument { .. } => {}
        }
    }
    (restarts, kinks)
}

/// Returns values that the time is compared with, if they are free of states: in conditions of events, and elsewhere.
fn switches(instance: &Instance, model: &Model) -> (Vec<f64>, Vec<f64>) {
    let structure = instance.structure();
    let on_state = &structure.on_state;
    let condition = |f: usize| match &model.formulas[f].kind {
        FormulaKind::Explicit { body, arguments } => Some(EventCondition {
            body,
            arguments,
            known: node_values(body, arguments, on_state, instance.values()),
        }),
        _ => None,
    };
    let (mut times, mut jumps) = (Vec::new(), Vec::new());
    for condition in model.events.iter().filter_map(|e| condition(e.condition)) {
        condition.switches(&mut times);
    }
    for comparison in structure
        .time_comparisons
        .iter()
        .filter_map(|f| condition(*f))
    {
        comparison.jumps(&mut jumps);
    }
    (times, jumps)
}

/// A condition with the number of each of its nodes at the start, and whether that depends on states.
struct EventCondition<'a> {
    body: &'a FormulaBody,
    arguments: &'a [AliasReference],
    known: Vec<(f64, bool)>,
}

impl EventCondition<'_> {
    fn is_time(&self, node: u32) -> bool {
        matches!(self.body.nodes[node as usize], Expr::Argument(a) if self.arguments[a as usize] == AliasReference::Time)
    }

    /// Comparisons of the bare time, reached from the root through logic and comparisons only: those in arithmetic or
    /// inside a conditional have no switch time.
    fn switches(&self, out: &mut Vec<f64>) {
        let root = self.body.nodes.len().checked_sub(1);
        let mut open: Vec<u32> = root.map(|r| r as u32).into_iter().collect();
        while let Some(node) = open.pop() {
            match self.body.nodes[node as usize] {
                Expr::Unary(UnaryOperation::Not, a) => open.push(a),
                Expr::Binary(op, a, b)
                    if op == BinaryOperation::And || op == BinaryOperation::Or =>
                {
                    open.extend([a, b]);
                }
                Expr::Binary(op, a, b) if op.is_comparison() => {
                    open.extend([a, b]);
                    self.compare_nodes(a, b, out);
                }
                _ => {}
            }
        }
    }

    /// Collects all comparisons of the bare time, at any depth.
    fn jumps(&self, out: &mut Vec<f64>) {
        for node in &self.body.nodes {
            if let Expr::Binary(op, a, b) = *node
                && op.is_comparison()
            {
                self.compare_nodes(a, b, out);
            }
        }
    }

    fn compare_nodes(&self, a: u32, b: u32, out: &mut Vec<f64>) {
        for (time, other) in [(a, b), (b, a)] {
            let (value, on_state) = self.known[other as usize];
            if self.is_time(time) && !on_state {
                out.push(value);
            }
        }
    }
}

/// Value of each node of a body at the start, and whether it depends on states.
fn node_values(
    body: &FormulaBody,
    arguments: &[AliasReference],
    on_state: &[bool],
    values: &[f64],
) -> Vec<(f64, bool)> {
    let mut known: Vec<(f64, bool)> = Vec::with_capacity(body.nodes.len());
    for node in &body.nodes {
        let at = |i: u32| known[i as usize];
        let entry = match *node {
            Expr::Number(value) => (value, false),
            Expr::Argument(a) => match arguments[a as usize] {
                AliasReference::Time => (START, false),
                AliasReference::Quantity(q) => (values[q], on_state[q]),
            },
            Expr::Unary(op, a) => (apply_unary(op, OperationRule::Live, at(a).0), at(a).1),
            Expr::Binary(op, a, b) => {
                let rule = OperationRule::of(op, KnownExtent::Live, KnownExtent::Live, false);
                (apply_binary(op, rule, at(a).0, at(b).0), at(a).1 || at(b).1)
            }
            Expr::Select(c, a, b) => (
                apply_select(OperationRule::Live, at(c).0, at(a).0, at(b).0),
                at(c).1 || at(a).1 || at(b).1,
            ),
        };
        known.push(entry);
    }
    known
}
