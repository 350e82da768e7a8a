//! Every model of the collection, written as SimModel XML, read again and run: the same numbers.

use crate::common;
use pbpk::export::{self, ExportError};
use pbpk::model::{Format, Model};
use pbpk::run::RunOptions;

fn written(model: &Model) -> Model {
    let mut text = Vec::new();
    export::simmodel(model, &mut text).unwrap();
    pbpk::read::bytes(&text, &Default::default()).unwrap_or_else(|e| panic!("{}: {e}", model.name))
}

/// Models that run within a second or two even unoptimised.
const RUN: [&str; 14] = [
    "pkml/pksim_simple_simulation.pkml",
    "pkml/pksim_S1_concentrBased.pkml",
    "pkml/pi_IR_model_doseResponse.pkml",
    "pkml/ospr_simple.pkml",
    "pkml/core_warnings.pkml",
    "simmodel/BCM_Platelet6Lit.xml",
    "simmodel/OralTable01.xml",
    "simmodel/POP_EHC_StartTime.xml",
    "simmodel/PKModelCoreCaseStudy_01.xml",
    "simmodel/SimModel4_ExampleInput06_Modified.xml",
    "simmodel/TestAllParametersInitialValues.xml",
    "simmodel/TestSimultanEvents.xml",
    "simmodel/NaN_Inf_NegInf.xml",
    "simmodel/PersistableParams.xml",
];

#[test]
fn a_written_model_gives_the_same_numbers() {
    for file in RUN {
        let model = common::load(file);
        let again = written(&model);
        let prefix = match model.format {
            Format::Pkml { .. } => format!("{}|", model.name),
            Format::SimModel { .. } => String::new(),
        };
        assert_eq!(again.format, Format::SimModel { version: Some(4) });
        assert_eq!(again.delimiter, model.delimiter, "{file}");
        assert_eq!(again.solver, model.solver, "{file}");
        assert_eq!(again.quantities.len(), model.quantities.len() + 8, "{file}");
        let tolerance = model.solver.rel_tol.max(1e-9);
        let (a, b) = (common::instance(model), common::instance(again));
        let (a, b) = (
            common::run(&a, &RunOptions::default()),
            common::run(&b, &RunOptions::default()),
        );
        assert_eq!(a.times, b.times, "{file}");
        assert_eq!(a.paths.len(), b.paths.len(), "{file}");
        for (i, path) in a.paths.iter().enumerate() {
            let ours: Vec<f64> = a.column(i).collect();
            let theirs = b
                .by_path(&format!("{prefix}{path}"))
                .unwrap_or_else(|| panic!("{file}: no {path}"));
            let d = common::column_deviation(&theirs, &ours, a.settings.abs_tol).unwrap();
            assert!(d <= tolerance, "{file}: {path} differs by {d:e}");
        }
    }
}

#[test]
fn every_model_of_the_collection_is_written_and_read() {
    let mut count = 0;
    for folder in ["pkml", "simmodel", "ref"] {
        let mut files: Vec<_> = std::fs::read_dir(common::data(folder))
            .unwrap()
            .map(|f| f.unwrap().path())
            .collect();
        files.sort();
        for file in files
            .iter()
            .filter(|f| f.extension().is_some_and(|e| e == "xml" || e == "pkml"))
        {
            let Ok(model) = pbpk::read::file(file, &Default::default()) else {
                continue;
            };
            let again = written(&model);
            assert_eq!(again.events.len(), model.events.len(), "{}", file.display());
            assert_eq!(
                again.states().len(),
                model.states().len(),
                "{}",
                file.display()
            );
            assert_eq!(again.grid, model.grid, "{}", file.display());
            count += 1;
        }
    }
    assert!(count >= 50, "{count}");
}

#[test]
fn what_xml_cannot_hold_is_refused_by_name() {
    let mut model = common::load("simmodel/S3_reduced.xml");
    model.quantities[0].path.push('\u{1}');
    let error = export::simmodel(&model, &mut Vec::new()).unwrap_err();
    let ExportError::Unsupported { object, what, .. } = error else {
        panic!("{error}")
    };
    assert!(
        object.ends_with("\\u{1}") && what.contains("U+0001"),
        "{object}: {what}"
    );
}
