//! Regimens: superposition of single doses, steady states, units of doses, refusals, and the command line.

use std::sync::Arc;

use pbpk::compile::{Instance, Structure};
use pbpk::model::Model;
use pbpk::path;
use pbpk::regimen::{Regimen, RegimenReport, apply};
use pbpk::run::{Results, RunOptions, run};

use crate::common::{data, is_reference_absent};

fn read_example() -> Model {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/examples/two_compartment.xml");
    pbpk::read::file(file.as_ref(), &Default::default()).unwrap()
}

fn give_doses(model: Model, texts: &[&str]) -> Result<(Model, RegimenReport), String> {
    let regimens = texts.iter().map(|text| text.parse::<Regimen>());
    let regimens: Vec<Regimen> = regimens
        .collect::<Result<_, _>>()
        .map_err(|e| e.to_string())?;
    apply(model, &regimens, None).map_err(|e| e.to_string())
}

fn run_at(model: Model, output: &str, times: &[f64]) -> Vec<f64> {
    let position = path::find_one(&model, output).unwrap();
    let structure = Structure::new(Arc::new(model), vec![position]).unwrap();
    let options = RunOptions {
        times: Some(times),
        rel_tol: Some(1e-10),
        abs_tol: Some(1e-13),
        ..RunOptions::default()
    };
    let results: Results = run(&Instance::new(&structure), &options).unwrap();
    assert_eq!(results.times.as_slice(), times);
    results.column(0).collect()
}

/// Checks that the curve of doses at these times, each a factor of the first, is the sum of curves of single doses.
fn check_superposition(
    model: &Model,
    texts: &[&str],
    single: &str,
    output: &str,
    doses: &[(f64, f64)],
) {
    let times: Vec<f64> = (0..=60).map(|i| 25.0 * f64::from(i)).collect();
    let both = give_doses(model.clone(), texts).unwrap().0;
    let together = run_at(both, output, &times);
    let one = give_doses(model.clone(), &[single]).unwrap().0;
    // A row at the time of a dose is the one before it.
    let alone = run_at(one, output, &times);
    let alone_at = |time: f64| {
        let place = times.iter().position(|t| (t - time).abs() < 1e-9);
        place.map_or(0.0, |place| alone[place])
    };
    let peak = together.iter().fold(0.0_f64, |peak, v| peak.max(v.abs()));
    for (time, value) in times.iter().zip(&together) {
        let sum: f64 = doses
            .iter()
            .map(|(start, factor)| factor * alone_at(time - start))
            .sum();
        assert!((value - sum).abs() <= 2e-7 * peak, "{time}: {value} {sum}");
    }
}

#[test]
fn doses_add_up_in_a_linear_model() {
    let output = "Organism|Central|Drug|Concentration";
    check_superposition(
        &read_example(),
        &["300 µmol,interval=250 min,number=4,loading=900 µmol,infusion=50"],
        "300 µmol,infusion=50",
        output,
        &[(0.0, 3.0), (250.0, 1.0), (500.0, 1.0), (750.0, 1.0)],
    );
}

#[test]
fn two_regimens_of_one_application_are_given_together() {
    let output = "Organism|Central|Drug|Concentration";
    check_superposition(
        &read_example(),
        &[
            "300 µmol,interval=250 min,number=2",
            "0.6 mmol,start=600,container=Infusion",
        ],
        "300 µmol",
        output,
        &[(0.0, 1.0), (250.0, 1.0), (600.0, 2.0)],
    );
}

#[test]
fn doses_of_a_whole_body_add_up() {
    if is_reference_absent() {
        return;
    }
    let file = data("pkml/pksim_simple_simulation.pkml");
    let model = pbpk::read::file(&file, &Default::default()).unwrap();
    check_superposition(
        &model,
        &["0.5 mg/kg,interval=500 min,number=3,loading=1 mg/kg"],
        "0.5 mg/kg",
        "Organism|VenousBlood|Plasma|C1",
        &[(0.0, 2.0), (500.0, 1.0), (1000.0, 1.0)],
    );
    let (dosed, report) = give_doses(model, &["36.5 mg,interval=12 h,number=3"]).unwrap();
    assert_eq!(report.doses.len(), 3);
    let total = path::find_one(&dosed, "**|TotalDrugMass")
        .or_else(|_| path::find_one(&dosed, "**|Total drug mass"))
        .unwrap();
    let structure = Structure::new(Arc::new(dosed), Vec::new()).unwrap();
    let mass = Instance::new(&structure).value(total).unwrap();
    // 36.5 mg of 400 g/mol are 91.25 µmol.
    assert!((mass - 3.0 * 91.25).abs() < 1e-9, "{mass}");
}

