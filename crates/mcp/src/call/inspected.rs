//! Messages as the inspection leaves them (`gate::inspect`): what is judged, shown, recorded and sent from
//! here on is the text in which matches are masked.

use std::convert::Infallible;
use std::sync::Arc;

use gate::Outcome;
use gate::Reason;
use gate::facts::{Fact, Facts, ResourceType};
use gate::inspect::{Finding, Inspected, InspectedText, Inspection, RULE_PREFIX, Way};
use gate::journal::Status;
use gate::labels::Labels;
use serde_json::{Value, json};
use wire::jsonrpc::Kind;
use wire::{Bounds, Canonical, WireError, scan_request};

use super::client::Asker;
use super::read::After;
use super::run::{Run, Said};
use super::server::Server;
use crate::message::frames;
use crate::message::method::{self, Class};
use crate::message::reply::{self, Reply};
use crate::message::shapes;
use crate::message::splice::{self, Tie};
use crate::notes::Note;
use crate::upstream::News;
use toolkit::reasons::mcp_error;

/// Members of `params` that are the protocol's own: masked, they would be others.
pub(super) const APART: &[&str] = &["_meta", "requestState"];
/// Members of a result that are the protocol's own.
pub(super) const OF_RESULT: &[&str] = &["requestState"];
/// The same as [`APART`] where a request names a tool: one that is not listed is never sent. The name of a prompt is
/// looked at like any other text.
pub(super) const APART_WITH_NAME: &[&str] = &["_meta", "requestState", "name"];

impl Server {
    /// Inspects a client's message. The protocol's own traffic stays as it is, as does a batch: each of its messages is
    /// inspected by itself.
    ///
    /// # Errors
    /// The message is malformed once its matches are masked.
    pub fn inspect(&self, canonical: Canonical) -> Result<Inspected<Canonical>, WireError> {
        self.gate.inspect(canonical, |inspection, canonical| {
            match inspected_part(&canonical) {
                Some((member, apart)) => self.mask_member(inspection, canonical, member, apart),
                None => Ok((canonical, None)),
            }
        })
    }

    /// Inspects the parameters of a notification that is judged.
    ///
    /// # Errors
    /// As [`Self::inspect`].
    pub(super) fn inspect_notification(
        &self,
        canonical: Canonical,
    ) -> Result<Inspected<Canonical>, WireError> {
        self.gate.inspect(canonical, |inspection, canonical| {
            self.mask_member(inspection, canonical, "params", APART)
        })
    }

    /// Masks matches in one member of a message, except in its members `apart`.
    fn mask_member(
        &self,
        inspection: &Inspection,
        canonical: Canonical,
        member: &str,
        apart: &[&str],
    ) -> Result<(Canonical, Option<Finding>), WireError> {
        if !inspection.looks_at(Way::Request, &self.name) {
            return Ok((canonical, None));
        }
        let Some(place) = canonical.member_range(member) else {
            return Ok((canonical, None));
        };
        let raw = canonical.text().get(place.clone()).unwrap_or_default();
        let (text, finding) = inspection.value(Way::Request, &self.name, raw, apart);
        let refuses = |f: &Finding| {
            let rule = f.denied_by().or(f.asked_by())?;
            Some((f.reason(), rule.to_owned()))
        };
        let rule = finding.as_ref().and_then(refuses);
        let changed = match (rule, member) {
            // An answer is judged by nobody, so it does not go on.
            (Some((reason, rule)), "result" | "error") => {
                let id = canonical.member("id").unwrap_or("null");
                Some(withheld_from(id, (reason, &rule)))
            }
            _ => matches!(text, std::borrow::Cow::Owned(_)).then(|| {
                let edits = &mut [(place, text.as_bytes())];
                splice::edited(canonical.text().as_bytes(), edits)
            }),
        };
        match changed {
            Some(changed) => Ok((shapes::of_client(&changed)?, finding)),
            None => Ok((canonical, finding)),
        }
    }
}

