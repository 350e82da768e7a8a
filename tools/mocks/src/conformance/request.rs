//! One request to the conformance server, with the members that only its own methods read.

use crate::json;
use crate::server::{RequestFault, RevisionKind, RoutingParams, text};
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;
use serde_json::{Map, Value};
use std::borrow::Cow;

/// A request that was read, in the era it is served in.
pub(super) struct ReadRequest<'a> {
    /// Raw JSON.
    pub(super) id: &'a str,
    pub(super) era: RevisionKind,
    pub(super) method: &'a str,
    pub(super) params: RoutingParams<'a>,
    pub(super) own: Result<RequestMembers<'a>, RequestFault>,
}

/// Further members of `params`.
#[derive(Debug, Default, Deserialize)]
pub(super) struct RequestMembers<'a> {
    #[serde(
        borrow,
        default,
        rename = "inputResponses",
        deserialize_with = "present"
    )]
    responses: Option<&'a RawValue>,
    #[serde(borrow, default, rename = "requestState")]
    state: Option<&'a RawValue>,
    #[serde(default)]
    level: Option<LogLevel>,
    #[serde(default)]
    pub(super) argument: Option<CompletedArgument>,
    #[serde(default)]
    pub(super) notifications: Option<SubscriptionFilter>,
    #[serde(borrow, default, rename = "_meta")]
    meta: Option<RequestMeta<'a>>,
    #[serde(default)]
    capabilities: Option<Map<String, Value>>,
}

/// Argument to complete, in `completion/complete`.
#[derive(Debug, Deserialize)]
pub(super) struct CompletedArgument {
    pub(super) value: String,
}

/// Events that a stateless client subscribes to.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct SubscriptionFilter {
    pub(super) tools_list_changed: bool,
    pub(super) prompts_list_changed: bool,
    pub(super) resource_subscriptions: Vec<String>,
}

/// How grave a log line is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum LogLevel {
    Debug,
    Info,
    Notice,
    Warning,
    Error,
    Critical,
    Alert,
    Emergency,
}

#[derive(Debug, Default, Deserialize)]
struct RequestMeta<'a> {
    #[serde(borrow, default, rename = "progressToken")]
    progress_token: Option<&'a RawValue>,
    #[serde(default, rename = "io.modelcontextprotocol/logLevel")]
    log_level: Option<LogLevel>,
    #[serde(default, rename = "io.modelcontextprotocol/clientCapabilities")]
    capabilities: Option<Map<String, Value>>,
}

fn present<'de: 'a, 'a, D: Deserializer<'de>>(source: D) -> Result<Option<&'a RawValue>, D::Error> {
    <&RawValue>::deserialize(source).map(Some)
}

impl<'a> RequestMembers<'a> {
    /// Reads `params`; what cannot be read is a fault of the caller.
    pub(super) fn read(raw: Option<&'a RawValue>) -> Result<Self, RequestFault> {
        raw.map_or(Ok(Self::default()), |raw| {
            json::object(raw.get().as_bytes()).map_err(|error| {
                RequestFault::InvalidParams(format!("params cannot be read: {error}"))
            })
        })
    }

    /// Returns the capabilities that `initialize` declares.
    pub(super) fn into_capabilities(self) -> Map<String, Value> {
        self.capabilities.unwrap_or_default()
    }
}

impl<'a> ReadRequest<'a> {
    pub(super) fn name(&self) -> Result<Cow<'a, str>, RequestFault> {
        text(self.params.name, "name")
    }

    pub(super) fn uri(&self) -> Result<Cow<'a, str>, RequestFault> {
        text(self.params.uri, "uri")
    }

    /// Raw JSON, an object.
    pub(super) fn arguments(&self) -> &'a str {
        let given = self.params.arguments.map(RawValue::get);
        given.filter(|raw| raw.starts_with('{')).unwrap_or("{}")
    }

    pub(super) fn own(&self) -> Result<&RequestMembers<'a>, RequestFault> {
        self.own.as_ref().map_err(Clone::clone)
    }

    fn meta(&self) -> Option<&RequestMeta<'a>> {
        self.own.as_ref().ok()?.meta.as_ref()
    }

    pub(super) fn level(&self) -> Result<LogLevel, RequestFault> {
        self.own()?
            .level
            .ok_or_else(|| RequestFault::InvalidParams("params.level is missing".into()))
    }

    /// Returns the least level that this request wants to hear of, if it is the request that says so.
    pub(super) fn log_level(&self) -> Option<LogLevel> {
        self.meta()?.log_level
    }

    /// Raw JSON.
    pub(super) fn progress_token(&self) -> Option<&'a str> {
        self.meta()?.progress_token.map(RawValue::get)
    }

    /// Returns whether the request itself declares a capability, as Modern requests do.
    pub(super) fn declares(&self, capability: &str) -> bool {
        self.meta()
            .and_then(|meta| meta.capabilities.as_ref())
            .is_some_and(|capabilities| capabilities.contains_key(capability))
    }

    /// Returns the client's answers, by the keys of the questions. Each is an object.
    pub(super) fn responses(&self) -> Result<Map<String, Value>, RequestFault> {
        let wrong =
            |what: &str| RequestFault::InvalidParams(format!("params.inputResponses {what}"));
        let Some(raw) = self.own()?.responses else {
            return Ok(Map::new());
        };
        let answers: Map<String, Value> =
            serde_json::from_str(raw.get()).map_err(|_| wrong("is not an object"))?;
        match answers.values().all(Value::is_object) {
            true => Ok(answers),
            false => Err(wrong("holds what is not an object")),
        }
    }

    pub(super) fn state(&self) -> Result<Option<Cow<'a, str>>, RequestFault> {
        self.own()?
            .state
            .map(|raw| text(Some(raw), "requestState"))
            .transpose()
    }
}
