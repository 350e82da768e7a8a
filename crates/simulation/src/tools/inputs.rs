//! Input schemas of the tools. Arguments that are not listed are refused; an absent one may also be null.

use pbpk::run::OspVersion;
use serde_json::{Value, json};

use super::signoff;

/// Longest text of an argument, in characters.
const TEXT_CHARS_MAX: u32 = 4_096;
/// Most members of a list.
const LIST_MAX: u32 = 1_000;

pub(super) fn object(properties: Value, required: &[&str]) -> Value {
    json!({"type": "object", "properties": properties, "required": required})
}

pub(super) fn nothing() -> Value {
    object(json!({}), &[])
}

/// Returns the argument by which a caller says that it means it.
pub(super) fn confirm() -> Value {
    json!({
        "type": ["boolean", "null"],
        "description": "Has to be true: the tool changes something. It is not an approval; a rule may still ask a person."
    })
}

pub(super) fn id() -> Value {
    json!({"type": "string", "minLength": 1, "maxLength": 64})
}

pub(super) fn maybe_text() -> Value {
    json!({"type": ["string", "null"], "maxLength": TEXT_CHARS_MAX})
}

fn maybe_name(most: u32) -> Value {
    json!({"type": ["string", "null"], "minLength": 1, "maxLength": most})
}

pub(super) fn text() -> Value {
    json!({"type": "string", "minLength": 1, "maxLength": TEXT_CHARS_MAX})
}

fn objects() -> Value {
    json!({"type": "array", "items": {"type": "object"}, "maxItems": LIST_MAX, "default": []})
}

pub(super) fn texts() -> Value {
    json!({"type": ["array", "null"], "items": {"type": "string"}, "maxItems": LIST_MAX})
}

pub(super) fn maybe_count(least: u32, most: u32) -> Value {
    json!({"type": ["integer", "null"], "minimum": least, "maximum": most})
}

pub(super) fn load() -> Value {
    object(
        json!({
            "filePath": file(),
            "simulationId": maybe_name(64),
            "regimen": regimen(),
        }),
        &["filePath"],
    )
}

/// Returns the schema of regimens.
fn regimen() -> Value {
    let text = maybe_text();
    json!({
        "type": ["array", "null"], "maxItems": 100,
        "items": {"type": ["object", "string"], "maxLength": TEXT_CHARS_MAX, "properties": {
            "dose": text, "loading": text, "container": text, "start": text, "interval": text, "infusion": text,
            "number": maybe_count(1, 1_000), "steady": {"type": ["boolean", "null"]},
        }},
        "description": "Doses instead of the file's: objects such as {dose: '250 mg', interval: '12 h', number: 6}, or texts such as '250 mg,interval=12 h,number=6'. loading is another first dose, infusion its duration, container the application, steady: doses come first until the curves repeat."
    })
}

/// Returns a model file. Blank or too long paths are refused in the search for files, so that the fault is the same
/// everywhere.
fn file() -> Value {
    json!({"type": "string", "description": "The file: a whole path, or one below an allowed folder."})
}

pub(super) fn list_parameters() -> Value {
    object(
        json!({
            "simulationId": id(),
            "searchPattern": {"type": ["string", "null"], "maxLength": TEXT_CHARS_MAX,
                "description": "With * for any characters and ? for one; everything where it is absent."},
            "page": maybe_count(1, 1_000_000), "limit": maybe_count(1, 500),
        }),
        &["simulationId"],
    )
}

pub(super) fn get_parameter() -> Value {
    object(
        json!({"simulationId": id(), "parameterPath": text()}),
        &["simulationId", "parameterPath"],
    )
}

pub(super) fn set_parameter() -> Value {
    object(
        json!({
            "simulationId": id(), "parameterPath": text(), "value": {"type": "number"},
            "unit": maybe_text(),
            "updateMode": {"type": ["string", "null"], "description": "absolute, or relative: value is added to the present one (a factor with bridge_version 0.4.3)."},
            "comment": maybe_text(),
        }),
        &["simulationId", "parameterPath", "value"],
    )
}

/// Returns the schema of the release of OSP for the start of a run.
fn osp_version() -> Value {
    let mut known: Vec<Value> = OspVersion::ALL.map(|known| known.name().into()).to_vec();
    known.push(Value::Null);
    json!({
        "type": ["string", "null"], "enum": known,
        "description": "Release of OSP whose rules hold at the start of a run: 12.4.3 or 13-dev; the server's where it is absent."
    })
}

/// What every tool that starts a job takes.
fn job_options(mut properties: Value) -> Value {
    let seconds = json!({"type": ["number", "null"], "minimum": 1, "maximum": 604_800});
    let key = json!({
        "type": ["string", "null"], "minLength": 1, "maxLength": 256,
        "description": "The same key with the same arguments gives the same job."
    });
    let more = [
        ("timeoutSeconds", seconds),
        ("maxRetries", maybe_count(0, 100)),
        ("idempotencyKey", key),
        ("ospVersion", osp_version()),
    ];
    if let Some(members) = properties.as_object_mut() {
        members.extend(more.map(|(name, schema)| (name.to_owned(), schema)));
    }
    properties
}

