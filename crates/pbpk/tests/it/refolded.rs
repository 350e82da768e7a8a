//! Individuals of populations are folded by code that was made once for all of them: the same bits as formula by
//! formula, in every model, also with zeros where rules look at them.

use std::fmt::Write as _;
use std::path::PathBuf;
use std::sync::Arc;

use crate::common;
use pbpk::compile::{Instance, Structure};
use pbpk::model::{QuantityKind, ValueSource};
use pbpk::population::{Population, PopulationPlan, run_chunk};
use pbpk::run::{RunOptions, run};

/// Parameters of a population at most.
const COLUMNS_MAX: usize = 300;

/// A population over parameters that are numbers in the file: a little more or less of each, then of every third 0, and
/// a number that is none of the file's where that is 0.
fn people(base: &Instance) -> Option<Population> {
    let quantities = base.structure().model().quantities.iter().enumerate();
    let mut names = std::collections::HashSet::new();
    let varied = quantities.filter(|(_, q)| {
        let number = matches!(q.source, ValueSource::Constant(v) if v.is_finite());
        number
            && q.kind == QuantityKind::Parameter
            && q.rhs.is_empty()
            && q.path.contains('|')
            && !q.path.contains(['"', '\n', '['])
            && names.insert(q.path.as_str())
    });
    let varied: Vec<_> = varied.take(COLUMNS_MAX).collect();
    if varied.is_empty() {
        return None;
    }
    let mut text = "IndividualId".to_owned();
    varied
        .iter()
        .for_each(|(_, q)| write!(text, ",\"{}\"", q.path).unwrap());
    for row in 0..4_usize {
        write!(text, "\n{row}").unwrap();
        for (i, (q, _)) in varied.iter().enumerate() {
            let value = base.values()[*q];
            let value = match row {
                0 => value,
                1 | 2 => value * (1.0 + 0.01 * (i % 5) as f64) * if row == 1 { 1.0 } else { 0.98 },
                _ if i % 3 == 0 => 0.0,
                _ => value,
            };
            write!(text, ",{value}").unwrap();
        }
    }
    Some(Population::read(&mut text.as_bytes()).unwrap())
}

/// Both ways, for all individuals; gives how many there were.
fn compare(name: &str, base: &Instance) -> usize {
    let Some(people) = people(base) else {
        return 0;
    };
    let (plan, _) = PopulationPlan::new(base.clone(), &people).unwrap();
    let options = RunOptions::default();
    let mut row = 0;
    let bits = |values: &[f64]| values.iter().map(|v| v.to_bits()).collect::<Vec<_>>();
    run_chunk(&plan, &people, 0..people.len(), &options, |outcome| {
        let single = plan.individual(&people, row).map_err(|e| e.to_string());
        let single = single.and_then(|i| run(&i, &options).map_err(|e| e.error.to_string()));
        match (outcome.result, single) {
            (Ok(a), Ok(b)) => {
                assert_eq!(bits(&a.times), bits(&b.times), "{name}, row {row}");
                assert!(bits(&a.values) == bits(&b.values), "{name}, row {row}");
            }
            (a, b) => assert_eq!(a.err(), b.err(), "{name}, row {row}"),
        }
        row += 1;
    })
    .unwrap();
    row
}

#[test]
fn individuals_of_every_model_are_those_of_single_runs() {
    if crate::common::is_reference_absent() {
        return;
    }
    let folders = ["pkml", "simmodel"].map(common::data);
    let files = folders.iter().flat_map(|f| std::fs::read_dir(f).unwrap());
    let mut files: Vec<PathBuf> = files.map(|f| f.unwrap().path()).collect();
    files.sort();
    let mut compared = 0;
    for file in files {
        let Ok(model) = pbpk::read::file(&file, &Default::default()) else {
            continue;
        };
        let outputs = model.outputs();
        let Ok(structure) = Structure::new(Arc::new(model), outputs) else {
            continue;
        };
        compared += compare(&file.display().to_string(), &Instance::new(&structure));
    }
    assert!(compared >= 80, "{compared}");
}

