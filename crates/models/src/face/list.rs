//! The list of models that a caller may use.

use std::sync::Arc;

use gate::Caller;
use gate::facts::Facts;
use http::{HeaderMap, StatusCode};
use net::http::server::Response;

use super::Face;
use super::answer::Answer;
use crate::call::{may_ask, of_target, origin};
use crate::catalogue::Route;

/// What is said of a model's age: nobody knows it.
const CREATED: &str =
    "\"created\":0,\"created_at\":\"1970-01-01T00:00:00Z\",\"lifecycle\":\"active\"";

impl Face {
    /// All models that the caller may use, in a form that the clients of both dialects read.
    pub(super) fn list(&self, caller: &Caller, headers: &HeaderMap, answer: &Answer) -> Response {
        if let Err(refused) = self.count(caller, headers, answer) {
            return *refused;
        }
        let names: Vec<String> = self
            .catalogue
            .names()
            .chain(self.catalogue.examples())
            .flat_map(|(name, route)| {
                let bare = name.split_once('/').filter(|_| route.makes_calls());
                let bare = bare.map(|(_, bare)| (bare.to_owned(), route));
                bare.into_iter().chain([(name, route)])
            })
            .filter(|(name, route)| self.may_use(caller, name, route))
            .map(|(name, _)| name)
            .collect();
        let data: Vec<String> = names.iter().map(|name| entry(name)).collect();
        let end = |name: Option<&String>| name.map_or_else(|| "null".to_owned(), |n| quoted(n));
        let body = format!(
            "{{\"object\":\"list\",\"data\":[{}],\"has_more\":false,\"first_id\":{},\"last_id\":{}}}",
            data.join(","),
            end(names.first()),
            end(names.last())
        );
        answer.json(StatusCode::OK, body.into())
    }

    /// One of them.
    pub(super) fn one(
        &self,
        caller: &Caller,
        headers: &HeaderMap,
        name: &str,
        answer: &Answer,
    ) -> Response {
        if let Err(refused) = self.count(caller, headers, answer) {
            return *refused;
        }
        let name = name.replace("%2F", "/").replace("%2f", "/");
        match self.catalogue.find(&name) {
            Some(route) if self.may_use(caller, &name, &route) => {
                answer.json(StatusCode::OK, entry(&name).into())
            }
            Some(_) | None => answer.no_model(&name),
        }
    }

    fn count(
        &self,
        caller: &Caller,
        headers: &HeaderMap,
        answer: &Answer,
    ) -> Result<(), Box<Response>> {
        let gate = &self.terms.gate;
        let origin = origin(answer.id(), headers, gate.mono_ns());
        let counted = gate.admit_stray(&Facts::of(caller), &origin);
        counted.map_err(|refusal| Box::new(answer.refused(&refusal)))
    }

    fn may_use(&self, caller: &Caller, name: &str, route: &Arc<Route>) -> bool {
        let mut targets = route.targets().filter(|target| may_ask(caller, target));
        targets.any(|target| {
            let facts = of_target(name, target, caller);
            self.terms.gate.may_be_listed(&facts)
        })
    }
}

fn entry(name: &str) -> String {
    let quoted = quoted(name);
    format!(
        "{{\"id\":{quoted},\"object\":\"model\",\"type\":\"model\",\"display_name\":{quoted},{CREATED},\"owned_by\":\"durward\"}}"
    )
}

fn quoted(text: &str) -> String {
    let mut out = Vec::with_capacity(text.len() + 2);
    wire::text::push_string(&mut out, text);
    String::from_utf8(out).unwrap_or_default()
}
