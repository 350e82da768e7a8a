//! A simulation: a model with its outputs and the values that were set.

use std::path::PathBuf;
use std::sync::Arc;

use pyo3::prelude::*;
use solver::compile::{Instance, Structure};
use solver::model::{Model, QuantityKind};
use solver::pk::{Curve, Dosing, analyse_all};
use solver::regimen::Regimen;
use solver::run::{OspVersion, RunOptions};
use solver::watch::{Question, Watch};
use solver::{path, read};

use crate::errors::raised;
use crate::results::SimulationResults;
use crate::signals::interruptible;

/// A model that can be changed by path and run.
#[pyclass(module = "pbpk")]
#[derive(Clone)]
pub(crate) struct Simulation {
    model: Arc<Model>,
    pub(crate) individual: Instance,
    /// Values that were set, by position.
    set: Vec<(usize, f64)>,
}

/// Reads a simulation (.pkml, or SimModel .xml). Its outputs are those selected in the file, else all that it keeps.
/// `regimen` gives doses instead of the file's: texts such as "250 mg,interval=12 h,number=6".
#[pyfunction]
#[pyo3(signature = (path, outputs=None, regimen=None))]
pub(crate) fn load_simulation(
    py: Python<'_>,
    path: PathBuf,
    outputs: Option<Vec<String>>,
    regimen: Option<Vec<String>>,
) -> PyResult<Simulation> {
    let regimen = regimen.unwrap_or_default();
    interruptible(py, |ask| {
        Simulation::open(&path, outputs.as_deref(), &regimen, ask)
    })
}

impl Simulation {
    pub(crate) fn open(
        file: &std::path::Path,
        outputs: Option<&[String]>,
        regimens: &[String],
        ask: Question<'_>,
    ) -> PyResult<Self> {
        let watch = Watch::new(Some(ask));
        let options = read::ReadOptions::default();
        let model = read::file_watched(file, &options, &watch).map_err(raised)?;
        let parsed = regimens.iter().map(|text| text.parse().map_err(raised));
        let parsed = parsed.collect::<PyResult<Vec<Regimen>>>()?;
        let model = match parsed.is_empty() {
            true => model,
            false => {
                solver::regimen::apply(model, &parsed, Some(ask))
                    .map_err(raised)?
                    .0
            }
        };
        let chosen = match outputs {
            Some(patterns) => found(&model, patterns)?,
            None => selected(&model),
        };
        let model = Arc::new(model);
        let structure =
            Structure::with_watch(Arc::clone(&model), chosen, &watch).map_err(raised)?;
        Ok(Self {
            individual: Instance::with_watch(&structure, &watch).map_err(raised)?,
            model,
            set: Vec::new(),
        })
    }

    pub(crate) fn model(&self) -> &Model {
        &self.model
    }

    /// Values that were set, by position.
    pub(crate) fn set(&self) -> &[(usize, f64)] {
        &self.set
    }

    fn unit(&self, q: usize) -> String {
        self.model
            .quantities
            .get(q)
            .map_or_else(String::new, |q| q.unit.clone())
    }
}

/// Returns the release of OSP of this name, by default the default one.
pub(crate) fn release(name: Option<&str>) -> PyResult<OspVersion> {
    name.map_or(Ok(OspVersion::default()), |name| {
        name.parse().map_err(raised)
    })
}

/// Returns the positions of the quantities that these paths or patterns name, once each.
pub(crate) fn found(model: &Model, patterns: &[String]) -> PyResult<Vec<usize>> {
    let mut all = Vec::new();
    for pattern in patterns {
        for position in path::find(model, pattern).map_err(raised)? {
            if !all.contains(&position) {
                all.push(position);
            }
        }
    }
    Ok(all)
}

fn selected(model: &Model) -> Vec<usize> {
    let named = model
        .selections
        .iter()
        .filter_map(|s| path::find_one(model, s).ok());
    let named: Vec<usize> = named.collect();
    if named.is_empty() {
        model.outputs()
    } else {
        named
    }
}

#[pymethods]
impl Simulation {
    /// Returns the name of the simulation.
    #[getter]
    fn name(&self) -> &str {
        &self.model.name
    }

