//! Every model of the collection, written as SimModel XML and read again: the same model and the same numbers.

use crate::common::{self, acceptance};
use pbpk::export::{self, ExportError};
use pbpk::model::{Model, ModelFormat};
use pbpk::run::RunOptions;

fn text(model: &Model) -> Result<String, ExportError> {
    let mut text = Vec::new();
    export::simmodel(model, &mut text)?;
    Ok(String::from_utf8(text).unwrap())
}

/// Written, accepted by the checker, and read again.
fn written(model: &Model) -> Model {
    let text = text(model).unwrap();
    acceptance::check(&text).unwrap_or_else(|e| panic!("{}: {e}", model.name));
    pbpk::read::bytes(text.as_bytes(), &Default::default())
        .unwrap_or_else(|e| panic!("{}: {e}", model.name))
}

/// All model files of the collection that can be read.
fn collection() -> Vec<(String, Model)> {
    let mut found = Vec::new();
    for folder in ["pkml", "simmodel", "ref"] {
        let files = std::fs::read_dir(common::data(folder)).unwrap();
        let mut files: Vec<_> = files.map(|f| f.unwrap().path()).collect();
        files.sort();
        files.retain(|f| f.extension().is_some_and(|e| e == "xml" || e == "pkml"));
        for file in files {
            if let Ok(model) = pbpk::read::file(&file, &Default::default()) {
                found.push((file.display().to_string(), model));
            }
        }
    }
    found
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

/// Written and read again, a model runs to the same numbers. Its quantities stand in another order, so that sums may
/// round otherwise and the runs agree within the tolerance.
#[test]
fn a_written_model_runs_to_the_same_numbers() {
    if crate::common::is_reference_absent() {
        return;
    }
    for file in RUN {
        let model = common::load(file);
        let again = written(&model);
        let prefix = match model.format {
            ModelFormat::Pkml { .. } => format!("{}|", model.name),
            ModelFormat::SimModel { .. } => String::new(),
        };
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

/// Written and read again, a model is the same: quantities, events, times, settings, the number of every quantity at
/// the start and every rate, bit by bit.
#[test]
fn every_model_of_the_collection_is_written_and_read() {
    if crate::common::is_reference_absent() {
        return;
    }
    let mut count = 0;
    for (file, model) in collection() {
        let reaches = |t: &f64| *t > 0.0;
        if !model.grid.sorted(Default::default()).iter().any(reaches) {
            let refused = text(&model).unwrap_err().to_string();
            assert!(refused.contains("no output time above 0"), "{refused}");
            continue;
        }
        same(&file, model.clone(), written(&model));
        count += 1;
    }
    assert!(count >= 50, "{count}");
}

fn same(file: &str, model: Model, again: Model) {
    assert_eq!(again.format, ModelFormat::SimModel { version: Some(4) });
    assert_eq!(again.delimiter, model.delimiter, "{file}");
    assert_eq!(again.solver, model.solver, "{file}");
    assert_eq!(again.grid, model.grid, "{file}");
    assert_eq!(again.events.len(), model.events.len(), "{file}");
    assert_eq!(again.quantities.len(), model.quantities.len() + 8, "{file}");
    let prefix = match model.format {
        ModelFormat::Pkml { .. } => format!("{}|", model.name),
        ModelFormat::SimModel { .. } => String::new(),
    };
    let position = |q: &pbpk::model::Quantity| {
        let path = format!("{prefix}{}", q.path);
        let found = again
            .quantities
            .iter()
            .position(|o| o.path == path && o.entity_id == entity(&model, q));
        found.unwrap_or_else(|| panic!("{file}: no {path}"))
    };
    let places: Vec<usize> = model.quantities.iter().map(position).collect();
    for (q, place) in model.quantities.iter().zip(&places) {
        let other = &again.quantities[*place];
        let facts = |q: &pbpk::model::Quantity| {
            (
                q.name.clone(),
                q.scale.to_bits(),
                q.persistable,
                q.can_be_varied
                    || q.kind != pbpk::model::QuantityKind::Parameter
                    || !q.rhs.is_empty(),
                q.rhs.len(),
            )
        };
        assert_eq!(facts(q), facts(other), "{file}: {}", q.path);
    }
    let (states, theirs) = (model.states(), again.states());
    let mut mapped: Vec<usize> = states.iter().map(|q| places[*q]).collect();
    mapped.sort_unstable();
    assert_eq!(mapped, theirs, "{file}: other states");
    let (a, b) = (common::instance(model), common::instance(again));
    for (q, place) in places.iter().enumerate() {
        let (ours, theirs) = (a.values()[q], b.values()[*place]);
        assert!(
            ours.to_bits() == theirs.to_bits() || ours.is_nan() && theirs.is_nan(),
            "{file}: {ours} and {theirs}"
        );
    }
    let (mut a, y, mut b, z) = match (
        pbpk::run::engine_after_start(&a),
        pbpk::run::engine_after_start(&b),
    ) {
        (Ok((a, y)), Ok((b, z))) => (a, y, b, z),
        (Err(ours), Err(theirs)) => {
            assert_eq!(
                ours.to_string(),
                theirs.to_string().replace(&prefix, ""),
                "{file}"
            );
            return;
        }
        _ => panic!("{file}: only one of the two can be started"),
    };
    let (mut rates, mut others) = (vec![0.0; y.len()], vec![0.0; z.len()]);
    a.rhs(0.5, &y, &mut rates);
    b.rhs(0.5, &z, &mut others);
    for (i, q) in states.iter().enumerate() {
        let at = theirs.binary_search(&places[*q]).unwrap();
        assert!(
            rates[i] == others[at] || rates[i].is_nan() && others[at].is_nan(),
            "{file}: rates {} and {}",
            rates[i],
            others[at]
        );
    }
}

/// The key under which a quantity is written.
fn entity(model: &Model, q: &pbpk::model::Quantity) -> String {
    if q.entity_id.is_empty() {
        let position = model
            .quantities
            .iter()
            .position(|o| std::ptr::eq(o, q))
            .unwrap();
        return format!("q{}", position + 1);
    }
    q.entity_id.clone()
}

#[test]
fn what_xml_cannot_hold_is_refused_by_name() {
    if crate::common::is_reference_absent() {
        return;
    }
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

/// A model with a little of everything that can be written in a way that the genuine library refuses.
const EVERYTHING: &str = "<Simulation version=\"4\" objectPathDelimiter=\"|\"><FormulaList>\
<ExplicitFormula id=\"11\"><Equation>M>2 ? 1 : (M>1 ? 2 : 3)*-k</Equation><ReferenceList><R alias=\"M\" id=\"1\"/><R alias=\"k\" id=\"2\"/></ReferenceList></ExplicitFormula>\
<ExplicitFormula id=\"12\"><Equation>2*(t>=1)</Equation><ReferenceList><R alias=\"t\" id=\"0\"/></ReferenceList></ExplicitFormula>\
<ExplicitFormula id=\"13\"><Equation>t>=M</Equation><ReferenceList><R alias=\"t\" id=\"0\"/><R alias=\"M\" id=\"1\"/></ReferenceList></ExplicitFormula>\
<ExplicitFormula id=\"14\"><Equation>M+MIN(M;2)*(NOT(k>1))</Equation><ReferenceList><R alias=\"M\" id=\"1\"/><R alias=\"k\" id=\"2\"/></ReferenceList></ExplicitFormula>\
<ExplicitFormula id=\"15\"><Equation>M</Equation><ReferenceList><R alias=\"M\" id=\"1\"/></ReferenceList></ExplicitFormula>\
<TableFormula id=\"16\" useDerivedValues=\"1\"><PointList><Point x=\"0\" y=\"0\"/><Point x=\"1\" y=\"2\"/></PointList></TableFormula>\
</FormulaList><VariableList><V id=\"1\" name=\"M\" path=\"S|M\" value=\"3\"><ScaleFactor>2</ScaleFactor><RHSFormulaList><RHSFormula id=\"11\"/></RHSFormulaList></V></VariableList>\
<ParameterList><P id=\"2\" name=\"k\" path=\"S|k\" value=\"0.5\"/><P id=\"3\" name=\"T\" path=\"S|T\" formulaId=\"16\"/></ParameterList>\
<EventList><Event id=\"5\" conditionFormulaId=\"12\"><AssignmentList><Assignment objectId=\"1\" newFormulaId=\"14\" useAsValue=\"1\"/></AssignmentList></Event>\
<Event id=\"6\" conditionFormulaId=\"13\" oneTime=\"1\"><AssignmentList><Assignment objectId=\"1\" newFormulaId=\"14\" useAsValue=\"1\"/></AssignmentList></Event>\
<Event id=\"7\" conditionFormulaId=\"15\" oneTime=\"1\"/></EventList>\
<OutputSchema><OutputIntervalList><OutputInterval><StartTime>0</StartTime><EndTime>8</EndTime><NumberOfTimePoints>5</NumberOfTimePoints></OutputInterval><OutputInterval><StartTime>9</StartTime><EndTime>9</EndTime><NumberOfTimePoints>1</NumberOfTimePoints></OutputInterval></OutputIntervalList></OutputSchema></Simulation>";

#[test]
fn conditions_conditionals_and_signs_are_written_as_the_genuine_library_reads_them() {
    let model = pbpk::read::bytes(EVERYTHING.as_bytes(), &Default::default()).unwrap();
    let again = written(&model);
    let times = model.grid.sorted(Default::default());
    assert_eq!(again.grid.sorted(Default::default()), times);
    let (a, b) = (common::instance(model), common::instance(again));
    let (a, b) = (
        common::run(&a, &RunOptions::default()),
        common::run(&b, &RunOptions::default()),
    );
    assert_eq!(a.values, b.values);
}

/// One mutation for each item of the list: the checker refuses every one.
#[test]
fn the_checker_refuses_one_mutation_of_each_item() {
    let model = pbpk::read::bytes(EVERYTHING.as_bytes(), &Default::default()).unwrap();
    let good = text(&model).unwrap();
    acceptance::check(&good).unwrap();
    let cut = |from: &str, to: &str| {
        let (a, b) = (good.find(from).unwrap(), good.find(to).unwrap() + to.len());
        format!("{}{}", &good[..a], &good[b..])
    };
    let put = |old: &str, new: &str| {
        assert!(good.contains(old), "'{old}' is not in {good}");
        good.replacen(old, new, 1)
    };
    let equation = |new: &str| {
        let (a, b) = (
            good.find("<Equation>").unwrap(),
            good.find("</Equation>").unwrap(),
        );
        format!("{}<Equation>{new}{}", &good[..a], &good[b..])
    };
    let mutants = [
        put(
            "</VariableList>",
            "</VariableList><ObserverList>\n</ObserverList>",
        ),
        put("<RHSFormulaList>", "<RHSFormulaList><!-- why -->"),
        cut("<FormulaList>", "</FormulaList>"),
        cut("<OutputSchema>", "</OutputSchema>"),
        cut("<Solver ", "</Solver>"),
        put("<MxStep id=", "<Steps id="),
        put("<ScaleFactor>2.0", "<ScaleFactor>0"),
        put("<P id=\"2\"", "<P id=\"3\""),
        put("newFormulaId=\"", "newFormulaId=\"9"),
        put("alias=\"M\"", "alias=\"M.x\""),
        put("alias=\"k\"", "alias=\"exp\""),
        put("alias=\"k\"", "alias=\"M\""),
        equation("M&gt;2 ? 1 : M&gt;1 ? 2 : 3"),
        equation("2*-1"),
        equation("2^-1"),
        equation("M - -k"),
        equation("+M"),
        equation("(+M)"),
        equation("M==2"),
        equation("!(M&gt;2)"),
        equation("M&gt;2 &amp;&amp; k&gt;1"),
        equation(""),
        equation("ABS(M)"),
        equation("MIN(M;k;2)"),
        equation("2*NOT(M)"),
        put("=1.0</Equation>", "*1.0</Equation>"),
        put("<Point x=\"1.0\"", "<Point x=\"0.0\""),
        put("<Point x=\"1.0\" y=\"2.0\" restartSolver=\"0\"/>", ""),
        put("<NumberOfTimePoints>5", "<NumberOfTimePoints>1"),
        put("<EndTime>8.0", "<EndTime>-8.0"),
        put("=1.0</Equation>", "</Equation>"),
        equation("M&gt;2 ? k&gt;1 ? 1 : 2 : 3"),
        equation("M^-k"),
        equation("MIN(+M;2)"),
        equation("XOR(M;k)"),
        equation("M XOR k"),
        equation("FLOOR(M)"),
        put(
            "<RHSFormulaList><RHSFormula",
            "<RHSFormulaList> </RHSFormulaList><RHSFormulaList><RHSFormula",
        ),
        put("objectId=\"1\"", "objectId=\"77\""),
        put("t-M&gt;=0.0", "t&gt;=M"),
    ];
    for mutant in &mutants {
        assert_ne!(mutant, &good);
        assert!(acceptance::check(mutant).is_err(), "accepted: {mutant}");
    }
}
