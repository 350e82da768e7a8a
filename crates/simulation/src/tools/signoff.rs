//! What reviewers sign off: that they have looked at what a tool said of a simulation, and what they made of it. It
//! changes no rule, no number and no qualification of a model; every entry is kept, a revoked one too.

use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use toolkit::server::Args;

use crate::fault::{Fault, Kind};
use crate::models::hex;
use crate::results::{Signoff, SignoffAction, is_whole};
use crate::service::CallContext;
use crate::session::locked;

/// What can be signed off, and how it is called.
pub(super) const SCOPES: [(&str, &str); 3] = [
    ("validate_simulation_request", "Validation of the request"),
    ("run_verification_checks", "Verification of the model"),
    ("export_oecd_report", "Report"),
];
/// Dispositions of a reviewer.
pub(super) const DISPOSITIONS: [&str; 3] = ["acknowledged", "approved-for-bounded-use", "rejected"];
/// Default number of entries of a history.
const HISTORY_USUAL: u64 = 20;

/// Returns the label of a scope.
fn label(scope: &str) -> Result<&'static str, Fault> {
    let known = SCOPES.iter().find(|(name, _)| *name == scope);
    known.map(|(_, label)| *label).ok_or_else(|| {
        let wrong = format!("\"{}\" is not a scope", scope.escape_debug());
        let names = SCOPES.map(|(name, _)| name);
        Fault::input("scope", wrong).hint(format!("write one of {}", names.join(", ")))
    })
}

/// Simulation, scope and its label.
fn parse_subject<'a>(args: Args<'a>) -> Result<(&'a str, &'a str, &'static str), Fault> {
    let (simulation, scope) = (args.text("simulationId")?, args.text("scope")?);
    Ok((simulation, scope, label(scope)?))
}

/// Returns a hash of the model and of all set values under this id; empty if there is none.
fn content(context: &CallContext<'_>, simulation: &str) -> String {
    let loaded = context.service.sessions.peek(context.caller, simulation);
    loaded.map_or_else(String::new, |shared| {
        let loaded = locked(&shared);
        let set: Vec<(&String, u64)> = {
            let all = loaded.changed.iter();
            all.map(|(path, changed)| (path, changed.value.to_bits()))
                .collect()
        };
        let all = json!([loaded.model.sha256, set]);
        hex(&Sha256::digest(all.to_string().as_bytes()))
    })
}

fn texts(args: Args<'_>, name: &str) -> Vec<String> {
    let list = args.get(name).and_then(Value::as_array);
    let texts = list.into_iter().flatten().filter_map(Value::as_str);
    texts.map(str::to_owned).collect()
}

pub(super) fn record(context: &CallContext<'_>, args: Args<'_>) -> Result<Value, Fault> {
    let (simulation, scope, _) = parse_subject(args)?;
    let disposition = args.text("disposition")?;
    if !DISPOSITIONS.contains(&disposition) {
        let wrong = format!("\"{}\" is not a disposition", disposition.escape_debug());
        let known = DISPOSITIONS.join(", ");
        return Err(Fault::input("disposition", wrong).hint(format!("write one of {known}")));
    }
    // An absent simulation cannot be signed.
    context.simulation(args)?;
    let entry = Signoff {
        disposition: Some(disposition.to_owned()),
        limitations: texts(args, "limitationsAccepted"),
        focus: texts(args, "reviewFocus"),
        content: content(context, simulation),
        ..entry(context, args, SignoffAction::Recorded)?
    };
    let index = &context.service.keeper()?.index;
    index.sign(context.caller, simulation, scope, |_| Ok(entry))?;
    get(context, args)
}

