//! A run under way: its state, and its way from one time to the next.

use super::events::{EventState, interrupted};
use super::schedule::{self, IntegrationSchedule};
use super::system::{RunContext, RunProgress};
use super::{Results, RunError, RunOptions, START, derivatives, locate, negative};
use crate::compile::Instance;
use crate::model::SolverSettings;
use crate::solve::{BdfSolver, SolveOptions};
use crate::watch::Watch;

/// Numbers stored that make a unit of work.
const NUMBERS_OF_A_UNIT: usize = 64;

/// Returns the output times: those of the options, else the file's, with 0 if the release stores that row in any case.
pub(super) fn times(model: &crate::model::Model, options: &RunOptions<'_>) -> Vec<f64> {
    match options.times {
        Some(times) => schedule::usable(times),
        None => {
            let mut times = model.grid.sorted(options.precision);
            let is_late = times.first().is_some_and(|first| *first > START);
            if is_late && options.osp_version.always_stores_start() {
                times.insert(0, START);
            }
            times
        }
    }
}

/// A run with everything that it needs to go on.
pub(super) struct RunCourse<'a> {
    options: RunOptions<'a>,
    watch: Watch<'a>,
    progress: RunProgress<'a>,
    pub(super) times: Vec<f64>,
    pub(super) settings: SolverSettings,
    schedule: IntegrationSchedule,
    pub(super) state: EventState,
    pub(super) solver: Option<BdfSolver>,
    target: Vec<f64>,
    /// Number of the next point, and the time of the one before.
    pub(super) next: usize,
    pub(super) from: f64,
}

impl<'a> RunCourse<'a> {
    /// Returns a run that has not begun.
    pub(super) fn new(
        instance: &Instance,
        options: &RunOptions<'a>,
        results: &mut Results,
        warnings: &mut Vec<String>,
    ) -> Result<Self, RunError> {
        ask(options, START)?;
        let model = instance.structure().model();
        let times = times(model, options);
        ask(options, START)?;
        if !times.iter().any(|t| *t > START) {
            return Err(RunError::EmptyGrid);
        }
        if model.quantities.is_empty() {
            warnings.push("nothing to simulate: the model holds no quantity".to_owned());
        }
        let settings = schedule::settings(model, options);
        results.settings = settings;
        results.osp_version = options.osp_version;
        let schedule = IntegrationSchedule::new(instance, &times, options.osp_version, warnings);
        ask(options, START)?;
        let mut state = EventState::new(instance, options.interrupt)?;
        if !options.sensitivity_to.is_empty() {
            derivatives::prepare(&mut state, instance, options)?;
        }
        results.reserve(times.len(), options.sink.is_some());
        let end = times.last().copied().unwrap_or(START);
        let from = schedule.start;
        Ok(Self {
            options: *options,
            watch: Watch::new(options.interrupt),
            progress: RunProgress::new(options.progress, end),
            target: vec![0.0; state.y.len()],
            times,
            settings,
            schedule,
            state,
            solver: None,
            next: 0,
            from,
        })
    }

    /// Stores the start, tests the events there and starts the solver.
    pub(super) fn begin(
        &mut self,
        results: &mut Results,
        warnings: &mut Vec<String>,
    ) -> Result<(), RunError> {
        let structure = std::sync::Arc::clone(self.state.structure());
        if self.settings.check_negative {
            negative::check_start(&structure, &self.state.y, self.schedule.start)?;
        }
        if self.schedule.stores_start {
            self.store(results, START)?;
        }
        start_events(&mut self.state, &self.schedule, &self.options, warnings)?;
        if !self.state.y.is_empty() {
            let mut solver = self.new_solver(warnings)?;
            let start = self.schedule.start;
            restart(&mut solver, &mut self.state, start, &self.options, warnings)?;
            self.solver = Some(solver);
        }
        Ok(())
    }

    /// Returns the release that the run follows.
    pub(super) fn release(&self) -> super::OspVersion {
        self.options.osp_version
    }

