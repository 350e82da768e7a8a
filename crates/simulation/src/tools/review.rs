//! Tools for a reviewer of a model: fitness for a use, verification, a report.
//!
//! Every check is computed by the native engine, also where runs go over R, on the model as it is loaded; one that
//! fails names the path and the reason. Nothing here qualifies a model, which every answer says.

use pbpk::model::{Model, QuantityKind};
use pbpk::run::{OspVersion, RunOptions, run};
use pbpk::watch::Interrupt;
use serde_json::{Value, json};
use toolkit::server::Args;

use super::models::{capabilities, read};
use super::signoff;
use crate::fault::Fault;
use crate::figures::{number, unit};
use crate::models::version;
use crate::service::CallContext;
use crate::session::{LoadedSimulation, locked};
use crate::{BACKEND, CONTRACT};

/// Most reported violations of one check.
const VIOLATIONS_MAX: usize = 20;
/// Most reported violations of a check of consistency alone.
const LISTED_MAX: usize = 500;
/// The check that holds what the reader warned of.
const WARNINGS: &str = "reader-warnings";
/// The stages of use that are known.
const STAGES: [&str; 4] = [
    "exploration",
    "development",
    "internal-review",
    "regulatory-submission",
];

/// One check: its name, and what breaks it.
type Check = (&'static str, Vec<String>);

/// Returns whether the file is still what was loaded, and every number of the model is one and within its bounds.
fn consistency(context: &CallContext<'_>, loaded: &LoadedSimulation) -> Vec<Check> {
    let model = loaded.structure().model();
    let same = match read(context, &loaded.model.path, &loaded.id, Vec::new()) {
        Ok(now) if now.model.sha256 == loaded.model.sha256 => Vec::new(),
        Ok(_) => vec![format!(
            "{}: the file has changed since it was loaded",
            loaded.model.path.display()
        )],
        Err(fault) => vec![format!("{}: {fault}", loaded.model.path.display())],
    };
    let (mut finite, mut bounds) = (Vec::new(), Vec::new());
    for (at, quantity) in model.quantities.iter().enumerate() {
        if quantity.kind != QuantityKind::Parameter {
            continue;
        }
        let value = loaded.instance.value(at).unwrap_or(f64::NAN);
        if value.is_nan() {
            finite.push(format!("{}: the value is not a number", quantity.path));
        }
        if let Some(min) = quantity.min.filter(|min| value < *min) {
            bounds.push(format!(
                "{}: {value} is below {min} {}",
                quantity.path, quantity.unit
            ));
        }
        if let Some(max) = quantity.max.filter(|max| value > *max) {
            bounds.push(format!(
                "{}: {value} is above {max} {}",
                quantity.path, quantity.unit
            ));
        }
    }
    vec![
        ("file-is-what-was-loaded", same),
        ("parameters-are-numbers", finite),
        ("parameters-within-bounds", bounds),
        (WARNINGS, model.warnings.clone()),
    ]
}

/// Checks whether a run ends and every number of its curves is one; returns the warnings of the run too.
fn behaviour(
    context: &CallContext<'_>,
    loaded: &LoadedSimulation,
    osp_version: OspVersion,
) -> (Vec<Check>, Vec<String>) {
    let cancel = &context.cancel;
    let ask = || cancel.is_cancelled().then_some(Interrupt::Cancelled);
    let options = RunOptions {
        interrupt: Some(&ask),
        osp_version,
        ..RunOptions::default()
    };
    let results = match run(&loaded.instance, &options) {
        Ok(results) => results,
        Err(failure) => {
            let ends = ("run-ends", vec![failure.to_string()]);
            return (vec![ends], failure.warnings);
        }
    };
    let mut finite = Vec::new();
    for (at, path) in results.paths.iter().enumerate() {
        let wrong = results
            .times
            .iter()
            .zip(results.column(at))
            .find(|(_, value)| !value.is_finite());
        if let Some((time, value)) = wrong {
            finite.push(format!("{path}: {value} at {time} min"));
        }
    }
    let checks = vec![("run-ends", Vec::new()), ("curves-are-numbers", finite)];
    (checks, results.warnings)
}

fn check_values(checks: &[Check]) -> Vec<Value> {
    let one = |(name, violations): &Check| {
        let shown: Vec<&String> = violations.iter().take(VIOLATIONS_MAX).collect();
        let status = if violations.is_empty() {
            "passed"
        } else {
            "failed"
        };
        json!({"name": name, "status": status, "violationCount": violations.len(), "violations": shown})
    };
    checks.iter().map(one).collect()
}

fn all_passed(checks: &[Check]) -> bool {
    checks.iter().all(|(_, violations)| violations.is_empty())
}

pub(super) fn validate(context: &CallContext<'_>, args: Args<'_>) -> Result<Value, Fault> {
    let shared = context.simulation(args)?;
    let loaded = locked(&shared).clone();
    let stage = args.text("stage").unwrap_or("exploration");
    if !STAGES.contains(&stage) {
        let wrong = format!("\"{}\" is not a stage", stage.escape_debug());
        return Err(
            Fault::input("stage", wrong).hint(format!("write one of {}", STAGES.join(", ")))
        );
    }
    let checks = consistency(context, &loaded);
    // The file declares no context of use, so nothing beyond exploration can be said to be fit.
    let decision = match (all_passed(&checks), stage) {
        (false, _) => "reject",
        (true, "exploration") => "accept",
        (true, _) => "needs-qualification",
    };
    let mut answer = head("validate_simulation_request", &loaded);
    set_member(
        &mut answer,
        "validation",
        json!({
            "status": if all_passed(&checks) { "valid" } else { "invalid" }, "decision": decision,
            "stage": stage, "checks": check_values(&checks),
        }),
    );
    set_member(&mut answer, "ngraObjects", json!({}));
    sign_off(
        context,
        &mut answer,
        &loaded.id,
        "validate_simulation_request",
    )?;
    Ok(answer)
}

pub(super) fn verify(context: &CallContext<'_>, args: Args<'_>) -> Result<Value, Fault> {
    let shared = context.simulation(args)?;
    let loaded = locked(&shared).clone();
    let osp_version = context.osp_version(args)?;
    let mut checks = consistency(context, &loaded);
    let (behaviour, warnings) = behaviour(context, &loaded, osp_version);
    checks.extend(behaviour);
    let mut listed = check_values(&checks);
    let mut whole = all_passed(&checks);
    if args.is_set("includePopulationSmoke") {
        let (smoke, failed) = smoke(context, args, &loaded, osp_version);
        whole &= !failed;
        listed.push(smoke);
    }
    let mut answer = head("run_verification_checks", &loaded);
    if let Some(all) = answer.get_mut("warnings").and_then(Value::as_array_mut) {
        all.extend(warnings.into_iter().take(VIOLATIONS_MAX).map(Value::from));
    }
    set_member(&mut answer, "ospVersion", osp_version.name().into());
    set_member(
        &mut answer,
        "generatedAt",
        gate::journal::format_utc(context.now_ms).into(),
    );
    set_member(
        &mut answer,
        "verification",
        json!({
            "status": if whole { "passed" } else { "failed" }, "checks": listed,
        }),
    );
    set_member(
        &mut answer,
        "validation",
        json!({
            "status": if whole { "valid" } else { "invalid" }, "decision": if whole { "accept" } else { "reject" },
        }),
    );
    sign_off(context, &mut answer, &loaded.id, "run_verification_checks")?;
    Ok(answer)
}

/// Returns a few individuals of a cohort, run here.
fn smoke(
    context: &CallContext<'_>,
    args: Args<'_>,
    loaded: &LoadedSimulation,
    osp_version: OspVersion,
) -> (Value, bool) {
    let empty = json!({});
    let asked = args.get("populationCohort").unwrap_or(&empty);
    let outputs = args.get("populationOutputs").unwrap_or(&empty);
    let violations = match super::jobs::smoke(context, loaded, asked, osp_version) {
        Ok(violations) => violations,
        Err(fault) => vec![fault.message],
    };
    let failed = !violations.is_empty();
    let told = json!({
        "name": "population-smoke", "status": if failed { "failed" } else { "passed" },
        "violationCount": violations.len(), "violations": violations,
        "cohort": asked, "outputs": outputs,
    });
    (told, failed)
}

pub(super) fn report(context: &CallContext<'_>, args: Args<'_>) -> Result<Value, Fault> {
    let shared = context.simulation(args)?;
    let loaded = locked(&shared).clone();
    let checks = consistency(context, &loaded);
    let limit = usize::try_from(args.count("parameterLimit").unwrap_or(200)).unwrap_or(usize::MAX);
    let pattern = args.text("parameterPattern").unwrap_or("*");
    let table = match args.get("includeParameterTable") {
        Some(Value::Bool(false)) => Vec::new(),
        _ => parameters(&loaded, pattern, limit),
    };
    let mut answer = head("export_oecd_report", &loaded);
    set_member(
        &mut answer,
        "generatedAt",
        gate::journal::format_utc(context.now_ms).into(),
    );
    set_member(&mut answer, "ngraObjects", json!({}));
    let scope = "export_oecd_report";
    sign_off(context, &mut answer, &loaded.id, scope)?;
    let of = |name: &str| answer.get(name).cloned().unwrap_or_default();
    let report = json!({
        "request": args.get("request").cloned().unwrap_or_else(|| json!({})),
        "profile": {"name": loaded.structure().model().name, "format": version(loaded.structure().model()),
            "modelSha256": loaded.model.sha256},
        "validation": {"status": if all_passed(&checks) { "valid" } else { "invalid" }, "checks": check_values(&checks)},
        "capabilities": capabilities(&loaded),
        "parameterTable": table,
        "operatorReviewSignoff": of("operatorReviewSignoff"),
        "operatorReviewGovernance": of("operatorReviewGovernance"),
    });
    set_member(&mut answer, "report", report);
    for name in ["profile", "capabilities", "warnings"] {
        if let Some(members) = answer.as_object_mut() {
            members.remove(name);
        }
    }
    Ok(answer)
}

fn parameters(loaded: &LoadedSimulation, pattern: &str, limit: usize) -> Vec<Value> {
    let pattern: Vec<char> = pattern.chars().collect();
    let model: &Model = loaded.structure().model();
    let all = model.quantities.iter().enumerate();
    let wanted = all.filter(|(_, quantity)| {
        quantity.kind == QuantityKind::Parameter
            && super::parameters::matches(&pattern, &quantity.path)
    });
    let one = |(at, quantity): (usize, &pbpk::model::Quantity)| {
        let value = number(loaded.instance.value(at).unwrap_or(f64::NAN));
        json!({"path": quantity.path, "value": value, "unit": unit(&quantity.unit)})
    };
    wanted.take(limit).map(one).collect()
}

pub(super) fn manifest(context: &CallContext<'_>, args: Args<'_>) -> Result<Value, Fault> {
    let file = context.service.folders.resolve(args.text("filePath")?)?;
    context.is_judged(&file)?;
    let extension = file
        .extension()
        .unwrap_or_default()
        .to_string_lossy()
        .to_lowercase();
    let loaded = read(context, &file, "manifest", Vec::new());
    let (status, manifest) = match &loaded {
        Ok(loaded) => {
            let checks = consistency(context, loaded);
            let status = if all_passed(&checks) {
                "valid"
            } else {
                "invalid"
            };
            (
                status,
                json!({
                    "status": status, "checks": check_values(&checks), "modelSha256": loaded.model.sha256,
                    "modelBytes": loaded.bytes, "metadata": loaded.metadata(Some(BACKEND)),
                }),
            )
        }
        Err(fault) => (
            "invalid",
            json!({
                "status": "invalid",
                "checks": check_values(&[("file-is-a-model", vec![format!("{}: {fault}", file.display())])]),
            }),
        ),
    };
    Ok(json!({
        "tool": "validate_model_manifest", "contractVersion": CONTRACT,
        "filePath": file.to_string_lossy(), "backend": BACKEND, "runtimeFormat": extension,
        "manifest": manifest, "manifestStatus": status,
        "qualificationState": super::models::qualification(),
        "curationSummary": {"status": status},
        "trustSurfaceContract": super::models::trust("validate_model_manifest"),
    }))
}

/// What every answer about a loaded model begins with.
fn head(tool: &str, loaded: &LoadedSimulation) -> Value {
    json!({
        "tool": tool, "contractVersion": CONTRACT, "simulationId": loaded.id, "backend": BACKEND,
        "profile": {}, "capabilities": capabilities(loaded), "qualificationState": null,
        "warnings": loaded.structure().model().warnings.iter().take(VIOLATIONS_MAX).collect::<Vec<_>>(),
    })
}

fn set_member(answer: &mut Value, name: &str, value: Value) {
    if let Some(members) = answer.as_object_mut() {
        members.insert(name.to_owned(), value);
    }
}

/// Adds its sign-offs, and their meaning.
fn sign_off(
    context: &CallContext<'_>,
    answer: &mut Value,
    simulation: &str,
    scope: &str,
) -> Result<(), Fault> {
    let summary = signoff::summary(context, simulation, scope)?;
    set_member(answer, "operatorReviewSignoff", summary);
    set_member(
        answer,
        "operatorReviewGovernance",
        signoff::governance(scope)?,
    );
    Ok(())
}

pub(super) fn consistent(context: &CallContext<'_>, args: Args<'_>) -> Result<Value, Fault> {
    let shared = context.simulation(args)?;
    let loaded = locked(&shared).clone();
    let checks = consistency(context, &loaded);
    let rules: Vec<&str> = checks.iter().map(|(name, _)| *name).collect();
    let mut violations = checks.iter().flat_map(|(_, violations)| violations);
    let shown: Vec<&String> = violations.by_ref().take(LISTED_MAX).collect();
    let count = shown.len() + violations.count();
    let summary = match count {
        0 => format!("{} rules hold", rules.len()),
        1 => "one violation".to_owned(),
        count => format!("{count} violations"),
    };
    Ok(json!({
        "tool": "run_parameter_consistency_check", "contractVersion": CONTRACT, "simulationId": loaded.id,
        "ok": count == 0, "violationCount": count, "violations": shown, "summary": summary,
        "checkedRules": rules,
    }))
}

/// Returns the violations of a model file, each with the path of its object; empty if there are none.
pub(super) fn violations(context: &CallContext<'_>, file: &std::path::Path) -> Vec<String> {
    match read(context, file, "artefact", Vec::new()) {
        Ok(loaded) => {
            let checks = consistency(context, &loaded).into_iter();
            // Warnings of the reader are not faults of the file.
            let checks = checks.filter(|(name, _)| *name != WARNINGS);
            checks.flat_map(|(_, violations)| violations).collect()
        }
        Err(fault) => vec![fault.to_string()],
    }
}
