//! Longest time between two looks at the cancel flag in every phase, and from a stop at the last look to the end, in
//! milliseconds: `pauses FILE [MINUTES]`; ends with an error if one is too long.
//!
//! Every phase is done a few times and the least of its longest pauses counts: what else the machine does at the time
//! is not what is looked for. A run goes as far as MINUTES.

use std::collections::HashMap;
use std::io::Write;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use pbpk::compile::{Instance, Structure};
use pbpk::export::{pkml_with_values_watched, sbml_watched, simmodel_watched};
use pbpk::fit::{FitParameter, FitProblem, Observation, ResidualModel, fit};
use pbpk::model::{QuantityKind, ValueSource};
use pbpk::population::{
    Cohort, Distribution, ParameterColumn, Population, PopulationPlan, VariedParameter, run_chunk,
};
use pbpk::run::{RunError, RunOptions, resume, run, run_until};
use pbpk::sensitivity::{VariationScheme, figures, of_parameter};
use pbpk::steady::{SteadyOptions, steady};
use pbpk::watch::{Interrupt, Question, Watch};

type Fault = Box<dyn std::error::Error>;

/// A pause may be as long as this.
const PAUSE_MS_MAX: f64 = 50.0;
/// How often a phase is done.
const ROUNDS: usize = 3;
/// Parameters by which outputs are derived, and that are fitted.
const FEW: usize = 20;
const MANY: usize = 1000;
const FITTED: usize = 5;
/// Individuals that are drawn, and of these are run, with so many parameters each.
const DRAWN: usize = 10_000;
const RUN: usize = 50;
const VARIED: usize = 90;

/// When somebody asked last, and the longest pause so far.
struct Pauses {
    at: Mutex<(Instant, f64, usize)>,
    too_long: Mutex<Vec<String>>,
}

impl Pauses {
    fn look(&self) -> Option<Interrupt> {
        let mut at = self.at.lock().unwrap_or_else(PoisonError::into_inner);
        at.1 = at.1.max(at.0.elapsed().as_secs_f64() * 1e3);
        at.2 += 1;
        at.0 = Instant::now();
        None
    }