/// Returns the member of a message that is inspected, and its members that are not; `None` if no part is.
fn inspected_part(canonical: &Canonical) -> Option<(&'static str, &'static [&'static str])> {
    if canonical.batch().is_some() {
        return None;
    }
    // A malformed message is refused by its reader.
    match &canonical.envelope().ok()?.kind {
        Kind::Request { method, .. } => match method::of(method).class {
            Class::Judged(Some(ResourceType::Tool)) => Some(("params", APART_WITH_NAME)),
            Class::Judged(_) => Some(("params", APART)),
            Class::Control(_) | Class::List(_) => None,
        },
        Kind::Response { is_error: true, .. } => Some(("error", &[])),
        Kind::Response { .. } => Some(("result", &["_meta"])),
        // A notification that is judged is inspected when it is.
        Kind::Notification { .. } => None,
    }
}

/// The answer in the place of one that a rule does not let pass.
pub(super) fn withheld_from(id: &str, refused: (Reason, &str)) -> Vec<u8> {
    let error = withheld(refused);
    let message = error.get("message").and_then(Value::as_str);
    let code = mcp_error(refused.0);
    frames::error(id, code, message.unwrap_or_default(), error.get("data"))
}

/// What a client is told in the place of what a rule does not let pass: code, message and data.
pub fn withheld((reason, rule): (Reason, &str)) -> Value {
    let rule = format!("{RULE_PREFIX}{rule}");
    json!({
        "code": mcp_error(reason),
        "message": reason.sentence(&rule),
        "data": {
            "reason": reason.label(),
            "final_rule": rule,
            "retryable": reason.is_retryable(),
        },
    })
}

impl Asker {
    /// Masks the name of a tool that the server does not list if a rule matches it, and returns the finding: the call is
    /// refused under any name, and the records keep the masked one.
    pub(super) fn hide_name(&self, facts: &mut Facts) -> Option<Finding> {
        let name = facts.tool_name.known().filter(|_| facts.unlisted)?;
        let inspection = self.server.gate.inspection()?;
        let (left, found) = inspection.text(Way::Request, &self.server.name, name);
        let found = found?;
        // A rule that refuses or asks has no mask of its own.
        let rule = found.denied_by().or(found.asked_by());
        let left = match rule {
            Some(rule) => format!("[{RULE_PREFIX}{rule}]"),
            None => left.into_owned(),
        };
        let mut all = facts.inspected.as_deref().cloned().unwrap_or_default();
        all.join(&found);
        facts.state_finding(&all);
        facts.tool_name = Fact::Known(left);
        Some(found)
    }

    /// News of the server as the inspection leaves them; `false` where they may not go on. Nobody can be
    /// asked about news, so a rule that asks refuses them.
    pub(super) fn inspect_news(&self, news: &mut News) -> bool {
        let gate = &self.server.gate;
        if gate.inspection().is_none() {
            gate.heard(&self.caller.subject, &self.server.name, Labels::default());
            return true;
        }
        let Ok(scan) = scan_request(&news.frame, &Bounds::default()) else {
            return false;
        };
        let find = |name| wire::jsonrpc::member(&scan.members, name);
        let Some(raw) = find("params") else {
            return true;
        };
        let Some((text, Some(finding))) = self.said(raw, &["_meta", "progressToken"]) else {
            return true;
        };
        if finding.denied_by().or(finding.asked_by()).is_some() {
            self.client.note(Note::InspectionDenied.into());
            return false;
        }
        if finding.masked() == 0 {
            return true;
        }
        self.client.note(Note::InspectionMasked.into());
        let Some(place) = reply::place(&news.frame, raw) else {
            return false;
        };
        let method = find("method").and_then(wire::jsonrpc::string);
        let method = method.unwrap_or_default().into_owned();
        let frame = splice::edited(&news.frame, &mut [(place, text.as_bytes())]);
        if news.tie.is_some() {
            // It stands elsewhere now.
            let Ok(scan) = scan_request(&frame, &Bounds::default()) else {
                return false;
            };
            let tie = Tie::of(&frame, &method, &scan);
            news.tie = tie.map(|tie| (tie.at, tie.is_token));
        }
        news.frame = frame;
        true
    }

    /// What the server says beside its answers, as the inspection leaves it.
    fn said<'t>(&self, raw: &'t str, apart: &[&str]) -> Option<InspectedText<'t>> {
        let server = &self.server.name;
        let look = |inspection: &Inspection| inspection.value(Way::Result, server, raw, apart);
        self.server.gate.said(&self.caller.subject, server, look)
    }

    /// Inspects a request of the server to its client; its labels are those of the caller's session from here on.
    pub(super) fn inspect_question(&self, frame: Vec<u8>) -> Inspected<Vec<u8>> {
        let (gate, server) = (&self.server.gate, &self.server.name);
        let inspected = gate.inspect(frame, |inspection, frame| {
            Ok::<_, Infallible>(mask_params(inspection, server, frame))
        });
        let Ok(inspected) = inspected;
        let labels = inspected.finding().map(Finding::labels);
        gate.heard(&self.caller.subject, server, labels.unwrap_or_default());
        inspected
    }
}

