//! pkml: the exchange file of PK-Sim and MoBi, versions 3 to 19.
//!
//! Only the model, the solver settings and the output settings are read; the building blocks, most of the bytes,
//! are passed over. In the model everything is already expanded, so no building block is ever needed.

mod assemble;
mod bind;
mod formulas;
mod settings;
mod tree;

use std::io::BufRead;

use crate::error::LoadError;
use crate::model::Model;
use crate::watch::Watch;
use crate::xml::XmlScanner;
use formulas::FormulaCache;
use settings::PkmlSettings;
use tree::EntityTree;

/// Versions that were met in the wild and are understood.
const VERSIONS: std::ops::RangeInclusive<u32> = 3..=19;

/// Everything of the document, unbound.
struct RawPkml {
    version: u32,
    name: String,
    tree: EntityTree,
    formulas: FormulaCache,
    settings: PkmlSettings,
    has_model: bool,
    warnings: Vec<String>,
}

/// Reads the document after its `SimulationTransfer` tag.
pub(super) fn read(
    scanner: &mut XmlScanner<impl BufRead>,
    watch: &Watch<'_>,
) -> Result<Model, LoadError> {
    let root = scanner.current()?;
    let text = root.attribute("version")?.unwrap_or_default();
    let line = root.line;
    let mut warnings = Vec::new();
    let version = match text.trim().parse::<u32>() {
        Ok(version) if version < *VERSIONS.start() => {
            return Err(LoadError::Invalid {
                line,
                message: format!("pkml version {version} is too old: 3 to 19 are known"),
            });
        }
        Ok(version) => version,
        Err(_) => {
            return Err(LoadError::Invalid {
                line,
                message: format!("pkml version '{text}' is not a number"),
            });
        }
    };
    if version > *VERSIONS.end() {
        warnings.push(format!(
            "pkml version {version} is newer than those known (3 to 19)"
        ));
    }
    let mut raw = RawPkml {
        version,
        name: String::new(),
        tree: EntityTree::default(),
        formulas: FormulaCache::default(),
        settings: PkmlSettings::default(),
        has_model: false,
        warnings,
    };
    let mut simulations = 0;
    scanner.children(|s, name| match name.as_str() {
        "Simulation" => {
            simulations += 1;
            raw.name = s.current()?.attribute("name")?.unwrap_or_default();
            simulation(s, &mut raw)
        }
        _ => s.skip(),
    })?;
    if simulations == 0 || !raw.has_model {
        let what = if simulations == 0 {
            "Simulation"
        } else {
            "Model"
        };
        return Err(LoadError::Invalid {
            line: scanner.line(),
            message: format!("the transfer file holds no {what}"),
        });
    }
    assemble::assemble(raw, watch)
}

fn simulation(scanner: &mut XmlScanner<impl BufRead>, raw: &mut RawPkml) -> Result<(), LoadError> {
    scanner.children(|s, name| match name.as_str() {
        "BuildConfiguration" | "SimulationConfiguration" | "Configuration" => {
            settings::read(s, &mut raw.settings)
        }
        "SimulationSettings" => settings::read(s, &mut raw.settings),
        "Model" => {
            raw.has_model = true;
            if let Some(name) = s.current()?.attribute("name")?
                && raw.name.is_empty()
            {
                raw.name = name;
            }
            model(s, raw)
        }
        _ => s.skip(),
    })
}

fn model(scanner: &mut XmlScanner<impl BufRead>, raw: &mut RawPkml) -> Result<(), LoadError> {
    scanner.children(|s, name| match name.as_str() {
        "Root" => tree::read(s, &mut raw.tree),
        "FormulaCache" => formulas::read(s, &mut raw.formulas),
        _ => s.skip(),
    })
}
