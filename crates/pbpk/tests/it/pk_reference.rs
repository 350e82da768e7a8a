//! Every number of the published tables, at the tolerance stated for it, and the rule itself at 1e-6.

use crate::common::data;
use pbpk::csv::{self, IndividualCurves};
use pbpk::pk::{
    CATALOGUE, Curve, CurveError, Dosing, DosingMode, DrugApplication, IntervalMeasure, PkAnalysis,
    UserParameter, analyse, parameter,
};

fn results(name: &str) -> Vec<IndividualCurves> {
    let file = std::fs::File::open(data("csv").join(name)).unwrap();
    csv::results(&mut std::io::BufReader::new(file)).unwrap()
}

/// Checks (name, expected, relative tolerance) in base units times `factor`.
fn check(analysis: &PkAnalysis, expected: &[(&str, f64, f64)]) {
    for &(name, value, tolerance) in expected {
        let found = analysis
            .get(name)
            .unwrap_or_else(|| panic!("{name} is not defined"));
        assert!(
            (found - value).abs() <= tolerance * value.abs(),
            "{name}: {found}, expected {value} within {tolerance:e}"
        );
    }
}

fn dose(start: f64, dose: f64) -> DrugApplication {
    DrugApplication {
        start,
        dose_per_weight: Some(dose),
        infusion_time: None,
    }
}

#[test]
fn multiple_dosing() {
    if crate::common::is_reference_absent() {
        return;
    }
    let table = results("core_MultipleDosing_0_8_16.csv");
    let curves = &table[0].curves;
    assert_eq!(curves.times.len(), 225);
    let curve = Curve::new(&curves.times, &curves.series[0].values).unwrap();
    // The times of this table are hours; the rule does not care.
    let dosing = Dosing::new(vec![dose(0.0, 4.0), dose(8.0, 4.0), dose(16.0, 2.0)]).unwrap();
    let found = analyse(curve, &dosing);
    check(
        &found,
        &[
            ("C_max", 23.072_055_82, 1e-2),
            ("t_max", 0.05, 1e-2),
            ("AUC_tD1_tD2", 37.696_470_0, 1e-2),
            ("AUC_inf_tD1", 80.711_056_7, 1e-2),
            ("AUC_tEnd", 224.402, 1e-2),
            ("AUC_inf_tDLast", 152.214_363_5, 1e-2),
            ("Thalf", 10.297_89, 1e-2),
            ("Thalf_tDLast_tEnd", 10.848_950_9, 1e-2),
            ("C_trough_tD2", 2.896_06, 1e-2),
            ("C_tEnd", 1.210_246, 1e-2),
            ("MRT", 13.627_5, 5e-2),
        ],
    );
    check(
        &found,
        &[
            ("AUC_tEnd", 224.400_245, 1e-6),
            ("AUC_inf_tD1", 80.871_917, 1e-6),
            ("Thalf", 10.335_347, 1e-6),
            ("MRT", 13.674_752, 1e-6),
            ("AUC_inf_tDLast", 152.215_665, 1e-6),
            ("Thalf_tDLast_tEnd", 10.849_655, 1e-6),
        ],
    );
    // Normalisation by the total, the first, the last-but-one and the last dose.
    let of = |name: &str| found.get(name).unwrap();
    assert_eq!(of("C_max_norm"), of("C_max") / 10.0);
    assert_eq!(of("AUC_tEnd_norm"), of("AUC_tEnd") / 10.0);
    assert_eq!(of("C_max_tD1_tD2_norm"), of("C_max_tD1_tD2") / 4.0);
    assert_eq!(of("AUC_inf_tD1_norm"), of("AUC_inf_tD1") / 4.0);
    assert_eq!(
        of("AUC_tDLast_minus_1_tDLast_norm"),
        of("AUC_tDLast_minus_1_tDLast") / 4.0
    );
    assert_eq!(of("AUC_inf_tDLast_norm"), of("AUC_inf_tDLast") / 2.0);
    assert_eq!(of("C_max_tDLast_tEnd_norm"), of("C_max_tDLast_tEnd") / 2.0);
    assert_eq!(
        (of("t_max_tDLast_tEnd"), of("C_max_tDLast_tEnd")),
        (16.25, 16.724_046_71)
    );
    assert_eq!(of("C_trough_tDLast"), 4.621_261_12);
    // Only what is defined for several doses is reported.
    assert!(
        ["CL", "Vss", "Vd", "AUC_inf", "FractionAucLastToInf"]
            .iter()
            .all(|n| found.get(n).is_none())
    );
    assert_eq!(
        found.values.len(),
        CATALOGUE
            .iter()
            .filter(|p| p.mode != DosingMode::Single)
            .count()
    );
}

