//! The paths that are one tool each, and how their answers look.

use http::Method;
use serde_json::{Map, Value, json};

/// A path.
pub(super) struct RestPath {
    pub(super) method: Method,
    pub(super) path: &'static str,
    pub(super) tool: &'static str,
    /// The status of success.
    pub(super) status: u16,
    /// From the tool's result to the answer.
    pub(super) shape: fn(Value) -> Value,
    /// The answer in the notation of [`crate::tools::schema`], if it is another one than the tool's result.
    pub(super) answer: Option<&'static str>,
}

const LOADED: &str = "{simulationId s, metadata {name s?, modelVersion s?, createdBy s?, createdAt s?}, warnings [s]}";
const QUEUED: &str = "{jobId s, queuedAt s?, estimatedDurationSeconds f?, expiresAt s?}";
const QUEUED_POPULATION: &str = "{jobId s, simulationId s, status s, queuedAt s?, timeoutSeconds f?, maxRetries i, ~warnings [s]}";
const JOB: &str = "{jobId s, status s, progress {done f, total f?, unit s, secondsLeft f?}?, submittedAt s?, startedAt s?, finishedAt s?, attempts i, maxRetries i, timeoutSeconds f?, resultHandle {resultsId s}?, error o?, cancelRequested b?, externalJobId s?}";
const RESULTS: &str = "{resultsId s, generatedAt s, simulationMetadata {name s?, modelVersion s?, createdBy s?, createdAt s?}, series [{parameter s, unit s, values [{time f, value f?}]}], ~ospVersion s, ~warnings [s], ~page i, ~limit i, ~total i}";

const fn post(
    path: &'static str,
    tool: &'static str,
    status: u16,
    shape: fn(Value) -> Value,
) -> RestPath {
    RestPath {
        method: Method::POST,
        path,
        tool,
        status,
        shape,
        answer: None,
    }
}

/// Returns a path that only looks, by its query.
const fn get(path: &'static str, tool: &'static str) -> RestPath {
    RestPath {
        method: Method::GET,
        path,
        tool,
        status: 200,
        shape: same,
        answer: None,
    }
}

/// Returns a path with an answer that differs from its tool's result.
const fn shaped(
    path: &'static str,
    tool: &'static str,
    status: u16,
    shape: fn(Value) -> Value,
    answer: &'static str,
) -> RestPath {
    RestPath {
        method: Method::POST,
        path,
        tool,
        status,
        shape,
        answer: Some(answer),
    }
}

/// All of them.
pub(super) static ALL: &[RestPath] = &[
    shaped("/load_simulation", "load_simulation", 201, loaded, LOADED),
    post("/list_parameters", "list_parameters", 200, same),
    post("/get_parameter_value", "get_parameter_value", 200, same),
    post("/set_parameter_value", "set_parameter_value", 200, same),
    shaped("/run_simulation", "run_simulation", 202, queued, QUEUED),
    shaped(
        "/run_population_simulation",
        "run_population_simulation",
        202,
        queued_population,
        QUEUED_POPULATION,
    ),
    shaped("/get_job_status", "get_job_status", 200, job, JOB),
    shaped(
        "/get_simulation_results",
        "get_results",
        200,
        results,
        RESULTS,
    ),
    post(
        "/get_population_results",
        "get_population_results",
        200,
        same,
    ),
    post(
        "/calculate_pk_parameters",
        "calculate_pk_parameters",
        200,
        same,
    ),
    post("/cancel_job", "cancel_job", 200, same),
    post("/snapshot_simulation", "snapshot_simulation", 201, same),
    post("/restore_simulation", "restore_simulation", 200, same),
    get("/get_simulation_snapshot", "get_simulation_snapshot"),
    post(
        "/run_parameter_consistency_check",
        "run_parameter_consistency_check",
        200,
        same,
    ),
    post(
        "/ingest_external_pbpk_bundle",
        "ingest_external_pbpk_bundle",
        200,
        same,
    ),
    get("/review_signoff", "get_review_signoff"),
    post("/review_signoff", "record_review_signoff", 200, same),
    get("/review_signoff/history", "get_review_signoff_history"),
    post("/review_signoff/revoke", "revoke_review_signoff", 200, same),
];

impl RestPath {
    /// Returns the name of the operation: that of the path, or of the tool if the path alone is ambiguous.
    pub(super) fn operation(&self) -> &'static str {
        let name = self.path.trim_start_matches('/');
        match name.starts_with("review_signoff") {
            true => self.tool,
            false => name,
        }
    }
}

/// Returns the methods that are known at a path; none if it is no path of a tool.
pub(super) fn methods(path: &str) -> Vec<&'static str> {
    let known = ALL.iter().filter(|known| known.path == path);
    known.map(|known| known.method.as_str()).collect()
}

fn same(result: Value) -> Value {
    result
}

/// These members of a result, in this order; an absent one is null.
fn picked(result: &Value, names: &[&str]) -> Map<String, Value> {
    let one = |name: &&str| {
        (
            (*name).to_owned(),
            result.get(*name).cloned().unwrap_or_default(),
        )
    };
    names.iter().map(one).collect()
}

/// These members of a result, as far as it has them.
fn present(result: &Value, names: &[&str]) -> Map<String, Value> {
    let one = |name: &&str| Some(((*name).to_owned(), result.get(*name)?.clone()));
    names.iter().filter_map(one).collect()
}

fn metadata(result: &Value) -> Value {
    let metadata = result.get("metadata").cloned().unwrap_or_default();
    picked(
        &metadata,
        &["name", "modelVersion", "createdBy", "createdAt"],
    )
    .into()
}

fn loaded(result: Value) -> Value {
    let mut told = picked(&result, &["simulationId", "warnings"]);
    told.insert("metadata".into(), metadata(&result));
    told.into()
}

/// Seconds since 1970 as ISO 8601.
pub(super) fn time(result: &Value, name: &str) -> Value {
    #[expect(
        clippy::cast_possible_truncation,
        reason = "a cast from float to integer saturates"
    )]
    let utc = |seconds: f64| gate::journal::format_utc((seconds * 1000.0).round() as i64);
    result
        .get(name)
        .and_then(Value::as_f64)
        .map_or(Value::Null, |at| utc(at).into())
}

fn queued(result: Value) -> Value {
    json!({
        "jobId": result.get("jobId"), "queuedAt": time(&result, "queuedAt"),
        "estimatedDurationSeconds": null, "expiresAt": null,
    })
}

fn queued_population(result: Value) -> Value {
    let names = [
        "jobId",
        "simulationId",
        "status",
        "timeoutSeconds",
        "maxRetries",
    ];
    let mut told = picked(&result, &names);
    told.insert("queuedAt".into(), time(&result, "queuedAt"));
    told.extend(present(&result, &["warnings"]));
    told.into()
}

fn job(result: Value) -> Value {
    let names = [
        "jobId",
        "status",
        "progress",
        "attempts",
        "maxRetries",
        "timeoutSeconds",
        "resultHandle",
        "error",
        "cancelRequested",
        "externalJobId",
    ];
    let mut told = picked(&result, &names);
    for name in ["submittedAt", "startedAt", "finishedAt"] {
        told.insert(name.into(), time(&result, name));
    }
    told.into()
}

fn results(result: Value) -> Value {
    let mut told = picked(&result, &["resultsId", "generatedAt", "series"]);
    told.insert("simulationMetadata".into(), metadata(&result));
    let more = ["ospVersion", "warnings", "page", "limit", "total"];
    told.extend(present(&result, &more));
    told.into()
}
