//! The face of model APIs over HTTP: paths, callers, and answers in the dialect of each.

mod accounts;
mod answer;
mod ids;
mod list;
mod paths;

use std::borrow::Cow;
use std::sync::Arc;

use dialects::{Dialect, Endpoint};
use gate::facts::Facts;
use gate::identity::IdentityFault;
use gate::inspect::{About, Inspected, Way};
use gate::{Caller, Gate, Origin, Reason, RunId};
use http::{HeaderMap, HeaderValue, Method, StatusCode};
use net::http::server::{Request, Response};
use state::counter::{BudgetUnit, ReserveError};
use state::{Reservation, Underway};
use toolkit::breaker::{Breaker, BreakerEvent};
use toolkit::face::Scope;
use toolkit::server::BoxFuture;

use crate::budget::{self, Budgets};
use crate::cache::{CacheOptions, ResponseCache};
use crate::call::{
    self, Admitted, CallBounds, CallError, CallSource, RoutedRequest, Served, Terms,
};
use crate::catalogue::{Catalogue, Route, Target};
use crate::inspect;
use crate::prices::Prices;
use crate::provider::RestingKey;
use crate::request::{ModelRequest, Unreadable};
use crate::signatures::{CallerSignatures, SignatureStore};
use crate::tally::{Counted, Tally};
pub use accounts::AccountsFace;
use answer::{Answer, Told, request_id};
use ids::Ids;
use paths::Place;

/// Bounds of the face.
#[derive(Debug, Clone, Copy)]
pub struct FaceOptions {
    /// The longest reply that is not streamed, and the longest event, in bytes.
    pub reply_bytes_max: usize,
    /// How long a reply may say nothing once it has begun, in milliseconds.
    pub stall_ms_max: u64,
    /// How long a stream may last, in milliseconds.
    pub stream_ms_max: u64,
}

impl Default for FaceOptions {
    fn default() -> Self {
        Self {
            reply_bytes_max: 16 * 1024 * 1024,
            stall_ms_max: 120_000,
            stream_ms_max: 3_600_000,
        }
    }
}

/// How often each event was met at a breaker.
pub type BreakerCounts = [(BreakerEvent, u64); BreakerEvent::ALL.len()];

/// The model APIs.
pub struct Face {
    routes: Vec<toolkit::face::Route>,
    terms: Terms,
    catalogue: Catalogue,
    ids: Ids,
    /// Accounts of runs, if callers have no budgets.
    run_budgets: Budgets,
    signatures: Arc<SignatureStore>,
}

impl Face {
    /// Serves what the catalogue names, through this gate. `salt` distinguishes this instance.
    #[must_use]
    pub fn new(
        gate: Arc<Gate>,
        catalogue: Catalogue,
        budgets: Option<Budgets>,
        prices: Arc<Prices>,
        options: FaceOptions,
        salt: u64,
    ) -> Self {
        Self {
            signatures: Arc::new(SignatureStore::new(Arc::clone(&gate))),
            routes: paths::routes(),
            run_budgets: Budgets::of_runs(Arc::clone(&prices)),
            terms: Terms {
                gate,
                reply_bytes_max: options.reply_bytes_max,
                stall_ms_max: options.stall_ms_max,
                stream_ms_max: options.stream_ms_max,
                deadline: None,
                budgets,
                prices,
                underway: None,
                cache: None,
                tally: Arc::new(Tally::of(catalogue.provider_names())),
            },
            catalogue,
            ids: Ids::new(salt),
        }
    }

    /// The same, with notes of streams under way, by which those that a kill cuts are settled.
    #[must_use]
    pub fn with_notes(mut self, underway: Option<Arc<Underway>>) -> Self {
        self.terms.underway = underway;
        self
    }

    /// The same, with replies that are remembered.
    #[must_use]
    pub fn with_cache(mut self, options: Option<CacheOptions>) -> Self {
        self.terms.cache = options.map(|options| Arc::new(ResponseCache::new(options)));
        self
    }

    /// Returns the gate that judges its calls.
    #[must_use]
    pub fn gate(&self) -> &Arc<Gate> {
        &self.terms.gate
    }

    /// Returns an id for a request that has none.
    pub(crate) fn next_id(&self) -> String {
        self.ids.next()
    }

    /// What can be called.
    #[must_use]
    pub fn catalogue(&self) -> &Catalogue {
        &self.catalogue
    }

