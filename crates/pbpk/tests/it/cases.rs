//! What single cases show beyond their reference tables: named values, analytic solutions, exact properties.

use crate::common::{data, instance, load, run};
use pbpk::compile::Instance;
use pbpk::model::{Model, TimePrecision};
use pbpk::run::{Results, RunOptions};

fn results(file: &str) -> Results {
    run(&instance(load(file)), &RunOptions::default())
}

/// rtol 1e-10 and the file's atol times 1e-5.
fn tight(file: &str) -> Results {
    let model = load(file);
    let abs_tol = model.solver.abs_tol * 1e-5;
    run(
        &instance(model),
        &RunOptions {
            rel_tol: Some(1e-10),
            abs_tol: Some(abs_tol),
            ..RunOptions::default()
        },
    )
}

fn near(a: f64, b: f64, relative: f64, what: &str) {
    assert!(
        (a - b).abs() <= relative * b.abs(),
        "{what}: {a} instead of {b}"
    );
}

fn at(results: &Results, path: &str, time: f64) -> f64 {
    let row = results
        .times
        .iter()
        .position(|t| (t - time).abs() < 1e-9)
        .unwrap_or_else(|| panic!("no time {time}"));
    results
        .by_path(path)
        .unwrap_or_else(|| panic!("no output {path}"))[row]
}

fn value(instance: &Instance, path: &str) -> f64 {
    instance
        .value(pbpk::path::find_one(instance.structure().model(), path).unwrap())
        .unwrap()
}

#[test]
fn whole_body_named_values() {
    if crate::common::is_reference_absent() {
        return;
    }
    let model = load("pkml/pksim_simple_simulation.pkml");
    assert_eq!(model.states().len(), 150);
    let r = run(
        &instance(model),
        &RunOptions {
            rel_tol: Some(1e-5),
            abs_tol: Some(1e-10),
            ..RunOptions::default()
        },
    );
    assert_eq!((r.times.len(), r.paths.len()), (129, 349));
    let venous = "Organism|VenousBlood|Plasma|C1";
    assert_eq!(at(&r, venous, 0.0), 0.0, "the value before the bolus");
    near(
        at(&r, venous, 3.0),
        2.035357028,
        1e-4,
        "venous plasma at 3 min",
    );
    near(
        at(&r, venous, 1440.0),
        0.0741658735,
        1e-4,
        "venous plasma at the end",
    );
    let peripheral = r
        .by_path("Organism|PeripheralVenousBlood|C1|Plasma (Peripheral Venous Blood)")
        .unwrap();
    near(
        peripheral.iter().copied().fold(0.0, f64::max),
        6.038423038,
        1e-4,
        "peripheral maximum",
    );
    near(
        *peripheral.last().unwrap(),
        0.1467843670,
        1e-4,
        "peripheral end",
    );
    let unbound = r
        .by_path("Organism|PeripheralVenousBlood|C1|Plasma Unbound (Peripheral Venous Blood)")
        .unwrap();
    near(
        unbound.iter().copied().fold(0.0, f64::max),
        0.6642265,
        1e-4,
        "unbound maximum",
    );
    let saliva: Vec<&String> = r
        .paths
        .iter()
        .filter(|p| p.contains("SalivaGland") && p.ends_with("|C1"))
        .collect();
    let lowest = saliva
        .iter()
        .flat_map(|p| r.by_path(p).unwrap())
        .fold(0.0, f64::min);
    near(lowest, -0.0035891, 1e-3, "saliva gland minimum");
    let not_numbers: Vec<&String> = r
        .paths
        .iter()
        .filter(|p| r.by_path(p).unwrap()[0].is_nan())
        .collect();
    assert_eq!(not_numbers.len(), 1, "{not_numbers:?}");
    assert!(not_numbers[0].contains("Feces"));
    assert_eq!(r.values.iter().filter(|v| v.is_nan()).count(), 1);
}

#[test]
fn log_normal_parameters_count_their_percentile() {
    if crate::common::is_reference_absent() {
        return;
    }
    let whole_body = instance(load("pkml/pksim_simple_simulation.pkml"));
    for (organ, volume) in [
        ("Fat", 14.65562552793),
        ("Lung", 1.214461074524),
        ("Muscle", 32.64151544245),
        ("Spleen", 0.2069288646533),
    ] {
        let path = format!("Organism|{organ}|Volume");
        near(value(&whole_body, &path), volume, 1e-12, &path);
    }
    // With the percentiles of all organ volumes the body weight is what the individual was made for.
    near(value(&whole_body, "Organism|Weight"), 73.0, 1e-8, "weight");
}