    /// Does a piece of work and says what its longest pause was.
    fn during<T>(
        &self,
        name: &str,
        mut work: impl FnMut(Question<'_>) -> Result<T, Fault>,
    ) -> Result<T, Fault> {
        let mut least = (f64::INFINITY, 0, 0.0);
        let mut done = Err("nothing was done".into());
        for _ in 0..ROUNDS {
            let begun = Instant::now();
            *self.at.lock().unwrap_or_else(PoisonError::into_inner) = (begun, 0.0, 0);
            done = work(&|| self.look());
            self.look();
            let (_, longest, looks) = *self.at.lock().unwrap_or_else(PoisonError::into_inner);
            if longest < least.0 {
                least = (longest, looks, begun.elapsed().as_secs_f64() * 1e3);
            }
        }
        let (longest, looks, whole) = least;
        let end = self.end(looks, &mut work);
        let line = format!(
            "{name}: longest pause {longest:.2} ms, {looks} looks in {whole:.1} ms, ended within {end:.2} ms"
        );
        writeln!(std::io::stdout(), "{line}")?;
        if longest.max(end) > PAUSE_MS_MAX {
            let mut all = self.too_long.lock().unwrap_or_else(PoisonError::into_inner);
            all.push(line);
        }
        done
    }

    /// Returns the time from a stop at the last of so many looks, when most has been made that is to be let go of, to
    /// the end.
    fn end<T>(&self, looks: usize, work: &mut impl FnMut(Question<'_>) -> Result<T, Fault>) -> f64 {
        let mut least = f64::INFINITY;
        for _ in 0..ROUNDS {
            *self.at.lock().unwrap_or_else(PoisonError::into_inner) = (Instant::now(), 0.0, 0);
            let ask = || {
                self.look();
                let at = self.at.lock().unwrap_or_else(PoisonError::into_inner);
                (at.2 + 1 >= looks).then_some(Interrupt::Cancelled)
            };
            drop(work(&ask));
            let at = self.at.lock().unwrap_or_else(PoisonError::into_inner);
            least = least.min(at.0.elapsed().as_secs_f64() * 1e3);
        }
        least
    }
}

/// Parameters with a number of their own, which is not 0.
fn parameters(individual: &Instance) -> Vec<usize> {
    let quantities = individual.structure().model().quantities.iter().enumerate();
    let plain = quantities.filter(|(at, q)| {
        let is_plain = matches!(q.source, ValueSource::Constant(value) if value != 0.0);
        q.kind == QuantityKind::Parameter && q.rhs.is_empty() && is_plain && !individual.is_set(*at)
    });
    plain.map(|(at, _)| at).collect()
}

fn main() -> Result<(), Fault> {
    let mut arguments = std::env::args().skip(1);
    let file = arguments.next().ok_or("name a model file")?;
    let until: Option<f64> = arguments.next().map(|t| t.parse()).transpose()?;
    let pauses = Pauses {
        at: Mutex::new((Instant::now(), 0.0, 0)),
        too_long: Mutex::new(Vec::new()),
    };
    let structure = opened(&pauses, &file)?;
    let individual = pauses.during("fold", |ask| {
        Ok(Instance::with_watch(&structure, &Watch::new(Some(ask)))?)
    })?;
    let times = until.map(|t| [t]);
    let times = times.as_ref().map(|t| t.as_slice());
    runs(&pauses, &individual, times)?;
    population(&pauses, &individual, times)?;
    estimates(&pauses, &individual, times)?;
    exports(&pauses, &individual, &file)?;
    let too_long = pauses.too_long.into_inner().unwrap_or_default();
    match too_long.len() {
        0 => Ok(()),
        _ => Err(format!("longer than {PAUSE_MS_MAX} ms: {}", too_long.join("; ")).into()),
    }
}

/// Returns the model, read and compiled.
fn opened(pauses: &Pauses, file: &str) -> Result<Arc<Structure>, Fault> {
    let path = std::path::Path::new(file);
    let model = pauses.during("read", |ask| {
        let watch = Watch::new(Some(ask));
        Ok(pbpk::read::file_watched(path, &Default::default(), &watch)?)
    })?;
    let model = Arc::new(model);
    pauses.during("compile", |ask| {
        let (model, outputs) = (Arc::clone(&model), model.outputs());
        Ok(Structure::with_watch(
            model,
            outputs,
            &Watch::new(Some(ask)),
        )?)
    })
}

fn options<'a>(ask: Question<'a>, times: Option<&'a [f64]>) -> RunOptions<'a> {
    RunOptions {
        interrupt: Some(ask),
        times,
        ..RunOptions::default()
    }
}

/// A run, with many output times, in two pieces, and with derivatives.
fn runs(pauses: &Pauses, individual: &Instance, times: Option<&[f64]>) -> Result<(), Fault> {
    let results = pauses.during("run", |ask| Ok(run(individual, &options(ask, times))?))?;
    let end = results.times.last().copied().unwrap_or(1.0);
    let many: Vec<f64> = (1..=20_000)
        .map(|i| end * f64::from(i) / 20_000.0)
        .collect();
    pauses.during("run with 20,000 output times", |ask| {
        Ok(run(individual, &options(ask, Some(&many)))?.times.len())
    })?;
    let (_, checkpoint) = pauses.during("run to a checkpoint", |ask| {
        Ok(run_until(individual, &options(ask, times), end / 2.0)?)
    })?;
    pauses.during("run from a checkpoint", |ask| {
        Ok(resume(individual, &options(ask, times), &checkpoint)?)
    })?;
    let all = derivable(individual)?;
    let soon = [end / 100.0];
    for (count, times) in [(FEW, times), (MANY, Some(soon.as_slice()))] {
        let chosen = all.get(..count).unwrap_or(&all);
        let name = format!("run with derivatives by {} parameters", chosen.len());
        pauses.during(&name, |ask| {
            let options = RunOptions {
                sensitivity_to: chosen,
                ..options(ask, times)
            };
            Ok(run(individual, &options)?.times.len())
        })?;
    }
    Ok(())
}

/// Returns the parameters by which outputs can be derived: not those that say when something happens.
fn derivable(individual: &Instance) -> Result<Vec<usize>, Fault> {
    let mut all = parameters(individual);
    all.truncate(MANY);
    let quantities = &individual.structure().model().quantities;
    loop {
        let options = RunOptions {
            sensitivity_to: &all,
            times: Some(&[1e-6]),
            ..RunOptions::default()
        };
        match run(individual, &options).map_err(|failure| failure.error) {
            Err(RunError::NoDerivative { path, .. }) => {
                all.retain(|q| quantities.get(*q).is_none_or(|q| q.path != path));
            }
            done => return done.map(|_| all).map_err(Into::into),
        }
    }
}

/// A cohort is drawn, written and read, bound to the model, and some of it is run.
fn population(pauses: &Pauses, base: &Instance, times: Option<&[f64]>) -> Result<(), Fault> {
    let quantities = &base.structure().model().quantities;
    let varied = |q: &usize| {
        let value = base.value(*q).unwrap_or(1.0);
        let (a, b) = (value * 0.99, value * 1.01);
        VariedParameter {
            column: ParameterColumn {
                path: quantities
                    .get(*q)
                    .map_or("", |q| q.path.as_str())
                    .to_owned(),
                unit: String::new(),
            },
            distribution: Distribution::Uniform(a.min(b), a.max(b)),
        }
    };
    let cohort = Cohort {
        size: DRAWN,
        varied: parameters(base).iter().take(VARIED).map(varied).collect(),
        latin: true,
        ..Cohort::default()
    };
    let people = pauses.during("draw 10,000 individuals", |ask| {
        Ok(cohort.draw_watched(&Watch::new(Some(ask)))?)
    })?;
    let table = people.to_csv();
    pauses.during("read 10,000 individuals", |ask| {
        let watch = Watch::new(Some(ask));
        Ok(Population::read_watched(&mut table.as_bytes(), &watch)?)
    })?;
    let (plan, _) = pauses.during("bind them to the model", |ask| {
        let watch = Watch::new(Some(ask));
        Ok(PopulationPlan::with_watch(base.clone(), &people, &watch)?)
    })?;
    pauses.during("run 50 of them", |ask| {
        let options = options(ask, times);
        Ok(run_chunk(&plan, &people, 0..RUN, &options, |_| {})?)
    })
}

/// Sensitivities, a fit and a steady state.
fn estimates(pauses: &Pauses, individual: &Instance, times: Option<&[f64]>) -> Result<(), Fault> {
    let results = run(individual, &options(&|| None, times))?;
    let base = pauses.during("figures of all outputs", |ask| {
        Ok(figures(individual, &results, &Watch::new(Some(ask)))?)
    })?;
    let all = parameters(individual);
    let first = all.first().copied().ok_or("the model has no parameter")?;
    pauses.during("sensitivity to a parameter", |ask| {
        let options = options(ask, times);
        let scheme = VariationScheme::default();
        Ok(of_parameter(individual, first, &base, &scheme, &options)?)
    })?;
    pauses.during("fit", |ask| {
        let rows = results.times.iter().enumerate();
        let observed = rows.filter_map(|(row, time)| {
            let value = results.values.get(row * results.paths.len())?;
            Some(Observation {
                output: 0,
                time: *time,
                value: *value,
                weight: 1.0,
                is_censored: false,
            })
        });
        let parameter = |position| FitParameter {
            position,
            low: f64::NEG_INFINITY,
            high: f64::INFINITY,
        };
        let fitted = all.iter().rev().take(FITTED).copied().map(parameter);
        let observed = observed.collect();
        let mut problem = FitProblem::new(
            individual,
            fitted.collect(),
            observed,
            ResidualModel::Absolute,
        )?;
        problem.set_watch(ask);
        // Whether it finds anything is not what is measured.
        fit(&problem)
            .map_err(|e| writeln!(std::io::stdout(), "{e}"))
            .ok();
        Ok(())
    })?;
    pauses.during("steady state", |ask| {
        let wanted = SteadyOptions::default();
        // A model that is dosed again and again has none.
        steady(individual, &[], &wanted, &options(ask, None)).ok();
        Ok(())
    })
}

fn exports(pauses: &Pauses, individual: &Instance, file: &str) -> Result<(), Fault> {
    let model = individual.structure().model();
    // An inexpressible model is refused, after as much work as it takes to see that.
    pauses.during("export as SimModel", |ask| {
        let mut text = Vec::new();
        simmodel_watched(model, &mut text, &Watch::new(Some(ask))).ok();
        Ok(())
    })?;
    pauses.during("export as SBML", |ask| {
        let mut text = Vec::new();
        sbml_watched(model, None, &mut text, &Watch::new(Some(ask))).ok();
        Ok(())
    })?;
    let text = std::fs::read_to_string(file)?;
    let quantities = &model.quantities;
    let ids = parameters(individual)
        .into_iter()
        .filter_map(|q| quantities.get(q));
    let values: HashMap<&str, f64> = ids
        .take(VARIED)
        .map(|q| (q.entity_id.as_str(), 1.0))
        .collect();
    pauses.during("export as pkml", |ask| {
        pkml_with_values_watched(&text, &values, &Watch::new(Some(ask))).ok();
        Ok(())
    })
}
