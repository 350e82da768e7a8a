//! One loaded simulation: its model, and what its caller changed.

use std::collections::BTreeMap;
use std::sync::Arc;

use pbpk::compile::{Instance, Structure};
use pbpk::model::QuantityKind;
use pbpk::path;
use pbpk::watch::{Interrupt, Watch};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::fault::{Fault, Kind};
use crate::figures::{UNITLESS, number, unit as told_unit};
use crate::models::{ModelRef, ReadModel, version};

/// A value that a caller set.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ChangedValue {
    /// In base units.
    pub value: f64,
    /// When, in milliseconds since 1970.
    pub at_ms: i64,
}

/// A simulation that a caller has loaded.
#[derive(Debug, Clone)]
pub struct LoadedSimulation {
    /// Its id.
    pub id: String,
    /// The file.
    pub model: ModelRef,
    /// The file's length in bytes.
    pub bytes: u64,
    /// The model's numbers with the caller's changes.
    pub instance: Instance,
    /// Changed values, by path.
    pub changed: BTreeMap<String, ChangedValue>,
}

impl LoadedSimulation {
    /// Returns a model as its file has it.
    ///
    /// # Errors
    /// That of `watch`.
    pub fn new(id: &str, read: ReadModel, watch: &Watch<'_>) -> Result<Self, Interrupt> {
        Ok(Self {
            id: id.to_owned(),
            model: read.model,
            bytes: read.bytes,
            instance: Instance::with_watch(&read.structure, watch)?,
            changed: BTreeMap::new(),
        })
    }

    /// Returns the compiled model.
    #[must_use]
    pub fn structure(&self) -> &Arc<Structure> {
        self.instance.structure()
    }

    /// Returns the metadata of the file, and its solver if requested.
    #[must_use]
    pub fn metadata(&self, backend: Option<&str>) -> Value {
        let model = self.structure().model();
        let mut metadata = json!({
            "name": model.name, "modelVersion": version(model), "createdBy": null, "createdAt": null,
        });
        if let (Some(backend), Some(members)) = (backend, metadata.as_object_mut()) {
            members.insert("backend".into(), backend.into());
        }
        metadata
    }

    /// Paths of parameters, sorted, each once.
    pub fn parameters(&self) -> Vec<&str> {
        let quantities = &self.structure().model().quantities;
        let parameters = quantities
            .iter()
            .filter(|q| q.kind == QuantityKind::Parameter);
        let mut paths: Vec<&str> = parameters.map(|q| q.path.as_str()).collect();
        paths.sort_unstable();
        paths.dedup();
        paths
    }

    /// Returns a parameter for clients.
    ///
    /// # Errors
    /// [`Kind::NotFound`] with the nearest paths.
    pub fn parameter(&self, path: &str) -> Result<Value, Fault> {
        let position = path::find_one(self.structure().model(), path)?;
        self.describe_parameter(position)
    }

    fn describe_parameter(&self, position: usize) -> Result<Value, Fault> {
        let model = self.structure().model();
        let lost = || Fault::new(Kind::InternalError, "the model has lost a quantity");
        let quantity = model.quantities.get(position).ok_or_else(lost)?;
        let value = self.instance.value(position).ok_or_else(lost)?;
        let changed = self.changed.get(&quantity.path);
        let source = match (changed, quantity.source) {
            (Some(_), _) => "set",
            (None, pbpk::model::ValueSource::Formula(_)) => "formula",
            (None, pbpk::model::ValueSource::Constant(_)) => "file",
        };
        let at = changed.map(|changed| gate::journal::format_utc(changed.at_ms));
        Ok(json!({
            "path": quantity.path,
            "value": number(value),
            "unit": told_unit(&quantity.unit),
            "displayName": quantity.name,
            "lastUpdatedAt": at,
            "source": source,
        }))
    }

    /// Sets a parameter, to a value or relative to its own value.
    ///
    /// # Errors
    /// [`Fault`]: an unknown path, a unit of another dimension, a value that is out of bounds.
    pub fn set(
        &mut self,
        path: &str,
        value: f64,
        unit: Option<&str>,
        mode: UpdateMode,
        now_ms: i64,
    ) -> Result<Value, Fault> {
        let structure = Arc::clone(self.structure());
        let model = structure.model();
        let position = path::find_one(model, path)?;
        let Some(quantity) = model.quantities.get(position) else {
            return Err(Fault::missing("parameterPath", "no such quantity"));
        };
        if !value.is_finite() {
            return Err(Fault::input("value", "value must be a finite number").code("value_error"));
        }
        let unit = unit.filter(|unit| !(unit.trim() == UNITLESS && quantity.unit.is_empty()));
        let present = self.instance.value(position).unwrap_or(f64::NAN);
        let base = match (mode, unit) {
            (UpdateMode::Absolute, unit) => path::in_base(&self.instance, position, value, unit)?,
            (UpdateMode::Add, None) => present + value,
            (UpdateMode::Add, Some(unit)) if unit == quantity.unit => present + value,
            (UpdateMode::Multiply, None) => present * value,
            (UpdateMode::Add, Some(_)) => {
                let wrong = format!(
                    "a relative value is added in the base unit, '{}'",
                    told_unit(&quantity.unit)
                );
                return Err(Fault::input("unit", wrong).code("unit"));
            }
            (UpdateMode::Multiply, Some(_)) => {
                let wrong = "a relative value is a factor and has no unit";
                return Err(Fault::input("unit", wrong).code("unit"));
            }
        };
        self.set_value(position, &quantity.path, base, now_ms)?;
        self.describe_parameter(position)
    }

    fn set_value(
        &mut self,
        position: usize,
        path: &str,
        base: f64,
        now_ms: i64,
    ) -> Result<(), Fault> {
        // On a copy, so that a value that is refused leaves nothing behind.
        let mut trial = self.instance.clone();
        trial.set(position, base)?;
        self.instance = trial;
        let changed = ChangedValue {
            value: base,
            at_ms: now_ms,
        };
        self.changed.insert(path.to_owned(), changed);
        Ok(())
    }

    /// Gives a parameter back the value or formula of the file.
    ///
    /// # Errors
    /// [`Kind::NotFound`] with the nearest paths.
    pub fn reset(&mut self, path: &str) -> Result<Value, Fault> {
        let structure = Arc::clone(self.structure());
        let position = path::find_one(structure.model(), path)?;
        self.instance.reset(position);
        if let Some(quantity) = structure.model().quantities.get(position) {
            self.changed.remove(&quantity.path);
        }
        self.describe_parameter(position)
    }

    /// Restores values that were set before.
    ///
    /// # Errors
    /// [`Fault`] if the model does not take one of the values.
    pub fn set_again(&mut self, changes: &BTreeMap<String, ChangedValue>) -> Result<(), Fault> {
        apply(
            &mut self.instance,
            changes.iter().map(|(path, one)| (path.as_str(), one.value)),
        )?;
        self.changed.clone_from(changes);
        Ok(())
    }
}

/// How a value changes a parameter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UpdateMode {
    /// The value is the new one.
    Absolute,
    /// The value is added to the present one.
    Add,
    /// The present value is multiplied by it.
    Multiply,
}

/// Sets values in base units, by whole path.
///
/// # Errors
/// [`Fault`] of the first that cannot be set.
pub fn apply<'p>(
    instance: &mut Instance,
    values: impl Iterator<Item = (&'p str, f64)>,
) -> Result<(), Fault> {
    let structure = Arc::clone(instance.structure());
    for (path, value) in values {
        let position = path::find_one(structure.model(), path)?;
        instance.set(position, value)?;
    }
    Ok(())
}