pub(super) fn run() -> Value {
    object(
        job_options(json!({"simulationId": id(), "runId": maybe_name(128), "outputs": texts()})),
        &["simulationId"],
    )
}

pub(super) fn run_population() -> Value {
    object(
        job_options(json!({
            "simulationId": id(),
            "cohort": {"type": "object", "required": ["size"], "properties": {
                "size": {"type": "integer", "minimum": 1, "maximum": crate::population::SIZE_MAX},
                "sampling": maybe_text(),
                "seed": {"type": ["integer", "null"]},
                "covariates": objects(),
            }},
            "modelPath": maybe_text(),
            "outputs": {"type": ["object", "null"], "properties": {
                "timeSeries": objects(),
                "aggregates": {"type": "array", "items": {"type": "string"}, "maxItems": LIST_MAX, "default": []},
            }},
            "metadata": {"type": ["object", "null"]},
        })),
        &["simulationId", "cohort"],
    )
}

pub(super) fn job() -> Value {
    object(json!({"jobId": id()}), &["jobId"])
}

pub(super) fn job_status() -> Value {
    object(
        json!({"jobId": id(), "waitSeconds": {"type": ["number", "null"], "minimum": 0, "maximum": 240}}),
        &["jobId"],
    )
}

pub(super) fn results() -> Value {
    object(
        json!({
            "resultsId": text(), "outputs": texts(),
            "page": maybe_count(1, 1_000_000), "limit": maybe_count(1, 10_000),
        }),
        &["resultsId"],
    )
}

pub(super) fn population_results() -> Value {
    object(json!({"resultsId": text()}), &["resultsId"])
}

pub(super) fn sensitivity() -> Value {
    let number = json!({"type": ["number", "null"]});
    object(
        json!({
            "modelPath": file(), "simulationId": id(),
            "parameters": {"type": "array", "minItems": 1, "maxItems": LIST_MAX, "items": {
                "type": "object", "required": ["path", "deltas"], "properties": {
                    "path": text(),
                    "deltas": {"type": "array", "items": {"type": "number"}, "minItems": 1, "maxItems": LIST_MAX},
                    "unit": maybe_text(),
                    "bounds": {"type": ["array", "null"], "items": {"type": "number"}, "minItems": 2, "maxItems": 2},
                    "baselineValue": number,
                }
            }},
            "includeBaseline": {"type": "boolean", "default": true},
            "pollIntervalSeconds": {"type": "number", "minimum": 0.05, "maximum": 5, "default": 0.25},
            "jobTimeoutSeconds": {"type": ["number", "null"], "exclusiveMinimum": 0},
            "metrics": texts(),
            "ospVersion": osp_version(),
        }),
        &["modelPath", "simulationId", "parameters"],
    )
}

pub(super) fn any() -> Value {
    json!({"type": ["object", "null"]})
}

pub(super) fn validate() -> Value {
    object(
        json!({"simulationId": id(), "stage": maybe_text(), "request": any()}),
        &["simulationId"],
    )
}

pub(super) fn verify() -> Value {
    object(
        json!({
            "simulationId": id(), "request": any(),
            "includePopulationSmoke": {"type": "boolean", "default": false},
            "populationCohort": any(), "populationOutputs": any(), "ospVersion": osp_version(),
        }),
        &["simulationId"],
    )
}

pub(super) fn report() -> Value {
    object(
        json!({
            "simulationId": id(), "request": any(),
            "includeParameterTable": {"type": "boolean", "default": true},
            "parameterPattern": maybe_text(),
            "parameterLimit": {"type": "integer", "minimum": 1, "maximum": 5_000, "default": 200},
        }),
        &["simulationId"],
    )
}

/// Returns the schema of a sign-off's subject: a simulation and a scope.
fn signoff_schema(mut properties: Value, required: &[&str]) -> Value {
    let names = signoff::SCOPES.map(|(name, _)| name);
    if let Some(members) = properties.as_object_mut() {
        members.insert("simulationId".into(), id());
        members.insert("scope".into(), json!({"type": "string", "enum": names}));
    }
    let required: Vec<&str> = [&["simulationId", "scope"], required].concat();
    object(properties, &required)
}

pub(super) fn signoff() -> Value {
    signoff_schema(json!({}), &[])
}

pub(super) fn signoff_history() -> Value {
    signoff_schema(json!({"limit": maybe_count(1, 100)}), &[])
}

fn rationale() -> Value {
    let (least, most) = signoff::RATIONALE_CHARS;
    json!({"type": "string", "minLength": least, "maxLength": most})
}

pub(super) fn record_signoff() -> Value {
    let disposition = json!({"type": "string", "enum": signoff::DISPOSITIONS});
    signoff_schema(
        json!({
            "disposition": disposition, "rationale": rationale(),
            "limitationsAccepted": texts(), "reviewFocus": texts(),
        }),
        &["disposition", "rationale"],
    )
}