pub(super) fn revoke(context: &CallContext<'_>, args: Args<'_>) -> Result<Value, Fault> {
    let (simulation, scope, _) = parse_subject(args)?;
    let revoked = entry(context, args, SignoffAction::Revoked)?;
    let index = &context.service.keeper()?.index;
    index.sign(context.caller, simulation, scope, |before| match before {
        Some(before) if before.action == SignoffAction::Recorded => Ok(revoked),
        _ => {
            let nothing = format!("nothing is signed off for {scope} of '{simulation}'");
            Err(Fault::of(Kind::Conflict, "scope", nothing)
                .hint("record a sign-off before one is revoked"))
        }
    })?;
    get(context, args)
}

/// Returns an entry with what both kinds have.
fn entry(
    context: &CallContext<'_>,
    args: Args<'_>,
    action: SignoffAction,
) -> Result<Signoff, Fault> {
    let rationale = args.text("rationale")?.trim();
    if rationale.chars().count() < RATIONALE_CHARS.0 {
        let wrong = format!(
            "rationale has to say why, in {} to {} characters",
            RATIONALE_CHARS.0, RATIONALE_CHARS.1
        );
        return Err(Fault::input("rationale", wrong).code("value_error"));
    }
    Ok(Signoff {
        id: context.service.name("signoff")?,
        action,
        at_ms: context.now_ms,
        subject: context.caller.to_string(),
        roles: context.groups.iter().map(ToString::to_string).collect(),
        disposition: None,
        rationale: rationale.to_owned(),
        limitations: Vec::new(),
        focus: Vec::new(),
        content: String::new(),
        previous: String::new(),
        hash: String::new(),
    })
}

/// Least and most characters of a rationale.
pub(super) const RATIONALE_CHARS: (usize, usize) = (12, 4_000);

pub(super) fn get(context: &CallContext<'_>, args: Args<'_>) -> Result<Value, Fault> {
    let (simulation, scope, _) = parse_subject(args)?;
    Ok(json!({
        "operatorReviewSignoff": summary(context, simulation, scope)?,
        "operatorReviewGovernance": governance(scope)?,
    }))
}

/// Status and disposition of a chain.
fn status(chain: &[Signoff]) -> (&'static str, Option<&str>) {
    match chain.last() {
        None => ("not-recorded", None),
        Some(last) if last.action == SignoffAction::Revoked => ("revoked", None),
        Some(last) => ("recorded", last.disposition.as_deref()),
    }
}

/// Returns the summary of a simulation's sign-offs in a scope.
///
/// # Errors
/// [`Fault`] if the scope is none, or the entries cannot be read.
pub(super) fn summary(
    context: &CallContext<'_>,
    simulation: &str,
    scope: &str,
) -> Result<Value, Fault> {
    let index = &context.service.keeper()?.index;
    let chain = index.signoffs(context.caller, simulation, scope)?;
    let last = chain.last();
    let revoked = last.filter(|last| last.action == SignoffAction::Revoked);
    let signed = chain
        .iter()
        .rev()
        .find(|entry| entry.action == SignoffAction::Recorded);
    let (status, disposition) = status(&chain);
    let plain = match (signed, revoked) {
        (None, _) => "nobody has signed this off".to_owned(),
        (Some(_), Some(_)) => "it was signed off, and that was revoked".to_owned(),
        (Some(signed), None) => {
            let made = disposition.unwrap_or_default();
            let same = signed.content == content(context, simulation);
            let now = match same {
                true => "what is loaded now is what was signed off",
                false => "what is loaded now is not what was signed off",
            };
            format!("{} signed this off as {made}; {now}", signed.subject)
        }
    };
    let of = |entry: Option<&Signoff>, what: fn(&Signoff) -> Value| entry.map(what);
    Ok(json!({
        "summaryVersion": "1", "simulationId": simulation, "scope": scope, "scopeLabel": label(scope)?,
        "status": status, "disposition": disposition, "plainLanguageSummary": plain,
        "limitationsAccepted": signed.map_or(json!([]), |signed| json!(signed.limitations)),
        "reviewFocus": signed.map_or(json!([]), |signed| json!(signed.focus)),
        "rationale": of(signed, |entry| entry.rationale.clone().into()),
        "recordedAt": of(signed, at), "recordedBy": of(signed, actor),
        "revokedAt": of(revoked, at), "revokedBy": of(revoked, actor),
        "revocationRationale": of(revoked, |entry| entry.rationale.clone().into()),
        "changesQualificationState": false, "confersDecisionAuthority": false,
        "traceability": {
            "sourceEventType": of(last, |entry| event_type(entry).into()),
            "sourceEventId": of(last, |entry| entry.id.clone().into()),
            "sourceEventHash": of(last, |entry| entry.hash.clone().into()),
            "previousHash": of(last, |entry| entry.previous.clone().into()),
        },
    }))
}