/// The file's normal parameter without its own value, with this distribution, these names and values for the mean's and
/// the deviation's place, and this percentile.
fn distributed(kind: &str, names: [&str; 2], spread: &str, percentile: &str) -> Model {
    let text = std::fs::read_to_string(data("pkml/ospr_simple.pkml")).unwrap();
    let (head, rest) = text.split_at(text.find("<Model ").unwrap());
    let begin = rest.find("<DistributedParameter ").unwrap();
    let (before, rest) = rest.split_at(begin);
    let (own, after) = rest.split_at(rest.find("</DistributedParameter>").unwrap());
    let (start, parts) = own.split_at(own.find('>').unwrap());
    let formula = start.split("formula=\"").nth(1).unwrap();
    let formula = formula.split('"').next().unwrap();
    let start = start.replace("value=\"10\"", "");
    let parts = parts
        .replace("value=\"0.499999985\"", &format!("value=\"{percentile}\""))
        .replace("value=\"1\"", &format!("value=\"{spread}\""))
        .replace("name=\"Mean\"", &format!("name=\"{}\"", names[0]))
        .replace("name=\"Deviation\"", &format!("name=\"{}\"", names[1]));
    let normal = format!("<NormalDistributionFormula id=\"{formula}\"");
    assert!(after.contains(&normal));
    let after = after
        .replace(
            &normal,
            &format!("<{kind}DistributionFormula id=\"{formula}\""),
        )
        .replace(
            "</NormalDistributionFormula>",
            &format!("</{kind}DistributionFormula>"),
        );
    let text = format!("{head}{before}{start}{parts}{after}");
    pbpk::read::bytes(text.as_bytes(), &Default::default()).unwrap()
}

/// Expected values from another program's quantile of the normal distribution at 0.9: 1.2815515655446004.
#[test]
fn distributed_parameters_follow_their_four_distributions() {
    if crate::common::is_reference_absent() {
        return;
    }
    let mean = ["Mean", "Deviation"];
    for (kind, names, spread, expected) in [
        ("Normal", mean, "2", 12.563103131089201),
        (
            "LogNormal",
            ["Mean", "GeometricDeviation"],
            "1.3",
            13.99665576099067,
        ),
        ("Uniform", ["Minimum", "Maximum"], "30", 28.0),
        ("Discrete", mean, "2", 10.0),
    ] {
        let model = distributed(kind, names, spread, "0.9");
        assert!(model.warnings.is_empty(), "{kind}: {:?}", model.warnings);
        let found = value(&instance(model), "Organism|DistributedParameter");
        near(found, expected, 1e-12, kind);
    }
    let none = distributed("Normal", mean, "2", "1.5");
    assert!(
        none.warnings.len() == 1 && none.warnings[0].contains("between 0 and 1"),
        "{:?}",
        none.warnings
    );
}

#[test]
fn step_is_seen_after_the_first_row() {
    if crate::common::is_reference_absent() {
        return;
    }
    let r = results("pkml/pi_StepIncrease_100nm.pkml");
    assert_eq!(at(&r, "Organism|Insulin", 0.0), 0.0);
    near(
        at(&r, "Organism|Insulin", 1.0),
        0.099974461,
        1e-6,
        "insulin at 1 min",
    );
}

#[test]
fn two_compartments_conserve() {
    if crate::common::is_reference_absent() {
        return;
    }
    for file in ["coreR_simple", "core_simple", "ospr_simple_v11"] {
        let r = tight(&format!("pkml/{file}.pkml"));
        near(
            at(&r, "Organism|B", 300.0),
            50.0 - 40.0 * (-3.0_f64).exp(),
            1e-6,
            file,
        );
        for row in 0..r.times.len() {
            let sum = |a: &str, b: &str| r.by_path(a).unwrap()[row] + r.by_path(b).unwrap()[row];
            near(sum("Organism|A", "Organism|B"), 50.0, 1e-9, file);
            near(
                sum("Organism|Liver|A", "Organism|Liver|B"),
                35.0,
                1e-9,
                file,
            );
        }
    }
    let r = results("pkml/coreR_simple.pkml");
    near(at(&r, "Organism|B", 300.0), 48.008438, 1e-4, "B");
    near(
        at(&r, "Organism|Liver|B", 300.0),
        33.506328,
        1e-4,
        "liver B",
    );
}

