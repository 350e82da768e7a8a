//! Steady states against values from algebra.

#![cfg(feature = "cli")]

use crate::cli::{folder, sim};

/// A' = r − a·A − c·A + d·B, B' = c·A − d·B, C' = a·A: with r = 2, a = 0.1, c = 0.05, d = 0.02 the first two end at
/// r/a = 20 and c/d·A = 50, and C grows for ever.
fn model() -> String {
    let formula = |id: usize, text: &str, uses: &[(&str, usize)]| {
        let uses: String = uses
            .iter()
            .map(|(alias, id)| format!("<R alias=\"{alias}\" id=\"{id}\"/>"))
            .collect();
        format!(
            "<ExplicitFormula id=\"{id}\"><Equation>{text}</Equation><ReferenceList>{uses}</ReferenceList></ExplicitFormula>"
        )
    };
    let (a, b) = (("A", 1), ("B", 2));
    let formulas = [
        formula(
            11,
            "r-a*A-c*A+d*B",
            &[a, b, ("r", 21), ("a", 22), ("c", 23), ("d", 24)],
        ),
        formula(12, "c*A-d*B", &[a, b, ("c", 23), ("d", 24)]),
        formula(13, "a*A", &[a, ("a", 22)]),
    ];
    let state = |id: usize, name: &str, rate: usize| {
        format!(
            "<V id=\"{id}\" name=\"{name}\" path=\"S|{name}\" value=\"0\"><ScaleFactor>1</ScaleFactor><RHSFormulaList><RHSFormula id=\"{rate}\"/></RHSFormulaList></V>"
        )
    };
    let numbers = [
        (21, "r", 2.0),
        (22, "a", 0.1),
        (23, "c", 0.05),
        (24, "d", 0.02),
        (31, "H0", 1e-10),
        (32, "HMin", 0.0),
        (33, "HMax", 0.0),
        (34, "AbsTol", 1e-9),
        (35, "RelTol", 1e-5),
        (36, "MxStep", 1e5),
        (37, "UseJacobian", 1.0),
        (38, "CheckForNegativeValues", 0.0),
    ];
    let parameter = |(id, name, value): &(usize, &str, f64)| {
        format!("<P id=\"{id}\" name=\"{name}\" path=\"S|{name}\" value=\"{value}\"/>")
    };
    let solver: String = numbers[4..]
        .iter()
        .map(|(id, name, _)| format!("<{name} id=\"{id}\"/>"))
        .collect();
    format!(
        "<Simulation version=\"4\" objectPathDelimiter=\"|\"><FormulaList>{}</FormulaList><VariableList>{}{}{}</VariableList>\
         <ParameterList>{}</ParameterList><Solver>{solver}</Solver><OutputSchema><OutputIntervalList><OutputInterval>\
         <StartTime>0</StartTime><EndTime>60</EndTime><NumberOfTimePoints>7</NumberOfTimePoints>\
         </OutputInterval></OutputIntervalList></OutputSchema></Simulation>",
        formulas.concat(),
        state(1, "A", 11),
        state(2, "B", 12),
        state(3, "C", 13),
        numbers.iter().map(parameter).collect::<String>()
    )
}

#[test]
fn steady_states_are_those_of_algebra() {
    let root = folder("steady");
    let file = root.join("model.xml");
    std::fs::write(&file, model()).unwrap();
    let file = file.display().to_string();
    let table = root.join("steady.csv").display().to_string();
    for (rate, a) in [("2", 20.0), ("0.5", 5.0)] {
        let set = format!("S|r={rate}");
        let done = sim(&[
            "steady", &file, "--param", &set, "--ignore", "S|C", "--csv", &table,
        ]);
        assert_eq!(done.code, 0, "{}", done.err);
        let text = std::fs::read_to_string(&table).unwrap();
        let values: Vec<f64> = text
            .lines()
            .skip(1)
            .map(|l| l.rsplit(',').next().unwrap().parse().unwrap())
            .collect();
        for (found, expected) in values.iter().zip([a, 2.5 * a]) {
            assert!((found - expected).abs() < 2e-6 * expected, "{text}");
        }
    }
    let shown = sim(&["steady", &file, "--ignore", "S|C"]);
    assert!(shown.out.starts_with("steady after "), "{}", shown.out);
    std::fs::remove_dir_all(root).unwrap();
}

/// The file's longest step of an hour does not bound a search over years: with it the steps would run out on the way.
#[test]
fn a_long_search_takes_long_steps() {
    let root = folder("long");
    let file = root.join("model.xml");
    // Slower by a thousand: the end is reached after months.
    let slow = model()
        .replace(
            "name=\"HMax\" path=\"S|HMax\" value=\"0\"",
            "name=\"HMax\" path=\"S|HMax\" value=\"60\"",
        )
        .replace(
            "path=\"S|MxStep\" value=\"100000\"",
            "path=\"S|MxStep\" value=\"3000\"",
        );
    assert!(slow.contains("value=\"60\"") && slow.contains("value=\"3000\""));
    std::fs::write(&file, slow).unwrap();
    let file = file.display().to_string();
    let words = [
        "steady",
        &file,
        "--ignore",
        "S|C",
        "--json",
        "--param",
        "S|a=0.0001",
        "--param",
        "S|r=0.002",
    ];
    let done = sim(&words);
    assert_eq!(done.code, 0, "{}", done.err);
    let json: serde_json::Value = serde_json::from_str(&done.out).unwrap();
    for (state, expected) in [(0, 20.0), (1, 50.0)] {
        let found = json["states"][state]["steady"].as_f64().unwrap();
        assert!((found - expected).abs() < 2e-6 * expected, "{json}");
    }
    assert!(json["time_min"].as_f64().unwrap() > 1e5, "{json}");
    std::fs::remove_dir_all(root).unwrap();
}

#[test]
fn what_never_settles_is_named() {
    let root = folder("unsteady");
    let file = root.join("model.xml");
    std::fs::write(&file, model()).unwrap();
    let file = file.display().to_string();
    let growing = sim(&["steady", &file, "--until", "1e5"]);
    assert_eq!(growing.code, 1);
    assert!(
        growing.err.contains("1 states still change") && growing.err.contains("S|C"),
        "{}",
        growing.err
    );
    for (words, part) in [
        (["--change", "0"], "--change must be"),
        (["--until", "inf"], "--until must be"),
        (["--times", "3"], "--until says how long"),
        (["--ignore", "S|Q"], "S|Q"),
    ] {
        let refused = sim(&[&["steady", &file], words.as_slice()].concat());
        assert_eq!(refused.code, 2, "{words:?}");
        assert!(refused.err.contains(part), "{words:?}: {}", refused.err);
    }
    std::fs::remove_dir_all(root).unwrap();
}
