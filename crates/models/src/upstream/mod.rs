//! Providers over HTTP.

mod api;
mod keys;
mod replies;

use std::borrow::Cow;
use std::collections::HashMap;
use std::fmt;
use std::time::Duration;

use bytes::Bytes;
use gate::{PeerId, Spent};
use http::header::{ACCEPT, CONTENT_TYPE};
use http::{HeaderMap, HeaderValue, StatusCode};
use net::outbound::http::{
    HttpClient, HttpFault, HttpOptions, Lane, Method, Outgoing, Target, TargetFault, TlsFault,
    TlsOptions,
};
use tokio::time::Instant;
use toolkit::server::BoxFuture;
use wire::model::translate::{self, Format, Front};
use wire::model::{Endpoint, message_of};

pub use api::Api;
pub use keys::KEYS_MAX;

pub use crate::key::Key;

use crate::provider::{Address, Fault, Offer, Provider, Remedy, Sent, Trouble};
use crate::request::ModelRequest;
use keys::Keys;

/// Most connections to one provider.
const CONNECTIONS_MAX: usize = 4_096;

/// A provider over HTTP.
#[derive(Debug)]
pub struct HttpProviderOptions {
    /// Its name.
    pub name: String,
    /// Where its API is: the part of the URL before `/chat/completions` or `/messages`.
    pub base_url: String,
    /// Whether that may be `http` on another machine.
    pub insecure: bool,
    /// Whose API it speaks.
    pub api: Api,
    /// The version of the API, where it stands in the URL.
    pub api_version: String,
    /// The most tokens of a reply where the caller names none, and the API wants a number.
    pub max_tokens: u64,
    /// Its keys; none where it wants none.
    pub keys: Vec<Key>,
    /// Its models; where the list is empty, any name is passed on.
    pub models: Vec<String>,
    /// Authorities that its certificate is checked against, as PEM; the system's where absent.
    pub authorities: Option<Vec<u8>>,
}

/// A request as it is sent.
struct Written {
    body: Bytes,
    /// Hints that the provider's dialect has no word for.
    left_out: Vec<&'static str>,
    /// The form of the reply, where that is not the caller's.
    format: Option<Format>,
}

/// Why a provider cannot be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ProviderFault {
    /// Its URL.
    Url(TargetFault),
    /// Its certificates.
    Tls(TlsFault),
}

impl fmt::Display for ProviderFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Url(fault) => fault.fmt(f),
            Self::Tls(fault) => fault.fmt(f),
        }
    }
}

impl std::error::Error for ProviderFault {}

/// A provider over HTTP.
pub struct HttpProvider {
    peer: PeerId,
    offer: Offer,
    api: Api,
    max_tokens: u64,
    keys: Keys,
    api_version: String,
    /// To the base. It and those of the endpoints share connections.
    client: HttpClient,
    /// One for each endpoint whose path is always the same.
    clients: HashMap<Endpoint, HttpClient>,
}

impl HttpProvider {
    /// Makes it ready; connects to nothing yet.
    ///
    /// # Errors
    /// Where its URL or the certificates cannot be used.
    pub fn new(options: HttpProviderOptions) -> Result<Self, ProviderFault> {
        let http = HttpOptions {
            connections_max: CONNECTIONS_MAX,
            tls: TlsOptions {
                authorities: options.authorities,
                ..TlsOptions::default()
            },
            ..HttpOptions::default()
        };
        let base = Target::parse(&options.base_url, options.insecure);
        let base = base.map_err(ProviderFault::Url)?;
        let client = HttpClient::new(base, &http).map_err(ProviderFault::Tls)?;
        let spoken = options.api.endpoints();
        let below = |endpoint: &Endpoint| {
            let client = client.below(&options.api.path(*endpoint)?)?;
            Some((*endpoint, client))
        };
        Ok(Self {
            peer: PeerId::server(options.name),
            clients: spoken.iter().filter_map(below).collect(),
            client,
            api_version: options.api_version,
            offer: Offer {
                models: options.models,
                examples: Vec::new(),
                translated: spoken
                    .iter()
                    .copied()
                    .filter(|endpoint| !options.api.has(*endpoint))
                    .collect(),
                endpoints: spoken,
            },
            api: options.api,
            max_tokens: options.max_tokens,
            keys: Keys::new(options.keys),
        })
    }

    fn headers(&self, request: &ModelRequest, key: Option<&Key>) -> HeaderMap {
        let mut headers = if self.api.has(request.endpoint()) {
            request.headers().clone()
        } else {
            request.common_headers()
        };
        let kind = HeaderValue::try_from(request.kind());
        let kind = kind.unwrap_or(HeaderValue::from_static("application/json"));
        headers.insert(CONTENT_TYPE, kind);
        let accept = if request.endpoint().is_passed_through() {
            "*/*"
        } else if request.streams() {
            "text/event-stream"
        } else {
            "application/json"
        };
        headers.insert(ACCEPT, HeaderValue::from_static(accept));
        self.api.sign(&mut headers, key);
        headers
    }

