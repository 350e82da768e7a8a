//! What is exported equals, element by element, the same models restated by the makers of the reference: ids are mapped
//! to paths, equations are compared as expressions, output times as lists.

use std::collections::BTreeMap;

use crate::common;
use crate::common::acceptance::{self, Element};
use pbpk::formula::{Expr, FormulaBody};

/// One document with its ids resolved.
struct Document {
    root: Element,
    /// Path without its first element, by id.
    paths: BTreeMap<String, String>,
    /// Canonical text, by id.
    formulas: BTreeMap<String, String>,
}

const SETTINGS: [&str; 8] = [
    "AbsTol",
    "RelTol",
    "H0",
    "HMin",
    "HMax",
    "MxStep",
    "UseJacobian",
    "CheckForNegativeValues",
];

fn numeric(text: &str) -> String {
    text.trim()
        .parse::<f64>()
        .map_or_else(|_| text.to_ascii_lowercase(), |v| format!("{v:e}"))
}

impl Document {
    fn new(text: &str) -> Self {
        let root = acceptance::parse(text).unwrap();
        let mut paths = BTreeMap::from([("0".to_owned(), "<time>".to_owned())]);
        for list in ["ParameterList", "VariableList", "ObserverList"] {
            for item in root.items(list) {
                let path = item.attribute("path").unwrap();
                let path = path.split_once('|').map_or(path, |(_, rest)| rest);
                paths.insert(item.attribute("id").unwrap().to_owned(), path.to_owned());
            }
        }
        let mut document = Self {
            root,
            paths,
            formulas: BTreeMap::new(),
        };
        let formulas = document.root.items("FormulaList").iter();
        document.formulas = formulas
            .map(|f| (f.attribute("id").unwrap().to_owned(), document.formula(f)))
            .collect();
        document
    }

    fn path(&self, id: Option<&str>) -> String {
        self.paths[id.unwrap()].clone()
    }

    /// A formula without ids: an expression over paths, or the numbers of a table.
    fn formula(&self, formula: &Element) -> String {
        if formula.name == "TableFormula" {
            let points = formula.items("PointList").iter().map(|p| {
                let of = |key| numeric(p.attribute(key).unwrap_or("0"));
                (of("x"), of("y"), of("restartSolver"))
            });
            let slope = formula.attribute("useDerivedValues").unwrap_or("1");
            return format!("table {slope} {:?}", points.collect::<Vec<_>>());
        }
        if formula.name != "ExplicitFormula" {
            let parts = formula.children.iter();
            let parts: Vec<_> = parts
                .map(|p| (&p.name, self.path(p.attribute("id"))))
                .collect();
            return format!("{} {parts:?}", formula.name);
        }
        let references = formula.items("ReferenceList").iter();
        let references: Vec<(String, String)> = references
            .map(|r| {
                let alias = r.attribute("alias").unwrap().to_owned();
                (alias, self.path(r.attribute("id")))
            })
            .collect();
        let aliases: Vec<String> = references.iter().map(|r| r.0.clone()).collect();
        let text = &formula.child("Equation").unwrap().text;
        let body = FormulaBody::parse(text, &aliases).unwrap_or_else(|e| panic!("{text}: {e}"));
        let volume = references.last().filter(|r| r.0 == "container_Volume");
        let volume = volume.filter(|r| self.is_one(&r.1)).is_some();
        // The makers left out the factor that turns a concentration into an amount where the volume is 1.
        let mut body = body.nodes;
        if volume {
            without_last_factor(&mut body, references.len() - 1);
        }
        let references = &references[..references.len() - usize::from(volume)];
        let nodes: Vec<String> = body.iter().map(|n| node(n, references)).collect();
        let mut used: Vec<&String> = references.iter().map(|r| &r.1).collect();
        used.sort();
        format!("{nodes:?} of {used:?}")
    }

    fn is_one(&self, path: &str) -> bool {
        let mut parameters = self.root.items("ParameterList").iter();
        let found = parameters.find(|p| self.path(p.attribute("id")) == path);
        found.and_then(|p| p.attribute("value")).map(numeric) == Some("1e0".to_owned())
    }

    fn formula_of(&self, id: Option<&str>) -> Option<String> {
        id.map(|id| self.formulas[id].clone())
    }