    /// Returns the notes of reading the file.
    #[getter]
    fn warnings(&self) -> Vec<String> {
        self.model
            .warnings
            .iter()
            .map(ToString::to_string)
            .collect()
    }

    /// Returns the paths of the outputs.
    #[getter]
    fn outputs(&self) -> Vec<String> {
        let outputs = self.individual.structure().outputs();
        let quantities = outputs.iter().filter_map(|q| self.model.quantities.get(*q));
        quantities.map(|q| q.path.clone()).collect()
    }

    /// Chooses outputs by path or pattern (`*` within a name, `**` for any levels); what was set stays.
    fn set_outputs(&mut self, py: Python<'_>, paths: Vec<String>) -> PyResult<()> {
        let chosen = found(&self.model, &paths)?;
        let model = Arc::clone(&self.model);
        let mut individual = interruptible(py, |ask| {
            let watch = Watch::new(Some(ask));
            let structure = Structure::with_watch(model, chosen, &watch).map_err(raised)?;
            Instance::with_watch(&structure, &watch).map_err(raised)
        })?;
        for (q, value) in &self.set {
            individual.set(*q, *value).map_err(raised)?;
        }
        self.individual = individual;
        Ok(())
    }

    /// Returns the paths of all parameters, or of those that match the pattern.
    #[pyo3(signature = (pattern="**"))]
    fn get_all_parameter_paths(&self, pattern: &str) -> PyResult<Vec<String>> {
        let found = path::find_among(&self.model, pattern, |q| q.kind == QuantityKind::Parameter);
        let quantities = found.map_err(raised)?;
        let quantities = quantities
            .iter()
            .filter_map(|q| self.model.quantities.get(*q));
        Ok(quantities.map(|q| q.path.clone()).collect())
    }

    /// Returns the value of a quantity and its base unit.
    fn get_parameter_value(&self, path: &str) -> PyResult<(f64, String)> {
        let q = path::find_one(&self.model, path).map_err(raised)?;
        Ok((self.individual.value(q).unwrap_or(f64::NAN), self.unit(q)))
    }

    /// Sets quantities by path, in base units or in the units given. All are checked before the first is changed.
    #[pyo3(signature = (paths, values, units=None))]
    fn set_parameter_values_by_path(
        &mut self,
        paths: Vec<String>,
        values: Vec<f64>,
        units: Option<Vec<Option<String>>>,
    ) -> PyResult<()> {
        let units = units.unwrap_or_else(|| vec![None; paths.len()]);
        if values.len() != paths.len() || units.len() != paths.len() {
            return Err(raised("paths, values and units must be equally many"));
        }
        let (mut changed, mut set) = (self.individual.clone(), self.set.clone());
        for ((name, value), unit) in paths.iter().zip(values).zip(&units) {
            path::assign(&mut changed, name, value, unit.as_deref()).map_err(raised)?;
            for q in path::find(&self.model, name).map_err(raised)? {
                set.retain(|(other, _)| *other != q);
                set.push((q, changed.value(q).unwrap_or(f64::NAN)));
            }
        }
        (self.individual, self.set) = (changed, set);
        Ok(())
    }

    /// Gives all quantities back the values and formulas of the file.
    fn reset(&mut self) {
        self.individual = Instance::new(self.individual.structure());
        self.set.clear();
    }

    /// Runs. Times are in minutes; without them the file's are taken. With `sensitivity_to` the results hold the exact
    /// derivatives of all outputs by these parameters. `osp_version` is the release of OSP whose rules hold at the start:
    /// "12.4.3" (the default) or "13-dev". Other threads go on meanwhile.
    #[pyo3(signature = (times=None, rtol=None, atol=None, sensitivity_to=None, osp_version=None))]
    fn run(
        &self,
        py: Python<'_>,
        times: Option<Vec<f64>>,
        rtol: Option<f64>,
        atol: Option<f64>,
        sensitivity_to: Option<Vec<String>>,
        osp_version: Option<&str>,
    ) -> PyResult<SimulationResults> {
        let osp_version = release(osp_version)?;
        let parameters = found(&self.model, &sensitivity_to.unwrap_or_default())?;
        let results = interruptible(py, |ask| {
            let options = RunOptions {
                interrupt: Some(ask),
                times: times.as_deref(),
                rel_tol: rtol,
                abs_tol: atol,
                sensitivity_to: &parameters,
                osp_version,
                ..RunOptions::default()
            };
            let ran = solver::run::run(&self.individual, &options);
            ran.map_err(|failure| raised(&failure.error))
        })?;
        SimulationResults::new(py, results)
    }

