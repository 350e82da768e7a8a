//! Every phase ends at the look that says so and leaves nothing half-done, and looks often enough: see
//! [`crate::stopping`] for reading, compiling, factors and single runs.

use std::fmt::Write as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use pbpk::compile::{Instance, Structure};
use pbpk::csv::{self, CurveSeries};
use pbpk::export::{pkml_with_values_watched, sbml_watched, simmodel_watched};
use pbpk::fit::{FitParameter, FitProblem, Observation, ResidualModel, fit};
use pbpk::population::{
    AgeingTables, Cohort, Distribution, ParameterColumn, Population, PopulationPlan,
    ScoreCorrelation, VariedParameter, run_chunk,
};
use pbpk::read;
use pbpk::run::{RunCheckpoint, RunOptions, resume, run, run_until};
use pbpk::sensitivity::{VariationScheme, figures, of_parameter};
use pbpk::solve::SparsityPattern;
use pbpk::solve::lu::{FactorError, LuFactors, SymbolicFactors};
use pbpk::steady::{SteadyOptions, steady};
use pbpk::watch::{Interrupt, Question, Watch};

use crate::common::asked::{Asked, UNITS, ends_where_it_is_told};

/// Decays with a rate of their own each: state `M{i}`, parameter `P{i}`, and observers `O{i}` of formulas that nothing
/// else uses, at these output times.
fn decays(count: usize, times: &[f64]) -> Arc<Structure> {
    let mut text = "<Simulation version=\"4\" objectPathDelimiter=\"|\" xmlns=\"http://www.systems-biology.com\"><VariableList>".to_owned();
    for i in 1..=count {
        write!(text, "<V id=\"{i}\" name=\"M{i}\" path=\"S|M{i}\" value=\"1\"><RHSFormulaList><RHSFormula id=\"{}\"/></RHSFormulaList></V>", 2 * count + i).unwrap();
    }
    text.push_str("</VariableList><ObserverList>");
    for i in 1..=count {
        write!(
            text,
            "<Observer id=\"{}\" name=\"O{i}\" path=\"S|O{i}\" formulaId=\"{}\"/>",
            4 * count + i,
            3 * count + i
        )
        .unwrap();
    }
    text.push_str("</ObserverList><FormulaList>");
    for i in 1..=count {
        let references = format!(
            "<ReferenceList><R alias=\"M\" id=\"{i}\"/><R alias=\"P\" id=\"{}\"/></ReferenceList>",
            count + i
        );
        for (id, equation) in [(2 * count + i, "-(P*M)"), (3 * count + i, "P*2+1")] {
            write!(text, "<ExplicitFormula id=\"{id}\"><Equation>{equation}</Equation>{references}</ExplicitFormula>").unwrap();
        }
    }
    text.push_str("</FormulaList><ParameterList>");
    for i in 1..=count {
        let rate = 0.1 + 0.01 * i as f64;
        write!(
            text,
            "<P id=\"{}\" name=\"P{i}\" path=\"S|P{i}\" value=\"{rate}\"/>",
            count + i
        )
        .unwrap();
    }
    text.push_str("</ParameterList><OutputSchema><OutputTimeList>");
    for time in times {
        write!(text, "<OutputTime>{time}</OutputTime>").unwrap();
    }
    text.push_str("</OutputTimeList></OutputSchema></Simulation>");
    let model = read::bytes(text.as_bytes(), &read::ReadOptions::default()).unwrap();
    let outputs = model.outputs();
    Structure::new(Arc::new(model), outputs).unwrap()
}