    /// Parameters, variables and observers by path, with all that is said of them.
    fn quantities(&self, list: &str) -> BTreeMap<String, Vec<String>> {
        let items = self.root.items(list).iter();
        let mut found = BTreeMap::new();
        for item in items {
            let path = self.path(item.attribute("id"));
            if SETTINGS.contains(&path.as_str())
                || SETTINGS.contains(&item.attribute("entityId").unwrap_or_default())
            {
                continue;
            }
            let get = |key: &str| item.attribute(key).unwrap_or_default().to_owned();
            let mut said = vec![
                get("name"),
                get("persistable"),
                item.attribute("value").map(numeric).unwrap_or_default(),
                format!("{:?}", self.formula_of(item.attribute("formulaId"))),
                format!(
                    "{:?}",
                    self.formula_of(item.attribute("initialValueFormulaId"))
                ),
                format!("{:?}", item.number("ScaleFactor")),
            ];
            if list == "ParameterList" {
                said.push(get("canBeVaried"));
            }
            if list == "VariableList" {
                said.push(get("negativeValuesAllowed"));
            }
            let rates = item.items("RHSFormulaList").iter();
            said.extend(rates.filter_map(|r| self.formula_of(r.attribute("id"))));
            assert!(found.insert(path, said).is_none());
        }
        found
    }

    fn events(&self) -> Vec<String> {
        let events = self.root.items("EventList").iter();
        events
            .map(|event| {
                let assignments = event.items("AssignmentList").iter().map(|a| {
                    (
                        self.path(a.attribute("objectId")),
                        self.formula_of(a.attribute("newFormulaId")),
                        a.attribute("useAsValue").unwrap().to_owned(),
                    )
                });
                format!(
                    "{:?} {:?} {:?}",
                    self.formula_of(event.attribute("conditionFormulaId")),
                    event.attribute("oneTime"),
                    assignments.collect::<Vec<_>>()
                )
            })
            .collect()
    }

    fn settings(&self) -> Vec<(&'static str, Option<String>)> {
        let solver = self.root.child("Solver").unwrap();
        let value = |name: &'static str| {
            let id = solver.child(name)?.attribute("id")?;
            let mut parameters = self.root.items("ParameterList").iter();
            let found = parameters.find(|p| p.attribute("id") == Some(id)).unwrap();
            found.attribute("value").map(numeric)
        };
        SETTINGS.into_iter().map(|s| (s, value(s))).collect()
    }
}

/// What a pkml file says of its parameters' `canBeVaried` and `persistable`, by path; left out it is 1 and 0.
fn flags(file: &str) -> BTreeMap<String, [String; 2]> {
    fn walk(element: &Element, path: &str, found: &mut BTreeMap<String, [String; 2]>) {
        let Some(name) = element.attribute("name") else {
            return;
        };
        let path = if path.is_empty() {
            name.to_owned()
        } else {
            format!("{path}|{name}")
        };
        if element.name.ends_with("Parameter") {
            let get = |key, default: &str| element.attribute(key).unwrap_or(default).to_owned();
            let info = element
                .child("Info")
                .and_then(|i| i.attribute("canBeVaried"));
            let varied = info.map_or_else(|| get("canBeVaried", "1"), str::to_owned);
            found.insert(path.clone(), [varied, get("persistable", "0")]);
        }
        for child in element.items("Children") {
            walk(child, &path, found);
        }
    }
    let text = std::fs::read_to_string(common::data(file)).unwrap();
    let document = acceptance::parse(text.trim_start_matches('\u{feff}')).unwrap();
    let model = document
        .child("Simulation")
        .and_then(|s| s.child("Model"))
        .unwrap();
    let mut found = BTreeMap::new();
    for child in model.child("Root").unwrap().items("Children") {
        walk(child, "", &mut found);
    }
    found
}