    /// What was counted of each provider.
    #[must_use]
    pub fn counted(&self) -> Vec<Counted> {
        self.terms.tally.read()
    }

    /// Returns the keys that rest, by provider.
    #[must_use]
    pub fn resting_keys(&self) -> Vec<(String, Vec<RestingKey>)> {
        let providers = self.catalogue.providers().iter();
        let keys = providers.map(|own| (own.peer().name().to_owned(), own.resting_keys()));
        keys.filter(|(_, keys)| !keys.is_empty()).collect()
    }

    /// What happened at the breaker of each target, by the name that is called and the target.
    #[must_use]
    pub fn breakers(&self) -> Vec<(String, BreakerCounts)> {
        let routes = self.catalogue.names();
        let legs = routes.flat_map(|(name, route)| {
            let told = move |(target, breaker): (&Target, &Arc<Breaker>)| {
                (format!("{name} {}", target.name()), breaker.counts())
            };
            route.breakers().map(told).collect::<Vec<_>>()
        });
        legs.collect()
    }

    async fn answer(&self, who: Result<Caller, IdentityFault>, request: Request) -> Response {
        let received_ns = self.terms.gate.mono_ns();
        let place = paths::place(request.head.uri.path());
        let id = request_id(&request.head.headers).unwrap_or_else(|| self.ids.next());
        let answer = Answer::new(place.dialect(&request.head.headers), id);
        let caller = match who {
            Ok(caller) => caller,
            Err(fault) => return answer.unknown_caller(fault),
        };
        // The server leaves the body out of an answer to HEAD.
        let looks = matches!(request.head.method, Method::GET | Method::HEAD);
        match place {
            Place::Ask(endpoint) if request.head.method == Method::POST => {
                self.ask(endpoint, caller, request, &answer, received_ns)
                    .await
            }
            Place::Ask(_) => answer.method("POST"),
            Place::List if looks => self.list(&caller, &request.head.headers, &answer),
            Place::One(name) if looks => {
                let name = name.to_owned();
                self.one(&caller, &request.head.headers, &name, &answer)
            }
            Place::List | Place::One(_) => answer.method("GET, HEAD"),
            Place::Elsewhere => answer.error(
                StatusCode::NOT_FOUND,
                Told::new("endpoint_not_served", "this endpoint is not served"),
            ),
        }
    }

    async fn ask(
        &self,
        endpoint: Endpoint,
        caller: Caller,
        mut request: Request,
        answer: &Answer,
        received_ns: u64,
    ) -> Response {
        let body = match request.read_body().await {
            Ok(body) => body,
            Err(fault) => {
                let told = Told::new(fault.label(), fault.sentence());
                return answer.error(fault.status(), told);
            }
        };
        let headers = &request.head.headers;
        let source = CallSource {
            endpoint,
            body: &body,
            headers,
            origin: call::origin(answer.id(), headers, received_ns),
        };
        let served = match self.prepare_call(&caller, source).await {
            Ok(routed) => self.serve(caller, routed, CallBounds::default()).await,
            Err(error) => Err(error),
        };
        match served {
            Ok(Served::Whole(whole, trail)) => answer.whole(whole, &trail),
            Ok(Served::Stream(relay, trail)) => answer.stream(relay, &trail),
            Err(CallError::Unreadable(fault)) => unreadable(answer, &fault),
            Err(CallError::NoModel(name)) => answer.no_model(&name),
            Err(CallError::Refused(refusal, sentence)) => answer.refused_as(&refusal, sentence),
            Err(CallError::Unserved(unserved)) => answer.unserved(*unserved),
        }
    }

    /// Reads a request, finds its route, and inspects it by the rules for the providers of that.
    pub(crate) async fn prepare_call(
        &self,
        caller: &Caller,
        source: CallSource<'_>,
    ) -> Result<Inspected<RoutedRequest>, CallError> {
        let CallSource {
            endpoint,
            body,
            headers,
            mut origin,
        } = source;
        let asked = self.read((endpoint, body, headers), caller, &origin.request_id)?;
        let gate = &self.terms.gate;
        origin.arguments_digest = Some(gate.digest(body));
        let route = self.catalogue.find(asked.model());
        // What lies beyond its key is not there for a caller.
        let is_theirs = |route: &Arc<Route>| route.targets().any(|of| call::may_ask(caller, of));
        let Some(route) = route.filter(is_theirs) else {
            gate.admit_stray(&Facts::of(caller), &origin)?;
            return Err(CallError::NoModel(asked.model().to_owned()));
        };
        let makes_calls = route.makes_calls();
        if makes_calls && origin.run.is_none() {
            // The calls of the run are found by its name.
            origin.run = RunId::named(&origin.request_id);
        }
        let asked = self.inspect(asked, (&route, caller), headers).await?;
        if asked.finding().is_some() {
            let body = asked.message().body();
            origin.arguments_digest = Some(gate.digest(body.as_str().as_bytes()));
        }
        let cache = self.terms.cache.as_ref().filter(|_| !makes_calls);
        Ok(asked.map(|mut request| {
            request.set_cache_key(cache.and_then(|cache| cache.key(&request, caller, headers)));
            RoutedRequest {
                request,
                route,
                origin,
            }
        }))
    }