fn asking(question: Question<'_>) -> RunOptions<'_> {
    RunOptions {
        interrupt: Some(question),
        ..RunOptions::default()
    }
}

/// The parameters of [`decays`].
fn rates(structure: &Structure) -> Vec<usize> {
    let quantities = structure.model().quantities.iter().enumerate();
    let rates = quantities.filter(|(_, q)| q.name.starts_with('P'));
    rates.map(|(at, _)| at).collect()
}

fn cohort(size: usize, count: usize) -> Cohort {
    let varied = |i| VariedParameter {
        column: ParameterColumn {
            path: format!("S|P{i}"),
            unit: String::new(),
        },
        distribution: Distribution::Uniform(0.1, 0.2),
    };
    Cohort {
        size,
        seed: 7,
        varied: (1..=count).map(varied).collect(),
        ..Cohort::default()
    }
}

#[test]
fn folding_an_individual() {
    let structure = decays(400, &[1.0]);
    let done = ends_where_it_is_told(400 / UNITS, |ask| {
        Instance::with_watch(&structure, &Watch::new(Some(ask)))
    });
    assert_eq!(done.values(), Instance::new(&structure).values());
}

#[test]
fn output_times_within_one_step_of_the_solver() {
    let times: Vec<f64> = (1..=20_000).map(|i| f64::from(i) * 1e-7).collect();
    let individual = Instance::new(&decays(3, &times));
    let rows = AtomicUsize::new(0);
    let sink = |_: f64, row: &[f64]| {
        assert_eq!(row.len(), 6, "a row is whole");
        rows.fetch_add(1, Relaxed);
    };
    let results = ends_where_it_is_told(20_000 / UNITS, |interrupt| {
        rows.store(0, Relaxed);
        let options = RunOptions {
            sink: Some(&sink),
            ..asking(interrupt)
        };
        run(&individual, &options)
    });
    assert!(results.statistics.steps < 100, "{:?}", results.statistics);
    assert!(rows.load(Relaxed) < 20_000, "the last one was ended early");
}

#[test]
fn derivatives_by_many_parameters() {
    let structure = decays(600, &[1.0]);
    let individual = Instance::new(&structure);
    let parameters = rates(&structure);
    let run_with = |interrupt: Question<'_>| {
        let options = RunOptions {
            sensitivity_to: &parameters,
            ..asking(interrupt)
        };
        run(&individual, &options)
    };
    let steps = run_with(&|| None).unwrap().statistics.steps;
    let one = Asked::always();
    let options = |interrupt| RunOptions {
        sensitivity_to: &parameters[..1],
        ..asking(interrupt)
    };
    let ask = || one.ask();
    let by_one = run(&individual, &options(&ask)).unwrap();
    assert_eq!(by_one.statistics.steps, steps);
    // At every step 600 rates, with three operands that have 600 derivatives each.
    let more = steps * 600 * 600 * 3 / (1 << 18);
    assert!(more > 3 * steps);
    ends_where_it_is_told(one.count() + more, run_with);
}

#[test]
fn drawing_a_cohort() {
    for (latin, correlated) in [(false, false), (true, false), (false, true)] {
        let correlation = ScoreCorrelation {
            first: 0,
            second: 1,
            value: 0.5,
        };
        let cohort = Cohort {
            latin,
            correlations: correlated.then_some(correlation).into_iter().collect(),
            ..cohort(20_000, 16)
        };
        let people = ends_where_it_is_told(20_000 * 3 / (UNITS + 3), |ask| {
            cohort.draw_watched(&Watch::new(Some(ask)))
        });
        assert_eq!(people, cohort.draw().unwrap());
    }
}

#[test]
fn a_latin_hypercube_meets_each_part_once() {
    for size in [1, 5, 4096, 4097, 20_000] {
        let cohort = Cohort {
            latin: true,
            ..cohort(size, 2)
        };
        let people = cohort.draw().unwrap();
        for column in 0..2 {
            let part = |row: usize| ((people.row(row)[column] - 0.1) / 0.1 * size as f64) as usize;
            let mut parts: Vec<usize> = (0..size).map(part).collect();
            parts.sort_unstable();
            assert!(parts.into_iter().eq(0..size), "{size}");
        }
    }
}

#[test]
fn reading_a_population_and_ageing_data() {
    let table = cohort(3000, 20).draw().unwrap().to_csv();
    // While rows are parted, and while they are turned into numbers.
    let people = ends_where_it_is_told(3000 * (3 + 2) / (UNITS + 3), |ask| {
        Population::read_watched(&mut table.as_bytes(), &Watch::new(Some(ask)))
    });
    assert_eq!(people.len(), 3000);
    let mut table = "IndividualId,ParameterPath,Time,Value\n".to_owned();
    for i in 0..3000 {
        writeln!(table, "{},S|P1,{i},1", i % 100).unwrap();
    }
    let ageing = ends_where_it_is_told(3000 / UNITS, |ask| {
        AgeingTables::read_watched(&mut table.as_bytes(), &Watch::new(Some(ask)))
    });
    assert_eq!(ageing.ids().count(), 100);
}

#[test]
fn binding_a_population_and_ageing_data() {
    let structure = decays(300, &[1.0]);
    let base = Instance::new(&structure);
    let people = cohort(5, 300).draw().unwrap();
    let quantities = structure.model().quantities.len();
    ends_where_it_is_told((quantities + 300) / UNITS, |ask| {
        PopulationPlan::with_watch(base.clone(), &people, &Watch::new(Some(ask)))
    });
    let mut table = "IndividualId,ParameterPath,Time,Value\n".to_owned();
    for i in 1..=300 {
        writeln!(table, "0,S|P{i},0,1").unwrap();
    }
    let ageing = AgeingTables::read(&mut table.as_bytes()).unwrap();
    let (mut plan, _) = PopulationPlan::new(base, &people).unwrap();
    ends_where_it_is_told((quantities + 300) / UNITS, |ask| {
        let (mut fresh, _) = PopulationPlan::new(Instance::new(&structure), &people).unwrap();
        fresh.age_watched(&ageing, &Watch::new(Some(ask)))
    });
    // A stop leaves nothing behind: what is named twice would be refused.
    let asked = Asked::until(quantities / UNITS + 2);
    let ask = || asked.ask();
    let ended = plan.age_watched(&ageing, &Watch::new(Some(&ask)));
    assert!(ended.is_err() && asked.count() == quantities / UNITS + 3);
    assert!(plan.age(&ageing).unwrap().is_empty());
}