#[test]
fn single_dosing_clearance() {
    if crate::common::is_reference_absent() {
        return;
    }
    let table = results("core_SingleDosing_CL.csv");
    let curves = &table[0].curves;
    assert_eq!(curves.times.len(), 65);
    let curve = Curve::new(&curves.times, &curves.series[0].values).unwrap();
    let found = analyse(curve, &Dosing::single(Some(10.0), None).unwrap());
    check(
        &found,
        &[("CL", 0.123_898_8, 1e-2), ("Vss", 1.688_436, 1e-2)],
    );
    check(
        &found,
        &[("CL", 0.123_652_32, 1e-6), ("Vss", 1.690_914_8, 1e-6)],
    );
    assert_eq!(
        found.values.len(),
        CATALOGUE
            .iter()
            .filter(|p| p.mode != DosingMode::Multi)
            .count()
    );
}

#[test]
fn published_analysis_of_an_infusion() {
    if crate::common::is_reference_absent() {
        return;
    }
    let table = results("ospr_SimResults.csv");
    let curves = &table[0].curves;
    assert_eq!((curves.times.len(), curves.times[490]), (491, 1440.0));
    assert_eq!(curves.series[0].unit, "µmol/l");
    let curve = Curve::new(&curves.times, &curves.series[0].values).unwrap();
    let published = {
        let file = std::fs::File::open(data("csv/ospr_PKAnalyses.csv")).unwrap();
        csv::read(&mut std::io::BufReader::new(file)).unwrap()
    };
    let row = |name: &str| {
        let row = published.rows.iter().find(|r| r[2] == name).unwrap();
        (csv::number(&row[3]).unwrap(), row[4].clone())
    };
    let per_weight = row("C_max").0 / row("C_max_norm").0 * 1e6;
    assert!((per_weight - 16.389_46).abs() < 1e-5);
    let found = analyse(
        curve,
        &Dosing::single(Some(per_weight), Some(10.0)).unwrap(),
    );
    let tolerances = [
        ("C_max", 1e-6),
        ("t_max", 1e-6),
        ("C_tEnd", 1e-6),
        ("AUC_tEnd", 1e-6),
        ("C_max_norm", 1e-6),
        ("AUC_tEnd_norm", 1e-6),
        ("AUC_inf", 1e-4),
        ("CL", 1e-4),
        ("MRT", 5e-4),
        ("Vss", 5e-4),
        ("Thalf", 2e-2),
        ("Vd", 2e-2),
        ("FractionAucLastToInf", 2e-2),
    ];
    for (name, tolerance) in tolerances {
        let (expected, unit) = row(name);
        let value = found
            .values
            .iter()
            .find(|v| v.parameter.name == name)
            .unwrap();
        let shown = value.display();
        assert_eq!(value.parameter.display_unit, unit, "{name}");
        assert!(
            (shown - expected).abs() <= tolerance * expected,
            "{name}: {shown}, published {expected}"
        );
    }
    // Today's rule: 49 points.
    check(
        &found,
        &[
            ("Thalf", 2.975_55 * 60.0, 2e-6),
            ("AUC_inf", 4_072.494_94, 1e-8),
            ("MRT", 3.220_45 * 60.0, 2e-6),
        ],
    );
}

#[test]
fn catalogue_has_the_names_modes_and_dimensions_of_the_suite() {
    if crate::common::is_reference_absent() {
        return;
    }
    let text = std::fs::read_to_string(data("OSPSuite.PKParameters.xml")).unwrap();
    let attribute = |line: &str, name: &str| {
        line.split_once(&format!(" {name}=\""))
            .unwrap()
            .1
            .split('"')
            .next()
            .unwrap()
            .to_owned()
    };
    let mut names = 0;
    for line in text.lines().filter(|l| l.contains("<PKParameter ")) {
        let name = attribute(line, "name");
        let ours = parameter(&name).unwrap_or_else(|| panic!("{name} is missing"));
        assert_eq!(
            format!("{:?}", ours.mode),
            attribute(line, "mode"),
            "{name}"
        );
        assert_eq!(ours.dimension, attribute(line, "dimension"), "{name}");
        names += 1;
    }
    assert_eq!(names, CATALOGUE.len());
}

