//! Keeping what was set in a simulation, and setting it again.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use toolkit::server::Args;

use super::models::read;
use crate::fault::{Fault, Kind};
use crate::figures::unit;
use crate::models::hex;
use crate::results::Snapshot;
use crate::service::{CallContext, SimulationService};
use crate::session::{ChangedValue, locked};

pub(super) fn keep(context: &CallContext<'_>, args: Args<'_>) -> Result<Value, Fault> {
    let keeper = context.service.keeper()?;
    let shared = context.simulation(args)?;
    let loaded = locked(&shared);
    let model = loaded.structure().model();
    let parameters = loaded.changed.iter().map(|(path, changed)| {
        let quantity = model.position(path).and_then(|at| model.quantities.get(at));
        json!({"path": path, "value": changed.value, "unit": unit(quantity.map_or("", |q| &q.unit))})
    });
    let state = json!({
        "simulationId": loaded.id,
        "filePath": loaded.model.path,
        "modelSha256": loaded.model.sha256,
        "regimen": loaded.model.regimens,
        "parameters": parameters.collect::<Vec<Value>>(),
    });
    let before = keeper.index.snapshots(context.caller, &loaded.id)?;
    // Two within a millisecond get names of their own.
    let newest = before.first().map_or(i64::MIN, |newest| newest.created_ms);
    let created_ms = context.now_ms.max(newest.saturating_add(1));
    let snapshot = Snapshot {
        snapshot_id: name(created_ms),
        simulation_id: loaded.id.clone(),
        created_ms,
        hash: hex(&Sha256::digest(state.to_string().as_bytes())),
        state,
    };
    keeper.index.keep(context.caller, &snapshot)?;
    Ok(json!({"snapshot": snapshot_value(&snapshot)}))
}

/// `YYYYMMDDTHHMMSSffffffZ`
fn name(ms: i64) -> String {
    let mut name = gate::journal::format_utc(ms);
    name.retain(|c| !matches!(c, '-' | ':' | '.' | 'Z'));
    format!("{name}000Z")
}

fn snapshot_value(snapshot: &Snapshot) -> Value {
    json!({
        "snapshotId": snapshot.snapshot_id, "simulationId": snapshot.simulation_id,
        "createdAt": gate::journal::format_utc(snapshot.created_ms), "hash": snapshot.hash,
    })
}

pub(super) fn list(context: &CallContext<'_>, args: Args<'_>) -> Result<Value, Fault> {
    let keeper = context.service.keeper()?;
    let kept = keeper
        .index
        .snapshots(context.caller, args.text("simulationId")?)?;
    let kept: Vec<Value> = kept.iter().map(snapshot_value).collect();
    let latest = kept.first().cloned();
    Ok(json!({"snapshots": kept, "latestSnapshot": latest}))
}

/// Returns the snapshot that the arguments name, if there is one.
fn wanted_of(
    service: &SimulationService,
    args: Args<'_>,
    caller: &str,
) -> Result<Option<Snapshot>, Fault> {
    let keeper = service.keeper()?;
    let kept = keeper.index.snapshots(caller, args.text("simulationId")?)?;
    let wanted = args.text("snapshotId").ok();
    let fits = |one: &Snapshot| wanted.is_none_or(|wanted| one.snapshot_id == wanted);
    Ok(kept.into_iter().find(fits))
}

fn file_of(snapshot: &Snapshot) -> &str {
    let file = snapshot.state.get("filePath").and_then(Value::as_str);
    file.unwrap_or_default()
}

/// Returns the model file that a call would restore.
pub(super) fn opened(service: &SimulationService, args: Args<'_>, caller: &str) -> Option<PathBuf> {
    let snapshot = wanted_of(service, args, caller).ok()??;
    service.folders.resolve(file_of(&snapshot)).ok()
}

pub(super) fn restore(context: &CallContext<'_>, args: Args<'_>) -> Result<Value, Fault> {
    let (id, wanted) = (args.text("simulationId")?, args.text("snapshotId").ok());
    let Some(snapshot) = &wanted_of(context.service, args, context.caller)? else {
        return Err(match wanted {
            Some(wanted) => {
                Fault::missing("snapshotId", format!("there is no snapshot '{wanted}'"))
            }
            None => Fault::missing("simulationId", format!("there is no snapshot of '{id}'")),
        });
    };
    if hex(&Sha256::digest(snapshot.state.to_string().as_bytes())) != snapshot.hash {
        let wrong = "the snapshot is not what was written";
        return Err(Fault::new(Kind::InternalError, wrong));
    }
    // The folders may be others by now.
    let file = context.service.folders.resolve(file_of(snapshot))?;
    context.is_judged(&file)?;
    let regimens = snapshot.state.get("regimen").and_then(Value::as_array);
    let regimens = regimens.into_iter().flatten().filter_map(Value::as_str);
    let mut loaded = read(context, &file, id, regimens.map(str::to_owned).collect())?;
    let was = snapshot.state.get("modelSha256").and_then(Value::as_str);
    if was.is_some_and(|was| was != loaded.model.sha256) {
        let wrong = "the model file is another one than when the snapshot was kept";
        let hint = "load the file as it is now, and set the parameters again";
        return Err(Fault::of(Kind::Conflict, "snapshotId", wrong).hint(hint));
    }
    let parameters = snapshot.state.get("parameters").and_then(Value::as_array);
    let changes: BTreeMap<String, ChangedValue> = parameters
        .into_iter()
        .flatten()
        .filter_map(|one| {
            let changed = ChangedValue {
                value: one.get("value")?.as_f64()?,
                at_ms: snapshot.created_ms,
            };
            Some((one.get("path")?.as_str()?.to_owned(), changed))
        })
        .collect();
    loaded.set_again(&changes)?;
    context
        .service
        .sessions
        .replace(context.caller, loaded, context.now_ms)?;
    Ok(json!({"snapshot": snapshot_value(snapshot)}))
}
