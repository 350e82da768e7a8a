//! What the rules of `inspect:` find in requests to models and in their replies: the same rules as for tools
//! (`gate::inspect`), with a provider in the place of a server.
//!
//! What is found is masked before a request is judged and sent, and before a reply, or a part of one, goes on.

mod leaves;
mod stream;

use std::borrow::Cow;

use bytes::Bytes;
use dialects::members;
use gate::inspect::{About, Finding, InspectedText, Inspection, RULE_PREFIX, Way};
use gate::{Gate, InFlight, Reason};
use serde_json::Value;
use toolkit::reasons::http_status;

use crate::provider::{Fault, Remedy, Trouble};

pub(crate) use stream::{Answers, Held, Whose};

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

/// The same as the checkers leave it; `about` names the call.
pub(crate) async fn checked_request<'b>(
    inspection: &Inspection,
    providers: &[&str],
    about: About<'_>,
    body: &'b str,
) -> (Cow<'b, str>, Option<Finding>) {
    let ours = inspection.for_any(Way::Request, providers);
    ours.checked(about, body, &APART).await
}

/// A rule that does not let something pass, and why.
type Refusing = (Reason, String);

/// Notes in a call what was found in its reply; the rule that does not let it pass.
pub(crate) fn note(flight: &mut InFlight, finding: &Finding) -> Option<Refusing> {
    flight.found(finding);
    if !finding.labels().is_empty() {
        flight.came_back(finding.labels());
    }
    let rule = finding.denied_by().or(finding.asked_by())?;
    Some((finding.reason(), format!("{RULE_PREFIX}{rule}")))
}

/// A whole reply as the rules leave it.
///
/// # Errors
/// What the caller is told where a rule does not let it pass.
pub(crate) async fn reply(
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
    let inspected = match is_plain {
        true => inspection.text(Way::Result, provider, text),
        false => inspection.value(Way::Result, provider, text, &[]),
    };
    let text = left(is_plain, inspected, flight)?;
    let text = match (inspection.asks(Way::Result, provider), flight.about()) {
        (true, Some((facts, _))) => {
            let about = About {
                way: Way::Result,
                server: provider,
                caller: &facts.subject_id,
                method: &facts.method,
                name: facts.tool_name.known().map(String::as_str),
            };
            let checked = match is_plain {
                true => inspection.checked_text(about, &text).await,
                false => inspection.checked(about, &text, &[]).await,
            };
            Cow::Owned(left(is_plain, checked, flight)?.into_owned())
        }
        _ => text,
    };
    match text {
        Cow::Borrowed(_) => Ok(body),
        Cow::Owned(text) => Ok(text.into()),
    }
}

/// What goes on of a text in which this was found.
fn left<'t>(
    is_plain: bool,
    (text, finding): InspectedText<'t>,
    flight: &mut InFlight,
) -> Result<Cow<'t, str>, Fault> {
    let Some(finding) = finding else {
        return Ok(text);
    };
    if let Some(refusing) = note(flight, &finding) {
        return Err(withheld(&refusing));
    }
    if finding.masked() == 0 || is_plain {
        return Ok(text);
    }
    let Ok(mut value) = serde_json::from_str::<Value>(&text) else {
        return Err(withheld(&(Reason::Inspected, RULE_PREFIX.to_owned())));
    };
    match leaves::drop_tokens(&mut value) {
        true => Ok(value.to_string().into()),
        false => Ok(text),
    }
}

/// A provider's error as the rules leave it. Where they do not let it pass, the caller is told so and nothing of it;
/// what helps against it stays the same.
pub(crate) async fn fault(
    gate: &Gate,
    provider: &str,
    mut fault: Fault,
    flight: &mut InFlight,
) -> Fault {
    if let Some((status, said)) = fault.told.take() {
        match reply(gate, provider, said.into(), flight).await {
            Ok(said) => {
                let said = String::from_utf8_lossy(&said).into_owned();
                fault.told = Some((status, said));
            }
            Err(withheld) => fault.told = withheld.told,
        }
    }
    let Some((status, body)) = fault.answer.take() else {
        return fault;
    };
    match reply(gate, provider, body, flight).await {
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
fn withheld((reason, rule): &Refusing) -> Fault {
    let trouble = Trouble::Withheld;
    Fault {
        told: Some((http_status(*reason), reason.sentence(rule))),
        ..Fault::of(trouble, Remedy::Nothing)
    }
}