pub(super) fn revoke_signoff() -> Value {
    signoff_schema(json!({"rationale": rationale()}), &["rationale"])
}

pub(super) fn bundle() -> Value {
    object(
        json!({
            "sourcePlatform": text(), "sourceVersion": maybe_text(), "modelName": maybe_text(),
            "modelType": {"type": "string", "maxLength": TEXT_CHARS_MAX, "default": "pbpk"},
            "executionDate": maybe_text(), "runId": maybe_text(), "operator": maybe_text(), "sponsor": maybe_text(),
            "rawArtifacts": {"type": "array", "maxItems": LIST_MAX, "default": [], "items": {
                "type": "object", "required": ["type", "path"], "properties": {
                    "type": text(), "path": text(), "title": maybe_text(),
                    "checksum": {"type": ["string", "null"], "maxLength": 80,
                        "description": "SHA-256 of the file in hex, with or without sha256: before it."},
                }
            }},
            "assessmentContext": any(), "internalExposure": any(), "qualification": any(), "uncertainty": any(),
            "uncertaintyRegister": any(), "pod": any(), "trueDoseAdjustment": any(),
            "comparisonMetric": {"type": "string", "enum": ["cmax", "auc"], "default": "cmax"},
        }),
        &["sourcePlatform"],
    )
}

pub(super) fn manifest() -> Value {
    object(json!({"filePath": file()}), &["filePath"])
}

pub(super) fn plot() -> Value {
    let flag = json!({"type": ["boolean", "null"]});
    object(
        json!({"resultsId": text(), "outputs": texts(), "title": maybe_text(), "logarithmic": flag, "observed": observed()}),
        &["resultsId"],
    )
}

/// Measured values.
fn observed() -> Value {
    let numbers =
        json!({"type": "array", "items": {"type": "number"}, "minItems": 1, "maxItems": 10_000});
    json!({"type": ["array", "null"], "maxItems": LIST_MAX, "items": {
        "type": "object", "required": ["output", "times", "values"], "properties": {
            "output": text(), "unit": maybe_text(), "times": numbers, "values": numbers,
            "timeUnit": {"type": ["string", "null"], "description": "s, min, h or d; min where it is absent."},
            "weight": {"type": ["number", "null"], "exclusiveMinimum": 0},
            "lloq": {"type": ["number", "null"], "description": "Limit of quantification, in the unit of the values: a value at or below it is censored."},
        }
    }})
}

pub(super) fn fit() -> Value {
    let bound = json!({"type": ["number", "null"], "description": "In the base unit."});
    object(
        json!({
            "simulationId": id(),
            "parameters": {"type": "array", "minItems": 1, "maxItems": LIST_MAX, "items": {
                "type": "object", "required": ["path"],
                "properties": {"path": text(), "min": bound, "max": bound}
            }},
            "observations": observed(),
            "errors": {"type": ["string", "null"], "description": "Least squares: log (differences of logarithms, the default) or absolute. Likelihood with standard deviations that are estimated, and values below lloq by M3: additive, proportional, combined or log-normal."},
            "starts": {"type": ["integer", "null"], "minimum": 1, "maximum": 100, "description": "With a likelihood, number of starts."},
            "seed": maybe_count(0, u32::MAX),
            "intervals": {"type": ["string", "null"], "description": "With a likelihood: profile (the default) or hessian."},
            "apply": {"type": ["boolean", "null"], "description": "Whether the estimates are set in the simulation."},
            "ospVersion": osp_version(),
        }),
        &["simulationId", "parameters", "observations"],
    )
}

pub(super) fn simulation() -> Value {
    object(json!({"simulationId": id()}), &["simulationId"])
}

pub(super) fn listing() -> Value {
    object(
        json!({"page": maybe_count(1, 1_000_000), "limit": maybe_count(1, 1_000)}),
        &[],
    )
}

pub(super) fn restore() -> Value {
    object(
        json!({"simulationId": id(), "snapshotId": maybe_name(64)}),
        &["simulationId"],
    )
}

pub(super) fn chunk() -> Value {
    let subjects =
        json!({"type": ["array", "null"], "items": {"type": "integer"}, "maxItems": LIST_MAX});
    object(
        json!({"resultsId": text(), "chunkId": text(), "subjects": subjects, "outputs": texts()}),
        &["resultsId", "chunkId"],
    )
}

pub(super) fn pk() -> Value {
    object(
        json!({
            "resultsId": {"type": "string", "minLength": 1, "maxLength": 128},
            "outputPath": maybe_name(TEXT_CHARS_MAX),
            "catalogue": {"type": ["boolean", "null"]},
        }),
        &["resultsId"],
    )
}

pub(super) fn discover() -> Value {
    object(
        json!({
            "search": maybe_text(), "backend": maybe_text(),
            "loadedOnly": {"type": "boolean", "default": false},
            "page": {"type": "integer", "minimum": 1, "maximum": 1_000_000, "default": 1},
            "limit": {"type": "integer", "minimum": 1, "maximum": 1_000, "default": 100},
        }),
        &[],
    )
}
