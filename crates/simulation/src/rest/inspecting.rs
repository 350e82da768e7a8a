//! What streams send beside the answers to calls, on its way through the rules of `inspect:`.

use std::sync::Arc;

use serde_json::Value;

use super::{RestFace, SentContent, ToolCaller, refusal_fault};
use crate::fault::{Fault, Kind};

impl RestFace {
    pub(super) fn inspecting(&self) -> SentInspector {
        SentInspector {
            calls: Arc::clone(&self.calls),
            server: self.server.clone(),
        }
    }
}

/// Has what is sent looked at by the rules of `inspect:`.
pub(super) struct SentInspector {
    calls: Arc<dyn ToolCaller>,
    server: String,
}

impl SentInspector {
    pub(super) fn is_on(&self) -> bool {
        self.calls.inspects(&self.server)
    }

    pub(super) async fn inspect(
        &self,
        caller: &Arc<str>,
        sent: SentContent,
    ) -> Result<String, Fault> {
        let inspected = self.calls.inspect(&self.server, caller, sent).await;
        inspected.map_err(|error| refusal_fault(&error))
    }

    pub(super) async fn json(&self, caller: &Arc<str>, value: &Value) -> Result<String, Fault> {
        self.inspect(caller, SentContent::Json(value.to_string()))
            .await
    }

    /// For what is sent in another form than text: `text` is what it says, where somebody looks at that. Nothing can be
    /// masked in it, so it is refused where something would be.
    pub(super) async fn unchanged(
        &self,
        caller: &Arc<str>,
        text: Option<String>,
    ) -> Result<(), Fault> {
        let Some(text) = text else {
            return Ok(());
        };
        match self
            .inspect(caller, SentContent::Text(text.clone()))
            .await?
            == text
        {
            true => Ok(()),
            false => {
                let wrong = "a rule of inspect would mask something in this chunk, and columns cannot be masked";
                let hint = "ask for format=json or format=csv";
                Err(Fault::of(Kind::Forbidden, "format", wrong)
                    .code(gate::Reason::Inspected.label())
                    .hint(hint))
            }
        }
    }
}
