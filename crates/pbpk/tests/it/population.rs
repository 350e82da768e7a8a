//! Populations: the suite's tables in and out, drawn cohorts, and runs that do not depend on threads or interruptions.

#![cfg(feature = "cli")]

use std::path::{Path, PathBuf};

use crate::cli::{Done, data, folder, sim};
use crate::common;
use pbpk::population::{
    Cohort, Distribution, ParameterColumn, Population, PopulationPlan, ScoreCorrelation,
    VariedParameter, run_chunk,
};
use pbpk::run::RunOptions;

const WHOLE_BODY: &str = "pkml/pksim_simple_simulation.pkml";
const OUTPUT: &str = "Organism|VenousBlood|Plasma|C1";

fn people() -> Population {
    let file = std::fs::read(common::data("csv/ospr_pop.csv")).unwrap();
    Population::read(&mut file.as_slice()).unwrap()
}

#[test]
fn the_suites_population_is_read() {
    if crate::common::is_reference_absent() {
        return;
    }
    let population = people();
    assert_eq!((population.len(), population.columns.len()), (10, 96));
    assert_eq!(population.columns[0].path, "Organism|Weight");
    assert_eq!(population.columns[0].unit, "kg");
    let file = std::fs::read(common::data("csv/ospr_pop_5_spared_id.csv")).unwrap();
    let spared = Population::read(&mut file.as_slice()).unwrap();
    let ids: Vec<i64> = (0..spared.len()).map(|row| spared.id(row)).collect();
    assert_eq!(ids.len(), 5);
    assert!(ids.windows(2).all(|w| w[0] < w[1]) && ids[4] > 4, "{ids:?}");
    let again = Population::read(&mut population.to_csv().as_bytes()).unwrap();
    assert_eq!(again, population);
}

#[test]
fn broken_populations_are_refused_with_their_place() {
    for (text, part) in [
        ("IndividualId,a|b\n0,1\n0,2\n", "individual 0 occurs twice"),
        ("IndividualId,a|b\n0,x\n", "row 1, column 'a|b': 'x'"),
        ("IndividualId,a|b\n0\n", "expected 2 fields"),
        (
            "IndividualId,a|b [kg],a|b [kg]\n0,1,2\n",
            "column 'a|b' occurs twice",
        ),
        (
            "IndividualId,a|b [kg],a|b [g]\n0,1,2\n",
            "column 'a|b' occurs twice",
        ),
        ("IndividualId,Sex,Sex\n0,1,2\n", "column 'Sex' occurs twice"),
        ("IndividualId,a|b,c|d\n0,1,5,2\n", "expected 3 fields"),
        ("", "no rows"),
    ] {
        let error = Population::read(&mut text.as_bytes())
            .unwrap_err()
            .to_string();
        assert!(error.contains(part), "{error}");
    }
}

#[test]
fn columns_without_a_path_are_covariates() {
    let text = "IndividualId,Gender,Population,Age,Organism|Weight [kg],Organism|Gender\n\
                3,MALE,European_ICRP_2002,30,70,2\n7,FEMALE,\"A, B\",41,60,1\n";
    let population = Population::read(&mut text.as_bytes()).unwrap();
    let paths: Vec<&str> = population.columns.iter().map(|c| c.path.as_str()).collect();
    assert_eq!(paths, ["Organism|Weight", "Organism|Gender"]);
    assert_eq!(
        (population.row(0), population.row(1)),
        (&[70.0, 2.0][..], &[60.0, 1.0][..])
    );
    let covariates: Vec<(&str, &[String])> = population
        .covariates
        .iter()
        .map(|c| (c.name.as_str(), c.values.as_slice()))
        .collect();
    let both = |a: &str, b: &str| [a.to_owned(), b.to_owned()];
    assert_eq!(
        covariates,
        [
            ("Gender", &both("MALE", "FEMALE")[..]),
            ("Population", &both("European_ICRP_2002", "A, B")[..]),
            ("Age", &both("30", "41")[..]),
        ]
    );
    let again = Population::read(&mut population.to_csv().as_bytes()).unwrap();
    assert_eq!(again, population);
}

