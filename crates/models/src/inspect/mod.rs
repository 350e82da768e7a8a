//! What the rules of `inspect:` find in requests to models and in their replies: the same rules as for tools
//! (`gate::inspect`), with a provider in the place of a server.
//!
//! What is found is masked before a request is judged and sent, and before a reply, or a part of one, goes on.

mod leaves;
mod stream;

use std::borrow::Cow;

use bytes::Bytes;
use gate::inspect::{Finding, Inspection, RULE_PREFIX, Way};
use gate::{Gate, InFlight, Reason};
use serde_json::Value;
use wire::model::members;

use crate::provider::{Fault, Remedy, Trouble};

pub(crate) use stream::Held;

/// The member of a request that is a name of ours: masked, it would be another model.
const APART: [&str; 1] = ["model"];

/// A request as the rules leave it that look at what goes to any of these providers.
pub(crate) fn request<'b>(
    inspection: &Inspection,
    providers: &[&str],
    body: &'b str,
) -> (Cow<'b, str>, Option<Finding>) {
    let ours = inspection.for_any(Way::Request, providers);
    ours.value(Way::Request, "", body, &APART)
}

/// Notes in a call what was found in its reply; the rule that does not let it pass.
pub(crate) fn note(flight: &mut InFlight, finding: &Finding) -> Option<String> {
    flight.found(finding);
    if !finding.labels().is_empty() {
        flight.came_back(finding.labels());
    }
    let rule = finding.denied_by().or(finding.asked_by())?;
    Some(format!("{RULE_PREFIX}{rule}"))
}

/// A whole reply as the rules leave it.
///
/// # Errors
/// What the caller is told where a rule does not let it pass.
pub(crate) fn reply(
    gate: &Gate,
    provider: &str,
    body: Bytes,
    flight: &mut InFlight,
) -> Result<Bytes, Fault> {
    let Some(inspection) = gate.inspection() else {
        return Ok(body);
    };
    // What is no text, such as sound, is not looked at.
    let Ok(text) = std::str::from_utf8(&body) else {
        return Ok(body);
    };
    let is_plain = members(text).is_empty();
    let (text, finding) = match is_plain {
        true => inspection.text(Way::Result, provider, text),
        false => inspection.value(Way::Result, provider, text, &[]),
    };
    let Some(finding) = finding else {
        return Ok(body);
    };
    if let Some(rule) = note(flight, &finding) {
        return Err(withheld(&rule));
    }
    if finding.masked() == 0 {
        return Ok(body);
    }
    if is_plain {
        return Ok(text.into_owned().into());
    }
    let Ok(mut value) = serde_json::from_str::<Value>(&text) else {
        return Err(withheld(RULE_PREFIX));
    };
    if leaves::drop_tokens(&mut value) {
        return Ok(value.to_string().into());
    }
    Ok(text.into_owned().into())
}

/// A provider's error as the rules leave it. Where they do not let it pass, the caller is told so and nothing of it;
/// what helps against it stays the same.
pub(crate) fn fault(gate: &Gate, provider: &str, mut fault: Fault, flight: &mut InFlight) -> Fault {
    let Some((status, body)) = fault.answer.take() else {
        return fault;
    };
    match reply(gate, provider, body, flight) {
        Ok(body) => fault.answer = Some((status, body)),
        Err(withheld) => fault.told = withheld.told,
    }
    fault
}

/// A sentence of a provider as the rules leave it; none where they do not let it pass. What is found is added to
/// `finding`.
fn sentence(
    inspection: &Inspection,
    provider: &str,
    text: &str,
    finding: &mut Option<Finding>,
) -> Option<String> {
    let (left, found) = inspection.text(Way::Result, provider, text);
    if let Some(found) = found {
        let is_denied = found.denied_by().or(found.asked_by()).is_some();
        finding.get_or_insert_default().join(&found);
        if is_denied {
            return None;
        }
    }
    Some(left.into_owned())
}

/// A reply that a rule does not let pass.
fn withheld(rule: &str) -> Fault {
    let trouble = Trouble::Withheld;
    Fault {
        told: Some((trouble.status(), Reason::Inspected.sentence(rule))),
        ..Fault::of(trouble, Remedy::Nothing)
    }
}
