//! SBML: what is written, checked with an evaluator of our own, and what is refused.

use crate::common;
use pbpk::export::{self, ExportError};
use pbpk::model::Model;
use std::collections::HashMap;

fn sbml(model: &Model, values: Option<&[f64]>) -> Result<String, ExportError> {
    let mut text = Vec::new();
    export::sbml(model, values, &mut text)?;
    Ok(String::from_utf8(text).unwrap())
}

/// An element of a document that is known to be well-formed.
#[derive(Debug, Default)]
struct Element {
    name: String,
    attributes: HashMap<String, String>,
    children: Vec<Element>,
    /// Texts before each child and after the last.
    texts: Vec<String>,
}

impl Element {
    fn parse(text: &str) -> Element {
        let mut open = vec![Element {
            texts: vec![String::new()],
            ..Element::default()
        }];
        for piece in text.split('<').skip(1) {
            let (tag, after) = piece.split_once('>').unwrap();
            if tag.starts_with('?') {
                continue;
            }
            if let Some(name) = tag.strip_prefix('/') {
                let done = open.pop().unwrap();
                assert_eq!(done.name, name);
                open.last_mut().unwrap().children.push(done);
            } else {
                let (tag, empty) = tag.strip_suffix('/').map_or((tag, false), |t| (t, true));
                let (name, rest) = tag.split_once(' ').unwrap_or((tag, ""));
                let mut attributes = HashMap::new();
                for pair in rest.split("\" ").filter(|p| !p.is_empty()) {
                    let (key, value) = pair.split_once("=\"").unwrap();
                    attributes.insert(
                        key.trim().to_owned(),
                        value.trim_end_matches('"').to_owned(),
                    );
                }
                let element = Element {
                    name: name.to_owned(),
                    attributes,
                    ..Element::default()
                };
                if empty {
                    open.last_mut().unwrap().children.push(element);
                } else {
                    open.push(element);
                    open.last_mut().unwrap().texts.push(after.to_owned());
                    continue;
                }
            }
            open.last_mut().unwrap().texts.push(after.to_owned());
        }
        assert_eq!(open.len(), 1);
        open.pop().unwrap().children.pop().unwrap()
    }

    fn find<'a>(&'a self, name: &str, out: &mut Vec<&'a Element>) {
        if self.name == name {
            out.push(self);
        }
        for child in &self.children {
            child.find(name, out);
        }
    }

    fn all(&self, name: &str) -> Vec<&Element> {
        let mut out = Vec::new();
        self.find(name, &mut out);
        out
    }
}

/// Values of ids at a time; assignment rules are followed, truths are 1 and 0.
struct World<'a> {
    time: f64,
    values: HashMap<&'a str, f64>,
    rules: HashMap<&'a str, &'a Element>,
}

impl World<'_> {
    fn symbol(&self, id: &str) -> f64 {
        match self.rules.get(id) {
            Some(math) => self.value(math),
            None => self.values[id],
        }
    }

    fn value(&self, e: &Element) -> f64 {
        let arguments = || e.children.iter().skip(1).map(|c| self.value(c));
        match e.name.as_str() {
            "math" => self.value(&e.children[0]),
            "cn" if e.children.is_empty() => e.texts[0].parse().unwrap(),
            "cn" => format!("{}e{}", e.texts[0], e.texts[1]).parse().unwrap(),
            "ci" => self.symbol(&e.texts[0]),
            "csymbol" => self.time,
            "infinity" => f64::INFINITY,
            "notanumber" => f64::NAN,
            "piecewise" => {
                for part in &e.children {
                    if part.name == "otherwise" || self.value(&part.children[1]) == 1.0 {
                        return self.value(&part.children[0]);
                    }
                }
                f64::NAN
            }
            "apply" => {
                let v: Vec<f64> = match e.children[0].name.as_str() {
                    "log" => vec![self.value(&e.children[2])],
                    _ => arguments().collect(),
                };
                let truth = |b: bool| if b { 1.0 } else { 0.0 };
                match e.children[0].name.as_str() {
                    "plus" => v.iter().sum(),
                    "minus" if v.len() == 1 => -v[0],
                    "minus" => v[0] - v[1],
                    "times" => v.iter().product(),
                    "divide" => v[0] / v[1],
                    "power" => v[0].powf(v[1]),
                    "root" => v[0].sqrt(),
                    "exp" => v[0].exp(),
                    "ln" => v[0].ln(),
                    "log" => v[0].log10(),
                    "min" => v[0].min(v[1]),
                    "max" => v[0].max(v[1]),
                    "lt" => truth(v[0] < v[1]),
                    "leq" => truth(v[0] <= v[1]),
                    "gt" => truth(v[0] > v[1]),
                    "geq" => truth(v[0] >= v[1]),
                    "eq" => truth(v[0] == v[1]),
                    "neq" => truth(v[0] != v[1]),
                    "and" => truth(v.iter().all(|x| *x == 1.0)),
                    "or" => truth(v.contains(&1.0)),
                    "not" => truth(v[0] != 1.0),
                    other => panic!("{other}"),
                }
            }
            other => panic!("{other}"),
        }
    }
}