#[test]
fn separators_and_decimal_commas_are_those_of_the_file() {
    let expected = vec![vec![70.5, 1.0], vec![60.25, 2.0]];
    let rows = |text: &str| {
        let population = Population::read(&mut text.as_bytes()).unwrap();
        let rows: Vec<Vec<f64>> = (0..2).map(|row| population.row(row).to_vec()).collect();
        (rows, population.warnings)
    };
    for text in [
        "IndividualId,O|W [kg],O|C\n0,70.5,1\n1,60.25,2\n",
        "IndividualId;O|W [kg];O|C\n0;70.5;1\n1;60.25;2\n",
        "IndividualId\tO|W [kg]\tO|C\n0\t70.5\t1\n1\t60.25\t2\n",
    ] {
        assert_eq!(rows(text), (expected.clone(), Vec::new()), "{text}");
    }
    let (found, warnings) = rows("IndividualId;O|W [kg];O|C\n0;70,5;1\n1;60,25;2\n");
    assert_eq!(found, expected);
    assert_eq!(warnings, ["numbers with a decimal comma were read"]);
    // Elsewhere a comma is no decimal sign.
    let text = "IndividualId\tO|W [kg]\n0\t70,5\n";
    let error = Population::read(&mut text.as_bytes())
        .unwrap_err()
        .to_string();
    assert!(error.contains("'70,5' is not a number"), "{error}");
}

/// A cell without a number leaves the model's value, and what depends on the other cells follows them.
#[test]
fn a_cell_without_a_number_leaves_the_models_value() {
    let model = "<Simulation version=\"4\" objectPathDelimiter=\"|\"><ParameterList><P id=\"1\" name=\"a\" path=\"S|a\" value=\"2\"/>\
        <P id=\"2\" name=\"b\" path=\"S|b\" formulaId=\"9\"/></ParameterList><FormulaList><ExplicitFormula id=\"9\">\
        <Equation>10*a</Equation><ReferenceList><R alias=\"a\" id=\"1\"/></ReferenceList></ExplicitFormula></FormulaList>\
        <OutputSchema><OutputTimeList><OutputTime>1</OutputTime></OutputTimeList></OutputSchema></Simulation>";
    let model = pbpk::read::bytes(model.as_bytes(), &Default::default()).unwrap();
    let base = common::instance(model);
    let table = "IndividualId,S|a,S|b\n0,3,7\n1,,7\n2,3,NaN\n3,NA,\n";
    let people = Population::read(&mut table.as_bytes()).unwrap();
    let (plan, _) = PopulationPlan::new(base, &people).unwrap();
    let values = |row| plan.individual(&people, row).unwrap().values().to_vec();
    assert_eq!([values(0), values(1)], [vec![3.0, 7.0], vec![2.0, 7.0]]);
    assert_eq!([values(2), values(3)], [vec![3.0, 30.0], vec![2.0, 20.0]]);
}

#[test]
fn converted_units_of_a_file_are_said() {
    if crate::common::is_reference_absent() {
        return;
    }
    let base = common::instance(common::load(WHOLE_BODY));
    let bound = |head: &str| {
        let text = format!("IndividualId,{head}\n0,70000\n");
        let people = Population::read(&mut text.as_bytes()).unwrap();
        let (plan, _) = PopulationPlan::new(base.clone(), &people).unwrap();
        let position = plan.individual(&people, 0).unwrap();
        let weight = base
            .structure()
            .model()
            .position("Organism|Weight")
            .unwrap();
        (position.value(weight).unwrap(), plan.warnings().to_vec())
    };
    assert_eq!(bound("Organism|Weight [kg]"), (70000.0, Vec::new()));
    let (value, warnings) = bound("Organism|Weight [g]");
    assert_eq!(value, 70.0);
    assert!(
        warnings.len() == 1 && warnings[0].contains("'Organism|Weight' is converted from g to kg"),
        "{warnings:?}"
    );
}

