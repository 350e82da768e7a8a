//! Messages that checkers of `inspect:` look at (`gate::inspect::Checker`): calls before they are judged, and their
//! answers before they go on.

use std::sync::Arc;

use gate::facts::Facts;
use gate::inspect::{About, Finding, Inspected, Inspection, Way};
use wire::jsonrpc::{Kind, member};
use wire::{Bounds, WireError, scan_request};

use super::begin::Begun;
use super::client::Asker;
use super::inspected::{APART, APART_WITH_NAME, Left, OF_RESULT, left_of, withheld_from};
use super::read::{After, Asked, IncomingRequest, Step};
use super::run::{Run, Said};
use super::under_way::CallGuard;
use crate::message::reply::{self, Reply};
use crate::message::{frames, shapes, splice};
use toolkit::trace::Trace;

impl Asker {
    /// The rules, where a checker looks at what goes this way to or from the server.
    pub(super) fn checks(&self, way: Way) -> Option<Arc<Inspection>> {
        let inspection = self.server.gate.inspection()?;
        inspection
            .asks(way, &self.server.name)
            .then_some(inspection)
    }

    /// Has the checkers inspect a call, and reads it again if they change it; their finding is judged with it. Returns
    /// whether the client withdrew the call meanwhile. The protocol's own traffic stays as it is.
    ///
    /// # Errors
    /// What the client is told where the call ends here.
    pub(super) async fn checked(
        &self,
        inspection: &Inspection,
        frame: &mut Inspected<Vec<u8>>,
        asked: &mut Asked,
        guard: Option<&CallGuard>,
    ) -> Result<bool, Begun> {
        let facts = match &asked.step {
            Step::Judge(facts, _) | Step::Unlisted(facts, _) | Step::Return(_, facts, _) => facts,
            Step::Pass(..) | Step::Refuse(_) => return Ok(false),
        };
        let look = self.look(inspection, self.about(Way::Request, facts), frame.message());
        let (looked, is_withdrawn) = self.before_judging(guard, look).await;
        let Some(looked) = looked else {
            return Ok(true);
        };
        let bad =
            |fault: &WireError| Begun::Answered(frames::bad_frame(asked.names.id.as_str(), fault));
        let (changed, finding) = looked.map_err(|fault| bad(&fault))?;
        if let Some(changed) = changed {
            frame.replace(changed);
        }
        if let Some(finding) = finding {
            frame.join(&finding);
            let taken = self.take_finding(frame, asked, &finding);
            taken.map_err(|instead| *instead)?;
        }
        if let Step::Judge(_, origin) | Step::Unlisted(_, origin) = &mut asked.step {
            origin.waited = true;
        }
        Ok(is_withdrawn)
    }

    /// What the checkers leave of a frame's `params`, where they change them, and what they found.
    async fn look(
        &self,
        inspection: &Inspection,
        about: About<'_>,
        frame: &[u8],
    ) -> Result<Left, WireError> {
        let scan = scan_request(frame, &Bounds::default())?;
        let raw = member(&scan.members, "params");
        let Some((raw, place)) = raw.and_then(|raw| Some((raw, reply::place(frame, raw)?))) else {
            return Ok((None, None));
        };
        let apart = match about.name {
            Some(_) => APART_WITH_NAME,
            None => APART,
        };
        let (text, finding) = inspection.checked(about, raw, apart).await;
        let is_masked = finding.as_ref().is_some_and(|finding| finding.masked() > 0);
        let changed = is_masked.then(|| splice::edited(frame, &mut [(place, text.as_bytes())]));
        Ok((changed, finding))
    }

    /// Has the checkers inspect a notification of the client or a request of its server.
    pub(super) async fn checked_beside(
        &self,
        way: Way,
        method: &str,
        mut frame: Inspected<Vec<u8>>,
    ) -> Inspected<Vec<u8>> {
        let Some(inspection) = self.checks(way) else {
            return frame;
        };
        let about = About {
            way,
            server: &self.server.name,
            caller: &self.caller.subject,
            method,
            name: None,
        };
        let look = Box::pin(self.look(&inspection, about, frame.message()));
        // A malformed message is refused by its reader.
        let Ok((changed, Some(found))) = look.await else {
            return frame;
        };
        if let Some(changed) = changed {
            frame.replace(changed);
        }
        frame.join(&found);
        frame
    }

    fn about<'a>(&'a self, way: Way, facts: &'a Facts) -> About<'a> {
        About {
            way,
            server: &self.server.name,
            caller: &self.caller.subject,
            method: &facts.method,
            name: facts.tool_name.known().map(String::as_str),
        }
    }

    /// Reads a call again as the checkers left it, with what they found.
    fn take_finding(
        &self,
        frame: &Inspected<Vec<u8>>,
        asked: &mut Asked,
        found: &Finding,
    ) -> Result<(), Box<Begun>> {
        if let (Step::Return(..), Some(rule)) = (&asked.step, found.denied_by()) {
            // The call waits on as it was, and its client may come back for it.
            let answer = withheld_from(&asked.names.id, (found.reason(), rule));
            return Err(Box::new(Begun::Answered(answer)));
        }
        let (run, parent_op) = match &asked.step {
            Step::Judge(_, origin) | Step::Unlisted(_, origin) | Step::Return(_, _, origin) => {
                (origin.run.clone(), origin.parent_op)
            }
            Step::Pass(..) | Step::Refuse(_) => return Ok(()),
        };
        let id = asked.names.id.clone();
        let bad = |fault: &WireError| Box::new(Begun::Answered(frames::bad_frame(&id, fault)));
        let message = frame.try_map_ref(|frame| shapes::of_client(frame));
        let message = message.map_err(|fault| bad(&fault))?;
        let canonical = message.message();
        let envelope = canonical.envelope().map_err(|fault| bad(&fault))?;
        let Kind::Request { id, method } = envelope.kind else {
            return Ok(());
        };
        let trace = Trace {
            run,
            headers: asked.marks.trace.clone(),
            parent_op,
        };
        let mut again = self.read(&IncomingRequest {
            message: &message,
            scan: &canonical.scan(),
            id,
            method: &method,
            received_ns: asked.received_ns,
            trace: &trace,
        });
        if found.masked() == 0 {
            // They repeat arguments, also those that are masked.
            again.marks.mirrored = asked.marks.mirrored.take();
        }
        *asked = again;
        Ok(())
    }
}

impl Run {
    /// The answer to a call as the checkers leave it.
    ///
    /// # Errors
    /// What the client is told where a rule does not let it pass.
    pub(super) async fn checked(
        &mut self,
        inspection: &Inspection,
        reply: Reply,
    ) -> Result<Reply, Said> {
        let Some((facts, _)) = (match &self.after {
            Some(After::Call(flight)) => flight.about(),
            _ => None,
        }) else {
            return Ok(reply);
        };
        let about = self.asker.about(Way::Result, facts);
        let checked = inspection.checked(about, reply.payload(), OF_RESULT).await;
        let left = left_of(&reply, checked);
        self.left(reply, left)
    }
}
