//! What another platform says of a run, put into the form of a dossier. What can be checked is checked: files against
//! their checksums, and models as the reviewer's other tools check them.

use std::io::Read as _;
use std::path::Path;

use serde_json::{Map, Value, json};
use sha2::{Digest as _, Sha256};
use toolkit::server::Args;

use super::review;
use crate::CONTRACT;
use crate::fault::{Fault, FaultDetail, Kind};
use crate::models::{EXTENSIONS, hex};
use crate::service::CallContext;

/// Largest artefact that is compared with its checksum, in bytes.
const ARTEFACT_BYTES_MAX: u64 = 256 << 20;
/// Most reported faults.
const FAULTS_MAX: usize = 20;
/// The parts of a dossier: the argument, and the object that it becomes.
const PARTS: [(&str, &str); 7] = [
    ("assessmentContext", "assessmentContext"),
    ("internalExposure", "internalExposureEstimate"),
    ("qualification", "pbpkQualificationSummary"),
    ("uncertainty", "uncertaintySummary"),
    ("uncertaintyRegister", "uncertaintyRegisterReference"),
    ("pod", "pointOfDepartureReference"),
    ("trueDoseAdjustment", "trueDoseAdjustment"),
];

pub(super) fn ingest(context: &CallContext<'_>, args: Args<'_>) -> Result<Value, Fault> {
    for name in ["sourcePlatform", "modelType"] {
        if args.text(name)?.trim().is_empty() {
            let wrong = format!("{name} must not be blank");
            return Err(Fault::input(name, wrong).code("value_error"));
        }
    }
    let listed = args.get("rawArtifacts").and_then(Value::as_array);
    let (mut artefacts, mut warnings, mut faults) = (Vec::new(), Vec::new(), Vec::new());
    for (at, artefact) in listed.into_iter().flatten().enumerate() {
        let text = |name: &str| artefact.get(name).and_then(Value::as_str);
        artefacts.push(json!({
            "type": text("type"), "path": text("path"), "checksum": text("checksum"), "title": text("title"),
        }));
        let path = text("path").unwrap_or_default();
        match check_artefact(context, at, path, text("checksum")) {
            Ok(said) => warnings.extend(said.map(|said| format!("{path}: {said}"))),
            Err(mut wrong) => faults.append(&mut wrong),
        }
    }
    if let Some(first) = faults.first() {
        let message = match faults.len() {
            1 => first.issue.clone(),
            count => format!("{} (and {} more)", first.issue, count - 1),
        };
        faults.truncate(FAULTS_MAX);
        return Err(Fault {
            kind: Kind::InvalidInput,
            message,
            details: faults,
        });
    }
    let mut objects = Map::new();
    for (name, object) in PARTS {
        let given = args
            .get(name)
            .and_then(Value::as_object)
            .filter(|given| !given.is_empty());
        match given {
            Some(given) => drop(objects.insert(object.to_owned(), json!(given))),
            None => warnings.push(format!("{name} is not given")),
        }
    }
    let metric = args.text("comparisonMetric")?;
    objects.insert("comparisonMetric".to_owned(), metric.into());
    let of = |name: &str| args.text(name).ok();
    let run = match of("runId").filter(|run| !run.trim().is_empty()) {
        Some(run) => run.to_owned(),
        None => {
            let all = Value::Object(args.members().clone()).to_string();
            let digest = hex(&Sha256::digest(all.as_bytes()));
            format!("external-{}", digest.get(..16).unwrap_or_default())
        }
    };
    Ok(json!({
        "tool": "ingest_external_pbpk_bundle", "contractVersion": CONTRACT,
        "externalRun": {
            "objectType": "externalRun", "runId": run, "sourcePlatform": of("sourcePlatform"),
            "sourceVersion": of("sourceVersion"), "modelName": of("modelName"), "modelType": of("modelType"),
            "executionDate": of("executionDate"), "operator": of("operator"), "sponsor": of("sponsor"),
            "rawArtifacts": artefacts,
            "normalizationBoundary": "what was given is repeated; nothing was computed or assessed, and nothing is kept",
        },
        "ngraObjects": objects, "warnings": warnings,
    }))
}

/// Checks one artefact: returns its report, or its fault.
fn check_artefact(
    context: &CallContext<'_>,
    at: usize,
    path: &str,
    checksum: Option<&str>,
) -> Result<Option<&'static str>, Vec<FaultDetail>> {
    let wrong = |field: &str, issue: String| FaultDetail {
        issue: format!("{path}: {issue}"),
        field: Some(format!("rawArtifacts[{at}].{field}")),
        hint: None,
        code: Some("value_error".to_owned()),
    };
    let stated = checksum.map(|checksum| {
        let digits = checksum.trim().to_ascii_lowercase();
        let digits = digits.strip_prefix("sha256:").unwrap_or(&digits).to_owned();
        let fits = digits.len() == 64 && digits.bytes().all(|byte| byte.is_ascii_hexdigit());
        fits.then_some(digits).ok_or_else(|| {
            let no = "the checksum is not a SHA-256: 64 hexadecimal digits, with or without sha256: before them";
            vec![wrong("checksum", no.to_owned())]
        })
    });
    let stated = stated.transpose()?;
    let found = context.service.folders.find(path, "path");
    let Some(file) = found.map_err(|fault| vec![wrong("path", fault.message)])? else {
        return Ok(Some(
            "it is not in the allowed folders and was not looked at",
        ));
    };
    if let Some(stated) = &stated {
        let digest = digest(context, &file).map_err(|no| vec![wrong("path", no)])?;
        if digest != *stated {
            let no = format!("its SHA-256 is {digest}, and not {stated}");
            return Err(vec![wrong("checksum", no)]);
        }
    }
    let extension = file.extension().unwrap_or_default().to_string_lossy();
    if EXTENSIONS.contains(&extension.to_lowercase().as_str()) {
        let violations = review::violations(context, &file);
        if !violations.is_empty() {
            let all = violations.into_iter();
            return Err(all.map(|violation| wrong("path", violation)).collect());
        }
    }
    Ok(match stated {
        Some(_) => None,
        None => Some("it has no checksum"),
    })
}

/// SHA-256 of a file in hex.
fn digest(context: &CallContext<'_>, file: &Path) -> Result<String, String> {
    let unread = |error: std::io::Error| format!("it cannot be read: {error}");
    let opened = toolkit::files::open_in_place(file).map_err(unread)?;
    let mut reader = opened.take(ARTEFACT_BYTES_MAX + 1);
    let (mut sha, mut read, mut buffer) = (Sha256::new(), 0, vec![0; 64 << 10]);
    loop {
        if context.cancel.is_cancelled() {
            return Err("nobody waits for it any more".to_owned());
        }
        let bytes = reader.read(&mut buffer).map_err(unread)?;
        if bytes == 0 {
            return Ok(hex(&sha.finalize()));
        }
        read += bytes as u64;
        if read > ARTEFACT_BYTES_MAX {
            return Err(format!(
                "it has more than {ARTEFACT_BYTES_MAX} bytes, and its checksum cannot be checked"
            ));
        }
        sha.update(buffer.get(..bytes).unwrap_or_default());
    }
}
