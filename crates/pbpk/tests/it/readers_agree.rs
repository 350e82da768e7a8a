//! The pkml reader against the same models restated as SimModel xml: every quantity has the same number.

use std::collections::HashMap;

use crate::common;
use pbpk::model::QuantityKind;

fn check(name: &str) {
    let pkml = common::instance(common::load(&format!("pkml/{name}.pkml")));
    let xml = common::instance(common::load(&format!("ref/{name}.simmodel.xml")));
    let (ours, theirs) = (pkml.structure().model(), xml.structure().model());
    let by_path: HashMap<&str, usize> = theirs
        .quantities
        .iter()
        .enumerate()
        .map(|(i, q)| (q.path.split_once('|').map_or("", |p| p.1), i))
        .collect();
    let mut differences = Vec::new();
    let mut compared = 0;
    for (i, q) in ours.quantities.iter().enumerate() {
        let Some(&j) = by_path.get(q.path.as_str()) else {
            differences.push(format!("{}: only in the pkml file", q.path));
            continue;
        };
        let (a, b) = (pkml.value(i).unwrap(), xml.value(j).unwrap());
        compared += 1;
        let same = a == b || (a.is_nan() && b.is_nan()) || (a - b).abs() <= 1e-12 * b.abs();
        let other = &theirs.quantities[j];
        if !same {
            differences.push(format!("{}: {a} instead of {b}", q.path));
        }
        if q.rhs.is_empty() != other.rhs.is_empty()
            || (q.kind == QuantityKind::Observer) != (other.kind == QuantityKind::Observer)
            || q.scale != other.scale
            || q.negative_allowed != other.negative_allowed && q.kind == QuantityKind::Variable
        {
            differences.push(format!("{}: {q:?} instead of {other:?}", q.path));
        }
    }
    assert!(
        compared + 8 >= theirs.quantities.len(),
        "{name}: {compared} of {} quantities",
        theirs.quantities.len()
    );
    assert!(
        differences.is_empty(),
        "{name}: {} differences\n{}",
        differences.len(),
        differences[..differences.len().min(30)].join("\n")
    );
    assert_eq!(ours.states().len(), theirs.states().len(), "{name}: states");
    assert_eq!(
        pkml.structure().jacobian_entries(),
        xml.structure().jacobian_entries(),
        "{name}: Jacobian entries"
    );
    assert_eq!(ours.events.len(), theirs.events.len(), "{name}: events");
    let times = |m: &pbpk::model::Model| m.grid.sorted(Default::default());
    assert_eq!(times(ours).len(), times(theirs).len(), "{name}: times");
}

#[test]
fn whole_body() {
    if crate::common::is_reference_absent() {
        return;
    }
    check("pksim_simple_simulation");
}

#[test]
fn skin() {
    if crate::common::is_reference_absent() {
        return;
    }
    check("coreR_not_ok_sim");
}

#[test]
fn two_compartments() {
    if crate::common::is_reference_absent() {
        return;
    }
    check("coreR_simple");
}

#[test]
fn rate_parameter_and_observers() {
    if crate::common::is_reference_absent() {
        return;
    }
    check("ospr_simple");
}

#[test]
fn insulin_dose_response() {
    if crate::common::is_reference_absent() {
        return;
    }
    check("pi_IR_model_doseResponse");
}

#[test]
fn insulin_step() {
    if crate::common::is_reference_absent() {
        return;
    }
    check("pi_StepIncrease_100nm");
}

#[test]
fn platelets() {
    if crate::common::is_reference_absent() {
        return;
    }
    check("pksim_S1_concentrBased");
}

#[test]
fn tiny_amounts() {
    if crate::common::is_reference_absent() {
        return;
    }
    check("simmodel_RemoveBelowAbsTolTest");
}