/// Rates of the document at its start values equal those of the compiled code, for models of either format,
/// with formulas or with numbers.
#[test]
fn rates_of_the_document_are_those_of_the_engine() {
    if crate::common::is_reference_absent() {
        return;
    }
    for file in [
        "pkml/pksim_simple_simulation.pkml",
        "pkml/pksim_S1_concentrBased.pkml",
        "pkml/pi_IR_model_doseResponse.pkml",
        "pkml/ospr_simple.pkml",
        "simmodel/POP_EHC_StartTime.xml",
        "simmodel/pH_Solubility_Table.xml",
        "simmodel/OralTable01.xml",
        "simmodel/12.0_Brockmoller2005_CPA.xml",
    ] {
        let model = common::load(file);
        let instance = common::instance(model.clone());
        let (mut engine, start) = pbpk::run::engine(&instance).unwrap();
        // Away from the start, where many states are zero, and after the first kinks of tables.
        let y: Vec<f64> = start
            .iter()
            .enumerate()
            .map(|(i, y)| y + 0.1 + 0.01 * i as f64)
            .collect();
        let time = 121.5;
        let mut rates = vec![0.0; y.len()];
        engine.rhs(time, &y, &mut rates);
        let states = instance.structure().states().to_vec();
        for values in [None, Some(instance.values())] {
            let text = sbml(&model, values).unwrap_or_else(|e| panic!("{file}: {e}"));
            let document = Element::parse(&text);
            let mut world = World {
                time,
                values: HashMap::new(),
                rules: HashMap::new(),
            };
            for p in document.all("parameter") {
                if let Some(value) = p.attributes.get("value") {
                    let value = value.to_lowercase().parse().unwrap();
                    world.values.insert(&p.attributes["id"], value);
                }
            }
            for rule in document.all("assignmentRule").into_iter() {
                world
                    .rules
                    .insert(&rule.attributes["variable"], &rule.children[0]);
            }
            let ids: Vec<String> = (0..model.quantities.len())
                .map(|q| format!("q{}", q + 1))
                .collect();
            if values.is_none() {
                // Initial assignments hold at the start; the numbers of the engine stand in for their results.
                for initial in document.all("initialAssignment") {
                    let id = &initial.attributes["symbol"];
                    let q: usize = id[1..].parse().unwrap();
                    world.values.insert(id, instance.values()[q - 1]);
                }
            }
            for (y, q) in y.iter().zip(&states) {
                world
                    .values
                    .insert(&ids[*q], y * model.quantities[*q].scale);
            }
            let largest = rates.iter().fold(0.0_f64, |m, r| m.max(r.abs()));
            let mut checked = 0;
            for rule in document.all("rateRule") {
                let q: usize = rule.attributes["variable"][1..].parse().unwrap();
                let state = states.iter().position(|s| *s == q - 1).unwrap();
                let found = world.value(&rule.children[0]) / model.quantities[q - 1].scale;
                let expected = rates[state];
                let allowed = 1e-9 * expected.abs() + 1e-12 * largest;
                assert!(
                    (found - expected).abs() <= allowed || (found.is_nan() && expected.is_nan()),
                    "{file}: {} is {found}, expected {expected}",
                    model.quantities[q - 1].path
                );
                checked += 1;
            }
            let with_rate = states
                .iter()
                .filter(|s| !model.quantities[**s].rhs.is_empty())
                .count();
            assert_eq!(checked, with_rate, "{file}");
        }
    }
}

/// A variable that is set once and for all by a trigger keeps no guard; paths are the names.
#[test]
fn a_bolus_is_an_event_with_a_time_trigger() {
    if crate::common::is_reference_absent() {
        return;
    }
    let model = common::load("pkml/pksim_simple_simulation.pkml");
    let document = Element::parse(&sbml(&model, None).unwrap());
    let events = document.all("event");
    assert_eq!(events.len(), 1);
    assert_eq!(events[0].all("geq").len(), 1);
    assert_eq!(events[0].all("eventAssignment").len(), 1);
    let names: Vec<_> = document
        .all("parameter")
        .iter()
        .filter_map(|p| p.attributes.get("name").cloned())
        .collect();
    assert_eq!(names.len(), model.quantities.len());
    assert!(names.iter().any(|n| n == "Organism|VenousBlood|Plasma|C1"));
}

/// `useAsValue=0` on a parameter: a rule that chooses by a mode the event sets.
#[test]
fn a_replaced_formula_becomes_a_choice() {
    if crate::common::is_reference_absent() {
        return;
    }
    let model = common::load("simmodel/POP_EHC_StartTime.xml");
    let replaced = model
        .events
        .iter()
        .flat_map(|e| &e.assignments)
        .filter(|a| !a.as_value)
        .count();
    assert!(replaced > 0);
    let text = sbml(&model, None).unwrap();
    let document = Element::parse(&text);
    let modes = document
        .all("parameter")
        .iter()
        .filter(|p| p.attributes["id"].starts_with("mode"))
        .count();
    assert!(modes > 0);
    assert!(text.contains("<ci>mode"));
}

#[test]
fn what_sbml_cannot_say_is_refused_by_name() {
    if crate::common::is_reference_absent() {
        return;
    }
    for (file, object, what) in [
        (
            "pkml/coreR_not_ok_sim.pkml",
            "addition",
            "fires again at every output time",
        ),
        (
            "simmodel/TestCrashSimultaneousEvents.xml",
            "S1|Organism|M1",
            "by one of itself",
        ),
        (
            "simmodel/SimModel4_ExampleInput04.xml",
            "event",
            "every output time",
        ),
    ] {
        let error = sbml(&common::load(file), None).unwrap_err();
        let text = error.to_string();
        assert!(
            text.contains(object) && text.contains(what),
            "{file}: {text}"
        );
    }
}