/// One refold equals setting one parameter after another; every number of the individual, and of its run, bit by bit.
#[test]
fn individuals_are_those_set_one_parameter_at_a_time() {
    if crate::common::is_reference_absent() {
        return;
    }
    let population = people();
    let base = common::instance(common::load(WHOLE_BODY));
    let (plan, unmatched) = PopulationPlan::new(base.clone(), &population).unwrap();
    assert_eq!((plan.matched(), unmatched.len()), (89, 7), "{unmatched:?}");
    let structure = base.structure().clone();
    let mut outcomes = Vec::new();
    run_chunk(&plan, &population, 3..5, &RunOptions::default(), |o| {
        outcomes.push(o)
    })
    .unwrap();
    for (row, outcome) in (3..5).zip(outcomes) {
        let mut single = base.clone();
        for (column, value) in population.columns.iter().zip(population.row(row)) {
            if let Some(position) = structure.model().position(&column.path) {
                let quantity = &structure.model().quantities[position];
                let unit = (!column.unit.is_empty()).then_some(column.unit.as_str());
                let value = pbpk::path::to_base(quantity, *value, unit).unwrap();
                single.set(position, value).unwrap();
            }
        }
        let together = plan.individual(&population, row).unwrap();
        let bits = |values: &[f64]| values.iter().map(|v| v.to_bits()).collect::<Vec<_>>();
        assert_eq!(bits(single.values()), bits(together.values()));
        let (one, many) = (
            common::run(&single, &RunOptions::default()),
            outcome.result.unwrap(),
        );
        assert_eq!(bits(&one.values), bits(&many.values));
        assert_eq!(outcome.id, population.id(row));
    }
}

fn varied(path: &str, spread: &str) -> VariedParameter {
    VariedParameter {
        column: ParameterColumn {
            path: path.to_owned(),
            unit: String::new(),
        },
        distribution: Distribution::parse(spread).unwrap(),
    }
}

#[test]
fn drawn_cohorts_follow_their_distributions() {
    let cohort = Cohort {
        size: 20_000,
        seed: 5,
        varied: vec![
            varied("a", "normal(73;10)"),
            varied("b", "lognormal(2;1.5)"),
            varied("c", "uniform(-1;3)"),
            varied("d", "discrete(1:1;5:3)"),
        ],
        latin: false,
        correlations: Vec::new(),
    };
    let drawn = cohort.draw().unwrap();
    let column =
        |p: &Population, c: usize| -> Vec<f64> { (0..p.len()).map(|r| p.row(r)[c]).collect() };
    let mean = |v: &[f64]| v.iter().sum::<f64>() / v.len() as f64;
    let sd = |v: &[f64]| {
        let m = mean(v);
        (v.iter().map(|x| (x - m).powi(2)).sum::<f64>() / v.len() as f64).sqrt()
    };
    let a = column(&drawn, 0);
    assert!(
        (mean(&a) - 73.0).abs() < 0.3 && (sd(&a) - 10.0).abs() < 0.3,
        "{} {}",
        mean(&a),
        sd(&a)
    );
    let b: Vec<f64> = column(&drawn, 1).iter().map(|v| v.ln()).collect();
    assert!((mean(&b) - 2_f64.ln()).abs() < 0.02 && (sd(&b) - 1.5_f64.ln()).abs() < 0.02);
    let c = column(&drawn, 2);
    assert!((mean(&c) - 1.0).abs() < 0.04 && (sd(&c) - 4.0 / 12_f64.sqrt()).abs() < 0.04);
    assert!(c.iter().all(|v| (-1.0..=3.0).contains(v)));
    let fives = column(&drawn, 3).iter().filter(|v| **v == 5.0).count();
    assert!((fives as f64 / 20_000.0 - 0.75).abs() < 0.02, "{fives}");
    // No correlation between columns, and the first individuals do not depend on the size.
    let (ma, mc) = (mean(&a), mean(&c));
    let both: f64 = a.iter().zip(&c).map(|(x, y)| (x - ma) * (y - mc)).sum();
    assert!((both / 20_000.0 / sd(&a) / sd(&c)).abs() < 0.03);
    let few = Cohort {
        size: 10,
        ..cohort.clone()
    }
    .draw()
    .unwrap();
    assert!((0..10).all(|r| few.row(r) == drawn.row(r)));
    assert_ne!(
        Cohort {
            seed: 6,
            ..cohort.clone()
        }
        .draw()
        .unwrap()
        .row(0),
        drawn.row(0)
    );
    // A Latin hypercube has one value in each part of each column.
    let latin = Cohort {
        size: 1000,
        latin: true,
        ..cohort
    }
    .draw()
    .unwrap();
    let mut parts: Vec<usize> = column(&latin, 2)
        .iter()
        .map(|v| ((v + 1.0) * 250.0) as usize)
        .collect();
    parts.sort_unstable();
    assert_eq!(parts, (0..1000).collect::<Vec<_>>());
}

