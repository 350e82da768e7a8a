//! Messages as the inspection leaves them (`gate::inspect`): what is judged, shown, recorded and sent from
//! here on is the text in which matches are masked.

use std::sync::Arc;

use gate::Outcome;
use gate::Reason;
use gate::facts::{Fact, Facts, ResourceType};
use gate::inspect::{Finding, Inspected, Inspection, RULE_PREFIX, Way};
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
    /// A client's message as the inspection leaves it, and what was found in it. The protocol's own traffic
    /// is left alone, and a batch: its messages come one by one.
    ///
    /// # Errors
    /// Where what is left is no message any more.
    pub fn inspected(
        &self,
        canonical: Canonical,
    ) -> Result<(Canonical, Option<Finding>), WireError> {
        if self.gate.inspection().is_none() || canonical.batch().is_some() {
            return Ok((canonical, None));
        }
        let (member, apart) = match canonical.envelope() {
            Ok(envelope) => match &envelope.kind {
                Kind::Request { method, .. } => match method::of(method).class {
                    Class::Judged(Some(ResourceType::Tool)) => ("params", APART_WITH_NAME),
                    Class::Judged(_) => ("params", APART),
                    Class::Control(_) | Class::List(_) => return Ok((canonical, None)),
                },
                Kind::Response { is_error: true, .. } => ("error", &[][..]),
                Kind::Response { .. } => ("result", &["_meta"][..]),
                // One that is judged is looked at then.
                Kind::Notification { .. } => return Ok((canonical, None)),
            },
            // Its reader says what is wrong with it.
            Err(_) => return Ok((canonical, None)),
        };
        self.inspected_in(canonical, member, apart)
    }

    /// The same for one member of a message, but for the members `apart` of that.
    ///
    /// # Errors
    /// Where what is left is no message any more.
    pub(super) fn inspected_in(
        &self,
        canonical: Canonical,
        member: &str,
        apart: &[&str],
    ) -> Result<(Canonical, Option<Finding>), WireError> {
        let Some(inspection) = self.gate.inspection() else {
            return Ok((canonical, None));
        };
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
    /// What stands in the place of the name of a tool that the server does not list, and in which a rule finds
    /// something: the call is refused under any name, and the records keep what they are given.
    pub(super) fn hide_name(&self, facts: &mut Facts) {
        let Some(name) = facts.tool_name.known().filter(|_| facts.unlisted) else {
            return;
        };
        let Some(inspection) = self.server.gate.inspection() else {
            return;
        };
        let (left, found) = inspection.text(Way::Request, &self.server.name, name);
        let Some(found) = found else {
            return;
        };
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
    fn said<'t>(&self, raw: &'t str, apart: &[&str]) -> Option<Inspected<'t>> {
        let server = &self.server.name;
        let look = |inspection: &Inspection| inspection.value(Way::Result, server, raw, apart);
        self.server.gate.said(&self.caller.subject, server, look)
    }

    /// A request of the server to its client as the inspection leaves it, and what was found in it.
    pub(super) fn inspect_question(&self, frame: Vec<u8>) -> (Vec<u8>, Option<Finding>) {
        let gate = &self.server.gate;
        if gate.inspection().is_none() {
            gate.heard(&self.caller.subject, &self.server.name, Labels::default());
            return (frame, None);
        }
        let changed = {
            let Ok(scan) = scan_request(&frame, &Bounds::default()) else {
                return (frame, None);
            };
            let Some(raw) = wire::jsonrpc::member(&scan.members, "params") else {
                return (frame, None);
            };
            let (text, finding) = self.said(raw, &["_meta"]).unwrap_or_default();
            let place = reply::place(&frame, raw).filter(|_| finding.is_some());
            let changed =
                place.map(|place| splice::edited(&frame, &mut [(place, text.as_bytes())]));
            (changed, finding)
        };
        match changed {
            (Some(changed), finding) => (changed, finding),
            (None, finding) => (frame, finding),
        }
    }
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
pub(super) fn left_of(reply: &Reply, (text, finding): Inspected<'_>) -> Left {
    let is_masked = finding.as_ref().is_some_and(|finding| finding.masked() > 0);
    let changed = is_masked.then(|| {
        let edits = &mut [(reply.payload.clone(), text.as_bytes())];
        splice::edited(&reply.frame, edits)
    });
    (changed, finding)
}
