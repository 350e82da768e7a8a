//! Messages that another face of this process makes of its own requests: they are read, judged, recorded and carried
//! out like any client's.

use std::sync::Arc;

use ::http::{HeaderMap, HeaderValue};
use gate::inspect::{About, Finding, Way};
use serde_json::{Value, json};
use toolkit::Trace;
use toolkit::face::Behalf;

use super::post::{Message, ReceivedMessage};
use super::{Face, answer};
use crate::call::{Begun, Said, withheld};
use crate::message::{method, shapes};
use crate::notes::Note;

/// The revision in which they are written: the one without sessions.
const REVISION: &str = "2026-07-28";

impl Face {
    /// Makes a request of the server of this name on somebody's behalf, within the run that they name; gives the whole answer, as JSON-RPC has it. `None`
    /// where no such server is served. Dropping the future cancels the request.
    pub async fn ask(
        self: &Arc<Self>,
        server: &str,
        behalf: Behalf<'_>,
        method: &str,
        mut params: Value,
    ) -> Option<Value> {
        let received_ns = self.gate.mono_ns();
        let server = self.servers().get(server).cloned()?;
        let named_by = method::of(method).named_by;
        let name = named_by
            .and_then(|key| params.get(key)?.as_str())
            .map(str::to_owned);
        if let Some(members) = params.as_object_mut() {
            members.insert("_meta".into(), meta());
        }
        let request = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
        let mut headers = headers(method, name.as_deref())?;
        if let Some(carried) = &behalf.trace.headers {
            headers.extend(carried.as_ref().clone());
        }
        let canonical = shapes::of_client(request.to_string().as_bytes()).ok()?;
        let inspected = server.inspect(canonical).ok()?;
        let message = {
            let came = ReceivedMessage {
                message: &inspected,
                scan: &inspected.message().scan(),
                trace: &Trace::of(&headers),
                received_ns,
            };
            self.read(&server, behalf.caller, &headers, &came)
        };
        let Message::Request(asker, asked, _) = message else {
            return None;
        };
        let frame = inspected.map(wire::Canonical::into_bytes);
        let frame = match asker.begin(frame, asked, None).await {
            Begun::Answered(frame) | Begun::Full(frame) => frame,
            // It is our own, and for a built-in server: both speak one revision, and nothing has headers of its own.
            Begun::EraMismatch | Begun::HeaderMismatch(_) => return None,
            Begun::Running(mut run) => loop {
                match run.next().await {
                    // Nobody asked for progress.
                    Said::Emit(_) => {}
                    Said::Done(frame, _) => break frame,
                    Said::Gone => return None,
                }
            },
        };
        serde_json::from_slice(&frame).ok()
    }
}

/// What another face sends beside the answers to its requests.
#[derive(Debug)]
pub enum Beside {
    /// A JSON value: its strings, numbers and names are looked at one by one.
    Json(String),
    /// A text, which is looked at as a whole.
    Text(String),
}

impl Face {
    /// Whether anything is looked for in what this server answers.
    #[must_use]
    pub fn inspects_results(&self, server: &str) -> bool {
        let inspection = self.gate.inspection();
        inspection.is_some_and(|inspection| inspection.looks_at(Way::Result, server))
    }

    /// What another face sends to a caller beside the answers to its requests, as the inspection leaves it.
    ///
    /// # Errors
    /// Where a rule does not let it pass: the error that a client of ours would get, as JSON-RPC has it.
    pub async fn beside(
        &self,
        server: &str,
        caller: &Arc<str>,
        sent: Beside,
    ) -> Result<String, Value> {
        let name = Arc::from(server);
        let (Beside::Json(text) | Beside::Text(text)) = &sent;
        let inspected = self.gate.said(caller, &name, |inspection| match &sent {
            Beside::Json(raw) => inspection.value(Way::Result, server, raw, &[]),
            Beside::Text(text) => inspection.text(Way::Result, server, text),
        });
        let (left, finding) = inspected.unwrap_or((text.into(), None));
        let left = self.passed(&left, finding)?;
        let Some(inspection) = self.gate.inspection() else {
            return Ok(left);
        };
        let about = About {
            way: Way::Result,
            server,
            caller,
            method: "",
            name: None,
        };
        let (checked, finding) = match &sent {
            Beside::Json(_) => inspection.checked(about, &left, &[]).await,
            Beside::Text(_) => inspection.checked_text(about, &left).await,
        };
        let labels = finding.as_ref().map(Finding::labels).unwrap_or_default();
        self.gate.heard(caller, &name, labels);
        self.passed(&checked, finding)
    }

    /// What goes on of it, with a note of what was found.
    fn passed(&self, left: &str, finding: Option<Finding>) -> Result<String, Value> {
        let finding = finding.unwrap_or_default();
        if let Some(rule) = finding.denied_by().or(finding.asked_by()) {
            self.note(Note::InspectionDenied.into());
            return Err(withheld((finding.reason(), rule)));
        }
        if finding.masked() > 0 {
            self.note(Note::InspectionMasked.into());
        }
        Ok(left.to_owned())
    }
}

fn meta() -> Value {
    json!({
        "io.modelcontextprotocol/protocolVersion": REVISION,
        "io.modelcontextprotocol/clientCapabilities": {},
        "io.modelcontextprotocol/clientInfo": {"name": "durward", "version": env!("CARGO_PKG_VERSION")},
    })
}

/// The headers in which the revision wants method and name repeated.
fn headers(method: &str, name: Option<&str>) -> Option<HeaderMap> {
    let mut headers = HeaderMap::new();
    headers.insert(
        &answer::PROTOCOL_VERSION,
        HeaderValue::from_static(REVISION),
    );
    headers.insert(&answer::METHOD, HeaderValue::from_str(method).ok()?);
    if let Some(name) = name {
        headers.insert(&answer::NAME, HeaderValue::from_str(name).ok()?);
    }
    Some(headers)
}