/// For normal parameters the correlation is that of the values, for log-normal ones that of their logarithms; for
/// uniform ones it is 6/π·asin(r/2) (K. Pearson, 1907).
#[test]
fn correlated_parameters_have_their_correlations() {
    let joined = |first, second, value| ScoreCorrelation {
        first,
        second,
        value,
    };
    let cohort = Cohort {
        size: 20_000,
        seed: 11,
        varied: vec![
            varied("a", "normal(73;10)"),
            varied("b", "lognormal(2;1.5)"),
            varied("c", "uniform(-1;3)"),
            varied("d", "uniform(5;6)"),
            varied("e", "normal(0;1)"),
        ],
        latin: false,
        correlations: vec![joined(1, 0, 0.7), joined(2, 3, -0.6), joined(0, 2, 0.3)],
    };
    let drawn = cohort.draw().unwrap();
    let column = |c: usize| -> Vec<f64> { (0..drawn.len()).map(|r| drawn.row(r)[c]).collect() };
    let correlation = |x: &[f64], y: &[f64]| {
        let n = x.len() as f64;
        let (mx, my) = (x.iter().sum::<f64>() / n, y.iter().sum::<f64>() / n);
        let sum = |f: &dyn Fn(f64, f64) -> f64| -> f64 {
            x.iter().zip(y).map(|(x, y)| f(x - mx, y - my)).sum()
        };
        sum(&|x, y| x * y) / (sum(&|x, _| x * x) * sum(&|_, y| y * y)).sqrt()
    };
    let (a, c, d, e) = (column(0), column(2), column(3), column(4));
    let b: Vec<f64> = column(1).iter().map(|v| v.ln()).collect();
    let pearson = |r: f64| 6.0 / std::f64::consts::PI * (r / 2.0_f64).asin();
    for (x, y, expected) in [
        (&a, &b, 0.7),
        (&c, &d, pearson(-0.6)),
        (&a, &d, 0.0),
        (&a, &e, 0.0),
        (&b, &d, 0.0),
    ] {
        let found = correlation(x, y);
        assert!((found - expected).abs() < 0.03, "{found} {expected}");
    }
    // Each parameter by itself is spread as before.
    let mean = |v: &[f64]| v.iter().sum::<f64>() / v.len() as f64;
    assert!((mean(&b) - 2_f64.ln()).abs() < 0.02 && (mean(&d) - 5.5).abs() < 0.01);
    let refused = |correlations: Vec<ScoreCorrelation>, latin: bool, part: &str| {
        let cohort = Cohort {
            correlations,
            latin,
            ..cohort.clone()
        };
        let error = cohort.draw().unwrap_err().to_string();
        assert!(error.contains(part), "{error}");
    };
    let against = vec![joined(0, 1, 0.9), joined(1, 2, 0.9), joined(0, 2, -0.9)];
    refused(against, false, "contradict");
    refused(vec![joined(0, 1, 1.0)], false, "between -1 and 1");
    refused(vec![joined(0, 0, 0.5)], false, "two different");
    refused(vec![joined(0, 9, 0.5)], false, "two different");
    refused(vec![joined(0, 1, 0.5)], true, "Latin");
}