    /// Returns the pharmacokinetic parameters of the outputs of a run: tuples (output, parameter, value, unit of the value). Molar
    /// concentrations have the units of the suite's reports; parameters of other outputs have their base unit.
    #[pyo3(signature = (osp_version=None))]
    fn pk_parameters(
        &self,
        py: Python<'_>,
        osp_version: Option<&str>,
    ) -> PyResult<Vec<(String, String, f64, String)>> {
        let osp_version = release(osp_version)?;
        let results = interruptible(py, |ask| {
            let options = RunOptions {
                interrupt: Some(ask),
                osp_version,
                ..RunOptions::default()
            };
            let ran = solver::run::run(&self.individual, &options);
            ran.map_err(|failure| raised(&failure.error))
        })?;
        let quantities = self.model.quantities.iter().zip(self.individual.values());
        let dosing = Dosing::from_constants(quantities.map(|(q, v)| (q.path.as_str(), *v)));
        let dosing = dosing.map_err(raised)?;
        let mut all = Vec::new();
        for (output, (path, unit)) in results.paths.iter().zip(results.units.iter()).enumerate() {
            let values: Vec<f64> = results.column(output).collect();
            let curve = Curve::new(&results.times, &values).map_err(raised)?;
            for value in analyse_all(curve, &dosing) {
                let (shown, unit) = value.display_in(unit);
                all.push((path.clone(), value.parameter.name.to_owned(), shown, unit));
            }
        }
        Ok(all)
    }

    /// Relative changes of the pharmacokinetic parameters per relative change of each of these model parameters, as the
    /// suite computes them: tuples (output, PK parameter, model parameter, sensitivity).
    #[pyo3(signature = (parameters, variation_range=0.1, number_of_steps=2, osp_version=None))]
    fn run_sensitivity_analysis(
        &self,
        py: Python<'_>,
        parameters: Vec<String>,
        variation_range: f64,
        number_of_steps: u32,
        osp_version: Option<&str>,
    ) -> PyResult<Vec<(String, String, String, f64)>> {
        let osp_version = release(osp_version)?;
        let scheme = solver::sensitivity::VariationScheme {
            range: variation_range,
            steps: number_of_steps,
            ..solver::sensitivity::VariationScheme::default()
        };
        let found = found(&self.model, &parameters)?;
        interruptible(py, |ask| self.analysed(&found, &scheme, osp_version, ask))
    }

    fn __repr__(&self) -> String {
        format!(
            "Simulation('{}', {} outputs)",
            self.model.name,
            self.outputs().len()
        )
    }
}

impl Simulation {
    fn analysed(
        &self,
        parameters: &[usize],
        scheme: &solver::sensitivity::VariationScheme,
        osp_version: OspVersion,
        ask: Question<'_>,
    ) -> PyResult<Vec<(String, String, String, f64)>> {
        let options = RunOptions {
            interrupt: Some(ask),
            osp_version,
            ..RunOptions::default()
        };
        let run = solver::run::run(&self.individual, &options);
        let results = run.map_err(|failure| raised(&failure.error))?;
        let watch = Watch::new(Some(ask));
        let base = solver::sensitivity::figures(&self.individual, &results, &watch);
        let base = base.map_err(raised)?;
        let mut all = Vec::new();
        for &q in parameters {
            let entries =
                solver::sensitivity::of_parameter(&self.individual, q, &base, scheme, &options);
            let name = self.model.quantities.get(q).map_or("", |q| q.path.as_str());
            for entry in entries.map_err(raised)? {
                let output = results.paths.get(entry.output).cloned().unwrap_or_default();
                all.push((
                    output,
                    entry.figure.to_owned(),
                    name.to_owned(),
                    entry.value,
                ));
            }
        }
        Ok(all)
    }
}