impl Asker {
    /// Inspects one of the requests that a result or an error carries. The reply as a whole was inspected before, and its
    /// labels count already.
    pub(super) fn inspect_nested(&self, request: String) -> Inspected<Vec<u8>> {
        let server = &self.server.name;
        let inspected = self.server.gate.inspect(request, |inspection, request| {
            let (text, finding) = inspection.value(Way::Result, server, &request, &["_meta"]);
            let text = text.into_owned();
            Ok::<_, Infallible>((text, finding))
        });
        let Ok(inspected) = inspected;
        inspected.map(String::into_bytes)
    }
}

/// Masks matches in the parameters of a server's request.
fn mask_params(
    inspection: &Inspection,
    server: &str,
    frame: Vec<u8>,
) -> (Vec<u8>, Option<Finding>) {
    let (changed, finding) = {
        let Ok(scan) = scan_request(&frame, &Bounds::default()) else {
            return (frame, None);
        };
        let Some(raw) = wire::jsonrpc::member(&scan.members, "params") else {
            return (frame, None);
        };
        let (text, finding) = inspection.value(Way::Result, server, raw, &["_meta"]);
        let place = reply::place(&frame, raw).filter(|_| finding.is_some());
        let changed = place.map(|place| splice::edited(&frame, &mut [(place, text.as_bytes())]));
        (changed, finding)
    };
    (changed.unwrap_or(frame), finding)
}

impl Run {
    /// The answer to a call as the inspection leaves it.
    ///
    /// # Errors
    /// What the client is told where a rule does not let it pass.
    pub(super) fn inspected(&mut self, reply: Reply) -> Result<Reply, Said> {
        let Some(After::Call(flight)) = &self.after else {
            return Ok(reply);
        };
        let Some(inspection) = self.asker.server.gate.inspection() else {
            flight.came_back(Labels::default());
            return Ok(reply);
        };
        let server = Arc::clone(&self.asker.server.name);
        let inspected = inspection.value(Way::Result, &server, reply.payload(), OF_RESULT);
        let left = left_of(&reply, inspected);
        self.left(reply, left)
    }

    /// The answer to a call as what was found in it leaves it.
    pub(super) fn left(&mut self, reply: Reply, (changed, finding): Left) -> Result<Reply, Said> {
        let Some(After::Call(flight)) = &mut self.after else {
            return Ok(reply);
        };
        flight.came_back(finding.as_ref().map(Finding::labels).unwrap_or_default());
        let Some(finding) = finding else {
            return Ok(reply);
        };
        flight.found(&finding);
        // The configuration has no rule that asks about results.
        if let Some(rule) = finding.denied_by().or(finding.asked_by()) {
            let reason = finding.reason();
            let answer = withheld_from(&self.names.id, (reason, rule));
            let code = i64::from(mcp_error(reason));
            if let Some(After::Call(mut flight)) = self.take_after() {
                flight.reply_arrived();
                flight.finish(Outcome {
                    status: Status::Failure,
                    error_code: Some(code),
                    reason: Some(reason.into()),
                    ..Outcome::default()
                });
            }
            return Err(Said::Done(answer, Some(code)));
        }
        // It was a message before, and still is one.
        Ok(changed.and_then(Reply::read).unwrap_or(reply))
    }
}

/// A frame with its matches masked, where there are any, and what was found in it.
pub(super) type Left = (Option<Vec<u8>>, Option<Finding>);

/// What the inspection of its payload leaves of a reply.
pub(super) fn left_of(reply: &Reply, (text, finding): InspectedText<'_>) -> Left {
    let is_masked = finding.as_ref().is_some_and(|finding| finding.masked() > 0);
    let changed = is_masked.then(|| {
        let edits = &mut [(reply.payload.clone(), text.as_bytes())];
        splice::edited(&reply.frame, edits)
    });
    (changed, finding)
}
