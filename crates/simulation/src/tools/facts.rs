//! Facts of a call for the gate, so that a rule can ask before a large one.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use gate::facts::{Fact, Facts};
use gate::paths::{PathArgument, Role, meanings};
use serde_json::Value;
use toolkit::server::Args;

use super::jobs::SMOKE_SUBJECTS_MAX;
use super::snapshots;
use crate::figures::whole;
use crate::options::BridgeVersion;
use crate::service::SimulationService;
use crate::session::LoadedSimulation;

/// Paths of the parameters that a call names.
#[must_use]
pub fn parameters(args: Args<'_>) -> Arc<[Arc<str>]> {
    let one = args.text("parameterPath").ok().into_iter();
    let path = |named: &'_ Value| -> Option<Arc<str>> {
        let names = ["path", "parameterPath", "name"];
        names
            .iter()
            .find_map(|name| named.get(name)?.as_str())
            .map(Arc::from)
    };
    let listed = |list: Option<&Value>| -> Vec<Arc<str>> {
        let members = list.and_then(Value::as_array).into_iter().flatten();
        members.filter_map(path).collect()
    };
    let covariates = args
        .get("cohort")
        .and_then(|cohort| cohort.get("covariates"));
    one.map(Arc::from)
        .chain(listed(args.get("parameters")))
        .chain(listed(covariates))
        .collect()
}

/// Returns the model file that a call opens, as it is found now; none if it opens none, or one that is not there: the
/// tool refuses that.
#[must_use]
pub fn opened(
    service: &SimulationService,
    tool: &str,
    args: Args<'_>,
    caller: &str,
) -> Option<PathBuf> {
    match tool {
        "load_simulation" | "validate_model_manifest" => {
            service.folders.resolve(args.text("filePath").ok()?).ok()
        }
        "run_sensitivity_analysis" => {
            let named = args.text("simulationId").ok()?;
            let loads = loads_itself(service, caller, named);
            loads.then(|| service.folders.resolve(args.text("modelPath").ok()?).ok())?
        }
        "restore_simulation" => snapshots::opened(service, args, caller),
        _ => None,
    }
}

/// Returns whether an analysis loads the model that it names: the bridge does so from 0.5.0 on, if nothing is loaded
/// under the id.
#[must_use]
pub fn loads_itself(service: &SimulationService, caller: &str, simulation: &str) -> bool {
    service.configured.bridge == BridgeVersion::V0_5_0
        && service.sessions.peek(caller, simulation).is_none()
}

/// States the path of the model file that a call opens: a relative path is one below a folder, and a link leads
/// elsewhere.
pub fn state_opened(opened: &Path, args: Args<'_>, facts: &mut Facts) {
    let place = opened.to_string_lossy();
    let named = args.text("filePath").or_else(|_| args.text("modelPath"));
    let named = named.ok();
    if let Fact::Known(paths) = &mut facts.paths {
        let is_relative = |path: &&mut PathArgument| {
            !path.text.starts_with('/') && named == Some(path.text.as_str())
        };
        if let Some(path) = paths.iter_mut().find(is_relative) {
            path.meaning = meanings(&place, None);
            return;
        }
        if paths.iter().any(|path| path.text == place) {
            return;
        }
    }
    facts.add_paths([PathArgument {
        role: Role::Path,
        content: false,
        meaning: meanings(&place, None),
        text: place.into_owned(),
    }]);
}

/// Returns how many individuals a call runs, a fit as many as it may need; absent if it runs none.
#[must_use]
pub fn cohort_size(tool: &str, args: Args<'_>) -> Option<u64> {
    match tool {
        "run_simulation" => Some(1),
        "run_population_simulation" => whole(args.get("cohort")?.get("size")?),
        "run_sensitivity_analysis" => {
            let parameters = args.get("parameters")?.as_array()?.iter();
            let deltas = parameters.filter_map(|one| one.get("deltas")?.as_array());
            Some(1 + deltas.map(|deltas| deltas.len() as u64).sum::<u64>())
        }
        "fit_parameters" => Some(pbpk::fit::RUNS_MAX as u64),
        "run_verification_checks" => Some(match args.is_set("includePopulationSmoke") {
            true => 1 + SMOKE_SUBJECTS_MAX,
            false => 1,
        }),
        _ => None,
    }
}

/// States times individuals times the span in minutes, rounded up.
#[must_use]
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::cast_precision_loss,
    reason = "a cost is an estimate; a cast from float to integer saturates"
)]
pub fn cost(loaded: &LoadedSimulation, individuals: u64) -> u64 {
    let structure = loaded.structure();
    let grid = &structure.model().grid;
    let ends = grid.intervals.iter().map(|interval| interval.end);
    let span = ends.chain(grid.times.iter().copied()).fold(0.0, f64::max);
    let states = structure.states().len().max(1) as f64;
    (states * individuals as f64 * span.max(1.0)).ceil() as u64
}