/// Takes the factor with this argument out of a product.
fn without_last_factor(nodes: &mut Vec<Expr>, argument: usize) {
    let is_it = |n: &Expr| matches!(n, Expr::Argument(a) if *a as usize == argument);
    let at = nodes.iter().position(is_it).unwrap();
    nodes.drain(at..at + 2);
    let moved = |i: u32| if i as usize > at { i - 2 } else { i };
    for node in nodes.iter_mut().skip(at) {
        *node = match *node {
            Expr::Unary(op, a) => Expr::Unary(op, moved(a)),
            Expr::Binary(op, a, b) => Expr::Binary(op, moved(a), moved(b)),
            Expr::Select(c, a, b) => Expr::Select(moved(c), moved(a), moved(b)),
            other => other,
        };
    }
}

fn node(node: &Expr, references: &[(String, String)]) -> String {
    match node {
        Expr::Argument(a) => references[*a as usize].1.clone(),
        other => format!("{other:?}"),
    }
}

fn compare(name: &str) {
    let file = format!("{name}.pkml");
    let model = common::load(&format!("pkml/{file}"));
    let mut text = Vec::new();
    pbpk::export::simmodel(&model, &mut text).unwrap();
    let ours = Document::new(&String::from_utf8(text).unwrap());
    let restated =
        std::fs::read_to_string(common::data(&format!("ref/{name}.simmodel.xml"))).unwrap();
    let theirs = Document::new(&restated);
    let flags = flags(&format!("pkml/{file}"));
    for list in ["ParameterList", "VariableList", "ObserverList"] {
        let (a, b) = (ours.quantities(list), theirs.quantities(list));
        assert!(a.keys().eq(b.keys()), "{name}: {list} has other members");
        for (path, said) in &a {
            let mut expected = b[path].clone();
            if list == "ParameterList" {
                // The makers let every parameter vary and print none; the file itself is the measure.
                let [varied, persistable] = &flags[path];
                assert_eq!(
                    [&expected[1], expected.last().unwrap()],
                    ["0", "1"],
                    "{name}: {path}"
                );
                expected[1].clone_from(persistable);
                expected.last_mut().unwrap().clone_from(varied);
            }
            assert_eq!(said, &expected, "{name}: {path}");
        }
    }
    assert_eq!(ours.events(), theirs.events(), "{name}");
    for (a, b) in ours.settings().into_iter().zip(theirs.settings()) {
        // The reference of the whole body ran with tighter tolerances than its file says.
        let number = |n: &str| Some(n.to_owned());
        match (name, a.0) {
            ("pksim_simple_simulation", "AbsTol") => {
                assert_eq!([a.1, b.1], [number("1e-9"), number("1e-10")]);
            }
            ("pksim_simple_simulation", "RelTol") => {
                assert_eq!([a.1, b.1], [number("1e-4"), number("1e-5")]);
            }
            _ => assert!(b.1.is_none() || a == b, "{name}: {a:?} instead of {b:?}"),
        }
    }
    let again = common::load(&format!("ref/{name}.simmodel.xml"));
    let times = [&model, &again].map(|m| m.grid.sorted(Default::default()));
    assert_eq!(times[0].len(), times[1].len(), "{name}");
    for (a, b) in times[0].iter().zip(&times[1]) {
        assert!(
            (a - b).abs() <= 4.0 * f64::EPSILON * b.abs(),
            "{name}: {a} instead of {b}"
        );
    }
}

#[test]
fn two_compartments() {
    if crate::common::is_reference_absent() {
        return;
    }
    compare("coreR_simple");
}

#[test]
fn rate_parameter_and_observers() {
    if crate::common::is_reference_absent() {
        return;
    }
    compare("ospr_simple");
}

#[test]
fn tiny_amounts() {
    if crate::common::is_reference_absent() {
        return;
    }
    compare("simmodel_RemoveBelowAbsTolTest");
}

#[test]
fn insulin_dose_response() {
    if crate::common::is_reference_absent() {
        return;
    }
    compare("pi_IR_model_doseResponse");
}

#[test]
fn insulin_step() {
    if crate::common::is_reference_absent() {
        return;
    }
    compare("pi_StepIncrease_100nm");
}

#[test]
fn platelets() {
    if crate::common::is_reference_absent() {
        return;
    }
    compare("pksim_S1_concentrBased");
}

#[test]
fn skin() {
    if crate::common::is_reference_absent() {
        return;
    }
    compare("coreR_not_ok_sim");
}

#[test]
fn whole_body() {
    if crate::common::is_reference_absent() {
        return;
    }
    compare("pksim_simple_simulation");
}
