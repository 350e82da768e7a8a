//! `/audit/events`: a reading of `sim://audit/events`, judged and recorded like that of any client.

use http::header::CACHE_CONTROL;
use http::request::Parts;
use http::{HeaderValue, StatusCode};
use net::http::server::Response;
use serde_json::{Map, Value, json};
use toolkit::face::Behalf;

use super::answer::PendingAnswer;
use super::openapi::{answers, content};
use super::{RestFace, body, failure, refusal_fault};
use crate::audit::{EventQuery, GROUP, LIMIT_MAX, TYPE_CHARS_MAX, UNREAD};
use crate::fault::{Fault, Kind};
use crate::tools::schema;

/// Path of the endpoint.
pub(super) const EVENTS: &str = "/audit/events";
/// The code of JSON-RPC for parameters that are wrong.
const INVALID_PARAMS: i64 = -32_602;
/// No cache keeps them.
const UNKEPT: HeaderValue = HeaderValue::from_static("no-store");
/// Shape of the answer.
const SHAPE: &str = "{events [{eventId s, timestamp s, eventType s, identity {subject s, roles [s]}?, ~tool {name s, argumentsDigest s?, resultDigest s?, status s, durationMs f?}, ~request {method s, bodyDigest s?}, ~response {outcome s, bodyDigest s?, durationMs f?}, ~job {jobId s?, jobType s, status s, finishedAt s, queueWaitSeconds f?, runtimeSeconds f?}, ~error s, ~count i, op s?, previousHash s, hash s}], ~notes [s]}";

impl RestFace {
    /// Answers [`EVENTS`].
    pub(super) async fn audit(
        &self,
        behalf: Behalf<'_>,
        head: &Parts,
        answering: &PendingAnswer,
    ) -> Result<Response, Fault> {
        let asked = parse_query(head);
        // Who may not read it learns that before anything about the query, of which nothing is read then.
        let uri = asked.as_ref().map_or(UNREAD.to_owned(), EventQuery::to_uri);
        let answer = self
            .calls
            .ask(&self.server, behalf, "resources/read", json!({"uri": uri}));
        let told = match (contents(answer.await), asked) {
            (Err(fault), Err(unread)) if fault.kind == Kind::InvalidInput => return Err(unread),
            (Err(fault), _) => return Err(fault),
            (Ok(_), Err(unread)) => return Err(unread),
            (Ok(told), Ok(_)) => told,
        };
        let mut response = answering.json(StatusCode::OK.as_u16(), &told);
        response.headers_mut().insert(CACHE_CONTROL, UNKEPT);
        Ok(response)
    }
}

/// Parses the query.
fn parse_query(head: &Parts) -> Result<EventQuery, Fault> {
    body::only(head, &["limit", "eventType"])?;
    let (limit, event_type) = (
        body::query_value(head, "limit")?,
        body::query_value(head, "eventType")?,
    );
    EventQuery::of(limit.as_deref(), event_type.as_deref())
}

/// Returns the JSON in the contents of a resource that was read, or why there is none.
fn contents(answer: Option<Value>) -> Result<Value, Fault> {
    let gone = || Fault::new(Kind::InteropError, "the server is not there");
    let answer = answer.ok_or_else(gone)?;
    if let Some(error) = answer.get("error") {
        return Err(unread(error));
    }
    let text = answer.pointer("/result/contents/0/text");
    let told = text.and_then(|text| serde_json::from_str(text.as_str()?).ok());
    told.ok_or_else(|| Fault::new(Kind::InternalError, "the answer cannot be read as JSON"))
}

/// Returns why a resource was not read: the server's own failure, wrong parameters, or a refusal by the gate.
fn unread(error: &Value) -> Fault {
    let data = error.get("data");
    let says = |name: &str| data.is_some_and(|data| data.get(name).is_some());
    if says("reason") {
        return refusal_fault(error);
    }
    if says("code") {
        return failure(data);
    }
    let mut fault = refusal_fault(error);
    if error.get("code").and_then(Value::as_i64) == Some(INVALID_PARAMS) {
        fault.kind = Kind::InvalidInput;
    }
    fault
}

/// Returns the path as OpenAPI has it.
pub(super) fn documented() -> Map<String, Value> {
    let told = content("application/json", &schema(SHAPE).unwrap_or_default());
    let member = |name: &str, schema: Value| json!({"name": name, "in": "query", "required": false, "schema": schema});
    let parameters = json!([
        member(
            "limit",
            json!({"type": "integer", "minimum": 1, "maximum": LIMIT_MAX})
        ),
        member(
            "eventType",
            json!({"type": "string", "minLength": 1, "maxLength": TYPE_CHARS_MAX})
        ),
    ]);
    let operation = json!({"get": {
        "operationId": "audit_events",
        "summary": "What the journal has of the calls of this server, the newest first",
        "description": format!("For callers of the group {GROUP}. Arguments and results are not in the journal, only their digests."),
        "parameters": parameters, "responses": answers(200, "The events", told),
    }});
    Map::from_iter([(EVENTS.to_owned(), operation)])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_is_told_as_what_it_was() {
        let told = |error: Value| {
            let fault = contents(Some(json!({"error": error}))).unwrap_err();
            (fault.kind, fault.message, fault.details.len())
        };
        let of_gate =
            json!({"code": -31_001, "message": "no", "data": {"reason": "denied_by_rule"}});
        assert_eq!(told(of_gate), (Kind::Forbidden, "no".to_owned(), 1));
        let own = json!({"code": -32_603, "message": "no", "data": {
            "code": "Busy", "message": "later", "details": [{"issue": "later"}]}});
        assert_eq!(told(own), (Kind::Busy, "later".to_owned(), 1));
        let params = json!({"code": -32_602, "message": "no", "data": {"uri": "sim://audit"}});
        assert_eq!(told(params).0, Kind::InvalidInput);
        assert_eq!(contents(None).unwrap_err().kind, Kind::InteropError);
        let nonsense = json!({"result": {"contents": [{"text": "nonsense"}]}});
        assert_eq!(
            contents(Some(nonsense)).unwrap_err().kind,
            Kind::InternalError
        );
        let good = json!({"result": {"contents": [{"text": "{\"events\": []}"}]}});
        assert_eq!(contents(Some(good)).unwrap(), json!({"events": []}));
    }
}