#[test]
fn rate_parameter_grows_quadratically() {
    if crate::common::is_reference_absent() {
        return;
    }
    for file in ["pkml/ospr_simple.pkml", "pkml/ospr_tests_simple.pkml"] {
        let r = tight(file);
        for (t, v) in r
            .times
            .iter()
            .zip(r.by_path("Organism|RHSParameter").unwrap())
        {
            near(v, 15.0 + 5.0 * t * t, 1e-7, file);
        }
    }
    near(
        at(&results("pkml/ospr_simple.pkml"), "Organism|B", 300.0),
        48.002825,
        1e-3,
        "B",
    );
}

#[test]
fn tiny_amounts_equal_in_both_formats() {
    if crate::common::is_reference_absent() {
        return;
    }
    let a = results("pkml/simmodel_RemoveBelowAbsTolTest.pkml");
    let b = results("simmodel/RemoveBelowAbsTolTest.xml");
    for (ours, theirs) in [
        ("Organism|A", "S1|Organism|A"),
        ("Organism|B", "S1|Organism|B"),
    ] {
        for (x, y) in a
            .by_path(ours)
            .unwrap()
            .iter()
            .zip(b.by_path(theirs).unwrap())
        {
            near(*x, y, 1e-12, ours);
        }
    }
}

#[test]
fn constant_models_load_and_stay_constant() {
    if crate::common::is_reference_absent() {
        return;
    }
    for file in [
        "pkml/core_warnings.pkml",
        "pkml/core_EventsAppKeywordReplacement.pkml",
    ] {
        let r = results(file);
        assert!(!r.paths.is_empty() && r.times.len() > 1, "{file}");
        for path in r.paths.iter() {
            let column = r.by_path(path).unwrap();
            assert!(
                column.iter().all(|v| v.to_bits() == column[0].to_bits()),
                "{file}: {path}"
            );
        }
    }
}

#[test]
fn empty_model_says_so() {
    if crate::common::is_reference_absent() {
        return;
    }
    let r = results("pkml/ospr_TestSim_2Modules.pkml");
    assert!(r.paths.is_empty());
    assert!(
        r.warnings.iter().any(|w| w.contains("nothing to simulate")),
        "{:?}",
        r.warnings
    );
}

#[test]
fn no_species_value_just_below_zero() {
    if crate::common::is_reference_absent() {
        return;
    }
    let model = load("simmodel/PKSim_Input_BelowAbsTol.xml");
    let species =
        |q: &&pbpk::model::Quantity| q.kind == pbpk::model::QuantityKind::Variable && q.persistable;
    let paths: Vec<String> = model
        .quantities
        .iter()
        .filter(species)
        .map(|q| q.path.clone())
        .collect();
    assert!(!paths.is_empty());
    let r = run(&instance(model), &RunOptions::default());
    for path in paths {
        assert!(
            r.by_path(&path)
                .unwrap()
                .iter()
                .all(|v| !(*v > -1e-12 && *v < 0.0)),
            "{path}"
        );
    }
}

#[test]
fn grid_points_merge_in_single_precision_only() {
    if crate::common::is_reference_absent() {
        return;
    }
    let model = load("simmodel/NonMonotoneBasegridTest.xml");
    let closest = |precision| {
        let times = model.grid.sorted(precision);
        (
            times.len(),
            times
                .windows(2)
                .map(|w| w[1] - w[0])
                .fold(f64::INFINITY, f64::min),
        )
    };
    let (count, gap) = closest(TimePrecision::Single);
    assert_eq!(count, 602);
    assert!(gap >= 1e-8, "{gap}");
    assert!(closest(TimePrecision::Double).1 < 1e-8);
}

