//! Loading models and finding them.

use std::path::Path;

use pbpk::regimen::Regimen;
use pbpk::watch::{Interrupt, Watch};
use serde_json::{Value, json};
use toolkit::server::Args;

use super::page::ListPage;
use crate::fault::{Fault, Kind};
use crate::models::FoundModel;
use crate::service::CallContext;
use crate::session::{ID_CHARS_MAX, LoadedSimulation, locked};
use crate::{BACKEND, CONTRACT};

/// Most reported warnings.
const WARNINGS_MAX: usize = 50;

pub(super) fn load(context: &CallContext<'_>, args: Args<'_>) -> Result<Value, Fault> {
    let file = context.service.folders.resolve(args.text("filePath")?)?;
    context.is_judged(&file)?;
    let backend = context.service.backend()?;
    if context.service.over_r().is_some() && !is_pkml(&file) {
        let wrong = "the package ospsuite reads .pkml files only";
        return Err(Fault::of(Kind::UnsupportedModel, "filePath", wrong)
            .hint("adapter: native reads SimModel .xml too"));
    }
    let id = match args.text("simulationId") {
        Ok(id) if id.trim().is_empty() => {
            let wrong = "simulationId must not be blank";
            return Err(Fault::input("simulationId", wrong).code("value_error"));
        }
        Ok(id) => id.to_owned(),
        Err(_) => stem(&file)?,
    };
    let sessions = &context.service.sessions;
    sessions.room(context.caller, &id)?;
    let regimens = args.get("regimen").and_then(Value::as_array);
    let regimens = regimens.into_iter().flatten().map(regimen_text);
    let regimens = regimens.collect::<Result<Vec<String>, Fault>>()?;
    if context.service.over_r().is_some() && !regimens.is_empty() {
        let wrong = "regimens are given by the native engine, and this server solves models over R";
        return Err(Fault::of(Kind::EnvironmentMissing, "regimen", wrong));
    }
    let loaded = read(context, &file, &id, regimens)?;
    let warnings: Vec<&str> = {
        let all = loaded.structure().model().warnings.iter();
        all.take(WARNINGS_MAX).map(String::as_str).collect()
    };
    let answer = json!({
        "tool": "load_simulation",
        "contractVersion": CONTRACT,
        "simulationId": id,
        "backend": backend,
        "metadata": loaded.metadata(Some(backend)),
        "capabilities": capabilities(&loaded),
        "profile": {},
        "validation": null,
        "qualificationState": null,
        "warnings": warnings,
    });
    sessions.insert(context.caller, loaded, context.now_ms)?;
    Ok(answer)
}

/// Returns the qualification of a file: none.
pub(super) fn qualification() -> Value {
    json!({
        "state": "not-declared", "label": "Not declared",
        "summary": "the file says nothing of what it is qualified for", "qualificationLevel": null,
        "riskAssessmentReady": false, "coreSectionsComplete": false, "evidenceSectionsComplete": false,
    })
}

fn is_pkml(file: &Path) -> bool {
    let extension = file.extension().and_then(std::ffi::OsStr::to_str);
    extension.is_some_and(|extension| extension.eq_ignore_ascii_case("pkml"))
}

/// Reads a model file; ends early if the caller has gone.
pub(super) fn read(
    context: &CallContext<'_>,
    file: &Path,
    id: &str,
    regimens: Vec<String>,
) -> Result<LoadedSimulation, Fault> {
    let cancel = &context.cancel;
    let ask = || cancel.is_cancelled().then_some(Interrupt::Cancelled);
    let watch = Watch::new(Some(&ask));
    let read = context.service.library.read(file, regimens, &watch)?;
    Ok(LoadedSimulation::new(id, read, &watch)?)
}

/// Returns a regimen in the notation of `--dose`: as it is, or from the members of an object.
fn regimen_text(one: &Value) -> Result<String, Fault> {
    let wrong = |what: String| Fault::input("regimen", what).code("value_error");
    let read = match one {
        Value::String(text) => text.parse::<Regimen>().map(|_| text.clone()),
        Value::Object(members) => {
            let text_of = |value: &Value| match value {
                Value::Null => None,
                Value::String(text) => Some(text.clone()),
                other => Some(other.to_string()),
            };
            let pairs = members.iter();
            let pairs = pairs.filter_map(|(name, value)| Some((name.as_str(), text_of(value)?)));
            let pairs: Vec<(&str, String)> = pairs.collect();
            Regimen::notation(pairs.iter().map(|(name, value)| (*name, value.as_str())))
        }
        _ => {
            let what = "a regimen is a text such as '250 mg,interval=12 h,number=6', or an object";
            return Err(wrong(what.to_owned()));
        }
    };
    read.map_err(|error| wrong(error.to_string()))
}

fn stem(file: &Path) -> Result<String, Fault> {
    let stem = file
        .file_stem()
        .unwrap_or_default()
        .to_string_lossy()
        .into_owned();
    match stem.chars().count() {
        1..=ID_CHARS_MAX => Ok(stem),
        _ => {
            let wrong = format!("the file's name has more than {ID_CHARS_MAX} characters");
            Err(Fault::input("simulationId", wrong).hint("give a simulationId"))
        }
    }
}

/// What can be done with a loaded model, and how large it is.
pub(super) fn capabilities(loaded: &LoadedSimulation) -> Value {
    let structure = loaded.structure();
    json!({
        "parameters": loaded.parameters().len(),
        "states": structure.states().len(),
        "outputs": structure.outputs().len(),
        "events": structure.model().events.len(),
        "populationSimulation": true,
        "cancellation": true,
        "modelSha256": loaded.model.sha256,
        "modelBytes": loaded.bytes,
    })
}