#[test]
fn individuals_of_a_population() {
    let structure = decays(2000, &[1.0]);
    let people = cohort(12, 2000).draw().unwrap();
    let (plan, _) = PopulationPlan::new(Instance::new(&structure), &people).unwrap();
    let done = AtomicUsize::new(0);
    // While 2000 observers of two operations are folded for each, at every 512 of these, and in its run.
    ends_where_it_is_told(12 * (2 * 2000 / 512 + 5), |interrupt| {
        let options = asking(interrupt);
        done.store(0, Relaxed);
        run_chunk(&plan, &people, 0..12, &options, |outcome| {
            assert!(outcome.result.is_ok(), "one that was ended is not told");
            done.fetch_add(1, Relaxed);
        })
    });
    assert!(done.load(Relaxed) <= 12);
}

#[test]
fn fitting_many_parameters_to_many_observations() {
    let times: Vec<f64> = (1..=40).map(|i| f64::from(i) * 0.25).collect();
    let structure = decays(40, &times);
    let mut individual = Instance::new(&structure);
    let truth = run(&individual, &RunOptions::default()).unwrap();
    let mut observations = Vec::new();
    for (row, time) in truth.times.iter().enumerate() {
        for output in 0..40 {
            observations.push(Observation {
                output,
                time: *time,
                value: truth.values[row * truth.paths.len() + output],
                weight: 1.0,
                is_censored: false,
            });
        }
    }
    // Measured again and again: that makes no run longer.
    let observations = observations.repeat(20);
    let positions = rates(&structure);
    for q in &positions {
        individual
            .set(*q, individual.value(*q).unwrap() * 1.2)
            .unwrap();
    }
    let parameter = |position| FitParameter {
        position,
        low: 0.0,
        high: 10.0,
    };
    let parameters: Vec<FitParameter> = positions.into_iter().map(parameter).collect();
    let rows = observations.len();
    let fitted = |interrupt: Question<'_>| {
        let observations = observations.clone();
        let problem = FitProblem::new(
            &individual,
            parameters.clone(),
            observations,
            ResidualModel::Log,
        );
        let mut problem = problem.unwrap();
        problem.set_watch(interrupt);
        fit(&problem)
    };
    let runs = fitted(&|| None).unwrap().runs;
    // A product of 40 by 40 derivatives for every observation at every attempt: far more than a run looks.
    let found = ends_where_it_is_told(runs * rows * 2 / (UNITS + 2), fitted);
    assert!(found.converged);
}

#[test]
fn the_search_for_a_steady_state() {
    let individual = Instance::new(&decays(5, &[1.0]));
    let wanted = SteadyOptions {
        from: 10.0,
        ..SteadyOptions::default()
    };
    let found = ends_where_it_is_told(50, |ask| steady(&individual, &[], &wanted, &asking(ask)));
    assert!(found.time > 10.0, "{found:?}");
}

#[test]
fn sensitivities_of_many_outputs() {
    let times: Vec<f64> = (0..=320).map(|i| f64::from(i) * 0.1).collect();
    let structure = decays(100, &times);
    let individual = Instance::new(&structure);
    let results = run(&individual, &RunOptions::default()).unwrap();
    let units = results.paths.len() * (1 + times.len() / 32);
    let base = ends_where_it_is_told(units / UNITS, |ask| {
        figures(&individual, &results, &Watch::new(Some(ask)))
    });
    assert!(!base.is_empty());
    let steps = results.statistics.steps;
    let parameter = rates(&structure)[0];
    // Four changed individuals, each with a run and its figures.
    ends_where_it_is_told(4 * (steps / 2 + units / UNITS), |interrupt| {
        let options = asking(interrupt);
        of_parameter(
            &individual,
            parameter,
            &base,
            &VariationScheme::default(),
            &options,
        )
    });
}

