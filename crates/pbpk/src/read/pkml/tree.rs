//! The entity tree of the model, as written.

use std::io::BufRead;

use crate::error::LoadError;
use crate::xml::{XmlElement, XmlScanner, flag, number};

/// What an entity of the tree is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum EntityKind {
    /// Container, neighbourhood, event group, application, molecule.
    Node,
    Parameter,
    Distributed,
    Amount,
    Reaction,
    Transport,
    Observer,
    Event,
    Assignment,
}

impl EntityKind {
    fn of(tag: &str) -> Option<Self> {
        Some(match tag {
            "Container"
            | "Neighborhood"
            | "EventGroup"
            | "Application"
            | "Root"
            | "InteractionContainer"
            | "MoleculeContainer" => Self::Node,
            "Parameter" => Self::Parameter,
            "DistributedParameter" => Self::Distributed,
            "MoleculeAmount" => Self::Amount,
            "Reaction" => Self::Reaction,
            "Transport" => Self::Transport,
            "Observer" => Self::Observer,
            "Event" => Self::Event,
            "EventAssignment" => Self::Assignment,
            _ => return None,
        })
    }
}

/// An entity; attributes that its tag does not have are empty.
#[derive(Debug, Clone)]
pub(super) struct TreeEntity {
    pub(super) line: u64,
    pub(super) kind: EntityKind,
    pub(super) parent: usize,
    pub(super) id: String,
    pub(super) name: String,
    pub(super) value: Option<f64>,
    pub(super) formula: Option<String>,
    pub(super) rhs_formula: Option<String>,
    pub(super) fixed: bool,
    pub(super) persistable: bool,
    pub(super) negative_allowed: Option<bool>,
    pub(super) can_be_varied: Option<bool>,
    pub(super) scale: Option<f64>,
    pub(super) dimension: Option<String>,
    pub(super) display_unit: Option<String>,
    pub(super) min: Option<f64>,
    pub(super) max: Option<f64>,
    pub(super) one_time: bool,
    pub(super) as_value: bool,
    /// Ids of amounts with their factors; of an assignment, the changed entity.
    pub(super) partners: Vec<(String, f64)>,
    /// An assignment's own path to what it changes.
    pub(super) object_path: Option<String>,
}

/// All entities, parents before children; the root is first and its own parent.
#[derive(Debug, Default)]
pub(super) struct EntityTree {
    pub(super) entities: Vec<TreeEntity>,
    /// The root's own parent path, as written.
    pub(super) root_path: Option<String>,
}

/// Most entities accepted.
const ENTITIES_MAX: usize = 4_000_000;

/// Reads the entity after its tag, and all below it.
pub(super) fn read(
    scanner: &mut XmlScanner<impl BufRead>,
    tree: &mut EntityTree,
) -> Result<(), LoadError> {
    entity(scanner, tree, EntityKind::Node, 0)
}

fn entity(
    scanner: &mut XmlScanner<impl BufRead>,
    tree: &mut EntityTree,
    kind: EntityKind,
    parent: usize,
) -> Result<(), LoadError> {
    let own = tree.entities.len();
    if own >= ENTITIES_MAX {
        return Err(LoadError::Limit {
            what: "entities in the model",
            limit: ENTITIES_MAX as u64,
            line: scanner.line(),
        });
    }
    tree.entities
        .push(attributes(&scanner.current()?, kind, parent)?);
    scanner.children(|s, name| match name.as_str() {
        "Children" => s.children(|s, tag| match EntityKind::of(&tag) {
            Some(kind) => entity(s, tree, kind, own),
            None => s.skip(),
        }),
        "Educts" => partners(s, tree, own, -1.0),
        "Products" => partners(s, tree, own, 1.0),
        "Info" => {
            info(&s.current()?, tree, own)?;
            s.skip()
        }
        "ObjectPath" => {
            let path = s.current()?.attribute("path")?;
            if let Some(entity) = tree.entities.get_mut(own) {
                entity.object_path = path;
            }
            s.skip()
        }
        "ParentPath" if own == 0 => {
            tree.root_path = s.current()?.attribute("path")?;
            s.skip()
        }
        _ => s.skip(),
    })
}

fn attributes(
    element: &XmlElement<'_>,
    kind: EntityKind,
    parent: usize,
) -> Result<TreeEntity, LoadError> {
    let mut e = TreeEntity {
        line: element.line,
        kind,
        parent,
        id: String::new(),
        name: String::new(),
        value: None,
        formula: None,
        rhs_formula: None,
        fixed: false,
        persistable: false,
        negative_allowed: None,
        can_be_varied: None,
        scale: None,
        dimension: None,
        display_unit: None,
        min: None,
        max: None,
        one_time: false,
        as_value: false,
        partners: Vec::new(),
        object_path: None,
    };
    element.attributes(|key, value| {
        let numeric = || {
            number(&value)
                .ok_or_else(|| element.invalid(format!("{key} '{value}' is not a number")))
        };
        match key {
            "id" => e.id = value.into_owned(),
            "name" => e.name = value.into_owned(),
            "value" => e.value = Some(numeric()?),
            "formula" => e.formula = Some(value.into_owned()),
            "rHSFormula" => e.rhs_formula = Some(value.into_owned()),
            "isFixedValue" => e.fixed = flag(&value).unwrap_or(false),
            "persistable" => e.persistable = flag(&value).unwrap_or(false),
            "negativeValuesAllowed" => e.negative_allowed = flag(&value),
            "canBeVaried" => e.can_be_varied = flag(&value),
            "scaleDivisor" | "scaleFactor" => e.scale = Some(numeric()?),
            "dim" | "dimension" => e.dimension = Some(value.into_owned()),
            "displayUnit" => e.display_unit = Some(value.into_owned()),
            "min" => e.min = Some(numeric()?),
            "max" => e.max = Some(numeric()?),
            "oneTime" => e.one_time = flag(&value).unwrap_or(false),
            "useAsValue" => e.as_value = flag(&value).unwrap_or(false),
            "sourceAmount" => e.partners.push((value.into_owned(), -1.0)),
            "targetAmount" | "changedEntity" => e.partners.push((value.into_owned(), 1.0)),
            _ => {}
        }
        Ok(())
    })?;
    Ok(e)
}

fn partners(
    scanner: &mut XmlScanner<impl BufRead>,
    tree: &mut EntityTree,
    own: usize,
    sign: f64,
) -> Result<(), LoadError> {
    scanner.children(|s, name| {
        if name == "ReactionPartner" {
            let element = s.current()?;
            let partner = element.required("partner")?;
            let text = element
                .attribute("stoichiometricCoefficient")?
                .unwrap_or_else(|| "1".to_owned());
            let coefficient = number(&text).filter(|c| c.is_finite()).ok_or_else(|| {
                element.invalid(format!(
                    "stoichiometricCoefficient '{text}' is not a number"
                ))
            })?;
            if let Some(entity) = tree.entities.get_mut(own) {
                entity.partners.push((partner, sign * coefficient));
            }
        }
        s.skip()
    })
}

fn info(element: &XmlElement<'_>, tree: &mut EntityTree, own: usize) -> Result<(), LoadError> {
    let Some(entity) = tree.entities.get_mut(own) else {
        return Ok(());
    };
    element.attributes(|key, value| {
        match key {
            "min" => entity.min = number(&value).filter(|v| v.is_finite()),
            "max" => entity.max = number(&value).filter(|v| v.is_finite()),
            "canBeVaried" => entity.can_be_varied = flag(&value),
            _ => {}
        }
        Ok(())
    })
}