pub(super) fn discover(context: &CallContext<'_>, args: Args<'_>) -> Result<Value, Fault> {
    let backend = args.text("backend").ok();
    if let Some(other) = backend.filter(|name| !matches!(*name, "ospsuite" | "rxode2" | BACKEND)) {
        let wrong = format!("\"{}\" is not a back end", other.escape_debug());
        return Err(Fault::input("backend", wrong).hint("write ospsuite or rxode2"));
    }
    let search = args
        .text("search")
        .unwrap_or_default()
        .trim()
        .to_lowercase();
    let loaded_only = args.is_set("loadedOnly");
    let loaded: Vec<(std::path::PathBuf, String)> = {
        let all = context.service.sessions.all(context.caller);
        all.iter()
            .map(|shared| {
                let loaded = locked(shared);
                (loaded.model.path.clone(), loaded.id.clone())
            })
            .collect()
    };
    let ids = |found: &FoundModel| -> Vec<&str> {
        let own = loaded.iter().filter(|(path, _)| *path == found.path);
        own.map(|(_, id)| id.as_str()).collect()
    };
    // Models in R have a back end of their own, and there is none of them here.
    let mut all = match backend {
        Some("rxode2") => Vec::new(),
        _ => context.service.folders.search(),
    };
    let over_r = context.service.over_r().is_some();
    let engine = context.service.backend().unwrap_or("ospsuite");
    all.retain(|found| !over_r || is_pkml(&found.path));
    all.retain(|found| {
        let named = found
            .relative
            .to_string_lossy()
            .to_lowercase()
            .contains(&search);
        named && !(loaded_only && ids(found).is_empty())
    });
    let page = ListPage::of(args, 100);
    let total = all.len();
    let items: Vec<Value> = {
        let shown = page.of_list(all);
        shown
            .iter()
            .map(|found| item(found, engine, &ids(found)))
            .collect()
    };
    let mut answer = json!({
        "tool": "discover_models", "contractVersion": CONTRACT, "items": items,
        "trustSurfaceContract": trust("discover_models"),
    });
    page.tell(&mut answer, total);
    Ok(answer)
}

/// That an answer says nothing of how far a model can be trusted.
pub(super) fn trust(tool: &str) -> Value {
    json!({
        "summaryVersion": "1", "tool": tool, "trustBearing": false, "requiresContextualRendering": false,
        "clientDirective": "a listed file is not a qualified model", "surfaceCount": 0, "surfaces": [],
    })
}

pub(super) fn list(context: &CallContext<'_>, args: Args<'_>) -> Result<Value, Fault> {
    let all = context.service.sessions.all(context.caller);
    let page = ListPage::of(args, 100);
    let total = all.len();
    let one = |shared: crate::session::Shared| {
        let loaded = locked(&shared);
        json!({
            "simulationId": loaded.id, "filePath": loaded.model.path.to_string_lossy(),
            "modelSha256": loaded.model.sha256, "name": loaded.structure().model().name,
            "parameters": loaded.parameters().len(), "parametersSet": loaded.changed.len(),
            "states": loaded.structure().states().len(),
        })
    };
    let items: Vec<Value> = page.of_list(all).into_iter().map(one).collect();
    let mut answer = json!({"items": items});
    page.tell(&mut answer, total);
    Ok(answer)
}

pub(super) fn unload(context: &CallContext<'_>, args: Args<'_>) -> Result<Value, Fault> {
    let id = args.text("simulationId")?;
    context
        .service
        .sessions
        .remove(context.caller, id, context.now_ms)?;
    Ok(json!({"simulationId": id}))
}

fn item(found: &FoundModel, engine: &str, loaded: &[&str]) -> Value {
    let stem = found.path.file_stem().unwrap_or_default().to_string_lossy();
    let extension = found
        .path
        .extension()
        .unwrap_or_default()
        .to_string_lossy()
        .to_lowercase();
    let modified = std::fs::metadata(&found.path)
        .and_then(|data| data.modified())
        .ok();
    let modified = modified.and_then(|at| at.duration_since(std::time::UNIX_EPOCH).ok());
    let modified_ms = modified.map_or(0, |since| {
        i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
    });
    json!({
        "id": found.relative.to_string_lossy(),
        "modelId": stem,
        "suggestedSimulationId": stem.chars().take(ID_CHARS_MAX).collect::<String>(),
        "filePath": found.path.to_string_lossy(),
        "relativePath": found.relative.to_string_lossy(),
        "rootPath": found.root.to_string_lossy(),
        "backend": engine,
        "runtimeFormat": extension,
        "displayName": null, "modelVersion": null, "scientificProfile": null, "profileSource": null,
        "manifestStatus": null,
        "qualificationState": qualification(),
        "curationSummary": {},
        "populationSimulation": true,
        "validationHook": false,
        "discoveryState": if loaded.is_empty() { "discovered" } else { "loaded" },
        "isLoaded": !loaded.is_empty(),
        "loadedSimulationIds": loaded,
        "modifiedAt": gate::journal::format_utc(modified_ms),
        "metadata": {},
    })
}

impl CallContext<'_> {
    /// Returns the simulation that the arguments name.
    ///
    /// # Errors
    /// [`crate::fault::Kind::NotFound`]; [`crate::fault::Kind::Conflict`] if it is another model than was judged.
    pub(crate) fn simulation(&self, args: Args<'_>) -> Result<crate::session::Shared, Fault> {
        let id = args.text("simulationId")?;
        let shared = self.service.sessions.get(self.caller, id, self.now_ms)?;
        self.is_judged(&locked(&shared).model.path)?;
        Ok(shared)
    }
}