    /// The caller's question whether to go on.
    pub(super) fn interrupt(&self) -> Option<crate::watch::Question<'a>> {
        self.options.interrupt
    }

    fn store(&mut self, results: &mut Results, time: f64) -> Result<(), RunError> {
        let (state, abs_tol) = (&mut self.state, self.settings.abs_tol);
        let stored = results.store(state, time, abs_tol, self.options.sink, &self.watch);
        stored.map_err(|cause| interrupted(time, cause))
    }

    /// Goes on to the last point that does not lie after `until`.
    pub(super) fn follow(
        &mut self,
        results: &mut Results,
        warnings: &mut Vec<String>,
        until: f64,
    ) -> Result<(), RunError> {
        while let Some(&point) = self.schedule.points.get(self.next) {
            if point.time > until {
                break;
            }
            self.point(point, results, warnings)?;
            self.next += 1;
        }
        Ok(())
    }

    /// Integrates to a point, and does there what is to be done.
    fn point(
        &mut self,
        point: schedule::SchedulePoint,
        results: &mut Results,
        warnings: &mut Vec<String>,
    ) -> Result<(), RunError> {
        let mut before = None;
        if let Some(solver) = &mut self.solver {
            solver.set_stop(self.schedule.stop_from(self.next));
            let way = (self.from, point.time);
            let (state, options) = (&mut self.state, &self.options);
            let (target, progress) = (&mut self.target, &self.progress);
            before = advance(solver, state, way, options, progress, warnings, target)?;
            results.statistics = solver.statistics();
            self.from = point.time;
        }
        if point.store {
            self.store(results, point.time)?;
            if self.settings.check_negative {
                let (structure, y) = (self.state.structure(), &self.state.y);
                negative::check(structure, y, self.settings.abs_tol, point.time)?;
            }
            self.progress.tell(point.time);
            // Many output times may lie within one step of the solver.
            let numbers = results.paths.len() * (1 + self.options.sensitivity_to.len());
            let counted = self.watch.work(1 + numbers / NUMBERS_OF_A_UNIT);
            counted.map_err(|cause| interrupted(point.time, cause))?;
        }
        let changed = point.test
            && self
                .state
                .test_events(point.time, before.as_deref(), self.options.interrupt)?;
        if let Some(solver) = &mut self.solver
            && (changed || point.restart)
        {
            restart(solver, &mut self.state, point.time, &self.options, warnings)?;
        }
        if self.solver.is_none() {
            ask(&self.options, point.time)?;
        }
        Ok(())
    }

    /// Returns a solver for the code in use, not yet started.
    pub(super) fn new_solver(&mut self, warnings: &mut Vec<String>) -> Result<BdfSolver, RunError> {
        let settings = self.settings;
        let solver_options = SolveOptions {
            rtol: settings.rel_tol,
            atol: vec![settings.abs_tol],
            h0: (settings.h0 > 0.0).then_some(settings.h0),
            hmin: settings.h_min,
            hmax: settings.h_max,
            max_steps: usize::try_from(settings.max_steps).unwrap_or(usize::MAX),
            ..SolveOptions::default()
        };
        let state = &mut self.state;
        let variant = std::sync::Arc::clone(state.engine.variant());
        let watch = Watch::new(self.options.interrupt);
        let symbolic = variant.symbolic(&watch);
        let symbolic = symbolic.map_err(|cause| interrupted(START, cause))?;
        let system = RunContext {
            engine: &mut state.engine,
            tangents: state.tangents.as_mut(),
            stop: None,
            interrupt: self.options.interrupt,
            progress: &self.progress,
            warnings,
        };
        let solver = BdfSolver::with_symbolic(&system, solver_options, symbolic);
        solver.map_err(|source| self.state.failure(START, source))
    }
}

/// Asks the caller whether to go on, where no solver does so.
fn ask(options: &RunOptions<'_>, time: f64) -> Result<(), RunError> {
    let asked = Watch::new(options.interrupt).ask();
    asked.map_err(|cause| interrupted(time, cause))
}

/// Tests the events at the start, and once more if the schedule says so.
pub(super) fn start_events(
    state: &mut EventState,
    schedule: &IntegrationSchedule,
    options: &RunOptions<'_>,
    warnings: &mut Vec<String>,
) -> Result<(), RunError> {
    let start = schedule.start;
    state.test_events(start, None, options.interrupt)?;
    if !schedule.tests_start_again || options.once_at_start {
        return Ok(());
    }
    let first = state.acted().to_vec();
    state.test_events(start, None, options.interrupt)?;
    for &event in state.acted().iter().filter(|e| first.contains(e)) {
        if let Some(event) = state.model().events.get(event) {
            warnings.push(format!(
                "event '{}' repeats at {start}: it is tested at the start and again because {start} is a switch time, and acted both times",
                event.name
            ));
        }
    }
    Ok(())
}

pub(super) fn restart(
    solver: &mut BdfSolver,
    state: &mut EventState,
    time: f64,
    options: &RunOptions<'_>,
    warnings: &mut Vec<String>,
) -> Result<(), RunError> {
    let mut system = RunContext {
        engine: &mut state.engine,
        tangents: state.tangents.as_mut(),
        stop: None,
        interrupt: options.interrupt,
        progress: &RunProgress::default(),
        warnings,
    };
    let mut started = solver.start(&mut system, time, &state.y);
    if started.is_ok() && state.tangents.is_some() {
        started = solver.start_sensitivities(&state.s);
    }
    started.map_err(|source| state.failure(time, source))
}

/// Integrates from one point to the next; with event location, restarting on the way wherever a condition becomes true,
/// and telling what was true just before the end.
fn advance(
    solver: &mut BdfSolver,
    state: &mut EventState,
    (from, to): (f64, f64),
    options: &RunOptions<'_>,
    progress: &RunProgress<'_>,
    warnings: &mut Vec<String>,
    target: &mut [f64],
) -> Result<Option<Vec<bool>>, RunError> {
    if options.locate_events && state.has_open_events() {
        let way = (from, to);
        return locate::advance(solver, state, way, options, progress, warnings, target).map(Some);
    }
    let mut system = RunContext {
        engine: &mut state.engine,
        tangents: state.tangents.as_mut(),
        stop: solver.stop(),
        interrupt: options.interrupt,
        progress,
        warnings,
    };
    match solver.advance_to(&mut system, to, target) {
        Ok(()) => {
            state.y.copy_from_slice(target);
            if state.tangents.is_some() {
                let found = solver.output_sensitivities(to, &mut state.s);
                found.map_err(|source| state.failure(to, source))?;
            }
            Ok(None)
        }
        Err(source) => Err(state.failure(to, source)),
    }
}