#[test]
fn gallbladder_start_time_changes_the_curve() {
    if crate::common::is_reference_absent() {
        return;
    }
    let file = "simmodel/POP_EHC_StartTime.xml";
    let base = instance(load(file));
    let model = base.structure().model();
    let q = pbpk::path::find_one(model, "POP|Events|EHC|EHC_1|Start time").unwrap();
    let mut changed = base.clone();
    changed.set(q, 1e6).unwrap();
    let sum = |i: &Instance| {
        run(i, &RunOptions::default())
            .by_path("POP|Organism|VenousBlood|Plasma|C1")
            .unwrap()
            .iter()
            .sum::<f64>()
    };
    let (before, after) = (sum(&base), sum(&changed));
    assert!((before - after).abs() > 0.05 * before, "{before} {after}");
}

#[test]
fn hyperbolic_solutions() {
    if crate::common::is_reference_absent() {
        return;
    }
    for (file, prefix) in [
        ("SimModel4_ExampleInput06", "TopContainer/"),
        ("SimModel4_ExampleInput06_NewSchema", "TopContainer/"),
        ("TestAllParametersInitialValues", "TopContainer/"),
        (
            "SimModel4_ExampleInput06_Modified",
            "TopContainer/Subcontainer1/",
        ),
    ] {
        let r = results(&format!("simmodel/{file}.xml"));
        let column = |name: &str| r.by_path(&format!("{prefix}{name}")).unwrap();
        let (y1, y2, y3) = (column("y1"), column("y2"), column("y3"));
        let modified = file.ends_with("Modified");
        for (i, t) in r.times.iter().enumerate() {
            if !modified {
                near(y1[i], t.exp() + (-t).exp(), 1e-5, file);
                assert!(
                    (y2[i] - (t.exp() - (-t).exp())).abs() <= 1e-5 * y1[i],
                    "{file}: y2 at {t}"
                );
            }
            near(y3[i], 2.0, 1e-12, file);
        }
        if file == "SimModel4_ExampleInput06" {
            for (obs, y1) in column("Obs1").iter().zip(&y1) {
                near(*obs, 2.0 * y1, 1e-12, "Obs1");
            }
            near(*y1.last().unwrap(), 22026.4658, 1e-5, "y1(10)");
        }
    }
}

#[test]
fn start_values_follow_parameters_and_reset() {
    if crate::common::is_reference_absent() {
        return;
    }
    let mut i = instance(load("simmodel/TestAllParametersInitialValues.xml"));
    let find = |i: &Instance, name: &str| {
        pbpk::path::find_one(i.structure().model(), &format!("**/{name}")).unwrap()
    };
    let (p1, p2, p10, y2) = (
        find(&i, "P1"),
        find(&i, "P2"),
        find(&i, "P10"),
        find(&i, "y2"),
    );
    let before: Vec<u64> = i.values().iter().map(|v| v.to_bits()).collect();
    assert_eq!((i.value(p10), i.value(y2)), (Some(1.0), Some(0.0)));
    i.set(p1, 3.0).unwrap();
    i.set(p2, 4.0).unwrap();
    assert_eq!((i.value(p10), i.value(y2)), (Some(7.0), Some(6.0)));
    i.reset(p1);
    i.reset(p2);
    assert_eq!(
        before,
        i.values().iter().map(|v| v.to_bits()).collect::<Vec<_>>()
    );
}

#[test]
fn exponential_decay() {
    if crate::common::is_reference_absent() {
        return;
    }
    let r = tight("simmodel/S3_reduced.xml");
    for (t, c) in r.times.iter().zip(r.by_path("S3|Organism|C1").unwrap()) {
        assert!((c - 10.0 * (-0.5 * t).exp()).abs() <= 1e-7, "{t}: {c}");
    }
}

#[test]
fn autocatalytic_zero_stays_zero_and_sums_hold() {
    if crate::common::is_reference_absent() {
        return;
    }
    let model = load("simmodel/PKModelCoreCaseStudy_01.xml");
    let species: Vec<String> = model
        .quantities
        .iter()
        .filter(|q| q.kind == pbpk::model::QuantityKind::Variable)
        .map(|q| q.path.clone())
        .collect();
    for r in [
        results("simmodel/PKModelCoreCaseStudy_01.xml"),
        tight("simmodel/PKModelCoreCaseStudy_01.xml"),
    ] {
        let total = |row: usize| {
            species
                .iter()
                .map(|p| r.by_path(p).unwrap()[row])
                .sum::<f64>()
        };
        near(total(0), 26.5, 1e-10, "sum at the start");
        near(total(r.times.len() - 1), 36.5, 1e-10, "sum at the end");
        let c = r.by_path("SpecModel/Organism/Bone/Cell/C").unwrap();
        assert!(c.iter().all(|v| *v == 0.0), "C leaves zero");
    }
}