#[test]
fn correlations_of_the_command_line_name_drawn_parameters() {
    if crate::common::is_reference_absent() {
        return;
    }
    let root = folder("correlated");
    let model = data("pkml/coreR_simple.pkml").display().to_string();
    let run = |text: &str, name: &str| {
        let out = root.join(name).display().to_string();
        let (a, b) = ("Organism|A=lognormal(1;1.2)", "Organism|B=lognormal(2;1.3)");
        sim(&[
            "population",
            &model,
            "--size",
            "200",
            "--vary",
            a,
            "--vary",
            b,
            "--correlate",
            text,
            "--out",
            &out,
        ])
    };
    let ran = run("Organism|A~Organism|B=0.95", "good");
    assert_eq!(ran.code, 0, "{}", ran.err);
    let table = std::fs::read(root.join("good/population.csv")).unwrap();
    let people = Population::read(&mut table.as_slice()).unwrap();
    // Nearly all lie on the same side of both medians.
    let same = (0..people.len()).filter(|r| {
        let row = people.row(*r);
        (row[0] > 1.0) == (row[1] > 2.0)
    });
    assert!(same.count() > 160);
    for (text, part) in [
        ("Organism|A~Organism|Q=0.5", "'Organism|Q' is not drawn"),
        ("Organism|A=0.5", "no '~'"),
        ("Organism|A~Organism|B", "no '='"),
        ("Organism|A~Organism|B=x", "not a number"),
        ("Organism|A~Organism|B=2", "between -1 and 1"),
    ] {
        let refused = run(text, "bad");
        assert_eq!(refused.code, 2, "{text}");
        assert!(refused.err.contains(part), "{text}: {}", refused.err);
    }
    std::fs::remove_dir_all(root).unwrap();
}

#[test]
fn senseless_distributions_are_refused() {
    for text in [
        "normal(1;-1)",
        "lognormal(0;2)",
        "lognormal(1;0.5)",
        "uniform(2;1)",
        "discrete(1:0)",
        "gamma(1;2)",
        "normal(1)",
        "normal",
        "normal(x;1)",
    ] {
        assert!(Distribution::parse(text).is_err(), "{text}");
    }
}

fn population(out: &Path, extra: &[&str]) -> Done {
    let (model, people, out) = (
        data(WHOLE_BODY),
        data("csv/ospr_pop.csv"),
        out.display().to_string(),
    );
    let (model, people) = (model.display().to_string(), people.display().to_string());
    sim(&[
        &[
            "population",
            &model,
            &people,
            "--output",
            OUTPUT,
            "--out",
            &out,
            "--chunk",
            "3",
        ],
        extra,
    ]
    .concat())
}

fn files(folder: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let mut all: Vec<PathBuf> = std::fs::read_dir(folder)
        .unwrap()
        .map(|f| f.unwrap().path())
        .collect();
    all.sort();
    all.into_iter()
        .map(|f| (f.file_name().unwrap().into(), std::fs::read(&f).unwrap()))
        .collect()
}