#[test]
fn an_oral_tablet_is_given_again() {
    if is_reference_absent() {
        return;
    }
    let file = data("simmodel/12.0_Brockmoller2005_CPA.xml");
    let model = pbpk::read::file(&file, &Default::default()).unwrap();
    let (first, _) = give_doses(model.clone(), &["500 mg"]).unwrap();
    let (dosed, report) = give_doses(model, &["500 mg,interval=6 h,number=2"]).unwrap();
    assert_eq!(report.doses[1].1, 360.0);
    assert!(
        report.doses[1].0.ends_with("|Application_2"),
        "{:?}",
        report.doses
    );
    let output = "**|Levetiracetam|Plasma (Peripheral Venous Blood)";
    let times = [60.0, 359.0, 420.0, 480.0];
    let (once, twice) = (run_at(first, output, &times), run_at(dosed, output, &times));
    assert!(
        (once[1] - twice[1]).abs() <= 1e-6 * once[1],
        "{once:?} {twice:?}"
    );
    // The second tablet is taken up like the first, on top of what is left of it.
    let added = twice[2] - once[2];
    assert!(
        (added - once[0]).abs() <= 0.05 * once[0],
        "{added} {once:?}"
    );
}

#[test]
fn a_steady_state_is_found_by_doses_before_it() {
    let text = "300 µmol,interval=300 min,steady";
    let (model, report) = give_doses(read_example(), &[text]).unwrap();
    let last = report.doses.last().unwrap().1;
    assert_eq!(report.doses.len() as f64, last / 300.0 + 1.0);
    let output = "Organism|Central|Drug|Concentration";
    let value = run_at(model, output, &[last])[0];
    let times: Vec<f64> = (1..=200).map(|i| 300.0 * f64::from(i)).collect();
    let single = give_doses(read_example(), &["300 µmol"]).unwrap().0;
    let expected: f64 = run_at(single, output, &times).iter().sum();
    let deviation = (value - expected).abs() / expected;
    assert!(deviation < 1e-3 && deviation > 0.0, "{value} {expected}");
    assert!(
        report.warnings[0].contains("steady state"),
        "{:?}",
        report.warnings
    );
}

#[test]
fn output_times_follow_the_doses() {
    let (model, _) = give_doses(read_example(), &["1 µmol,interval=2000 min,number=3"]).unwrap();
    let times = model.grid.sorted(pbpk::model::TimePrecision::Single);
    let file = read_example()
        .grid
        .sorted(pbpk::model::TimePrecision::Single);
    for number in 0..3 {
        for time in file.iter().filter(|time| **time < 2000.0) {
            let wanted = 2000.0 * f64::from(number) + time;
            // Times that are equal in single precision are one.
            assert!(times.iter().any(|t| (t - wanted).abs() < 1e-3), "{wanted}");
        }
    }
    assert_eq!(times.last(), Some(&6000.0));
}

#[test]
fn what_cannot_be_given_is_named() {
    for (texts, expected) in [
        (["300 l"].as_slice(), "takes no dose in 'l'"),
        (
            &["300 µmol,container=Oral"],
            "name one application for the regimen 'Oral'",
        ),
        (
            &[
                "300 µmol,interval=1 min,number=600",
                "1 µmol,start=9,interval=1 min,number=600",
            ],
            "more than 1000 doses",
        ),
    ] {
        let error = give_doses(read_example(), texts).unwrap_err();
        assert!(error.contains(expected), "{texts:?}: {error}");
    }
    if is_reference_absent() {
        return;
    }
    let read = |name: &str| pbpk::read::file(&data(name), &Default::default()).unwrap();
    let error = give_doses(read("pkml/coreR_simple.pkml"), &["1 mg"]).unwrap_err();
    assert!(error.contains("has no application"), "{error}");
    let error = give_doses(
        read("pkml/pksim_simple_simulation.pkml"),
        &["1 mg,infusion=30"],
    )
    .unwrap_err();
    assert!(error.contains("has no 'Infusion time'"), "{error}");
    // Two protocols: one has to be named, and the other is given nothing.
    let two = || read("simmodel/TableParametersViaDCI_Test01.xml");
    let error = give_doses(two(), &["1 mg"]).unwrap_err();
    assert!(error.contains("name one application"), "{error}");
    let report = give_doses(two(), &["1 mg,container=T1"]).unwrap().1;
    assert!(
        report.warnings.iter().any(|w| w.contains("T2")),
        "{:?}",
        report.warnings
    );
}