/// C = 8·exp(−0.1·t) exactly: the fit finds λ, and everything beyond the end follows.
#[test]
fn exponential_curve_gives_closed_forms() {
    let times: Vec<f64> = (0..=200).map(|i| f64::from(i) * 0.5).collect();
    let values: Vec<f64> = times.iter().map(|t| 8.0 * (-0.1 * t).exp()).collect();
    let found = analyse(
        Curve::new(&times, &values).unwrap(),
        &Dosing::single(Some(2.0), None).unwrap(),
    );
    check(
        &found,
        &[
            ("Thalf", 2.0_f64.ln() / 0.1, 1e-12),
            ("AUC_inf", 80.0, 3e-4),
            ("CL", 2.0 / 80.0, 3e-4),
            ("Vd", 2.0 / 8.0, 3e-4),
            ("MRT", 10.0, 1e-3),
            ("Vss", 0.25, 1e-3),
        ],
    );
}

#[test]
fn what_cannot_be_computed_is_not_a_number() {
    let rising = ([0.0, 1.0, 2.0, 3.0, 4.0], [1.0, 2.0, 3.0, 4.0, 5.0]);
    let falling_below_zero = ([0.0, 1.0, 2.0, 3.0, 4.0], [5.0, 4.0, 3.0, 2.0, -1.0]);
    let with_nan = ([0.0, 1.0, 2.0, 3.0, 4.0], [5.0, 4.0, 3.0, f64::NAN, 1.0]);
    for (times, values) in [rising, falling_below_zero, with_nan] {
        let found = analyse(
            Curve::new(&times, &values).unwrap(),
            &Dosing::single(Some(1.0), None).unwrap(),
        );
        for name in [
            "Thalf",
            "AUC_inf",
            "AUC_inf_norm",
            "MRT",
            "CL",
            "Vss",
            "Vd",
            "FractionAucLastToInf",
        ] {
            assert!(found.get(name).unwrap().is_nan(), "{name} of {values:?}");
        }
        assert_eq!(found.get("C_max"), Some(5.0));
    }
    let two = analyse(
        Curve::new(&[0.0, 1.0], &[2.0, 1.0]).unwrap(),
        &Dosing::default(),
    );
    assert!(two.get("Thalf").unwrap().is_nan() && two.get("C_max_norm").unwrap().is_nan());
    assert_eq!(two.get("AUC_tEnd"), Some(1.5));
}

#[test]
fn curves_that_are_none_are_refused() {
    assert_eq!(Curve::new(&[], &[]), Err(CurveError::Empty));
    assert_eq!(
        Curve::new(&[0.0], &[]),
        Err(CurveError::Lengths {
            times: 1,
            values: 0
        })
    );
    assert_eq!(
        Curve::new(&[0.0, 0.0], &[1.0, 1.0]),
        Err(CurveError::Order { position: 1 })
    );
    assert_eq!(
        Curve::new(&[0.0, 2.0, 1.0], &[1.0; 3]),
        Err(CurveError::Order { position: 2 })
    );
    assert_eq!(
        Curve::new(&[f64::NAN], &[1.0]),
        Err(CurveError::Order { position: 0 })
    );
}

#[test]
fn dosing_is_checked() {
    for bad in [
        dose(f64::NAN, 1.0),
        dose(0.0, -1.0),
        DrugApplication {
            infusion_time: Some(-1.0),
            ..dose(0.0, 1.0)
        },
    ] {
        assert!(Dosing::new(vec![bad]).is_err(), "{bad:?}");
    }
    assert!(Dosing::new(vec![dose(1.0, 1.0), dose(1.0, 2.0)]).is_err());
    let sorted = Dosing::new(vec![dose(5.0, 1.0), dose(0.0, 2.0)]).unwrap();
    assert_eq!(sorted.applications()[0].start, 0.0);
    assert_eq!(sorted.total(), Some(3.0));
    let unknown = DrugApplication {
        dose_per_weight: None,
        ..dose(9.0, 0.0)
    };
    assert_eq!(
        Dosing::new(vec![dose(0.0, 1.0), unknown]).unwrap().total(),
        None
    );
}

