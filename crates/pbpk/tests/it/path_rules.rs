//! Paths in transfer files: the four rules of the suite, and their order.

use crate::common::instance;
use pbpk::error::LoadError;

/// A transfer file with the root `Sim`: `Sim|Organ|V` = 2, `Sim|Organ|Sub|V` = 3, `Sim|V` = 5 and the parameter
/// `Sim|Organ|X`, which is the value behind `path`; `more` stands in the root, `children` below `Organ`.
fn file(path: &str, more: &str, children: &str) -> String {
    format!(
        r#"<SimulationTransfer version="16"><Simulation name="Sim"><Model><Root id="r" name="Sim">{more}<Children>
        <Container id="c" name="Organ"><Children><Parameter id="p1" name="V" value="2"/>
        <Container id="d" name="Sub"><Children><Parameter id="p2" name="V" value="3"/></Children></Container>
        <Parameter id="x" name="X" formula="f"/>{children}</Children></Container>
        <Parameter id="p3" name="V" value="5"/></Children></Root>
        <FormulaCache><Formulas><ExplicitFormula id="f" name="f" formula="a"><Paths><Path path="{path}" as="a"/></Paths>
        </ExplicitFormula></Formulas></FormulaCache></Model></Simulation></SimulationTransfer>"#
    )
}

fn load(text: &str) -> Result<f64, LoadError> {
    let instance = instance(pbpk::read::bytes(text.as_bytes(), &Default::default())?);
    let position = pbpk::path::find_one(instance.structure().model(), "Organ|X").unwrap();
    Ok(instance.value(position).unwrap())
}

fn value(path: &str) -> f64 {
    load(&file(path, "", "")).unwrap_or_else(|e| panic!("{path}: {e}"))
}

#[test]
fn a_path_that_leads_somewhere_is_relative_to_its_user() {
    assert_eq!(value("..|V"), 2.0);
    assert_eq!(value("..|Sub|V"), 3.0);
    assert_eq!(value("..|..|V"), 5.0);
}

#[test]
fn the_roots_own_parent_path_is_dropped() {
    let parent = r#"<ParentPath path="Lab|Models"/>"#;
    let at = |path: &str| load(&file(path, parent, ""));
    assert_eq!(at("Lab|Models|Sim|Organ|Sub|V").ok(), Some(3.0));
    assert_eq!(
        at("Lab|Models|X|..|V").ok(),
        Some(2.0),
        "and what is left may be named"
    );
    assert_eq!(at("Lab|Models|..|V").ok(), Some(2.0), "or relative");
    assert_eq!(at("Sim|V").ok(), Some(5.0));
    assert!(at("Lab|Sim|V").is_err(), "half of it is none");
}

#[test]
fn the_users_own_name_is_dropped() {
    assert_eq!(value("X|..|V"), 2.0);
    assert_eq!(value("X|..|Sub|V"), 3.0);
}

#[test]
fn the_roots_name_leads_to_the_root() {
    assert_eq!(value("Sim|V"), 5.0);
    assert_eq!(value("Sim|Organ|Sub|V"), 3.0);
}

/// A user named like the root: its own name goes first, and what lies below the user before both.
#[test]
fn the_rules_are_tried_in_their_order() {
    let user = |inner: &str| {
        let child = format!(
            r#"<Reaction id="y" name="Sim"><Children><Parameter id="q" name="W" value="7"/>{inner}</Children></Reaction>"#
        );
        file("..|Sim|R", "", &child)
    };
    let own = user(r#"<Parameter id="s" name="R" value="11"/>"#);
    assert_eq!(load(&own).ok(), Some(11.0));
    // A path that leads to a container leads to no quantity: the next rules are tried.
    let shadow = r#"<Container id="k" name="T"><Children><Container id="l" name="V"/></Children></Container>"#;
    assert!(load(&file("..|T|V", "", shadow)).is_err());
    // Of a parameter named like the root, the own name is dropped and not the root's taken.
    let named = file("..|V", "", "").replace(r#"name="X""#, r#"name="Sim""#);
    let named = named.replace(r#"path="..|V""#, r#"path="Sim|..|V""#);
    let model = pbpk::read::bytes(named.as_bytes(), &Default::default()).unwrap();
    let instance = instance(model);
    let position = pbpk::path::find_one(instance.structure().model(), "Organ|Sim").unwrap();
    assert_eq!(instance.value(position), Some(2.0));
}

#[test]
fn a_path_to_nothing_is_refused_with_its_user() {
    match load(&file("X|..|Nothing", "", "")) {
        Err(LoadError::UnresolvedPath { path, used_by }) => {
            assert_eq!(
                (path.as_str(), used_by.as_str()),
                ("X|..|Nothing", "Organ|X")
            );
        }
        other => panic!("{other:?}"),
    }
}