/// A model of parameters A, B, C and the constant K, of parameters with these formulas, of as many that are such a
/// parameter times 0, and of an observer for each.
fn with_formulas(texts: &[&str]) -> String {
    let mut text = "<Simulation version=\"4\" objectPathDelimiter=\"|\" xmlns=\"http://www.systems-biology.com\"><ParameterList>".to_owned();
    for (i, (name, value)) in [("A", 1.5), ("B", 0.5), ("C", 3.0), ("K", 0.0)]
        .iter()
        .enumerate()
    {
        write!(
            text,
            "<P id=\"{}\" name=\"{name}\" path=\"S|{name}\" value=\"{value}\"/>",
            i + 1
        )
        .unwrap();
    }
    let count = texts.len();
    for i in 0..2 * count {
        write!(
            text,
            "<P id=\"{}\" name=\"F{i}\" path=\"S|F{i}\" formulaId=\"{}\"/>",
            100 + i,
            1000 + i
        )
        .unwrap();
    }
    text.push_str("</ParameterList><ObserverList>");
    for i in 0..2 * count {
        write!(
            text,
            "<Observer id=\"{}\" name=\"O{i}\" path=\"S|O{i}\" formulaId=\"{}\"/>",
            300 + i,
            2000 + i
        )
        .unwrap();
    }
    text.push_str("</ObserverList><FormulaList>");
    let references = "<R alias=\"A\" id=\"1\"/><R alias=\"B\" id=\"2\"/><R alias=\"C\" id=\"3\"/><R alias=\"K\" id=\"4\"/>";
    for (i, formula) in texts.iter().enumerate() {
        let formula = formula.replace('<', "&lt;").replace('>', "&gt;");
        write!(text, "<ExplicitFormula id=\"{}\"><Equation>{formula}</Equation><ReferenceList>{references}</ReferenceList></ExplicitFormula>", 1000 + i).unwrap();
        // Of another formula and a constant 0.
        write!(text, "<ExplicitFormula id=\"{}\"><Equation>F*K+A</Equation><ReferenceList>{references}<R alias=\"F\" id=\"{}\"/></ReferenceList></ExplicitFormula>", 1000 + count + i, 100 + i).unwrap();
    }
    for i in 0..2 * count {
        write!(text, "<ExplicitFormula id=\"{}\"><Equation>F</Equation><ReferenceList><R alias=\"F\" id=\"{}\"/></ReferenceList></ExplicitFormula>", 2000 + i, 100 + i).unwrap();
    }
    text.push_str("</FormulaList><OutputSchema><OutputTimeList><OutputTime>0</OutputTime><OutputTime>1</OutputTime></OutputTimeList></OutputSchema></Simulation>");
    text
}

/// Formulas whose rules look at zeros, truths and not-a-number, of constants of the file (K), of parameters that are
/// set (A to C), and of other such formulas.
#[test]
fn formulas_with_rules_are_folded_alike() {
    let texts = [
        "A*B/C",
        "A*(B/0)",
        "0*(1/(A-A))",
        "(0/A)/(B-B)",
        "(0/(A-A))*C",
        "K/A*B",
        "K*A*B",
        "A*K",
        "0/A*B",
        "(0/K)/A",
        "A<B",
        "A=1 OR B",
        "NOT A",
        "NOT(A<B)",
        "MIN(A;B)",
        "MAX(A/(B-B);C)",
        "(A<B)?A:C",
        "K?A:B",
        "A^2",
        "A^B",
        "LN(A)+EXP(B)",
        "SQRT(A)-C",
        "(K<1)*A",
        "A AND K",
        "1*0*A/B",
        "C",
        "2",
        "K",
        "(A>0)?B/(A-A):C",
    ];
    let text = with_formulas(&texts);
    let model = pbpk::read::bytes(text.as_bytes(), &Default::default()).unwrap();
    let outputs = model.outputs();
    let base = Instance::new(&Structure::new(Arc::new(model), outputs).unwrap());
    let rows = [
        [1.5, 0.5, 3.0],
        [0.0, 0.5, 3.0],
        [1.0, 0.0, 0.0],
        [-1.0, 1.0, 2.0],
        [0.0, 0.0, 0.0],
        [1.0, 1.0, 1.0],
    ];
    let mut table = "IndividualId,S|A,S|B,S|C".to_owned();
    for (i, [a, b, c]) in rows.iter().enumerate() {
        write!(table, "\n{i},{a},{b},{c}").unwrap();
    }
    let people = Population::read(&mut table.as_bytes()).unwrap();
    let (plan, unmatched) = PopulationPlan::new(base, &people).unwrap();
    assert!(unmatched.is_empty());
    let options = RunOptions::default();
    let mut row = 0;
    run_chunk(&plan, &people, 0..rows.len(), &options, |outcome| {
        let single = run(&plan.individual(&people, row).unwrap(), &options).unwrap();
        let found = outcome.result.unwrap();
        assert_eq!(found.paths.len(), single.paths.len());
        for (i, path) in found.paths.iter().enumerate() {
            let bits = |r: &pbpk::run::Results| r.column(i).map(f64::to_bits).collect::<Vec<_>>();
            assert_eq!(bits(&found), bits(&single), "{path}, row {row}");
        }
        row += 1;
    })
    .unwrap();
    assert_eq!(row, rows.len());
}