#[test]
fn applications_are_found_in_a_model() {
    let constants = [
        ("Organism|Weight", 70.0),
        (
            "Applications|P|Form|Application_1|ProtocolSchemaItem|Start time",
            0.0,
        ),
        (
            "Applications|P|Form|Application_1|ProtocolSchemaItem|DrugMass",
            140.0,
        ),
        (
            "Applications|P|Form|Application_1|ProtocolSchemaItem|Infusion time",
            10.0,
        ),
        (
            "Applications|P|Form|Application_2|ProtocolSchemaItem|Start time",
            480.0,
        ),
        (
            "Applications|P|Form|Application_2|ProtocolSchemaItem|DrugMass",
            70.0,
        ),
        ("Events|Meal|Start time", 30.0),
    ];
    let dosing = Dosing::from_constants(constants.into_iter()).unwrap();
    let expected = [
        DrugApplication {
            start: 0.0,
            dose_per_weight: Some(2.0),
            infusion_time: Some(10.0),
        },
        DrugApplication {
            start: 480.0,
            dose_per_weight: Some(1.0),
            infusion_time: None,
        },
    ];
    assert_eq!(dosing.applications(), expected);
}

#[test]
fn user_defined_parameters() {
    let times: Vec<f64> = (0..=48).map(f64::from).collect();
    let values: Vec<f64> = times
        .iter()
        .map(|t| if *t < 24.0 { *t } else { 48.0 - t })
        .collect();
    let curve = Curve::new(&times, &values).unwrap();
    let dosing = Dosing::new(vec![dose(0.0, 4.0), dose(24.0, 4.0), dose(36.0, 2.0)]).unwrap();
    let base = |measure| UserParameter::new("mine", measure);
    let at = |p: UserParameter| p.evaluate(curve, &dosing);
    assert_eq!(at(base(IntervalMeasure::Maximum)), 24.0);
    assert_eq!(
        at(UserParameter {
            normalisation: Some(6.0),
            ..base(IntervalMeasure::Maximum)
        }),
        4.0
    );
    assert_eq!(
        at(UserParameter {
            start: Some(10.0),
            end: Some(20.0),
            ..base(IntervalMeasure::Area)
        }),
        150.0
    );
    assert_eq!(
        at(UserParameter {
            start: Some(9.0),
            start_offset: 1.2,
            end: Some(20.0),
            ..base(IntervalMeasure::Minimum)
        }),
        10.0
    );
    assert_eq!(
        at(UserParameter {
            start_application: Some(1),
            end_application: Some(2),
            ..base(IntervalMeasure::Trough)
        }),
        12.0
    );
    assert_eq!(
        at(UserParameter {
            start_application: Some(2),
            end_offset: 0.0,
            ..base(IntervalMeasure::TimeOfMaximum)
        }),
        36.0
    );
    assert_eq!(
        at(UserParameter {
            start: Some(30.0),
            ..base(IntervalMeasure::TimeOfMinimum)
        }),
        48.0
    );
    assert_eq!(at(base(IntervalMeasure::TimeOfThreshold(7.5))), 8.0);
    assert!(at(base(IntervalMeasure::TimeOfThreshold(25.0))).is_nan());
    assert!(
        at(UserParameter {
            start_application: Some(7),
            ..base(IntervalMeasure::Maximum)
        })
        .is_nan()
    );
    assert!(
        at(UserParameter {
            start: Some(20.0),
            end: Some(10.0),
            ..base(IntervalMeasure::Maximum)
        })
        .is_nan()
    );
    // A clearance needs the dose of its interval, which only applications define.
    assert!(
        at(UserParameter {
            start: Some(20.0),
            ..base(IntervalMeasure::Clearance)
        })
        .is_nan()
    );
    for (name, measure) in IntervalMeasure::NAMES {
        assert_eq!(
            format!("{:?}", IntervalMeasure::from_name(name).unwrap()),
            format!("{measure:?}")
        );
    }
}

#[test]
fn a_population_of_fifty() {
    if crate::common::is_reference_absent() {
        return;
    }
    let table = results("ospr_SimResults_pop.csv");
    assert_eq!(table.len(), 50);
    for (i, individual) in table.iter().enumerate() {
        assert_eq!(individual.id, i as i64);
        assert_eq!(individual.curves.series.len(), 2);
        for series in &individual.curves.series {
            let curve = Curve::new(&individual.curves.times, &series.values).unwrap();
            let found = analyse(curve, &Dosing::single(Some(16.4), Some(10.0)).unwrap());
            assert_eq!(curve.points().len(), 491);
            assert!(
                found.get("AUC_tEnd").unwrap() > 0.0 && found.get("Thalf").unwrap() > 0.0,
                "{i} {}",
                series.name
            );
        }
    }
}