    /// Carries a call from its limits to the reply, or to the first event of that.
    pub(crate) async fn serve(
        &self,
        caller: Caller,
        routed: Inspected<RoutedRequest>,
        bounds: CallBounds,
    ) -> Result<Served, CallError> {
        let RoutedRequest { route, origin, .. } = routed.message();
        let (route, origin) = (Arc::clone(route), origin.clone());
        let asked = routed.map(|routed| routed.request);
        let bounded;
        let terms = match bounds.deadline {
            None => &self.terms,
            Some(_) => {
                bounded = Terms {
                    deadline: bounds.deadline,
                    ..self.terms.clone()
                };
                &bounded
            }
        };
        let reservation = self
            .reserve(&caller, &route, asked.message(), (&origin, &bounds))
            .await?;
        let source = origin.clone();
        let admitted = call::admit(terms, caller, &route, asked, (origin, bounds.approval));
        let Admitted {
            permit,
            caller,
            legs,
        } = admitted.await?;
        if call::is_estimated(&legs, permit.request()) {
            let (whole, trail) = call::estimate(terms, &legs, permit, reservation);
            return Ok(Served::Whole(whole, trail));
        }
        let served = match call::find_cached(terms, &legs, &caller, permit.request()).await {
            Some(found) => call::answer(terms, found, permit, reservation).await,
            None => {
                let whose = (&caller, &source);
                let served = call::serve(terms, &route, &legs, whose, permit, reservation);
                served.await.map_err(Box::new)
            }
        };
        served.map_err(CallError::Unserved)
    }
}

/// Returns a request with this body, in which matches are masked.
fn masked(
    asked: ModelRequest,
    text: &str,
    headers: &HeaderMap,
) -> Result<ModelRequest, Unreadable> {
    // The files of a form stand between what is masked.
    if asked.is_form() {
        return Err(Unreadable::Masked);
    }
    asked.with_body(text.as_bytes(), headers)
}

/// Tells the caller that its request cannot be read.
fn unreadable(answer: &Answer, fault: &Unreadable) -> Response {
    let message = fault.to_string();
    let told = Told::new("request_unreadable", &message).about(fault.param());
    answer.error(StatusCode::BAD_REQUEST, told)
}

impl Face {
    /// Reads a request, names it for the provider and adds the keys that its caller has brought.
    fn read(
        &self,
        (endpoint, body, headers): (Endpoint, &[u8], &HeaderMap),
        caller: &Caller,
        request_id: &str,
    ) -> Result<ModelRequest, Unreadable> {
        let mut asked = ModelRequest::read(endpoint, body, headers)?;
        if let Ok(id) = HeaderValue::try_from(request_id) {
            asked.set_id(id);
        }
        if asked.endpoint() == Endpoint::Chat {
            asked.set_signatures(CallerSignatures {
                store: Arc::clone(&self.signatures),
                caller: Arc::clone(&caller.subject),
            });
        }
        if let Some(accounts) = self.terms.budgets.as_ref().and_then(Budgets::accounts) {
            asked.set_own_keys(accounts.own_keys(caller));
        }
        Ok(asked)
    }