#[test]
fn simultaneous_events_see_each_other() {
    if crate::common::is_reference_absent() {
        return;
    }
    let r = results("simmodel/TestSimultanEvents.xml");
    assert_eq!(r.by_path("S1|Organism|M1").unwrap(), [0.0, 30.0, 30.0]);
}

#[test]
fn robertson_loads_and_runs() {
    if crate::common::is_reference_absent() {
        return;
    }
    let r = results("simmodel/cvsRoberts_FSA_dns.xml");
    assert_eq!(r.times, [0.0, 0.4, 4.0]);
    // y1 + 2 y2 + 3 y3 with y1, y2, y3 from the published solution.
    for (t, y) in [
        (0.4, [9.8517e-1, 3.3864e-5, 1.4794e-2]),
        (4.0, [9.0553e-1, 2.2403e-5, 9.4452e-2]),
    ] {
        near(
            at(&r, "TopContainer/SubContainer/Obs1", t),
            y[0] + 2.0 * y[1] + 3.0 * y[2],
            2e-4,
            "Robertson",
        );
    }
}

#[test]
fn infinities_and_not_a_numbers_of_conditions() {
    if crate::common::is_reference_absent() {
        return;
    }
    let i = instance(load("simmodel/Nan_If_Conditional_Min_Max.xml"));
    let count = |prefix: char, ok: fn(f64) -> bool| {
        let model = i.structure().model();
        let named = |q: &pbpk::model::Quantity| {
            q.name.starts_with(prefix) && q.name.len() == 3 && q.name[1..].parse::<u32>().is_ok()
        };
        let all: Vec<(&str, f64)> = model
            .quantities
            .iter()
            .enumerate()
            .filter(|(_, q)| named(q))
            .map(|(k, q)| (q.name.as_str(), i.value(k).unwrap()))
            .collect();
        let bad: Vec<_> = all.iter().filter(|(_, v)| !ok(*v)).collect();
        assert!(bad.is_empty(), "{bad:?}");
        all.len()
    };
    // P_NAN itself is the nineteenth that is not a number.
    assert_eq!(
        count('P', f64::is_nan) + usize::from(value(&i, "**|P_NAN").is_nan()),
        19
    );
    assert_eq!(count('T', |v| v == 1.0), 21);
    assert_eq!(count('F', |v| v == 0.0), 11);
}

#[test]
fn persistable_parameters_are_outputs_with_their_entity_ids() {
    if crate::common::is_reference_absent() {
        return;
    }
    let model = load("simmodel/PersistableParams.xml");
    let ids: Vec<&str> = model
        .outputs()
        .iter()
        .map(|q| model.quantities[*q].entity_id.as_str())
        .collect();
    assert_eq!(
        ids,
        [
            "74fe8982-69cd-41be-9dc6-7fd8020f2ed4",
            "d3bed4bc-f950-49db-81d9-3d031fd4d06f"
        ]
    );
    let r = results("simmodel/PersistableParams.xml");
    assert_eq!(r.by_path("da|Organism|TestTime").unwrap(), r.times);
    assert_eq!(
        r.by_path("da|Organism|InverseTime").unwrap()[0],
        f64::INFINITY
    );
}

#[test]
fn parameter_use_is_exact() {
    if crate::common::is_reference_absent() {
        return;
    }
    let model = load("simmodel/TestExportUsedParameters02.xml");
    let mut used: Vec<&str> = pbpk::usage::of_model(&model)
        .iter()
        .map(|q| model.quantities[*q].name.as_str())
        .collect();
    used.sort_unstable();
    assert_eq!(
        used,
        [
            "P10", "P11", "P12", "P13", "P14", "P3", "P5", "P6", "P7", "P8"
        ]
    );
}

#[test]
fn table_parameters_are_listed() {
    if crate::common::is_reference_absent() {
        return;
    }
    for file in ["TableParametersViaDCI_Test01", "OralTable01"] {
        assert!(
            !pbpk::usage::tables(&load(&format!("simmodel/{file}.xml"))).is_empty(),
            "{file}"
        );
    }
}
