//! Parameters of individuals that follow the time: curves against the solution in closed form, and tables that make no
//! sense.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use pbpk::compile::{Instance, Structure};
use pbpk::population::{AgeingTables, Population, PopulationPlan, run_chunk};
use pbpk::read;
use pbpk::run::{Results, RunOptions};
use pbpk::watch::Interrupt;

/// M' = -k·w·M from 10, and an observer of k.
const MODEL: &str = "<Simulation version=\"4\" objectPathDelimiter=\"|\">\
    <VariableList><V id=\"1\" name=\"M\" path=\"S|M\" value=\"10\"><RHSFormulaList><RHSFormula id=\"8\"/></RHSFormulaList></V></VariableList>\
    <ParameterList><P id=\"2\" name=\"k\" path=\"S|k\" value=\"0.2\"/><P id=\"3\" name=\"w\" path=\"S|w\" value=\"1\"/><P id=\"4\" name=\"AbsTol\" path=\"AbsTol\" value=\"1e-12\"/></ParameterList>\
    <ObserverList><Observer id=\"5\" name=\"now\" path=\"S|now\" formulaId=\"9\"/></ObserverList>\
    <FormulaList><ExplicitFormula id=\"8\"><Equation>-k*w*M</Equation><ReferenceList><R alias=\"k\" id=\"2\"/><R alias=\"w\" id=\"3\"/><R alias=\"M\" id=\"1\"/></ReferenceList></ExplicitFormula>\
    <ExplicitFormula id=\"9\"><Equation>k</Equation><ReferenceList><R alias=\"k\" id=\"2\"/></ReferenceList></ExplicitFormula></FormulaList>\
    <OutputSchema><OutputTimeList><OutputTime>0</OutputTime><OutputTime>5</OutputTime><OutputTime>10</OutputTime><OutputTime>20</OutputTime></OutputTimeList></OutputSchema></Simulation>";

const PEOPLE: &str = "IndividualId,S|k,S|w\n1,0.9,1\n2,0.05,1\n4,0.9,2\n";
/// Rows in no order; the person 7 is nobody.
const TABLE: &str = "IndividualId,ParameterPath,Time,Value\n4,k,3,0.1\n1,S|k,10,0.3\n1,S|k,0,0.1\n7,S|k,0,5\n1,none,0,1\n";

fn base() -> Instance {
    let model = read::bytes(MODEL.as_bytes(), &read::ReadOptions::default()).unwrap();
    let outputs = model.outputs();
    Instance::new(&Structure::new(Arc::new(model), outputs).unwrap())
}

fn people() -> Population {
    Population::read(&mut PEOPLE.as_bytes()).unwrap()
}

fn ageing(text: &str) -> Result<AgeingTables, String> {
    AgeingTables::read(&mut text.as_bytes()).map_err(|e| e.to_string())
}

fn ran(plan: &PopulationPlan, rows: std::ops::Range<usize>) -> Vec<(i64, Results)> {
    let options = RunOptions {
        rel_tol: Some(1e-9),
        ..RunOptions::default()
    };
    let mut all = Vec::new();
    run_chunk(plan, &people(), rows, &options, |outcome| {
        all.push((outcome.id, outcome.result.unwrap()));
    })
    .unwrap();
    all
}

#[test]
fn curves_are_those_of_the_closed_form() {
    let (mut plan, unmatched) = PopulationPlan::new(base(), &people()).unwrap();
    assert!(unmatched.is_empty());
    assert_eq!(plan.age(&ageing(TABLE).unwrap()).unwrap(), ["none"]);
    // The area under k from 0, and k itself: a table with a kink at 10, a value of the population, a table of one
    // point.
    let first = |t: f64| {
        if t < 10.0 {
            0.1 * t + 0.01 * t * t
        } else {
            2.0 + 0.3 * (t - 10.0)
        }
    };
    let area = |id: i64, t: f64| match id {
        1 => (first(t), (0.1 + 0.02 * t).min(0.3)),
        2 => (0.05 * t, 0.05),
        _ => (2.0 * 0.1 * t, 0.1),
    };
    let all = ran(&plan, 0..3);
    assert_eq!(all.iter().map(|a| a.0).collect::<Vec<_>>(), [1, 2, 4]);
    for (id, results) in &all {
        let (m, k) = (
            results.by_path("S|M").unwrap(),
            results.by_path("S|now").unwrap(),
        );
        for ((t, m), k) in results.times.iter().zip(m).zip(k) {
            let (area, now) = area(*id, *t);
            let exact = 10.0 * (-area).exp();
            assert!(
                (m / exact - 1.0).abs() < 1e-6,
                "{id} at {t}: {m} for {exact}"
            );
            assert!((k - now).abs() < 1e-14, "{id} at {t}: {k} for {now}");
        }
    }
    // Each is what it is alone; at the start a table has its value there.
    for (row, whole) in all.iter().enumerate() {
        assert_eq!(&ran(&plan, row..row + 1)[0].1.values, &whole.1.values);
    }
    let q = base()
        .structure()
        .model()
        .quantities
        .iter()
        .position(|q| q.path == "S|k");
    let person = plan.individual(&people(), 0).unwrap();
    assert_eq!(person.value(q.unwrap()), Some(0.1));
}

