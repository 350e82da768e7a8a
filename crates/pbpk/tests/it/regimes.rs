//! Formulas that constants decide on: the numbers are those of the genuine solver, releases 12.4.3 and 13-dev alike.

use crate::common::{instance, run};
use pbpk::run::RunOptions;

/// Every alias that a formula may list, with its position.
const ALIASES: [&str; 9] = ["Time", "k", "P", "Q", "M", "Z", "N", "ONE", "H"];

/// A model of the state M (M' = -0.3 M, 10 at the start), constants and an observer of this text, which lists these
/// aliases.
fn observer(text: &str, lists: &[&str]) -> String {
    let references = |names: &[&str]| -> String {
        let id = |name: &str| ALIASES.iter().position(|a| *a == name).unwrap();
        let one = |name: &&str| format!("<R alias=\"{name}\" id=\"{}\"/>", id(name));
        names.iter().map(one).collect()
    };
    let values = [
        ("k", 0.3),
        ("P", 0.7),
        ("Q", -3.0),
        ("Z", 0.0),
        ("N", -2.0),
        ("ONE", 1.0),
        ("H", 2.5),
    ];
    let parameters: String = values
        .iter()
        .map(|(name, value)| {
            let id = ALIASES.iter().position(|a| a == name).unwrap();
            format!("<P id=\"{id}\" name=\"{name}\" path=\"S|{name}\" value=\"{value}\"/>")
        })
        .collect();
    let text = text.replace('<', "&lt;").replace('>', "&gt;");
    format!(
        "<Simulation version=\"4\" objectPathDelimiter=\"|\"><FormulaList><ExplicitFormula id=\"20\"><Equation>-k*M</Equation>\
         <ReferenceList>{}</ReferenceList></ExplicitFormula><ExplicitFormula id=\"21\"><Equation>{text}</Equation>\
         <ReferenceList>{}</ReferenceList></ExplicitFormula></FormulaList><VariableList><V id=\"4\" name=\"M\" path=\"S|M\" \
         value=\"10\" persistable=\"1\"><RHSFormulaList><RHSFormula id=\"20\"/></RHSFormulaList></V></VariableList>\
         <ParameterList>{parameters}</ParameterList><ObserverList><Observer id=\"50\" name=\"o\" path=\"S|o\" persistable=\"1\" \
         formulaId=\"21\"/></ObserverList><OutputSchema><OutputIntervalList><OutputInterval><StartTime>0</StartTime>\
         <EndTime>2</EndTime><NumberOfTimePoints>3</NumberOfTimePoints></OutputInterval></OutputIntervalList></OutputSchema>\
         </Simulation>",
        references(&["k", "M"]),
        references(lists)
    )
}

fn values(text: &str, lists: &[&str]) -> Vec<f64> {
    let model = pbpk::read::bytes(observer(text, lists).as_bytes(), &Default::default()).unwrap();
    let results = run(&instance(model), &RunOptions::default());
    results.by_path("S|o").unwrap()
}

fn check(cases: &[(&str, [f64; 2])], lists: &[&str]) {
    for (text, expected) in cases {
        let found = values(text, lists);
        for (value, expected) in found.iter().zip(expected) {
            let same = value.is_nan() && expected.is_nan() || value == expected;
            assert!(same, "'{text}' of {lists:?} gives {found:?}");
        }
    }
}

#[test]
fn a_constant_that_makes_a_product_zero_may_be_logic_or_a_difference() {
    let cases = [
        ("M*(NOT(H))", [0.0; 2]),
        ("(P-P)/Time", [0.0; 2]),
        ("M*(P>H)*LN(Q)", [0.0; 2]),
        ("NOT(H)", [0.0; 2]),
        ("(Z AND M)*LN(Q)", [0.0; 2]),
        ("(Time>5 ? Z : Z)/Time", [0.0; 2]),
        ("NOT(H)+0*M", [0.0; 2]),
        ("Z*LN(Q)+M*0", [0.0; 2]),
    ];
    check(&cases, &ALIASES);
}

#[test]
fn constants_within_a_sum_are_multiplied_plainly() {
    let nan = [f64::NAN; 2];
    let cases = [
        ("Z*LN(Q)+M", nan),
        ("M+LN(Q)*Z", nan),
        ("Z/Z+M", nan),
        ("(P-P-Z)*LN(Q)*M", nan),
        ("SIN(Z)*LN(Q)*M", nan),
    ];
    check(&cases, &ALIASES);
    // As one product they are 0.
    check(&[("Z*LN(Q)", [0.0; 2]), ("LN(Q)*Z*M", [0.0; 2])], &ALIASES);
}

/// Infinities are compared by their difference where they are known before the run.
#[test]
fn constants_are_compared_by_their_difference() {
    let cases = [
        ("(1/Z)>=(1/Z)", [0.0; 2]),
        ("(1/Z)=(1/Z)", [0.0; 2]),
        ("1E400=1E400", [0.0; 2]),
        ("(0-1/Z)<(1/Z)", [1.0; 2]),
        ("LN(Q) ? M : 3", [3.0; 2]),
    ];
    check(&cases, &ALIASES);
    check(&[("(1/Z)>=(1/Z)", [1.0; 2])], &["Z"]);
}

#[test]
fn a_formula_that_lists_constants_alone_follows_the_rules_of_a_run() {
    let lists = ["P", "Q", "Z", "H", "ONE"];
    let alone = [
        ("P AND Q", [1.0; 2]),
        ("P OR Z", [1.0; 2]),
        ("NOT(H)+Z", [0.0; 2]),
        ("Z*LN(Q)+ONE", [1.0; 2]),
    ];
    check(&alone, &lists);
    let beside = [
        ("P AND Q", [0.0; 2]),
        ("P OR Z", [0.0; 2]),
        ("NOT(H)+Z", [1.0; 2]),
        ("Z*LN(Q)+ONE", [f64::NAN; 2]),
    ];
    check(&beside, &["P", "Q", "Z", "H", "ONE", "M"]);
}

/// A parameter that the user sets is no constant of the file any more.
#[test]
fn setting_a_constant_changes_its_rules() {
    let at = |text: &str, sets: &[(&str, f64)]| {
        let xml = observer(text, &ALIASES);
        let model = pbpk::read::bytes(xml.as_bytes(), &Default::default()).unwrap();
        let mut instance = instance(model);
        for (path, value) in sets {
            let position = pbpk::path::find_one(instance.structure().model(), path).unwrap();
            instance.set(position, *value).unwrap();
        }
        let results = run(&instance, &RunOptions::default());
        results.by_path("S|o").unwrap()[0]
    };
    assert_eq!(at("(P-P)/Time", &[]), 0.0);
    assert!(at("(P-P)/Time", &[("S|P", 0.7)]).is_nan());
    assert_eq!(at("M*(NOT(H))", &[("S|H", 0.0)]), 10.0);
    assert_eq!(at("P AND ONE", &[]), 0.0);
    assert_eq!(at("P AND ONE", &[("S|P", 2.5)]), 1.0);
}

#[test]
fn an_output_interval_that_ends_before_it_starts_is_refused() {
    let xml = observer("M", &["M"]).replace("<StartTime>0<", "<StartTime>6<");
    let error = pbpk::read::bytes(xml.as_bytes(), &Default::default()).unwrap_err();
    let text = error.to_string();
    assert!(
        text.contains("starts at 6 min") && text.contains("at 2 min"),
        "{text}"
    );
}