fn at(entry: &Signoff) -> Value {
    gate::journal::format_utc(entry.at_ms).into()
}

/// Who it was, with the groups of that time.
fn actor(entry: &Signoff) -> Value {
    json!({"subject": entry.subject, "roles": entry.roles, "tokenId": null, "isServiceAccount": false})
}

fn event_type(entry: &Signoff) -> &'static str {
    match entry.action {
        SignoffAction::Recorded => "review.signoff.recorded",
        SignoffAction::Revoked => "review.signoff.revoked",
    }
}

/// Returns the meaning of a sign-off, and its limits.
///
/// # Errors
/// [`Fault`] if the scope is none.
pub(super) fn governance(scope: &str) -> Result<Value, Fault> {
    Ok(json!({
        "governanceVersion": "1", "scope": scope, "scopeLabel": label(scope)?, "workflowStatus": "available",
        "plainLanguageSummary": "a sign-off says that somebody has looked and what they made of it; it decides nothing",
        "supportsRecordedSignoff": true, "supportsRevocation": true, "supportsOverride": false,
        "supportsAdjudication": false, "signoffChangesQualificationState": false,
        "signoffConfersDecisionAuthority": false, "externalAuthorityRequiredForOverrides": true,
        "nonGoals": ["qualification of a model", "decisions of a regulator"],
    }))
}

pub(super) fn history(context: &CallContext<'_>, args: Args<'_>) -> Result<Value, Fault> {
    let (simulation, scope, label) = parse_subject(args)?;
    let limit = args.count("limit").unwrap_or(HISTORY_USUAL);
    let limit = usize::try_from(limit).unwrap_or(usize::MAX);
    let index = &context.service.keeper()?.index;
    let chain = index.signoffs(context.caller, simulation, scope)?;
    let whole = is_whole(&chain);
    let told: Vec<Value> = chain.iter().rev().take(limit).map(signoff_value).collect();
    let (status, disposition) = status(&chain);
    let plain = match (whole, chain.len()) {
        (false, _) => {
            "the entries are not what was written: their hashes do not fit together".to_owned()
        }
        (true, 0) => "nobody has signed this off".to_owned(),
        (true, 1) => "one entry".to_owned(),
        (true, count) => format!("{count} entries, the newest first"),
    };
    Ok(json!({
        "operatorReviewSignoffHistory": {
            "historyVersion": "1", "simulationId": simulation, "scope": scope, "scopeLabel": label,
            "status": status, "readableAuditHistory": whole, "plainLanguageSummary": plain,
            "latestStatus": status, "latestDisposition": disposition,
            "returnedEntryCount": told.len(), "totalEntryCount": chain.len(),
            "truncated": told.len() < chain.len(), "entries": told,
        },
        "operatorReviewGovernance": governance(scope)?,
    }))
}

fn signoff_value(entry: &Signoff) -> Value {
    json!({
        "eventType": event_type(entry), "action": entry.action, "timestamp": at(entry),
        "disposition": entry.disposition, "rationale": entry.rationale,
        "limitationsAccepted": entry.limitations, "reviewFocus": entry.focus,
        "actor": actor(entry), "serviceVersion": env!("CARGO_PKG_VERSION"),
        "traceability": {
            "sourceEventId": entry.id, "sourceEventHash": entry.hash, "previousHash": entry.previous,
        },
    })
}
