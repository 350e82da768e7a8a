//! What another face of this process sends beside the answers to its requests, as the inspection leaves it.

use std::sync::Arc;

use gate::inspect::{About, Finding, Way};
use serde_json::Value;

use super::Face;
use crate::call::withheld;
use crate::notes::Note;

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