#[test]
fn results_do_not_depend_on_threads_or_interruptions() {
    if crate::common::is_reference_absent() {
        return;
    }
    let root = folder("population");
    let (one, two, eight, resumed) = (
        root.join("1"),
        root.join("2"),
        root.join("8"),
        root.join("r"),
    );
    for (out, threads) in [(&one, "1"), (&two, "2"), (&eight, "8")] {
        let done = population(out, &["--threads", threads]);
        assert_eq!(done.code, 0, "{}", done.err);
        assert!(
            done.err.contains("7") || done.err.contains("left out"),
            "{}",
            done.err
        );
        assert!(
            done.out
                .contains("10 individuals, 89 parameters each, 0 failed"),
            "{}",
            done.out
        );
    }
    let expected = files(&one);
    let names: Vec<String> = expected.iter().map(|f| f.0.display().to_string()).collect();
    assert_eq!(
        names,
        [
            "failures.csv",
            "inputs.txt",
            "population.csv",
            "results.csv"
        ]
    );
    assert_eq!(files(&two), expected);
    assert_eq!(files(&eight), expected);

    // Over at once: nothing or some parts are done; then again without a limit, with a damaged part between.
    let stopped = population(&resumed, &["--threads", "1", "--timeout", "0.000001"]);
    assert_eq!(stopped.code, 1);
    std::fs::create_dir_all(&resumed).unwrap();
    std::fs::write(
        resumed.join("part-000001.csv"),
        "3,0,1\n#failures\n#checksum 0\n",
    )
    .unwrap();
    std::fs::write(resumed.join("part-000002.tmp"), "6,0").unwrap();
    let done = population(&resumed, &[]);
    assert_eq!(done.code, 0, "{}", done.err);
    std::fs::remove_file(resumed.join("part-000002.tmp")).ok();
    assert_eq!(files(&resumed), expected);

    let other = population(&one, &["--rtol", "1e-6"]);
    assert_eq!(other.code, 2);
    assert!(other.err.contains("other inputs"), "{}", other.err);

    let table = std::fs::read(one.join("results.csv")).unwrap();
    let individuals = pbpk::csv::results(&mut table.as_slice()).unwrap();
    assert_eq!(individuals.len(), 10);
    assert_eq!(individuals[0].curves.times.len(), 129);
    assert_eq!(individuals[0].curves.series[0].unit, "µmol");
    std::fs::remove_dir_all(root).unwrap();
}

#[test]
fn a_failing_individual_is_named_and_the_others_run() {
    if crate::common::is_reference_absent() {
        return;
    }
    let root = folder("failing");
    let file = root.join("people.csv");
    std::fs::write(&file, "IndividualId,Organism|A\n4,1\n7,-5\n9,2\n").unwrap();
    let model = data("pkml/coreR_simple.pkml").display().to_string();
    let (people, out) = (file.display().to_string(), root.join("out"));
    let to = out.display().to_string();
    let done = sim(&["population", &model, &people, "--out", &to]);
    assert_eq!(done.code, 0, "{}", done.err);
    assert!(
        done.out
            .contains("3 individuals, 1 parameter each, 1 failed"),
        "{}",
        done.out
    );
    let failures = std::fs::read_to_string(out.join("failures.csv")).unwrap();
    assert!(
        failures.starts_with("IndividualId,Error\n7,") && failures.contains("negative"),
        "{failures}"
    );
    let table = std::fs::read(out.join("results.csv")).unwrap();
    let ids: Vec<i64> = pbpk::csv::results(&mut table.as_slice())
        .unwrap()
        .iter()
        .map(|i| i.id)
        .collect();
    assert_eq!(ids, [4, 9]);
    // Where all of them fail, so does the command, and says where the reasons are.
    std::fs::write(&file, "IndividualId,Organism|A\n7,-5\n").unwrap();
    let none = root.join("none").display().to_string();
    let done = sim(&["population", &model, &people, "--out", &none]);
    assert_eq!(done.code, 1, "{}", done.out);
    assert!(
        done.err.contains("all 1 individuals failed") && done.err.contains("failures.csv"),
        "{}",
        done.err
    );
    let done = sim(&["population", &model, &people, "--out", &people]);
    assert_eq!(done.code, 2);
    assert!(done.err.contains("--out names a folder"), "{}", done.err);
    let done = sim(&[
        "population",
        &model,
        "--size",
        "2",
        "--out",
        &format!("{none}2"),
    ]);
    assert_eq!(done.code, 0);
    assert!(
        done.err.contains("all individuals are alike"),
        "{}",
        done.err
    );
    std::fs::remove_dir_all(root).unwrap();
}