#[cfg(feature = "cli")]
mod command {
    use crate::cli::{example, folder, sim};

    #[test]
    fn intervals_and_accumulation_are_reported() {
        let dose = "300 µmol,interval=6 h,number=8";
        let done = sim(&[
            "pk",
            &example(),
            "--output",
            "**|Central|Drug|Concentration",
            "--dose",
            dose,
            "--json",
        ]);
        assert_eq!(done.code, 0, "{}", done.err);
        let json: serde_json::Value = serde_json::from_str(&done.out).unwrap();
        let rows = json["parameters"].as_array().unwrap();
        let value = |name: &str| {
            let row = rows.iter().find(|row| row["parameter"] == name);
            row.unwrap_or_else(|| panic!("{name}"))["value"]
                .as_f64()
                .unwrap()
        };
        assert_eq!(value("tau"), 6.0);
        let ratio = value("AUC_tau_ss") / value("AUC_tau_tD1");
        assert!(
            (value("R_ac") - ratio).abs() < 1e-12 && ratio > 1.0,
            "{ratio}"
        );
        let swing = (value("C_max_ss") - value("C_min_ss")) / value("C_min_ss");
        assert!((value("Swing") - swing).abs() < 1e-12, "{swing}");
    }

    #[test]
    fn an_exported_model_has_its_doses() {
        let folder = folder("dosed");
        let file = folder.join("dosed.xml").display().to_string();
        let dose = "300 µmol,interval=6 h,number=3";
        let done = sim(&[
            "export",
            &example(),
            "--format",
            "simmodel",
            "--file",
            &file,
            "--dose",
            dose,
        ]);
        assert_eq!(done.code, 0, "{}", done.err);
        let of = |words: &[&str]| {
            let all =
                ["run"]
                    .iter()
                    .chain(words)
                    .chain(&["--csv", "-", "--times", "0,100,400,800,1200"]);
            let done = sim(&all.copied().collect::<Vec<_>>());
            assert_eq!(done.code, 0, "{}", done.err);
            done.out
        };
        assert_eq!(of(&[&file]), of(&[&example(), "--dose", dose]));
        let without = of(&[&example()]);
        assert_ne!(of(&[&file]), without);
    }

    #[test]
    fn a_population_with_other_doses_does_not_go_on_from_the_first() {
        let folder = folder("dosed-people");
        let out = folder.join("out").display().to_string();
        let of = |dose: &str| {
            let vary = "Organism|Weight [kg]=normal(73;10)";
            let model = example();
            let words = [
                "population",
                &model,
                "--size",
                "3",
                "--vary",
                vary,
                "--out",
                &out,
                "--dose",
                dose,
            ];
            sim(&words).code
        };
        let results = || std::fs::read_to_string(folder.join("out/results.csv")).unwrap();
        assert_eq!(of("300 µmol,interval=6 h,number=3"), 0);
        let first = results();
        let code = of("300 µmol,interval=6 h,number=2");
        assert!(code != 0 || results() != first);
    }

    #[test]
    fn parameters_of_observed_values_leave_out_what_is_missing() {
        let folder = folder("observed-pk");
        let file = folder.join("observed.csv");
        let text = "Time [h],Organism|Central|Drug|Concentration [µmol/l],LLOQ\n0,BLQ,0.1\n1,8,0.1\n2,4,0.1\n3,,0.1\n4,1,0.1\n6,0.05,0.1\n";
        std::fs::write(&file, text).unwrap();
        let file = file.display().to_string();
        let done = sim(&["pk", &example(), "--observed", &file, "--csv", "-"]);
        assert_eq!(done.code, 0, "{}", done.err);
        assert!(
            done.err
                .contains("left out 1 value (missing or below the limit)"),
            "{}",
            done.err
        );
        // 0 to 8 over 60 min, 8 to 4 over 60 min, 4 to 1 over 120 min.
        assert!(
            done.out.contains("AUC_tEnd,900.0,") || done.out.contains("AUC_tEnd,900,"),
            "{}",
            done.out
        );
    }
}