    /// Inspects a request by the rules for every provider that it may go to, checkers included.
    async fn inspect(
        &self,
        asked: ModelRequest,
        (route, caller): (&Route, &Caller),
        headers: &HeaderMap,
    ) -> Result<Inspected<ModelRequest>, Unreadable> {
        let gate = &self.terms.gate;
        let mut providers: Vec<&str> = route
            .targets()
            .map(|target| target.provider().peer().name())
            .collect();
        providers.sort_unstable();
        providers.dedup();
        let mut inspected = gate.inspect(asked, |inspection, asked| {
            let (text, finding) = inspect::request(inspection, &providers, asked.body().as_str());
            let left = match text {
                Cow::Borrowed(_) => None,
                Cow::Owned(left) => Some(left),
            };
            match left {
                None => Ok((asked, finding)),
                Some(left) => Ok((masked(asked, &left, headers)?, finding)),
            }
        })?;
        if let Some(inspection) = gate.inspection() {
            let asks = |provider: &&&str| inspection.asks(Way::Request, provider);
            if let Some(provider) = providers.iter().find(asks) {
                let asked = inspected.message();
                let about = About {
                    way: Way::Request,
                    server: provider,
                    caller: &caller.subject,
                    method: asked.endpoint().path(),
                    name: Some(asked.model()),
                };
                let text = asked.body().as_str();
                let checked = inspect::checked_request(&inspection, &providers, about, text);
                let (left, found) = checked.await;
                let left = match left {
                    Cow::Borrowed(_) => None,
                    Cow::Owned(left) => Some(left),
                };
                if let Some(found) = found {
                    inspected.join(&found);
                }
                if let Some(left) = left {
                    inspected = inspected.try_map(|asked| masked(asked, &left, headers))?;
                }
            }
        }
        let finding = inspected.finding().cloned();
        Ok(inspected.map(|mut asked| {
            if let Some(finding) = finding {
                asked.set_finding(finding);
            }
            asked
        }))
    }

    /// Reserves what the call may use, where that is bounded.
    async fn reserve(
        &self,
        caller: &Caller,
        route: &Route,
        asked: &ModelRequest,
        (origin, bounds): (&Origin, &CallBounds),
    ) -> Result<Option<Reservation>, CallError> {
        if route.makes_calls() {
            return Ok(None);
        }
        let run = bounds.budget.as_ref();
        let budgets = match &self.terms.budgets {
            Some(budgets) => budgets,
            // A limit of a run holds where callers have none.
            None if run.is_some() => &self.run_budgets,
            None => return Ok(None),
        };
        let gate = &self.terms.gate;
        let accounts = (caller, run);
        let reserved = budgets
            .reserve(asked, route, accounts, gate.wall_ms())
            .await;
        let error = match reserved {
            Ok(reservation) => return Ok(Some(reservation)),
            Err(error) => error,
        };
        let (reason, retry_after_ms) = match &error {
            ReserveError::Exhausted {
                unit: BudgetUnit::Requests,
                ends_in_ms,
                ..
            } => (Reason::RateLimit, *ends_in_ms),
            ReserveError::Exhausted { ends_in_ms, .. } => (Reason::BudgetSpent, *ends_in_ms),
            ReserveError::InvalidAccount | ReserveError::StoreFull => (Reason::BudgetSpent, None),
            ReserveError::Unavailable(_) => (Reason::BudgetUnavailable, None),
        };
        tracing::debug!("nothing was reserved: {error}");
        let target = route.targets().next();
        let facts = target.map(|target| call::describe(asked, target, caller, &self.terms.prices));
        let facts = facts.unwrap_or_else(|| Facts::of(caller));
        let refusal = gate.refuse(&facts, origin, reason, retry_after_ms);
        let sentence = budget::sentence(&error).filter(|_| refusal.reason == reason);
        Err(CallError::Refused(refusal, sentence))
    }
}

impl toolkit::face::Face<Request, Response> for Face {
    fn name(&self) -> &'static str {
        "models"
    }

    fn routes(&self) -> &[toolkit::face::Route] {
        &self.routes
    }

    fn scope<'p>(&'p self, _path: &'p str) -> Scope<'p> {
        Scope::Account
    }

    fn handle(
        &self,
        who: Result<Caller, IdentityFault>,
        request: Request,
    ) -> BoxFuture<'_, Response> {
        Box::pin(self.answer(who, request))
    }

    fn tick(&self) {
        self.signatures.tidy();
        if let Some(cache) = &self.terms.cache {
            cache.remove_expired(self.terms.gate.wall_ms());
        }
        for provider in self.catalogue.providers() {
            provider.tick();
        }
    }
}

/// Whose words are spoken to somebody who asks for a list.
fn dialect_of_headers(headers: &http::HeaderMap) -> Dialect {
    if headers.contains_key("anthropic-version") {
        Dialect::Anthropic
    } else {
        Dialect::OpenAi
    }
}