#[test]
fn exports_leave_no_half_of_a_text() {
    let structure = decays(300, &[1.0]);
    let model = structure.model();
    let mut text = Vec::new();
    ends_where_it_is_told(5 * 300 / UNITS, |ask| {
        let mut own = Vec::new();
        let done = simmodel_watched(model, &mut own, &Watch::new(Some(ask)));
        assert_eq!(own.is_empty(), done.is_err());
        if done.is_ok() {
            text = own;
        }
        done
    });
    let again = read::bytes(&text, &read::ReadOptions::default()).unwrap();
    // Its settings are parameters there.
    assert!(again.quantities.len() >= model.quantities.len());
    ends_where_it_is_told(5 * 300 / UNITS, |ask| {
        let mut own = Vec::new();
        let done = sbml_watched(model, None, &mut own, &Watch::new(Some(ask)));
        assert_eq!(own.is_empty(), done.is_err());
        done
    });
    let mut pkml = "<S><Model id=\"m\">".to_owned();
    for i in 0..1000 {
        write!(pkml, "<P id=\"p{i}\" value=\"1\"/>").unwrap();
    }
    pkml.push_str("</Model></S>");
    let values = [("p999", 2.0)].into_iter().collect();
    let done = ends_where_it_is_told(1000 / UNITS, |ask| {
        pkml_with_values_watched(&pkml, &values, &Watch::new(Some(ask)))
    });
    assert!(done.contains("id=\"p999\" isFixedValue"), "{done}");
}

#[test]
fn a_checkpoint_outlives_a_run_that_was_ended() {
    let times: Vec<f64> = (1..=200).map(f64::from).collect();
    let individual = Instance::new(&decays(4, &times));
    let (first, checkpoint) =
        ends_where_it_is_told(5, |ask| run_until(&individual, &asking(ask), 3.0));
    let kept = RunCheckpoint::from_bytes(checkpoint.as_bytes().to_vec());
    let rest = ends_where_it_is_told(5, |ask| resume(&individual, &asking(ask), &kept));
    let whole = run(&individual, &RunOptions::default()).unwrap();
    let joined: Vec<f64> = first.values.iter().chain(&rest.values).copied().collect();
    assert_eq!(joined, whole.values);
}

#[test]
fn a_dense_factorisation_looks_within_its_panels() {
    let n = 700;
    let pattern = SparsityPattern::dense(n);
    let jacobian: Vec<f64> = (0..n * n)
        .map(|i| ((i * 7919) % 101) as f64 / 1e4)
        .collect();
    let mut factors = LuFactors::new(Arc::new(SymbolicFactors::analyse(&pattern)));
    let looks = n * n * n / 3 / (1 << 20);
    let panels = n / 32;
    assert!(looks > 3 * panels);
    ends_where_it_is_told(looks / 2 + panels, |ask| {
        factors.refactor_asking(1e-3, &jacobian, &mut || ask())
    });
    let stopped = factors.refactor_asking(1e-3, &jacobian, &mut || Some(Interrupt::Cancelled));
    assert_eq!(stopped, Err(FactorError::Interrupted(Interrupt::Cancelled)));
    assert!(factors.refactor(1e-3, &jacobian).is_ok() && factors.is_dense());
}

#[test]
fn the_analysis_of_a_pattern_looks_at_every_row_of_every_pass() {
    let n = 500;
    let mut pattern = SparsityPattern {
        col_ptr: vec![0],
        row_idx: Vec::new(),
    };
    for j in 0..n {
        pattern.row_idx.extend(j..(j + 2).min(n));
        pattern.col_ptr.push(pattern.row_idx.len());
    }
    // Order, places, fill-in, scatter, depths and rows of both factors.
    ends_where_it_is_told(8 * n, |ask| {
        SymbolicFactors::analyse_asking(&pattern, &mut || ask().map_or(Ok(()), Err))
    });
}

#[test]
fn tables_look_at_every_few_cells() {
    let (times, width): (Vec<f64>, usize) = ((0..2000).map(f64::from).collect(), 40);
    let series: Vec<CurveSeries> = (0..width)
        .map(|i| CurveSeries {
            name: format!("S|O{i}"),
            unit: String::new(),
            values: vec![0.5; times.len()],
        })
        .collect();
    let least = times.len() * width / 8 / UNITS;
    let mut text = Vec::new();
    ends_where_it_is_told(least, |ask| {
        text.clear();
        csv::write_in(&mut text, "h", &times, &series, &Watch::new(Some(ask)))
    });
    // What was written before the last look is no whole table.
    text.clear();
    csv::write(&mut text, &times, &series).unwrap();
    // Read, and bound to the columns.
    let read = ends_where_it_is_told(2 * least, |ask| {
        csv::results_watched(&mut text.as_slice(), &Watch::new(Some(ask)))
    });
    assert_eq!(read[0].curves.series.len(), width);
}