#[test]
fn what_was_set_in_the_base_stays_where_no_table_and_no_column_says_otherwise() {
    let mut base = base();
    let at = |path: &str| {
        let mut quantities = base.structure().model().quantities.iter();
        quantities.position(|q| q.path == path).unwrap()
    };
    let (m, k) = (at("S|M"), at("S|k"));
    base.set(m, 40.0).unwrap();
    base.set(k, 3.0).unwrap();
    let (mut plan, _) = PopulationPlan::new(base, &people()).unwrap();
    let _ = plan.age(&ageing(TABLE).unwrap()).unwrap();
    let first = &ran(&plan, 0..1)[0].1;
    let m = first.by_path("S|M").unwrap();
    assert!(
        (m[1] / (40.0 * (-0.75_f64).exp()) - 1.0).abs() < 1e-6,
        "{m:?}"
    );
}

#[test]
fn tables_that_make_no_sense_are_refused() {
    let head = "IndividualId,ParameterPath,Time,Value\n";
    for (text, word) in [
        (
            "IndividualId,ParameterPath,Time\n1,S|k,0\n".to_owned(),
            "no column 'Value'",
        ),
        (
            format!("{head}1,S|k,0,much\n"),
            "row 1, column 'Value': 'much'",
        ),
        (
            format!("{head}1,S|k,0,1\n1,S|k,inf,1\n"),
            "row 2, column 'Time'",
        ),
        (format!("{head}1,S|k,0,NaN\n"), "column 'Value'"),
        (format!("{head}x,S|k,0,1\n"), "column 'IndividualId'"),
        (
            format!("{head}3,S|k,5,1\n3,S|k,5,2\n"),
            "individual 3, 'S|k'",
        ),
    ] {
        let refused = ageing(&text).unwrap_err();
        assert!(refused.contains(word), "{refused}");
    }
    // One parameter by both of its names.
    let (mut plan, _) = PopulationPlan::new(base(), &people()).unwrap();
    let twice = ageing(&format!("{head}1,S|k,0,1\n1,k,0,2\n")).unwrap();
    let refused = plan.age(&twice).unwrap_err().to_string();
    assert!(
        refused.contains("S|k") && refused.contains("twice"),
        "{refused}"
    );
    for path in ["S|M", "S|now"] {
        let (mut plan, _) = PopulationPlan::new(base(), &people()).unwrap();
        let table = ageing(&format!("{head}1,{path},0,1\n")).unwrap();
        let refused = plan.age(&table).unwrap_err().to_string();
        assert!(
            refused.contains(path) && refused.contains("ageing"),
            "{refused}"
        );
    }
}

#[test]
fn the_compilation_of_an_individual_can_be_ended() {
    let (mut plan, _) = PopulationPlan::new(base(), &people()).unwrap();
    let _ = plan.age(&ageing(TABLE).unwrap()).unwrap();
    let asked = AtomicUsize::new(0);
    let ask = || (asked.fetch_add(1, Relaxed) >= 1).then_some(Interrupt::Deadline);
    let options = RunOptions {
        interrupt: Some(&ask),
        ..RunOptions::default()
    };
    let ended = run_chunk(&plan, &people(), 0..3, &options, |_| {
        panic!("nobody is done")
    });
    assert_eq!(ended, Err(Interrupt::Deadline));
    assert_eq!(asked.into_inner(), 2);
}

#[cfg(feature = "cli")]
#[test]
fn the_command_takes_the_table() {
    let root = crate::cli::folder("ageing");
    let file = |name: &str, text: &str| {
        let file = root.join(name);
        std::fs::write(&file, text).unwrap();
        file.display().to_string()
    };
    let (model, people, table) = (
        file("m.xml", MODEL),
        file("people.csv", PEOPLE),
        file("ageing.csv", TABLE),
    );
    let cache = root.join("kept").display().to_string();
    let go = |out: &str, extra: &[&str]| {
        let out = root.join(out).display().to_string();
        let words = [
            "population",
            &model,
            &people,
            "--out",
            &out,
            "--cache",
            &cache,
        ];
        crate::cli::sim(&[&words, extra].concat())
    };
    let aged = go(
        "aged",
        &["--ageing", &table, "--threads", "2", "--chunk", "1"],
    );
    assert_eq!(aged.code, 0, "{}", aged.err);
    for warning in [
        "rows of 1 individuals who are not in the population",
        "no 'none'",
    ] {
        assert!(aged.err.contains(warning), "{}", aged.err);
    }
    let rows = |out: &str| std::fs::read_to_string(root.join(out).join("results.csv")).unwrap();
    let cell = |text: &str, start: &str| -> f64 {
        let row = text.lines().find(|l| l.starts_with(start)).unwrap();
        row.split(',').nth(2).unwrap().parse().unwrap()
    };
    let found = cell(&rows("aged"), "1,10,");
    assert!(
        (found / (10.0 * (-2.0_f64).exp()) - 1.0).abs() < 1e-3,
        "{found}"
    );
    // Without the table the same folder is that of another run, and the cache has nothing of it but the person without
    // one.
    assert_eq!(go("aged", &["--chunk", "1"]).code, 2);
    let plain = go("plain", &["--chunk", "1"]);
    assert!(
        plain.err.contains("1 parts taken from the cache"),
        "{}",
        plain.err
    );
    let found = cell(&rows("plain"), "1,10,");
    assert!(
        (found / (10.0 * (-9.0_f64).exp()) - 1.0).abs() < 1e-3,
        "{found}"
    );
    // The English of the suite's own functions works too.
    assert_eq!(go("aging", &["--aging", &table]).code, 0);
    let missing = go("missing", &["--ageing", "no such file"]);
    assert!(
        missing.code == 1 && missing.err.contains("no such file"),
        "{}",
        missing.err
    );
    std::fs::remove_dir_all(&root).unwrap();
}
