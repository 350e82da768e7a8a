//! Who wants to hear of changes: Legacy sessions of what they subscribed to, Modern ones through
//! `subscriptions/listen`.

use super::request::{ReadRequest, SubscriptionFilter};
use crate::json::quote;
use crate::server::{ChangeEvent, MachineAction, RequestFault};

/// How many resources one session watches at most.
const WATCHED_MAX: usize = 256;
/// How many `subscriptions/listen` one session has open at most.
const LISTENS_MAX: usize = 64;

#[derive(Debug, Default)]
pub(super) struct SubscriptionTable {
    /// URIs that a session-based client watches.
    watched: Vec<String>,
    /// The open requests of Modern clients: their ids (raw JSON) and what they want to hear of.
    listens: Vec<(String, SubscriptionFilter)>,
}

impl SubscriptionTable {
    pub(super) fn subscribe(&mut self, uri: &str) -> Result<(), RequestFault> {
        if self.watched.iter().any(|watched| watched == uri) {
            return Ok(());
        }
        if self.watched.len() >= WATCHED_MAX {
            let text = format!("a session watches at most {WATCHED_MAX} resources");
            return Err(RequestFault::InvalidParams(text));
        }
        self.watched.push(uri.to_owned());
        Ok(())
    }

    pub(super) fn unsubscribe(&mut self, uri: &str) {
        self.watched.retain(|watched| watched != uri);
    }

    /// Opens a listen request and acknowledges what it will hear of.
    pub(super) fn listen(
        &mut self,
        request: &ReadRequest<'_>,
        actions: &mut Vec<MachineAction>,
    ) -> Result<(), RequestFault> {
        let Some(filter) = request.own()?.notifications.clone() else {
            return Err(RequestFault::InvalidParams(
                "params.notifications is missing".into(),
            ));
        };
        if self.listens.len() >= LISTENS_MAX {
            let text = format!("at most {LISTENS_MAX} subscriptions are open at a time");
            return Err(RequestFault::InvalidParams(text));
        }
        let accepted = format!(r#""notifications":{}"#, filter.filter_json());
        let frame = notification("subscriptions/acknowledged", Some(request.id), &accepted);
        actions.push(MachineAction::Send(frame));
        self.listens.push((request.id.to_owned(), filter));
        Ok(())
    }

    /// Ends the listen request with this id, raw JSON.
    pub(super) fn end(&mut self, id: &str) {
        self.listens.retain(|(listen, _)| listen != id);
    }

    /// Appends what this session's client wants to hear of an event.
    pub(super) fn owed(&self, event: &ChangeEvent, legacy: bool, actions: &mut Vec<MachineAction>) {
        let (name, members) = match event {
            ChangeEvent::Tools => ("tools/list_changed", String::new()),
            ChangeEvent::Prompts => ("prompts/list_changed", String::new()),
            ChangeEvent::Resource(uri) => ("resources/updated", format!(r#""uri":{}"#, quote(uri))),
        };
        let watched = match event {
            ChangeEvent::Tools | ChangeEvent::Prompts => true,
            ChangeEvent::Resource(uri) => self.watched.contains(uri),
        };
        if legacy && watched {
            actions.push(MachineAction::Send(notification(name, None, &members)));
        }
        for (id, filter) in &self.listens {
            if filter.wants(event) {
                actions.push(MachineAction::Send(notification(name, Some(id), &members)));
            }
        }
    }
}

impl SubscriptionFilter {
    fn wants(&self, event: &ChangeEvent) -> bool {
        match event {
            ChangeEvent::Tools => self.tools_list_changed,
            ChangeEvent::Prompts => self.prompts_list_changed,
            ChangeEvent::Resource(uri) => self.resource_subscriptions.contains(uri),
        }
    }

    /// Returns the filter as it is honoured, raw JSON.
    fn filter_json(&self) -> String {
        let mut members = Vec::new();
        if self.tools_list_changed {
            members.push(r#""toolsListChanged":true"#.to_owned());
        }
        if self.prompts_list_changed {
            members.push(r#""promptsListChanged":true"#.to_owned());
        }
        if !self.resource_subscriptions.is_empty() {
            let uris: Vec<String> = self
                .resource_subscriptions
                .iter()
                .map(|u| quote(u))
                .collect();
            members.push(format!(r#""resourceSubscriptions":[{}]"#, uris.join(",")));
        }
        format!("{{{}}}", members.join(","))
    }
}

/// Returns a notification; `subscription` is the raw id of the request it belongs to, `members` those of params.
fn notification(name: &str, subscription: Option<&str>, members: &str) -> Vec<u8> {
    let meta = subscription
        .map(|id| format!(r#""_meta":{{"io.modelcontextprotocol/subscriptionId":{id}}}"#));
    let members: Vec<&str> = meta
        .as_deref()
        .into_iter()
        .chain(Some(members).filter(|members| !members.is_empty()))
        .collect();
    let params = if members.is_empty() {
        String::new()
    } else {
        format!(r#","params":{{{}}}"#, members.join(","))
    };
    format!(r#"{{"jsonrpc":"2.0","method":"notifications/{name}"{params}}}"#).into_bytes()
}