    /// The client for a request; `None` where the provider does not serve its endpoint.
    fn client_for(&self, request: &ModelRequest, model: &str) -> Option<Cow<'_, HttpClient>> {
        let endpoint = request.endpoint();
        if let Some(client) = self.clients.get(&endpoint) {
            return Some(Cow::Borrowed(client));
        }
        if !self.offer.endpoints.contains(&endpoint) {
            return None;
        }
        let (api, version) = (self.api, &self.api_version);
        let path = api.path_of(endpoint, model, request.streams(), version);
        self.client.below(&path).map(Cow::Owned)
    }

    /// The request as it is sent.
    fn write(&self, request: &ModelRequest, model: &str) -> Result<Written, Fault> {
        if self.api.has(request.endpoint()) {
            return Ok(Written {
                body: request.body_for(model),
                left_out: Vec::new(),
                format: None,
            });
        }
        let (Some(from), to) = (Front::of(request.endpoint()), self.api.format()) else {
            return Err(Fault::of(Trouble::NotSpoken, Remedy::NextTarget));
        };
        let manner = self.api.manner(model, self.max_tokens);
        match translate::request(from, to, request.body().as_str(), &manner) {
            Ok(said) => Ok(Written {
                body: said.body.into(),
                left_out: said.left_out,
                format: Some(to),
            }),
            Err(fault) => Err(Fault {
                told: Some((StatusCode::BAD_REQUEST, fault.to_string())),
                ..Fault::of(Trouble::Inexpressible, Remedy::NextTarget)
            }),
        }
    }

    async fn sent(&self, spent: Spent<ModelRequest>, to: Address<'_>) -> Sent {
        let request = spent.request();
        let Some(client) = self.client_for(request, to.model) else {
            return Sent::Unserved(spent, Fault::of(Trouble::NotSpoken, Remedy::NextTarget));
        };
        let written = match self.write(request, to.model) {
            Ok(written) => written,
            Err(fault) => return Sent::Unserved(spent, fault),
        };
        let own = request.own_key(self.peer.name());
        let (number, key) = match own {
            Some(own) => (None, Some(own)),
            None => match self.keys.take(to.model, Instant::now()) {
                Ok((number, key)) => (Some(number), key),
                Err(fault) => return Sent::Unserved(spent, fault),
            },
        };
        let left = to.until.saturating_duration_since(Instant::now());
        let outgoing = Outgoing {
            method: Method::POST,
            headers: self.headers(request, key),
            body: written.body,
            lane: Lane::Call,
            head_ms_max: u64::try_from(left.as_millis()).unwrap_or(u64::MAX),
        };
        let reply = match client.send(&outgoing).await {
            Ok(reply) => reply,
            Err(fault) => {
                tracing::debug!(provider = self.peer.name(), "{fault}");
                return Sent::Unserved(spent, replies::of_http(&fault));
            }
        };
        if reply.status().is_success() {
            return replies::success(spent, reply, written.format, written.left_out);
        }
        let until = to
            .until
            .min(Instant::now() + Duration::from_millis(replies::ERROR_WAIT_MS_MAX));
        let mut fault = replies::error(reply, until).await;
        let shows_key = |(_, body): &(StatusCode, Bytes)| key.is_some_and(|key| key.is_in(body));
        if fault.answer.as_ref().is_some_and(shows_key) {
            // Some say again what they were sent.
            fault.answer = None;
        }
        if written.format.is_some() {
            // The provider's words are not the caller's, so only its sentence goes on.
            let told = fault.answer.take();
            fault.told = told.map(|(status, body)| {
                let said = std::str::from_utf8(&body).ok().and_then(message_of);
                (
                    status,
                    said.unwrap_or_else(|| fault.trouble.sentence().to_owned()),
                )
            });
        }
        match number {
            Some(number) => self
                .keys
                .learn(number, to.model, &mut fault, Instant::now()),
            None if fault.is_about_key() => {
                request.refuse_own_key(self.peer.name());
                fault.remedy = Remedy::OtherKey;
            }
            None => {}
        }
        Sent::Unserved(spent, fault)
    }
}

impl Provider for HttpProvider {
    fn peer(&self) -> &PeerId {
        &self.peer
    }

    fn offer(&self) -> &Offer {
        &self.offer
    }

    fn send<'a>(&'a self, spent: Spent<ModelRequest>, to: Address<'a>) -> BoxFuture<'a, Sent> {
        Box::pin(self.sent(spent, to))
    }

    fn tick(&self) {
        // Connections are shared, so one client stands for all.
        self.client.reap();
    }
}

impl From<&HttpFault> for Trouble {
    fn from(fault: &HttpFault) -> Self {
        match fault {
            HttpFault::Unreachable(_) | HttpFault::ConnectTimeout | HttpFault::Tls(_) => {
                Self::Unreachable
            }
            HttpFault::Busy => Self::Busy,
            HttpFault::HeadTimeout => Self::TooSlow,
            HttpFault::HeadTooLong | HttpFault::Malformed => Self::Malformed,
            HttpFault::BodyTooLong => Self::TooLong,
            HttpFault::NotSent | HttpFault::Broken => Self::Cut,
        }
    }
}
